//! Issues as the rules see them: the part of a row that decides
//! (`contracts.md` 3).
//!
//! A row has many more fields; they stay in its text, and a change is a set of
//! fields to set or to remove, so that nothing else of the row is touched.

mod lease;
mod schema;

pub use lease::{Holder, Lease};

use crate::json::id::StepId;
use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The status of an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Free to be worked on once nothing holds it.
    Open,
    /// The issue is in progress.
    InProgress,
    /// Set aside until a person looks.
    Blocked,
    /// Done.
    Closed,
    /// Deleted, kept as a mark.
    Tombstone,
    /// A word of another tracker; kept, and never ready.
    Other(Box<str>),
}

impl Status {
    /// Reads a status word; a blank one is `open`.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "open" => Self::Open,
            "in_progress" => Self::InProgress,
            "blocked" => Self::Blocked,
            "closed" => Self::Closed,
            "tombstone" => Self::Tombstone,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the word used in the row.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Closed => "closed",
            Self::Tombstone => "tombstone",
            Self::Other(word) => word,
        }
    }

    /// Returns whether the issue is over: what waits for it need not wait.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Closed | Self::Tombstone)
    }

    /// Returns whether only the gate's evidence or the operator may set it.
    pub const fn needs_evidence(&self) -> bool {
        self.is_terminal() || matches!(self, Self::Blocked)
    }
}

/// What an edge from an issue to another does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// Holds the issue until the target is terminal.
    Holds(HoldKind),
    /// Points from the child to its parent.
    ParentChild,
    /// Holds nothing.
    Informs(Box<str>),
}

/// The words of edges that hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldKind {
    /// `blocks`
    Blocks,
    /// `conditional-blocks`
    ConditionalBlocks,
    /// `waits-for`
    WaitsFor,
}

impl EdgeKind {
    /// Reads an edge's word; a blank one is `blocks`.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "blocks" => Self::Holds(HoldKind::Blocks),
            "conditional-blocks" => Self::Holds(HoldKind::ConditionalBlocks),
            "waits-for" => Self::Holds(HoldKind::WaitsFor),
            "parent-child" => Self::ParentChild,
            other => Self::Informs(other.into()),
        }
    }

    /// Returns the word used in the row.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Holds(HoldKind::Blocks) => "blocks",
            Self::Holds(HoldKind::ConditionalBlocks) => "conditional-blocks",
            Self::Holds(HoldKind::WaitsFor) => "waits-for",
            Self::ParentChild => "parent-child",
            Self::Informs(word) => word,
        }
    }
}

/// One edge of an issue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The issue that the edge points to.
    pub depends_on: Box<str>,
    /// The type of the dependency.
    pub kind: EdgeKind,
}

/// The part of an issue's row that rules look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The issue's id, never empty.
    pub id: Arc<str>,
    /// The status of the issue.
    pub status: Status,
    /// A lower one runs first.
    pub priority: i64,
    /// Its type, as the row says it.
    pub issue_type: Box<str>,
    /// The assignee; empty if unassigned.
    pub assignee: Box<str>,
    /// Its labels, in the row's order.
    pub labels: Box<[Box<str>]>,
    /// The lease that is in the row.
    pub lease: Option<Box<Lease>>,
    /// The generation of its newest lease; 0 where it never had one.
    pub lease_generation: u64,
    /// When it may be claimed again, RFC 3339 (ours).
    pub retry_at: Option<Box<str>>,
    /// The step that closed it (ours).
    pub closed_by_step: Option<Box<str>>,
    /// The last step that had closed it when it was reopened (ours).
    pub reopened_from: Option<Box<str>>,
    /// The dependencies of the issue.
    pub dependencies: Arc<[Dependency]>,
}

/// A row of the issue store. One with the same id further down takes its place;
/// every field that is not described here is kept, value for value.
#[derive(Deserialize, JsonSchema)]
struct Wire<'a> {
    /// The issue's id.
    #[serde(borrow)]
    #[schemars(regex(pattern = r"\S"))]
    id: Cow<'a, str>,
    /// The status: `open`, which is also what a missing one reads as,
    /// `in_progress`, `blocked`, `closed`, `tombstone`, or a word of another
    /// tracker, which is never ready.
    #[serde(default, borrow)]
    status: Option<Text<'a>>,
    /// Smaller is sooner; a missing one reads as 2.
    #[serde(default, deserialize_with = "whole_number")]
    priority: Option<i64>,
    /// Its type, any word; a missing one reads as `task`.
    #[serde(default)]
    issue_type: Option<Box<str>>,
    /// Who it is assigned to.
    #[serde(default)]
    assignee: Option<Box<str>>,
    /// The labels of the issue.
    #[serde(default)]
    labels: Option<Vec<Option<Box<str>>>>,
    /// Who works on it, and until when.
    #[serde(default)]
    lease: Option<Box<Lease>>,
    /// The generation of its newest lease, which never goes down (ours).
    #[serde(default)]
    lease_generation: Option<u64>,
    /// When it may be claimed again (ours).
    #[serde(default)]
    #[schemars(schema_with = "crate::json::schema::time_or_null")]
    retry_at: Option<Box<str>>,
    /// The step that closed it (ours).
    #[serde(default)]
    closed_by_step: Option<Box<str>>,
    /// The last step that had closed it when it was reopened (ours).
    #[serde(default)]
    reopened_from: Option<Box<str>>,
    /// What it waits for, and what else it is linked to.
    #[serde(default)]
    #[serde(borrow)]
    dependencies: Option<Vec<WireDependency<'a>>>,
}

/// An edge from an issue to another.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Dependency", transform = schema::add_edge_texts)]
struct WireDependency<'a> {
    /// The issue that the edge points to.
    depends_on_id: Box<str>,
    /// What the edge does. `blocks`, which is also what a missing one reads
    /// as, `conditional-blocks` and `waits-for` hold the issue until the other
    /// is over, `parent-child` points from a child to its parent, any other
    /// word holds nothing.
    #[serde(rename = "type", default, borrow)]
    kind: Option<Text<'a>>,
    /// Another spelling of `type`, read where that is missing.
    #[serde(default, borrow)]
    dep_type: Option<Text<'a>>,
}

/// A text that is not copied where it is in the row as it is; serde's own
/// copies always behind an `Option`.
#[derive(JsonSchema)]
#[schemars(inline, with = "String", description = "")]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Reads a whole number, also one that was written as a float.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let float = number
        .as_f64()
        .filter(|f| f.fract() == 0.0 && f.abs() < 1e15);
    match (number.as_i64(), float) {
        (Some(whole), _) => Ok(Some(whole)),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and small, as just checked"
        )]
        (None, Some(float)) => Ok(Some(float as i64)),
        (None, None) => Err(serde::de::Error::custom(
            "`priority` must be a whole number",
        )),
    }
}

impl Issue {
    /// Returns whether a step closed the issue, also where it was reopened since.
    pub fn was_closed_by(&self, step_id: &str) -> bool {
        let steps = [&self.closed_by_step, &self.reopened_from];
        steps
            .into_iter()
            .any(|step| step.as_deref() == Some(step_id))
    }

    /// Returns the step that had closed the issue when it was last reopened, with the
    /// generation of its lease. `None` also where no step of this issue can be meant: the
    /// row may be another program's.
    pub fn reopened(&self) -> Option<(StepId, u64)> {
        let step_id = StepId::from(self.reopened_from.as_deref()?);
        let generation = step_id.generation();
        let is_own = step_id.ends_with(&format!(".{}.{generation}", self.id));
        // A lease of another program has no generation.
        let is_past = match self.lease.as_ref().map(|lease| lease.generation) {
            None | Some(0) => generation <= self.lease_generation,
            Some(now) => generation < now,
        };
        (is_own && is_past).then_some((step_id, generation))
    }
}

impl<'de> Deserialize<'de> for Issue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        if wire.id.trim().is_empty() {
            return Err(serde::de::Error::custom("`id` must not be empty"));
        }
        let lease_generation = wire
            .lease_generation
            .unwrap_or(0)
            .max(wire.lease.as_ref().map_or(0, |lease| lease.generation));
        Ok(Self {
            id: wire.id.into(),
            status: Status::parse(wire.status.as_ref().map_or("", |text| &text.0)),
            priority: wire.priority.unwrap_or(DEFAULT_PRIORITY),
            issue_type: wire
                .issue_type
                .filter(|t| !t.is_empty())
                .unwrap_or_else(|| DEFAULT_TYPE.into()),
            assignee: wire.assignee.unwrap_or_default(),
            labels: wire.labels.into_iter().flatten().flatten().collect(),
            lease: wire.lease,
            lease_generation,
            retry_at: wire.retry_at,
            closed_by_step: wire.closed_by_step,
            reopened_from: wire.reopened_from,
            dependencies: wire
                .dependencies
                .unwrap_or_default()
                .into_iter()
                .map(|dependency| Dependency {
                    depends_on: dependency.depends_on_id,
                    kind: EdgeKind::parse(
                        dependency
                            .kind
                            .or(dependency.dep_type)
                            .as_ref()
                            .map_or("", |text| &text.0),
                    ),
                })
                .collect(),
        })
    }
}

/// The priority of a row that names none.
pub const DEFAULT_PRIORITY: i64 = 2;
/// The type of a row that names none.
pub const DEFAULT_TYPE: &str = "task";

/// Types that a loop skips by default (`contracts.md` 9).
pub(crate) const TYPES_NOT_WORKED_ON: [&str; 9] = [
    "epic",
    "gate",
    "agent",
    "rig",
    "role",
    "molecule",
    "event",
    "message",
    "merge-request",
];

/// What changes in a row: fields to set, and fields to remove.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowChange {
    fields: BTreeMap<&'static str, Option<Value>>,
}

impl RowChange {
    /// Starts an empty change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field.
    pub fn set(&mut self, field: &'static str, value: impl Serialize) -> &mut Self {
        self.fields
            .insert(field, Some(crate::json::canonical::value_of(&value)));
        self
    }

    /// Removes a field.
    pub fn remove(&mut self, field: &'static str) -> &mut Self {
        self.fields.insert(field, None);
        self
    }

    /// Returns the fields in order of name; `None` is one to remove.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Option<&Value>)> {
        self.fields
            .iter()
            .map(|(name, value)| (*name, value.as_ref()))
    }

    /// Sets the status of an issue with what follows from it: any status but
    /// `in_progress` clears the lease, `closed` has a time, others have none
    /// (`contracts.md` 4). An issue that is reopened names the step that had closed it.
    pub fn set_status(
        &mut self,
        issue: &Issue,
        status: &Status,
        now: jiff::Timestamp,
    ) -> &mut Self {
        self.set("status", status.as_str());
        if *status != Status::InProgress {
            self.remove("lease");
        }
        if *status != Status::Blocked {
            self.remove("blocked_by");
        }
        if *status == Status::Closed {
            self.set("closed_at", crate::json::time::micros(now));
        } else if !status.is_terminal() {
            if let Some(step_id) = &issue.closed_by_step {
                self.set("reopened_from", step_id);
            }
            self.remove("closed_at")
                .remove("closed_by_step")
                .remove("closed_under");
        }
        self.touch(now)
    }

    /// Sets the time of change.
    pub fn touch(&mut self, now: jiff::Timestamp) -> &mut Self {
        self.set("updated_at", crate::json::time::micros(now))
    }
}

/// Which issues a loop works on (`contracts.md` 9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Types to work on.
    pub types: TypeSelection,
    /// Labels of which an issue must have at least one; empty for no such rule.
    pub labels: Vec<String>,
    /// What the instruction covers.
    pub scope: IssueScope,
}

/// Which issues an instruction covers: those that every list which is given
/// names. A list that is not given restricts nothing (`contracts.md` 8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueScope {
    /// Ids.
    pub issues: Option<BTreeSet<String>>,
    /// Labels, of which an issue must have at least one.
    pub labels: Option<BTreeSet<String>>,
    /// Types.
    pub types: Option<BTreeSet<String>>,
}

impl IssueScope {
    /// Returns whether an issue is covered.
    pub fn admits(&self, issue: &Issue) -> bool {
        let names = |list: &Option<BTreeSet<String>>, word: &str| {
            list.as_ref().is_none_or(|list| list.contains(word))
        };
        names(&self.issues, &issue.id)
            && names(&self.types, &issue.issue_type)
            && self.labels.as_ref().is_none_or(|labels| {
                let mut of_issue = issue.labels.iter();
                of_issue.any(|label| labels.contains(&**label))
            })
    }
}

/// Which types a loop works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSelection {
    /// All but `epic`, `gate`, `agent` and other types that no lane works on.
    Default,
    /// All types.
    All,
    /// These.
    Only(Vec<String>),
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            types: TypeSelection::Default,
            labels: Vec::new(),
            scope: IssueScope::default(),
        }
    }
}

impl Selection {
    /// A selection that leaves nothing out.
    pub fn everything() -> Self {
        Self {
            types: TypeSelection::All,
            labels: Vec::new(),
            scope: IssueScope::default(),
        }
    }

    /// Returns whether the issue is among those to work on.
    pub fn admits(&self, issue: &Issue) -> bool {
        let by_type = match &self.types {
            TypeSelection::All => true,
            TypeSelection::Default => !TYPES_NOT_WORKED_ON.contains(&&*issue.issue_type),
            TypeSelection::Only(types) => types.iter().any(|t| **t == *issue.issue_type),
        };
        by_type
            && self.scope.admits(issue)
            && (self.labels.is_empty()
                || issue
                    .labels
                    .iter()
                    .any(|label| self.labels.iter().any(|l| **l == **label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_row_gets_the_defaults() {
        let issue: Issue = serde_json::from_str(r#"{"id":"a","title":"t"}"#).unwrap();
        assert_eq!(issue.status, Status::Open);
        assert_eq!(issue.priority, 2);
        assert_eq!(&*issue.issue_type, "task");
        assert_eq!(issue.lease_generation, 0);
    }

    #[test]
    fn a_step_that_closed_it_before_it_was_reopened_is_one_of_its_own_past() {
        let reopened = |step: &str, rest: &str| {
            let row =
                format!(r#"{{"id":"a.b","reopened_from":"{step}","lease_generation":3{rest}}}"#);
            let issue: Issue = serde_json::from_str(&row).unwrap();
            assert!(issue.was_closed_by(step) && !issue.was_closed_by("w.a.b.9"));
            issue.reopened().map(|(_, generation)| generation)
        };
        assert_eq!(reopened("worker.1.a.b.3", ""), Some(3));
        // Of another issue, of a generation to come, without one, of the lease in force.
        for step in [
            "worker.1.c.3",
            "worker.1.a.b.4",
            "worker.1.a.b",
            "worker.1.a.b.03",
        ] {
            assert_eq!(reopened(step, ""), None, "{step}");
        }
        let leased = r#","lease":{"lease_id":"l","owner":"w","generation":3}"#;
        assert_eq!(reopened("w.a.b.3", leased), None);
        assert_eq!(reopened("w.a.b.2", leased), Some(2));
    }

    #[test]
    fn null_reads_as_absent_and_dep_type_is_an_alias() {
        let issue: Issue = serde_json::from_str(
            r#"{"id":"a","assignee":null,"labels":null,"lease":null,
                "dependencies":[{"issue_id":"a","depends_on_id":"b","dep_type":"waits-for"},
                                {"depends_on_id":"c","type":null,"dep_type":null},
                                {"depends_on_id":"x","type":"related","dep_type":"blocks"},
                                {"depends_on_id":"d","type":"novel"}]}"#,
        )
        .unwrap();
        let kinds: Vec<_> = issue.dependencies.iter().map(|d| d.kind.as_str()).collect();
        assert_eq!(kinds, ["waits-for", "blocks", "related", "novel"]);
    }

    #[test]
    fn a_whole_float_is_a_priority_and_a_null_label_is_none() {
        let issue: Issue =
            serde_json::from_str(r#"{"id":"a","priority":1.0,"labels":["x",null]}"#).unwrap();
        assert_eq!((issue.priority, issue.labels.len()), (1, 1));
        assert!(serde_json::from_str::<Issue>(r#"{"id":"a","priority":1.5}"#).is_err());
    }

    #[test]
    fn an_empty_id_is_not_an_issue() {
        assert!(serde_json::from_str::<Issue>(r#"{"id":" "}"#).is_err());
        assert!(serde_json::from_str::<Issue>(r#"{"title":"t"}"#).is_err());
    }

    #[test]
    fn the_generation_is_the_higher_of_row_and_lease() {
        let issue: Issue = serde_json::from_str(
            r#"{"id":"a","lease_generation":2,"lease":{"lease_id":"l","owner":"o",
                "acquired_at":"x","expires_at":"y","generation":5}}"#,
        )
        .unwrap();
        assert_eq!(issue.lease_generation, 5);
    }

    #[test]
    fn selection_leaves_out_what_is_not_work() {
        let epic: Issue = serde_json::from_str(r#"{"id":"a","issue_type":"epic"}"#).unwrap();
        assert!(!Selection::default().admits(&epic));
        assert!(Selection::everything().admits(&epic));
    }
}
