//! Instructions: the envelopes that authorise a batch, and the policy that
//! admits them (`contracts.md` 8).
//!
//! ```text
//!  bytes, file name ── Instruction::parse ──▶ Instruction      a bad envelope ends here
//!                                                │ MutationMode::instruction_linked(policy)
//!                                          InstructionLink     what the mode rests on
//! ```

mod binding;
mod classification;
mod envelope;
mod policy;

pub use binding::{BindingError, BindingFault, InstructionLink};
pub use classification::{Classification, UnknownReason};
pub use envelope::{
    EnvelopeError, Instruction, InstructionEnvelope, InstructionScope, TypingPolicy, file_name,
};
pub use policy::{INSTRUCTION_POLICY_FILE, InstructionPolicy, InstructionPolicyError};

use crate::authority::claim::ChangeMorphism;

/// What every batch does: an instruction that does not claim these is refused
/// before anything is changed.
///
/// Filing what a step discovered needs its own claim, which the gate asks for
/// when it comes to that.
pub const BATCH_CHANGES: &[ChangeMorphism] = &[
    ChangeMorphism::IssueClaim,
    ChangeMorphism::IssueLeaseRenew,
    ChangeMorphism::IssueLeaseRelease,
    ChangeMorphism::IssueUpdate,
];

/// The check that is a batch's verification command.
pub const VERIFY_CHECK: &str = "verify";

/// The check that is a batch's startup verification.
pub const STARTUP_CHECK: &str = "startup";

/// The checks that the harness can be asked for; it runs no other.
pub(crate) const KNOWN_CHECKS: [&str; 2] = [STARTUP_CHECK, VERIFY_CHECK];

/// The kind of an instruction that authorises a batch.
pub const BATCH_KIND: &str = "harness.batch";

/// Returns the command that makes an instruction for evidence of a normaliser,
/// and has batches use it.
pub fn update_command(normalizer: &str) -> String {
    format!(
        "premath instruction new --set --normalizer {normalizer} --intent 'Work through the ready \
         issues of this repository.'"
    )
}

#[cfg(test)]
mod tests;
