//! What a batch reports to a program while it runs: the lines that
//! `harness-coordinator --json` prints, and the document of `harness-worker
//! --json` (`contracts.md` 9).

mod landing;
mod line;

pub use landing::{LandingCheck, PushFailure, TipCheck};
pub use line::EventLine;

use crate::authority::MutationMode;
use crate::failure::FailureClass;
use crate::json::id::{BatchId, IssueId, LeaseId, StepId, WorkerName};
use crate::json::stamp::Stamp;
use crate::policy::admission::EndedBy;
use crate::policy::governing::SensitiveChange;
use crate::policy::sandbox::{ContainerImage, SandboxMode};
use crate::record::bootstrap::Bootstrap;
use crate::record::control::{ControlOperation, ControlResult};
use crate::record::trajectory::{Account, CloseCounts, ProviderAccount, TokenCounts};
use crate::record::trajectory::{SharedVerification, WorldRecord};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The outcome of a step's issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The issue is closed.
    Closed,
    /// It is tried again; the detail says when, null for at once.
    Retry,
    /// It is set aside until a person looks.
    Blocked,
    /// A follow-up was filed; the detail is its id.
    Discovered,
    /// Nothing was changed, and it is not tried again.
    Stopped,
    /// Another owner has its lease.
    LeaseLost,
    /// The step was cut by a person's wish, or a bound of the batch.
    Interrupted,
    /// An operator cancelled the attempt; no attempt is used up.
    Cancelled,
    /// The provider refused more work; no attempt is used up.
    UsageLimit,
    /// The step did not begin.
    NotBegun,
}

/// The outcome of a step, as both programs report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepOutcome<'a> {
    /// The issue.
    pub issue_id: &'a IssueId,
    /// The step.
    pub step_id: &'a StepId,
    /// The trajectory row's result class.
    pub result_class: &'a str,
    /// Every failure class: the kernel's or the policy's words.
    pub failure_classes: &'a [String],
    /// Which attempt of the issue in this batch it was, from 1.
    pub attempt: u32,
    /// The commit that holds the work, where there is one.
    pub commit: Option<&'a str>,
    /// The branch on which what the step left is kept.
    pub salvage: Option<&'a str>,
    /// The other world that it worked in, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<&'a WorldRecord>,
    /// Issues that were filed.
    pub discovered: &'a [IssueId],
    /// The sensitive files that a closed step changed, the first by path.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub sensitive_changes: &'a [SensitiveChange],
    /// How many of its verifications failed and passed when they were repeated
    /// on the same tree.
    pub flaky_verifications: usize,
    /// How often its agent was run again in its session, after a verification
    /// that failed.
    pub repair_rounds: u64,
    /// The verification of other work that the close rests on: the tree that the
    /// work landed as was not verified by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_verification: Option<&'a SharedVerification>,
    /// From claim to row, in milliseconds.
    pub duration_ms: u64,
}

/// The outcome of a step, as the coordinator reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedStep<'a> {
    /// The lane's worker.
    pub worker_id: &'a WorkerName,
    /// The outcome of the step.
    #[serde(flatten)]
    pub outcome: StepOutcome<'a>,
    /// The issue's title.
    pub title: &'a str,
    /// The lease's generation.
    pub generation: u64,
    /// The outcome of the issue.
    pub ending: Ending,
    /// When, or as what; null where the ending says it all.
    pub ending_detail: Option<String>,
    /// What the command that failed said last.
    pub said: Option<&'a str>,
    /// The file with all that it said.
    pub output: Option<String>,
}

/// An issue's last step in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedIssue<'a> {
    /// The last step.
    #[serde(flatten)]
    pub step: EndedStep<'a>,
    /// How many attempts there were in this batch.
    pub attempts: u32,
}

/// How far a person asked for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndRequest {
    /// No new work; running attempts finish within their grace.
    Drain,
    /// Running steps are killed.
    Kill,
}

/// What a batch's changes rest on, as every report of it tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActsUnder {
    /// `instruction-linked` or `human-override`.
    pub mutation_mode: &'static str,
    /// The person's reason; empty under an instruction.
    pub reason: String,
    /// The last month in which the person's override is good; empty where it
    /// has none.
    pub support_until: String,
    /// The instruction; null under a person's override.
    pub instruction_ref: Option<String>,
    /// What kind of instruction it is, as in `typed(harness.batch)`; null
    /// under a person's override.
    pub instruction_class: Option<String>,
}

impl From<&MutationMode> for ActsUnder {
    fn from(mode: &MutationMode) -> Self {
        Self {
            mutation_mode: mode.name(),
            reason: mode.reason().to_owned(),
            support_until: mode.support_until().to_owned(),
            instruction_ref: mode.instruction_ref().map(str::to_owned),
            instruction_class: match mode {
                MutationMode::InstructionLinked(link) => Some(link.classification().to_string()),
                MutationMode::HumanOverride(_) => None,
            },
        }
    }
}

/// What a line of `harness-coordinator --json` reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum ProgressEvent<'a> {
    /// The batch began or continues.
    #[serde(rename = "batch.started")]
    BatchStarted {
        /// The batch.
        batch_id: &'a BatchId,
        /// Whether it was cut before.
        resumed: bool,
        /// How many lanes it has.
        lanes: usize,
        /// What its changes rest on.
        #[serde(flatten)]
        acts_under: ActsUnder,
        /// The issue store.
        issues_path: String,
        /// What happens to closed work, as in `merge`; null for `none`.
        landing_mode: Option<&'a str>,
        /// The branch that steps begin at; null where they begin where their
        /// lane is.
        landing_target: Option<&'a str>,
        /// When no new work starts any more; null if not set.
        ends_at: Option<Stamp>,
        /// The sandbox mode of the commands.
        sandbox: SandboxMode,
        /// The image of the mode `container`.
        #[serde(skip_serializing_if = "Option::is_none")]
        sandbox_image: Option<&'a ContainerImage>,
    },
    /// The landing target was created, or moved to what the main worktree has
    /// checked out.
    #[serde(rename = "landing.target")]
    LandingTarget {
        /// The branch, without `refs/heads/`.
        target: &'a str,
        /// The commit that it is at now.
        tip: &'a str,
        /// What was done, for a person.
        detail: &'a str,
    },
    /// A lane is ready.
    #[serde(rename = "lane.booted")]
    LaneBooted {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The worktree of the lane.
        worktree: String,
        /// The session before, as it is resumed or attached to.
        handoff: Option<&'a Bootstrap>,
        /// The branch on which a step that was cut is kept.
        salvage: Option<&'a str>,
        /// The issue that a claim would take now.
        next_target: Option<&'a str>,
        /// How many witness files there are.
        witness_count: usize,
        /// Whether `artifacts/observation/latest.json` is there.
        observation: bool,
        /// What a person should know about the worktree.
        warnings: &'a [String],
    },
    /// A lane gets no more work.
    #[serde(rename = "lane.given_up")]
    LaneGivenUp {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The worktree of the lane.
        worktree: String,
        /// The class of the failure.
        failure_class: FailureClass,
        /// The cause, in words.
        detail: &'a str,
        /// What a person can do.
        hint: Option<&'a str>,
    },
    /// A lane got an issue.
    #[serde(rename = "issue.dispatched")]
    IssueDispatched {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The issue.
        issue_id: &'a IssueId,
        /// The lease's id.
        lease_id: &'a LeaseId,
        /// The lease's generation.
        generation: u64,
    },
    /// A step is over.
    #[serde(rename = "step.ended")]
    StepEnded {
        /// The outcome of the step.
        #[serde(flatten)]
        step: EndedStep<'a>,
    },
    /// The work of a closed issue is on the landing target.
    #[serde(rename = "issue.landed")]
    IssueLanded {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The issue.
        issue_id: &'a IssueId,
        /// The commit that holds the work.
        commit: &'a str,
        /// The branch, without `refs/heads/`.
        target: &'a str,
    },
    /// The landing target was pushed, or was not.
    #[serde(rename = "landing.pushed")]
    LandingPushed {
        /// The branch, without `refs/heads/`.
        target: &'a str,
        /// The remote.
        remote: &'a str,
        /// The commit that the remote has now; null where the push failed.
        commit: Option<&'a str>,
        /// Why the push failed; null where it did not.
        failure: Option<&'a str>,
    },
    /// A cycle appeared; its members are held.
    #[serde(rename = "graph.cycle")]
    GraphCycle {
        /// The cycle, the first id again at the end.
        cycle_path: &'a [String],
    },
    /// Nothing runs until an issue may be tried again.
    #[serde(rename = "batch.waiting")]
    BatchWaiting {
        /// The time until which the batch waits.
        until: Stamp,
    },
    /// Nothing runs and nothing is ready; the batch waits for new issues.
    #[serde(rename = "batch.idle")]
    BatchIdle,
    /// The window in which attempts begin closed, or opened.
    #[serde(rename = "batch.window")]
    BatchWindow {
        /// Whether attempts may begin.
        open: bool,
        /// When that changes.
        until: Stamp,
    },
    /// A provider refused more work; no lane works with it for a while.
    #[serde(rename = "provider.parked")]
    ProviderParked {
        /// The provider.
        provider: &'a str,
        /// When one step asks it again.
        until: Stamp,
    },
    /// A provider that was parked answers again.
    #[serde(rename = "provider.resumed")]
    ProviderResumed {
        /// The provider.
        provider: &'a str,
    },
    /// Issues failed alike in a row; dispatch pauses.
    #[serde(rename = "breaker.open")]
    BreakerOpen {
        /// The class that the failures have in common.
        failure_class: &'a str,
        /// The issues that it failed on.
        issue_ids: &'a [IssueId],
        /// When one step finds out whether things are better.
        until: Stamp,
    },
    /// Dispatch continues.
    #[serde(rename = "breaker.closed")]
    BreakerClosed,
    /// One issue after the other failed the verification; a lane found out
    /// whether it passes without any work.
    #[serde(rename = "baseline.checked")]
    BaselineChecked {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// Whether the verification passes.
        passes: bool,
    },
    /// The machine has too little free disk or memory for a dispatch.
    #[serde(rename = "room.short")]
    RoomShort {
        /// `disk` or `memory`.
        of: &'a str,
        /// The bytes that are free.
        free_bytes: u64,
        /// The bytes that must be.
        least_bytes: u64,
    },
    /// The machine has enough again.
    #[serde(rename = "room.enough")]
    RoomEnough,
    /// What a person should know about the batch.
    #[serde(rename = "batch.warning")]
    BatchWarning {
        /// The text of the warning.
        detail: &'a str,
    },
    /// The batch reached a bound of its own: no new work from here on.
    #[serde(rename = "batch.ending")]
    BatchEnding {
        /// The bound that was reached.
        ended_by: EndedBy,
        /// The figures, where there are some.
        detail: &'a str,
    },
    /// A person asked for an end.
    #[serde(rename = "batch.interrupted")]
    BatchInterrupted {
        /// The level of the interrupt.
        level: EndRequest,
    },
    /// An operator asked something of the batch.
    #[serde(rename = "batch.control")]
    BatchControl {
        /// What was asked.
        operation: &'a ControlOperation,
        /// Whether it is done.
        result: ControlResult,
        /// What was done, or why not.
        detail: &'a str,
        /// The user of the process that asked.
        uid: u32,
        /// The process that asked.
        pid: u32,
    },
    /// The issue store was changed by no transaction: by an editor, by git, or by a
    /// command that was not confined.
    #[serde(rename = "memory.changed")]
    MemoryChanged {
        /// Always `memory_changed_outside`.
        failure_class: FailureClass,
        /// What was found, for a person.
        detail: String,
        /// How many issues are there that were not, as far as it could be
        /// determined.
        added: usize,
        /// How many have another row.
        altered: usize,
        /// How many issues are gone.
        removed: usize,
        /// Their ids, the first few.
        issues: &'a [String],
    },
    /// The issue store or the trajectory cannot be used any more.
    #[serde(rename = "store.lost")]
    StoreLost {
        /// The cause, in words.
        detail: &'a str,
    },
    /// The batch is over: its report, and the last line.
    #[serde(rename = "batch.ended")]
    BatchEnded {
        /// The batch.
        batch_id: &'a BatchId,
        /// What its changes rested on.
        #[serde(flatten)]
        acts_under: ActsUnder,
        /// The exit code.
        exit_code: u8,
        /// How long it took from its first start on, in milliseconds.
        elapsed_ms: u64,
        /// The issues that were worked on, by id.
        issues: Vec<EndedIssue<'a>>,
        /// How many lanes had to be disabled.
        lanes_lost: usize,
        /// A cycle among the active issues, where there is one.
        cycle_path: Option<&'a [String]>,
        /// All issues of memory, by what they are.
        counts: &'a BTreeMap<&'static str, usize>,
        /// What landed; null where nothing was to land.
        landing: Option<LandingCheck>,
        /// Why the last push of what landed failed; null where none did.
        push_failure: Option<&'a PushFailure>,
        /// The outcomes of the verifications of last commits without build
        /// state; empty if none was due.
        tip_checks: &'a [TipCheck],
        /// The bound of its own that ended it; null where none did.
        ended_by: Option<EndedBy>,
        /// Its usage of each reported provider, by name.
        providers: Vec<ProviderUse<'a>>,
        /// How often attempts closed their issues, by what it took.
        closes: CloseCounts,
        /// How often dispatch paused for what failed alike.
        breaker_openings: u64,
        /// How often the issue store was found changed by no transaction.
        memory_changes: usize,
        /// The issues whose rows were changed outside a transaction and are not
        /// accepted; an empty text where it is unknown which.
        unaccepted_changes: Vec<&'a str>,
    },
}

/// What a batch had of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderUse<'a> {
    /// The provider.
    pub provider: &'a str,
    /// Steps that its agent worked in.
    pub steps: u64,
    /// What its model counted; null where it is not reported.
    pub tokens: Option<TokenCounts>,
    /// What it cost, in billionths of a dollar; null where it is not reported.
    pub cost_nano_usd: Option<u64>,
    /// How many calls of its agent the turn policy denied, by the rule or the limit.
    pub denials: &'a BTreeMap<String, u64>,
    /// How often it was parked.
    pub parkings: u64,
    /// How long it was parked, in milliseconds.
    pub parked_ms: u64,
}

impl<'a> ProviderUse<'a> {
    /// Reports what a batch had of each provider by now, by name.
    pub fn all(account: &'a Account, now: Timestamp) -> Vec<Self> {
        let of = |(name, account): (&'a String, &'a ProviderAccount)| Self {
            provider: name,
            steps: account.steps,
            tokens: account.tokens,
            cost_nano_usd: account.cost_nano_usd,
            denials: &account.denials,
            parkings: account.parkings,
            parked_ms: u64::try_from(account.parked(now).as_millis()).unwrap_or(u64::MAX),
        };
        account.providers().iter().map(of).collect()
    }
}

/// The action of a [`WorkerReport`].
pub const WORKER_ACTION: &str = "worker.loop";

/// What `harness-worker --json` prints at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerReport<'a> {
    /// Always `worker.loop`.
    #[schemars(extend("const" = WORKER_ACTION))]
    pub action: &'static str,
    /// The worker.
    pub worker_id: &'a WorkerName,
    /// What its changes rested on.
    #[serde(flatten)]
    pub acts_under: ActsUnder,
    /// The issue store.
    pub issues_path: String,
    /// How many steps there were.
    pub count: usize,
    /// The steps, in their order.
    pub items: Vec<StepOutcome<'a>>,
    /// The session before, as it was resumed or attached to.
    pub handoff: Option<&'a Bootstrap>,
    /// The bound of its own that ended it; null where none did.
    pub ended_by: Option<EndedBy>,
    /// Its usage of each reported provider, by name.
    pub providers: Vec<ProviderUse<'a>>,
    /// How often attempts closed their issues, by what it took.
    pub closes: CloseCounts,
    /// How often work paused for what failed alike.
    pub breaker_openings: u64,
    /// The outcome of the verification of the last commit without build state;
    /// empty if none was due.
    pub tip_checks: &'a [TipCheck],
    /// The exit code.
    pub exit_code: u8,
}
