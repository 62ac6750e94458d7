//! How far what landed has come: what others may build on, and what a harness that
//! died left unchecked.

use super::Batch;
use premath_kernel::json::id::IssueId;
use premath_memory::{LandingLock, MemoryView};
use premath_worktree::landing::{LandingError, Undone};

/// What a harness that died left unchecked on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    Nothing,
    TakenBack,
    /// This commit cannot be taken back.
    Stays(String),
}

impl Batch {
    /// Returns the commit that steps begin at: the target's newest one that is
    /// not taken back.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn landing_start(&self) -> Result<String, LandingError> {
        // Where issue memory cannot be read, nothing is built on.
        let is_settled =
            |issue: &IssueId, generation| self.is_settled(issue, generation).unwrap_or(false);
        self.landing.start(is_settled)
    }

    /// Returns the newest commit of the target without work whose issue is yet to
    /// close.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn settled_tip(&self) -> Result<String, LandingError> {
        let is_settled =
            |issue: &IssueId, generation| self.is_settled(issue, generation).unwrap_or(false);
        self.landing.settled_tip(is_settled)
    }

    /// Returns whether a step closed an issue under a generation or a later one, also
    /// where the issue was reopened since; `None` where issue memory cannot be read.
    /// An operator may close an issue whose work is unchecked: that proves nothing of it.
    fn is_settled(&self, issue_id: &IssueId, generation: u64) -> Option<bool> {
        let is_settled = |view: MemoryView<'_>| {
            view.issue(issue_id).is_some_and(|issue| {
                let is_closed = issue.status.is_terminal() && issue.closed_by_step.is_some();
                let reopened = issue.reopened();
                is_closed || reopened.is_some_and(|(_, last)| generation <= last)
            })
        };
        self.memory.view(is_settled).ok()
    }

    /// Takes landings off the target that a harness left unchecked when it died.
    /// Where another process lands, that one does it, or who lands next.
    pub(super) fn take_back_unchecked(&self) -> Result<(), LandingError> {
        match self.landing.try_lock()? {
            Some(lock) => self.take_back_abandoned(&lock).map(drop),
            None => Ok(()),
        }
    }

    /// Does so with the right to land, which a process keeps while its landings are
    /// checked: no landing is checked now. A step that adopts one finds it gone.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn take_back_abandoned(
        &self,
        _lock: &LandingLock,
    ) -> Result<Abandoned, LandingError> {
        // Where issue memory cannot be read, nothing is taken back on a guess.
        let is_settled =
            |issue: &IssueId, generation| self.is_settled(issue, generation).unwrap_or(true);
        let signer = self.settings.signer.as_ref();
        let taken = self.landing.take_back_unchecked(is_settled, signer)?;
        let mut found = Abandoned::Nothing;
        for (commit, undone) in taken {
            let target = self.landing.target();
            if undone == Undone::Conflict {
                tracing::error!(
                    commit,
                    target,
                    "was left unchecked, and stays: later commits build on it"
                );
                found = Abandoned::Stays(commit);
            } else {
                tracing::warn!(commit, target, ?undone, "took back what was left unchecked");
                self.owe_push();
                if found == Abandoned::Nothing {
                    found = Abandoned::TakenBack;
                }
            }
        }
        Ok(found)
    }
}
