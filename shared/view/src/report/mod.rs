//! What a batch, or several of them, did: the model behind `premath report`, made
//! from the run log, the witnesses, the issue store and git, and its renderers.
//!
//! Invariant: the model has no time of its own, so that the same files give the
//! same bytes.

mod attempt;
mod build;
mod cluster;
pub(crate) mod history;
pub(crate) mod html;
mod log;
mod markdown;
mod next;
pub(crate) mod page;
mod risk;
mod text;
mod timeline;
mod usage;

#[cfg(test)]
mod tests;

pub use attempt::{AttemptOutcome, AttemptView, ChangeSize, StepFacts};
pub use build::{IssueFacts, ReportInput};
pub use history::{PastAttempt, PastTotals, history_lines};
pub use html::html;
pub use log::{LogIndex, ReportScope, ReviewedRow, WhichBatches, listed_steps, step_ref};
pub use markdown::markdown;
pub use risk::RiskReason;
pub use text::lines;
pub use usage::UsageView;

use jiff::tz::TimeZone;
use premath_kernel::json::id::{BatchId, IssueId, StepId, WorkerName};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::governing::SensitiveChange;
use premath_kernel::record::trajectory::{CloseCounts, action};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The most attempts at an issue that a report lists, and whose files it reads.
const STEPS_LISTED: usize = 50;

/// Where a person reads a report.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The zone of the machine.
    pub zone: TimeZone,
    /// How many columns a line has; of text alone.
    pub width: usize,
}

/// What one or more batches did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportView {
    /// The run log that the rows are lines of.
    pub run_log: String,
    /// The issue that the report is about; null for all.
    pub issue_id: Option<IssueId>,
    /// The batches, in the order in which they began.
    pub batches: Vec<ReportedBatch>,
    /// How many later batches found nothing to do.
    pub later_empty_batches: u64,
    /// The other later batches without an attempt: refused, ended early, or not ended.
    pub later_batches: Vec<ReportedBatch>,
    /// What the last verification without build state of the batches found, where it
    /// failed; null otherwise.
    pub failed_tip: Option<String>,
    /// The lines of the run log that cannot be read, and are left out.
    pub unreadable_rows: Vec<u64>,
    /// The counts.
    pub totals: Totals,
    /// The issues whose last attempt did not close them, by id.
    pub failed: Vec<ReportedIssue>,
    /// Failed attempts with the same class and the same first line, the most frequent
    /// first.
    pub clusters: Vec<FailureCluster>,
    /// What to review, in this order.
    pub review: Vec<ReviewItem>,
    /// The issues that were closed, by id.
    pub closed: Vec<ReportedIssue>,
    /// What each agent did and used, by name and model.
    pub agents: Vec<ReportedAgent>,
    /// What each lane did, by name.
    pub lanes: Vec<ReportedLane>,
    /// The calls of agents that were denied, by the rule or the limit.
    pub denials: Vec<ReportedDenial>,
    /// Where work that did not land is kept, in the order of the run log.
    pub salvage: Vec<ReportedSalvage>,
    /// What else happened, in the order of the run log.
    pub events: Vec<ReportedEvent>,
    /// What to do next.
    pub next: Vec<NextCommand>,
}

impl ReportView {
    /// Returns the lanes that were disabled or could not be created, in the order of
    /// the run log.
    pub fn lost_lanes(&self) -> impl Iterator<Item = &ReportedEvent> {
        let events = self.events.iter();
        events.filter(|event| event.action == action::LANE_GIVEN_UP)
    }
}

/// A batch of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedBatch {
    /// The batch.
    pub batch_id: BatchId,
    /// When it began.
    pub started_at: Stamp,
    /// When it ended; null where it did not.
    pub ended_at: Option<Stamp>,
    /// From begin to end, in milliseconds; to its last row where it did not end.
    pub duration_ms: u64,
    /// Its result; null where it did not end.
    pub result: Option<String>,
    /// How often it was taken up again.
    pub resumptions: u32,
    /// What a person must know of its end beside its issues and lanes; null where there
    /// is nothing.
    pub notes: Option<String>,
    /// The classes of that.
    pub failure_classes: Vec<String>,
    /// The lanes that were disabled in it, with the reasons.
    pub lost_lanes: Vec<String>,
    /// How many attempts ended in it.
    pub steps: u64,
    /// Its first line of the run log.
    pub first_row: u64,
    /// Its last line of the run log.
    pub last_row: u64,
}

/// The counts of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Issues that were worked on.
    pub issues: u64,
    /// Issues that were closed.
    pub closed: u64,
    /// Issues whose last attempt did not close them.
    pub failed: u64,
    /// Those, by how their last attempt ended.
    pub failed_by_outcome: BTreeMap<String, u64>,
    /// Those, by the first class of their last attempt.
    pub failed_by_class: BTreeMap<String, u64>,
    /// Attempts that count.
    pub attempts: u64,
    /// Attempts that a person, a limit or the death of the harness cut short.
    pub cut_attempts: u64,
    /// Issues with more than one attempt that counts.
    pub retried: u64,
    /// How often issues closed, by what it took.
    pub closes: CloseCounts,
    /// Issues whose agents repaired their work.
    pub repaired: u64,
    /// How often agents were run again in their session.
    pub repair_rounds: u64,
    /// Issues whose work landed.
    pub landed: u64,
    /// Issues that were closed with nothing changed.
    pub unchanged: u64,
    /// Places where work that did not land is kept.
    pub salvaged: u64,
    /// Issues with a verification that failed and passed on the same tree.
    pub flaky: u64,
    /// Calls of agents that were denied.
    pub denials: u64,
    /// The time of all attempts, in milliseconds.
    pub duration_ms: u64,
    /// What all attempts used.
    pub usage: UsageView,
}

/// An issue of a report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedIssue {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title; null where the issue store does not have it.
    pub title: Option<String>,
    /// Its status now; null where the issue store does not have it.
    pub status: Option<String>,
    /// How its last attempt ended.
    pub outcome: AttemptOutcome,
    /// The first class of its last attempt; null where that did not fail.
    pub failure_class: Option<String>,
    /// What failed in it, in a line; null where it did not fail.
    pub said: Option<String>,
    /// Its attempts in the batches of the report that count.
    pub attempts: u64,
    /// Its attempts in all batches that count.
    pub attempts_in_all: u64,
    /// The time of its attempts in the report, in milliseconds.
    pub duration_ms: u64,
    /// What they used.
    pub usage: UsageView,
    /// The agents that worked on it, sorted.
    pub agents: Vec<String>,
    /// How often they were run again in their session.
    pub repair_rounds: u64,
    /// How many of their calls were denied.
    pub denials: u64,
    /// How large the change is; null where that is not known, or where there is none.
    pub change: Option<ChangeSize>,
    /// The commit that holds the work; null where there is none.
    pub commit: Option<String>,
    /// The branch that it landed on; null where it did not land.
    pub landed_on: Option<String>,
    /// The salvage branches that its attempts left, the last first.
    pub salvage_branches: Vec<String>,
    /// The sensitive files that the last attempt changed, the first by path.
    pub sensitive_changes: Vec<SensitiveChange>,
    /// Its latest attempts in the report, at most 50, in their order; those that were
    /// cut short too.
    pub steps: Vec<AttemptView>,
    /// How many attempts of the report came before those.
    pub earlier_steps: u64,
    /// What to do next about it.
    pub next: Vec<NextCommand>,
}

/// Something to review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewItem {
    /// Its place, from 1.
    pub place: u64,
    /// The issue.
    pub issue_id: IssueId,
    /// Its title; null where the issue store does not have it.
    pub title: Option<String>,
    /// Whether it landed or is a commit of a closed issue; otherwise it was salvaged.
    pub closed: bool,
    /// The sum of the points of the reasons.
    pub score: u64,
    /// Why, the weightiest first.
    pub reasons: Vec<RiskReason>,
    /// How large the change is; null where that is not known.
    pub change: Option<ChangeSize>,
    /// The commit, or the salvage branch.
    pub revision: String,
    /// The step.
    pub step_id: StepId,
    /// The line of the run log that proves it.
    pub row: u64,
    /// The command that shows it.
    pub command: String,
    /// What an operator decided about it; null where none did.
    pub reviewed: Option<ReviewedRow>,
}

/// Failed attempts that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureCluster {
    /// The class.
    pub failure_class: String,
    /// The first reported line, with `ISSUE` for the issue's own id.
    pub line: String,
    /// How many attempts failed so.
    pub attempts: u64,
    /// The issues that they worked on, by id.
    pub issue_ids: Vec<IssueId>,
    /// The lines of the run log that prove it.
    pub rows: Vec<u64>,
}

/// What an agent did and used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedAgent {
    /// The agent; null where none is recorded.
    pub agent: Option<String>,
    /// Its model; null where it is not reported.
    pub model: Option<String>,
    /// Attempts that it worked in, those that were cut short included.
    pub steps: u64,
    /// Issues that it closed.
    pub closed: u64,
    /// How many calls of tools it made.
    pub calls: u64,
    /// How often it was run again in its session.
    pub repair_rounds: u64,
    /// How many of its calls were denied.
    pub denials: u64,
    /// What it used.
    pub usage: UsageView,
}

/// What a lane did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedLane {
    /// The lane's worker.
    pub worker_id: WorkerName,
    /// Attempts that ended in it.
    pub steps: u64,
    /// Issues that it closed.
    pub closed: u64,
    /// The time of its attempts, in milliseconds.
    pub busy_ms: u64,
}

/// Calls that were denied by one rule or limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedDenial {
    /// The rule or the limit.
    pub rule_id: String,
    /// How many calls.
    pub calls: u64,
    /// The issues in whose attempts they were, by id.
    pub issue_ids: Vec<IssueId>,
    /// The lines of the run log that prove it.
    pub rows: Vec<u64>,
}

/// Where work that did not land is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedSalvage {
    /// The issue; null where it was found in a lane.
    pub issue_id: Option<IssueId>,
    /// The branches, and the folder for what git cannot hold.
    pub kept_at: String,
    /// The line of the run log that proves it.
    pub row: u64,
    /// The commands that show it, a branch each.
    pub commands: Vec<String>,
}

/// Something that happened beside the attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedEvent {
    /// The line of the run log that proves it.
    pub row: u64,
    /// When it happened.
    pub at: Stamp,
    /// What the row refers to.
    pub action: String,
    /// What happened, in a line.
    pub text: String,
}

/// A command, as it must be typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextCommand {
    /// The command.
    pub command: String,
    /// What it is for.
    pub purpose: String,
}
