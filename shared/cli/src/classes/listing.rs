//! Classes as a person reads them in a terminal.

use super::entry::ClassEntry;
use crate::policy::RetryPolicyFile;
use crate::terminal::{WIDTH, plain, wrapped};
use premath_kernel::failure::Family;
use premath_kernel::policy::retry::RuleTerms;
use std::fmt::Write;

/// The meaning of a class that only the policy names.
const FOREIGN: &str = "Defined by the retry policy, not by the harness.";

/// Returns classes in short, by family.
pub(super) fn short(entries: &[ClassEntry<'_>], active: Option<&RetryPolicyFile>) -> String {
    let mut text = active.map(policy).unwrap_or_default();
    let families = Family::ALL.iter().copied().map(Some).chain([None]);
    for family in families {
        let group: Vec<_> = entries.iter().filter(|e| e.family() == family).collect();
        if group.is_empty() {
            continue;
        }
        let about = match family {
            Some(family) => format!("{}: {}", family.as_str().to_uppercase(), family.meaning()),
            None => "OTHERS: classes that only the retry policy names".to_owned(),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{about}");
        for entry in group {
            text.push('\n');
            text.push_str(&heading(entry));
            if let Some(class) = entry.class {
                text.push_str(&wrapped(class.meaning(), 4));
            }
            if let Some((rule_id, terms)) = entry.place {
                text.push_str(&wrapped(&in_short(rule_id, terms), 4));
            }
        }
    }
    let _ = writeln!(text, "\n{}", counted(entries.len(), "class", "classes"));
    text
}

/// Returns classes in full, one after the other.
pub(super) fn full(entries: &[ClassEntry<'_>], active: Option<&RetryPolicyFile>) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(text, "{}", plain(entry.word));
        let meaning = entry.class.map_or(FOREIGN, |class| class.meaning());
        text.push_str(&wrapped(meaning, 2));
        text.push('\n');
        if let Some(class) = entry.class {
            let family = class.family();
            let about = format!("{}: {}", family.as_str(), family.meaning());
            text.push_str(&field("family", &about));
            text.push_str(&field("source", class.source()));
        }
        if let Some((rule_id, terms)) = entry.place {
            let action = terms.escalation_action;
            text.push_str(&field("rule", rule_id));
            text.push_str(&field("attempts", &terms.max_attempts.to_string()));
            text.push_str(&field("backoff", &terms.backoff_class));
            text.push_str(&field(
                "then",
                &format!("{}: {}", action.as_str(), action.meaning()),
            ));
        }
        text.push('\n');
    }
    text.push_str(&active.map(policy).unwrap_or_default());
    text
}

fn policy(active: &RetryPolicyFile) -> String {
    let policy = active.policy();
    [
        field("policy", policy.policy_id()),
        field("digest", policy.policy_digest()),
        field("from", &active.place()),
    ]
    .concat()
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<10}{}\n", plain(value))
}

/// The class, and its source at the end of the line.
fn heading(entry: &ClassEntry<'_>) -> String {
    let word = plain(entry.word);
    let source = entry.class.map_or("", |class| class.source());
    let rest = WIDTH
        .saturating_sub(word.chars().count())
        .max(source.len() + 2);
    let line = format!("{word}{source:>rest$}");
    format!("{}\n", line.trim_end())
}

fn in_short(rule_id: &str, terms: &RuleTerms) -> String {
    format!(
        "{rule_id}: {}, backoff {}, then {}",
        counted(terms.max_attempts as usize, "attempt", "attempts"),
        terms.backoff_class,
        terms.escalation_action.as_str()
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::super::entry::{entries, find};
    use super::*;

    #[test]
    fn no_line_of_the_listing_is_wider_than_the_narrowest_terminal_it_is_made_for() {
        let active = RetryPolicyFile::embedded().unwrap();
        let text = short(&entries(Some(active.policy())), Some(&active));
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert_eq!(line, line.trim_end());
        }
    }

    #[test]
    fn a_class_in_short_has_its_source_its_meaning_and_its_place() {
        let active = RetryPolicyFile::embedded().unwrap();
        let all = entries(Some(active.policy()));
        let text = short(&[find(&all, "gate_timeout").unwrap().clone()], None);
        let expected = "\
EXECUTION: what a command of the step did

gate_timeout                                                                     contracts 7
    The command exceeded its time limit and was killed with its process group.
    transient_retry: 3 attempts, backoff exponential_short, then issue_discover

1 class
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_class_in_full_names_the_policy_that_decides() {
        let active = RetryPolicyFile::embedded().unwrap();
        let all = entries(Some(active.policy()));
        let text = full(
            &[find(&all, "tool.use_missing").unwrap().clone()],
            Some(&active),
        );
        let expected = format!(
            "\
tool.use_missing
  A terminal result has no use disposition.

family    typestate: the turn, with its tool calls, protocol, context, mutation and governance
source    HARNESS-TYPESTATE 5
rule      operational_retry
attempts  2
backoff   fixed_short
then      issue_discover: files a follow-up, linked discovered-from

policy    policy.harness.retry.default.v1
digest    {}
from      embedded
",
            active.policy().policy_digest()
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_a_policy_says_does_nothing_to_a_terminal() {
        let active = RetryPolicyFile::embedded().unwrap();
        let terms = RuleTerms {
            backoff_class: "b\u{1b}[31m".to_owned(),
            ..active.policy().default_rule().clone()
        };
        let entry = ClassEntry {
            word: "w\u{1b}]0;x\u{7}",
            class: None,
            place: Some(("r\u{9b}2J\n", &terms)),
        };
        let entries = [entry];
        for text in [short(&entries, None), full(&entries, None)] {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
            assert!(text.contains("w\\u{1b}]0;x\\u{7}"), "{text}");
        }
    }
}
