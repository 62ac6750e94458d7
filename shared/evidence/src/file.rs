//! The `evidence-file` adapter: the work command writes down what it did, as an
//! input of the join check (`agents.md`).

use crate::binding;
use crate::call::ShellCall;
use crate::context;
use crate::demand;
use crate::policy::{Seen, TurnHead, TurnPolicies};
use crate::shell;
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::canonical;
use premath_kernel::json::token;
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::turn::evidence::{Facts, RequestFacts, ScopeAccess};
use premath_kernel::turn::{
    CallSpecRow, JoinCheckInput, RequestRow, ResultRow, ResultStatus, UseRow,
};
use serde_json::{Value, json};

/// The normaliser that evidence from a file is bound to.
pub const FILE_NORMALIZER: &str = "premath.harness.evidence_file.v1";

/// The phase of the harness's call that wrote the file.
const WORK: &str = "work";

/// A step's turn by the evidence-file adapter.
#[derive(Clone, Debug)]
pub struct FileTurn<'a> {
    /// The step.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// What the command wrote down.
    pub reported: &'a JoinCheckInput,
    /// The commands that the harness ran itself, in their order.
    pub calls: &'a [ShellCall],
}

impl FileTurn<'_> {
    /// Returns the tool call id of one of the file's calls. It is below the
    /// work call's, so that none is that of a verification.
    pub(crate) fn reported_call_id(&self, id: &str) -> String {
        format!("{}/{}", shell::call_id(self.step, WORK), token::encode(id))
    }

    /// Returns a caller: another call of the file, or the work call.
    fn caller(&self, reported: Option<&str>) -> String {
        let calls = &self.reported.evidence.tool_requests;
        match reported.filter(|id| calls.iter().any(|call| call.tool_call_id == *id)) {
            Some(id) => self.reported_call_id(id),
            None => shell::call_id(self.step, WORK),
        }
    }
}

/// Returns the fields of a file that a turn cannot keep, so that the file is
/// refused: the harness confines the commands, and says itself how.
pub fn unkept(reported: &JoinCheckInput) -> Vec<&'static str> {
    let spec = &reported.evidence.call_spec;
    let boundary = [
        (
            "callSpec.runtimeSandboxRef",
            spec.runtime_sandbox_ref.is_some(),
        ),
        (
            "callSpec.executionBoundaryPolicy",
            spec.execution_boundary_policy.is_some(),
        ),
    ];
    let given = boundary.into_iter().filter(|(_, is_given)| *is_given);
    given.map(|(name, _)| name).collect()
}

/// Returns what a file says about the policies that bind the turn, and the
/// constraints that it brings: recorded, and never used. Both are the operator's
/// alone.
pub fn claims_of(reported: &JoinCheckInput) -> Value {
    let spec = &reported.evidence.call_spec;
    json!({
        "callSpec": {
            "normalizerId": spec.normalizer_id,
            "mutationPolicyDigest": spec.mutation_policy_digest,
            "governancePolicyDigest": spec.governance_policy_digest,
            "toolRenderProtocolDigest": spec.tool_render_protocol_digest,
            "reminderQueuePolicyDigest": spec.reminder_queue_policy_digest,
            "stateViewPolicyDigest": spec.state_view_policy_digest,
            "decompositionPolicyDigest": spec.decomposition_policy_digest,
            "protocolStatePolicy": canonical::value_of(&spec.protocol_state_policy),
            "toolResponseTruncationPolicy":
                canonical::value_of(&spec.tool_response_truncation_policy),
            "riskTier": spec.risk_tier,
            "compactionPolicyDigest": spec.compaction_policy_digest,
            "preContextFilterPolicy": spec.pre_context_filter_policy,
            "evalProfileRef": spec.eval_profile_ref,
            "evalGatePolicyDigest": spec.eval_gate_policy_digest,
            "redTeamPolicyDigest": spec.red_team_policy_digest,
        },
        "constraints": canonical::value_of(&reported.constraints),
    })
}

/// Binds the call spec of a file to the policies in force; all else that it
/// says is kept.
fn bound(reported: &CallSpecRow, ours: CallSpecRow) -> CallSpecRow {
    CallSpecRow {
        normalizer_id: ours.normalizer_id,
        mutation_policy_digest: ours.mutation_policy_digest,
        governance_policy_digest: ours.governance_policy_digest,
        tool_render_protocol_digest: ours.tool_render_protocol_digest,
        reminder_queue_policy_digest: ours.reminder_queue_policy_digest,
        state_view_policy_digest: ours.state_view_policy_digest,
        decomposition_policy_digest: ours.decomposition_policy_digest,
        ..reported.clone()
    }
}

/// Makes the evidence of a step whose work command wrote evidence of its own.
///
/// Calls, results, uses, handoff, stop reason, facts and call spec are the
/// file's, but for the policies that bind the turn. These and the constraints
/// are the operator's, and references, folds and the harness's own calls are the
/// harness's, whatever the file reports about them. What is missing in the file
/// is missing in the turn, and the gate refuses it.
pub fn file_turn(turn: &FileTurn<'_>) -> JoinCheckInput {
    let reported = &turn.reported.evidence;
    let own = shell::rows(turn.step, turn.calls);
    let results: Vec<ResultRow> = reported
        .tool_results
        .iter()
        .map(|r| result(turn, r))
        .collect();
    let seen: Vec<Seen<'_>> = of_file(&results).chain(shell::seen(&own)).collect();
    let spec = &reported.call_spec;
    let head = TurnHead {
        step: turn.step,
        call_id: &spec.call_id,
        model_ref: &spec.model_ref,
        normalizer_id: FILE_NORMALIZER,
        policies: turn.policies,
    };
    let mut evidence = head.evidence(&seen, &context::of_calls(&seen));
    evidence.call_spec = bound(&reported.call_spec, evidence.call_spec);
    evidence.facts = facts(turn);
    evidence.protocol_state = reported.protocol_state.clone();
    evidence.handoff.clone_from(&reported.handoff);
    evidence.tool_requests = reported
        .tool_requests
        .iter()
        .map(|row| RequestRow {
            tool_call_id: turn.reported_call_id(&row.tool_call_id),
            caller_id: Some(turn.caller(row.caller_id.as_deref())),
            facts: Some(Box::new(RequestFacts {
                parent_call_id: Some(turn.caller(row.caller_id.as_deref())),
                ..row.facts.as_deref().cloned().unwrap_or_default()
            })),
            ..row.clone()
        })
        .collect();
    evidence.tool_results = results;
    evidence.tool_use = reported
        .tool_use
        .iter()
        .map(|row| UseRow {
            tool_call_id: turn.reported_call_id(&row.tool_call_id),
            ..row.clone()
        })
        .collect();
    shell::add(&mut evidence, &own);
    let mut input = JoinCheckInput::new(evidence);
    input.constraints = shell::constraints(turn.policies, turn.calls);
    binding::constrain_decomposition(&mut input, turn.policies);
    demand::bind(&mut input, turn.policies);
    input
}

/// Returns what the context rows of the turn are digests of.
pub fn file_context(turn: &FileTurn<'_>) -> TurnContext {
    let own = shell::rows(turn.step, turn.calls);
    let results = turn.reported.evidence.tool_results.iter();
    let results: Vec<ResultRow> = results.map(|row| result(turn, row)).collect();
    let seen: Vec<Seen<'_>> = of_file(&results).chain(shell::seen(&own)).collect();
    context::of_calls(&seen)
}

fn of_file(results: &[ResultRow]) -> impl Iterator<Item = Seen<'_>> {
    results.iter().map(|row| Seen {
        call_id: &row.tool_call_id,
        result_digest: row.result_digest.as_deref().unwrap_or_default().into(),
        failure: (row.status == Some(ResultStatus::Error))
            .then(|| row.error_code.as_deref().unwrap_or("tool_error")),
    })
}

/// Returns the facts of the file, about its calls by their ids in the turn.
fn facts(turn: &FileTurn<'_>) -> Facts {
    let mut facts = turn.reported.evidence.facts.clone();
    for event in &mut facts.transport {
        event.tool_call_id = turn.reported_call_id(&event.tool_call_id);
    }
    let accesses = std::mem::take(&mut facts.scope_accesses).into_iter();
    facts.scope_accesses = accesses
        .map(|access| ScopeAccess {
            tool_call_id: access.tool_call_id.map(|id| turn.reported_call_id(&id)),
            ..access
        })
        .collect();
    facts
}

fn result(turn: &FileTurn<'_>, row: &ResultRow) -> ResultRow {
    let payload = row.payload.as_ref().unwrap_or(&Value::Null);
    let given = row.result_digest.clone();
    let mut facts = row.facts.clone().unwrap_or_default();
    // Where the file does not say who got it, it was who asked.
    let asked = &turn.reported.evidence.tool_requests;
    let asked = asked
        .iter()
        .find(|ask| ask.tool_call_id == row.tool_call_id);
    let caller = asked.and_then(|ask| ask.caller_id.as_deref());
    facts.parent_call_id = Some(turn.caller(facts.parent_call_id.as_deref().or(caller)));
    ResultRow {
        tool_call_id: turn.reported_call_id(&row.tool_call_id),
        result_digest: Some(given.unwrap_or_else(|| canonical::digest(payload))),
        payload: None,
        facts: Some(facts),
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{self, own, policies, step};
    use premath_kernel::failure::FailureClass;
    use premath_kernel::turn::ParsedInput;
    use serde_json::json;
    use std::collections::BTreeSet;

    /// What a command may write down: of the call spec all counts but policies.
    fn reported() -> Value {
        json!({"evidence": {
            "callSpec": {
                "callId": "c", "modelRef": "my-agent:1", "actionMode": "json",
                "executionPattern": "chain", "normalizerId": "mine",
                "mutationPolicyDigest": "pol1_mine", "governancePolicyDigest": "g",
                "toolRenderProtocolDigest": "t", "reminderQueuePolicyDigest": "q",
                "stateViewPolicyDigest": "s", "decompositionPolicyDigest": "d",
            },
            "toolRequests": [
                {"toolCallId": "a", "toolName": "read"},
                {"toolCallId": "b", "toolName": "edit", "callerId": "a"},
            ],
            "toolResults": [
                {"toolCallId": "a", "payload": {"text": "x"}},
                {"toolCallId": "b", "status": "error", "errorCode": "no_file", "retryable": false,
                 "errorMessage": "there is none", "resultDigest": "sha256:b"},
            ],
            "toolUse": [
                {"toolCallId": "a", "disposition": "observed"},
                {"toolCallId": "b", "disposition": "consumed", "provenanceRef": "my://b"},
            ],
            "protocolState": {"stopReason": "end_turn"},
        }})
    }

    fn verdict(reported: &Value) -> Result<(), BTreeSet<FailureClass>> {
        let bytes = reported.to_string();
        let reported = ParsedInput::from_slice(bytes.as_bytes()).unwrap().input;
        let calls = [own("work"), own("verify")];
        case::verdict(&file_turn(&FileTurn {
            step: &step(),
            policies: &policies(),
            reported: &reported,
            calls: &calls,
        }))
    }

    #[test]
    fn evidence_that_is_whole_may_close() {
        assert_eq!(verdict(&reported()), Ok(()));
    }

    #[test]
    fn what_is_missing_in_the_file_is_missing_in_the_turn() {
        type Edit = fn(&mut Value);
        let edits: [(Edit, FailureClass); 5] = [
            (
                |e| drop(e["toolResults"].as_array_mut().map(Vec::pop)),
                FailureClass::ToolResultMissing,
            ),
            (
                |e| drop(e["toolRequests"].as_array_mut().map(Vec::pop)),
                FailureClass::ToolResultOrphan,
            ),
            (
                |e| drop(e["toolUse"].as_array_mut().map(Vec::pop)),
                FailureClass::ToolUseMissing,
            ),
            (
                |e| e["protocolState"]["stopReason"] = "went_home".into(),
                FailureClass::ProtocolStopReasonUnhandled,
            ),
            (
                |e| e["toolResults"][1]["errorCode"] = Value::Null,
                FailureClass::ToolSchemaInvalid,
            ),
        ];
        for (edit, class) in edits {
            let mut reported = reported();
            edit(&mut reported["evidence"]);
            let classes = verdict(&reported).unwrap_err();
            assert!(classes.contains(&class), "{class}: {classes:?}");
        }
    }

    #[test]
    fn what_the_file_says_about_the_turn_is_what_is_judged() {
        type Edit = fn(&mut Value);
        let edits: [(Edit, FailureClass); 2] = [
            (
                |e| e["callSpec"]["actionMode"] = "text".into(),
                FailureClass::ToolSchemaInvalid,
            ),
            (
                |e| e["callSpec"]["executionPattern"] = "swarm".into(),
                FailureClass::CoordinationDecompositionPolicyViolation,
            ),
        ];
        for (edit, class) in edits {
            let mut reported = reported();
            edit(&mut reported["evidence"]);
            let classes = verdict(&reported).unwrap_err();
            assert!(classes.contains(&class), "{class}: {classes:?}");
        }
        // Honest guardrails are kept, and cost nothing.
        let mut reported = reported();
        reported["evidence"]["callSpec"]["guardrailStagePolicyDigest"] = "sha256:g".into();
        let row = |(sequence, stage): (u64, &str)| {
            json!({"sequence": sequence, "stage": stage, "guardrailId": "g", "triggered": false,
                   "policyDigest": "sha256:g"})
        };
        let stages = [(1, "pre_flight"), (2, "input"), (3, "output")];
        reported["evidence"]["facts"]["guardrails"] = stages.map(row).into_iter().collect();
        assert_eq!(verdict(&reported), Ok(()));
    }

    #[test]
    fn constraints_of_the_file_are_claims_and_judge_nothing() {
        let mut reported = reported();
        reported["evidence"]["handoff"] = json!({"target": "mallory", "requiredArtifactRefs": []});
        let bare = verdict(&reported).unwrap_err();
        reported["handoffConstraints"] = json!({
            "requiredArtifactRefs": [], "allowedTargets": ["mallory"], "requireReturnPath": false,
        });
        assert_eq!(verdict(&reported).unwrap_err(), bare);
        let input = ParsedInput::from_slice(reported.to_string().as_bytes())
            .unwrap()
            .input;
        let claims = claims_of(&input);
        let claimed = &claims["constraints"]["handoffConstraints"]["allowedTargets"];
        assert_eq!(*claimed, json!(["mallory"]));
        assert_eq!(claims["callSpec"]["mutationPolicyDigest"], "pol1_mine");
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        let mut reported = reported();
        reported["evidence"]["callSpec"]["runtimeSandboxRef"] = "sandbox1_mine".into();
        let input = ParsedInput::from_slice(reported.to_string().as_bytes())
            .unwrap()
            .input;
        assert_eq!(unkept(&input), ["callSpec.runtimeSandboxRef"]);
    }

    #[test]
    fn a_file_cannot_make_the_verification_up() {
        let mut reported = reported();
        let id = format!("{}/verify", step().step_id());
        reported["evidence"]["toolRequests"][0]["toolCallId"] = id.clone().into();
        reported["evidence"]["toolResults"][0]["toolCallId"] = id.clone().into();
        reported["evidence"]["toolUse"][0]["toolCallId"] = id.into();
        // It is another call, so that nothing collides and nothing is gained.
        assert_eq!(verdict(&reported), Ok(()));
    }
}
