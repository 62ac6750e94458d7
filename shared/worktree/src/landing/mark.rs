//! What a landing leaves before it moves the target, so that one whose harness
//! dies before the close is found again: `refs/harness/landing/<issue>/<generation>`.
//!
//! A mark whose commit the target holds is work that landed and whose issue is
//! not closed yet; any other is of a landing that did not move the target, or was taken
//! back. Marks go when the step's row is written.

use super::undo::{UNCHECKED, Undoing, is_reverted};
use super::{Landing, LandingError, Undone, holds};
use crate::harness_signature;
use crate::reference_deletion::delete;
use crate::reference_write::{Target, point};
use crate::removal::parent_of;
use crate::signing::Signer;
use git2::{ErrorCode, Oid, Reference, Repository};
use premath_kernel::json::id::IssueId;
use premath_kernel::json::token;
use premath_kernel::record::trailers::LandingTrailers;
use premath_platform::file::read_entries;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

/// A landing whose issue was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedMark {
    /// The commit.
    pub commit: String,
    /// The generation of the lease under which it landed.
    pub generation: u64,
}

const MARKS: &str = "refs/harness/landing";

/// How many commits from the tip on are looked at for landings that others committed
/// on top of. A landing that a merge brought is behind another parent than the first,
/// and is not found.
const DEEPEST: usize = 10_000;

impl Landing {
    /// Marks a commit as about to land.
    pub fn mark(
        &self,
        issue_id: &IssueId,
        generation: u64,
        commit: &str,
    ) -> Result<(), LandingError> {
        let failed = "mark the landing";
        let git = self.open()?;
        let commit = Oid::from_str(commit).map_err(LandingError::git(failed))?;
        let name = format!("{}/{generation}", folder(issue_id));
        let _alone = self.branches();
        // Git keeps no reflog of such a reference, unless a setting asks for one.
        let who = harness_signature().map_err(LandingError::git(failed))?;
        let message = "premath: about to land";
        point(&git, &name, Target::Commit(commit), &who, message).map_err(LandingError::git(failed))
    }

    /// Returns the latest landing of an issue whose commit is on the target
    /// although the issue was not closed.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn landed(&self, issue_id: &IssueId) -> Result<Option<LandedMark>, LandingError> {
        self.latest(issue_id, |mark, tip| mark.is_on(tip))
    }

    /// Returns the latest landing of an issue up to a generation whose commit is on the
    /// target, also where its work was reverted since.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn landed_until(
        &self,
        issue_id: &IssueId,
        generation: u64,
    ) -> Result<Option<LandedMark>, LandingError> {
        self.latest(issue_id, |mark, tip| {
            let is_held = || holds(mark.git, tip, &mark.commit.to_string());
            Ok(mark.generation <= generation && is_held()?)
        })
    }

    fn latest(
        &self,
        issue_id: &IssueId,
        counts: impl Fn(&FoundMark<'_>, Oid) -> Result<bool, git2::Error>,
    ) -> Result<Option<LandedMark>, LandingError> {
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
            let mark = FoundMark::of(&git, &mark)?;
            let is_there = counts(&mark, tip).unwrap_or(false);
            is_there.then(|| LandedMark {
                commit: mark.commit.to_string(),
                generation: mark.generation,
            })
        });
        Ok(found.max_by_key(|mark| mark.generation))
    }

    /// Returns the commit that a step begins at: the target's tip, or what came
    /// before the work on it that is yet to pass its check, for that may be
    /// taken back. `is_settled` says whether what landed of an issue under
    /// a generation passed.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn start(
        &self,
        is_settled: impl Fn(&IssueId, u64) -> bool,
    ) -> Result<String, LandingError> {
        match self.rule().defers_close() {
            true => self.settled_tip(is_settled),
            false => self.tip(),
        }
    }

    /// Returns the newest commit of the target without work whose issue is yet to
    /// close: what others may have.
    ///
    /// A landing is marked before the target moves, so that a mark of every
    /// commit is there that a tip read before has. One that is taken back loses its
    /// mark after that, so that the tip is read again where it moved meanwhile.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn settled_tip(
        &self,
        is_settled: impl Fn(&IssueId, u64) -> bool,
    ) -> Result<String, LandingError> {
        let failed = "look for landings under way";
        let git = self.open()?;
        let mut tip = self.tip_in(&git)?;
        loop {
            let unchecked = unchecked(&git, tip, &is_settled).map_err(LandingError::git(failed))?;
            let oldest = unchecked.last().copied();
            let before = oldest.map(|oldest| before(&git, oldest)).transpose();
            let before = before.map_err(LandingError::git(failed))?;
            let now = self.tip_in(&git)?;
            if now == tip {
                return Ok(before.unwrap_or(tip).to_string());
            }
            tip = now;
        }
    }

    /// Takes landings off the target that a harness left unchecked when it died:
    /// what lands on top of one of them could fail because of it. With other
    /// settings than its own, those that only a later commit verifies. Returns how
    /// each ended, the newest first. Only for who has the
    /// [right to land](Landing::try_lock), and while nothing is checked.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn take_back_unchecked(
        &self,
        is_settled: impl Fn(&IssueId, u64) -> bool,
        signer: Option<&Signer>,
    ) -> Result<Vec<(String, Undone)>, LandingError> {
        let failed = "look for landings under way";
        if !self.merges() {
            return Ok(Vec::new());
        }
        let git = self.open()?;
        let tip = self.tip_in(&git)?;
        let unchecked = unchecked(&git, tip, &is_settled).map_err(LandingError::git(failed))?;
        let rides = |commit: &Oid| {
            let trailers = trailers_of(&git, *commit);
            trailers.is_some_and(|trailers| trailers.verified_in.is_some())
        };
        if !self.rule().defers_close() && !unchecked.iter().any(rides) {
            return Ok(Vec::new());
        }
        let commits: Vec<String> = unchecked.iter().rev().map(Oid::to_string).collect();
        let undoing = Undoing {
            message: "premath: take back what was not checked",
            why: UNCHECKED,
            signer,
        };
        self.take_each_back(&git, commits, undoing)
    }

    /// Removes an issue's marks; what cannot be removed stays for the next
    /// batch.
    pub fn unmark(&self, issue_id: &IssueId) {
        self.remove_marks(&format!("{}/*", folder(issue_id)), |_| true);
        if let Some(marks) = self.marks() {
            self.remove_empty(&marks, &token::encode_branch(issue_id));
        }
    }

    /// Removes marks that nothing needs: those up to the generation under which
    /// their issue was `closed`, and those of landings that did not move the target.
    /// `unleased` names the generation of an issue that has no lease, so that the mark of
    /// a lease that began since stays.
    pub fn sweep_marks(
        &self,
        closed: impl Fn(&str) -> Option<u64>,
        unleased: impl Fn(&str) -> Option<u64>,
    ) {
        if !self.merges() {
            return;
        }
        let Ok(tip) = self.open().and_then(|git| self.tip_in(&git)) else {
            return;
        };
        self.remove_marks(&format!("{MARKS}/*"), |mark| {
            let is_past = || unleased(&mark.issue).is_some_and(|last| mark.generation <= last);
            // Also where that cannot be found out.
            let is_landed = || mark.is_on(tip).unwrap_or(true);
            let is_closed = closed(&mark.issue).is_some_and(|last| mark.generation <= last);
            is_closed || (is_past() && !is_landed())
        });
        let Some(marks) = self.marks() else {
            return;
        };
        // Only where no step can be writing a mark.
        let take = |issue: &OsStr, _| {
            let issue = issue.to_str().unwrap_or_default();
            if closed(issue) == Some(u64::MAX) || unleased(issue).is_some() {
                self.remove_empty(&marks, issue);
            }
        };
        while let Ok(true) = read_entries(marks.as_fd(), take) {}
    }

    /// Opens the folder of all marks. No link is followed on the way.
    fn marks(&self) -> Option<OwnedFd> {
        let place = self.open().ok()?.commondir().join(MARKS);
        let (above, name) = parent_of(&place).ok()??;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&above, name, flags, Mode::empty()).ok()
    }

    /// Removes the folder of an issue's marks, if it is empty: a look for marks reads
    /// all folders.
    fn remove_empty(&self, marks: &OwnedFd, issue: &str) {
        let _alone = self.branches();
        let _ = unlinkat(marks, issue, AtFlags::REMOVEDIR);
    }

    fn remove_marks(&self, glob: &str, is_over: impl Fn(&FoundMark<'_>) -> bool) {
        let Ok(git) = self.open() else {
            return;
        };
        let Ok(marks) = git.references_glob(glob) else {
            return;
        };
        let _alone = self.branches();
        for mark in marks.flatten() {
            let found = FoundMark::of(&git, &mark);
            if !found.is_some_and(|found| is_over(&found)) {
                continue;
            }
            match delete(&git, mark) {
                Err(error) if error.code() != ErrorCode::NotFound => {
                    tracing::warn!(%error, "a landing's mark was not removed");
                }
                _ => {}
            }
        }
    }
}

/// Returns the landings that are marked and not settled. Marks on other commits do
/// not count: a mark may be on work that its step found there.
fn unsettled(
    git: &Repository,
    is_settled: impl Fn(&IssueId, u64) -> bool,
) -> Result<BTreeSet<Oid>, git2::Error> {
    let marks = git.references_glob(&format!("{MARKS}/*"))?;
    Ok(marks
        .flatten()
        .filter_map(|mark| FoundMark::of(git, &mark))
        .filter(|mark| {
            let issue_id = mark.landed();
            issue_id.is_some_and(|issue_id| !is_settled(&issue_id, mark.generation))
        })
        .map(|mark| mark.commit)
        .collect())
}

/// Returns the landings of a tip's first-parent history that are not settled, the
/// newest first. Others may have committed on top of them. A landing on top that
/// passed settles them too, for it contains them.
fn unchecked(
    git: &Repository,
    tip: Oid,
    is_settled: impl Fn(&IssueId, u64) -> bool,
) -> Result<Vec<Oid>, git2::Error> {
    let mut sought = BTreeSet::new();
    for commit in unsettled(git, &is_settled)? {
        if holds(git, tip, &commit.to_string())? && !is_reverted(git, tip, commit)? {
            sought.insert(commit);
        }
    }
    let (mut at, mut found) = (tip, Vec::new());
    for _ in 0..DEEPEST {
        if sought.is_empty() {
            break;
        }
        if sought.remove(&at) {
            found.push(at);
        } else if trailers_of(git, at).is_some() && !is_reverted(git, tip, at)? {
            break;
        }
        let Ok(parent) = git.find_commit(at)?.parent_id(0) else {
            break;
        };
        at = parent;
    }
    Ok(found)
}

/// Returns the first parent of a commit.
fn before(git: &Repository, commit: Oid) -> Result<Oid, git2::Error> {
    git.find_commit(commit)?.parent_id(0)
}

/// Returns the commits that are marked as what a step landed, by their trailers.
pub(crate) fn marked(git: &Repository) -> Result<BTreeSet<Oid>, git2::Error> {
    let marks = git.references_glob(&format!("{MARKS}/*"))?;
    let marks = marks
        .flatten()
        .filter_map(|mark| FoundMark::of(git, &mark))
        .filter(|mark| mark.landed().is_some());
    Ok(marks.map(|mark| mark.commit).collect())
}

fn trailers_of(git: &Repository, commit: Oid) -> Option<LandingTrailers> {
    let commit = git.find_commit(commit).ok()?;
    let message = String::from_utf8_lossy(commit.message_bytes());
    LandingTrailers::parse(&message).ok().flatten()
}

fn folder(issue_id: &IssueId) -> String {
    format!("{MARKS}/{}", token::encode_branch(issue_id))
}

/// A mark as it is found.
struct FoundMark<'a> {
    git: &'a Repository,
    /// The issue, encoded.
    issue: String,
    generation: u64,
    commit: Oid,
}

impl<'a> FoundMark<'a> {
    fn of(git: &'a Repository, mark: &Reference<'_>) -> Option<Self> {
        let name = mark.name().ok()?;
        let rest = name.strip_prefix(MARKS)?.strip_prefix('/')?;
        let (issue, generation) = rest.split_once('/')?;
        Some(Self {
            git,
            issue: issue.to_owned(),
            generation: generation.parse().ok()?,
            commit: mark.target()?,
        })
    }

    /// Returns the issue if the commit is what a step of it landed under the
    /// generation, by the commit's trailers.
    fn landed(&self) -> Option<IssueId> {
        let commit = self.git.find_commit(self.commit).ok()?;
        let message = String::from_utf8_lossy(commit.message_bytes());
        let trailers = LandingTrailers::parse(&message).ok().flatten()?;
        let is_own = token::encode_branch(&trailers.issue) == self.issue
            && trailers.is_of(&trailers.issue, self.generation);
        is_own.then_some(trailers.issue)
    }

    /// Returns whether a tip holds the commit, and the harness did not revert it since.
    fn is_on(&self, tip: Oid) -> Result<bool, git2::Error> {
        Ok(holds(self.git, tip, &self.commit.to_string())?
            && !is_reverted(self.git, tip, self.commit)?)
    }
}

#[cfg(test)]
mod tests;
