//! What the turn policy demands of a turn beside its calls: stop reasons, risk
//! tier, role, and what the operator states about the set-up.

use crate::policy::TurnPolicies;
use premath_kernel::json::canonical;
use premath_kernel::policy::turn::{RoleRules, SetupStatement};
use premath_kernel::turn::constraints::{RiskConstraints, ScopeConstraints, ToolConstraints};
use premath_kernel::turn::evidence::{Policy, ProtocolStatePolicy, ScopeAccess, TruncationPolicy};
use premath_kernel::turn::word::{OrchestrationRole, ScopeMode};
use premath_kernel::turn::{ExecutionPattern, JoinCheckInput};

/// Binds a turn to the demands. Another scope, contract or set of tools that a file
/// of evidence binds is kept, and the gate refuses the turn; all else that it binds
/// is replaced, and recorded as a claim.
pub(crate) fn bind(input: &mut JoinCheckInput, policies: &TurnPolicies) {
    let Some(policy) = policies.turn.as_deref() else {
        return;
    };
    let spec = &mut input.evidence.call_spec;
    if let Some(handled) = &policy.stop().handled_stop_reasons {
        spec.protocol_state_policy = Some(Policy::Content(ProtocolStatePolicy {
            handled_stop_reasons: handled.clone(),
            continue_on: None,
        }));
    }
    if let Some(output) = policy.output() {
        spec.tool_response_truncation_policy = Some(Policy::Content(TruncationPolicy {
            max_bytes: output.max_result_bytes,
            marker: output.marker.clone(),
        }));
    }
    if policy.risk().is_some() {
        spec.risk_tier = policies.demand.tier;
        input.constraints.risk_constraints = Some(RiskConstraints {
            control_profiles: policies.demand.profiles.clone(),
        });
    }
    if let Some(rules) = policy.compaction() {
        spec.compaction_policy_digest = rules.allowed.then(|| rules.digest());
    }
    if let Some(roles) = policy.roles() {
        bind_role(input, policies, roles);
    }
    if let Some(setup) = policy.setup() {
        bind_setup(input, setup);
    }
}

/// Holds the turn to what its role may do.
fn bind_role(input: &mut JoinCheckInput, policies: &TurnPolicies, roles: &RoleRules) {
    let spec = &mut input.evidence.call_spec;
    let role = role_in(&spec.execution_pattern);
    let role = *spec.orchestration_role.get_or_insert(role);
    let changed = policies.demand.changed.iter();
    let writes = changed.map(|path| ScopeAccess {
        reference: path.clone(),
        access: ScopeMode::Write,
        tool_call_id: None,
    });
    input.evidence.facts.scope_accesses.extend(writes);
    let rule = roles.of(role);
    // A role without a rule may change nothing: a file states its role itself.
    let scope = rule.map_or_else(
        || ScopeConstraints {
            role: Some(role),
            ..ScopeConstraints::default()
        },
        |rule| rule.scope(role),
    );
    let digest = canonical::digest(&scope);
    spec.context_scope_digest.get_or_insert(digest);
    input.constraints.scope_constraints = Some(scope);
    if let Some(handoff) = rule.and_then(|rule| rule.handoff.as_ref()) {
        let digest = handoff.digest();
        spec.handoff_contract_digest.get_or_insert(digest);
        // Who hands nothing over owes no artifact and no way back.
        if input.evidence.handoff.is_some() {
            input.constraints.handoff_constraints = Some(handoff.constraints());
        }
    }
}

/// Returns the role of an agent, by what its turn did.
pub(crate) const fn role_in(pattern: &ExecutionPattern) -> OrchestrationRole {
    match pattern {
        ExecutionPattern::OrchestratorWorkers => OrchestrationRole::Orchestrator,
        _ => OrchestrationRole::Specialist,
    }
}

fn bind_setup(input: &mut JoinCheckInput, setup: &SetupStatement) {
    let spec = &mut input.evidence.call_spec;
    // Nothing in a turn is compared with these: they are the operator's alone.
    for (stated, bound) in [
        (&setup.eval_profile_ref, &mut spec.eval_profile_ref),
        (
            &setup.eval_gate_policy_digest,
            &mut spec.eval_gate_policy_digest,
        ),
        (
            &setup.red_team_policy_digest,
            &mut spec.red_team_policy_digest,
        ),
    ] {
        if stated.is_some() {
            bound.clone_from(stated);
        }
    }
    if setup.pre_context_filter.is_some() {
        spec.pre_context_filter_policy = setup.pre_context_filter;
    }
    let deferred = setup.deferred_tools.as_ref().map(canonical::digest);
    let bind = |stated: &Option<String>, bound: &mut Option<String>| {
        if let (None, Some(stated)) = (&*bound, stated) {
            *bound = Some(stated.clone());
        }
    };
    bind(&deferred, &mut spec.defer_policy_digest);
    let examples = setup.tool_examples.as_ref().map(canonical::digest);
    bind(&examples, &mut spec.tool_example_digest);
    if deferred.is_none() && examples.is_none() {
        return;
    }
    let block = &mut input.constraints.tool_constraints;
    let block = block.get_or_insert_with(ToolConstraints::default);
    block.deferred_tools.clone_from(&setup.deferred_tools);
    block.tool_examples.clone_from(&setup.tool_examples);
}
