//! What can go wrong in a command, and what it means to the caller.

mod hint;
mod unit;
mod work;

pub(crate) use unit::UnitError;
pub(crate) use work::WorkError;

use crate::exit;
use crate::policy_kind::PolicyKind;
use harness_worker::plan::PlanError;
use harness_worker::sandbox::TrialError;
use harness_worker::settings::SettingsError;
use premath_kernel::authority::ModeError;
use premath_kernel::authority::instruction::{BindingError, BindingFault};
use premath_kernel::authority::transport::PayloadError;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::escalation::IssueContextError;
use premath_kernel::policy::retry::PolicyError;
use premath_kernel::policy::trust::TrustError;
use premath_kernel::policy::turn::TurnPolicyError;
use premath_kernel::record::feature::LedgerError;
use premath_kernel::turn::EvidenceError;
use premath_memory::control::ControlError;
use premath_memory::governance::GovernanceError;
use premath_memory::instruction::InstructionFileError;
use premath_memory::projection::ProjectionError;
use premath_memory::trust::TrustFileError;
use premath_memory::{ChangeError, StoreError, TrajectoryFileError};
use premath_worktree::diff::DiffError;
use premath_worktree::governing::GoverningError;
use premath_worktree::history::HistoryError;
use premath_worktree::inventory::InventoryError;
use premath_worktree::landing::LandingError;
use premath_worktree::tree::TreeError;
use std::io;
use std::path::{Path, PathBuf};

/// A command could not do what it was reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A step's command tried to change issues by itself.
    #[error("cannot change issues inside a step: only the harness may")]
    InsideStep,
    /// A step's command tried to reach the batch.
    #[error("cannot control a batch inside a step: only an operator may")]
    ControlInsideStep,
    /// The batch refused what was asked, or there is nothing to ask for.
    #[error("{0}")]
    ControlRefused(String),
    /// No batch can be asked.
    #[error(transparent)]
    Control(ControlError),
    /// A step's command tried to clean up.
    #[error("cannot clean up inside a step: only an operator may")]
    CleanInsideStep,
    /// A step's command tried to accept governing files.
    #[error(
        "cannot accept governing files inside a step (PREMATH_STEP_ID is set): only an operator may"
    )]
    TrustInsideStep,
    /// A step's command tried to seal a policy.
    #[error("cannot seal a policy inside a step: only an operator may")]
    SealInsideStep,
    /// The units of a service cannot be written or removed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// Governing files are not accepted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The settings of a batch are wrong.
    #[error(transparent)]
    Settings(Box<SettingsError>),
    /// A batch cannot be planned.
    #[error(transparent)]
    Plan(Box<PlanError>),
    /// A command cannot be tried in the sandbox.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// Governing files cannot be looked at.
    #[error(transparent)]
    Governing(#[from] GoverningError),
    /// A step's command has nowhere to leave its request.
    #[error("cannot queue the request: PREMATH_OUTBOX is not set in this step")]
    NoOutbox,
    /// Changes would rest on an instruction, and none is named.
    #[error("no instruction given, and changing issues requires one")]
    NoInstruction,
    /// The active policy does not admit the instruction.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The instruction does not claim the change.
    #[error("the instruction does not cover the change")]
    Claim(#[from] BindingFault),
    /// The server serves a step, whose harness alone changes issues.
    #[error("this server is bound to the lease of issue {issue}: only the harness changes issues")]
    BoundToLease {
        /// The issue of the lease.
        issue: IssueId,
    },
    /// The server serves a step of another issue.
    #[error("this server is bound to the lease of issue {issue}, not of {asked}")]
    BoundToAnother {
        /// The issue of the lease.
        issue: IssueId,
        /// The issue that was named.
        asked: IssueId,
    },
    /// The arguments of a tool do not fit its schema.
    #[error("invalid arguments for {tool}: {detail}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// The arguments that do not fit, and why.
        detail: String,
    },
    /// A lease operation's payload cannot be read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The evidence that a tool was given cannot be read.
    #[error("harness_join_check_invalid: {0}")]
    GivenEvidence(EvidenceError),
    /// The server cannot serve.
    #[error("cannot {operation}")]
    Serve {
        /// What was tried, as in `listen on 127.0.0.1:0`.
        operation: String,
        /// The cause.
        source: io::Error,
    },
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// What a person wrote in an editor was not used; the text is kept.
    #[error("{error}; your text is kept in {}", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// Why it was not used.
        error: Box<Self>,
    },
    /// Issue memory was not changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A file of the harness could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A session or ledger could not be used.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// A feature could not be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The trajectory could not be used.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryFileError),
    /// The repository's things cannot be listed.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The repository's history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// What a running attempt changed cannot be looked at.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// What a commit changed cannot be read.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// The work of an attempt cannot be shown.
    #[error(transparent)]
    NoWork(#[from] WorkError),
    /// What was to be read is not there.
    #[error("no {what} at {path}")]
    Absent {
        /// What it would be, as in `session`.
        what: &'static str,
        /// Where it was looked for.
        path: PathBuf,
        /// The way to create one.
        hint: &'static str,
    },
    /// No batch left a report, or not the one that was named.
    #[error("{0}")]
    NoReport(String),
    /// A decision of a review cannot be carried out.
    #[error("{0}")]
    Review(String),
    /// The landing target cannot be used.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// The terminal, or a program on it, cannot be used.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
    /// Evidence cannot be judged, for it cannot be read.
    #[error("harness_join_check_invalid: {path}")]
    Evidence {
        /// The input.
        path: PathBuf,
        /// The error in the evidence.
        source: EvidenceError,
    },
    /// The file with the evidence cannot be read.
    #[error("harness_join_check_invalid: cannot read {path}")]
    EvidenceFile {
        /// The input.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An instruction or its policy could not be used.
    #[error(transparent)]
    Instruction(#[from] InstructionFileError),
    /// The repository claims the governance profile, which does not hold, or its claims
    /// cannot be read.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
    /// The retry policy stops the loops.
    #[error("{path}")]
    Policy {
        /// The artifact.
        path: PathBuf,
        /// The error in the policy.
        source: PolicyError,
    },
    /// The turn policy stops the loops.
    #[error("{path}")]
    TurnPolicy {
        /// The artifact.
        path: PathBuf,
        /// The error in the policy.
        source: TurnPolicyError,
    },
    /// A file does not state which policy it is.
    #[error(
        "{path}: `policyKind` must be `{}` or `{}`, found {}",
        PolicyKind::Turn.word(),
        PolicyKind::Retry.word(),
        found.as_deref().unwrap_or("nothing")
    )]
    PolicyKind {
        /// The file.
        path: PathBuf,
        /// The value of the field.
        found: Option<String>,
    },
    /// A policy has no place for its digest.
    #[error("{path}: `policyDigest` must be a text")]
    DigestField {
        /// The file.
        path: PathBuf,
    },
    /// The policy still gives attempts.
    #[error("not escalated: {decision}")]
    NotDue {
        /// The decision of the policy.
        decision: String,
    },
    /// The issue cannot be determined.
    #[error(transparent)]
    Context(IssueContextError),
    /// What the change rests on is not admitted.
    #[error("cannot change issues in human-override mode")]
    Mode(#[source] ModeError),
    /// A policy's artifact cannot be read.
    #[error("cannot read the {} {path}", kind.name())]
    PolicyFile {
        /// The kind of policy.
        kind: PolicyKind,
        /// The artifact.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No failure class bears the text.
    #[error(
        "unknown failure class `{word}`{}",
        nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
    )]
    UnknownClass {
        /// The text.
        word: String,
        /// A class that is like it.
        nearest: Option<String>,
    },
    /// A file of the user could not be used.
    #[error("cannot {operation} {path}")]
    File {
        /// What was tried, as in `read`.
        operation: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl CliError {
    /// Returns the error with all its causes, in one line.
    pub(crate) fn chain(&self) -> String {
        premath_memory::cause::chain(self)
    }

    /// Makes the error of a file operation.
    pub(crate) fn file(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::File {
            operation,
            path,
            source,
        }
    }

    /// Returns what is before the error; evidence errors begin with their own
    /// word (`contracts.md` 2).
    pub(crate) const fn prefix(&self) -> &'static str {
        match self {
            Self::Evidence { .. } | Self::EvidenceFile { .. } => "",
            _ => "error: ",
        }
    }

    /// Returns the failure class, where the contracts name one.
    pub(crate) fn class(&self) -> Option<FailureClass> {
        match self {
            Self::InsideStep | Self::BoundToLease { .. } | Self::BoundToAnother { .. } => {
                Some(FailureClass::MutationUseEvidenceMissing)
            }
            Self::NoInstruction => Some(FailureClass::InstructionModeUnavailable),
            Self::Binding(error) => error.classes().first().copied(),
            Self::Claim(fault) => Some(fault.class()),
            Self::Governance(error) => error.classes().first().copied(),
            Self::Arguments { .. } => Some(FailureClass::LeaseInvalidPayload),
            Self::Payload(error) => Some(error.class()),
            Self::Trust(error) => Some(error.class()),
            Self::Governing(error) => Some(error.class()),
            Self::Settings(error) => error.refusal_classes().first().copied(),
            Self::Plan(error) => error.class(),
            Self::Trial(_) => Some(FailureClass::SandboxUnavailable),
            Self::NoOutbox => Some(FailureClass::OutboxInvalid),
            Self::Kept { error, .. } => error.class(),
            Self::Change(error) => Some(error.class()),
            Self::Store(error) => Some(error.class()),
            Self::Projection(error) => Some(error.class()),
            Self::Ledger(error) => Some(error.class()),
            Self::Trajectory(error) => Some(error.class()),
            Self::Inventory(error) => Some(error.class()),
            Self::History(error) => Some(error.class()),
            Self::Tree(error) => Some(error.class()),
            Self::Instruction(error) => Some(error.class()),
            Self::Policy { source, .. } => Some(source.class()),
            Self::TurnPolicy { source, .. } => Some(source.class()),
            Self::PolicyFile { kind, .. } => Some(kind.unreadable()),
            Self::Context(error) => Some(error.class()),
            Self::Mode(error) => Some(error.class()),
            Self::Usage(_)
            | Self::NotDue { .. }
            | Self::CleanInsideStep
            | Self::TrustInsideStep
            | Self::SealInsideStep
            | Self::Unit(_)
            | Self::ControlInsideStep
            | Self::ControlRefused(_)
            | Self::Control(_)
            | Self::PolicyKind { .. }
            | Self::DigestField { .. }
            | Self::UnknownClass { .. }
            | Self::Absent { .. }
            | Self::NoReport(_)
            | Self::Review(_)
            | Self::Landing(_)
            | Self::Terminal(_)
            | Self::Diff(_)
            | Self::NoWork(_)
            | Self::Evidence { .. }
            | Self::EvidenceFile { .. }
            | Self::GivenEvidence(_)
            | Self::Serve { .. }
            | Self::File { .. } => None,
        }
    }

    /// Returns every failure class, the first one first.
    pub(crate) fn classes(&self) -> Vec<FailureClass> {
        match self {
            Self::Binding(error) => error.classes(),
            _ => self.class().into_iter().collect(),
        }
    }

    /// Returns the exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(error) => error.exit_code().min(exit::USAGE),
            Self::Kept { error, .. } => error.exit_code(),
            Self::Plan(error) => error.exit_code().min(exit::USAGE),
            Self::Trial(_) | Self::Governance(GovernanceError::Refused { .. }) => exit::REFUSED,
            Self::InsideStep
            | Self::ControlInsideStep
            | Self::ControlRefused(_)
            | Self::Control(_)
            | Self::CleanInsideStep
            | Self::TrustInsideStep
            | Self::SealInsideStep
            | Self::Unit(_)
            | Self::Trust(_)
            | Self::NoOutbox
            | Self::NoInstruction
            | Self::Binding(_)
            | Self::Claim(_)
            | Self::BoundToLease { .. }
            | Self::BoundToAnother { .. }
            | Self::Serve { .. } => exit::REFUSED,
            Self::NotDue { .. }
            | Self::Context(_)
            | Self::Mode(_)
            | Self::NoReport(_)
            | Self::Review(_)
            | Self::Landing(_)
            | Self::Terminal(_)
            | Self::NoWork(_) => exit::REFUSED,
            Self::Change(ChangeError::Refused(_) | ChangeError::Invalid(_)) => exit::REFUSED,
            Self::Change(ChangeError::Store(error))
            | Self::Store(error)
            | Self::Inventory(InventoryError::Store(error))
            | Self::Projection(ProjectionError::Store(error))
            | Self::Trajectory(TrajectoryFileError::Store(error)) => store_code(error),
            Self::Usage(_)
            | Self::Governing(_)
            | Self::Governance(_)
            | Self::Inventory(_)
            | Self::History(_)
            | Self::Tree(_)
            | Self::Diff(_)
            | Self::Projection(ProjectionError::Session { .. } | ProjectionError::Ledger { .. })
            | Self::Ledger(_)
            | Self::Trajectory(TrajectoryFileError::Row(_))
            | Self::Instruction(_)
            | Self::Policy { .. }
            | Self::TurnPolicy { .. }
            | Self::PolicyFile { .. }
            | Self::PolicyKind { .. }
            | Self::DigestField { .. }
            | Self::UnknownClass { .. }
            | Self::Absent { .. }
            | Self::Arguments { .. }
            | Self::Payload(_)
            | Self::GivenEvidence(_)
            | Self::Evidence { .. }
            | Self::EvidenceFile { .. } => exit::USAGE,
            Self::File { operation, .. } => io_code(operation),
        }
    }
}

impl From<ControlError> for CliError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Store(error) => error.into(),
            error => Self::Control(error),
        }
    }
}

impl From<TrustFileError> for CliError {
    fn from(error: TrustFileError) -> Self {
        match error {
            TrustFileError::Store(error) => error.into(),
            TrustFileError::Trust(error) => error.into(),
        }
    }
}

/// Input that cannot be read is a usage error; a write that failed is a failure.
fn store_code(error: &StoreError) -> u8 {
    match error {
        StoreError::Missing { .. }
        | StoreError::Corrupt { .. }
        | StoreError::NetworkFilesystem { .. }
        | StoreError::Repository { .. } => exit::USAGE,
        StoreError::Io { operation, .. } => io_code(operation),
        StoreError::LockBusy { .. }
        | StoreError::Removing { .. }
        | StoreError::LockIo { .. }
        | StoreError::Poisoned { .. } => exit::REFUSED,
    }
}

fn io_code(operation: &str) -> u8 {
    match operation {
        "read" | "open" | "find" => exit::USAGE,
        _ => exit::REFUSED,
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(Box::new(error))
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> Self {
        Self::Plan(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_usage_and_what_cannot_be_written_is_a_failure() {
        for (operation, code) in [("read", 2), ("find", 2), ("write", 1), ("sync", 1)] {
            let error = CliError::from(StoreError::Io {
                operation,
                path: "x".into(),
                source: io::Error::other("cause"),
            });
            assert_eq!(error.exit_code(), code, "{operation}");
            assert_eq!(error.chain(), format!("cannot {operation} x: cause"));
        }
    }
}
