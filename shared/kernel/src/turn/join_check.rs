//! The answer of `premath harness-join-check --json` (`contracts.md` 2).

use super::constraints::Constraints;
use super::error::EvidenceError;
use super::gate::{self, explain};
use super::input::{JoinCheckInput, ParsedInput};
use super::normal::{Digests, Normalized, normalize};
use crate::failure::FailureClass;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A verdict on a turn, with everything that it was read from.
///
/// A report: it grants no right to change anything.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinCheck {
    /// `harness-join-check`.
    pub action: &'static str,
    /// Whether the join is closed.
    pub result: Verdict,
    /// What keeps it open, sorted.
    pub failure_classes: BTreeSet<FailureClass>,
    /// Whether the result is accepted.
    pub join_closed: bool,
    /// Whether the join is closed and the turn may change issues, as far as it
    /// can be determined without the step (ours).
    pub mutation_ready: bool,
    /// The classes that refuse a change, without the join's own (ours).
    pub mutation_failure_classes: BTreeSet<FailureClass>,
    /// What the verdict rests on.
    pub witness: JoinWitness,
    /// The turn in normal form.
    pub normalized: Normalized,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The join is closed.
    Accepted,
    /// The turn is rejected.
    Rejected,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinWitness {
    /// The version of the kind: 1.
    pub schema: u64,
    /// `premath.harness.join_check.v1`.
    pub witness_kind: &'static str,
    /// The turn's ten digests.
    pub digests: Digests,
    /// What was asked of the join.
    pub join_input: JoinInput,
    /// What was asked of a change.
    pub mutation_input: MutationInput,
}

/// The facts that the join was judged by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is under its name in the normal form")]
pub struct JoinInput {
    pub request_set_digest: String,
    pub result_set_digest: String,
    pub use_set_digest: String,
    pub tool_render_set_digest: String,
    pub reminder_queue_set_digest: String,
    pub state_view_set_digest: String,
    pub protocol_state_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact_set_digest: Option<String>,
    pub join_set_digest: String,
    pub reminder_queue_policy_digest: String,
    pub tool_render_protocol_digest: String,
    pub state_view_policy_digest: String,
    pub decomposition_policy_digest: String,
    #[serde(flatten)]
    pub state: SharedState,
}

/// The facts that a change was judged by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is under its name in the normal form")]
pub struct MutationInput {
    pub continuation_allowed: bool,
    pub mutation_policy_digest: String,
    pub governance_policy_digest: String,
    pub normalizer_id: String,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub session_refs: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub trajectory_refs: BTreeSet<String>,
    #[serde(flatten)]
    pub state: SharedState,
}

/// The facts that both were judged by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each is under its name in the normal form")]
pub struct SharedState {
    pub join_closed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_result_call_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphan_result_call_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_use_call_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_use_call_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_render_call_ids: Vec<String>,
    pub queue_reduction_present: bool,
    pub state_view_present: bool,
    pub render_policy_valid: bool,
    pub queue_policy_valid: bool,
    pub state_view_policy_valid: bool,
    pub continuation_context_ready: bool,
}

/// Judges a turn and says everything about it.
///
/// # Errors
///
/// Evidence that cannot be read ([`normalize`]).
pub fn join_check(input: &JoinCheckInput) -> Result<JoinCheck, EvidenceError> {
    let normalized = normalize(input.evidence.clone())?;
    Ok(JoinCheck::of(normalized, &input.constraints))
}

impl JoinCheck {
    /// Judges a turn that is in normal form already.
    pub fn of(normalized: Normalized, constraints: &Constraints) -> Self {
        let failure_classes = gate::join_classes(&normalized, constraints);
        let mutation_failure_classes = gate::mutation_classes(&normalized, constraints);
        let join_closed = failure_classes.is_empty();
        Self {
            action: "harness-join-check",
            result: if join_closed {
                Verdict::Accepted
            } else {
                Verdict::Rejected
            },
            failure_classes,
            join_closed,
            mutation_ready: join_closed && mutation_failure_classes.is_empty(),
            mutation_failure_classes,
            witness: JoinWitness {
                schema: 1,
                witness_kind: "premath.harness.join_check.v1",
                digests: normalized.digests.clone(),
                join_input: join_input(&normalized),
                mutation_input: mutation_input(&normalized),
            },
            normalized,
        }
    }
}

fn join_input(turn: &Normalized) -> JoinInput {
    let Digests {
        call_spec_digest: _,
        request_set_digest,
        result_set_digest,
        use_set_digest,
        tool_render_set_digest,
        reminder_queue_set_digest,
        state_view_set_digest,
        protocol_state_digest,
        handoff_digest,
        fact_set_digest,
        join_set_digest,
    } = turn.digests.clone();
    let spec = &turn.call_spec;
    JoinInput {
        request_set_digest,
        result_set_digest,
        use_set_digest,
        tool_render_set_digest,
        reminder_queue_set_digest,
        state_view_set_digest,
        protocol_state_digest,
        handoff_digest,
        fact_set_digest,
        join_set_digest,
        reminder_queue_policy_digest: spec.reminder_queue_policy_digest.clone(),
        tool_render_protocol_digest: spec.tool_render_protocol_digest.clone(),
        state_view_policy_digest: spec.state_view_policy_digest.clone(),
        decomposition_policy_digest: spec.decomposition_policy_digest.clone(),
        state: shared_state(turn),
    }
}

fn mutation_input(turn: &Normalized) -> MutationInput {
    MutationInput {
        continuation_allowed: turn.protocol_state.continuation_allowed,
        mutation_policy_digest: turn.call_spec.mutation_policy_digest.clone(),
        governance_policy_digest: turn.call_spec.governance_policy_digest.clone(),
        normalizer_id: turn.call_spec.normalizer_id.clone(),
        session_refs: turn.session_refs.clone(),
        trajectory_refs: turn.trajectory_refs.clone(),
        state: shared_state(turn),
    }
}

fn shared_state(turn: &Normalized) -> SharedState {
    let join = &turn.join_state;
    let context = &turn.context_state;
    SharedState {
        join_closed: join.join_closed,
        missing_result_call_ids: join.missing_result_call_ids.clone(),
        orphan_result_call_ids: join.orphan_result_call_ids.clone(),
        missing_use_call_ids: join.missing_use_call_ids.clone(),
        unknown_use_call_ids: join.unknown_use_call_ids.clone(),
        missing_render_call_ids: context.missing_render_call_ids.clone(),
        queue_reduction_present: context.queue_reduction_present,
        state_view_present: context.state_view_present,
        render_policy_valid: context.render_policy_valid,
        queue_policy_valid: context.queue_policy_valid,
        state_view_policy_valid: context.state_view_policy_valid,
        continuation_context_ready: context.continuation_context_ready,
    }
}

/// Returns where the turn of a step's witness first breaks the rule of a class,
/// and what is there; `None` where it breaks no such rule, or where the witness
/// cannot be read.
pub fn broken_at(mut witness: Value, class: FailureClass) -> Option<String> {
    let input = ParsedInput::from_value(witness.get_mut("input")?.take()).ok()?;
    let normal = normalize(input.input.evidence).ok()?;
    let mut rules = explain(&normal, &input.input.constraints).into_iter();
    let breach = rules.find_map(|rule| {
        let is_it = rule.class == class;
        rule.breaches.into_iter().next().filter(|_| is_it)
    })?;
    Some(format!("{}: {}", breach.at, breach.found))
}
