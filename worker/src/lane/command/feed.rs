//! What a command of a step notes about itself in what the batch publishes.

use super::{Phase, WorkUse};
use crate::batch::Batch;
use crate::lane::Lane;
use crate::lane::listener::{Listener, spent};
use premath_evidence::RunSpending;
use premath_kernel::json::id::WorkerName;
use premath_kernel::policy::silence::AgentPhase;
use premath_kernel::record::live::{AgentState, LiveAgent, LiveCommand, StepPhase, millis, short};
use premath_memory::clock;
use std::sync::Arc;
use std::time::Duration;

/// Notes what an agent reports, where it reported something new.
#[derive(Debug)]
pub(super) struct AgentFeed {
    batch: Arc<Batch>,
    worker_id: WorkerName,
    /// The calls and the usage of earlier rounds of the step's work.
    calls_before: u64,
    used_before: RunSpending,
    /// How many lines were noted, and in which state.
    noted: Option<(u64, AgentState)>,
}

impl AgentFeed {
    /// Notes what a listener heard by now.
    pub(super) fn look(&mut self, listener: &Listener) {
        let heard = listener.heard();
        let seen = (heard.lines, state_of(heard.phase));
        if self.noted == Some(seen) {
            return;
        }
        self.noted = Some(seen);
        let now_ms = clock::now().boot_ms;
        let agent = LiveAgent {
            state: seen.1,
            calls: self.calls_before + heard.calls,
            last_tool: heard.last_tool.map(short),
            last_event_ms: (heard.lines > 0).then(|| now_ms.saturating_sub(millis(heard.silent))),
            silence_limit_ms: millis(heard.silence_limit),
            used: spent(self.used_before.plus(heard.spent)).into(),
        };
        self.batch
            .note_step(&self.worker_id, |step| step.agent = Some(agent));
    }
}

const fn state_of(phase: AgentPhase) -> AgentState {
    match phase {
        AgentPhase::Starting => AgentState::Starting,
        AgentPhase::Calling => AgentState::Calling,
        AgentPhase::Thinking => AgentState::Thinking,
        AgentPhase::Over => AgentState::Over,
    }
}

/// Returns the phase of a step while a command runs; `None` where it belongs to
/// no step.
const fn step_phase(phase: Phase) -> Option<StepPhase> {
    Some(match phase {
        Phase::Setup => StepPhase::Preparing,
        Phase::Work(0) => StepPhase::Working,
        Phase::Work(_) => StepPhase::Repairing,
        Phase::Verify(_) | Phase::Land(_) | Phase::VerifySetup => StepPhase::Verifying,
        Phase::Landed(_) => StepPhase::Landing,
        Phase::Push | Phase::Stop => StepPhase::Stopping,
        Phase::Boot | Phase::Startup | Phase::Warm | Phase::Tip => return None,
    })
}

impl Lane {
    /// Notes that a command of the lane's step begins.
    pub(super) fn note_command(&self, phase: Phase, limit: Duration) {
        let Some(entered) = step_phase(phase) else {
            return;
        };
        let now_ms = clock::now().boot_ms;
        self.batch.note_step(&self.worker_id, |step| {
            step.enter(entered, now_ms);
            step.command = Some(LiveCommand {
                phase: phase.name().to_owned(),
                started_ms: now_ms,
                limit_ms: millis(limit),
            });
        });
    }

    /// Returns what notes the agent of a command, after the rounds before it.
    pub(super) fn feed_of(&self, used: WorkUse) -> AgentFeed {
        let mut calls_before = 0;
        self.batch.note_step(&self.worker_id, |step| {
            calls_before = step.agent.as_ref().map_or(0, |agent| agent.calls);
        });
        AgentFeed {
            batch: self.batch.clone(),
            worker_id: self.worker_id.clone(),
            calls_before,
            used_before: used.spent,
            noted: None,
        }
    }
}
