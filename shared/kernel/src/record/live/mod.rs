//! What a batch publishes about itself while it runs: one document, written by its
//! process at most once a second, for `premath status` and others that look.
//!
//! It is a projection and never an authority. A figure that is not known is
//! absent. Moments within a batch are milliseconds on CLOCK_BOOTTIME: a batch is
//! over where its host booted again.

mod estimate;
mod queue;

pub use estimate::{Estimate, estimate};
pub use queue::{Blocker, LiveQueue, QueueScope, StoreStamp};
pub(crate) use queue::{ReadyState, ready_state};

use crate::json::id::{BatchId, IssueId, StepId, WorkerName};
use crate::json::plain::cut_at;
use crate::json::stamp::Stamp;
use crate::policy::budget::{Budget, Spent};
use crate::record::trajectory::{Account, BatchHolder, CloseCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The kind of the document.
pub(crate) const LIVE_KIND: &str = "premath.harness.live.v1";

/// The most bytes of a document that is read.
pub const LIVE_MAX: u64 = 4 << 20;

/// How many ended attempts a document has.
pub(crate) const OUTCOMES_MAX: usize = 20;

/// The longest title or name of a tool in a document, in bytes.
const TEXT_MAX: usize = 160;

/// A batch as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveBatch {
    /// Always `premath.harness.live.v1`.
    pub live_kind: String,
    /// The batch.
    pub batch_id: BatchId,
    /// The process that runs it.
    pub holder: BatchHolder,
    /// When it began.
    pub started_at: Stamp,
    /// The same on CLOCK_BOOTTIME, in milliseconds.
    pub started_ms: u64,
    /// When the document was written.
    pub written_at: Stamp,
    /// The same on CLOCK_BOOTTIME, in milliseconds.
    pub written_ms: u64,
    /// Whether it continues a batch that was cut.
    pub resumed: bool,
    /// How far it is.
    pub phase: BatchPhase,
    /// When it ended; null while it runs.
    pub ended_at: Option<Stamp>,
    /// Its exit code; null while it runs.
    pub exit_code: Option<u8>,
    /// When no new work starts any more; null where that is not set.
    pub ends_at: Option<Stamp>,
    /// What it may use; null where it has no bound.
    pub budget: LiveAmounts,
    /// Its lanes, by number.
    pub lanes: Vec<LiveLane>,
    /// The issues of the store; null before they are counted.
    pub queue: Option<LiveQueue>,
    /// What it did and used so far.
    pub totals: LiveTotals,
    /// Issues that it does not take, though nothing in the store holds them: tried as
    /// often as they may be, or held for an operator; the first thousand by id.
    #[serde(default)]
    pub left_out: BTreeSet<IssueId>,
    /// Why lanes wait.
    pub pauses: Vec<LivePause>,
    /// The attempts that ended last, the latest first.
    pub outcomes: Vec<LiveOutcome>,
}

impl LiveBatch {
    /// Begins with a batch of which nothing has happened.
    pub fn new(batch_id: BatchId, holder: BatchHolder, started_at: Stamp, started_ms: u64) -> Self {
        Self {
            live_kind: LIVE_KIND.to_owned(),
            batch_id,
            holder,
            written_at: started_at.clone(),
            started_at,
            started_ms,
            written_ms: started_ms,
            resumed: false,
            phase: BatchPhase::Running,
            ended_at: None,
            exit_code: None,
            ends_at: None,
            budget: LiveAmounts::default(),
            lanes: Vec::new(),
            queue: None,
            totals: LiveTotals::default(),
            left_out: BTreeSet::new(),
            pauses: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Reads a document; `None` where it is not one of this kind.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(bytes).ok()?;
        (read.live_kind == LIVE_KIND).then_some(read)
    }

    /// Returns a lane, which is added where it is new.
    pub fn lane(&mut self, worker_id: &WorkerName) -> &mut LiveLane {
        let known = self
            .lanes
            .iter()
            .position(|lane| lane.worker_id == *worker_id);
        let index = known.unwrap_or_else(|| {
            self.lanes.push(LiveLane::new(worker_id.clone()));
            self.lanes.len() - 1
        });
        &mut self.lanes[index]
    }

    /// Puts the lanes in the order of their numbers.
    pub fn sort_lanes(&mut self) {
        self.lanes.sort_by_cached_key(|lane| {
            let (name, number) = lane.worker_id.rsplit_once('.').unwrap_or_default();
            let number = number.parse::<u64>().unwrap_or(u64::MAX);
            (name.to_owned(), number, lane.worker_id.clone())
        });
    }

    /// Takes in an attempt that ended.
    pub fn ended(&mut self, outcome: LiveOutcome) {
        self.outcomes.insert(0, outcome);
        self.outcomes.truncate(OUTCOMES_MAX);
    }

    /// Replaces a pause of the same kind and name, or removes it.
    pub fn pause(&mut self, kind: PauseKind, name: &str, until: Option<PauseEnd>) {
        self.pauses
            .retain(|pause| pause.kind != kind || pause.name != name);
        if let Some(PauseEnd(until)) = until {
            self.pauses.push(LivePause {
                kind,
                name: short(name),
                until,
            });
        }
    }

    /// Removes the pauses of a kind.
    pub fn resume(&mut self, kind: PauseKind) {
        self.pauses.retain(|pause| pause.kind != kind);
    }
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchPhase {
    /// Issues are dispatched.
    Running,
    /// Running attempts finish, and none begins.
    Draining,
    /// Running attempts are cancelled.
    Cancelling,
    /// It is over.
    Ended,
}

/// Tokens and money; what is not known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveAmounts {
    /// Tokens, read and written; null where unknown.
    pub tokens: Option<u64>,
    /// Billionths of a dollar; null where unknown.
    pub cost_nano_usd: Option<u64>,
}

impl From<Spent> for LiveAmounts {
    fn from(spent: Spent) -> Self {
        Self {
            tokens: spent.tokens,
            cost_nano_usd: spent.cost_nano_usd,
        }
    }
}

impl From<Budget> for LiveAmounts {
    fn from(budget: Budget) -> Self {
        Self {
            tokens: budget.tokens,
            cost_nano_usd: budget.cost_nano_usd,
        }
    }
}

/// A lane as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveLane {
    /// Its worker.
    pub worker_id: WorkerName,
    /// Its worktree; empty before it is known.
    pub worktree: String,
    /// What it does.
    pub state: LiveLaneState,
    /// Why it is disabled; null where it is not.
    pub reason: Option<String>,
    /// The attempt that it works on; null where it works on none.
    pub step: Option<LiveStep>,
}

impl LiveLane {
    fn new(worker_id: WorkerName) -> Self {
        Self {
            worker_id,
            worktree: String::new(),
            state: LiveLaneState::Booting,
            reason: None,
            step: None,
        }
    }
}

/// What a lane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveLaneState {
    /// It is made ready.
    Booting,
    /// It waits for an issue.
    Idle,
    /// It works on an attempt.
    Working,
    /// It gets no more work: it could not continue.
    Disabled,
    /// It gets no more work: the batch has none for it.
    Done,
}

/// An attempt as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveStep {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title, shortened.
    pub title: String,
    /// The step.
    pub step_id: StepId,
    /// The lease's generation.
    pub generation: u64,
    /// Which attempt of the batch it is, from 1.
    pub attempt: u32,
    /// The provider that it works with; null for a plain command.
    pub provider: Option<String>,
    /// When it began.
    pub started_at: Stamp,
    /// The same on CLOCK_BOOTTIME, in milliseconds.
    pub started_ms: u64,
    /// How far it is.
    pub phase: StepPhase,
    /// Since when it is in that phase, on CLOCK_BOOTTIME in milliseconds.
    pub phase_ms: u64,
    /// The command that runs; null between commands.
    pub command: Option<LiveCommand>,
    /// What its agent did; null where no event stream is read.
    pub agent: Option<LiveAgent>,
    /// When its lease was taken or renewed last, on CLOCK_BOOTTIME in
    /// milliseconds.
    pub lease_renewed_ms: u64,
    /// How long a lease lives without a renewal, in milliseconds.
    pub lease_ttl_ms: u64,
}

impl LiveStep {
    /// Enters a phase.
    pub fn enter(&mut self, phase: StepPhase, now_ms: u64) {
        if self.phase != phase {
            self.phase = phase;
            self.phase_ms = now_ms;
        }
    }
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepPhase {
    /// Session, branch, files and setup are made.
    Preparing,
    /// The work command runs.
    Working,
    /// The agent mends work that failed its verification.
    Repairing,
    /// It waits for its place in the landing queue.
    Waiting,
    /// The verification runs.
    Verifying,
    /// The gate judges it, and it lands.
    Landing,
    /// The issue is closed.
    Closing,
    /// What it left is put in order, and its row is written.
    Stopping,
}

impl StepPhase {
    /// Returns its word for a person.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Working => "working",
            Self::Repairing => "repairing",
            Self::Waiting => "waiting",
            Self::Verifying => "verifying",
            Self::Landing => "landing",
            Self::Closing => "closing",
            Self::Stopping => "stopping",
        }
    }
}

/// A command that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveCommand {
    /// Which one, as its output is named: `work`, `verify`, `setup`.
    pub phase: String,
    /// Since when it runs, on CLOCK_BOOTTIME in milliseconds.
    pub started_ms: u64,
    /// How long it may run, in milliseconds.
    pub limit_ms: u64,
}

/// What an agent does, by its event stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveAgent {
    /// What it does now.
    pub state: AgentState,
    /// How many tool calls it reported in the attempt.
    pub calls: u64,
    /// The tool that it called last; null before the first call.
    pub last_tool: Option<String>,
    /// When it reported something last, on CLOCK_BOOTTIME in milliseconds; null
    /// before that.
    pub last_event_ms: Option<u64>,
    /// How long it may be silent in its state, in milliseconds.
    pub silence_limit_ms: u64,
    /// What the attempt used so far.
    #[serde(flatten)]
    pub used: LiveAmounts,
}

/// What an agent does now, as far as its stream tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// It has reported nothing yet.
    Starting,
    /// Its model works.
    Thinking,
    /// A tool runs.
    Calling,
    /// It said that it is done.
    Over,
}

impl AgentState {
    /// Returns its word for a person.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Thinking => "thinking",
            Self::Calling => "calling",
            Self::Over => "done",
        }
    }
}

/// What a batch did and used so far, by its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveTotals {
    /// Attempts that ended.
    pub attempts: u64,
    /// Issues that closed.
    pub closed: u64,
    /// Issues that the batch does not try again.
    pub given_up: u64,
    /// How often attempts closed their issues, by what it took.
    pub closes: CloseCounts,
    /// Attempts that did not close their issue, by their first failure class; of the
    /// first 64 classes, and `other`.
    #[serde(default)]
    pub failures: BTreeMap<String, u64>,
    /// How often agents were run again in their session.
    pub repair_rounds: u64,
    /// How many calls of agents the turn policy denied, by the rule or the limit.
    pub denials: BTreeMap<String, u64>,
    /// What the ended attempts used.
    #[serde(flatten)]
    pub used: LiveAmounts,
}

impl LiveTotals {
    /// Reads an account, with the number of issues that are not tried again.
    pub fn of(account: &Account, given_up: u64) -> Self {
        let denials = account.denials().into_iter();
        Self {
            attempts: account.attempts(),
            closed: account.closes().total(),
            given_up,
            closes: account.closes(),
            failures: account.failures().clone(),
            repair_rounds: account.repair_rounds(),
            denials: denials
                .map(|(rule, count)| (rule.to_owned(), count))
                .collect(),
            used: account.spent().into(),
        }
    }
}

/// Why lanes wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LivePause {
    /// What stopped them.
    pub kind: PauseKind,
    /// The provider, the failure class, what is short, or the operator.
    pub name: String,
    /// Until when; null where it is not known.
    pub until: Option<Stamp>,
}

/// What stops lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// A provider refused more work.
    Provider,
    /// Issues failed alike in a row.
    Breaker,
    /// There is too little free disk or memory.
    Room,
    /// It is outside of the hours in which attempts begin.
    Window,
    /// An operator asked for it.
    Operator,
}

/// The end of a pause; none where it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseEnd(pub Option<Stamp>);

/// An attempt that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveOutcome {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title, shortened.
    pub title: String,
    /// The step.
    pub step_id: StepId,
    /// The lane's worker.
    pub worker_id: WorkerName,
    /// Which attempt of the batch it was, from 1.
    pub attempt: u32,
    /// Whether the issue closed.
    pub closed: bool,
    /// How it ended, for a person.
    pub ending: String,
    /// The first failure class; null where it has none.
    pub failure_class: Option<String>,
    /// From claim to row, in milliseconds.
    pub duration_ms: u64,
    /// When it ended.
    pub at: Stamp,
}

/// Shortens a title or the name of a tool for the document.
pub fn short(text: &str) -> String {
    cut_at(text, TEXT_MAX).into_owned()
}

/// Returns a duration in milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> LiveBatch {
        let holder = BatchHolder {
            host: "h".into(),
            boot_id: "b".into(),
            pid: 1,
            started: 7,
            pid_ns: None,
        };
        let at = Stamp::parse("2026-03-05T10:00:00Z").unwrap();
        LiveBatch::new("hb1_a".into(), holder, at, 5_000)
    }

    #[test]
    fn a_document_reads_back_and_another_kind_is_none() {
        let mut live = batch();
        live.lane(&"w.1".into()).state = LiveLaneState::Idle;
        live.pause(PauseKind::Room, "disk", Some(PauseEnd(None)));
        let text = serde_json::to_vec(&live).unwrap();
        assert_eq!(LiveBatch::parse(&text), Some(live.clone()));
        live.live_kind = "other".into();
        assert_eq!(LiveBatch::parse(&serde_json::to_vec(&live).unwrap()), None);
        assert_eq!(LiveBatch::parse(b"{"), None);
    }

    #[test]
    fn a_pause_takes_the_place_of_its_last_one() {
        let mut live = batch();
        let until = Stamp::parse("2026-03-05T11:00:00Z");
        live.pause(PauseKind::Provider, "claude", Some(PauseEnd(None)));
        live.pause(PauseKind::Provider, "codex", Some(PauseEnd(None)));
        live.pause(PauseKind::Provider, "claude", Some(PauseEnd(until.clone())));
        let kept: Vec<_> = live.pauses.iter().map(|p| (&*p.name, &p.until)).collect();
        assert_eq!(kept, [("codex", &None), ("claude", &until)]);
        live.pause(PauseKind::Provider, "codex", None);
        live.resume(PauseKind::Breaker);
        assert_eq!(live.pauses.len(), 1);
        live.resume(PauseKind::Provider);
        assert!(live.pauses.is_empty());
    }

    #[test]
    fn the_latest_attempts_are_kept() {
        let mut live = batch();
        for number in 0..OUTCOMES_MAX + 3 {
            live.ended(LiveOutcome {
                issue_id: format!("i-{number}").as_str().into(),
                title: String::new(),
                step_id: "s".into(),
                worker_id: "w.1".into(),
                attempt: 1,
                closed: true,
                ending: "closed".into(),
                failure_class: None,
                duration_ms: 1,
                at: live.started_at.clone(),
            });
        }
        assert_eq!(live.outcomes.len(), OUTCOMES_MAX);
        assert_eq!(
            live.outcomes[0].issue_id,
            *format!("i-{}", OUTCOMES_MAX + 2)
        );
    }
}
