//! Why a step does not reach its next stage.

use super::outbox::OutboxError;
use super::step_failure::StepFailure;
use crate::lane::SiteError;
use crate::lane::branch::BranchError;
use crate::lane::command::CommandError;
use crate::sandbox::ProvideError;
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::EvidenceError;
use premath_memory::projection::ProjectionError;
use premath_memory::untrusted::UntrustedError;
use premath_memory::{ChangeError, StoreError};
use premath_worktree::landing::LandingError;
use premath_worktree::tree::TreeError;

/// A cause other than a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error("no agent uses the provider `{0}`")]
    ProviderMissing(String),
    #[error("the result cannot be verified: {0}")]
    Unproven(String),
    #[error(transparent)]
    Landing(#[from] LandingError),
    #[error("cannot judge the turn: {0}")]
    Evidence(#[from] EvidenceError),
    #[error("cannot read the evidence of the work command: {0}")]
    EvidenceFile(#[source] UntrustedError),
    #[error(transparent)]
    Untrusted(#[from] UntrustedError),
    #[error(transparent)]
    Provide(#[from] ProvideError),
}

impl StepError {
    /// Returns the failure class.
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Tree(error) => error.class(),
            Self::Projection(error) => error.class(),
            Self::Store(_) | Self::Untrusted(_) => FailureClass::ProjectionStoreIo,
            Self::EvidenceFile(_) => FailureClass::ToolSchemaInvalid,
            Self::Command(error) => error.class(),
            Self::Outbox(_) => FailureClass::OutboxInvalid,
            Self::Change(error) => error.class(),
            Self::ProviderMissing(_) => FailureClass::ExecutorUnavailable,
            Self::Unproven(_) => FailureClass::WorkUnproven,
            Self::Landing(error) => error.class(),
            Self::Evidence(error) => error.class(),
            Self::Provide(error) => error.class(),
        }
    }
}

impl From<SiteError> for StepError {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Tree(error) => Self::Tree(error),
            SiteError::Store(error) => Self::Store(error),
            SiteError::Provide(error) => Self::Provide(error),
        }
    }
}

impl From<BranchError> for StepError {
    fn from(error: BranchError) -> Self {
        match error {
            BranchError::Tree(error) => Self::Tree(error),
            BranchError::Landing(error) => Self::Landing(error),
        }
    }
}

/// Why a step does not reach its next stage: it failed, or something that it
/// needs did.
#[derive(Debug)]
pub(super) enum StageError {
    /// The step failed.
    Failed(Box<StepFailure>),
    /// Something that it needs failed.
    Error(StepError),
}

impl From<Box<StepFailure>> for StageError {
    fn from(failure: Box<StepFailure>) -> Self {
        Self::Failed(failure)
    }
}

/// Makes a stage_error of each kind of error.
macro_rules! setbacks {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for StageError {
            fn from(error: $error) -> Self {
                Self::Error(error.into())
            }
        })+
    };
}

setbacks!(
    StepError,
    TreeError,
    ProjectionError,
    StoreError,
    CommandError,
    OutboxError,
    ChangeError,
    LandingError,
    EvidenceError,
    UntrustedError,
    SiteError,
    BranchError,
);
