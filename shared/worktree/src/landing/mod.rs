//! Where closed work lands: one branch, moved by compare-and-swap, one landing
//! at a time (HARNESS-RUNTIME 3.2).
//!
//! Invariant: no file of anybody's checkout is touched here, and no branch is
//! ever forced; work that conflicts or comes too late goes back to its lane.

mod error;
pub(crate) mod mark;
mod opened_repository;
mod target;
mod target_sync;
mod undo;

pub use error::LandingError;
pub use mark::LandedMark;
pub use target::Advance;
pub use target_sync::next_base;
pub(crate) use target_sync::{MainHead, next_base_in};
pub use undo::Undone;

use git2::{Oid, Repository};
use opened_repository::OpenedRepository;
use premath_kernel::policy::landing::{LandingMode, LandingRecord, LandingRule};
use premath_kernel::policy::target_sync::TargetChange;
use premath_kernel::record::event::{LandingCheck, PushFailure};
use premath_memory::{LandingLock, LandingWaiter, LockWait};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

thread_local! {
    /// The repository that this thread opened last.
    static OPENED: RefCell<Option<OpenedRepository>> = const { RefCell::new(None) };
}

/// The branch that a batch's work lands on.
#[derive(Debug)]
pub struct Landing {
    rule: LandingRule,
    repository: PathBuf,
    /// Where the target was not there.
    made: Option<TargetChange>,
    /// Branches of steps are made and removed one at a time: git makes and
    /// removes the folders that they share.
    branches: Mutex<()>,
    /// The last push. A push takes along what landed before it: one at a time.
    pushes: Mutex<LastPush>,
}

/// How the last push of the landing target ended.
#[derive(Debug, Default)]
pub struct LastPush {
    /// The commit that the remote has; none before the first push, and after
    /// one that failed.
    pub commit: Option<String>,
    /// Why it failed.
    pub failure: Option<PushFailure>,
}

impl Landing {
    /// Makes sure of the target, and makes it from the main worktree's HEAD
    /// where there is none; nothing is looked at in mode `none`.
    ///
    /// # Errors
    ///
    /// [`LandingError`]: a name that is none, a target that is checked out.
    pub fn begin(rule: LandingRule, repository: PathBuf) -> Result<Self, LandingError> {
        let mut landing = Self::of(rule, repository);
        if landing.rule.mode != LandingMode::None {
            landing.made = landing.ensure_target()?;
        }
        Ok(landing)
    }

    /// Looks at the target as [`Landing::begin`] does, and makes nothing.
    ///
    /// # Errors
    ///
    /// As [`Landing::begin`].
    pub fn look(rule: LandingRule, repository: PathBuf) -> Result<(), LandingError> {
        let landing = Self::of(rule, repository);
        match landing.rule.mode {
            LandingMode::None => Ok(()),
            _ => landing.origin_of_target().map(drop),
        }
    }

    fn of(rule: LandingRule, repository: PathBuf) -> Self {
        Self {
            rule,
            repository,
            made: None,
            branches: Mutex::default(),
            pushes: Mutex::default(),
        }
    }

    /// Returns whether steps work on branches of their own from the target.
    pub fn is_on(&self) -> bool {
        self.rule.mode != LandingMode::None
    }

    /// Returns whether work lands before its issue closes.
    pub fn merges(&self) -> bool {
        self.rule.mode == LandingMode::Merge
    }

    /// Returns what is to be done with closed work.
    pub const fn rule(&self) -> &LandingRule {
        &self.rule
    }

    /// Returns the target's name.
    pub fn target(&self) -> &str {
        &self.rule.target
    }

    /// Returns the record of a landing at a commit.
    pub fn record(&self, commit: &str) -> LandingRecord {
        LandingRecord {
            target: self.rule.target.clone(),
            commit: commit.to_owned(),
        }
    }

    /// Compares the records of closed issues with the target as it is now.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn check<'a>(
        &self,
        closed: impl IntoIterator<Item = (&'a str, Option<&'a LandingRecord>)>,
    ) -> Result<LandingCheck, LandingError> {
        self.refresh();
        let git = self.open()?;
        let tip = self.tip_in(&git).ok();
        let (mut landed, mut missing) = (0, Vec::new());
        for (issue_id, record) in closed {
            let is_there = record.is_some_and(|record| {
                tip.is_some_and(|tip| holds(&git, tip, &record.commit).unwrap_or(false))
            });
            if is_there {
                landed += 1;
            } else {
                missing.push(issue_id.to_owned());
            }
        }
        Ok(LandingCheck {
            target: self.rule.target.clone(),
            tip: tip.map(|tip| tip.to_string()),
            landed,
            missing,
        })
    }

    /// Returns whether the target has the work of a commit: another process, or a person,
    /// may take it off, or revert it.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn has(&self, commit: &str) -> Result<bool, LandingError> {
        let git = self.open()?;
        let tip = self.tip_in(&git)?;
        undo::has_work(&git, tip, commit).map_err(LandingError::git("look for landed work"))
    }

    /// Returns whether a remote may lack what is on the target, as far as its last push or
    /// fetch is known. Where it is not, such as for a URL, it may.
    pub fn may_be_unpushed(&self) -> bool {
        let Some(remote) = self.rule.push.as_ref().filter(|_| self.merges()) else {
            return false;
        };
        let Ok((git, Ok(tip))) = self.open().map(|git| (git.clone(), self.tip_in(&git))) else {
            return false;
        };
        let known = format!("refs/remotes/{remote}/{}", self.target());
        let has_all = git
            .refname_to_id(&known)
            .and_then(|there| holds(&git, there, &tip.to_string()));
        !has_all.unwrap_or(false)
    }

    /// Takes the right to land, against every other step of this process and of
    /// others; `None` if another one has it.
    ///
    /// # Errors
    ///
    /// [`LandingError`]: a lock file that cannot be used.
    pub fn try_lock(&self) -> Result<Option<LandingLock>, LandingError> {
        let git = self.open()?;
        Ok(LandingLock::try_acquire(git.commondir())?)
    }

    /// Waits for the right to land; `granted` is called once it can be taken.
    ///
    /// # Errors
    ///
    /// [`LandingError`]: a lock file that cannot be used.
    pub fn wait_for_lock(
        &self,
        granted: impl FnOnce() + Send + 'static,
    ) -> Result<LockWait<LandingLock>, LandingError> {
        let git = self.open()?;
        Ok(LandingLock::wait(git.commondir(), granted)?)
    }

    /// Says that the right to land is waited for, until the value is dropped.
    ///
    /// # Errors
    ///
    /// [`LandingError`]: a lock file that cannot be used.
    pub fn announce_wait(&self) -> Result<LandingWaiter, LandingError> {
        Ok(LandingWaiter::announce(self.open()?.commondir())?)
    }

    /// Returns whether a step, of this process or another one, waits for the
    /// right to land.
    ///
    /// # Errors
    ///
    /// [`LandingError`]: a lock file that cannot be used.
    pub fn is_waited_for(&self) -> Result<bool, LandingError> {
        Ok(LandingWaiter::is_there(self.open()?.commondir())?)
    }

    /// Excludes others of this process from making and removing branches.
    pub fn branches(&self) -> MutexGuard<'_, ()> {
        self.branches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Excludes others of this process from pushing; holds how the last push
    /// ended.
    pub fn pushes(&self) -> MutexGuard<'_, LastPush> {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does as [`pushes`](Self::pushes); `None` while another one pushes.
    pub fn try_pushes(&self) -> Option<MutexGuard<'_, LastPush>> {
        match self.pushes.try_lock() {
            Ok(last) => Some(last),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Drops this thread's handle where it no longer sees all of the repository: the
    /// next use opens it again.
    pub fn refresh(&self) {
        OPENED.with_borrow_mut(|opened| {
            if opened.as_ref().is_some_and(|opened| !opened.is_current()) {
                *opened = None;
            }
        });
    }

    /// Returns this thread's handle of the repository: to open one reads all files of
    /// settings.
    fn open(&self) -> Result<Rc<Repository>, LandingError> {
        OPENED.with_borrow_mut(|opened| match opened {
            Some(opened) if opened.at == self.repository => Ok(opened.git.clone()),
            _ => {
                let made = OpenedRepository::open(&self.repository)?;
                Ok(opened.insert(made).git.clone())
            }
        })
    }
}

/// Returns whether a commit is another, or comes after it.
fn holds(git: &Repository, tip: Oid, commit: &str) -> Result<bool, git2::Error> {
    let commit = Oid::from_str(commit)?;
    Ok(tip == commit || git.graph_descendant_of(tip, commit)?)
}

#[cfg(test)]
mod tests;
