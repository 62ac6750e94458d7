//! The gate: which failure classes a turn has (`HARNESS-TYPESTATE 5`, `6`, `8`).
//!
//! A table of small rules. Every rule is asked, whatever the others say, so
//! that a person sees everything at once. The rules read facts alone and
//! nothing outside their arguments.

use super::constraints::{Constraints, GOVERNANCE_CLAIM, GovernanceProfile, PolicyProvenance};
use super::mutation::MutationBinding;
use super::normal::Normalized;
use super::word::{ActionMode, Disposition, ResultStatus};
use crate::failure::FailureClass;
use std::collections::{BTreeMap, BTreeSet};

/// Stop reasons that the protocol handles (`contracts.md` 2).
const HANDLED_STOP_REASONS: &[&str] = &["tool_use", "pause_turn", "max_tokens", "end_turn"];

/// Returns every class that keeps the join from being closed.
pub fn join_classes(turn: &Normalized, constraints: &Constraints) -> BTreeSet<FailureClass> {
    let case = Turn { turn, constraints };
    broken(JOIN_RULES, |rule| rule(&case))
}

/// Returns every class that concerns MutationReady and is not the join's own,
/// as far as it can be told without knowing the step.
///
/// Witness linkage is asked for, but of any step; policy binding, claims and
/// verification belong to a step and are asked by
/// [`JoinClosed::admit`](super::chain::JoinClosed::admit).
pub fn mutation_classes(turn: &Normalized, constraints: &Constraints) -> BTreeSet<FailureClass> {
    let case = Turn { turn, constraints };
    let mut classes = broken(MUTATION_RULES, |rule| rule(&case));
    classes.extend(broken(UNBOUND_RULES, |rule| rule(&case)));
    classes
}

/// Returns every class that keeps a turn from changing the issue of a step.
pub(super) fn admission_classes(
    turn: &Normalized,
    constraints: &Constraints,
    binding: &MutationBinding,
    demand: Demand,
) -> BTreeSet<FailureClass> {
    let case = Turn { turn, constraints };
    let mut classes = broken(MUTATION_RULES, |rule| rule(&case));
    let case = Admission {
        turn,
        binding,
        demand,
    };
    classes.extend(broken(ADMISSION_RULES, |rule| rule(&case)));
    classes
}

/// What a kind of change demands of its admission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) claim: &'static str,
    pub(super) verification: bool,
}

/// A rule over a turn: its class, and whether the turn breaks it.
type TurnRule = (FailureClass, fn(&Turn<'_>) -> bool);

/// A rule over a turn that asks to change one step's issue.
type AdmissionRule = (FailureClass, fn(&Admission<'_>) -> bool);

/// Asks every rule and gathers the classes of those that are broken.
fn broken<R>(rules: &[(FailureClass, R)], breaks: impl Fn(&R) -> bool) -> BTreeSet<FailureClass> {
    rules
        .iter()
        .filter(|(_, rule)| breaks(rule))
        .map(|(class, _)| *class)
        .collect()
}

struct Turn<'a> {
    turn: &'a Normalized,
    constraints: &'a Constraints,
}

struct Admission<'a> {
    turn: &'a Normalized,
    binding: &'a MutationBinding,
    demand: Demand,
}

const JOIN_RULES: &[TurnRule] = &[
    (FailureClass::ToolResultMissing, result_missing),
    (FailureClass::ToolResultOrphan, result_orphan),
    (FailureClass::ToolUseMissing, use_missing),
    (FailureClass::ToolUseWithoutResult, use_without_result),
    (FailureClass::ToolJoinIncomplete, join_incomplete),
    (FailureClass::ToolSchemaInvalid, error_untyped),
    (FailureClass::ToolSchemaInvalid, text_calls_unadapted),
    (
        FailureClass::ToolResponseTruncationPolicyViolation,
        truncation_invalid,
    ),
    (
        FailureClass::ProtocolStopReasonUnhandled,
        stop_reason_unhandled,
    ),
    (
        FailureClass::ProtocolParallelTransportOrderInvalid,
        transport_order_invalid,
    ),
    (
        FailureClass::ContextInjectionPointMissing,
        injection_point_missing,
    ),
    (
        FailureClass::ContextQueuePolicyViolation,
        queue_policy_violated,
    ),
    (
        FailureClass::CoordinationDecompositionPolicyViolation,
        decomposition_violated,
    ),
    (
        FailureClass::HandoffRequiredArtifactMissing,
        handoff_artifact_missing,
    ),
    (
        FailureClass::HandoffTargetNotAllowed,
        handoff_target_refused,
    ),
    (
        FailureClass::HandoffReturnPathMissing,
        handoff_return_path_missing,
    ),
    (
        FailureClass::GovernanceClaimIdInvalid,
        governance_claim_invalid,
    ),
    (
        FailureClass::GovernancePolicyPackageUnpinned,
        governance_unpinned,
    ),
    (
        FailureClass::GovernancePolicyPackageMismatch,
        governance_mismatch,
    ),
];

/// Rules of MutationReady that need no step.
const MUTATION_RULES: &[TurnRule] = &[
    (
        FailureClass::ContextInjectionPointMissing,
        continuation_injection_point_missing,
    ),
    (
        FailureClass::ContextQueuePolicyViolation,
        continuation_queue_policy_violated,
    ),
    (
        FailureClass::ToolUseUnknownResult,
        use_speaks_of_another_result,
    ),
    (
        FailureClass::MutationUseEvidenceMissing,
        discarded_without_reason,
    ),
    (
        FailureClass::MutationUseEvidenceMissing,
        consumed_without_provenance,
    ),
    (
        FailureClass::CoordinationDecompositionPolicyViolation,
        decomposition_unconstrained,
    ),
    (FailureClass::HandoffTargetNotAllowed, handoff_unconstrained),
];

/// Rules of MutationReady where no step is known.
const UNBOUND_RULES: &[TurnRule] = &[(
    FailureClass::MutationUseEvidenceMissing,
    linkage_to_any_step_missing,
)];

/// Rules of MutationReady for one step and one kind of change.
const ADMISSION_RULES: &[AdmissionRule] = &[
    (
        FailureClass::MutationUseEvidenceMissing,
        linkage_to_this_step_missing,
    ),
    (
        FailureClass::MutationPolicyDigestMismatch,
        policy_is_another,
    ),
    (FailureClass::MutationCapabilityClaimMissing, claim_missing),
    (FailureClass::CheckFailed, verification_not_passed),
];

// Requests, results and uses (HARNESS-TYPESTATE 5).

fn result_missing(case: &Turn<'_>) -> bool {
    !case.turn.join_state.missing_result_call_ids.is_empty()
}

fn result_orphan(case: &Turn<'_>) -> bool {
    !case.turn.join_state.orphan_result_call_ids.is_empty()
}

fn use_missing(case: &Turn<'_>) -> bool {
    !case.turn.join_state.missing_use_call_ids.is_empty()
}

fn use_without_result(case: &Turn<'_>) -> bool {
    !case.turn.join_state.unknown_use_call_ids.is_empty()
}

/// Derived from the four before.
fn join_incomplete(case: &Turn<'_>) -> bool {
    !case.turn.join_state.join_closed
}

// Shapes and modes (HARNESS-TYPESTATE 3.2, 7).

fn error_untyped(case: &Turn<'_>) -> bool {
    !case.turn.untyped_errors.is_empty()
}

fn text_calls_unadapted(case: &Turn<'_>) -> bool {
    let spec = &case.turn.call_spec;
    spec.action_mode == ActionMode::Text
        && spec.text_adapter_profile.is_none()
        && !case.turn.tool_requests.is_empty()
}

fn truncation_invalid(case: &Turn<'_>) -> bool {
    let block = case.constraints.truncation_constraints.as_ref();
    block.is_some_and(|block| block.required && !block.valid)
}

// Protocol (HARNESS-TYPESTATE 5).

fn stop_reason_unhandled(case: &Turn<'_>) -> bool {
    !HANDLED_STOP_REASONS.contains(&case.turn.protocol_state.stop_reason.as_str())
}

fn transport_order_invalid(case: &Turn<'_>) -> bool {
    let block = case.constraints.protocol_constraints.as_ref();
    block.is_some_and(|block| block.parallel_transport_order_valid == Some(false))
}

// Context (contracts.md 2).

/// The context counts where the loop goes on, or where something was built on a result.
fn context_in_scope(case: &Turn<'_>) -> bool {
    case.turn.protocol_state.continuation_allowed
        || case
            .turn
            .tool_use
            .iter()
            .any(|row| row.disposition == Disposition::Consumed)
}

fn injection_point_missing(case: &Turn<'_>) -> bool {
    let context = &case.turn.context_state;
    context_in_scope(case)
        && (!context.missing_render_call_ids.is_empty() || !context.state_view_present)
}

fn queue_policy_violated(case: &Turn<'_>) -> bool {
    let context = &case.turn.context_state;
    context_in_scope(case)
        && !(context.queue_reduction_present
            && context.render_policy_valid
            && context.queue_policy_valid
            && context.state_view_policy_valid)
}

fn continuation_injection_point_missing(case: &Turn<'_>) -> bool {
    case.turn.protocol_state.continuation_allowed && injection_point_missing(case)
}

fn continuation_queue_policy_violated(case: &Turn<'_>) -> bool {
    case.turn.protocol_state.continuation_allowed && queue_policy_violated(case)
}

// Decomposition and handoff (HARNESS-TYPESTATE 5).

fn decomposition_violated(case: &Turn<'_>) -> bool {
    let Some(block) = &case.constraints.decomposition_constraints else {
        return false;
    };
    let spec = &case.turn.call_spec;
    let pattern = text(&block.expected_execution_pattern).map(str::to_ascii_lowercase);
    block.admissible == Some(false)
        || pattern.is_some_and(|pattern| pattern != spec.execution_pattern.as_str())
        || text(&block.expected_policy_digest)
            .is_some_and(|digest| digest != spec.decomposition_policy_digest)
}

fn decomposition_unconstrained(case: &Turn<'_>) -> bool {
    case.turn.call_spec.execution_pattern.decomposes()
        && case.constraints.decomposition_constraints.is_none()
}

fn handoff_artifact_missing(case: &Turn<'_>) -> bool {
    let Some(block) = &case.constraints.handoff_constraints else {
        return false;
    };
    let handoff = case.turn.handoff.as_ref();
    texts(&block.required_artifact_refs)
        .any(|artifact| !handoff.is_some_and(|h| h.required_artifact_refs.contains(artifact)))
}

fn handoff_target_refused(case: &Turn<'_>) -> bool {
    let Some(block) = &case.constraints.handoff_constraints else {
        return false;
    };
    let target = case.turn.handoff.as_ref().map(|h| h.target.as_str());
    let mut allowed = texts(&block.allowed_targets).peekable();
    allowed.peek().is_some() && !allowed.any(|allowed| target == Some(allowed))
}

fn handoff_return_path_missing(case: &Turn<'_>) -> bool {
    let Some(block) = &case.constraints.handoff_constraints else {
        return false;
    };
    let handoff = case.turn.handoff.as_ref();
    block.require_return_path && handoff.is_none_or(|h| h.return_path_ref.is_none())
}

/// Without constraints nobody allowed the target.
fn handoff_unconstrained(case: &Turn<'_>) -> bool {
    case.turn.handoff.is_some() && case.constraints.handoff_constraints.is_none()
}

// Governance (HARNESS-TYPESTATE 8): a foreign claim is checked no further.

fn governance_claim_invalid(case: &Turn<'_>) -> bool {
    let profile = case.constraints.governance_profile.as_ref();
    profile.is_some_and(|profile| !claim_is_known(profile))
}

fn governance_unpinned(case: &Turn<'_>) -> bool {
    claimed_governance(case).is_some_and(|profile| pinned_digests(profile).is_none())
}

fn governance_mismatch(case: &Turn<'_>) -> bool {
    claimed_governance(case)
        .and_then(pinned_digests)
        .is_some_and(|(expected, bound)| expected != bound)
}

fn claimed_governance<'a>(case: &Turn<'a>) -> Option<&'a GovernanceProfile> {
    let profile = case.constraints.governance_profile.as_ref()?;
    (profile.claimed && claim_is_known(profile)).then_some(profile)
}

fn claim_is_known(profile: &GovernanceProfile) -> bool {
    text(&profile.claim_id).is_none_or(|claim| claim == GOVERNANCE_CLAIM)
}

/// Returns the expected and the bound digest of a package that is pinned.
fn pinned_digests(profile: &GovernanceProfile) -> Option<(&str, &str)> {
    let PolicyProvenance {
        pinned,
        package_ref,
        expected_digest,
        bound_digest,
    } = profile.policy_provenance.as_ref()?;
    text(package_ref).filter(|_| *pinned)?;
    Some((text(expected_digest)?, text(bound_digest)?))
}

// Use evidence (contracts.md 2).

fn use_speaks_of_another_result(case: &Turn<'_>) -> bool {
    let digests: BTreeMap<_, _> = case
        .turn
        .tool_results
        .iter()
        .map(|row| (row.tool_call_id.as_str(), row.result_digest.as_deref()))
        .collect();
    case.turn.tool_use.iter().any(|row| {
        let used = row.result_digest.as_deref();
        // A call without any result is `tool.use_without_result`.
        let given = digests.get(row.tool_call_id.as_str());
        used.is_some() && given.is_some_and(|given| *given != used)
    })
}

fn discarded_without_reason(case: &Turn<'_>) -> bool {
    case.turn
        .tool_use
        .iter()
        .any(|row| row.disposition == Disposition::Discarded && row.use_reason.is_none())
}

fn consumed_without_provenance(case: &Turn<'_>) -> bool {
    case.turn
        .tool_use
        .iter()
        .any(|row| row.disposition == Disposition::Consumed && row.provenance_ref.is_none())
}

// Witness linkage (HARNESS-TYPESTATE 6).

/// What a session's reference begins with.
const SESSION: &str = "session://";

/// What a trajectory row's reference begins with.
const STEP: &str = "trajectory://step/";

fn linkage_to_any_step_missing(case: &Turn<'_>) -> bool {
    let names_one = |refs: &BTreeSet<String>, prefix: &str| {
        refs.iter()
            .any(|one| one.len() > prefix.len() && one.starts_with(prefix))
    };
    !(names_one(&case.turn.session_refs, SESSION) && names_one(&case.turn.trajectory_refs, STEP))
}

fn linkage_to_this_step_missing(case: &Admission<'_>) -> bool {
    let binding = case.binding;
    // An empty name would be linked by the bare prefix.
    let named = !binding.step.session_id.is_empty() && !binding.step.issue_id.is_empty();
    !(named
        && case.turn.session_refs.contains(&binding.session_ref())
        && case
            .turn
            .trajectory_refs
            .contains(&binding.trajectory_ref()))
}

// Authority (TOOL-CALLING-HARNESS-TYPESTATE 4.6, contracts.md 8).

fn policy_is_another(case: &Admission<'_>) -> bool {
    case.turn.call_spec.mutation_policy_digest != case.binding.mutation_policy_digest
}

fn claim_missing(case: &Admission<'_>) -> bool {
    !case.binding.claims.covers(case.demand.claim)
}

fn verification_not_passed(case: &Admission<'_>) -> bool {
    let named = text(&case.binding.verification);
    let passed = case
        .turn
        .tool_results
        .iter()
        .any(|row| Some(row.tool_call_id.as_str()) == named && row.status == ResultStatus::Ok);
    case.demand.verification && !passed
}

fn text(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|t| !t.is_empty())
}

fn texts(texts: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    texts.iter().map(|t| t.trim()).filter(|t| !t.is_empty())
}
