//! Gates before a policy changes, and the authority that is active
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.6`, `8`).

use super::super::block::block;
use super::super::word::{MutationTarget, ObservabilityMode, RiskTier};
use crate::json::read::{distinct, flag, or_default, share, unless_blank};
use serde::Deserializer;
use serde_json::Number;
use std::collections::{BTreeMap, BTreeSet};

block! {
    /// How a turn may be traced.
    #[derive(Default)]
    pub struct TraceConstraints {
        /// The modes that are admitted; any where empty.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub admitted_modes: BTreeSet<ObservabilityMode>,
        /// Whether nothing may be kept by anybody else: no dashboard, and a
        /// processor of one's own where there is one.
        #[serde(deserialize_with = "flag")]
        #[schemars(default)]
        pub zero_data_retention: bool,
    }
}

block! {
    /// The control profiles of risk tiers.
    #[derive(Default)]
    pub struct RiskConstraints {
        /// The profile of each tier.
        #[serde(deserialize_with = "profiles")]
        pub control_profiles: BTreeMap<RiskTier, String>,
    }
}

block! {
    /// The evaluation gate: what was demanded and what was measured.
    #[derive(Default)]
    pub struct EvalConstraints {
        /// The policy; it must be the call spec's `evalGatePolicyDigest`, where
        /// that is bound. Compared as it is: the writer of this block vouches that
        /// the thresholds are that policy's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy_digest: Option<String>,
        /// The least that must be reached, each 0 to 1.
        pub thresholds: Measures,
        /// What the evaluation says was reached.
        #[serde(deserialize_with = "or_default")]
        #[schemars(default)]
        pub measured: Measures,
        /// What it was computed from. Where given, the gate computes by itself,
        /// and a `measured` that disagrees fails closed.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub counts: Option<Counts>,
        /// What was evaluated, and by which run.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub lineage: Option<Lineage>,
        /// What the workload cost; a change of tool loading needs it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub token_cost: Option<TokenCost>,
    }
}

block! {
    /// Precision, recall and F1, each 0 to 1.
    #[derive(Default)]
    pub struct Measures {
        /// Of what was found, how much is right.
        #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
        pub precision: Option<Number>,
        /// Of what is right, how much was found.
        #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
        pub recall: Option<Number>,
        /// The harmonic mean of precision and recall.
        #[serde(deserialize_with = "share", skip_serializing_if = "Option::is_none")]
        pub f1: Option<Number>,
    }
}

block! {
    /// The outcomes of an evaluation on labelled data.
    #[derive(Copy, Default)]
    pub struct Counts {
        /// Found, and right.
        pub true_positives: u64,
        /// Found, and wrong.
        pub false_positives: u64,
        /// Right, and not found.
        pub false_negatives: u64,
    }
}

block! {
    /// What an evaluation rests on.
    #[derive(Default)]
    pub struct Lineage {
        /// The labelled data.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub dataset_ref: Option<String>,
        /// The run.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub run_ref: Option<String>,
    }
}

block! {
    /// What a workload cost, in tokens.
    #[derive(Copy, Default)]
    pub struct TokenCost {
        /// Tokens before the change.
        pub baseline: u64,
        /// Tokens with the change.
        pub measured: u64,
    }
}

block! {
    /// The adversarial regression gate: what was demanded and what was probed.
    #[derive(Default)]
    pub struct RedTeamConstraints {
        /// The policy; it must be the call spec's `redTeamPolicyDigest`, where that
        /// is bound. Compared as it is: the writer of this block vouches that its
        /// demands are that policy's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub policy_digest: Option<String>,
        /// The least number of probes.
        #[serde(deserialize_with = "or_default")]
        #[schemars(default)]
        pub min_probes: u64,
        /// Plugins of which at least one probe each must have run.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_plugins: BTreeSet<String>,
        /// Strategies of which at least one probe each must have run.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_strategies: BTreeSet<String>,
        /// The probes that ran; each must have passed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schemars(default)]
        pub probes: Vec<Probe>,
    }
}

block! {
    /// An adversarial probe.
    #[derive(Default)]
    pub struct Probe by probe_id {
        /// The probe; one that appears twice counts once.
        pub probe_id: String,
        /// The plugin that made it.
        pub plugin: String,
        /// The strategy that it was made by.
        pub strategy: String,
        /// Whether the agent withstood it.
        pub passed: bool,
    }
}

block! {
    /// What a self-evolving change must supply.
    #[derive(Default)]
    pub struct SelfEvolutionConstraints {
        /// Whether the turn proposes such a change.
        pub proposed: bool,
        /// The retry rule.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub retry_ref: Option<String>,
        /// The escalation rule.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub escalation_ref: Option<String>,
        /// The way back.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rollback_ref: Option<String>,
    }
}

block! {
    /// The authority that is active. These concern MutationReady alone; a step's
    /// own authority is asked besides, and by nothing that is in a file.
    #[derive(Default)]
    pub struct MutationConstraints {
        /// What the turn asks to change; an issue where absent.
        #[serde(deserialize_with = "unless_blank", skip_serializing_if = "Option::is_none")]
        pub target: Option<MutationTarget>,
        /// The mutation policy that is active.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub active_policy_digest: Option<String>,
        /// The claims that the change needs.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub required_claims: BTreeSet<String>,
        /// The claims that there are.
        #[serde(skip_serializing_if = "BTreeSet::is_empty")]
        #[schemars(default)]
        pub claims: BTreeSet<String>,
    }
}

/// Reads the profile of each tier; null is none.
fn profiles<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<RiskTier, String>, D::Error> {
    let profiles: BTreeMap<RiskTier, Option<String>> = distinct(deserializer)?;
    let named = |(tier, profile): (_, Option<_>)| Some((tier, profile?));
    Ok(profiles.into_iter().filter_map(named).collect())
}
