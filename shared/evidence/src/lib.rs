//! What commands and agents did, made into evidence that the kernel's gate can
//! judge.
//!
//! Invariant: values in, values out. Nothing here spawns, reads a file or
//! knows the time.

mod escalation;
mod policy;
mod shell;

pub use escalation::{ESCALATION_NORMALIZER, EscalationFacts, escalation_right, escalation_turn};
pub use policy::TurnPolicies;
pub use shell::{CallEnd, SHELL_NORMALIZER, ShellCall, ShellTurn, shell_turn};
