//! The harness's own turn: an escalation, whose evidence is the retry decision
//! (`contracts.md` 7).

use crate::policy::{Seen, TurnPolicies, evidence_of};
use premath_kernel::authority::{MutationMode, StepIdentity};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::canonical;
use premath_kernel::policy::escalation::EscalationRight;
use premath_kernel::policy::retry::{Decision, EscalationAction, RetryVerdict};
use premath_kernel::turn::{
    CallSpec, JoinCheckInput, MutationBinding, MutationKind, MutationReady, RequestRow, ResultRow,
    UseRow,
};
use serde_json::json;

/// The normaliser that an escalation's evidence is bound to.
pub(crate) const ESCALATION_NORMALIZER: &str = "premath.harness.escalation.v1";
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
pub(crate) fn escalation_turn(facts: &EscalationFacts<'_>) -> JoinCheckInput {
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
            result_digest: digest.as_str().into(),
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

/// Walks an escalation's turn through the gate, to the right that its action
/// needs; `None` where the action changes nothing.
///
/// # Errors
///
/// The first class that the gate refuses the turn with.
pub fn escalation_right(
    action: EscalationAction,
    facts: &EscalationFacts<'_>,
    mode: &MutationMode,
) -> Result<Option<EscalationRight>, LeaseRefusal> {
    Ok(match action {
        EscalationAction::MarkBlocked => Some(EscalationRight::ToBlock(right(facts, mode)?)),
        EscalationAction::IssueDiscover => Some(EscalationRight::ToDiscover(right(facts, mode)?)),
        EscalationAction::Stop => None,
    })
}

fn right<C: MutationKind>(
    facts: &EscalationFacts<'_>,
    mode: &MutationMode,
) -> Result<MutationReady<C>, LeaseRefusal> {
    let refused = |class: FailureClass, detail: String| LeaseRefusal { class, detail };
    let input = escalation_turn(facts);
    let turn = CallSpec::bind(&input).map_err(|error| refused(error.class(), error.to_string()))?;
    let binding = MutationBinding::of_mode(facts.step.clone(), mode, None)
        .normalized_by(ESCALATION_NORMALIZER);
    turn.admitted::<C>(&binding).map_err(|classes| {
        refused(
            classes
                .first()
                .copied()
                .unwrap_or(FailureClass::MutationUseEvidenceMissing),
            "the gate refused the escalation's turn".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::policy::retry::{RetryPolicy, decide};

    fn right_of(class: &str, mutation: Option<&str>) -> Result<Option<EscalationRight>, String> {
        let mode = MutationMode::human_override("test", None, jiff::Timestamp::UNIX_EPOCH).unwrap();
        let policy = RetryPolicy::embedded().unwrap();
        let decision = decide(&policy, &[class], 100);
        let premath_kernel::policy::retry::RetryOutcome::Escalate(action) = decision.outcome else {
            panic!("attempts are used up");
        };
        let facts = EscalationFacts {
            step: &StepIdentity {
                issue_id: "a".into(),
                worker_id: "w".into(),
                owner: "w".into(),
                lease_id: "l".into(),
                generation: 1,
                session_id: "s".into(),
            },
            policies: &TurnPolicies {
                mutation: mutation.map_or_else(|| mode.policy_digest(), str::to_owned),
                profile: None,
            },
            decision: &decision,
            failure_classes: &[class.to_owned()],
            witness_ref: "w://1",
        };
        escalation_right(action, &facts, &mode).map_err(|refusal| refusal.class.to_string())
    }

    #[test]
    fn each_action_gets_the_right_that_it_needs_and_no_other() {
        assert!(matches!(
            right_of("check_failed", None),
            Ok(Some(EscalationRight::ToBlock(_)))
        ));
        assert!(matches!(
            right_of("gate_timeout", None),
            Ok(Some(EscalationRight::ToDiscover(_)))
        ));
        assert!(matches!(right_of("work_failed", None), Ok(None)));
    }

    #[test]
    fn another_mutation_policy_gets_none() {
        let digest = format!("pol1_{}", "0".repeat(64));
        let refused = right_of("check_failed", Some(&digest)).unwrap_err();
        assert_eq!(refused, "mutation.policy_digest_mismatch");
    }
}
