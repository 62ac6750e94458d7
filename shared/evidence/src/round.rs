//! The rounds of an agent in a turn, and its calls in them.

use crate::call::ShellCall;
use crate::event::Terminal;
use crate::fold::{CallRecord, FoldedStream};
use crate::hook::HookJournal;
use crate::policy::TurnPolicies;
use crate::shell;
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::token;

/// The stop reason of a stream that is not evidence. No gate handles it, so the
/// turn is refused even if the stream's classes are not read.
const INVALID: &str = "agent_stream_invalid";

/// The stop reason of a round whose work is done.
const ENDED: &str = "end_turn";

/// A step's turn by the adapter of an agent.
#[derive(Clone, Debug)]
pub struct AgentTurn<'a> {
    /// The step.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// The rounds of the agent, in their order; the first is the work itself,
    /// and each later one works on in its session after a verification that
    /// failed.
    pub rounds: &'a [AgentRound<'a>],
    /// The commands that the harness ran itself, in their order: each round of
    /// the agent, and the verification after it.
    pub calls: &'a [ShellCall],
}

/// One run of an agent within a turn.
#[derive(Clone, Copy, Debug)]
pub struct AgentRound<'a> {
    /// The phase of the harness's call that the agent runs in.
    pub phase: &'static str,
    /// The stream of the agent, folded.
    pub stream: &'a FoldedStream,
    /// What its hooks reported, where it has any.
    pub hooks: Option<&'a HookJournal>,
}

/// A round of a turn.
#[derive(Clone, Copy)]
pub(crate) struct Within<'a> {
    turn: &'a AgentTurn<'a>,
    pub(crate) phase: &'static str,
    pub(crate) stream: &'a FoldedStream,
    pub(crate) hooks: Option<&'a HookJournal>,
}

/// A call of the agent in a turn.
pub(crate) struct AgentCallIn<'a> {
    pub(crate) round: Within<'a>,
    pub(crate) call: &'a CallRecord,
    /// Its id in the turn.
    pub(crate) id: String,
}

impl AgentTurn<'_> {
    pub(crate) fn rounds(&self) -> impl Iterator<Item = Within<'_>> {
        self.rounds.iter().map(|round| Within {
            turn: self,
            phase: round.phase,
            stream: round.stream,
            hooks: round.hooks,
        })
    }

    /// Returns why the turn stopped: the first reason by which a round did not
    /// end its work, else that of the last one.
    pub(crate) fn stop_reason(&self) -> String {
        let mut last = INVALID.to_owned();
        for round in self.rounds() {
            last = round.stop_reason();
            if last != ENDED {
                break;
            }
        }
        last
    }
}

impl Within<'_> {
    /// Returns the tool call id of the harness's call that the agent runs in.
    fn work_id(&self) -> String {
        shell::call_id(self.turn.step, self.phase)
    }

    /// Returns the tool call id of one of the agent's calls.
    ///
    /// It is below the work call's: whatever id an agent makes up, none is that
    /// of a verification or of another round.
    pub(crate) fn call_id(&self, id: &str) -> String {
        format!("{}/{}", self.work_id(), token::encode(id))
    }

    pub(crate) fn work(&self) -> Option<&ShellCall> {
        let mut calls = self.turn.calls.iter();
        calls.find(|call| call.phase == self.phase)
    }

    /// Returns the call that a call was made from: a sub-agent's, or the work
    /// call that the agent runs in.
    pub(crate) fn parent(&self, caller: Option<&str>) -> Option<String> {
        match caller {
            Some(caller) => Some(self.call_id(caller)),
            None => self.work().map(|_| self.work_id()),
        }
    }

    fn stop_reason(&self) -> String {
        let exit = self.work().and_then(|call| call.exit_code);
        let by_exit = exit.and_then(|code| self.stream.agent().stop_reason_of_exit(code));
        if let Some(reason) = by_exit {
            return reason.to_owned();
        }
        match self.stream.terminal() {
            _ if self.stream.fault_count() > 0 => INVALID.to_owned(),
            None => INVALID.to_owned(),
            Some(Terminal::Finished { stop_reason }) => stop_reason.clone(),
            // The agent's own word never reads as one that the gate handles.
            Some(Terminal::Failed { reason, .. }) => format!("agent_failed.{reason}"),
        }
    }
}
