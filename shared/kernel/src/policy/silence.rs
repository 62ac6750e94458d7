//! How long an agent may be silent (`agents.md`, "Supervision").
//!
//! Two minutes of silence is a model that thinks; what is too long depends on
//! what the agent does meanwhile.

use std::time::Duration;

/// What an agent does, as far as its events say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPhase {
    /// It has printed nothing yet.
    Starting,
    /// A tool call of it runs.
    Calling,
    /// It waits for its model.
    Thinking,
    /// It said that it is done.
    Over,
}

/// Why an agent is ended before its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentTimeout {
    /// It was silent for this long.
    Silent(AgentPhase, Duration),
    /// It said that it is done and does not end.
    Lingering,
    /// It said more than is kept.
    TooLong,
    /// Its issue used up what it may.
    OverBudget,
}

/// How long an agent may be silent, by what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    /// Before the agent's first event.
    pub first_event: Duration,
    /// While a tool call runs.
    pub call: Duration,
    /// Otherwise.
    pub otherwise: Duration,
    /// From its last word to its end.
    pub after_end: Duration,
}

impl Default for SilenceLimits {
    fn default() -> Self {
        Self {
            first_event: Duration::from_secs(10 * 60),
            call: Duration::from_secs(30 * 60),
            otherwise: Duration::from_secs(10 * 60),
            after_end: Duration::from_secs(60),
        }
    }
}

impl SilenceLimits {
    /// Returns how long an agent may be silent in a phase.
    pub const fn of(&self, phase: AgentPhase) -> Duration {
        match phase {
            AgentPhase::Starting => self.first_event,
            AgentPhase::Calling => self.call,
            AgentPhase::Thinking => self.otherwise,
            AgentPhase::Over => self.after_end,
        }
    }

    /// Returns whether a silence is too long.
    pub fn is_over(&self, phase: AgentPhase, silent: Duration) -> bool {
        silent >= self.of(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_depends_on_the_phase() {
        let limits = SilenceLimits::default();
        for (phase, minutes) in [
            (AgentPhase::Starting, 10),
            (AgentPhase::Calling, 30),
            (AgentPhase::Thinking, 10),
            (AgentPhase::Over, 1),
        ] {
            let limit = Duration::from_secs(minutes * 60);
            assert!(limits.is_over(phase, limit), "{phase:?}");
            let less = limit - Duration::from_millis(1);
            assert!(!limits.is_over(phase, less), "{phase:?}");
        }
    }
}
