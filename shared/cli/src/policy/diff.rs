//! `premath policy diff`: which rules and limits of two policies differ.

use super::artifact::{Artifact, ArtifactRef, Policy};
use crate::answer::Answer;
use crate::error::CliError;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_evidence::recorded_call;
use premath_kernel::policy::turn::Replay;
use premath_memory::hook_journals;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// The policy to compare, sealed or not; alone, with the one in force
    #[arg(value_name = "FILE")]
    first: PathBuf,
    /// The policy that the first one became
    #[arg(value_name = "OTHER")]
    second: Option<PathBuf>,
    /// Also judge the calls of earlier turns by the policy after, from the
    /// journals of their hooks
    #[arg(long)]
    replay: bool,
    /// Set the configuration file [default: harness.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The answer of `premath policy diff`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyDiffAnswer {
    /// The policy before.
    from: ArtifactRef,
    /// The policy after.
    to: ArtifactRef,
    /// Whether no rule and no field differs.
    same: bool,
    /// The rules that differ: by their place after, then those that are gone.
    rules: Vec<RuleDifference>,
    /// What differs outside of the rules.
    fields: Vec<FieldDifference>,
    /// What the policy after decides otherwise about calls of earlier turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayAnswer>,
}

/// What a policy decides about calls of earlier turns.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReplayAnswer {
    /// How many turns have a journal.
    turns: u64,
    #[serde(flatten)]
    found: Replay,
}

/// A rule that differs.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RuleDifference {
    /// The rule's id.
    rule_id: String,
    /// What happened to it.
    changes: Vec<RuleChange>,
    /// The fields that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldDifference>,
    /// Its place before, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_place: Option<usize>,
    /// Its place after, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_place: Option<usize>,
}

/// What happened to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RuleChange {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content is another.
    Changed,
    /// It is before or after other rules than it was.
    Moved,
}

impl RuleChange {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Moved => "moved",
        }
    }
}

/// A field that differs; absent values are null.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct FieldDifference {
    /// The field's path.
    field: String,
    /// The value before.
    from: Value,
    /// The value after.
    to: Value,
}

impl DiffArgs {
    pub(super) fn perform(self) -> Result<Answer, CliError> {
        let first = Artifact::read(&self.first)?;
        let kind = first.policy.kind();
        let (from, to) = match &self.second {
            Some(second) => (first, Artifact::read(second)?),
            None => (Artifact::in_force(kind, self.config.as_deref())?, first),
        };
        if from.policy.kind() != to.policy.kind() {
            let kinds = (from.policy.kind().name(), to.policy.kind().name());
            let detail = format!("cannot compare a {} with a {}", kinds.0, kinds.1);
            return Err(CliError::Usage(detail));
        }
        let rules = rules(
            &rules_of(&from.document, kind.rules_field()),
            &rules_of(&to.document, kind.rules_field()),
        );
        let fields = fields(
            &without(&from.document, &["policyDigest", kind.rules_field()]),
            &without(&to.document, &["policyDigest", kind.rules_field()]),
        );
        let replay = match self.replay {
            true => Some(replayed(&to.policy)?),
            false => None,
        };
        let answer = PolicyDiffAnswer {
            same: rules.is_empty() && fields.is_empty(),
            from: from.reference(),
            to: to.reference(),
            rules,
            fields,
            replay,
        };
        let text = text(&answer, &from.place(), &to.place());
        Ok(Answer::new(answer, text))
    }
}

/// Judges the calls of the journals by a policy.
fn replayed(policy: &Policy) -> Result<ReplayAnswer, CliError> {
    let Policy::Turn(policy) = policy else {
        let detail = "--replay is for a turn policy: a retry policy decides about no call";
        return Err(CliError::Usage(detail.to_owned()));
    };
    let mut found = Replay::default();
    let turns = hook_journals::each_line(&paths::roots()?.streams, |line| {
        if let Some(recorded) = recorded_call(line) {
            found.add(policy, recorded.as_ref());
        }
    })?;
    Ok(ReplayAnswer { turns, found })
}

/// The rules of a document, in their order, by their ids.
fn rules_of<'d>(document: &'d Value, field: &str) -> Vec<(&'d str, &'d Value)> {
    let rules = document.get(field).and_then(Value::as_array);
    let rules = rules.into_iter().flatten();
    let with_id = |rule: &'d Value| Some((rule.get("ruleId")?.as_str()?.trim(), rule));
    rules.filter_map(with_id).collect()
}

fn without(document: &Value, names: &[&str]) -> Value {
    let mut fields = document.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| !names.contains(&&**name));
    Value::Object(fields)
}

fn rules(before: &[(&str, &Value)], after: &[(&str, &Value)]) -> Vec<RuleDifference> {
    let place = |rules: &[(&str, &Value)], id: &str| rules.iter().position(|(one, _)| *one == id);
    let moved = moved(before, after);
    let mut found = Vec::new();
    for (at, (id, rule)) in after.iter().enumerate() {
        let from = place(before, id);
        let fields = from.map(|from| fields(before[from].1, rule));
        let mut changes = Vec::new();
        match &fields {
            None => changes.push(RuleChange::Added),
            Some(fields) if !fields.is_empty() => changes.push(RuleChange::Changed),
            Some(_) => {}
        }
        if moved.contains(id) {
            changes.push(RuleChange::Moved);
        }
        if !changes.is_empty() {
            found.push(RuleDifference {
                rule_id: (*id).to_owned(),
                changes,
                fields: fields.unwrap_or_default(),
                from_place: from.map(|from| from + 1),
                to_place: Some(at + 1),
            });
        }
    }
    for (at, (id, _)) in before.iter().enumerate() {
        if place(after, id).is_none() {
            found.push(RuleDifference {
                rule_id: (*id).to_owned(),
                changes: vec![RuleChange::Removed],
                fields: Vec::new(),
                from_place: Some(at + 1),
                to_place: None,
            });
        }
    }
    found
}

/// Returns the rules that are in both and have to be moved: all but the most
/// that are in one order.
fn moved<'d>(before: &[(&'d str, &Value)], after: &[(&'d str, &Value)]) -> BTreeSet<&'d str> {
    let places: BTreeMap<&str, usize> = (0..).zip(before).map(|(at, (id, _))| (*id, at)).collect();
    let common: Vec<(&str, usize)> = after
        .iter()
        .filter_map(|(id, _)| Some((*id, *places.get(id)?)))
        .collect();
    // The longest rising sequence that ends at each rule, and the one before it.
    let mut best: Vec<(usize, Option<usize>)> = Vec::new();
    for (at, (_, place)) in common.iter().enumerate() {
        let lower = (0..at).filter(|earlier| common[*earlier].1 < *place);
        // The first of equals, so that the answer is always the same.
        let longest = lower.rev().max_by_key(|earlier| best[*earlier].0);
        let length = longest.map_or(0, |earlier| best[earlier].0);
        best.push((length + 1, longest));
    }
    let mut moved: BTreeSet<&str> = common.iter().map(|(id, _)| *id).collect();
    let mut next = (0..best.len()).rev().max_by_key(|at| best[*at].0);
    while let Some(at) = next {
        moved.remove(common[at].0);
        next = best[at].1;
    }
    moved
}

/// Returns the fields that differ, by their paths. An empty list or text is as
/// absent.
fn fields(before: &Value, after: &Value) -> Vec<FieldDifference> {
    let (mut from, mut to) = (BTreeMap::new(), BTreeMap::new());
    flatten(before, "", &mut from);
    flatten(after, "", &mut to);
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let differs = names
        .into_iter()
        .filter(|name| from.get(*name) != to.get(*name));
    let value = |of: &BTreeMap<String, Value>, name| of.get(name).cloned().unwrap_or_default();
    differs
        .map(|name| FieldDifference {
            field: name.clone(),
            from: value(&from, name),
            to: value(&to, name),
        })
        .collect()
}

fn flatten(value: &Value, path: &str, into: &mut BTreeMap<String, Value>) {
    let is_empty = match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => {
            flatten_fields(fields, path, into);
            return;
        }
        _ => false,
    };
    if !is_empty {
        into.insert(path.to_owned(), value.clone());
    }
}

fn flatten_fields(fields: &Map<String, Value>, path: &str, into: &mut BTreeMap<String, Value>) {
    for (name, value) in fields {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        flatten(value, &path, into);
    }
}

fn text(answer: &PolicyDiffAnswer, from: &str, to: &str) -> String {
    let mut text = format!("from  {from}\nto    {to}\n");
    if answer.same {
        text.push_str("no rule and no limit differs\n");
    }
    for rule in &answer.rules {
        let changes: Vec<&str> = rule.changes.iter().map(|change| change.as_str()).collect();
        let _ = write!(text, "{} {}", changes.join(", "), plain(&rule.rule_id));
        let places = (rule.from_place, rule.to_place);
        let _ = match places {
            (Some(from), Some(to)) if rule.changes.contains(&RuleChange::Moved) => {
                writeln!(text, " (rule {from} before, {to} now)")
            }
            (Some(at), None) | (None, Some(at)) => writeln!(text, " (rule {at})"),
            _ => writeln!(text),
        };
        text.push_str(&field_lines(&rule.fields));
    }
    if !answer.fields.is_empty() {
        text.push_str("changed outside of the rules\n");
        text.push_str(&field_lines(&answer.fields));
    }
    if let Some(replay) = &answer.replay {
        text.push_str(&replay_lines(replay));
    }
    text
}

fn replay_lines(replay: &ReplayAnswer) -> String {
    let found = &replay.found;
    let listed = |rules: &BTreeMap<String, u64>| match rules.values().sum::<u64>() {
        0 => "0".to_owned(),
        sum => {
            let each = rules
                .iter()
                .map(|(id, count)| format!("{} {count}", plain(id)));
            format!("{sum} ({})", each.collect::<Vec<_>>().join(", "))
        }
    };
    let mut text = format!(
        "replayed {} call(s) of {} turn(s)\n  would be denied  {}\n  would now run    {}\n",
        found.calls,
        replay.turns,
        listed(&found.newly_denied),
        listed(&found.newly_allowed),
    );
    if found.unread > 0 {
        let _ = writeln!(
            text,
            "  not judged       {}, too long for the journal",
            found.unread
        );
    }
    text
}

fn field_lines(fields: &[FieldDifference]) -> String {
    let mut text = String::new();
    for field in fields {
        let line = format!("{}: {} -> {}", field.field, field.from, field.to);
        let _ = writeln!(text, "  {}", plain(&line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changes(before: &Value, after: &Value) -> Vec<String> {
        let found = rules(&rules_of(before, "tools"), &rules_of(after, "tools"));
        let shown = found.iter().map(|rule| {
            let changes: Vec<&str> = rule.changes.iter().map(|change| change.as_str()).collect();
            format!("{} {}", rule.rule_id, changes.join("+"))
        });
        shown.collect()
    }

    fn policy(ids: &[&str]) -> Value {
        let rules = ids
            .iter()
            .map(|id| json!({"ruleId": id, "decision": "deny"}));
        json!({"tools": rules.collect::<Vec<_>>()})
    }

    #[test]
    fn rules_are_compared_by_id_and_order() {
        let before = policy(&["a", "b", "c", "d"]);
        for (after, expected) in [
            (&["a", "b", "c", "d"][..], &[][..]),
            (&["b", "c", "d", "a"], &["a moved"]),
            (&["d", "a", "b", "c"], &["d moved"]),
            (&["a", "c", "d"], &["b removed"]),
            (&["x", "a", "b", "c", "d"], &["x added"]),
            (&["b", "a", "x", "d"], &["a moved", "x added", "c removed"]),
        ] {
            let found = changes(&before, &policy(after));
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, expected, "{after:?}");
        }
        let mut after = policy(&["b", "c", "d", "a"]);
        after["tools"][3]["reason"] = "r".into();
        after["tools"][0]["programs"] = json!([]);
        assert_eq!(changes(&before, &after), ["a changed+moved"]);
    }
}
