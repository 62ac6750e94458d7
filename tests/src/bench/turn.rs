//! A large turn, and its judgement.

use crate::figure::Wrong;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::turn::{
    ActionMode, CallSpecRow, Constraints, Evidence, ExecutionPattern, JoinCheckInput,
    ProtocolState, QueueRow, RenderRow, RequestRow, ResultRow, StateViewRow, UseRow, join_classes,
    mutation_classes, normalize,
};
use serde_json::json;

/// How many bytes a payload has.
const PAYLOAD: usize = 1_024;

/// Normalises and judges a turn, which must be admitted.
pub(crate) fn judge(evidence: Evidence, constraints: &Constraints) -> Result<(), Wrong> {
    let normalized = normalize(evidence)?;
    let mut classes = join_classes(&normalized, constraints);
    classes.extend(mutation_classes(&normalized, constraints));
    match classes.first() {
        None => Ok(()),
        Some(class) => Err(Wrong::because(format!("the turn is refused: {class}"))),
    }
}

/// A closed turn of so many calls, each shown and consumed.
pub(crate) fn turn(calls: usize) -> JoinCheckInput {
    let spec = CallSpecRow {
        call_id: "turn".into(),
        model_ref: "model".into(),
        action_mode: ActionMode::Code,
        execution_pattern: ExecutionPattern::Single,
        normalizer_id: "nf.v1".into(),
        mutation_policy_digest: "mutation".into(),
        governance_policy_digest: "governance".into(),
        tool_render_protocol_digest: "render".into(),
        reminder_queue_policy_digest: "queue".into(),
        state_view_policy_digest: "view".into(),
        decomposition_policy_digest: "decomposition".into(),
        text_adapter_profile: None,
        ..CallSpecRow::default()
    };
    let mut evidence = Evidence::new(spec, ProtocolState::ended("end_turn"));
    for number in 0..calls {
        let id = format!("call-{number:06}");
        let line = format!("{number} the quick brown fox jumps over the lazy dog\n");
        let text: String = line.chars().cycle().take(PAYLOAD).collect();
        let digest = sha256_hex(id.as_bytes());
        evidence.tool_requests.push(RequestRow::new(&id, "shell"));
        evidence.tool_results.push(ResultRow {
            tool_call_id: id.clone(),
            payload: Some(json!(text)),
            ..ResultRow::default()
        });
        evidence
            .tool_use
            .push(UseRow::consumed(&id, format!("artifact://{number}")));
        evidence.tool_render.push(RenderRow {
            tool_call_id: id,
            operator_payload_digest: digest.clone(),
            reminder_render_digest: digest,
            injection_point: "tool_response".into(),
            policy_digest: "render".into(),
        });
    }
    evidence.reminder_queue.push(QueueRow {
        queue_id: "q".into(),
        reduced_digest: "d".into(),
        policy_digest: "queue".into(),
    });
    evidence.state_views.push(StateViewRow {
        view_id: "v".into(),
        view_digest: "d".into(),
        policy_digest: "view".into(),
        ..StateViewRow::default()
    });
    evidence.session_refs.insert("session://s".into());
    evidence
        .trajectory_refs
        .insert("trajectory://step/s".into());
    JoinCheckInput::new(evidence)
}
