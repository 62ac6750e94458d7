//! What follows from the rows of a turn: the join and the context.

use super::super::evidence::{CallSpecRow, QueueRow, RenderRow, RequestRow, StateViewRow, UseRow};
use super::{Digests, NormalResult};
use schemars::JsonSchema;
use serde::Serialize;

/// How requests, results and uses lie over each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinState {
    /// Calls that were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requested_call_ids: Vec<String>,
    /// Calls that ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub result_call_ids: Vec<String>,
    /// Calls that have a disposition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub used_call_ids: Vec<String>,
    /// Requested, but not ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_result_call_ids: Vec<String>,
    /// Ended, but not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphan_result_call_ids: Vec<String>,
    /// Ended, but without a disposition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_use_call_ids: Vec<String>,
    /// With a disposition, but not ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_use_call_ids: Vec<String>,
    /// Whether the four lists before are empty. The gate's verdict asks more.
    pub join_closed: bool,
}

/// What the next turn would be rebuilt from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextState {
    /// Calls whose result was shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub render_call_ids: Vec<String>,
    /// Reminder queues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_ids: Vec<String>,
    /// State views.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_view_ids: Vec<String>,
    /// Ended, but not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_render_call_ids: Vec<String>,
    /// Whether any queue was reduced.
    pub queue_reduction_present: bool,
    /// Whether there is any state view.
    pub state_view_present: bool,
    /// Whether every result was shown under the call spec's policy.
    pub render_policy_valid: bool,
    /// Whether every queue was reduced under the call spec's policy.
    pub queue_policy_valid: bool,
    /// Whether every view was made under the call spec's policy.
    pub state_view_policy_valid: bool,
    /// Whether the loop may continue: it does not, or nothing of it is missing.
    pub continuation_context_ready: bool,
}

impl JoinState {
    pub(super) fn of(requests: &[RequestRow], results: &[NormalResult], uses: &[UseRow]) -> Self {
        let requested: Vec<_> = requests.iter().map(|row| &row.tool_call_id).collect();
        let ended: Vec<_> = results.iter().map(|row| &row.tool_call_id).collect();
        let used: Vec<_> = uses.iter().map(|row| &row.tool_call_id).collect();
        let missing_result_call_ids = difference(&requested, &ended);
        let orphan_result_call_ids = difference(&ended, &requested);
        let missing_use_call_ids = difference(&ended, &used);
        let unknown_use_call_ids = difference(&used, &ended);
        Self {
            join_closed: missing_result_call_ids.is_empty()
                && orphan_result_call_ids.is_empty()
                && missing_use_call_ids.is_empty()
                && unknown_use_call_ids.is_empty(),
            requested_call_ids: requested.into_iter().cloned().collect(),
            result_call_ids: ended.into_iter().cloned().collect(),
            used_call_ids: used.into_iter().cloned().collect(),
            missing_result_call_ids,
            orphan_result_call_ids,
            missing_use_call_ids,
            unknown_use_call_ids,
        }
    }
}

impl ContextState {
    pub(super) fn of(
        spec: &CallSpecRow,
        continuation_allowed: bool,
        result_call_ids: &[String],
        renders: &[RenderRow],
        queues: &[QueueRow],
        views: &[StateViewRow],
    ) -> Self {
        let ended: Vec<_> = result_call_ids.iter().collect();
        let shown: Vec<_> = renders.iter().map(|row| &row.tool_call_id).collect();
        let mut state = Self {
            missing_render_call_ids: difference(&ended, &shown),
            render_call_ids: shown.into_iter().cloned().collect(),
            queue_ids: queues.iter().map(|row| row.queue_id.clone()).collect(),
            state_view_ids: views.iter().map(|row| row.view_id.clone()).collect(),
            queue_reduction_present: !queues.is_empty(),
            state_view_present: !views.is_empty(),
            render_policy_valid: renders
                .iter()
                .all(|row| row.policy_digest == spec.tool_render_protocol_digest),
            queue_policy_valid: queues
                .iter()
                .all(|row| row.policy_digest == spec.reminder_queue_policy_digest),
            state_view_policy_valid: views
                .iter()
                .all(|row| row.policy_digest == spec.state_view_policy_digest),
            continuation_context_ready: false,
        };
        state.continuation_context_ready = !continuation_allowed
            || (state.missing_render_call_ids.is_empty()
                && state.queue_reduction_present
                && state.state_view_present
                && state.render_policy_valid
                && state.queue_policy_valid
                && state.state_view_policy_valid);
        state
    }
}

/// What `joinSetDigest` is taken over: unlike elsewhere, every list is present
/// even when empty, and the handoff even when null. The fields are in the byte
/// order of their names. The facts' digest, ours, is present only if there are
/// facts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JoinSet<'a> {
    continuation_context_ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact_set_digest: Option<&'a str>,
    handoff_digest: Option<&'a str>,
    missing_render_call_ids: &'a [String],
    missing_result_call_ids: &'a [String],
    missing_use_call_ids: &'a [String],
    orphan_result_call_ids: &'a [String],
    protocol_state_digest: &'a str,
    queue_ids: &'a [String],
    queue_policy_valid: bool,
    queue_reduction_present: bool,
    reminder_queue_set_digest: &'a str,
    render_call_ids: &'a [String],
    render_policy_valid: bool,
    request_set_digest: &'a str,
    requested_call_ids: &'a [String],
    result_call_ids: &'a [String],
    result_set_digest: &'a str,
    state_view_ids: &'a [String],
    state_view_policy_valid: bool,
    state_view_present: bool,
    state_view_set_digest: &'a str,
    tool_render_set_digest: &'a str,
    unknown_use_call_ids: &'a [String],
    use_set_digest: &'a str,
    used_call_ids: &'a [String],
}

impl<'a> JoinSet<'a> {
    pub(super) fn of(digests: &'a Digests, join: &'a JoinState, context: &'a ContextState) -> Self {
        Self {
            request_set_digest: &digests.request_set_digest,
            result_set_digest: &digests.result_set_digest,
            use_set_digest: &digests.use_set_digest,
            tool_render_set_digest: &digests.tool_render_set_digest,
            reminder_queue_set_digest: &digests.reminder_queue_set_digest,
            state_view_set_digest: &digests.state_view_set_digest,
            protocol_state_digest: &digests.protocol_state_digest,
            handoff_digest: digests.handoff_digest.as_deref(),
            fact_set_digest: digests.fact_set_digest.as_deref(),
            requested_call_ids: &join.requested_call_ids,
            result_call_ids: &join.result_call_ids,
            used_call_ids: &join.used_call_ids,
            render_call_ids: &context.render_call_ids,
            queue_ids: &context.queue_ids,
            state_view_ids: &context.state_view_ids,
            missing_result_call_ids: &join.missing_result_call_ids,
            orphan_result_call_ids: &join.orphan_result_call_ids,
            missing_use_call_ids: &join.missing_use_call_ids,
            unknown_use_call_ids: &join.unknown_use_call_ids,
            missing_render_call_ids: &context.missing_render_call_ids,
            queue_reduction_present: context.queue_reduction_present,
            state_view_present: context.state_view_present,
            render_policy_valid: context.render_policy_valid,
            queue_policy_valid: context.queue_policy_valid,
            state_view_policy_valid: context.state_view_policy_valid,
            continuation_context_ready: context.continuation_context_ready,
        }
    }
}

/// Returns the ids of `left` that are not in `right`; both are sorted.
fn difference(left: &[&String], right: &[&String]) -> Vec<String> {
    let mut right = right.iter().peekable();
    left.iter()
        .filter(|id| {
            // Mostly the two are alike, so first the one comparison for that.
            if right.next_if_eq(id).is_some() {
                return false;
            }
            while right.next_if(|other| other < id).is_some() {}
            right.next_if_eq(id).is_none()
        })
        .map(|id| (*id).clone())
        .collect()
}
