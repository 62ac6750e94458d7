//! The witness of a change of an issue other than a close: what issue memory showed when
//! it was read back (`contracts.md` 6).

use crate::issue::{Issue, Status};
use crate::json::id::{IssueId, StepId};
use crate::turn::MutationWitness;
use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a [`ChangeWitness`].
const CHANGE_KIND: &str = "premath.harness.change_witness.v1";

/// The edge of an issue that was filed to the one on whose work it was found.
const DISCOVERED_FROM: &str = "discovered-from";

/// That an issue was blocked or filed, and on what that rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeWitness<'a> {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = CHANGE_KIND))]
    witness_kind: &'static str,
    /// The facts of the change.
    #[serde(flatten)]
    pub facts: ChangeFacts<'a>,
}

/// The facts of a [`ChangeWitness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeFacts<'a> {
    /// The step.
    pub step_id: &'a StepId,
    /// What the right to change it rests on.
    pub mutation: &'a MutationWitness,
    /// The issue that was blocked, or filed.
    pub issue_id: &'a IssueId,
    /// What was read back; null where there is no such issue.
    pub found: Option<FoundChange>,
    /// Whether that is what the step meant to leave.
    pub holds: bool,
}

/// What issue memory showed of the issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundChange {
    /// The status of the issue.
    pub status: String,
    /// Whether it had a lease.
    pub leased: bool,
    /// The issues on whose work it was found, sorted.
    pub discovered_from: Vec<String>,
}

impl FoundChange {
    /// Reads it from an issue.
    pub fn of(issue: &Issue) -> Self {
        let found = issue.dependencies.iter();
        let found = found.filter(|edge| edge.kind.as_str() == DISCOVERED_FROM);
        let mut discovered_from: Vec<String> =
            found.map(|edge| edge.depends_on.to_string()).collect();
        discovered_from.sort_unstable();
        Self {
            status: issue.status.as_str().to_owned(),
            leased: issue.lease.is_some(),
            discovered_from,
        }
    }

    /// Returns whether the issue is blocked, and free.
    pub fn is_blocked(&self) -> bool {
        self.status == Status::Blocked.as_str() && !self.leased
    }

    /// Returns whether it was found on the work on another issue.
    pub fn is_from(&self, parent: &str) -> bool {
        self.discovered_from.iter().any(|found| found == parent)
    }
}

impl<'a> From<ChangeFacts<'a>> for ChangeWitness<'a> {
    fn from(facts: ChangeFacts<'a>) -> Self {
        Self {
            schema: 1,
            witness_kind: CHANGE_KIND,
            facts,
        }
    }
}
