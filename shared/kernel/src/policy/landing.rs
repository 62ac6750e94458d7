//! How closed work reaches one branch: modes, names, and what a landing needs
//! (HARNESS-RUNTIME 3.2).
//!
//! The rule that everything here keeps: a landing moves the target by
//! compare-and-swap to a descendant commit whose tree was verified. The target
//! moves back only where a landing is taken back before its issue closes. Commits
//! on the target whose tree was not verified by itself are reverts (by the harness
//! or by `premath review`) and, with `batch` above 1, commits with the trailer
//! `Verified-In`. With `batch` above 1, a commit that was not verified by itself is
//! followed by the verified commit of its run. Between the two are only commits of
//! the same run.

use super::verified_states::{ASSUMED_MAX, FIRM_MAX, STATES_AFTER_PASS, TAKEN_BACK_MAX};
use crate::json::id::IssueId;
use crate::json::token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The branch that work lands on where no other is named.
pub const DEFAULT_TARGET: &str = "harness/integration";

/// How long finished work waits for a person who has the target checked out. Longer, and
/// its issue would wait for the morning with a lane.
pub const CHECKOUT_MAX: Duration = Duration::from_secs(10 * 60);

/// The most repair rounds of a step: some agents stop by themselves after eight
/// turns in a row.
pub(crate) const REPAIR_ROUNDS_MAX: usize = 7;

/// The runs of a step's work, by the names of their outputs and witnesses: after
/// a verification that fails, the agent may be run again in its session.
pub const WORK_ROUNDS: [&str; 1 + REPAIR_ROUNDS_MAX] = [
    "work", "work-2", "work-3", "work-4", "work-5", "work-6", "work-7", "work-8",
];

/// The verifications of work that has not passed yet, by the names of their
/// outputs and witnesses: one that is superseded is done again, and one that
/// fails is repeated.
pub const VERIFY_ROUNDS: [&str; 96] = [
    "verify",
    "verify-2",
    "verify-3",
    "verify-4",
    "verify-5",
    "verify-6",
    "verify-7",
    "verify-8",
    "verify-9",
    "verify-10",
    "verify-11",
    "verify-12",
    "verify-13",
    "verify-14",
    "verify-15",
    "verify-16",
    "verify-17",
    "verify-18",
    "verify-19",
    "verify-20",
    "verify-21",
    "verify-22",
    "verify-23",
    "verify-24",
    "verify-25",
    "verify-26",
    "verify-27",
    "verify-28",
    "verify-29",
    "verify-30",
    "verify-31",
    "verify-32",
    "verify-33",
    "verify-34",
    "verify-35",
    "verify-36",
    "verify-37",
    "verify-38",
    "verify-39",
    "verify-40",
    "verify-41",
    "verify-42",
    "verify-43",
    "verify-44",
    "verify-45",
    "verify-46",
    "verify-47",
    "verify-48",
    "verify-49",
    "verify-50",
    "verify-51",
    "verify-52",
    "verify-53",
    "verify-54",
    "verify-55",
    "verify-56",
    "verify-57",
    "verify-58",
    "verify-59",
    "verify-60",
    "verify-61",
    "verify-62",
    "verify-63",
    "verify-64",
    "verify-65",
    "verify-66",
    "verify-67",
    "verify-68",
    "verify-69",
    "verify-70",
    "verify-71",
    "verify-72",
    "verify-73",
    "verify-74",
    "verify-75",
    "verify-76",
    "verify-77",
    "verify-78",
    "verify-79",
    "verify-80",
    "verify-81",
    "verify-82",
    "verify-83",
    "verify-84",
    "verify-85",
    "verify-86",
    "verify-87",
    "verify-88",
    "verify-89",
    "verify-90",
    "verify-91",
    "verify-92",
    "verify-93",
    "verify-94",
    "verify-95",
    "verify-96",
];

/// The verifications of work that passed on another state of the target, by the
/// names of their outputs and witnesses.
pub const LAND_ROUNDS: [&str; 64] = [
    "land", "land-2", "land-3", "land-4", "land-5", "land-6", "land-7", "land-8", "land-9",
    "land-10", "land-11", "land-12", "land-13", "land-14", "land-15", "land-16", "land-17",
    "land-18", "land-19", "land-20", "land-21", "land-22", "land-23", "land-24", "land-25",
    "land-26", "land-27", "land-28", "land-29", "land-30", "land-31", "land-32", "land-33",
    "land-34", "land-35", "land-36", "land-37", "land-38", "land-39", "land-40", "land-41",
    "land-42", "land-43", "land-44", "land-45", "land-46", "land-47", "land-48", "land-49",
    "land-50", "land-51", "land-52", "land-53", "land-54", "land-55", "land-56", "land-57",
    "land-58", "land-59", "land-60", "land-61", "land-62", "land-63", "land-64",
];

/// The checks of a step's work that landed, by the names of their outputs and
/// witnesses: work that is taken back with other work lands again.
pub const LANDED_ROUNDS: [&str; 16] = [
    "landed",
    "landed-2",
    "landed-3",
    "landed-4",
    "landed-5",
    "landed-6",
    "landed-7",
    "landed-8",
    "landed-9",
    "landed-10",
    "landed-11",
    "landed-12",
    "landed-13",
    "landed-14",
    "landed-15",
    "landed-16",
];

/// The name of the witness of work that rests on the verification of other work.
pub const SHARED_ROUND: &str = "shared";

/// The name of what the harness itself says about a step that failed, where no
/// command said it.
pub const FAILURE_ROUND: &str = "failure";

/// How often a verification that fails is repeated on the same tree where the
/// settings do not say it.
pub const DEFAULT_FLAKY_RERUNS: usize = 1;

/// The most that the settings may say.
pub const FLAKY_RERUNS_MAX: usize = 3;

/// On how many states work is verified before it passes, in all of its repair rounds.
const STATES_BEFORE_PASS: usize = ASSUMED_MAX + (1 + REPAIR_ROUNDS_MAX) * FIRM_MAX;

/// Every state has names for its verification and all its repetitions, after
/// those of the rounds before it.
const _: () = assert!(STATES_BEFORE_PASS * (1 + FLAKY_RERUNS_MAX) <= VERIFY_ROUNDS.len());
const _: () = assert!(STATES_AFTER_PASS * (1 + FLAKY_RERUNS_MAX) <= LAND_ROUNDS.len());
const _: () = assert!((1 + TAKEN_BACK_MAX) * (1 + FLAKY_RERUNS_MAX) <= LANDED_ROUNDS.len());

/// How many places of the landing queue may be verified on an assumed state
/// where the settings do not say it.
pub const DEFAULT_SPECULATION: usize = 19;

/// The most places that may be verified as one.
pub const BATCH_MAX: usize = 64;

/// Returns the names of the verifications of a step's work, the later ones
/// first.
pub fn verification_rounds() -> impl Iterator<Item = &'static str> {
    let rounds = VERIFY_ROUNDS.iter().chain(&LAND_ROUNDS).rev();
    rounds.copied()
}

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
pub struct UnknownLandingMode(pub String);

impl FromStr for LandingMode {
    type Err = UnknownLandingMode;

    fn from_str(text: &str) -> Result<Self, UnknownLandingMode> {
        [Self::Merge, Self::Branch, Self::None]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownLandingMode(text.to_owned()))
    }
}

/// What a batch is to do with closed work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandingRule {
    /// The landing mode.
    pub mode: LandingMode,
    /// The branch, without `refs/heads/`.
    pub target: String,
    /// A command that what landed must pass, or it is taken back.
    pub check: Option<String>,
    /// The remote that the target is pushed to after a landing.
    pub push: Option<String>,
    /// How many steps behind the first one may be verified on the state that
    /// the work ahead of them makes. With 0, work is verified by itself first,
    /// and again on the target's tip when its turn has come.
    pub speculation: usize,
    /// How many places of the landing queue may be verified as one.
    pub batch: usize,
}

impl LandingRule {
    /// Returns how many places of the landing queue may be verified as one.
    /// Without speculation they are verified one by one.
    pub const fn batch(&self) -> usize {
        match self.speculation {
            0 => 1,
            _ => self.batch,
        }
    }

    /// Returns whether landed work is yet to be checked, or to be verified with
    /// other work, before its issue closes: it may be taken back until then.
    pub fn defers_close(&self) -> bool {
        self.check.is_some() || self.batch() > 1
    }
}

impl Default for LandingRule {
    fn default() -> Self {
        Self {
            mode: LandingMode::Merge,
            target: DEFAULT_TARGET.to_owned(),
            check: None,
            push: None,
            speculation: DEFAULT_SPECULATION,
            batch: 1,
        }
    }
}

/// A landing as row and witness record it (ours).
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
pub fn step_branches(issue_id: &IssueId, generation: u64) -> Vec<String> {
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
pub fn is_step_branch(branch: &str, issue_id: &IssueId, generation: u64) -> bool {
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
        assert_eq!(step_branches(&"a/b".into(), 2)[0], "harness/a%2Fb/2");
        for reserved in ["salvage", "moved", "integration"] {
            assert_eq!(
                step_branches(&reserved.into(), 1),
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
            assert_eq!(is_step_branch(branch, &"a".into(), 1), expected, "{branch}");
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
