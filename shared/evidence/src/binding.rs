//! What the turn policy of the operator binds of an agent's turn, and what the
//! turn did as facts that the gate holds against it (`tool-gate.md` 4, 5).

use crate::adapter::hook::policy_name;
use crate::demand::role_in;
use crate::hook::HookJournal;
use crate::policy::TurnPolicies;
use crate::round::{AgentCallIn, AgentTurn, Within};
use premath_kernel::json::canonical;
use premath_kernel::policy::turn::{
    AgentCall, Caller, ToolClass, ToolVerdict, TurnPolicy, may_allow,
};
use premath_kernel::turn::constraints::GuardrailConstraints;
use premath_kernel::turn::evidence::{
    BranchRow, Compaction, GuardrailRow, ParallelPolicy, Policy, StopPolicy, ToolPolicy, ToolRule,
    Trace, TransportPolicy,
};
use premath_kernel::turn::word::{
    GuardrailStage, ObservabilityMode, ToolChoice, TransportEvent, TransportOrdering,
};
use premath_kernel::turn::{
    ActionMode, DecompositionConstraints, Evidence, ExecutionPattern, JoinCheckInput, join_check,
};
use std::collections::{BTreeMap, BTreeSet};

/// Binds a turn to the turn policy, and adds what was observed of it.
pub(crate) fn bind(
    input: &mut JoinCheckInput,
    turn: &AgentTurn<'_>,
    rounds: &[Within<'_>],
    calls: &[AgentCallIn<'_>],
) {
    let spec = &mut input.evidence.call_spec;
    spec.action_mode = ActionMode::Json;
    spec.tool_choice = Some(ToolChoice::Auto);
    let branches = branches(&input.evidence, rounds, calls);
    let spec = &mut input.evidence.call_spec;
    spec.execution_pattern = pattern(&branches, rounds, calls);
    spec.orchestration_role = Some(role_in(&spec.execution_pattern));
    input.evidence.facts.branches = branches;
    add_trace(&mut input.evidence, rounds);
    if let Some(policy) = turn.policies.turn.as_deref() {
        let most_open = policy.calls().max_open;
        let spec = &mut input.evidence.call_spec;
        spec.decomposition_policy_digest = canonical::digest(policy.calls());
        spec.parallel_policy = Some(Policy::Content(ParallelPolicy {
            admissible: most_open > 1,
            max_branches: None,
        }));
        spec.tool_transport_policy = Some(Policy::Content(TransportPolicy {
            parallel_tool_calls: most_open > 1,
            ordering: TransportOrdering::Relaxed,
        }));
        spec.stop_policy = Some(Policy::Content(StopPolicy {
            max_turns: Some(1 + policy.stop().repair_rounds),
            ..StopPolicy::default()
        }));
        input.evidence.facts.turn = Some(rounds.len() as u64);
        let own = input.evidence.tool_requests.iter();
        let own = own.filter(|row| row.schema_digest.is_some());
        let own: BTreeSet<&str> = own.map(|row| row.tool_name.as_str()).collect();
        let tools = own.into_iter().chain(admitted_tools(policy, calls));
        let tools = tools.map(|tool_name| ToolRule {
            tool_name: tool_name.to_owned(),
            schema_digest: None,
        });
        let tools = tools.collect();
        input.evidence.call_spec.tool_policy = Some(Policy::Content(ToolPolicy { tools }));
        add_guardrails(input, policy, rounds, calls);
        add_compaction(input, policy, rounds);
        constrain_callers(input, policy, calls);
    }
    add_catalog(&mut input.evidence, rounds);
    constrain_decomposition(input, turn.policies);
}

/// Holds a turn that was split up to the limits of the turn policy.
pub(crate) fn constrain_decomposition(input: &mut JoinCheckInput, policies: &TurnPolicies) {
    let Some(policy) = policies.turn.as_deref() else {
        return;
    };
    let calls = policy.calls();
    let admissible = match input.evidence.call_spec.execution_pattern {
        ExecutionPattern::OrchestratorWorkers => calls.subagents,
        ExecutionPattern::Parallel => calls.max_open > 1,
        _ => return,
    };
    input.constraints.decomposition_constraints = Some(DecompositionConstraints {
        admissible: Some(admissible),
        ..DecompositionConstraints::default()
    });
}

fn class_of(call: &AgentCallIn<'_>) -> Option<ToolClass> {
    let request = call.call.request.as_ref()?;
    Some((call.round.stream.agent().spec().hooks.class_of)(
        &request.tool,
    ))
}

/// Returns how the turn was arranged, from what happened.
fn pattern(
    branches: &[BranchRow],
    rounds: &[Within<'_>],
    calls: &[AgentCallIn<'_>],
) -> ExecutionPattern {
    if !branches.is_empty() {
        ExecutionPattern::OrchestratorWorkers
    } else if rounds.len() > 1 {
        ExecutionPattern::EvaluatorOptimizer
    } else if rounds.iter().any(has_overlap) {
        ExecutionPattern::Parallel
    } else if calls.is_empty() {
        ExecutionPattern::Single
    } else {
        ExecutionPattern::Chain
    }
}

/// Returns whether a call started a sub-agent.
fn is_worker(call: &AgentCallIn<'_>) -> bool {
    let has_run = call.call.is_ok() || call.call.result.is_none();
    has_run && class_of(call) == Some(ToolClass::Subagent)
}

/// Returns whether a call was made while another one ran.
fn has_overlap(round: &Within<'_>) -> bool {
    let mut open = BTreeSet::new();
    round.stream.transport().any(|(event, call)| match event {
        TransportEvent::Call => {
            open.insert(&call.id);
            open.len() > 1
        }
        TransportEvent::Output => {
            open.remove(&call.id);
            false
        }
    })
}

/// Returns the tools of the turn that the policy may allow. A tool all of whose
/// calls failed, the agent or its hooks having refused them, was never used.
fn admitted_tools<'a>(policy: &TurnPolicy, calls: &[AgentCallIn<'a>]) -> BTreeSet<&'a str> {
    let mut tools: BTreeMap<&'a str, bool> = BTreeMap::new();
    for one in calls {
        let (Some(request), Some(class)) = (&one.call.request, class_of(one)) else {
            continue;
        };
        let refused = one.round.stream.agent().spec().hooks.refused;
        let failure = one.call.failure();
        let is_refused =
            failure.is_some_and(|class| one.round.hooks.is_some() || refused.contains(&class));
        let call = AgentCall::of(class, &policy_name(class, &request.tool));
        let is_admitted = tools.entry(&*request.tool).or_insert(true);
        *is_admitted &= is_refused || may_allow(policy, &call);
    }
    let admitted = tools.into_iter().filter(|(_, is_admitted)| *is_admitted);
    admitted.map(|(tool, _)| tool).collect()
}

/// Adds the decisions of the hooks: each is one of a guardrail that decides
/// before a tool runs. Where hooks are on, a turn that used a tool has some.
fn add_guardrails(
    input: &mut JoinCheckInput,
    policy: &TurnPolicy,
    rounds: &[Within<'_>],
    calls: &[AgentCallIn<'_>],
) {
    let hooks = || rounds.iter().filter_map(|round| round.hooks);
    let used = calls
        .iter()
        .any(|call| call.round.hooks.is_some() && call.call.is_ok());
    let digest = canonical::digest(policy.tools());
    let row = |(sequence, verdict): (u64, &ToolVerdict)| GuardrailRow {
        sequence,
        stage: GuardrailStage::PreFlight,
        guardrail_id: verdict.rule_id.clone(),
        triggered: verdict.is_denial(),
        threshold: None,
        model_ref: None,
        policy_digest: Some(digest.clone()),
    };
    let verdicts = hooks().flat_map(HookJournal::verdicts);
    let rows: Vec<GuardrailRow> = (0..).zip(verdicts).map(row).collect();
    if rows.is_empty() && !used {
        return;
    }
    input.evidence.facts.guardrails = rows;
    input.evidence.call_spec.guardrail_stage_policy_digest = Some(digest);
    input.constraints.guardrail_constraints = Some(GuardrailConstraints {
        required_stages: BTreeSet::from([GuardrailStage::PreFlight]),
    });
}

/// Adds that the context was summarised, and under which rules. Where these do
/// not allow it, the turn is bound to no rules, and the gate refuses the summary.
fn add_compaction(input: &mut JoinCheckInput, policy: &TurnPolicy, rounds: &[Within<'_>]) {
    let rules = policy.compaction().copied().unwrap_or_default();
    if rules.allowed {
        input.evidence.call_spec.compaction_policy_digest = Some(rules.digest());
    }
    let mut views = rounds.iter().rev();
    let last = views.find_map(|round| round.stream.compaction_view());
    input.evidence.facts.compaction = last.map(|view| Compaction {
        policy_digest: rules.digest(),
        carried_forward_refs: BTreeSet::new(),
        view_digest: canonical::digest(&view),
    });
}

/// Adds the inventory of the agent's tools, where its stream lists them.
fn add_catalog(evidence: &mut Evidence, rounds: &[Within<'_>]) {
    let listed = rounds.iter().filter_map(|round| round.stream.tools());
    let listed: Vec<&BTreeSet<String>> = listed.collect();
    if listed.is_empty() {
        return;
    }
    let all: BTreeSet<&String> = listed.into_iter().flatten().collect();
    evidence.call_spec.tool_catalog_digest = Some(canonical::digest(&all));
}

/// Holds each tool of the turn to the callers that the policy may allow it to,
/// where a rule depends on the caller.
fn constrain_callers(input: &mut JoinCheckInput, policy: &TurnPolicy, calls: &[AgentCallIn<'_>]) {
    if policy.tools().iter().all(|rule| rule.callers.is_empty()) {
        return;
    }
    let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in calls {
        let (Some(request), Some(class)) = (&one.call.request, class_of(one)) else {
            continue;
        };
        let speaker = request.speaker.caller.as_deref();
        let Some(id) = one.round.parent(speaker) else {
            continue;
        };
        let caller = match speaker {
            Some(_) => Caller::Subagent,
            None => Caller::Agent,
        };
        let callers = allowed.entry(request.tool.to_string()).or_default();
        // Refused, it was never called.
        let is_refused = one.round.hooks.is_some() && one.call.failure().is_some();
        let call = AgentCall {
            caller,
            ..AgentCall::of(class, &policy_name(class, &request.tool))
        };
        if is_refused || may_allow(policy, &call) {
            callers.insert(id);
        }
    }
    let spec = &mut input.evidence.call_spec;
    spec.allowed_callers_digest = Some(canonical::digest(&allowed));
    let block = &mut input.constraints.tool_constraints;
    block.get_or_insert_default().allowed_callers = Some(allowed);
}

/// Adds where the turn was traced: the witness of each round names the files of
/// its stream.
fn add_trace(evidence: &mut Evidence, rounds: &[Within<'_>]) {
    let refs = rounds.iter().filter_map(Within::work);
    let trace_refs: BTreeSet<String> = refs.map(|call| call.witness_ref.clone()).collect();
    if trace_refs.is_empty() {
        return;
    }
    evidence.call_spec.observability_mode = Some(ObservabilityMode::Dashboard);
    evidence.facts.trace = Some(Trace {
        mode: ObservabilityMode::Dashboard,
        processor_ref: None,
        trace_refs,
    });
}

/// Returns a branch for each sub-agent, with the join of the calls that it made,
/// where the stream reports them. Sub-agents of which the stream reports nothing
/// are those of the hooks.
fn branches(
    evidence: &Evidence,
    rounds: &[Within<'_>],
    calls: &[AgentCallIn<'_>],
) -> Vec<BranchRow> {
    let streamed = streamed_branches(evidence, calls);
    if !streamed.is_empty() {
        return streamed;
    }
    let hooked = rounds.iter().flat_map(|round| {
        let subagents = (0..).zip(round.hooks.into_iter().flat_map(HookJournal::subagents));
        subagents.map(|(number, (id, has_ended))| BranchRow {
            branch_id: round.call_id(id.unwrap_or(&format!("subagent-{number}"))),
            join_closed: has_ended,
            join_set_digest: None,
        })
    });
    hooked.collect()
}

fn streamed_branches(evidence: &Evidence, calls: &[AgentCallIn<'_>]) -> Vec<BranchRow> {
    let branches = calls.iter().filter(|call| is_worker(call)).map(|call| {
        let has_ended = call.call.result.is_some();
        let is_seen = call.round.stream.agent().spec().hooks.streams_children;
        let join = is_seen.then(|| join_of(evidence, &call.id));
        let (is_closed, digest) = join.unwrap_or((true, None));
        BranchRow {
            branch_id: call.id.clone(),
            join_closed: has_ended && is_closed,
            join_set_digest: digest,
        }
    });
    branches.collect()
}

/// Judges the join of the calls that one call made; returns whether it is
/// closed, and its digest.
fn join_of(evidence: &Evidence, parent: &str) -> (bool, Option<String>) {
    let requests = evidence.tool_requests.iter();
    let requests: Vec<_> = requests
        .filter(|row| row.caller_id.as_deref() == Some(parent))
        .cloned()
        .collect();
    let ids: BTreeSet<&str> = requests.iter().map(|row| &*row.tool_call_id).collect();
    let is_of = |id: &str| ids.contains(id);
    let mut branch = Evidence::new(evidence.call_spec.clone(), evidence.protocol_state.clone());
    branch.call_spec.call_id = parent.to_owned();
    branch.call_spec.execution_pattern = ExecutionPattern::Chain;
    branch.protocol_state.stop_reason = "end_turn".to_owned();
    let results = evidence.tool_results.iter();
    branch.tool_results = results
        .filter(|row| is_of(&row.tool_call_id))
        .cloned()
        .collect();
    let uses = evidence.tool_use.iter();
    branch.tool_use = uses
        .filter(|row| is_of(&row.tool_call_id))
        .cloned()
        .collect();
    branch.tool_requests.clone_from(&requests);
    let judged = join_check(&JoinCheckInput::new(branch));
    judged.map_or((false, None), |judged| {
        let digests = judged.witness.digests;
        let join = judged.normalized.join_state.join_closed;
        (join, Some(digests.join_set_digest))
    })
}
