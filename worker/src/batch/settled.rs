//! How far what landed has come: what others may build on, and what a harness that
//! died left unchecked.

use super::Batch;
use premath_kernel::issue::Status;
use premath_kernel::json::id::IssueId;
use premath_memory::{LandingLock, MemoryView};
use premath_worktree::landing::{LandingError, Settled, Undone};

/// What a harness that died left unchecked on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Abandoned {
    Nothing,
    TakenBack,
    /// Some of it cannot be taken back.
    Stays,
}

impl Batch {
    /// Returns the commit that steps begin at: the target's newest one that is
    /// not taken back.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn landing_start(&self) -> Result<String, LandingError> {
        self.landing
            .start(|issue, commit| self.settled(issue, commit))
    }

    /// Returns the newest commit of the target without work whose issue is yet to
    /// close.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub(crate) fn settled_tip(&self) -> Result<String, LandingError> {
        self.landing
            .settled_tip(|issue, commit| self.settled(issue, commit))
    }

    /// Returns how far a landing has come. An operator may close an issue whose work is
    /// being checked: by this process, or by one that has the right to land until its
    /// checks are over.
    fn settled(&self, issue_id: &IssueId, commit: &str) -> Settled {
        match self.closed(issue_id) {
            Settled::Kept if self.is_under_check(commit) => Settled::No,
            Settled::Kept => match self.landing.try_lock() {
                Ok(Some(_lock)) => Settled::Kept,
                _ => Settled::No,
            },
            settled => settled,
        }
    }

    /// Returns how far a landing has come while nothing is checked. Where issue memory
    /// cannot be read, nothing is taken back on a guess.
    fn closed(&self, issue_id: &IssueId) -> Settled {
        let closed = |view: MemoryView<'_>| {
            let issue = view.issue(issue_id);
            match issue.filter(|issue| issue.status == Status::Closed) {
                None => Settled::No,
                Some(issue) if issue.closed_by_step.is_some() => Settled::Passed,
                Some(_) => Settled::Kept,
            }
        };
        self.memory.view(closed).unwrap_or(Settled::Kept)
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
    /// checked: no landing is checked now. A step that adopts one finds it gone. Returns
    /// whether there were any.
    pub(crate) fn take_back_abandoned(
        &self,
        _lock: &LandingLock,
    ) -> Result<Abandoned, LandingError> {
        let settled = |issue_id: &IssueId, _: &str| self.closed(issue_id);
        let signer = self.settings.signer.as_ref();
        let taken = self.landing.take_back_unchecked(settled, signer)?;
        let mut found = Abandoned::Nothing;
        for (commit, undone) in taken {
            let target = self.landing.target();
            if undone == Undone::Conflict {
                tracing::error!(
                    commit,
                    target,
                    "was left unchecked, and stays: later commits build on it"
                );
                found = Abandoned::Stays;
            } else {
                tracing::warn!(commit, target, ?undone, "took back what was left unchecked");
                self.owe_push();
                found = found.max(Abandoned::TakenBack);
            }
        }
        Ok(found)
    }
}
