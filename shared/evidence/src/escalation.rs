//! The harness's own turn: an escalation, whose evidence is the retry decision
//! (`contracts.md` 7).

use crate::context;
use crate::policy::{Seen, TurnHead, TurnPolicies};
use premath_kernel::authority::{MutationMode, StepIdentity};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::canonical;
use premath_kernel::policy::escalation::{EscalationGrant, EscalationRight};
use premath_kernel::policy::retry::{Decision, EscalationAction, RetryVerdict};
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::record::witness::{Judgement, TurnWitness};
use premath_kernel::turn::{
    CallSpec, Close, JoinCheckInput, MutationBinding, MutationKind, MutationReady, RequestRow,
    ResultRow, UseRow,
};
use serde_json::json;
use std::collections::BTreeSet;

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

fn call_id(step: &StepIdentity) -> String {
    format!("{}/escalation", step.step_id())
}

/// Returns what the context rows of an escalation turn are digests of.
fn context_of(facts: &EscalationFacts<'_>) -> TurnContext {
    context::of_calls(&[Seen {
        call_id: &call_id(facts.step),
        result_digest: "".into(),
        failure: None,
    }])
}

/// Makes the evidence of an escalation turn.
pub(crate) fn escalation_turn(facts: &EscalationFacts<'_>) -> JoinCheckInput {
    let call_id = call_id(facts.step);
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
    let seen = [Seen {
        call_id: &call_id,
        result_digest: digest.as_str().into(),
        failure: None,
    }];
    let head = TurnHead {
        step: facts.step,
        call_id: &call_id,
        model_ref: TOOL,
        normalizer_id: ESCALATION_NORMALIZER,
        policies: facts.policies,
    };
    let mut evidence = head.evidence(&seen, &context_of(facts));
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
/// needs, with the witness of the turn; an action that changes nothing has
/// neither.
pub fn escalation_grant(
    action: EscalationAction,
    facts: &EscalationFacts<'_>,
    mode: &MutationMode,
) -> EscalationGrant {
    match action {
        EscalationAction::MarkBlocked => grant(facts, mode, EscalationRight::ToBlock),
        EscalationAction::IssueDiscover => grant(facts, mode, EscalationRight::ToDiscover),
        EscalationAction::Stop => EscalationGrant {
            right: Ok(None),
            witness: None,
        },
    }
}

fn grant<C: MutationKind>(
    facts: &EscalationFacts<'_>,
    mode: &MutationMode,
    right: impl FnOnce(MutationReady<C>) -> EscalationRight,
) -> EscalationGrant {
    let input = escalation_turn(facts);
    let binding = MutationBinding::of_mode(facts.step.clone(), mode, None)
        .normalized_by(ESCALATION_NORMALIZER);
    let judged = CallSpec::bind(&input).and_then(|turn| {
        let report = turn.report();
        let close = CallSpec::bind(&input)?.admitted::<Close>(&binding);
        Ok((
            report,
            close.err().unwrap_or_default(),
            turn.admitted::<C>(&binding),
        ))
    });
    let (report, close, admitted) = match judged {
        Ok(judged) => judged,
        Err(error) => {
            let (class, detail) = (error.class(), error.to_string());
            return EscalationGrant {
                right: Err(LeaseRefusal { class, detail }),
                witness: None,
            };
        }
    };
    let changes = match admitted {
        Ok(_) => binding.changes_of_escalation(),
        Err(_) => Vec::new(),
    };
    let judgement = Judgement {
        report: &report,
        close: &close,
    };
    let context = context_of(facts);
    let witness = TurnWitness::new(&binding, &input, judgement, changes).with_context(&context);
    EscalationGrant {
        witness: Some(canonical::value_of(&witness)),
        right: admitted.map(|ready| Some(right(ready))).map_err(refusal),
    }
}

fn refusal(classes: BTreeSet<FailureClass>) -> LeaseRefusal {
    let first = classes.into_iter().next();
    LeaseRefusal {
        class: first.unwrap_or(FailureClass::MutationUseEvidenceMissing),
        detail: "the gate refused the escalation's turn".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::StepDemand;
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
                turn: None,
                demand: StepDemand::default(),
            },
            decision: &decision,
            failure_classes: &[class.to_owned()],
            witness_ref: "w://1",
        };
        let grant = escalation_grant(action, &facts, &mode);
        let witness = grant
            .witness
            .map_or(json!(null), |witness| witness["admitted"].clone());
        let expected = match (action, grant.right.is_ok()) {
            (EscalationAction::Stop, _) => json!(null),
            (_, true) => json!(["block", "discover"]),
            (_, false) => json!([]),
        };
        assert_eq!(witness, expected);
        grant.right.map_err(|refusal| refusal.class.to_string())
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
