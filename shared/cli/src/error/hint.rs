//! What a person can do about an error.

use super::CliError;
use premath_kernel::authority::ModeError;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry::PolicyError;
use premath_kernel::policy::turn::TurnPolicyError;
use premath_memory::control::ControlError;
use premath_memory::projection::ProjectionError;
use premath_memory::{ChangeError, TrajectoryFileError};

impl CliError {
    /// Returns what a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Settings(error) => error.hint(),
            Self::Kept { error, .. } => error.hint(),
            Self::Plan(error) => error.hint(),
            Self::InsideStep => Some(
                "use `premath issue discover` to queue a follow-up; it is filed when the step's \
                 turn passes the gate"
                    .to_owned(),
            ),
            Self::Governance(error) => error.hint(),
            Self::NoInstruction => Some(
                "start the server with --instruction FILE, or set PREMATH_INSTRUCTION or \
                 instruction under [batch] in harness.toml; create one with `premath instruction \
                 new`"
                    .to_owned(),
            ),
            Self::Binding(_) | Self::Claim(_) => Some(
                "list what it covers with `premath instruction check FILE`; create one under the \
                 active policy with `premath instruction new`"
                    .to_owned(),
            ),
            Self::BoundToLease { .. } => Some(
                "use issue_discover to queue a follow-up; it is filed when the step's turn passes \
                 the gate"
                    .to_owned(),
            ),
            Self::Change(ChangeError::Store(error))
            | Self::Store(error)
            | Self::Projection(ProjectionError::Store(error))
            | Self::Trajectory(TrajectoryFileError::Store(error)) => error.hint(),
            Self::Change(ChangeError::Refused(refusal)) => match refusal.class {
                FailureClass::LeaseNotFound => {
                    Some("list all issues with `premath issue list`".to_owned())
                }
                FailureClass::DependencyCycle => Some(
                    "remove one of these dependencies with `premath dep remove`, then add this \
                     one again"
                        .to_owned(),
                ),
                FailureClass::MutationUseEvidenceMissing => Some(
                    "a batch closes or blocks the issue when its turn passes the gate; an \
                     operator does it with `premath issue update ID --status STATUS \
                     --reason TEXT`"
                        .to_owned(),
                ),
                _ => None,
            },
            Self::Instruction(error) => error.hint(),
            Self::Context(_) => Some("set PREMATH_ACTIVE_ISSUE_ID to the issue".to_owned()),
            Self::Mode(ModeError::ReasonMissing) => Some(
                "give a reason with --override-reason or override_reason under [batch] in \
                harness.toml"
                    .to_owned(),
            ),
            Self::Trust(error) => Some(error.hint()),
            Self::Control(error) => control_hint(error).map(str::to_owned),
            Self::UnknownClass { .. } => Some("list all classes with `premath classes`".to_owned()),
            Self::Absent { hint, .. } => Some((*hint).to_owned()),
            _ => self.other_hint(),
        }
    }

    fn other_hint(&self) -> Option<String> {
        match self {
            Self::Policy {
                path,
                source: PolicyError::DigestMismatch { .. },
            }
            | Self::TurnPolicy {
                path,
                source: TurnPolicyError::DigestMismatch { .. },
            } => Some(format!(
                "restore the artifact, or enter the digest of your change with `premath policy \
                 seal {}`",
                path.display()
            )),
            Self::NoWork(error) => Some(error.hint().to_owned()),
            Self::Unit(error) => error.hint().map(str::to_owned),
            Self::DigestField { .. } => {
                Some("add `\"policyDigest\": \"\"` to the document".to_owned())
            }
            _ => None,
        }
    }
}

const fn control_hint(error: &ControlError) -> Option<&'static str> {
    match error {
        ControlError::NoBatch { .. } => Some("start one with `harness-coordinator`"),
        ControlError::Ambiguous(_) => Some("name the batch with --batch ID"),
        ControlError::Closed => {
            Some("the batch answers only processes of its own user that belong to no step")
        }
        ControlError::NotRunning(_) | ControlError::Store(_) | ControlError::Unanswered { .. } => {
            None
        }
    }
}
