//! The observation of a batch: what the next session begins with
//! (`artifacts/observation/latest.json`, HARNESS-RUNTIME 3.1).

use crate::json::id::{BatchId, IssueId, StepId, WorkerName};
use crate::json::plain::shell_word;
use crate::json::read::text;
use crate::json::reference::RefSet;
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of an observation.
pub const OBSERVATION_KIND: &str = "premath.harness.observation.v1";

/// What a batch left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// The version of the document, 1.
    pub schema: u64,
    /// `premath.harness.observation.v1`.
    #[serde(deserialize_with = "text")]
    pub observation_kind: String,
    /// The batch.
    pub batch_id: BatchId,
    /// When it ended.
    pub ended_at: Stamp,
    /// The exit code of the batch.
    pub exit_code: u8,
    /// The instructions that it acted under; none under an override.
    #[serde(default)]
    pub instruction_refs: RefSet,
    /// All issues of issue memory, by what they are.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// The issues that it worked on, by id.
    #[serde(default)]
    pub issues: Vec<ObservedIssue>,
    /// The open issues that wait for others, by id, with what they wait for.
    #[serde(default)]
    pub waiting: BTreeMap<String, Vec<String>>,
    /// What a person should look at: what concerns the batch first, then issues
    /// by id.
    #[serde(default)]
    pub needs_attention: Vec<Attention>,
}

/// An issue that a batch worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedIssue {
    /// The issue.
    pub issue_id: IssueId,
    /// Its last step in the batch.
    pub step_id: StepId,
    /// The worker of that step.
    pub worker_id: WorkerName,
    /// How many attempts there were in the batch.
    pub attempts: u32,
    /// Whether it is closed.
    pub closed: bool,
    /// The result class of the step's row.
    pub result_class: String,
    /// The failure classes of the step, the cause first.
    #[serde(default)]
    pub failure_classes: Vec<String>,
    /// The commit that holds the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch on which work that did not land is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<String>,
}

/// What a person should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// What it is about.
    pub kind: AttentionKind,
    /// The issue that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<IssueId>,
    /// The failure classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_classes: Vec<String>,
    /// How many there are, of what is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The command that shows more.
    pub next_command: String,
}

/// What attention is called to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// The active issues have a dependency cycle.
    Cycle,
    /// Lanes were given up.
    LanesLost,
    /// Closed work is missing on the target.
    LandingMissing,
    /// The last push failed.
    PushFailed,
    /// The last commit fails its verification without build state.
    TipFails,
    /// A commit that did not pass its check stays on the target.
    BrokenTarget,
    /// No batch works on these issues, because they failed in one after another.
    SetAside,
    /// Rows of issue memory were changed outside of a transaction.
    ForeignRows,
    /// An issue did not close.
    Issue,
}

impl AttentionKind {
    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::LanesLost => "lanes_lost",
            Self::LandingMissing => "landing_missing",
            Self::PushFailed => "push_failed",
            Self::TipFails => "tip_fails",
            Self::BrokenTarget => "broken_target",
            Self::SetAside => "set_aside",
            Self::ForeignRows => "foreign_rows",
            Self::Issue => "issue",
        }
    }

    /// Returns the command that shows more.
    fn next_command(self, batch_id: &BatchId, issue_id: Option<&IssueId>) -> String {
        let command = match (self, issue_id) {
            (Self::Issue, Some(issue_id)) => {
                return format!("premath issue show {}", shell_word(issue_id));
            }
            (Self::Cycle, _) => "premath dep diagnostics",
            (Self::LandingMissing, _) => "premath doctor",
            (Self::ForeignRows, _) => "premath issue accept-changes",
            (
                Self::LanesLost
                | Self::PushFailed
                | Self::TipFails
                | Self::BrokenTarget
                | Self::SetAside
                | Self::Issue,
                _,
            ) => return format!("premath report --batch {}", shell_word(batch_id)),
        };
        command.to_owned()
    }
}

/// How a batch as a whole ended, as far as a person should look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchFaults {
    /// How many issues form a cycle.
    pub cycle: usize,
    /// How many lanes were given up.
    pub lanes_lost: usize,
    /// How many closed issues are missing on the target.
    pub landing_missing: usize,
    /// Whether the last push failed.
    pub push_failed: bool,
    /// How many last commits fail their verification.
    pub tips: usize,
    /// Whether a commit that did not pass its check stays on the target.
    pub broken_target: bool,
    /// How many issues the next batch sets aside.
    pub set_aside: usize,
    /// How many rows were changed outside of a transaction.
    pub foreign_rows: usize,
}

impl Observation {
    /// Returns what a person should look at, of how a batch and its issues
    /// ended.
    pub fn attention(
        batch_id: &BatchId,
        faults: &BatchFaults,
        issues: &[ObservedIssue],
    ) -> Vec<Attention> {
        let counted = [
            (AttentionKind::Cycle, faults.cycle),
            (AttentionKind::LanesLost, faults.lanes_lost),
            (AttentionKind::LandingMissing, faults.landing_missing),
            (AttentionKind::PushFailed, usize::from(faults.push_failed)),
            (AttentionKind::TipFails, faults.tips),
            (
                AttentionKind::BrokenTarget,
                usize::from(faults.broken_target),
            ),
            (AttentionKind::SetAside, faults.set_aside),
            (AttentionKind::ForeignRows, faults.foreign_rows),
        ];
        let counted = counted.into_iter().filter(|(_, count)| *count > 0);
        let counted = counted.map(|(kind, count)| Attention {
            kind,
            issue_id: None,
            failure_classes: Vec::new(),
            count: Some(count as u64),
            next_command: kind.next_command(batch_id, None),
        });
        let open = issues.iter().filter(|issue| !issue.closed);
        let open = open.map(|issue| Attention {
            kind: AttentionKind::Issue,
            issue_id: Some(issue.issue_id.clone()),
            failure_classes: issue.failure_classes.clone(),
            count: None,
            next_command: AttentionKind::Issue.next_command(batch_id, Some(&issue.issue_id)),
        });
        counted.chain(open).collect()
    }

    /// Returns it with the commands of this build, whatever it was read with.
    #[must_use]
    pub fn with_own_commands(mut self) -> Self {
        for one in &mut self.needs_attention {
            one.next_command = one.kind.next_command(&self.batch_id, one.issue_id.as_ref());
        }
        self
    }

    /// Returns what is in the log of observations: the observation without its
    /// lists.
    pub fn event(&self) -> ObservationEvent<'_> {
        ObservationEvent {
            schema: self.schema,
            event: "batch.observed",
            batch_id: &self.batch_id,
            ended_at: &self.ended_at,
            exit_code: self.exit_code,
            instruction_refs: &self.instruction_refs,
            worked_on: self.issues.len(),
            closed: self.issues.iter().filter(|issue| issue.closed).count(),
            needs_attention: self.needs_attention.len(),
        }
    }
}

/// A line of the log of observations.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservationEvent<'a> {
    schema: u64,
    event: &'static str,
    batch_id: &'a BatchId,
    ended_at: &'a Stamp,
    exit_code: u8,
    instruction_refs: &'a RefSet,
    worked_on: usize,
    closed: usize,
    needs_attention: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue(id: &str, closed: bool) -> ObservedIssue {
        ObservedIssue {
            issue_id: id.into(),
            step_id: "w.1".into(),
            worker_id: "w".into(),
            attempts: 1,
            closed,
            result_class: "completed".to_owned(),
            failure_classes: vec!["check_failed".to_owned()],
            commit: None,
            salvage: None,
        }
    }

    #[test]
    fn what_failed_needs_attention_and_the_batch_comes_first() {
        let batch = BatchId::from("hb1_a");
        let faults = BatchFaults {
            lanes_lost: 2,
            push_failed: true,
            set_aside: 3,
            ..BatchFaults::default()
        };
        let found = Observation::attention(&batch, &faults, &[issue("a", true), issue("b", false)]);
        let kinds: Vec<_> = found
            .iter()
            .map(|one| (one.kind.as_str(), one.count))
            .collect();
        assert_eq!(
            kinds,
            [
                ("lanes_lost", Some(2)),
                ("push_failed", Some(1)),
                ("set_aside", Some(3)),
                ("issue", None)
            ]
        );
        assert_eq!(found[0].next_command, "premath report --batch hb1_a");
        assert_eq!(found[3].next_command, "premath issue show b");
        assert_eq!(found[3].failure_classes, ["check_failed"]);
        let none = Observation::attention(&batch, &BatchFaults::default(), &[issue("a", true)]);
        assert_eq!(none, []);
    }
}
