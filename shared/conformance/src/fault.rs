//! What is wrong with a suite, beside the vectors that fail.

use serde::Serialize;

/// Something that is wrong with the suite itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuiteFault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// Where: a file, a class, a rule or a slice.
    pub at: String,
    /// The description of the fault.
    pub detail: String,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A file is not what its place demands.
    Unreadable,
    /// A file is neither in the manifest nor a base.
    Stray,
    /// The manifest names a vector that has no file.
    Absent,
    /// The manifest is out of order, or its text differs from a vector's.
    Manifest,
    /// A base is not accepted and ready for a change.
    BaseRefused,
    /// No vector starts from a base.
    BaseUnused,
    /// A vector names no class where it must.
    NoClass,
    /// A vector names a class that the typestate does not have.
    UnknownClass,
    /// A near miss points to no adversarial vector.
    NearMissOfNothing,
    /// A class is the only root class of no adversarial vector.
    Uncovered,
    /// A class has no near miss.
    WithoutNearMiss,
    /// A rule of the gate is broken by no adversarial vector.
    RuleUnbroken,
    /// A slice has no vector.
    SliceEmpty,
}

impl FaultKind {
    /// Returns whether the suite as a whole lacks something, while every file
    /// of it may be in order.
    pub const fn is_coverage(self) -> bool {
        match self {
            Self::Unreadable
            | Self::Stray
            | Self::Absent
            | Self::Manifest
            | Self::BaseRefused
            | Self::NoClass
            | Self::UnknownClass
            | Self::NearMissOfNothing => false,
            Self::BaseUnused
            | Self::Uncovered
            | Self::WithoutNearMiss
            | Self::RuleUnbroken
            | Self::SliceEmpty => true,
        }
    }
}

impl SuiteFault {
    pub(super) fn new(kind: FaultKind, at: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            at: at.into(),
            detail: detail.into(),
        }
    }
}
