//! What an agent's hooks report: the second channel beside its event stream
//! (`tool-gate.md` 1).
//!
//! An agent calls a hook program before and after each tool call. What that
//! sends is read into one model, as the lines of streams are. [`HookJournal`] is
//! the fold over it; [`reconcile`] compares it with the stream.

mod journal;
mod reconcile;
mod recorded;
mod timed;

pub use journal::{HookJournal, HookRow};
pub use reconcile::{HookFault, reconcile};
pub use recorded::recorded_call;
pub use timed::TimedCalls;
