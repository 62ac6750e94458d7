//! The target itself: made, looked at, moved.

use super::{Landing, LandingError};
use git2::{ErrorCode, Oid, Reference, Repository};
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::landing::step_branches;
use premath_kernel::policy::target_sync::TargetChange;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a lock of the target is waited for between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a lock of the target is tried.
const TRIES: u32 = 500;
/// The age from which a lock counts as stale: git holds it only briefly.
const LEFT: Duration = Duration::from_secs(9);

/// The outcome of a move of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// The target is at the new commit.
    Done,
    /// It was not at the expected commit; nothing was changed.
    Moved,
}

impl Landing {
    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.target())
    }

    /// Returns where the target is to be made from: the name of a branch and a commit;
    /// `None` where it is there.
    pub(super) fn origin_of_target(&self) -> Result<Option<(String, Oid)>, LandingError> {
        let name = self.reference();
        if !Reference::is_valid_name(&name) {
            return Err(LandingError::Name(self.target().to_owned()));
        }
        let git = self.open()?;
        self.refuse_checked_out(&git)?;
        match git.refname_to_id(&name) {
            Ok(_) => return Ok(None),
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(LandingError::git("read the landing target")(error)),
        }
        let unread = "read the main worktree's HEAD";
        let head = git.head().map_err(LandingError::git(unread))?;
        let from = head.shorthand().unwrap_or("HEAD").to_owned();
        let head = head.peel_to_commit().map_err(LandingError::git(unread))?;
        Ok(Some((from, head.id())))
    }

    pub(super) fn ensure_target(&self) -> Result<Option<TargetChange>, LandingError> {
        let Some((from, head)) = self.origin_of_target()? else {
            return Ok(None);
        };
        let (git, name) = (self.open()?, self.reference());
        let made = self.unlocked(&git, || {
            git.reference(&name, head, false, "premath: the landing target")
                .map(drop)
        });
        match made {
            // Another harness made it in the same instant.
            Err(error) if error.code() == ErrorCode::Exists => Ok(None),
            Err(error) => Err(LandingError::git("make the landing target")(error)),
            Ok(()) => Ok(Some(TargetChange::Made {
                from,
                tip: head.to_string(),
            })),
        }
    }

    /// Returns the commit that the target is at.
    pub fn tip(&self) -> Result<String, LandingError> {
        let git = self.open()?;
        self.tip_in(&git).map(|tip| tip.to_string())
    }

    pub(super) fn tip_in(&self, git: &Repository) -> Result<Oid, LandingError> {
        git.find_reference(&self.reference())
            .and_then(|target| target.peel_to_commit())
            .map(|commit| commit.id())
            .map_err(LandingError::git("read the landing target"))
    }

    /// Names a branch for a step that no branch has yet, in full.
    pub fn free_branch(&self, issue_id: &IssueId, generation: u64) -> Result<String, LandingError> {
        let git = self.open()?;
        // The target may itself leave no room below or above a name.
        let blocked = |name: &str| {
            let target = self.reference();
            name.starts_with(&format!("{target}/")) || target.starts_with(&format!("{name}/"))
        };
        for stem in step_branches(issue_id, generation) {
            let stem = format!("refs/heads/{stem}");
            if blocked(&stem) || is_below_a_branch(&git, &stem) {
                continue;
            }
            let mut name = stem.clone();
            for number in 2_u32.. {
                match git.refname_to_id(&name) {
                    Err(error) if error.code() == ErrorCode::NotFound => return Ok(name),
                    Err(error) => return Err(LandingError::git("name the step's branch")(error)),
                    Ok(_) => name = format!("{stem}.{number}"),
                }
            }
        }
        Err(LandingError::Git {
            operation: "name the step's branch",
            detail: "other branches leave no room for it".to_owned(),
        })
    }

    /// Moves the target from one commit to another that continues from it; only
    /// for who has the [right to land](Landing::try_lock).
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn advance(&self, from: &str, to: &str, message: &str) -> Result<Advance, LandingError> {
        let failed = "move the landing target";
        let git = self.open()?;
        let id = |text: &str| Oid::from_str(text).map_err(LandingError::git(failed));
        let (old, new) = (id(from)?, id(to)?);
        let is_ancestor = old == new || git.graph_descendant_of(new, old).unwrap_or(false);
        if !is_ancestor {
            return Err(LandingError::Git {
                operation: failed,
                detail: format!("{to} is not a descendant of {from}"),
            });
        }
        self.refuse_checked_out(&git)?;
        self.swap(&git, old, new, message)
    }

    /// Moves the target by compare-and-swap.
    pub(super) fn swap(
        &self,
        git: &Repository,
        old: Oid,
        new: Oid,
        message: &str,
    ) -> Result<Advance, LandingError> {
        let swapped = self.unlocked(git, || {
            git.reference_matching(&self.reference(), new, true, old, message)
                .map(drop)
        });
        match swapped {
            Ok(()) => Ok(Advance::Done),
            Err(error) if error.code() == ErrorCode::Modified => Ok(Advance::Moved),
            Err(error) => Err(LandingError::git("move the landing target")(error)),
        }
    }

    /// Updates the target and retries while a git process holds its lock, which
    /// is brief. Git offers no event to wait on.
    fn unlocked(
        &self,
        git: &Repository,
        act: impl Fn() -> Result<(), git2::Error>,
    ) -> Result<(), git2::Error> {
        for _ in 0..TRIES {
            match act() {
                Err(error) if error.code() == ErrorCode::Locked => {
                    // An old lock was left by one that was killed.
                    self.break_lock(git);
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
        act()
    }

    /// Removes the target's lock if it is stale.
    fn break_lock(&self, git: &Repository) {
        let lock = git.commondir().join(self.reference() + ".lock");
        let age = fs::symlink_metadata(&lock)
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age >= LEFT) {
            let _ = fs::remove_file(lock);
        }
    }

    /// Returns the worktree that has the target checked out, where there is one.
    pub fn checked_out(&self) -> Option<PathBuf> {
        let git = self.open().ok()?;
        checked_out_in(&git, &self.reference())
    }

    pub(super) fn refuse_checked_out(&self, git: &Repository) -> Result<(), LandingError> {
        match checked_out_in(git, &self.reference()) {
            None => Ok(()),
            Some(worktree) => Err(LandingError::CheckedOut {
                target: self.target().to_owned(),
                worktree,
            }),
        }
    }
}

/// Returns whether a part of a branch's name is a branch itself.
fn is_below_a_branch(git: &Repository, name: &str) -> bool {
    Path::new(name)
        .ancestors()
        .skip(1)
        .filter_map(Path::to_str)
        .take_while(|above| *above != "refs/heads")
        .any(|above| git.refname_to_id(above).is_ok())
}

/// Returns the worktree whose HEAD is on a branch, the main one included.
fn checked_out_in(git: &Repository, branch: &str) -> Option<PathBuf> {
    let common = git.commondir();
    let is_on = |folder: &Path| {
        fs::read_to_string(folder.join("HEAD"))
            .is_ok_and(|head| head.trim().strip_prefix("ref: ").map(str::trim) == Some(branch))
    };
    if !git.is_bare() && is_on(common) {
        return Some(common.parent().unwrap_or(common).to_path_buf());
    }
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten();
    let on: Option<PathBuf> = linked
        .flatten()
        .map(|entry| entry.path())
        .find(|folder| is_on(folder));
    on.map(|folder| {
        let link = fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
        let place = Path::new(link.trim()).parent().map(Path::to_path_buf);
        place
            .filter(|place| !place.as_os_str().is_empty())
            .unwrap_or(folder)
    })
}
