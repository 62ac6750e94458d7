//! `premath harness-join-check` (`contracts.md` 2)

mod input;
mod reasons;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::terminal::plain;
use clap::{Args, ValueEnum};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::value_of;
use premath_kernel::turn::{
    BrokenRule, EvidenceError, JoinCheck, JoinCheckInput, ParsedInput, explain, judged_notes,
    normalize,
};
use premath_view::web::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `premath harness-join-check`.
#[derive(Debug, Args)]
pub(crate) struct JoinCheckArgs {
    /// Read the evidence and its constraints, or a step's `….turn.json`; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Exit 1 if the verdict is worse
    #[arg(long, value_enum)]
    require: Option<RequireArg>,
    /// List the rows that broke a rule, what would satisfy it, and ignored fields
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RequireArg {
    /// The join is closed
    Accepted,
    /// The join is closed and the turn may change issues
    MutationReady,
}

impl JoinCheckArgs {
    pub(crate) fn run(self) -> Finished {
        Finished::new("harness-join-check", self.perform())
    }

    fn perform(self) -> Result<Answer, CliError> {
        let bytes = input::read(&self.input).map_err(|source| CliError::EvidenceFile {
            path: self.input.clone(),
            source,
        })?;
        let invalid = |source| CliError::Evidence {
            path: self.input.clone(),
            source,
        };
        let document = ParsedInput::document(&bytes).map_err(invalid)?;
        drop(bytes);
        let JudgedDocument { answer, ready } = judge(document, self.explain).map_err(invalid)?;
        let met = match self.require {
            None => true,
            Some(RequireArg::Accepted) => ready.accepted,
            Some(RequireArg::MutationReady) => ready.mutation,
        };
        Ok(answer.refused(!met))
    }
}

/// A document that was judged.
pub(crate) struct JudgedDocument {
    /// What is reported about it.
    pub(crate) answer: Answer,
    ready: Readiness,
}

/// Returns what the gate says about a turn's evidence, or a step's turn witness.
///
/// # Errors
///
/// What does not fit, with the path of the field.
pub(crate) fn verdict_of(document: Value) -> Result<Verdict, EvidenceError> {
    let (document, close) = turn_witness(document);
    let JoinCheckInput {
        evidence,
        constraints,
    } = ParsedInput::from_value(document)?.input;
    let check = JoinCheck::of(normalize(evidence)?, &constraints);
    let word = |class: &Value| class.as_str().map(str::to_owned);
    let close = close.as_ref().and_then(Value::as_array);
    Ok(Verdict {
        join_closed: check.join_closed,
        mutation_ready: check.mutation_ready,
        join_classes: check.failure_classes.iter().copied().collect(),
        mutation_classes: check.mutation_failure_classes.iter().copied().collect(),
        close_classes: close.map(|classes| classes.iter().filter_map(word).collect()),
        judged: judged_notes(),
        broken: explain(&check.normalized, &constraints),
    })
}

/// How far a turn comes.
struct Readiness {
    accepted: bool,
    mutation: bool,
}

/// Judges a turn's evidence and constraints, or a step's turn witness.
///
/// # Errors
///
/// What does not fit, with the path of the field.
pub(crate) fn judge(document: Value, explained: bool) -> Result<JudgedDocument, EvidenceError> {
    let (document, close) = turn_witness(document);
    let parsed = ParsedInput::from_value(document)?;
    let JoinCheckInput {
        evidence,
        constraints,
    } = parsed.input;
    let normalized = normalize(evidence)?;
    let check = JoinCheck::of(normalized, &constraints);
    let ready = Readiness {
        accepted: check.join_closed,
        mutation: check.mutation_ready && close.as_ref().is_none_or(closes),
    };
    let mut text = text_of(&check);
    if let Some(classes) = &close {
        let _ = writeln!(
            text,
            "close     {}",
            if closes(classes) {
                "allowed, as recorded".to_owned()
            } else {
                format!("refused, as recorded: {}", plain(&classes.to_string()))
            }
        );
    }
    let explain = explained.then(|| {
        let rules = explain(&check.normalized, &constraints);
        text.push_str(&reasons::text(&rules, &parsed.unknown_fields));
        Explanation {
            classes: meanings(&check),
            rules,
            ignored_fields: parsed.unknown_fields,
        }
    });
    let answer = JoinCheckAnswer {
        check,
        close_failure_classes: close,
        explain,
    };
    let document = value_of(&answer);
    drop(answer);
    let answer = Answer::new(document, text);
    Ok(JudgedDocument { answer, ready })
}

/// The answer: the verdict, and what was asked for beside it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JoinCheckAnswer {
    #[serde(flatten)]
    check: JoinCheck,
    /// Of a step's turn witness: what kept its issue from being closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    close_failure_classes: Option<Value>,
    /// With `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explanation>,
}

/// Why a turn was refused.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    /// The meaning of each class.
    classes: BTreeMap<&'static str, &'static str>,
    /// The rules that the turn breaks, with the places.
    rules: Vec<BrokenRule>,
    /// Unknown fields.
    ignored_fields: BTreeSet<String>,
}

/// Takes a step's turn witness apart: the evidence that was judged, and the
/// recorded classes that kept the step's issue from being closed.
fn turn_witness(mut document: Value) -> (Value, Option<Value>) {
    if document["witnessKind"] == "premath.harness.turn_witness.v1" {
        let classes = document["closeFailureClasses"].take();
        (document["input"].take(), Some(classes))
    } else {
        (document, None)
    }
}

fn closes(classes: &Value) -> bool {
    classes.as_array().is_some_and(Vec::is_empty)
}

fn text_of(check: &JoinCheck) -> String {
    let mut text = String::new();
    let (join, change) = (&check.failure_classes, &check.mutation_failure_classes);
    let _ = writeln!(
        text,
        "join      {}{}",
        if check.join_closed { "closed" } else { "open" },
        listed(join)
    );
    let _ = writeln!(
        text,
        "mutation  {}{}",
        if check.mutation_ready {
            "ready"
        } else {
            "not ready"
        },
        listed(change)
    );
    text
}

fn listed(classes: &BTreeSet<FailureClass>) -> String {
    if classes.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    format!(": {}", words.join(", "))
}

fn meanings(check: &JoinCheck) -> BTreeMap<&'static str, &'static str> {
    check
        .failure_classes
        .iter()
        .chain(&check.mutation_failure_classes)
        .map(|class| (class.as_str(), class.meaning()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::turn::{Stage, notes};

    #[test]
    fn a_verdict_names_the_rules_that_it_asked_and_the_one_that_broke() {
        let base =
            include_str!("../../../../tests/conformance/harness-typestate/bases/closed.json");
        let mut document: Value = serde_json::from_str(base).unwrap();
        let verdict = verdict_of(document.clone()).unwrap();
        assert!(verdict.join_closed && verdict.broken.is_empty());
        let results = document["evidence"]["toolResults"].as_array_mut().unwrap();
        results.pop();
        let verdict = verdict_of(document).unwrap();
        assert!(!verdict.join_closed);
        let judged: Vec<&str> = verdict.judged.iter().map(|note| &*note.rule).collect();
        assert!(!verdict.broken.is_empty());
        for broken in &verdict.broken {
            assert!(judged.contains(&&*broken.rule), "{}", broken.rule);
        }
        // Rules that need the step itself are not asked of a document alone.
        let asked = notes()
            .into_iter()
            .filter(|note| note.stage != Stage::ThisStep);
        assert_eq!(judged, asked.map(|note| note.rule).collect::<Vec<_>>());
        assert!(judged.len() < notes().len());
    }
}
