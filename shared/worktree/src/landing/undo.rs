//! Taking landed work off the target again.

use super::{Advance, Landing, LandingError, holds};
use crate::merged_index::clashes;
use crate::signing::{Signer, SigningError, write_commit};
use git2::{Commit, Oid, Repository, Sort};
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::record::trailers::LandingTrailers;
use std::collections::BTreeSet;

/// Why the harness itself reverts a landing.
const FAILED_CHECK: &str = "which failed the check after its landing";
pub(super) const UNCHECKED: &str = "which was left unchecked";

/// How landed work is taken back.
#[derive(Clone, Copy)]
pub(super) struct Undoing<'a> {
    /// The line of the target's reflog.
    pub(super) message: &'a str,
    /// Why, as a commit says that reverts it.
    pub(super) why: &'a str,
    /// Signs that commit.
    pub(super) signer: Option<&'a Signer>,
}

/// The outcome of landed work that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The target is where it was before, or does not have the work.
    Reset,
    /// Later commits build on it: this commit of the target reverts it.
    Reverted(String),
    /// Later commits changed the same lines.
    Conflict,
    /// The commit is not the step's own: it found its work on the target.
    Foreign,
}

impl Landing {
    /// Returns whether a commit is what a step of an issue landed under a
    /// generation of its lease, by its trailers. A mark may be on another one:
    /// on that which the step found its work in.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn is_own(
        &self,
        commit: &str,
        issue_id: &IssueId,
        generation: u64,
    ) -> Result<bool, LandingError> {
        let git = self.open()?;
        let commit = Oid::from_str(commit).and_then(|id| git.find_commit(id));
        let commit = commit.map_err(LandingError::git("read the landed commit"))?;
        let message = String::from_utf8_lossy(commit.message_bytes());
        let trailers = LandingTrailers::parse(&message).ok().flatten();
        Ok(trailers.is_some_and(|trailers| trailers.is_of(issue_id, generation)))
    }

    /// Takes a landed commit off the target, with those that landed on top of
    /// it, the oldest first; only for who has the
    /// [right to land](Landing::try_lock). The target goes back to the commit
    /// before; the commits are reverted one by one where others follow, or may have been
    /// read already.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn take_back(
        &self,
        commits: &[String],
        step_id: &StepId,
        signer: Option<&Signer>,
    ) -> Result<Undone, LandingError> {
        let message = format!("premath: take back {step_id}");
        let undoing = Undoing {
            message: &message,
            why: FAILED_CHECK,
            signer,
        };
        let git = self.open()?;
        if commits.len() > 1 && self.reset_below(&git, commits, &message)? {
            return Ok(Undone::Reset);
        }
        let mut undone = Undone::Reset;
        for commit in commits.iter().rev() {
            match self.undo(&git, commit, undoing)? {
                Undone::Conflict => return Ok(Undone::Conflict),
                Undone::Reset => {}
                other => undone = other,
            }
        }
        Ok(undone)
    }

    /// Does so for landings that need not be on top of each other; returns how each
    /// ended, the newest first.
    pub(super) fn take_each_back(
        &self,
        git: &Repository,
        commits: Vec<String>,
        undoing: Undoing<'_>,
    ) -> Result<Vec<(String, Undone)>, LandingError> {
        let is_reset = self.reset_below(git, &commits, undoing.message)?;
        let undone = |commit: String| {
            let undone = match is_reset {
                true => Undone::Reset,
                false => self.undo(git, &commit, undoing)?,
            };
            Ok((commit, undone))
        };
        commits.into_iter().rev().map(undone).collect()
    }

    /// Puts the target at the commit before the first of some, if they are all that is on
    /// top of it, the oldest first.
    fn reset_below(
        &self,
        git: &Repository,
        commits: &[String],
        message: &str,
    ) -> Result<bool, LandingError> {
        let failed = "take the landed work back";
        let (Some(first), Some(last)) = (commits.first(), commits.last()) else {
            return Ok(false);
        };
        let first = Oid::from_str(first).and_then(|id| git.find_commit(id));
        let before = first.and_then(|first| first.parent_id(0));
        let before = before.map_err(LandingError::git(failed))?;
        let last = Oid::from_str(last).map_err(LandingError::git(failed))?;
        Ok(is_chain(git, commits) && self.swap(git, last, before, message)? == Advance::Done)
    }

    /// Takes a landed commit off the target. No other commit is lost; a commit that
    /// reverts it is signed where there is a signer.
    fn undo(
        &self,
        git: &Repository,
        commit: &str,
        undoing: Undoing<'_>,
    ) -> Result<Undone, LandingError> {
        const ROUNDS: u32 = 8;
        let Undoing {
            message,
            why,
            signer,
        } = undoing;
        let failed = "take the landed work back";
        let landed = Oid::from_str(commit)
            .and_then(|id| git.find_commit(id))
            .map_err(LandingError::git(failed))?;
        let before = landed.parent_id(0).map_err(LandingError::git(failed))?;
        for _ in 0..ROUNDS {
            let tip = self.tip_in(git)?;
            // It may have been taken back with work below it, or by a person.
            if !has_work(git, tip, commit).map_err(LandingError::git(failed))? {
                return Ok(Undone::Reset);
            }
            // Without a check after the landing, other steps may have begun on it, and it
            // may be pushed.
            if tip == landed.id() && self.rule().defers_close() {
                if self.swap(git, tip, before, message)? == Advance::Done {
                    return Ok(Undone::Reset);
                }
                continue;
            }
            let Some(revert) = reverted(git, &landed, tip, (why, signer))? else {
                return Ok(Undone::Conflict);
            };
            if self.swap(git, tip, revert, message)? == Advance::Done {
                return Ok(Undone::Reverted(revert.to_string()));
            }
        }
        Err(LandingError::Git {
            operation: failed,
            detail: format!("{} is being moved repeatedly", self.target()),
        })
    }
}

impl Landing {
    /// Adds a commit to the target that reverts a landed one, and says why; only for
    /// who has the [right to land](Landing::try_lock). No commit is lost.
    /// [`Undone::Reset`] where the target does not have the commit.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn revert(
        &self,
        commit: &str,
        why: &str,
        signer: Option<&Signer>,
    ) -> Result<Undone, LandingError> {
        const ROUNDS: u32 = 8;
        let failed = "revert the landed work";
        let git = self.open()?;
        let landed = Oid::from_str(commit)
            .and_then(|id| git.find_commit(id))
            .map_err(LandingError::git(failed))?;
        for _ in 0..ROUNDS {
            let tip = self.tip_in(&git)?;
            if !holds(&git, tip, commit).map_err(LandingError::git(failed))? {
                return Ok(Undone::Reset);
            }
            let Some(revert) = reverted(&git, &landed, tip, (why, signer))? else {
                return Ok(Undone::Conflict);
            };
            if self.swap(&git, tip, revert, "premath: revert in review")? == Advance::Done {
                return Ok(Undone::Reverted(revert.to_string()));
            }
        }
        Err(LandingError::Git {
            operation: failed,
            detail: format!("{} is being moved repeatedly", self.target()),
        })
    }
}

/// Returns whether each of the commits is the first parent of the next one: then
/// nothing of others is between them.
fn is_chain(git: &Repository, commits: &[String]) -> bool {
    commits.windows(2).all(|pair| {
        let after = Oid::from_str(&pair[1]).and_then(|id| git.find_commit(id));
        let before = after.and_then(|after| after.parent_id(0));
        before.is_ok_and(|before| before.to_string() == pair[0])
    })
}

/// Returns whether a tip has the work of a landed commit: it holds it, and nothing reverts
/// it.
pub(super) fn has_work(git: &Repository, tip: Oid, landed: &str) -> Result<bool, git2::Error> {
    Ok(holds(git, tip, landed)? && !is_reverted(git, tip, Oid::from_str(landed)?)?)
}

/// Returns whether the harness or a person reverted a landed commit between it and a
/// tip: its work is gone although the tip holds the commit.
pub(super) fn is_reverted(git: &Repository, tip: Oid, landed: Oid) -> Result<bool, git2::Error> {
    let mut after = git.revwalk()?;
    after.set_sorting(Sort::TOPOLOGICAL)?;
    after.push(tip)?;
    after.hide(landed)?;
    // The newest first: a revert that is itself reverted does not count.
    let mut undone = BTreeSet::new();
    for id in after {
        let id = id?;
        if undone.contains(&id) {
            continue;
        }
        let commit = git.find_commit(id)?;
        let message = String::from_utf8_lossy(commit.message_bytes());
        // The text of a landing is not the harness's.
        if LandingTrailers::parse(&message).ok().flatten().is_none() {
            undone.extend(reverted_by(&message));
        }
    }
    Ok(undone.contains(&landed))
}

/// Returns the commits that a commit reverts, by its message: as git writes it, or the
/// harness, but not in its first line.
fn reverted_by(message: &str) -> impl Iterator<Item = Oid> {
    const DIGITS: usize = 40;
    message.lines().skip(1).filter_map(|line| {
        let by_us = line.strip_prefix("Reverts ");
        let rest = by_us.or_else(|| line.strip_prefix("This reverts commit "))?;
        let (id, rest) = rest.split_at_checked(DIGITS)?;
        let is_whole = rest.starts_with(',') || (by_us.is_none() && rest.starts_with('.'));
        Oid::from_str(id).ok().filter(|_| is_whole)
    })
}

/// Returns the line by which a revert names what it reverts.
fn reason(landed: Oid, why: &str) -> String {
    format!("Reverts {landed}, {why}.")
}

/// Writes the commit that reverts another on a tip, and says why; `None` where they
/// conflict.
fn reverted(
    git: &Repository,
    landed: &Commit<'_>,
    tip: Oid,
    (why, signer): (&str, Option<&Signer>),
) -> Result<Option<Oid>, LandingError> {
    let failed = "take the landed work back";
    let written = || -> Result<Option<Oid>, SigningError> {
        let tip = git.find_commit(tip)?;
        let mainline = u32::from(landed.parent_count() > 1);
        let mut index = git.revert_commit(landed, &tip, mainline, None)?;
        if !clashes(&index)?.is_empty() {
            return Ok(None);
        }
        let tree = git.find_tree(index.write_tree_to(git)?)?;
        let author = crate::signature(git)?;
        let subject = landed.summary().ok().flatten().unwrap_or_default();
        let reason = reason(landed.id(), why);
        let message = format!("Revert \"{subject}\"\n\n{reason}\n");
        write_commit(git, signer, &author, &message, &tree, &[&tip]).map(Some)
    };
    written().map_err(|error| match error {
        SigningError::Git(error) => LandingError::git(failed)(error),
        error => LandingError::Git {
            operation: failed,
            detail: error.to_string(),
        },
    })
}
