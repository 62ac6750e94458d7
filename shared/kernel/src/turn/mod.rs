//! The turn: evidence, its normal form, the gate, and the chain of types.
//!
//! ```text
//!  JoinCheckInput ── CallSpec::bind ──▶ CallSpec        input errors end here
//!                                          │ requests()          ──▶ Refused<CallSpec>
//!                                       ToolRequests
//!                                          │ results()           ──▶ Refused<ToolRequests>
//!                                       ToolResults
//!                                          │ tool_use()          ──▶ Refused<ToolResults>
//!                                       ToolUse
//!                                          │ join()              ──▶ Refused<ToolUse>
//!                                       JoinClosed
//!                                          │ admit::<C>(binding) ──▶ Refused<JoinClosed>
//!                                       MutationReady<C>      by value, to memory
//! ```
//!
//! Every state has private fields and one way in: the step from the state
//! before it, which is used up and checks the rules of the state that follows.
//! A refusal returns the value with *all* classes that keep the join open, also
//! those of later states (`HARNESS-TYPESTATE 2`, `5`, `6`).
//!
//! [`join_check`](join_check::join_check) is the same judgement as a report,
//! for `premath harness-join-check`; it mints nothing.

mod block;
pub mod chain;
pub mod constraints;
mod error;
pub mod evidence;
mod gate;
pub mod governance;
mod input;
pub mod join_check;
pub mod mutation;
pub mod normal;
mod pattern;
pub mod word;

pub use chain::{CallSpec, JoinClosed, Refused, ToolRequests, ToolResults, ToolUse};
pub use constraints::{
    Constraints, DecompositionConstraints, GOVERNANCE_CLAIM, GovernanceProfile, HandoffConstraints,
    PolicyProvenance, ProtocolConstraints, TruncationConstraints,
};
pub use error::EvidenceError;
pub use evidence::{
    CallSpecRow, Evidence, Facts, HandoffPacket, ProtocolState, QueueRow, RenderRow, RequestRow,
    ResultRow, StateViewRow, UseRow,
};
pub use gate::{
    Breach, BrokenRule, RuleNote, Stage, explain, join_classes, judged_notes, mutation_classes,
    notes,
};
pub use input::{JoinCheckInput, ParsedInput};
pub use join_check::{JoinCheck, broken_at, join_check};
pub use mutation::{
    AddEdge, Block, ClaimSet, Close, Discover, GatedChange, MutationBinding, MutationKind,
    MutationReady, MutationWitness, RemoveEdge, ReplaceEdge,
};
pub use normal::{Digests, Normalized, normalize};
pub use pattern::ExecutionPattern;
pub use word::{ActionMode, Disposition, ResultStatus};

#[cfg(test)]
pub(crate) mod tests;
