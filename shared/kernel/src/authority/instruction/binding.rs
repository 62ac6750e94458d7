//! The binding of an instruction to the policy that is active.

use super::KNOWN_CHECKS;
use super::classification::Classification;
use super::envelope::{Instruction, InstructionScope};
use super::policy::InstructionPolicy;
use crate::authority::claim::{ChangeMorphism, ClaimSet};
use crate::failure::FailureClass;
use serde::Serialize;
use std::collections::BTreeSet;

/// One thing that keeps an instruction from authorising changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingFault {
    /// It was written under another policy.
    #[error("its policyDigest is `{found}`, the active instruction policy's is `{active}`")]
    PolicyDigest {
        /// The active policy's.
        active: String,
        /// The envelope's.
        found: String,
    },
    /// Its type is unknown, and it does not allow that.
    #[error("its type is {0}, and typingPolicy.allowUnknown is not true")]
    Unknown(Classification),
    /// Its normaliser is not allowed.
    #[error("its normalizerId is `{found}`; expected one of {allowed}")]
    Normalizer {
        /// The envelope's.
        found: String,
        /// Those of the policy.
        allowed: String,
    },
    /// It requests a check that is not allowed.
    #[error("it requests the check `{found}`; expected one of {allowed}")]
    Check {
        /// The check.
        found: String,
        /// Those of the policy.
        allowed: String,
    },
    /// It requests a check that the policy allows and the harness does not run.
    #[error(
        "it requests the check `{found}`, but the harness runs only {}",
        quoted(KNOWN_CHECKS)
    )]
    CheckUnknown {
        /// The check.
        found: String,
    },
    /// Its claims do not cover a change.
    #[error("its capabilityClaims do not cover `{}`", .0.claim())]
    Claim(ChangeMorphism),
}

impl BindingFault {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::PolicyDigest { .. } => FailureClass::MutationPolicyDigestMismatch,
            Self::Unknown(_) => FailureClass::InstructionUnknownUnroutable,
            Self::Normalizer { .. } => FailureClass::InstructionNormalizerNotAllowed,
            Self::Check { .. } => FailureClass::InstructionCheckNotAllowed,
            Self::CheckUnknown { .. } => FailureClass::InstructionCheckUnbound,
            Self::Claim(_) => FailureClass::MutationCapabilityClaimMissing,
        }
    }
}

/// Everything that keeps an instruction from authorising changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {id} is refused: {}", describe(.faults))]
pub struct BindingError {
    /// The instruction.
    pub id: String,
    /// What it is known by in projections.
    pub reference: String,
    /// How the policy classifies it.
    pub classification: Classification,
    /// The faults, at least one.
    pub faults: Vec<BindingFault>,
}

fn describe(faults: &[BindingFault]) -> String {
    let texts: Vec<String> = faults
        .iter()
        .map(|fault| format!("{fault} ({})", fault.class()))
        .collect();
    texts.join("; ")
}

impl BindingError {
    /// Returns the classes, in the order of the faults, each once.
    pub fn classes(&self) -> Vec<FailureClass> {
        let mut classes = Vec::new();
        for fault in &self.faults {
            if !classes.contains(&fault.class()) {
                classes.push(fault.class());
            }
        }
        classes
    }
}

/// An instruction that the active policy admits: what a batch's changes rest on.
///
/// Made by [`MutationMode::instruction_linked`](crate::authority::MutationMode::instruction_linked),
/// which asks for what every batch does, and kept to itself by
/// [`InstructedSurface`](crate::authority::InstructedSurface), which asks with each change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionLink {
    instruction_ref: String,
    intent: String,
    policy_digest: String,
    normalizer_id: String,
    #[serde(skip)]
    classification: Classification,
    #[serde(skip)]
    claims: ClaimSet,
    #[serde(skip)]
    scope: Box<InstructionScope>,
}

impl InstructionLink {
    /// Returns `instruction://<id>/<digest>`.
    pub(crate) fn instruction_ref(&self) -> &str {
        &self.instruction_ref
    }

    /// Returns what the instruction is for.
    pub(crate) fn intent(&self) -> &str {
        &self.intent
    }

    /// Returns the active policy's digest.
    pub(crate) fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Returns the normaliser that evidence must be bound to.
    pub(crate) fn normalizer_id(&self) -> &str {
        &self.normalizer_id
    }

    /// Returns what kind of instruction it is.
    pub(crate) const fn classification(&self) -> &Classification {
        &self.classification
    }

    /// Returns what the instruction covers.
    pub(crate) fn scope(&self) -> &InstructionScope {
        &self.scope
    }

    /// Returns the claims of the instruction.
    pub(crate) const fn claims(&self) -> &ClaimSet {
        &self.claims
    }
}

impl Instruction {
    /// Returns what keeps the instruction from authorising some changes under
    /// a policy, in the order in which it is looked at.
    pub fn faults(
        &self,
        policy: &InstructionPolicy,
        needed: &[ChangeMorphism],
    ) -> Vec<BindingFault> {
        let envelope = self.envelope();
        let mut faults = Vec::new();
        if envelope.policy_digest != policy.policy_digest() {
            faults.push(BindingFault::PolicyDigest {
                active: policy.policy_digest().to_owned(),
                found: envelope.policy_digest.clone(),
            });
        }
        let kind = policy.classify(envelope.instruction_type.as_deref());
        if matches!(kind, Classification::Unknown { .. }) && !envelope.typing_policy.allow_unknown {
            faults.push(BindingFault::Unknown(kind));
        }
        if !policy
            .allowed_normalizers()
            .contains(&envelope.normalizer_id)
        {
            faults.push(BindingFault::Normalizer {
                found: envelope.normalizer_id.clone(),
                allowed: listed(policy.allowed_normalizers()),
            });
        }
        for check in envelope
            .requested_checks
            .difference(policy.allowed_checks())
        {
            faults.push(BindingFault::Check {
                found: check.clone(),
                allowed: listed(policy.allowed_checks()),
            });
        }
        let claims = self.claims();
        for kind in needed {
            if !claims.covers(kind.claim()) {
                faults.push(BindingFault::Claim(*kind));
            }
        }
        faults
    }

    /// Returns what keeps the harness from acting under the instruction: all of
    /// [`Instruction::faults`], and checks that it would skip in silence.
    pub fn faults_to_act(
        &self,
        policy: &InstructionPolicy,
        needed: &[ChangeMorphism],
    ) -> Vec<BindingFault> {
        let mut faults = self.faults(policy, needed);
        let allowed = policy.allowed_checks();
        for check in self.envelope().requested_checks.intersection(allowed) {
            if !KNOWN_CHECKS.contains(&check.as_str()) {
                let found = check.clone();
                faults.push(BindingFault::CheckUnknown { found });
            }
        }
        faults
    }

    /// Binds the instruction to the active policy, for some changes.
    ///
    /// # Errors
    ///
    /// [`BindingError`] with every reason to refuse it.
    pub(crate) fn bind(
        &self,
        policy: &InstructionPolicy,
        needed: &[ChangeMorphism],
    ) -> Result<InstructionLink, BindingError> {
        let faults = self.faults_to_act(policy, needed);
        if !faults.is_empty() {
            return Err(BindingError {
                id: self.id().to_owned(),
                reference: self.reference(),
                classification: policy.classify(self.envelope().instruction_type.as_deref()),
                faults,
            });
        }
        let envelope = self.envelope();
        Ok(InstructionLink {
            instruction_ref: self.reference(),
            intent: envelope.intent.clone(),
            policy_digest: envelope.policy_digest.clone(),
            normalizer_id: envelope.normalizer_id.clone(),
            classification: policy.classify(envelope.instruction_type.as_deref()),
            claims: self.claims(),
            scope: Box::new(envelope.scope.clone()),
        })
    }
}

fn listed(words: &BTreeSet<String>) -> String {
    quoted(words.iter().map(String::as_str))
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
