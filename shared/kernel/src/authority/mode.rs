//! Mutation modes: what a batch's changes rest on.

use super::LeaseAuthority;
use crate::authority::claim::ClaimSet;
use crate::authority::instruction::{
    BATCH_CHANGES, BindingError, Instruction, InstructionLink, InstructionPolicy,
};
use crate::failure::FailureClass;
use crate::issue::IssueScope;
use crate::json::canonical;
use crate::json::reference::RefSet;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a batch's changes rest on (`contracts.md` 8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum MutationMode {
    /// An instruction that the active policy admits.
    InstructionLinked(InstructionLink),
    /// A person's reason, good until an epoch where one is given.
    HumanOverride(HumanOverride),
}

/// A person's admitted override; made by [`MutationMode::human_override`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HumanOverride {
    reason: String,
    support_until: Option<String>,
    active_epoch: String,
}

/// A mutation mode that cannot be admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    /// The override has no reason.
    #[error("a human override requires a reason")]
    ReasonMissing,
    /// The epoch is not `YYYY-MM`.
    #[error("invalid epoch `{0}`: expected YYYY-MM")]
    EpochInvalid(String),
    /// The epoch is over.
    #[error("the override expired after {support_until}; it is {active_epoch}")]
    EpochPassed {
        /// The last month in which it was good.
        support_until: String,
        /// The current month, as `YYYY-MM`.
        active_epoch: String,
    },
}

impl ModeError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::MutationModeInvalid
    }
}

impl MutationMode {
    /// Admits a person's override.
    ///
    /// # Errors
    ///
    /// A blank reason, an epoch that is not `YYYY-MM`, or one that is over.
    pub fn human_override(
        reason: &str,
        support_until: Option<&str>,
        now: jiff::Timestamp,
    ) -> Result<Self, ModeError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(ModeError::ReasonMissing);
        }
        let active_epoch = format!("{now:.0}").chars().take(7).collect::<String>();
        let support_until = support_until.map(str::trim).filter(|e| !e.is_empty());
        if let Some(until) = support_until {
            if !is_epoch(until) {
                return Err(ModeError::EpochInvalid(until.to_owned()));
            }
            if until < active_epoch.as_str() {
                return Err(ModeError::EpochPassed {
                    support_until: until.to_owned(),
                    active_epoch,
                });
            }
        }
        Ok(Self::HumanOverride(HumanOverride {
            reason: reason.to_owned(),
            support_until: support_until.map(str::to_owned),
            active_epoch,
        }))
    }

    /// Makes sure that a person's override is still good; an instruction is read
    /// again instead.
    ///
    /// # Errors
    ///
    /// [`ModeError::EpochPassed`].
    pub fn holds_at(&self, now: jiff::Timestamp) -> Result<(), ModeError> {
        match self {
            Self::InstructionLinked(_) => Ok(()),
            Self::HumanOverride(over) => {
                let until = over.support_until.as_deref();
                Self::human_override(&over.reason, until, now).map(drop)
            }
        }
    }

    /// Admits a batch under an instruction.
    ///
    /// # Errors
    ///
    /// [`BindingError`]: another policy than the active one, an unknown type,
    /// a normaliser or check that is not allowed, or a claim of
    /// [`BATCH_CHANGES`] that is missing.
    pub fn instruction_linked(
        instruction: &Instruction,
        policy: &InstructionPolicy,
    ) -> Result<Self, BindingError> {
        let link = instruction.bind(policy, BATCH_CHANGES)?;
        Ok(Self::InstructionLinked(link))
    }

    /// The name of the mode that an instruction admits.
    pub const INSTRUCTION_LINKED: &'static str = "instruction-linked";
    /// The name of the mode that an operator's reason admits.
    pub const HUMAN_OVERRIDE: &'static str = "human-override";

    /// Returns the mode's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InstructionLinked(_) => Self::INSTRUCTION_LINKED,
            Self::HumanOverride(_) => Self::HUMAN_OVERRIDE,
        }
    }

    /// Returns the reason, empty where the mode needs none.
    pub fn reason(&self) -> &str {
        match self {
            Self::InstructionLinked(_) => "",
            Self::HumanOverride(over) => &over.reason,
        }
    }

    /// Returns the month in which the batch runs, empty where the mode has none.
    pub(crate) fn active_epoch(&self) -> &str {
        match self {
            Self::InstructionLinked(_) => "",
            Self::HumanOverride(over) => &over.active_epoch,
        }
    }

    /// Returns the last month in which the mode is good, empty where none is given.
    pub(crate) fn support_until(&self) -> &str {
        match self {
            Self::InstructionLinked(_) => "",
            Self::HumanOverride(over) => over.support_until.as_deref().unwrap_or(""),
        }
    }

    /// Returns the digest that a turn's `mutationPolicyDigest` must equal: the
    /// instruction policy's, or that of the override itself.
    pub fn policy_digest(&self) -> String {
        match self {
            Self::InstructionLinked(link) => link.policy_digest().to_owned(),
            Self::HumanOverride(_) => canonical::digest(self),
        }
    }

    /// Returns which issues the mode covers.
    pub fn issue_scope(&self) -> IssueScope {
        match self {
            Self::InstructionLinked(link) => link.scope().of_issues(),
            Self::HumanOverride(_) => IssueScope::default(),
        }
    }

    /// Returns the patterns of the files that work may change, where they are
    /// restricted.
    pub fn scope_paths(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::InstructionLinked(link) => link.scope().paths.as_ref(),
            Self::HumanOverride(_) => None,
        }
    }

    /// Returns the claims that changes may rest on.
    pub(crate) fn claims(&self) -> ClaimSet {
        match self {
            Self::InstructionLinked(link) => link.claims().clone(),
            Self::HumanOverride(_) => ClaimSet::operator_override(),
        }
    }

    /// Returns the normaliser that evidence must be bound to; any where absent.
    pub fn normalizer_id(&self) -> Option<&str> {
        match self {
            Self::InstructionLinked(link) => Some(link.normalizer_id()),
            Self::HumanOverride(_) => None,
        }
    }

    /// Returns the instruction's reference, where the mode rests on one.
    pub fn instruction_ref(&self) -> Option<&str> {
        match self {
            Self::InstructionLinked(link) => Some(link.instruction_ref()),
            Self::HumanOverride(_) => None,
        }
    }

    /// Returns the instructions that sessions, features and rows name.
    pub fn instruction_refs(&self) -> RefSet {
        self.instruction_ref().into_iter().collect()
    }

    /// Returns the mode and what it rests on, in a line for a person.
    pub fn describe(&self) -> String {
        match self {
            Self::InstructionLinked(link) => format!(
                "mode instruction-linked: {} ({}, {})",
                link.intent(),
                link.classification(),
                link.instruction_ref()
            ),
            Self::HumanOverride(over) => {
                let until = match &over.support_until {
                    Some(epoch) => format!(", valid until {epoch}"),
                    None => String::new(),
                };
                format!(
                    "mode human-override: {} (no instruction{until})",
                    over.reason
                )
            }
        }
    }

    /// Grants lease operations to a caller in this mode; the instruction has
    /// claimed them, or the mode could not be built.
    pub fn lease_authority(&self) -> LeaseAuthority {
        LeaseAuthority::all()
    }
}

fn is_epoch(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 7
        && bytes[4] == b'-'
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && matches!(&bytes[5..], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> jiff::Timestamp {
        "2026-03-05T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn an_override_needs_a_reason_and_a_live_epoch() {
        assert_eq!(
            MutationMode::human_override(" ", None, now()),
            Err(ModeError::ReasonMissing)
        );
        assert!(matches!(
            MutationMode::human_override("x", Some("2026-02"), now()),
            Err(ModeError::EpochPassed { .. })
        ));
        assert!(matches!(
            MutationMode::human_override("x", Some("2026-13"), now()),
            Err(ModeError::EpochInvalid(_))
        ));
        let mode = MutationMode::human_override("x", Some("2026-03"), now()).unwrap();
        assert_eq!(mode.active_epoch(), "2026-03");
        assert_eq!(mode.holds_at(now()), Ok(()));
        let later = "2026-04-01T00:00:00Z".parse().unwrap();
        assert!(matches!(
            mode.holds_at(later),
            Err(ModeError::EpochPassed { .. })
        ));
    }

    #[test]
    fn another_reason_is_another_policy() {
        let a = MutationMode::human_override("a", None, now()).unwrap();
        let b = MutationMode::human_override("b", None, now()).unwrap();
        assert_ne!(a.policy_digest(), b.policy_digest());
    }
}
