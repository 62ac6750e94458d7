//! Reads the constraint blocks (`contracts.md` 2).
//!
//! Ours are trimmed as they are read; the shared ones are trimmed when they are
//! compared.

use super::super::constraints::{
    AutonomyTrigger, CompactionConstraints, Constraints, Counts, DecompositionConstraints,
    EvalConstraints, GovernanceProfile, GuardrailConstraints, HandoffConstraints, Lineage,
    Measures, MutationConstraints, PolicyProvenance, Probe, ProtocolConstraints,
    RedTeamConstraints, RiskConstraints, ScopeConstraints, SelfEvolutionConstraints, TokenCost,
    ToolConstraints, TraceConstraints, TruncationConstraints,
};
use super::super::path::EvidenceError;
use super::super::reader::BlockFields;

pub(super) fn constraints(fields: &mut BlockFields<'_>) -> Result<Constraints, EvidenceError> {
    Ok(Constraints {
        governance_profile: fields.optional_object("governanceProfile", governance)?,
        protocol_constraints: fields.optional_object("protocolConstraints", |block| {
            Ok(ProtocolConstraints {
                parallel_transport_order_valid: block
                    .optional_flag("parallelTransportOrderValid")?,
            })
        })?,
        handoff_constraints: fields.optional_object("handoffConstraints", handoff)?,
        truncation_constraints: fields.optional_object("truncationConstraints", |block| {
            Ok(TruncationConstraints {
                required: block.flag("required")?,
                valid: block.flag("valid")?,
            })
        })?,
        decomposition_constraints: fields
            .optional_object("decompositionConstraints", decomposition)?,
        tool_constraints: fields.optional_object("toolConstraints", tools)?,
        guardrail_constraints: fields.optional_object("guardrailConstraints", |block| {
            Ok(GuardrailConstraints {
                required_stages: block.words("requiredStages")?,
            })
        })?,
        compaction_constraints: fields.optional_object("compactionConstraints", |block| {
            Ok(CompactionConstraints {
                required_refs: block.names("requiredRefs")?,
            })
        })?,
        scope_constraints: fields.optional_object("scopeConstraints", scope)?,
        trace_constraints: fields.optional_object("traceConstraints", |block| {
            Ok(TraceConstraints {
                admitted_modes: block.words("admittedModes")?,
                zero_data_retention: block.flag("zeroDataRetention")?,
            })
        })?,
        risk_constraints: fields.optional_object("riskConstraints", risk)?,
        eval_constraints: fields.optional_object("evalConstraints", evaluation)?,
        red_team_constraints: fields.optional_object("redTeamConstraints", red_team)?,
        self_evolution_constraints: fields.optional_object(
            "selfEvolutionConstraints",
            |block| {
                Ok(SelfEvolutionConstraints {
                    proposed: block.required_flag("proposed")?,
                    retry_ref: block.text("retryRef")?,
                    escalation_ref: block.text("escalationRef")?,
                    rollback_ref: block.text("rollbackRef")?,
                })
            },
        )?,
        mutation_constraints: fields.optional_object("mutationConstraints", mutation)?,
    })
}

fn tools(block: &mut BlockFields<'_>) -> Result<ToolConstraints, EvidenceError> {
    Ok(ToolConstraints {
        tool_catalog: block.optional_names("toolCatalog")?,
        deferred_tools: block.optional_names("deferredTools")?,
        tool_examples: block.optional_map("toolExamples", |examples, tool| {
            Ok(examples.payload(tool).unwrap_or_default())
        })?,
        allowed_callers: block
            .optional_map("allowedCallers", |callers, tool| callers.names(tool))?,
        code_execution_tools: block.names("codeExecutionTools")?,
        programmatic_callers: block.names("programmaticCallers")?,
    })
}

fn evaluation(block: &mut BlockFields<'_>) -> Result<EvalConstraints, EvidenceError> {
    Ok(EvalConstraints {
        policy_digest: block.text("policyDigest")?,
        thresholds: block.object("thresholds", measures)?,
        measured: block
            .optional_object("measured", measures)?
            .unwrap_or_default(),
        counts: block.optional_object("counts", |counts| {
            Ok(Counts {
                true_positives: counts.count("truePositives")?,
                false_positives: counts.count("falsePositives")?,
                false_negatives: counts.count("falseNegatives")?,
            })
        })?,
        lineage: block.optional_object("lineage", |lineage| {
            Ok(Lineage {
                dataset_ref: lineage.text("datasetRef")?,
                run_ref: lineage.text("runRef")?,
            })
        })?,
        token_cost: block.optional_object("tokenCost", |cost| {
            Ok(TokenCost {
                baseline: cost.count("baseline")?,
                measured: cost.count("measured")?,
            })
        })?,
    })
}

fn measures(block: &mut BlockFields<'_>) -> Result<Measures, EvidenceError> {
    Ok(Measures {
        precision: block.optional_share("precision")?,
        recall: block.optional_share("recall")?,
        f1: block.optional_share("f1")?,
    })
}

fn red_team(block: &mut BlockFields<'_>) -> Result<RedTeamConstraints, EvidenceError> {
    Ok(RedTeamConstraints {
        policy_digest: block.text("policyDigest")?,
        min_probes: block.optional_count("minProbes")?.unwrap_or_default(),
        required_plugins: block.names("requiredPlugins")?,
        required_strategies: block.names("requiredStrategies")?,
        probes: block.keyed_rows(
            "probes",
            "probeId",
            |probe: &Probe| &probe.probe_id,
            |probe| {
                Ok(Probe {
                    probe_id: probe.name("probeId")?,
                    plugin: probe.name("plugin")?,
                    strategy: probe.name("strategy")?,
                    passed: probe.required_flag("passed")?,
                })
            },
        )?,
    })
}

fn governance(fields: &mut BlockFields<'_>) -> Result<GovernanceProfile, EvidenceError> {
    Ok(GovernanceProfile {
        claim_id: fields.optional_string("claimId")?,
        claimed: fields.required_flag("claimed")?,
        policy_provenance: fields.optional_object("policyProvenance", |block| {
            Ok(PolicyProvenance {
                pinned: block.required_flag("pinned")?,
                package_ref: block.optional_string("packageRef")?,
                expected_digest: block.optional_string("expectedDigest")?,
                bound_digest: block.optional_string("boundDigest")?,
            })
        })?,
    })
}

fn handoff(block: &mut BlockFields<'_>) -> Result<HandoffConstraints, EvidenceError> {
    Ok(HandoffConstraints {
        required_artifact_refs: block.refs("requiredArtifactRefs")?,
        allowed_targets: block.refs("allowedTargets")?,
        require_return_path: block.flag("requireReturnPath")?,
        available_artifact_refs: block.optional_names("availableArtifactRefs")?,
        allowed_roles: block.words("allowedRoles")?,
        contract_digest: block.text("contractDigest")?,
    })
}

fn decomposition(block: &mut BlockFields<'_>) -> Result<DecompositionConstraints, EvidenceError> {
    Ok(DecompositionConstraints {
        admissible: block.optional_flag("admissible")?,
        expected_execution_pattern: block.optional_string("expectedExecutionPattern")?,
        expected_policy_digest: block.optional_string("expectedPolicyDigest")?,
        max_branches: block.optional_count("maxBranches")?,
        require_trigger: block.flag("requireTrigger")?,
        trigger: block.optional_object("trigger", |trigger| {
            Ok(AutonomyTrigger {
                metric: trigger.name("metric")?,
                baseline: trigger.number("baseline")?,
                measured: trigger.number("measured")?,
            })
        })?,
    })
}

fn scope(block: &mut BlockFields<'_>) -> Result<ScopeConstraints, EvidenceError> {
    Ok(ScopeConstraints {
        role: block.optional_word("role")?,
        readable: block.names("readable")?,
        writable: block.names("writable")?,
        owners: block.map("owners", |owners, entry| owners.word(entry))?,
    })
}

fn risk(block: &mut BlockFields<'_>) -> Result<RiskConstraints, EvidenceError> {
    Ok(RiskConstraints {
        control_profiles: block
            .word_map("controlProfiles", |profiles, tier| profiles.text(tier))?
            .into_iter()
            .filter_map(|(tier, profile)| Some((tier, profile?)))
            .collect(),
    })
}

fn mutation(block: &mut BlockFields<'_>) -> Result<MutationConstraints, EvidenceError> {
    Ok(MutationConstraints {
        target: block.optional_word("target")?,
        active_policy_digest: block.text("activePolicyDigest")?,
        required_claims: block.names("requiredClaims")?,
        claims: block.names("claims")?,
    })
}
