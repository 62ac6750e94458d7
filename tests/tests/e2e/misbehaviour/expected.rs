//! The outcome of every fault, as `agents.md` and `contracts.md` 7 have it.

use premath_evidence::Agent;
use premath_tests::scripted::Misbehaviour;
use std::time::Duration;

/// The limits of the table's batches. Each is another one, so that what is
/// reported about a silence reports which of them ended it.
pub(crate) const FIRST_EVENT: Duration = Duration::from_millis(3_000);
pub(crate) const SILENCE: Duration = Duration::from_millis(3_200);
pub(crate) const CALL_SILENCE: Duration = Duration::from_millis(3_600);
pub(crate) const AFTER_END: Duration = Duration::from_millis(2_000);
pub(crate) const STEP: Duration = Duration::from_millis(2_800);
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// How an issue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is closed.
    Closed,
    /// It is blocked, with notes.
    Blocked,
    /// It is open, and a follow-up is filed.
    FollowUp,
    /// It is open, and nothing is filed.
    Open,
}

/// The outcome of a fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The classes of its first step, the one that decides first.
    pub(crate) classes: &'static [&'static str],
    pub(crate) end: End,
    pub(crate) attempts: u64,
    /// The limit that ends it, where one does.
    pub(crate) limit: Option<Duration>,
    /// What is reported about it.
    pub(crate) said: Option<&'static str>,
}

const fn ends(classes: &'static [&'static str], end: End, attempts: u64) -> Expected {
    Expected {
        classes,
        end,
        attempts,
        limit: None,
        said: None,
    }
}

/// What ends by a limit at its first attempt, and does well at its second.
const fn limited(class: &'static [&'static str], limit: Duration) -> Expected {
    Expected {
        limit: Some(limit),
        ..ends(class, End::Closed, 2)
    }
}

impl Expected {
    const fn saying(self, said: &'static str) -> Self {
        Self {
            said: Some(said),
            ..self
        }
    }
}

const WELL: Expected = ends(&[], End::Closed, 1);
const INVALID: Expected = ends(&["agent_stream_invalid"], End::FollowUp, 2);

/// Returns the outcome of an agent's fault.
pub(crate) fn expected(misbehaviour: Misbehaviour, agent: Agent) -> Expected {
    match misbehaviour {
        Misbehaviour::None => WELL,
        // Nothing was reported: it was not up.
        Misbehaviour::Crash(0) => ends(&["executor_unavailable"], End::FollowUp, 3),
        Misbehaviour::Crash(_) => ends(&["agent_stream_invalid", "work_failed"], End::FollowUp, 2),
        // A signal that was not ours comes first; what the stream lacks follows.
        Misbehaviour::Kill(_) => ends(
            &["flaky_execution", "agent_stream_invalid"],
            End::FollowUp,
            3,
        ),
        Misbehaviour::HangStart => {
            limited(&["flaky_execution"], FIRST_EVENT).saying("the agent printed no event for 3s")
        }
        Misbehaviour::HangTool => limited(&["flaky_execution"], CALL_SILENCE)
            .saying("a tool call of the agent was silent for 3s 600ms"),
        Misbehaviour::HangThink | Misbehaviour::HangDeaf => {
            limited(&["flaky_execution"], SILENCE).saying("the agent was silent for 3s 200ms")
        }
        Misbehaviour::HangAfter => Expected {
            limit: Some(AFTER_END),
            ..WELL
        },
        Misbehaviour::Endless => limited(&["gate_timeout"], STEP),
        Misbehaviour::Orphan => ends(
            &[
                "tool.result_orphan",
                "protocol.parallel_transport_order_invalid",
                "tool.join_incomplete",
            ],
            End::FollowUp,
            2,
        ),
        // Its step ends by calls of which none was reported.
        Misbehaviour::Missing if agent == Agent::OpenCode => INVALID,
        Misbehaviour::Missing => ends(
            &["tool.result_missing", "tool.join_incomplete"],
            End::FollowUp,
            2,
        ),
        Misbehaviour::Duplicate
        | Misbehaviour::Truncated
        | Misbehaviour::Garbage
        | Misbehaviour::NullExit
        | Misbehaviour::NoTerminal => INVALID,
        Misbehaviour::Huge => INVALID.saying("the agent's event stream is too long"),
        Misbehaviour::Failed => ends(&["work_failed"], End::Open, 1),
        // The provider is parked; no attempt is used up for it. Its exit code
        // follows from the limit.
        Misbehaviour::Limit(_) => ends(&["usage_limit", "work_failed"], End::Closed, 1),
        Misbehaviour::WrongClaim | Misbehaviour::WrongWork => {
            ends(&["check_failed"], End::Blocked, 1)
        }
        // What it did outside is reported elsewhere; its work is good.
        Misbehaviour::Sleepers | Misbehaviour::Escape | Misbehaviour::Memory => WELL,
        // One that reports what it used when it is done costs no more.
        Misbehaviour::Budget if matches!(agent, Agent::Codex | Agent::Gemini) => WELL,
        Misbehaviour::Budget => {
            ends(&["budget_exceeded"], End::Blocked, 1).saying("the issue's budget is used up")
        }
    }
}
