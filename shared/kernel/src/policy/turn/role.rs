//! What an agent may read, write and hand over in its role.

use super::artifact::TurnPolicyError;
use crate::json::canonical;
use crate::json::read::flag;
use crate::turn::constraints::{HandoffConstraints, ScopeConstraints};
use crate::turn::word::OrchestrationRole;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The `roles` of a policy. An agent that starts others is an orchestrator, any
/// other one a specialist. A role without a rule may change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRules {
    /// Of an agent that starts others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestrator: Option<RoleRule>,
    /// Of any other agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specialist: Option<RoleRule>,
}

/// What one role may do. An entry that ends in `/` represents everything below
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRule {
    /// What may be read beside what may be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub readable: BTreeSet<String>,
    /// The files that a step may change, from the worktree's root.
    pub writable: BTreeSet<String>,
    /// To whom it may hand over; where absent, no handoff is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffRule>,
}

/// The contract of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandoffRule {
    /// Who may take over; at least one.
    pub targets: BTreeSet<String>,
    /// Artifacts that must go with it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    pub required_artifacts: BTreeSet<String>,
    /// Whether there must be a way back.
    #[serde(default, deserialize_with = "flag")]
    #[schemars(default)]
    pub require_return_path: bool,
}

impl RoleRules {
    pub(super) fn check(&self) -> Result<(), TurnPolicyError> {
        for role in OrchestrationRole::ALL {
            let handoff = self.of(*role).and_then(|rule| rule.handoff.as_ref());
            // Without one the gate would allow any target.
            if handoff.is_some_and(|handoff| handoff.targets.is_empty()) {
                let role = role.as_str();
                return Err(TurnPolicyError::TargetsMissing { role });
            }
        }
        Ok(())
    }

    /// Returns the rule of a role.
    pub const fn of(&self, role: OrchestrationRole) -> Option<&RoleRule> {
        match role {
            OrchestrationRole::Orchestrator => self.orchestrator.as_ref(),
            OrchestrationRole::Specialist => self.specialist.as_ref(),
        }
    }
}

impl RoleRule {
    /// Returns what the gate holds the role to.
    pub fn scope(&self, role: OrchestrationRole) -> ScopeConstraints {
        ScopeConstraints {
            role: Some(role),
            readable: self.readable.clone(),
            writable: self.writable.clone(),
            ..ScopeConstraints::default()
        }
    }
}

impl HandoffRule {
    /// Returns the digest of the contract.
    pub fn digest(&self) -> String {
        canonical::digest(self)
    }

    /// Returns what the gate holds a transfer to.
    pub fn constraints(&self) -> HandoffConstraints {
        HandoffConstraints {
            required_artifact_refs: self.required_artifacts.clone(),
            allowed_targets: self.targets.clone(),
            require_return_path: self.require_return_path,
            contract_digest: Some(self.digest()),
            ..HandoffConstraints::default()
        }
    }
}
