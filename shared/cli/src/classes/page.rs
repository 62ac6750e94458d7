//! The documentation page of the classes, `docs/reference/classes.md`.

use premath_kernel::failure::Family;
use premath_kernel::policy::retry::{DEFAULT_RULE_ID, RetryPolicy, RuleTerms};
use std::fmt::Write;

/// The text before the tables.
const HEAD: &str = "\
# Failure classes

<!-- Written by `mise run generate` from the table in shared/kernel/src/failure.rs. -->

A class is a stable, machine-readable name of one way to fail. It appears in trajectory \
rows, witnesses and answers under `failureClasses`. The retry policy has a rule for it, or its \
default rule applies. If a failure has several classes, the first one that a rule names decides. \
The source is the section whose rule was broken.

`premath classes` lists the same with the retry policy of your repository, `premath classes CLASS` \
shows one class in full, and both take `--json`.
";

/// Returns the page, with the places that a policy gives.
pub(super) fn page(policy: &RetryPolicy) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(&rules(policy));
    for family in Family::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n{} classes of {}.\n\n| class | meaning | rule | source |\n|---|---|---|---|\n",
            family.as_str(),
            family.classes().count(),
            family.meaning()
        );
        for class in family.classes() {
            let _ = writeln!(
                text,
                "| `{class}` | {} | {} | {} |",
                cell(class.meaning()),
                cell(policy.place_of(class.as_str()).0),
                cell(class.source())
            );
        }
    }
    text
}

fn rules(policy: &RetryPolicy) -> String {
    let mut text = format!(
        "\n## The embedded retry policy\n\n`{}`, digest `{}`. An artifact that \
         `retry_policy` in `harness.toml` names replaces it.\n\n\
         | rule | attempts | backoff | then |\n|---|---|---|---|\n",
        policy.policy_id(),
        policy.policy_digest()
    );
    let named = policy
        .rules()
        .iter()
        .map(|r| (r.rule_id.as_str(), &r.terms));
    for (rule_id, terms) in named.chain([(DEFAULT_RULE_ID, policy.default_rule())]) {
        text.push_str(&rule(rule_id, terms));
    }
    text
}

fn rule(rule_id: &str, terms: &RuleTerms) -> String {
    let action = terms.escalation_action;
    format!(
        "| {} | {} | {} | `{}`: {} |\n",
        cell(rule_id),
        terms.max_attempts,
        cell(&terms.backoff_class),
        action.as_str(),
        cell(action.meaning())
    )
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::failure::FailureClass;

    /// The shipped page, as the repository has it.
    const SHIPPED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/classes.md"
    );

    #[test]
    fn the_shipped_page_is_current() {
        let shipped = std::fs::read_to_string(SHIPPED).unwrap_or_default();
        assert!(
            shipped == page(&RetryPolicy::embedded().unwrap()),
            "docs/reference/classes.md is not what the table gives; `mise run generate` \
             writes it"
        );
    }

    #[test]
    fn the_page_has_one_row_for_every_class() {
        let page = page(&RetryPolicy::embedded().unwrap());
        for class in FailureClass::ALL {
            let head = format!("| `{class}` | ");
            let rows = page.lines().filter(|line| line.starts_with(&head));
            assert_eq!(rows.count(), 1, "{class}");
        }
        for line in page.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.matches('|').count(), 5, "{line}");
        }
    }
}
