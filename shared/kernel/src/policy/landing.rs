//! How closed work reaches one branch: modes, names, and what a landing needs
//! (HARNESS-RUNTIME 3.2).
//!
//! The rule that everything here keeps: each commit of the target's
//! first-parent history that a harness put there is a tree that was verified.

use crate::json::token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The branch that work lands on where no other is named.
pub const DEFAULT_TARGET: &str = "harness/integration";

/// The rounds of a landing, by the names of their outputs and witnesses: it
/// restarts if another process moved the target, up to this bound.
pub const ROUNDS: [&str; 8] = [
    "land", "land-2", "land-3", "land-4", "land-5", "land-6", "land-7", "land-8",
];

/// Where a step works, and what happens to its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LandingMode {
    /// On a branch of its own from the target's tip; it lands before its issue
    /// closes.
    #[default]
    Merge,
    /// On a branch of its own from the target's tip, which stays.
    Branch,
    /// On whatever branch the lane's worktree is on.
    None,
}

impl LandingMode {
    /// Returns the text used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Branch => "branch",
            Self::None => "none",
        }
    }
}

impl fmt::Display for LandingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word is not a landing mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value `{0}`: expected `merge`, `branch` or `none`")]
pub struct UnknownMode(pub String);

impl FromStr for LandingMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Merge, Self::Branch, Self::None]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// What a batch is to do with closed work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandingRule {
    /// How far it goes.
    pub mode: LandingMode,
    /// The branch, without `refs/heads/`.
    pub target: String,
    /// A command that what landed must pass, or it is taken back.
    pub check: Option<String>,
    /// The remote that the target is pushed to after a landing.
    pub push: Option<String>,
}

impl Default for LandingRule {
    fn default() -> Self {
        Self {
            mode: LandingMode::Merge,
            target: DEFAULT_TARGET.to_owned(),
            check: None,
            push: None,
        }
    }
}

/// A landing that came about, as row and witness say it (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandingRecord {
    /// The branch that it landed on, without `refs/heads/`.
    pub target: String,
    /// The commit that the branch was moved to; where there was nothing to
    /// land, the commit of the branch that the step began at.
    pub commit: String,
}

/// Returns the names that a step's branch may have, the first that is free
/// counts: `harness/<issue>/<generation>` without `refs/heads/`, or one beside
/// it if that would conflict with other branches of the harness.
pub fn step_branches(issue_id: &str, generation: u64) -> Vec<String> {
    let part = token::encode_branch(issue_id);
    let mut stems = Vec::new();
    if !matches!(&*part, "salvage" | "moved" | "integration") {
        stems.push(format!("harness/{part}/{generation}"));
    }
    stems.push(format!("harness-step/{part}/{generation}"));
    stems
}

/// Returns whether a branch is one that [`step_branches`] names for a step,
/// with whatever number at its end.
pub fn is_step_branch(branch: &str, issue_id: &str, generation: u64) -> bool {
    step_branches(issue_id, generation).iter().any(|stem| {
        branch.strip_prefix(stem.as_str()).is_some_and(|rest| {
            rest.is_empty()
                || rest.strip_prefix('.').is_some_and(|number| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read::of_shape;

    #[test]
    fn modes_read_back() {
        for mode in [LandingMode::Merge, LandingMode::Branch, LandingMode::None] {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert_eq!(
            "marge".parse::<LandingMode>().unwrap_err().to_string(),
            "invalid value `marge`: expected `merge`, `branch` or `none`"
        );
    }

    #[test]
    fn a_steps_branch_never_blocks_the_harness() {
        assert_eq!(step_branches("a/b", 2)[0], "harness/a%2Fb/2");
        for reserved in ["salvage", "moved", "integration"] {
            assert_eq!(
                step_branches(reserved, 1),
                [format!("harness-step/{reserved}/1")]
            );
        }
    }

    #[test]
    fn a_steps_branch_is_known_by_its_name() {
        for (branch, expected) in [
            ("harness/a/1", true),
            ("harness/a/1.2", true),
            ("harness-step/a/1.13", true),
            ("harness/a/12", false),
            ("harness/a/1.", false),
            ("harness/a/1.x", false),
            ("harness/b/1", false),
            ("lane-1", false),
        ] {
            assert_eq!(is_step_branch(branch, "a", 1), expected, "{branch}");
        }
    }

    #[test]
    fn a_record_reads_back() {
        let record = LandingRecord {
            target: "t".into(),
            commit: "c".into(),
        };
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!(of_shape::<LandingRecord>(&value), Some(record));
        let other = serde_json::json!({"target": 1});
        assert_eq!(of_shape::<LandingRecord>(&other), None);
    }
}
