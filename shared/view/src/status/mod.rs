//! How the batches of a repository are: the model behind `premath status`.

pub(crate) mod text;

pub use text::lines;

use jiff::Timestamp;
use premath_kernel::json::id::{BatchId, IssueId, StepId, WorkerName};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{
    AgentState, BatchPhase, LiveAmounts, LiveBatch, LiveLane, LiveLaneState, LiveOutcome,
    LivePause, LiveQueue, LiveTotals, StepPhase, estimate, millis,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// How the batches of a repository are.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// When it was looked at.
    pub at: Stamp,
    /// Whether a batch runs.
    pub running: bool,
    /// The batches that run, the one that began last first; where none runs, the
    /// last one that is known.
    pub batches: Vec<BatchView>,
    /// The issues of the store; null where they were not counted.
    pub queue: Option<LiveQueue>,
}

/// A batch as it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchView {
    /// The batch.
    pub batch_id: BatchId,
    /// What it does.
    pub state: BatchState,
    /// When it began.
    pub started_at: Stamp,
    /// How long it has run, or ran, in milliseconds.
    pub elapsed_ms: u64,
    /// How old these figures are, in milliseconds.
    pub age_ms: u64,
    /// When it ended; null where it did not, or where that is not known.
    pub ended_at: Option<Stamp>,
    /// Its exit code; null where it has none.
    pub exit_code: Option<u8>,
    /// When no new work starts any more; null where that is not set.
    pub ends_at: Option<Stamp>,
    /// Its process.
    pub pid: u32,
    /// The host of the process.
    pub host: String,
    /// What it may use; null where it has no bound.
    pub budget: LiveAmounts,
    /// What it used, running attempts included; null where it is not reported.
    pub used: LiveAmounts,
    /// What it did so far, without the running attempts.
    pub totals: LiveTotals,
    /// Its pace, and what follows from it.
    pub estimate: EstimateView,
    /// Its lanes, by number.
    pub lanes: Vec<LaneView>,
    /// The issues as it counted them; null before it did.
    pub queue: Option<LiveQueue>,
    /// Why lanes wait.
    pub pauses: Vec<LivePause>,
    /// The attempts that ended last, the latest first.
    pub outcomes: Vec<LiveOutcome>,
}

/// What a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// It dispatches issues.
    Running,
    /// Running attempts finish, and none begins.
    Draining,
    /// Running attempts are cancelled.
    Cancelling,
    /// It is over.
    Ended,
    /// Its process is gone, and it did not end.
    Cut,
}

impl BatchState {
    /// Returns its word for a person.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Cancelling => "cancelling",
            Self::Ended => "ended",
            Self::Cut => "cut: its process is gone",
        }
    }

    /// Returns whether its process runs.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Draining | Self::Cancelling)
    }
}

/// The pace of a batch, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimateView {
    /// Closed issues an hour; null where it is unknown.
    pub closed_per_hour: Option<f64>,
    /// Issues that it can still work on; null where it is unknown.
    pub remaining: Option<u64>,
    /// How long they take at this pace, in milliseconds; null where it is
    /// unknown.
    pub time_left_ms: Option<u64>,
    /// When that is over; null where it is unknown.
    pub done_at: Option<Stamp>,
}

/// A lane as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaneView {
    /// Its worker.
    pub worker_id: WorkerName,
    /// Its worktree.
    pub worktree: String,
    /// What it does.
    pub state: LiveLaneState,
    /// Why it is disabled; null where it is not.
    pub reason: Option<String>,
    /// The attempt that it works on; null where it works on none.
    pub attempt: Option<AttemptView>,
}

/// A running attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The issue.
    pub issue_id: IssueId,
    /// Its title, shortened.
    pub title: String,
    /// The step.
    pub step_id: StepId,
    /// Which attempt of the batch it is, from 1.
    pub number: u32,
    /// The provider that it works with; null for a plain command.
    pub provider: Option<String>,
    /// When it began.
    pub started_at: Stamp,
    /// How long it runs, in milliseconds.
    pub elapsed_ms: u64,
    /// How far it is.
    pub phase: StepPhase,
    /// How long it is in that phase, in milliseconds.
    pub phase_ms: u64,
    /// The command that runs, as its output is named; null between commands.
    pub command: Option<String>,
    /// How long that command runs, in milliseconds.
    pub command_ms: Option<u64>,
    /// How long it may run, in milliseconds.
    pub limit_ms: Option<u64>,
    /// What its agent does; null where no event stream is read.
    pub agent: Option<AgentState>,
    /// The tool that the agent called last; null before the first call.
    pub last_tool: Option<String>,
    /// How long ago the agent reported something last, in milliseconds; null
    /// where it is unknown.
    pub silent_ms: Option<u64>,
    /// How long the agent may be silent, in milliseconds.
    pub silence_limit_ms: Option<u64>,
    /// How many tool calls it made; null where it is unknown.
    pub calls: Option<u64>,
    /// What it used so far; null where it is not reported.
    pub used: LiveAmounts,
    /// How long ago its lease was taken or renewed, in milliseconds.
    pub lease_age_ms: u64,
    /// How long a lease lives without a renewal, in milliseconds.
    pub lease_ttl_ms: u64,
}

impl StatusView {
    /// Looks at what batches published, the one that was written last first.
    pub fn of(
        published: &[LiveBatch],
        is_alive: &dyn Fn(&LiveBatch) -> bool,
        queue: Option<LiveQueue>,
        now: Moment,
    ) -> Self {
        let all = published.iter();
        let views = all.map(|live| BatchView::of(live, is_alive(live), now));
        let (mut running, others): (Vec<_>, Vec<_>) =
            views.partition(|view| view.state.is_running());
        running.sort_by_key(|view| std::cmp::Reverse(view.started_at.time()));
        let is_running = !running.is_empty();
        let batches = match is_running {
            true => running,
            false => others.into_iter().take(1).collect(),
        };
        let counted = batches.first().and_then(|batch| batch.queue.clone());
        Self {
            at: Stamp::at(now.wall),
            running: is_running,
            queue: queue.or(counted),
            batches,
        }
    }
}

impl BatchView {
    fn of(live: &LiveBatch, is_alive: bool, now: Moment) -> Self {
        let state = match (live.phase, is_alive) {
            (BatchPhase::Ended, _) => BatchState::Ended,
            (_, false) => BatchState::Cut,
            (BatchPhase::Running, true) => BatchState::Running,
            (BatchPhase::Draining, true) => BatchState::Draining,
            (BatchPhase::Cancelling, true) => BatchState::Cancelling,
        };
        // What does not run any more is as it was when it was written.
        let seen_ms = match state.is_running() {
            true => now.boot_ms,
            false => live.written_ms,
        };
        let elapsed_ms = seen_ms.saturating_sub(live.started_ms);
        Self {
            batch_id: live.batch_id.clone(),
            state,
            started_at: live.started_at.clone(),
            elapsed_ms,
            age_ms: between(live.written_at.time(), now.wall),
            ended_at: live.ended_at.clone(),
            exit_code: live.exit_code,
            ends_at: live.ends_at.clone(),
            pid: live.holder.pid,
            host: live.holder.host.clone(),
            budget: live.budget,
            used: used(live),
            totals: live.totals.clone(),
            estimate: EstimateView::of(live, state, elapsed_ms, now),
            lanes: live
                .lanes
                .iter()
                .map(|lane| LaneView::of(lane, seen_ms))
                .collect(),
            queue: live.queue.clone(),
            pauses: match state.is_running() {
                true => live.pauses.clone(),
                false => Vec::new(),
            },
            outcomes: live.outcomes.clone(),
        }
    }
}

impl EstimateView {
    fn of(live: &LiveBatch, state: BatchState, elapsed_ms: u64, now: Moment) -> Self {
        let found = estimate(live, Duration::from_millis(elapsed_ms));
        let time_left = found.time_left.filter(|_| state == BatchState::Running);
        let done_at = time_left.and_then(|left| now.wall.checked_add(left).ok());
        Self {
            closed_per_hour: found.closed_per_hour,
            remaining: found.remaining,
            time_left_ms: time_left.map(millis),
            done_at: done_at.map(Stamp::at),
        }
    }
}

impl LaneView {
    fn of(lane: &LiveLane, seen_ms: u64) -> Self {
        let since = |ms: u64| seen_ms.saturating_sub(ms);
        let attempt = lane.step.as_ref().map(|step| {
            let (command, agent) = (step.command.as_ref(), step.agent.as_ref());
            AttemptView {
                issue_id: step.issue_id.clone(),
                title: step.title.clone(),
                step_id: step.step_id.clone(),
                number: step.attempt,
                provider: step.provider.clone(),
                started_at: step.started_at.clone(),
                elapsed_ms: since(step.started_ms),
                phase: step.phase,
                phase_ms: since(step.phase_ms),
                command: command.map(|command| command.phase.clone()),
                command_ms: command.map(|command| since(command.started_ms)),
                limit_ms: command.map(|command| command.limit_ms),
                agent: agent.map(|agent| agent.state),
                last_tool: agent.and_then(|agent| agent.last_tool.clone()),
                silent_ms: agent.and_then(|agent| agent.last_event_ms).map(since),
                silence_limit_ms: agent.map(|agent| agent.silence_limit_ms),
                calls: agent.map(|agent| agent.calls),
                used: agent.map(|agent| agent.used).unwrap_or_default(),
                lease_age_ms: since(step.lease_renewed_ms),
                lease_ttl_ms: step.lease_ttl_ms,
            }
        });
        Self {
            worker_id: lane.worker_id.clone(),
            worktree: lane.worktree.clone(),
            state: lane.state,
            reason: lane.reason.clone(),
            attempt,
        }
    }
}

/// Returns what a batch used, running attempts included; what nothing reports is
/// unknown.
fn used(live: &LiveBatch) -> LiveAmounts {
    let running = live
        .lanes
        .iter()
        .filter_map(|lane| lane.step.as_ref()?.agent.as_ref());
    running.fold(live.totals.used, |sum, agent| LiveAmounts {
        tokens: plus(sum.tokens, agent.used.tokens),
        cost_nano_usd: plus(sum.cost_nano_usd, agent.used.cost_nano_usd),
    })
}

fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (known, None) | (None, known) => known,
    }
}

fn between(from: Timestamp, to: Timestamp) -> u64 {
    millis(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}

#[cfg(test)]
pub(crate) mod tests;
