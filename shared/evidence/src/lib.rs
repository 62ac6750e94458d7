//! What commands and agents did, made into evidence that the kernel's gate can
//! judge.
//!
//! ```text
//! bytes ── StreamReader ──▶ Event ── StreamFold ──▶ FoldedStream ── agent_turn ──▶ JoinCheckInput
//!          one line and its adapter   append-only    views, queue,   with the harness's own calls
//! ```
//!
//! Invariant: values in, values out. Nothing here spawns, reads a file or
//! knows the time.

#![warn(clippy::too_many_lines)]

// What tests begin with names the crate as others do.
#[cfg(test)]
extern crate self as premath_evidence;

mod adapter;
mod agent;
mod binding;
mod boundary;
mod call;
#[cfg(test)]
#[path = "../tests/case/mod.rs"]
mod case;
mod context;
mod demand;
mod ending;
mod escalation;
mod event;
mod file;
mod flaw;
mod fold;
mod hook;
mod json;
mod policy;
mod reader;
mod round;
mod shell;
mod stream;

pub use adapter::{
    AGENT_NORMALIZER, Agent, AgentFiles, AgentSpec, HookFile, HookPlace, HookSpec, HookWiring,
    TranscriptPart, transcript,
};
pub use agent::{agent_context, agent_turn};
pub use call::{CallEnd, ShellCall};
pub use ending::AgentEnd;
pub use escalation::{EscalationFacts, escalation_grant};
pub use event::{
    Begun, CallRequest, CallResult, EventKind, Limit, LimitStatus, LineSource, ReportedUsage,
    Retry, Speaker, StreamEvent, Terminal, Tokens, UsageBasis,
};
pub use file::{FILE_NORMALIZER, FileTurn, claims_of, file_context, file_turn, unkept};
pub use flaw::{Flaw, MAX_CALL_BYTES, MAX_LINE_BYTES, StreamFault};
pub use fold::{CallRecord, FoldedStream, RequestRecord, ResultRecord, RunSpending, StreamFold};
pub use hook::{HookFault, HookJournal, HookRow, TimedCalls, reconcile, recorded_call};
pub use policy::{StepDemand, TurnPolicies};
pub use reader::{StreamLog, StreamReader};
pub use round::{AgentRound, AgentTurn};
pub use shell::{SHELL_NORMALIZER, ShellTurn, shell_context, shell_turn};
pub use stream::AgentStream;
