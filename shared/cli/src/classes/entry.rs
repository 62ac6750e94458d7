//! One class as an answer shows it: what it means and what the policy says.

use crate::error::CliError;
use premath_kernel::failure::{FailureClass, Family};
use premath_kernel::policy::retry::{RetryPolicy, RuleTerms};
use serde_json::{Value, json};

/// A class of the table, or a word that the policy alone knows.
#[derive(Clone, Debug)]
pub(super) struct ClassEntry<'p> {
    /// The class's text.
    pub(super) word: &'p str,
    /// The row of the table, where there is one.
    pub(super) class: Option<FailureClass>,
    /// Rule id and terms, where there is a policy.
    pub(super) place: Option<(&'p str, &'p RuleTerms)>,
}

impl<'p> ClassEntry<'p> {
    fn of(word: &'p str, class: Option<FailureClass>, policy: Option<&'p RetryPolicy>) -> Self {
        Self {
            word,
            class,
            place: policy.map(|policy| policy.place_of(word)),
        }
    }

    /// Returns the family of a class of the table.
    pub(super) fn family(&self) -> Option<Family> {
        self.class.map(FailureClass::family)
    }

    /// Returns the entry as an item of a JSON answer.
    pub(super) fn document(&self) -> Value {
        json!({
            "failureClass": self.word,
            "family": self.family().map(Family::as_str),
            "meaning": self.class.map(FailureClass::meaning),
            "source": self.class.map(FailureClass::source),
            "retry": self.place.map(|(rule_id, terms)| json!({
                "ruleId": rule_id,
                "maxAttempts": terms.max_attempts,
                "backoffClass": terms.backoff_class,
                "escalationAction": terms.escalation_action,
            })),
        })
    }
}

/// Returns every class of the table in its order, then the words that the
/// policy alone knows, in the order of its rules.
pub(super) fn entries(policy: Option<&RetryPolicy>) -> Vec<ClassEntry<'_>> {
    let table = FailureClass::ALL.iter();
    let mut entries: Vec<_> = table
        .map(|class| ClassEntry::of(class.as_str(), Some(*class), policy))
        .collect();
    let rules = policy.map(RetryPolicy::rules).unwrap_or_default();
    let words = rules.iter().flat_map(|rule| &rule.failure_classes);
    entries.extend(
        words
            .filter(|word| word.parse::<FailureClass>().is_err())
            .map(|word| ClassEntry::of(word, None, policy)),
    );
    entries
}

/// Returns the entry of a class.
///
/// # Errors
///
/// [`CliError::UnknownClass`], with the nearest one.
pub(super) fn find<'e, 'p>(
    entries: &'e [ClassEntry<'p>],
    word: &str,
) -> Result<&'e ClassEntry<'p>, CliError> {
    let unknown = || CliError::UnknownClass {
        word: word.to_owned(),
        nearest: nearest(entries, word).map(str::to_owned),
    };
    let found = entries.iter().find(|entry| entry.word == word);
    found.ok_or_else(unknown)
}

/// Returns the class that holds the word, or else is the fewest edits away;
/// the shorter and then the first by text where several are. A word that has
/// little in common with every class has none.
fn nearest<'p>(entries: &[ClassEntry<'p>], word: &str) -> Option<&'p str> {
    let word = word.to_ascii_lowercase();
    let key = |candidate: &'p str| {
        (
            !candidate.contains(&word),
            strsim::damerau_levenshtein(&word, candidate),
            candidate,
        )
    };
    let is_near = |candidate: &&'p str| {
        let (is_no_part, edits, _) = key(candidate);
        !is_no_part || edits * 2 <= word.chars().count()
    };
    let words = entries.iter().map(|entry| entry.word);
    words.filter(is_near).min_by_key(|word| key(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_class_is_that_of_a_slip_or_of_a_part() {
        let entries = entries(None);
        for (word, expected) in [
            ("tool.use_mising", "tool.use_missing"),
            ("use_missing", "tool.use_missing"),
            ("Check_Failed", "check_failed"),
            ("chekc_failed", "check_failed"),
            (
                "in_progress",
                "harness_feature_ledger.in_progress.non_contractible",
            ),
        ] {
            assert_eq!(nearest(&entries, word), Some(expected), "{word}");
            assert!(find(&entries, word).is_err(), "{word}");
        }
        assert!(find(&entries, "tool.use_missing").is_ok());
        assert_eq!(nearest(&entries, "nosuch"), None);
    }

    #[test]
    fn words_of_the_policy_alone_come_after_the_table() {
        let text = RetryPolicy::embedded_text().replace("\"flaky_io\"", "\"of_my_own\"");
        let mut document: Value = serde_json::from_str(&text).unwrap();
        document["policyDigest"] = RetryPolicy::digest(text.as_bytes()).unwrap().into();
        let policy = RetryPolicy::parse(document.to_string().as_bytes()).unwrap();
        let all = entries(Some(&policy));
        let (table, own) = all.split_at(FailureClass::ALL.len());
        assert!(table.iter().all(|entry| entry.class.is_some()));
        assert!(own.iter().all(|entry| entry.class.is_none()));
        let own: Vec<_> = own.iter().map(ClassEntry::document).collect();
        assert_eq!(
            own[0],
            json!({
                "failureClass": "of_my_own", "family": null, "meaning": null, "source": null,
                "retry": {"ruleId": "transient_retry", "maxAttempts": 3,
                          "backoffClass": "exponential_short", "escalationAction": "issue_discover"},
            })
        );
        let others: Vec<_> = own[1..]
            .iter()
            .map(|entry| &entry["failureClass"])
            .collect();
        assert!(
            others.contains(&&json!("pipeline_missing_witness")),
            "{others:?}"
        );
        assert_eq!(find(&all, "flaky_io").unwrap().place.unwrap().0, "default");
    }

    #[test]
    fn without_a_policy_a_class_still_has_its_meaning() {
        let document = find(&entries(None), "gate_timeout").unwrap().document();
        assert_eq!(document["family"], "execution");
        assert_eq!(document["retry"], Value::Null);
    }
}
