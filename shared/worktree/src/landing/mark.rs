//! What a landing leaves before it moves the target, so that one whose harness
//! dies before the close is found again: `refs/harness/landing/<issue>/<generation>`.
//!
//! A mark whose commit the target holds is work that landed and whose issue is
//! not closed yet; any other is of a landing that did not come about. Marks go
//! when the step's row is written.

use super::{Landing, LandingError, holds};
use git2::{ErrorCode, Oid};
use premath_kernel::json::token;

/// A landing whose issue was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedMark {
    /// The commit.
    pub commit: String,
    /// The generation of the lease under which it landed.
    pub generation: u64,
}

const MARKS: &str = "refs/harness/landing";

impl Landing {
    /// Marks a commit as about to land.
    pub fn mark(&self, issue_id: &str, generation: u64, commit: &str) -> Result<(), LandingError> {
        let failed = "mark the landing";
        let git = self.open()?;
        let commit = Oid::from_str(commit).map_err(LandingError::git(failed))?;
        let name = format!("{}/{generation}", folder(issue_id));
        let _alone = self.branches();
        git.reference(&name, commit, true, "premath: about to land")
            .map(drop)
            .map_err(LandingError::git(failed))
    }

    /// Returns the latest landing of an issue whose commit is on the target
    /// although the issue was not closed.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn landed(&self, issue_id: &str) -> Result<Option<LandedMark>, LandingError> {
        let failed = "look for landed work";
        if !self.merges() {
            return Ok(None);
        }
        let git = self.open()?;
        let tip = self.tip_in(&git)?;
        let marks = git
            .references_glob(&format!("{}/*", folder(issue_id)))
            .map_err(LandingError::git(failed))?;
        let found = marks.flatten().filter_map(|mark| {
            let generation = mark.name().ok()?.rsplit('/').next()?.parse().ok()?;
            let commit = mark.target()?.to_string();
            let is_there = holds(&git, tip, &commit).unwrap_or(false);
            is_there.then_some(LandedMark { commit, generation })
        });
        Ok(found.max_by_key(|mark| mark.generation))
    }

    /// Returns the commit that a step begins at: the target's tip, or what came
    /// before it while that is yet to pass its check, for it may be taken back.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn start(&self) -> Result<String, LandingError> {
        let failed = "look for landings under way";
        let git = self.open()?;
        let tip = self.tip_in(&git)?;
        if self.rule().check.is_none() {
            return Ok(tip.to_string());
        }
        let marks = git
            .references_glob(&format!("{MARKS}/*"))
            .map_err(LandingError::git(failed))?;
        let is_unchecked = marks.flatten().any(|mark| mark.target() == Some(tip));
        let commit = git.find_commit(tip).map_err(LandingError::git(failed))?;
        Ok(match commit.parent_id(0) {
            Ok(before) if is_unchecked => before.to_string(),
            _ => tip.to_string(),
        })
    }

    /// Removes an issue's marks; what cannot be removed stays for the next
    /// batch.
    pub fn unmark(&self, issue_id: &str) {
        self.remove_marks(&format!("{}/*", folder(issue_id)), |_| true);
    }

    /// Removes the marks of issues that are closed.
    pub fn sweep_marks(&self, is_closed: impl Fn(&str) -> bool) {
        if self.merges() {
            self.remove_marks(&format!("{MARKS}/*"), |issue| is_closed(issue));
        }
    }

    fn remove_marks(&self, glob: &str, is_over: impl Fn(&str) -> bool) {
        let Ok(git) = self.open() else { return };
        let Ok(marks) = git.references_glob(glob) else {
            return;
        };
        let _alone = self.branches();
        for mut mark in marks.flatten() {
            let issue = mark.name().ok().and_then(issue_of);
            if !issue.is_some_and(|issue| is_over(&issue)) {
                continue;
            }
            match mark.delete() {
                Err(error) if error.code() != ErrorCode::NotFound => {
                    tracing::warn!(%error, "a landing's mark was not removed");
                }
                _ => {}
            }
        }
    }
}

fn folder(issue_id: &str) -> String {
    format!("{MARKS}/{}", token::encode_branch(issue_id))
}

/// Returns the encoded issue of a mark.
fn issue_of(name: &str) -> Option<String> {
    let rest = name.strip_prefix(MARKS)?.strip_prefix('/')?;
    Some(rest.split_once('/')?.0.to_owned())
}
