//! Why settings cannot be used.

use super::{
    ConfigError, GovernanceError, InstructionError, SigningKeyError, TelemetryHeadersError,
};
use premath_evidence::Agent;
use premath_kernel::authority::ModeError;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::reference::RefSet;
use premath_kernel::policy::network::NetworkUnenforced;
use premath_kernel::policy::retry::PolicyError;
use premath_kernel::policy::sandbox::{SandboxMode, SandboxUnavailable};
use premath_kernel::policy::trust::TrustError;
use premath_kernel::policy::turn::TurnPolicyError;
use premath_memory::StoreError;
use premath_worktree::governing::GoverningError;
use std::path::PathBuf;

/// Settings that cannot be used; found before anything is dispatched.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A required command is missing.
    #[error("no {name} command")]
    CommandMissing {
        /// `work` or `verify`.
        name: &'static str,
    },
    /// The program that a command begins with is not there.
    #[error("{place}: {}", not_found(name, program, image.as_deref(), agent.is_some()))]
    ProgramMissing {
        /// The flag, the variable, or file, line and key.
        place: String,
        /// `work`, `verification` and the like.
        name: &'static str,
        /// The first word of the command.
        program: String,
        /// The image that has none, where the system is an image's.
        image: Option<String>,
        /// The agent whose ready command line it is.
        agent: Option<Agent>,
    },
    /// A value does not fit.
    #[error("{name}: {detail}")]
    Value {
        /// The flag or key.
        name: &'static str,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// The configuration file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The mutation mode is not admitted.
    #[error("cannot run in human-override mode")]
    Mode(#[from] ModeError),
    /// The instruction does not authorise the batch.
    #[error(transparent)]
    Instruction(#[from] InstructionError),
    /// The governance profile does not hold.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
    /// The retry policy cannot be used.
    #[error("cannot use the retry policy {path}")]
    Policy {
        /// The artifact.
        path: PathBuf,
        /// The error in the policy.
        source: PolicyError,
    },
    /// The turn policy cannot be used.
    #[error("cannot use the turn policy {path}")]
    TurnPolicy {
        /// The artifact.
        path: PathBuf,
        /// The error in the policy.
        source: TurnPolicyError,
    },
    /// The sandbox that was asked for does not work here.
    #[error(transparent)]
    Sandbox(#[from] SandboxUnavailable),
    /// The sandbox cannot enforce the network policy.
    #[error(transparent)]
    Network(#[from] NetworkUnenforced),
    /// The key that landing commits are signed with cannot be used.
    #[error(transparent)]
    Signing(Box<SigningKeyError>),
    /// The headers for the receiver of telemetry cannot be used.
    #[error(transparent)]
    Telemetry(Box<TelemetryHeadersError>),
    /// The files that govern the batch are not accepted.
    #[error(transparent)]
    Untrusted(Box<UnacceptedFilesError>),
    /// A file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SettingsError {
    /// Returns the exit code: a policy that does not match is refused, the
    /// rest is usage.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Policy {
                source: PolicyError::DigestMismatch { .. },
                ..
            }
            | Self::TurnPolicy {
                source: TurnPolicyError::DigestMismatch { .. },
                ..
            } => crate::exit::REFUSED,
            Self::Instruction(error) => error.exit_code(),
            Self::Governance(GovernanceError::Refused { .. }) => crate::exit::REFUSED,
            Self::Mode(ModeError::EpochPassed { .. })
            | Self::Sandbox(_)
            | Self::Network(_)
            | Self::Signing(_)
            | Self::Telemetry(_)
            | Self::Untrusted(_) => crate::exit::REFUSED,
            _ => crate::exit::USAGE,
        }
    }

    /// Returns the failure classes of a refusal: what was asked for is plain,
    /// and nothing admits it. Empty for usage errors.
    pub fn refusal_classes(&self) -> Vec<FailureClass> {
        match self {
            Self::Instruction(error) => error.classes(),
            Self::Governance(error) => error.classes(),
            Self::Mode(error @ ModeError::EpochPassed { .. }) => vec![error.class()],
            Self::Sandbox(error) => vec![error.class()],
            Self::Network(error) => vec![error.class()],
            Self::Signing(_) => vec![FailureClass::SigningKeyUnusable],
            Self::Telemetry(_) => vec![FailureClass::TelemetryHeadersUnusable],
            Self::Untrusted(_) => vec![FailureClass::GoverningFilesUntrusted],
            Self::Policy { source, .. } if self.exit_code() == crate::exit::REFUSED => {
                vec![source.class()]
            }
            Self::TurnPolicy { source, .. } if self.exit_code() == crate::exit::REFUSED => {
                vec![source.class()]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the instruction that was refused, where it could be read.
    pub(crate) fn instruction_refs(&self) -> RefSet {
        match self {
            Self::Instruction(error) => error.refs(),
            _ => RefSet::new(),
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CommandMissing { name } => Some(command_to_give(name)),
            Self::ProgramMissing { image: Some(_), .. } => Some(
                "install it in the image, or name it in `read` under [sandbox]; programs of this \
                machine are not visible in the mode `container`"
                    .to_owned(),
            ),
            Self::ProgramMissing {
                agent: Some(agent), ..
            } => Some(format!(
                "install it with {}; list installed agents with `premath agents \
                check`",
                agent.spec().install_command()
            )),
            Self::ProgramMissing { .. } => Some(
                "install it or correct the command; commands inherit this PATH, subject to [env]"
                    .to_owned(),
            ),
            Self::Mode(ModeError::ReasonMissing) => Some(
                "give a reason with --override-reason or override_reason under [batch] in \
                harness.toml"
                    .to_owned(),
            ),
            Self::Instruction(error) => error.hint(),
            Self::Governance(error) => error.hint(),
            Self::Config(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Network(error) => Some(error.hint()),
            Self::Signing(error) => error.hint(),
            Self::Telemetry(error) => Some(error.hint()),
            Self::Untrusted(error) => error.hint(),
            Self::Sandbox(error) if error.mode == SandboxMode::Container => Some(
                "set an image that `podman image inspect` or `docker image inspect` finds, with \
                --sandbox-image or image under [sandbox]; or use another mode with --sandbox"
                    .to_owned(),
            ),
            Self::Sandbox(_) => Some(
                "remove --sandbox and mode under [sandbox] to use the strongest mode that works; \
                `none` runs commands unconfined"
                    .to_owned(),
            ),
            Self::Policy {
                source: PolicyError::DigestMismatch { .. },
                path,
            }
            | Self::TurnPolicy {
                source: TurnPolicyError::DigestMismatch { .. },
                path,
            } => Some(format!(
                "the artifact changed after its approval: restore it, or seal it again with \
                `premath policy seal {}`",
                path.display()
            )),
            _ => None,
        }
    }
}

/// Returns where a missing command can come from.
fn command_to_give(name: &str) -> String {
    if name == "work" {
        return "name an agent, for example --agent codex (use under [agent] in harness.toml), or \
                give --work-cmd (work_cmd under [batch]); `premath init --agent codex` writes the \
                file"
            .to_owned();
    }
    format!(
        "give --{name}-cmd, or set PREMATH_{}_CMD or {name}_cmd under [batch] in harness.toml",
        name.to_uppercase()
    )
}

/// Says which program is not there, and where it was looked for.
fn not_found(name: &str, program: &str, image: Option<&str>, is_agent: bool) -> String {
    match image {
        Some(image) => format!(
            "program `{program}` of the {name} command not found on PATH of the image `{image}`"
        ),
        None if is_agent => format!("{program} is not installed: not found on PATH"),
        None => format!("program `{program}` of the {name} command not found on PATH"),
    }
}

/// A batch may not begin with the governing files that are there.
#[derive(Debug, thiserror::Error)]
pub enum UnacceptedFilesError {
    /// They are not accepted, or the record is broken.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// They cannot be looked at.
    #[error(transparent)]
    Governing(#[from] GoverningError),
}

impl UnacceptedFilesError {
    /// Returns what a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Trust(error) => Some(error.hint()),
            Self::Governing(_) => None,
        }
    }
}

impl From<UnacceptedFilesError> for SettingsError {
    fn from(error: UnacceptedFilesError) -> Self {
        Self::Untrusted(Box::new(error))
    }
}
