//! What a batch's changes rest on, read again: its instruction and the active
//! instruction policy, the retry policy, the turn policy, the governance package.
//!
//! An operator revokes a batch by changing or removing one of these files.

use super::instruction::{self, InstructionError};
use super::policy::PolicyInForce;
use super::{Settings, SettingsError};
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry::RetryPolicy;
use premath_kernel::policy::turn::TurnPolicy;
use premath_memory::governance::{GovernanceError, PolicyPackage};
use std::path::{Path, PathBuf};

/// That a batch may change nothing any more, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {detail}")]
pub struct Revocation {
    /// The failure class.
    pub class: FailureClass,
    /// What changed, for display.
    pub detail: String,
}

impl Revocation {
    fn new(class: FailureClass, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { class, detail }
    }
}

/// Where a batch's authority was read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthoritySources {
    pub(super) repository: PathBuf,
    /// The instruction's file; none under a person's override.
    pub(super) instruction: Option<PathBuf>,
    pub(super) retry_policy: Option<String>,
    pub(super) turn_policy: Option<String>,
    pub(super) retry_in_force: PolicyInForce,
    pub(super) turn_in_force: PolicyInForce,
    pub(super) governance: PolicyPackage,
}

impl Settings {
    /// Reads again what changes rest on, and compares it with what the batch
    /// began with.
    ///
    /// # Errors
    ///
    /// [`Revocation`]: a file is missing, cannot be used, or says another thing.
    pub(crate) fn authorised(&self, now: jiff::Timestamp) -> Result<(), Revocation> {
        let sources = &self.authority;
        self.mode_holds(sources.instruction.as_deref(), now)?;
        self.retry_policy_holds()?;
        self.turn_policy_holds()?;
        let package = sources.governance.profile(&sources.repository);
        match package {
            Ok(profile) if profile == self.governance => Ok(()),
            Ok(_) => Err(Revocation::new(
                FailureClass::GovernancePolicyPackageMismatch,
                "the governance package is another one than when the batch began",
            )),
            Err(error) => Err(Revocation::new(of_governance(&error), error.to_string())),
        }
    }

    fn mode_holds(
        &self,
        instruction: Option<&Path>,
        now: jiff::Timestamp,
    ) -> Result<(), Revocation> {
        let Some(path) = instruction else {
            let held = self.mode.holds_at(now);
            return held.map_err(|error| Revocation::new(error.class(), error.to_string()));
        };
        match instruction::linked(path, &self.authority.repository) {
            Ok((_, mode)) if mode == self.mode => Ok(()),
            Ok((instruction, _)) => Err(Revocation::new(
                FailureClass::MutationPolicyDigestMismatch,
                format!(
                    "the instruction was {} when the batch began and is {}",
                    self.mode.instruction_ref().unwrap_or_default(),
                    instruction.reference()
                ),
            )),
            Err(error) => Err(Revocation::new(
                of_instruction(&error),
                premath_memory::cause::chain(&error),
            )),
        }
    }

    fn retry_policy_holds(&self) -> Result<(), Revocation> {
        let sources = &self.authority;
        let named = sources.retry_policy.as_deref();
        let in_force = &sources.retry_in_force;
        let class = match in_force.holds::<RetryPolicy>(
            &sources.repository,
            named,
            self.retry.policy_digest(),
        ) {
            Ok(true) => return Ok(()),
            Ok(false) => FailureClass::RetryPolicyDigestMismatch,
            Err(SettingsError::Policy { source, .. }) => source.class(),
            Err(_) => FailureClass::RetryPolicyInvalid,
        };
        Err(Revocation::new(
            class,
            "the retry policy is another one than when the batch began",
        ))
    }

    fn turn_policy_holds(&self) -> Result<(), Revocation> {
        let sources = &self.authority;
        let named = sources.turn_policy.as_deref();
        let in_force = &sources.turn_in_force;
        let class = match in_force.holds::<TurnPolicy>(
            &sources.repository,
            named,
            self.turn.policy_digest(),
        ) {
            Ok(true) => return Ok(()),
            Ok(false) => FailureClass::TurnPolicyDigestMismatch,
            Err(SettingsError::TurnPolicy { source, .. }) => source.class(),
            Err(_) => FailureClass::TurnPolicyInvalid,
        };
        Err(Revocation::new(
            class,
            "the turn policy is another one than when the batch began",
        ))
    }
}

fn of_instruction(error: &InstructionError) -> FailureClass {
    let first = error.classes().into_iter().next();
    first.unwrap_or(FailureClass::MutationPolicyDigestMismatch)
}

fn of_governance(error: &GovernanceError) -> FailureClass {
    let first = error.classes().into_iter().next();
    first.unwrap_or(FailureClass::GovernancePolicyPackageUnpinned)
}

impl AuthoritySources {
    /// Returns where a mode's instruction was read from: nowhere under an
    /// override.
    pub(super) fn instruction_of(mode: &MutationMode, path: Option<PathBuf>) -> Option<PathBuf> {
        match mode {
            MutationMode::InstructionLinked(_) => path,
            MutationMode::HumanOverride(_) => None,
        }
    }
}
