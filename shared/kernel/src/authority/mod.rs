//! Who may change an issue (`contracts.md` 8).
//!
//! Four values exist, and no fifth: a `MutationReady` for a worker's change, a
//! [`LeaseAuthority`] for lease operations, an [`OperatorOverride`] for a
//! person at the keyboard, an [`InstructedChange`] for one change under an
//! instruction.

pub mod claim;
pub mod doctrine;
pub mod instruction;
pub mod lineage;
mod mode;
pub mod operation;
mod right;
mod step;
pub mod transport;

pub use mode::{HumanOverride, ModeError, MutationMode};
pub use right::{
    InstructedChange, InstructedRecord, InstructedSurface, LeaseAuthority, LeaseOperation,
    OperatorOverride,
};
pub use step::StepIdentity;
