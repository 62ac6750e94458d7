//! The rights to change an issue without a turn: of a lease's holder, of an
//! operator, and of a caller under an instruction.

mod surface;

pub use surface::{InstructedChange, InstructedRecord, InstructedSurface, LeaseOperation};

/// The right to claim, renew and release leases.
///
/// Granted by [`MutationMode::lease_authority`](super::MutationMode::lease_authority) to a loop, by
/// [`OperatorOverride::lease_authority`] to a person, and for one of the three
/// by [`InstructedSurface::lease_authority`].
#[derive(Clone, Debug)]
pub struct LeaseAuthority {
    /// The one operation that an instruction claims; all where absent.
    only: Option<(LeaseOperation, InstructedRecord)>,
}

impl LeaseAuthority {
    /// Grants every operation.
    pub(super) const fn all() -> Self {
        Self { only: None }
    }

    /// Returns whether an operation is covered.
    pub fn covers(&self, operation: LeaseOperation) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|(only, _)| *only == operation)
    }

    /// Returns what the row reports about the operation, where it was asked for
    /// under an instruction.
    pub fn record(&self) -> Option<&InstructedRecord> {
        self.only.as_ref().map(|(_, record)| record)
    }
}

/// A person's decision to change an issue without a gate.
///
/// Exists in the `premath` command alone; a lint bans the constructor
/// elsewhere.
#[derive(Debug)]
pub struct OperatorOverride {
    operator: String,
    reason: Option<String>,
}

impl OperatorOverride {
    /// Records who decides and, where given, why.
    pub fn new(operator: impl Into<String>, reason: Option<String>) -> Self {
        Self {
            operator: operator.into(),
            reason: reason.filter(|r| !r.trim().is_empty()),
        }
    }

    /// Returns the person's name.
    pub fn operator(&self) -> &str {
        &self.operator
    }

    /// Returns the reason, where one was given.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Grants lease operations.
    pub fn lease_authority(&self) -> LeaseAuthority {
        LeaseAuthority::all()
    }
}
