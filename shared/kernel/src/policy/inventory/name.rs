//! What a branch is for, by its name.

use crate::json::id::IssueId;
use crate::json::token;
use crate::policy::landing::DEFAULT_TARGET;
use std::collections::BTreeMap;

/// What a branch is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The branch that work lands on.
    Target,
    /// The branch of a step.
    Step {
        /// The step's issue.
        issue: IssueId,
        /// The lease's generation.
        generation: u64,
    },
    /// A branch that keeps the work of a failed step.
    Salvage,
    /// A user's branch that blocked a lane.
    Moved,
    /// A branch with a name like the harness gives, which it did not create.
    Other,
}

/// Reports what a branch is for; `None` where it has nothing to do with the
/// harness.
pub fn role(branch: &str, targets: &BTreeMap<String, Option<String>>) -> Option<Role> {
    if targets.contains_key(branch) || branch == DEFAULT_TARGET {
        return Some(Role::Target);
    }
    let (folder, rest) = branch.split_once('/')?;
    let role = match folder {
        "harness" => match rest.split_once('/') {
            Some(("salvage", _)) => Role::Salvage,
            Some(("moved", _)) => Role::Moved,
            _ => step(rest),
        },
        "harness-step" => step(rest),
        "harness-salvage" => Role::Salvage,
        _ => return None,
    };
    Some(role)
}

/// Reads `<issue>/<generation>`, with or without a number behind it.
fn step(rest: &str) -> Role {
    let read = || {
        let (issue, number) = rest.split_once('/')?;
        let (generation, further) = number.split_once('.').unwrap_or((number, "2"));
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(generation) || !is_number(further) {
            return None;
        }
        Some(Role::Step {
            issue: token::decode(issue)?.into(),
            generation: generation.parse().ok()?,
        })
    };
    read().unwrap_or(Role::Other)
}

/// Returns the issue of a mark, by its full name.
pub fn marked_issue(name: &str) -> Option<String> {
    let rest = name.strip_prefix("refs/harness/landing/")?;
    token::decode(rest.split_once('/')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::landing::step_branches;
    use proptest::prelude::*;

    #[test]
    fn a_branch_is_known_by_its_name() {
        let targets = BTreeMap::from([("night/1".to_owned(), None)]);
        let step = |issue: &str, generation| Role::Step {
            issue: issue.into(),
            generation,
        };
        for (branch, expected) in [
            ("harness/integration", Some(Role::Target)),
            ("night/1", Some(Role::Target)),
            ("harness/a%2Fb/2", Some(step("a/b", 2))),
            ("harness/a/2.13", Some(step("a", 2))),
            ("harness-step/salvage/1", Some(step("salvage", 1))),
            ("harness/salvage/a/1", Some(Role::Salvage)),
            ("harness-salvage/a/1.2", Some(Role::Salvage)),
            ("harness/moved/l1/fix", Some(Role::Moved)),
            ("harness/mine", Some(Role::Other)),
            ("harness/a/x", Some(Role::Other)),
            ("harness/a/1/b", Some(Role::Other)),
            ("main", None),
            ("harnesses/a/1", None),
        ] {
            assert_eq!(role(branch, &targets), expected, "{branch}");
        }
        let issue = marked_issue("refs/harness/landing/a%2Fb/7");
        assert_eq!(issue.as_deref(), Some("a/b"));
        assert_eq!(marked_issue("refs/heads/a/7"), None);
    }

    proptest! {
        #[test]
        fn every_step_branch_names_its_step(issue in "\\PC{1,8}", generation: u64) {
            for branch in step_branches(&issue.as_str().into(), generation) {
                let expected = Role::Step { issue: issue.clone().into(), generation };
                prop_assert_eq!(role(&branch, &BTreeMap::new()), Some(expected));
            }
        }
    }
}
