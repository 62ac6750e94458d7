//! One row of the trajectory.

use super::agent::AgentRecord;
use super::batch::BatchRecord;
use super::control::ControlRecord;
use super::crossing::WorldRecord;
use super::link::{CHAIN_FIELD, ChainHead};
use super::supervision::SupervisionRecord;
use super::{is_retry_needed, is_success};
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::id::{BatchId, IssueId, StepId, WorkerName, is_commit};
use crate::json::read::{Text, of_shape, or_default, text, unless_blank};
use crate::json::reference::RefSet;
use crate::json::stamp::Stamp;
use crate::policy::governing::{SensitiveChange, SensitiveChanges};
use crate::policy::landing::LandingRecord;
use crate::policy::retry::{Decision, EscalationAction, RetryOutcome, RetryVerdict};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The classes of a step that a person or the death of the harness cut short.
pub(super) const CUTS: [FailureClass; 2] =
    [FailureClass::HarnessDied, FailureClass::StepInterrupted];

/// The kind of a trajectory row.
pub(crate) const STEP_KIND: &str = "premath.harness.step.v1";

/// What the step's verification said (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How it ended, as in `passed` or `check_failed`.
    #[serde(deserialize_with = "text")]
    pub class: String,
    /// The reference to its witness.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub witness_ref: Option<String>,
}

/// The verification of other work that a step rests on, as its row says (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedVerification {
    /// The tree that passed; it contains the work.
    pub tree: String,
    /// The witness of the verification.
    pub witness_ref: String,
}

/// What the retry policy decided over the step (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryRecord {
    /// Retry or escalate.
    pub decision: RetryVerdict,
    /// The escalation's action; absent for a retry.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub action: Option<EscalationAction>,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How many attempts the rule gives.
    pub max_attempts: u32,
    /// The rule's backoff class.
    #[serde(deserialize_with = "text")]
    pub backoff_class: String,
    /// The rule that decided.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub rule_id: Option<String>,
    /// The class that decided.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub failure_class: Option<String>,
}

impl From<&Decision> for RetryRecord {
    fn from(decision: &Decision) -> Self {
        let (verdict, action) = match decision.outcome {
            RetryOutcome::Retry => (RetryVerdict::Retry, None),
            RetryOutcome::Escalate(action) => (RetryVerdict::Escalate, Some(action)),
        };
        Self {
            decision: verdict,
            action,
            attempt: decision.attempt,
            max_attempts: decision.max_attempts,
            backoff_class: decision.backoff_class.clone(),
            rule_id: Some(decision.rule_id.clone()),
            failure_class: Some(decision.class.clone()),
        }
    }
}

impl RetryRecord {
    /// Returns the decision that the record is of; `None` where it does not
    /// say the rule, the class or the action.
    pub(crate) fn decision_again(&self) -> Option<Decision> {
        Some(Decision {
            rule_id: self.rule_id.clone()?,
            class: self.failure_class.clone()?,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            backoff_class: self.backoff_class.clone(),
            outcome: match self.decision {
                RetryVerdict::Retry => RetryOutcome::Retry,
                RetryVerdict::Escalate => RetryOutcome::Escalate(self.action?),
            },
        })
    }
}

/// Describes the field that is added when a row is appended.
fn with_chain(schema: &mut schemars::Schema) {
    let chain = serde_json::json!({
        "description": "The end of the hash chain with this row (ours).",
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
    });
    let properties = schema.get_mut("properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        properties.insert("chain".to_owned(), chain);
    }
}

/// A row of the trajectory, `premath.harness.step.v1`.
///
/// Fields that this build does not know are kept, value for value. So is a
/// field of our own extras that does not have our shape, because another
/// program may have used the name: it reads as absent and is never an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with_chain)]
pub struct StepRow {
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, schema_with = "crate::json::schema::one")]
    pub(super) schema: u8,
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, extend("const" = STEP_KIND))]
    pub(super) step_kind: &'static str,
    /// The step's id; a row is appended only where no row has it.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub step_id: StepId,
    /// What the row refers to; see [`action`](super::action).
    #[serde(deserialize_with = "text")]
    #[schemars(
        regex(pattern = r"\S"),
        description = "What the row refers to, as in `worker.loop` or `coordinator.batch_start`."
    )]
    pub action: String,
    /// The result class of the step.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub result_class: String,
    /// The issue that it worked on.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub issue_id: Option<IssueId>,
    /// Instructions that it acted under.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub instruction_refs: RefSet,
    /// Witnesses of the step.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub witness_refs: RefSet,
    /// The site lineage of the step.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub lineage_refs: RefSet,
    /// When it began; our rows always say.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<Stamp>,
    /// The time at which the step ended.
    pub finished_at: Stamp,
    /// Its failure classes, in their order (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    #[schemars(!skip_deserializing)]
    pub failure_classes: Vec<String>,
    /// What its verification said (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub verification: Option<Verification>,
    /// The verification of other work that this one's rests on: its own tree was
    /// not verified by itself (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub shared_verification: Option<SharedVerification>,
    /// The witnesses of verifications that failed, and passed when they were
    /// repeated on the same tree (ours).
    #[serde(skip_deserializing, skip_serializing_if = "RefSet::is_empty")]
    #[schemars(!skip_deserializing)]
    pub flaky_refs: RefSet,
    /// For how many milliseconds it waited for the work of others to land, or was
    /// verified on work that did not land (ours). Its issue's `issue_time` leaves
    /// this out.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub waited_ms: Option<u64>,
    /// The next step (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub next_step: Option<String>,
    /// The lease's generation (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub generation: Option<u64>,
    /// The worker (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub worker_id: Option<WorkerName>,
    /// The batch (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub batch_id: Option<BatchId>,
    /// Whether another process wrote the row, after the step's harness died
    /// (ours).
    #[serde(skip_deserializing, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(!skip_deserializing)]
    pub recovered: bool,
    /// What a batch is bound to and who runs it (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub batch: Option<BatchRecord>,
    /// What the retry policy decided (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub retry: Option<RetryRecord>,
    /// Where the step's work landed (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub landing: Option<LandingRecord>,
    /// The sensitive files that a closed step changed, the first by path (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    #[schemars(!skip_deserializing)]
    pub sensitive_changes: Vec<SensitiveChange>,
    /// How many there are, where not all are listed (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub sensitive_count: Option<u64>,
    /// The other world that the step worked in (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub world: Option<WorldRecord>,
    /// Where what the step left is kept: branches, and a folder for what git
    /// cannot hold (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub salvage: Option<String>,
    /// Which agent worked, and what it used (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub agent: Option<AgentRecord>,
    /// What the batch's supervision did (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub supervision: Option<SupervisionRecord>,
    /// What an operator asked of the batch while it ran (ours).
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schemars(!skip_deserializing)]
    pub control: Option<ControlRecord>,
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub(super) extra: Map<String, Value>,
}

/// A row that cannot be read or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrajectoryError {
    /// It does not have the shape of a row; the source names the field.
    #[error("not a trajectory row")]
    Shape(#[source] FieldError),
    /// The line is not JSON.
    #[error("not a trajectory row: invalid JSON at column {column}: {message}")]
    NotJson {
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A row needs a step id, an action and a result class.
    #[error("cannot write a trajectory row: its {field} is blank")]
    Blank {
        /// The field.
        field: &'static str,
    },
}

impl From<FieldError> for TrajectoryError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Syntax {
                column, message, ..
            } => Self::NotJson { column, message },
            error => Self::Shape(error),
        }
    }
}

impl TrajectoryError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) | Self::NotJson { .. } => FailureClass::TrajectoryCorrupt,
            Self::Blank { .. } => FailureClass::ProjectionInvalid,
        }
    }
}

impl StepRow {
    /// Returns a row with what every row must have; the rest is filled in.
    pub fn new(
        step_id: impl Into<StepId>,
        action: impl Into<String>,
        result_class: impl Into<String>,
        finished_at: Timestamp,
    ) -> Self {
        Self {
            schema: 1,
            step_kind: STEP_KIND,
            step_id: step_id.into(),
            action: action.into(),
            result_class: result_class.into(),
            issue_id: None,
            instruction_refs: RefSet::new(),
            witness_refs: RefSet::new(),
            lineage_refs: RefSet::new(),
            started_at: None,
            finished_at: Stamp::at(finished_at),
            failure_classes: Vec::new(),
            verification: None,
            shared_verification: None,
            flaky_refs: RefSet::new(),
            waited_ms: None,
            next_step: None,
            generation: None,
            worker_id: None,
            batch_id: None,
            recovered: false,
            batch: None,
            retry: None,
            landing: None,
            sensitive_changes: Vec::new(),
            sensitive_count: None,
            world: None,
            salvage: None,
            agent: None,
            supervision: None,
            control: None,
            extra: Map::new(),
        }
    }

    /// Reads one line of the trajectory.
    ///
    /// # Errors
    ///
    /// The first field that HARNESS-RUNTIME 6 names and that does not fit.
    pub fn parse(line: &[u8]) -> Result<Self, TrajectoryError> {
        let document = Document::parse(line)?.of_kind("stepKind", STEP_KIND)?;
        let (row, unknown) = document.read::<Self>()?;
        let mut rest = unknown.take("");
        // The chain belongs to the file's line, not to what the row says.
        let chain = rest.get(CHAIN_FIELD).and_then(Value::as_str);
        if chain.is_some_and(|text| text.parse::<ChainHead>().is_ok()) {
            rest.remove(CHAIN_FIELD);
        }
        let mut text = |name| ours(&mut rest, name).map(|text: Text| text.0);
        let next_step = text("nextStep");
        let worker_id = text("workerId").map(WorkerName::from);
        let batch_id = text("batchId").map(BatchId::from);
        let classes: Vec<Text> = ours(&mut rest, "failureClasses").unwrap_or_default();
        Ok(Self {
            schema: 1,
            step_kind: STEP_KIND,
            failure_classes: classes.into_iter().map(|class| class.0).collect(),
            verification: ours(&mut rest, "verification"),
            shared_verification: ours(&mut rest, "sharedVerification"),
            flaky_refs: ours(&mut rest, "flakyRefs").unwrap_or_default(),
            waited_ms: ours(&mut rest, "waitedMs"),
            next_step,
            generation: ours(&mut rest, "generation"),
            worker_id,
            batch_id,
            recovered: ours(&mut rest, "recovered").unwrap_or_default(),
            batch: ours(&mut rest, "batch"),
            retry: ours(&mut rest, "retry"),
            landing: ours(&mut rest, "landing"),
            sensitive_changes: sensitive_changes(&mut rest).unwrap_or_default(),
            sensitive_count: ours(&mut rest, "sensitiveCount"),
            world: ours(&mut rest, "world"),
            salvage: ours(&mut rest, "salvage"),
            agent: ours(&mut rest, "agent"),
            supervision: ours(&mut rest, "supervision"),
            control: ours(&mut rest, "control"),
            extra: rest,
            ..row
        })
    }

    /// Returns the row as a line, canonical and without its line feed.
    ///
    /// # Errors
    ///
    /// A blank step id, action or result class.
    pub fn line(&self) -> Result<String, TrajectoryError> {
        for (field, text) in [
            ("stepId", self.step_id.as_str()),
            ("action", &self.action),
            ("resultClass", &self.result_class),
        ] {
            if text.trim().is_empty() {
                return Err(TrajectoryError::Blank { field });
            }
        }
        Ok(canonical::canonical(self))
    }

    /// Takes in the sensitive files that the step changed.
    pub fn note_sensitive(&mut self, found: &SensitiveChanges) {
        self.sensitive_changes.clone_from(&found.changes);
        let is_cut = found.count > found.changes.len() as u64;
        self.sensitive_count = is_cut.then_some(found.count);
    }

    /// Returns whether the result class counts as success.
    pub fn succeeded(&self) -> bool {
        is_success(&self.result_class)
    }

    /// Returns the commit that holds the work of a step that succeeded: none where the
    /// witness of its close says that nothing changed. Where that is gone, and where both
    /// name one, the row counts: it is chained, and the witness is a file.
    pub fn commit(&self, close: Option<&Value>) -> Option<String> {
        if !self.succeeded() {
            return None;
        }
        let in_row = || Some(self.landing.as_ref()?.commit.clone());
        match close {
            Some(close) => {
                let commit = close["commit"].as_str().filter(|id| is_commit(id))?;
                in_row().or_else(|| Some(commit.to_owned()))
            }
            None => in_row(),
        }
    }

    /// Returns whether the result class asks for a retry.
    pub(crate) fn needs_retry(&self) -> bool {
        is_retry_needed(&self.result_class)
    }

    /// Returns whether the row names a failure class.
    pub(crate) fn has_class(&self, class: FailureClass) -> bool {
        self.failure_classes.iter().any(|c| c == class.as_str())
    }

    /// Returns whether the step's provider refused more work: that uses up no
    /// attempt, and the policy is not asked.
    pub fn is_limited(&self) -> bool {
        self.has_class(FailureClass::UsageLimit) && self.retry.is_none()
    }
}

impl StepRow {
    /// Returns whether the row is of a step that used up an attempt, or closed its
    /// issue: one that a limit, a person or the death of the harness cut short is
    /// none.
    pub fn is_attempt(&self) -> bool {
        self.action == super::action::WORKER_LOOP && (self.succeeded() || !self.is_cut())
    }

    /// Returns whether a limit, a person or the death of the harness cut the step short.
    pub(super) fn is_cut(&self) -> bool {
        CUTS.iter().any(|class| self.has_class(*class)) || self.is_limited()
    }
}

/// Takes the sensitive changes; an empty list stays with the unknown fields.
fn sensitive_changes(fields: &mut Map<String, Value>) -> Option<Vec<SensitiveChange>> {
    const NAME: &str = "sensitiveChanges";
    let changes: Vec<SensitiveChange> = Deserialize::deserialize(fields.get(NAME)?).ok()?;
    let changes = Some(changes).filter(|changes| !changes.is_empty())?;
    fields.remove(NAME);
    Some(changes)
}

/// Takes a field of ours; one of another shape stays with the unknown fields.
fn ours<T: DeserializeOwned>(fields: &mut Map<String, Value>, name: &str) -> Option<T> {
    let found = of_shape(fields.get(name)?)?;
    fields.remove(name);
    Some(found)
}

#[cfg(test)]
mod tests;
