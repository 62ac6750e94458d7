//! Retry and escalation: what happens to a step that failed (`contracts.md` 7,
//! TUSK-HARNESS-CONTRACT 5).
//!
//! The rules are a policy artifact bound by its digest; none is written in
//! code.

mod backoff;
mod end;
mod policy;
mod words;

pub(crate) use backoff::jitter;
pub use backoff::{Backoff, BackoffTable, retry_at};
pub use end::{CommandEnd, EndCause, classes_of, may_pass_again};
pub use policy::{
    EscalationAction, POLICY_KIND, POLICY_PLACE, PolicyError, RetryPolicy, RetryRule, RuleTerms,
    UnknownAction,
};
pub use words::{class_words, is_class_word, is_found_by_the_harness};

use crate::failure::FailureClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule id of a decision that no rule names.
pub const DEFAULT_RULE_ID: &str = "default";

/// The outcome of a retry decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryOutcome {
    /// Try again, after the backoff.
    Retry,
    /// The attempts are used up.
    Escalate(EscalationAction),
}

/// What the policy reports about one failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The rule that decides, [`DEFAULT_RULE_ID`] where none names a class.
    pub rule_id: String,
    /// The class that decides.
    pub class: String,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How many attempts the rule gives.
    pub max_attempts: u32,
    /// The rule's backoff class.
    pub backoff_class: String,
    /// The outcome of the decision.
    pub outcome: RetryOutcome,
}

impl Decision {
    /// Returns whether the attempts are used up.
    pub const fn is_escalation(&self) -> bool {
        matches!(self.outcome, RetryOutcome::Escalate(_))
    }
}

/// Decides over the classes of a failed attempt, in their order: the first
/// that a rule names, else the first by the default rule.
///
/// `attempt` counts from 1 and includes the one that failed; 0 reads as 1. No
/// class at all reads as `work_failed`.
pub fn decide(policy: &RetryPolicy, classes: &[impl AsRef<str>], attempt: u32) -> Decision {
    decide_within(policy, classes, attempt, None)
}

/// Decides as [`decide`] does, within a budget of attempts that may be smaller
/// than the rule's and never makes it larger.
pub fn decide_within(
    policy: &RetryPolicy,
    classes: &[impl AsRef<str>],
    attempt: u32,
    budget: Option<u32>,
) -> Decision {
    let attempt = attempt.max(1);
    let unnamed = [FailureClass::WorkFailed.as_str()];
    let words: Vec<&str> = if classes.is_empty() {
        unnamed.to_vec()
    } else {
        classes.iter().map(AsRef::as_ref).collect()
    };
    let named = words
        .iter()
        .find_map(|word| policy.rule_of(word).map(|rule| (rule, *word)));
    let (rule_id, terms, class) = match named {
        Some((rule, word)) => (rule.rule_id.as_str(), &rule.terms, word),
        None => (
            DEFAULT_RULE_ID,
            policy.default_rule(),
            words.first().copied().unwrap_or_default(),
        ),
    };
    let max_attempts = budget.map_or(terms.max_attempts, |budget| {
        terms.max_attempts.min(budget.max(1))
    });
    Decision {
        rule_id: rule_id.to_owned(),
        class: class.to_owned(),
        attempt,
        max_attempts,
        backoff_class: terms.backoff_class.clone(),
        outcome: if attempt < max_attempts {
            RetryOutcome::Retry
        } else {
            RetryOutcome::Escalate(terms.escalation_action)
        },
    }
}

/// The failures of an issue in its batch before the attempt that is decided about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierFailures {
    /// All attempts that failed by themselves.
    pub attempts: u32,
    /// Those of them whose work conflicted with what landed.
    pub conflicts: u32,
}

/// Decides as [`decide`] does about the next attempt of a batch. Attempts that failed
/// for another reason do not use up those after a conflict: the first conflict is
/// followed by an attempt with the landing reserved, whatever came before.
pub fn decide_next(
    policy: &RetryPolicy,
    classes: &[impl AsRef<str>],
    earlier: EarlierFailures,
) -> Decision {
    let attempt = earlier.attempts.saturating_add(1);
    let decision = decide(policy, classes, attempt);
    if decision.class != FailureClass::LandingConflict.as_str() {
        return decision;
    }
    let others = earlier.attempts.saturating_sub(earlier.conflicts);
    let max_attempts = decision.max_attempts.saturating_add(others);
    let outcome = match decision.outcome {
        RetryOutcome::Escalate(_) if attempt < max_attempts => RetryOutcome::Retry,
        outcome => outcome,
    };
    Decision {
        max_attempts,
        outcome,
        ..decision
    }
}

/// Whether a recorded decision retried or escalated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetryVerdict {
    /// The issue was tried again.
    Retry,
    /// The attempts were used up.
    Escalate,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy() -> RetryPolicy {
        RetryPolicy::embedded().unwrap()
    }

    #[test]
    fn other_failures_do_not_use_up_the_attempt_after_a_conflict() {
        let conflict = FailureClass::LandingConflict.as_str();
        for (attempts, conflicts, max, is_over) in [
            (0, 0, 2, false),
            (1, 0, 3, false),
            (2, 0, 4, false),
            (1, 1, 2, true),
            (2, 1, 3, true),
        ] {
            let earlier = EarlierFailures {
                attempts,
                conflicts,
            };
            let decision = decide_next(&policy(), &[conflict], earlier);
            assert_eq!(decision.attempt, attempts + 1);
            assert_eq!(decision.max_attempts, max);
            assert_eq!(decision.is_escalation(), is_over, "{earlier:?}");
            let other = decide_next(&policy(), &["check_failed"], earlier);
            assert_eq!(other, decide(&policy(), &["check_failed"], attempts + 1));
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn the_table_of_the_contract_decides() {
        use EscalationAction::{IssueDiscover, MarkBlocked, Stop};
        use RetryOutcome::{Escalate, Retry};
        for (classes, attempt, rule, class, outcome) in [
            (
                vec!["gate_timeout"],
                1,
                "transient_retry",
                "gate_timeout",
                Retry,
            ),
            (
                vec!["gate_timeout"],
                2,
                "transient_retry",
                "gate_timeout",
                Retry,
            ),
            (
                vec!["gate_timeout"],
                3,
                "transient_retry",
                "gate_timeout",
                Escalate(IssueDiscover),
            ),
            (
                vec!["hook_failed"],
                1,
                "operational_retry",
                "hook_failed",
                Retry,
            ),
            (
                vec!["hook_failed"],
                2,
                "operational_retry",
                "hook_failed",
                Escalate(IssueDiscover),
            ),
            (
                vec!["governance.eval_gate_unmet"],
                1,
                "governance_no_retry",
                "governance.eval_gate_unmet",
                Escalate(MarkBlocked),
            ),
            (
                vec!["check_failed"],
                1,
                "semantic_no_retry",
                "check_failed",
                Escalate(MarkBlocked),
            ),
            (
                vec!["work_failed"],
                1,
                "default",
                "work_failed",
                Escalate(Stop),
            ),
            (
                vec!["work_failed", "flaky_io", "check_failed"],
                1,
                "transient_retry",
                "flaky_io",
                Retry,
            ),
            (
                vec!["lease_stale", "work_failed"],
                7,
                "default",
                "lease_stale",
                Escalate(Stop),
            ),
            (vec![], 0, "default", "work_failed", Escalate(Stop)),
        ] {
            let decision = decide(&policy(), &classes, attempt);
            assert_eq!(
                (
                    decision.rule_id.as_str(),
                    decision.class.as_str(),
                    decision.outcome
                ),
                (rule, class, outcome),
                "{classes:?} {attempt}"
            );
        }
    }

    #[test]
    fn a_budget_removes_attempts_and_adds_none() {
        let of = |attempt, budget| decide_within(&policy(), &["gate_timeout"], attempt, budget);
        assert_eq!(of(1, Some(9)), of(1, None));
        assert_eq!(of(2, Some(2)).max_attempts, 2);
        assert!(of(2, Some(2)).is_escalation());
        assert!(of(1, Some(0)).is_escalation());
    }

    proptest! {
        #[test]
        fn attempts_end(class in prop::sample::select(FailureClass::ALL), attempt in 0u32..200) {
            let decision = decide(&policy(), &[class.as_str()], attempt);
            prop_assert_eq!(decision.is_escalation(), decision.attempt >= decision.max_attempts);
            prop_assert!(decide(&policy(), &[class.as_str()], 100).is_escalation());
        }
    }
}
