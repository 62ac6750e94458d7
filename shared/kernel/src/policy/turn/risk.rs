//! How much is at stake in an issue, and what work on it needs.

use super::artifact::TurnPolicyError;
use crate::json::canonical;
use crate::json::read::{flag, texts};
use crate::policy::sandbox::SandboxMode;
use crate::turn::word::RiskTier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The `risk` of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RiskRules {
    /// The rules, in their order: the first that fits an issue decides its tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub rules: Vec<RiskRule>,
    /// The tier of an issue that no rule fits.
    pub otherwise: RiskTier,
    /// What each tier needs, also where that is nothing.
    pub controls: BTreeMap<RiskTier, RiskControls>,
}

/// Which issues are of a tier: those with one of the labels and one of the types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RiskRule {
    /// The tier.
    pub tier: RiskTier,
    /// Labels; any issue where empty.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub labels: Vec<String>,
    /// Types of issues; any where empty.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub issue_types: Vec<String>,
}

/// What work on issues of a tier needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RiskControls {
    /// Adapters that may work; any where empty.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub adapters: Vec<String>,
    /// Modes of confinement that are enough; any where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub confinement: Vec<SandboxMode>,
    /// Whether each tool call must be asked about before it runs.
    #[serde(default, deserialize_with = "flag")]
    #[schemars(default)]
    pub hooks: bool,
}

/// What work on an issue would be done by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSetup<'a> {
    /// The adapter of the work command.
    pub adapter: &'a str,
    /// The mode of confinement.
    pub confinement: SandboxMode,
    /// Whether hooks ask about each tool call.
    pub hooks: bool,
}

impl RiskRules {
    pub(super) fn check(&self) -> Result<(), TurnPolicyError> {
        let given = self.rules.iter().map(|rule| rule.tier);
        let mut tiers = given.chain([self.otherwise]);
        match tiers.find(|tier| !self.controls.contains_key(tier)) {
            Some(tier) => Err(TurnPolicyError::ControlsMissing {
                tier: tier.as_str(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the tier of an issue.
    pub fn tier_of<'a>(
        &self,
        labels: impl Iterator<Item = &'a str> + Clone,
        issue_type: &str,
    ) -> RiskTier {
        let mut rules = self.rules.iter();
        let fits = |rule: &&RiskRule| {
            let has = |label: &str| rule.labels.iter().any(|one| one == label);
            (rule.labels.is_empty() || labels.clone().any(has))
                && (rule.issue_types.is_empty()
                    || rule.issue_types.iter().any(|one| one == issue_type))
        };
        rules.find(fits).map_or(self.otherwise, |rule| rule.tier)
    }

    /// Returns what a tier needs and work would not have, by the name of the
    /// control.
    pub fn unmet(&self, tier: RiskTier, setup: &WorkSetup<'_>) -> Option<&'static str> {
        let Some(controls) = self.controls.get(&tier) else {
            return Some("controls");
        };
        let (adapters, modes) = (&controls.adapters, &controls.confinement);
        if !adapters.is_empty() && !adapters.iter().any(|one| one == setup.adapter) {
            Some("adapters")
        } else if !modes.is_empty() && !modes.contains(&setup.confinement) {
            Some("confinement")
        } else if controls.hooks && !setup.hooks {
            Some("hooks")
        } else {
            None
        }
    }

    /// Returns the control profile of each tier that work meets: the digest of
    /// what the tier needs.
    pub fn profiles(&self, setup: &WorkSetup<'_>) -> BTreeMap<RiskTier, String> {
        let tiers = self.controls.iter();
        let met = tiers.filter(|(tier, _)| self.unmet(**tier, setup).is_none());
        met.map(|(tier, controls)| (*tier, canonical::digest(controls)))
            .collect()
    }
}
