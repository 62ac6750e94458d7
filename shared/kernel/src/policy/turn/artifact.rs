//! The turn policy artifact, bound by its digest.

use super::compaction::CompactionRules;
use super::limits::CallLimits;
use super::output::OutputRules;
use super::risk::RiskRules;
use super::role::RoleRules;
use super::rule::{RuleDecision, ToolRule};
use super::statement::SetupStatement;
use super::stop::StopRules;
use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::read::text;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind of a turn policy artifact.
pub const POLICY_KIND: &str = "premath.harness.turn_policy.v1";

/// Where a repository keeps a policy of its own, from its root.
pub const POLICY_PLACE: &str = "policies/control/harness-turn-policy-v1.json";

/// The policy of a repository that has none of its own.
const EMBEDDED: &str = include_str!("../turn_policy_default.json");

/// A valid policy whose digest is that of its content.
///
/// A field that this build does not know is refused: a rule with a misspelt
/// condition would match what its author did not mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = add_head)]
pub struct TurnPolicy {
    /// The policy's id.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    policy_id: String,
    /// `pol1_` and the digest of the canonical policy without this field; one
    /// that does not match stops the run.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"^pol1_[0-9a-f]{64}$"))]
    policy_digest: String,
    /// The rules about tools, in their order: the first that matches decides.
    tools: Vec<ToolRule>,
    /// How many calls a turn may have.
    calls: CallLimits,
    /// When a turn ends.
    stop: StopRules,
    /// How much of a result the model may be shown; all of it where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputRules>,
    /// Whether an agent may summarise its context; it may where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compaction: Option<CompactionRules>,
    /// What issues need by what is at stake; nothing where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    risk: Option<RiskRules>,
    /// What an agent may do in its role; where absent, anything but a handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roles: Option<RoleRules>,
    /// What the operator states about the agent's set-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<SetupStatement>,
}

/// A policy that stops the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnPolicyError {
    /// It does not have the shape of a policy; the source names the field.
    #[error("cannot read the turn policy")]
    Shape(#[from] FieldError),
    /// Two rules bear one id.
    #[error("the turn policy has two rules `{rule_id}`")]
    RuleIdDuplicate {
        /// The id.
        rule_id: String,
    },
    /// A rule that denies has no reason for the agent.
    #[error("the rule `{rule_id}` of the turn policy denies without a reason")]
    ReasonMissing {
        /// The rule.
        rule_id: String,
    },
    /// There are more repair rounds than agents allow.
    #[error("`stop.repairRounds` of the turn policy is a whole number from 0 to 7, found {found}")]
    TooManyRounds {
        /// The number that was found.
        found: u64,
    },
    /// A risk tier is given to issues, and `risk.controls` does not have it.
    #[error(
        "`risk.controls` of the turn policy has no `{tier}`; write {{}} where it needs nothing"
    )]
    ControlsMissing {
        /// The tier.
        tier: &'static str,
    },
    /// A handoff is allowed to no one by name.
    #[error(
        "`roles.{role}.handoff.targets` of the turn policy is empty; name who may take over, or \
         leave `handoff` out"
    )]
    TargetsMissing {
        /// The role.
        role: &'static str,
    },
    /// The digest is not that of the content.
    #[error("wrong policyDigest of the turn policy: expected `{expected}`, found `{found}`")]
    DigestMismatch {
        /// The digest of the content.
        expected: String,
        /// The digest that was found.
        found: String,
    },
}

impl TurnPolicyError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::DigestMismatch { .. } => FailureClass::TurnPolicyDigestMismatch,
            _ => FailureClass::TurnPolicyInvalid,
        }
    }
}

impl TurnPolicy {
    /// Reads a policy artifact.
    ///
    /// # Errors
    ///
    /// The first thing that does not fit: the shape, a rule, and last the
    /// digest.
    pub fn parse(bytes: &[u8]) -> Result<Self, TurnPolicyError> {
        let document = Document::parse_strict(bytes)?;
        let expected = canonical::policy_digest(document.fields());
        let tools = document.fields().get("tools").cloned();
        let read = document.of_kind("policyKind", POLICY_KIND)?.read_known();
        let policy: Self = read.map_err(|error| with_place(error, tools.as_ref()))?;
        policy.check()?;
        if policy.policy_digest != expected {
            return Err(TurnPolicyError::DigestMismatch {
                expected,
                found: policy.policy_digest,
            });
        }
        Ok(policy)
    }

    /// Returns the policy of a repository that has none of its own.
    ///
    /// # Errors
    ///
    /// None in a build that passed its tests.
    pub fn embedded() -> Result<Self, TurnPolicyError> {
        Self::parse(EMBEDDED.as_bytes())
    }

    /// Returns the embedded policy's artifact, for a user to start from.
    pub const fn embedded_text() -> &'static str {
        EMBEDDED
    }

    /// Returns the digest that an artifact must carry.
    ///
    /// # Errors
    ///
    /// The bytes are not a JSON object.
    pub fn digest(bytes: &[u8]) -> Result<String, TurnPolicyError> {
        Ok(canonical::policy_digest(
            Document::parse_strict(bytes)?.fields(),
        ))
    }

    fn check(&self) -> Result<(), TurnPolicyError> {
        let mut ids = BTreeSet::new();
        for rule in &self.tools {
            let rule_id = rule.rule_id.clone();
            if !ids.insert(&rule.rule_id) {
                return Err(TurnPolicyError::RuleIdDuplicate { rule_id });
            }
            if rule.decision == RuleDecision::Deny && rule.reason.trim().is_empty() {
                return Err(TurnPolicyError::ReasonMissing { rule_id });
            }
        }
        self.stop.check()?;
        self.roles.as_ref().map_or(Ok(()), RoleRules::check)?;
        self.risk.as_ref().map_or(Ok(()), RiskRules::check)
    }

    /// Returns the policy's id.
    pub fn policy_id(&self) -> &str {
        &self.policy_id
    }

    /// Returns the digest that the policy is bound by.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Returns the rules about tools, in their order.
    pub fn tools(&self) -> &[ToolRule] {
        &self.tools
    }

    /// Returns how many calls a turn may have.
    pub const fn calls(&self) -> &CallLimits {
        &self.calls
    }

    /// Returns when a turn ends.
    pub const fn stop(&self) -> &StopRules {
        &self.stop
    }

    /// Returns how much of a result the model may be shown.
    pub const fn output(&self) -> Option<&OutputRules> {
        self.output.as_ref()
    }

    /// Returns whether an agent may summarise its context; none where the policy
    /// leaves it open.
    pub const fn compaction(&self) -> Option<&CompactionRules> {
        self.compaction.as_ref()
    }

    /// Returns what issues need by what is at stake.
    pub const fn risk(&self) -> Option<&RiskRules> {
        self.risk.as_ref()
    }

    /// Returns what an agent may do in its role.
    pub const fn roles(&self) -> Option<&RoleRules> {
        self.roles.as_ref()
    }

    /// Returns what the operator states about the agent's set-up.
    pub const fn setup(&self) -> Option<&SetupStatement> {
        self.setup.as_ref()
    }
}

/// Names the rule that has an unknown field: its path alone is that of all rules.
fn with_place(error: FieldError, tools: Option<&Value>) -> FieldError {
    let FieldError::Unknown { field } = &error else {
        return error;
    };
    let name = field.strip_prefix("tools[].");
    let rules = tools.and_then(Value::as_array);
    let place = name.zip(rules).and_then(|(name, rules)| {
        let place = rules.iter().position(|rule| rule.get(name).is_some())?;
        Some(format!("tools[{place}].{name}"))
    });
    match place {
        Some(field) => FieldError::Unknown { field },
        None => error,
    }
}

/// Adds what an artifact has and a policy that was read has no field for.
fn add_head(schema: &mut Schema) {
    crate::json::schema::require(schema, "schema", crate::json::schema::version());
    crate::json::schema::require(
        schema,
        "policyKind",
        json_schema!({"type": "string", "const": POLICY_KIND}),
    );
}
