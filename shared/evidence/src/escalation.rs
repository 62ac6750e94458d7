//! The harness's own turn: an escalation, whose evidence is the retry decision
//! (`contracts.md` 7).

use crate::policy::{Seen, TurnPolicies, evidence_of};
use premath_kernel::authority::StepIdentity;
use premath_kernel::canonical;
use premath_kernel::retry::{Decision, RetryVerdict};
use premath_kernel::turn::{JoinCheckInput, RequestRow, ResultRow, UseRow};
use serde_json::json;

/// The normaliser that an escalation's evidence is bound to.
pub const ESCALATION_NORMALIZER: &str = "premath.harness.escalation.v1";
const TOOL: &str = "retry.decide";

/// What an escalation rests on.
#[derive(Clone, Debug)]
pub struct EscalationFacts<'a> {
    /// The step that failed.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// The decision that hands the issue up.
    pub decision: &'a Decision,
    /// The classes of the failure.
    pub failure_classes: &'a [String],
    /// The reference of the failed turn's witness.
    pub witness_ref: &'a str,
}

/// Makes the evidence of an escalation turn.
pub fn escalation_turn(facts: &EscalationFacts<'_>) -> JoinCheckInput {
    let call_id = format!("{}/escalation", facts.step.step_id());
    let decision = facts.decision;
    let digest = canonical::digest(&json!({
        "ruleId": decision.rule_id,
        "class": decision.class,
        "attempt": decision.attempt,
        "maxAttempts": decision.max_attempts,
        "backoffClass": decision.backoff_class,
        "verdict": if decision.is_escalation() { RetryVerdict::Escalate } else { RetryVerdict::Retry },
        "failureClasses": facts.failure_classes,
    }));
    let mut evidence = evidence_of(
        facts.step,
        &call_id,
        TOOL,
        ESCALATION_NORMALIZER,
        facts.policies,
        &[Seen {
            call_id: &call_id,
            result_digest: &digest,
            failure: None,
        }],
    );
    evidence.tool_requests.push(RequestRow::new(&call_id, TOOL));
    evidence.tool_results.push(ResultRow::ok(&call_id, &digest));
    evidence.tool_use.push(UseRow {
        result_digest: Some(digest),
        ..UseRow::consumed(&call_id, facts.witness_ref)
    });
    let mut input = JoinCheckInput::new(evidence);
    input.constraints.governance_profile = facts.policies.profile.clone();
    input
}
