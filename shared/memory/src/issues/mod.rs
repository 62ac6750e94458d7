//! Issue memory: the only authority over issues (`storage.md`,
//! `contracts.md` 3 and 4).
//!
//! A transaction locks, refreshes, decides by the kernel's rules, commits with
//! one write and one sync, and checks that the path still names the file. The
//! changes that the threads of a process ask for at the same time share one
//! transaction.
//!
//! Invariant: an issue changes only through a method that takes an authority
//! value.

mod change;
mod commit;
mod dependency;
mod edit;
mod fields;
mod foreign;
mod import;
mod leases;
mod new_issue;
mod own_checks;
mod seal;
mod state;
mod status_change;

pub use change::{ClaimScope, Claimed};
pub use dependency::DependencyEdit;
pub use edit::IssueChange;
pub use fields::IssueEdit;
pub use import::{Imported, ImportedIssue};
pub use new_issue::NewIssue;
pub use own_checks::OwnChecks;
pub use seal::{ForeignKind, ForeignRow, ForeignSelection, OutsideChange};
pub use state::MemoryView;
pub(crate) use state::read_row;
pub use status_change::{StatusChange, StatusChanged, StatusTargets};

use crate::clock;
use crate::error::{ChangeError, StoreError};
use crate::journal::{FileState, Journal, Tail};
use crate::lock::{LOCK_WAIT, LockFile, refuse_network_filesystem};
use crate::row::IssueRow;
use change::{ChangeOutcome, PendingChange};
use commit::Queue;
use premath_kernel::authority::{
    InstructedChange, LeaseAuthority, LeaseOperation, OperatorOverride,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::graph::{Diagnosis, Scope};
use premath_kernel::issue::lease::{ClaimRequest, LeaseKey, LeaseRefusal, Term};
use premath_kernel::issue::prefix::PREFIX_DEFAULT;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::trajectory::BlockedBy;
use premath_kernel::turn::{Block, Close, Discover, GatedChange, MutationReady};
use state::State;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How issue memory is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Make the file where it is not there.
    pub create: bool,
    /// How long the lock is waited for.
    pub lock_wait: Duration,
    /// Use it on a network filesystem too.
    pub insist_on_network_filesystem: bool,
    /// The prefix of new ids where the file has no id with a number.
    pub id_prefix: String,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: false,
            lock_wait: LOCK_WAIT,
            insist_on_network_filesystem: false,
            id_prefix: PREFIX_DEFAULT.to_owned(),
        }
    }
}

/// The issues of a repository, shared by the threads of a process.
#[derive(Debug)]
pub struct IssueMemory {
    path: PathBuf,
    lock: LockFile,
    lock_wait: Duration,
    state: Mutex<State>,
    queue: Queue,
}

/// When a compaction takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionRule {
    /// Always: on command, or at a clean end of a batch.
    Now,
    /// Where superseded bytes exceed live ones and 1 MiB.
    WhereItPays,
}

impl IssueMemory {
    /// Refuses issue memory that is not there, before anything is made for it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`].
    pub fn must_exist(path: &Path) -> Result<(), StoreError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing {
                    path: path.to_path_buf(),
                })
            }
            // Other errors are reported when the file is opened.
            _ => Ok(()),
        }
    }

    /// Opens issue memory and reads it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`], [`StoreError::Corrupt`] with line and column,
    /// [`StoreError::NetworkFilesystem`], or an I/O error.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, StoreError> {
        if options.create {
            Journal::new(path).create()?;
        }
        // A process that opens the file by a symlink must find the same lock,
        // and a compaction must not replace the symlink.
        let path = std::fs::canonicalize(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing {
                path: path.to_path_buf(),
            },
            _ => StoreError::io("find", path)(source),
        })?;
        refuse_network_filesystem(&path, options.insist_on_network_filesystem)?;
        let memory = Self {
            lock: LockFile::beside(&path),
            lock_wait: options.lock_wait,
            state: Mutex::new(State::new(Journal::new(&path), &options.id_prefix)),
            queue: Queue::default(),
            path,
        };
        memory.state().refresh(Tail::Peek)?;
        Ok(memory)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of the file's last line, where it is cut and was not
    /// read.
    pub fn cut_line(&self) -> Option<u64> {
        self.state().journal.cut()
    }

    /// Returns where a change put a last line that was cut.
    pub fn set_aside(&self) -> Option<PathBuf> {
        self.state().journal.aside().map(Path::to_path_buf)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A transaction that panics forgets all that it read (`commit`).
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is new in the file, without the lock, and looks at it.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::open`].
    pub fn view<R>(&self, look: impl FnOnce(MemoryView<'_>) -> R) -> Result<R, StoreError> {
        let mut state = self.state();
        state.refresh(Tail::Peek)?;
        Ok(look(MemoryView::of(&state)))
    }

    /// Diagnoses the dependency graph; the answer is kept until an edge or a
    /// status that matters changes.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::open`].
    pub fn diagnose(&self, scope: Scope) -> Result<Diagnosis, StoreError> {
        let mut state = self.state();
        state.refresh(Tail::Peek)?;
        Ok(state.diagnose(scope))
    }

    /// Claims an issue for each wish, in the order of the wishes, in one
    /// transaction: the next one by priority, then id, that the scope admits;
    /// `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Store`], or a refusal of the request itself.
    pub fn claim_next(
        &self,
        authority: &LeaseAuthority,
        wishes: Vec<ClaimRequest>,
        scope: &ClaimScope,
    ) -> Result<Vec<Option<Claimed>>, ChangeError> {
        granted(authority, LeaseOperation::Claim)?;
        let changes = wishes
            .into_iter()
            .map(|request| PendingChange::ClaimNext {
                request,
                scope: scope.clone(),
                asked: authority.record().cloned(),
            })
            .collect();
        self.commit(changes)
            .into_iter()
            .map(|outcome| {
                outcome.map(|outcome| match outcome {
                    ChangeOutcome::Claimed(claimed) => claimed.map(|claimed| *claimed),
                    _ => None,
                })
            })
            .collect()
    }

    /// Claims one issue.
    ///
    /// # Errors
    ///
    /// The refusals of [`premath_kernel::issue::lease::claim`], `lease_not_found`, or
    /// [`ChangeError::Store`].
    pub fn claim(
        &self,
        authority: &LeaseAuthority,
        issue_id: &IssueId,
        request: ClaimRequest,
    ) -> Result<Claimed, ChangeError> {
        granted(authority, LeaseOperation::Claim)?;
        let change = PendingChange::Claim {
            issue_id: issue_id.to_owned(),
            request,
            asked: authority.record().cloned(),
        };
        match self.commit_one(change)? {
            ChangeOutcome::Claimed(Some(claimed)) => Ok(*claimed),
            _ => Err(ChangeError::Invalid("the claim had no outcome".to_owned())),
        }
    }

    /// Moves a lease's expiry.
    ///
    /// # Errors
    ///
    /// The refusals of [`premath_kernel::issue::lease::renew`], or [`ChangeError::Store`].
    pub fn renew(
        &self,
        authority: &LeaseAuthority,
        issue_id: &IssueId,
        key: LeaseKey,
        term: Term,
    ) -> Result<IssueRow, ChangeError> {
        granted(authority, LeaseOperation::Renew)?;
        self.change_one(PendingChange::Renew {
            issue_id: issue_id.to_owned(),
            key,
            term,
            asked: authority.record().cloned(),
        })
    }

    /// Releases a lease; the issue may be claimed again from `retry_at`.
    ///
    /// # Errors
    ///
    /// The refusals of [`premath_kernel::issue::lease::release`], or [`ChangeError::Store`].
    pub fn release(
        &self,
        authority: &LeaseAuthority,
        issue_id: &IssueId,
        key: LeaseKey,
        retry_at: Option<jiff::Timestamp>,
    ) -> Result<IssueRow, ChangeError> {
        granted(authority, LeaseOperation::Release)?;
        self.change_one(PendingChange::Release {
            issue_id: issue_id.to_owned(),
            key,
            retry_at,
            asked: authority.record().cloned(),
        })
    }

    /// Closes the issue that a turn is ready to close, under its lease.
    ///
    /// # Errors
    ///
    /// The refusals of [`premath_kernel::issue::lease::fence`], or [`ChangeError::Store`].
    pub fn close(&self, ready: MutationReady<Close>) -> Result<IssueRow, ChangeError> {
        self.change_one(PendingChange::Close(ready))
    }

    /// Blocks the issue of an escalation, with notes added to its own, and with
    /// the step whose row is yet to be written, where there is one.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::close`].
    pub fn block(
        &self,
        ready: MutationReady<Block>,
        notes: String,
        by: Option<BlockedBy>,
    ) -> Result<IssueRow, ChangeError> {
        let by = by.map(Box::new);
        self.change_one(PendingChange::Block { ready, notes, by })
    }

    /// Files an issue that a step or its escalation discovered.
    ///
    /// The new issue is linked `discovered-from` the step's.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::close`]; [`ChangeError::Invalid`] for an id that is taken.
    pub fn discover(
        &self,
        ready: MutationReady<Discover>,
        new: NewIssue,
    ) -> Result<IssueRow, ChangeError> {
        self.change_one(PendingChange::Discover { ready, new })
    }

    /// Makes a person's change.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Invalid`] where it does not fit what is there, or
    /// [`ChangeError::Store`].
    pub fn operate(
        &self,
        authority: OperatorOverride,
        edit: IssueChange,
    ) -> Result<IssueRow, ChangeError> {
        self.change_one(PendingChange::Operate { authority, edit })
    }

    /// Closes, reopens, defers or deletes issues: all of them or none. One that
    /// has the status already stays as it is.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::operate`].
    pub fn set_statuses(
        &self,
        authority: OperatorOverride,
        change: StatusChange,
        targets: StatusTargets,
    ) -> Result<Vec<StatusChanged>, ChangeError> {
        let change = PendingChange::SetStatuses {
            authority,
            change,
            targets,
        };
        match self.commit_one(change)? {
            ChangeOutcome::StatusChanged(issues) => Ok(issues),
            _ => Err(ChangeError::Invalid("the change had no outcome".to_owned())),
        }
    }

    /// Makes a change that an instruction claims. A leased row is changed only
    /// if `key` names the lease: id, owner and generation.
    ///
    /// A second change needs another authority; one authority for two changes
    /// does not compile:
    ///
    /// ```
    /// # use premath_kernel::{authority::InstructedChange, issue::lease::LeaseKey};
    /// # use premath_memory::{IssueChange, IssueMemory};
    /// # fn two(memory: IssueMemory, [first, second]: [InstructedChange; 2], edit: IssueChange) {
    /// let _ = memory.instruct(first, edit.clone(), LeaseKey::default());
    /// let _ = memory.instruct(second, edit, LeaseKey::default());
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0382
    /// # use premath_kernel::{authority::InstructedChange, issue::lease::LeaseKey};
    /// # use premath_memory::{IssueChange, IssueMemory};
    /// # fn two(memory: IssueMemory, one: InstructedChange, edit: IssueChange) {
    /// let _ = memory.instruct(one, edit.clone(), LeaseKey::default());
    /// let _ = memory.instruct(one, edit, LeaseKey::default());
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::operate`]; refused where the authority is for another
    /// kind of change, or another owner holds the lease.
    pub fn instruct(
        &self,
        authority: InstructedChange,
        edit: IssueChange,
        key: LeaseKey,
    ) -> Result<IssueRow, ChangeError> {
        self.change_one(PendingChange::Instruct {
            authority,
            turn: None,
            edit,
            key,
        })
    }

    /// Makes a change that an instruction claims and that uses up the right of a
    /// turn: closing, blocking, and changing edges.
    ///
    /// # Errors
    ///
    /// As [`IssueMemory::instruct`]; [`ChangeError::Refused`] for the turn of
    /// another issue or of an earlier lease, and for a right that was used.
    pub fn instruct_by_turn(
        &self,
        authority: InstructedChange,
        turn: GatedChange,
        edit: IssueChange,
        key: LeaseKey,
    ) -> Result<IssueRow, ChangeError> {
        self.change_one(PendingChange::Instruct {
            authority,
            turn: Some(turn),
            edit,
            key,
        })
    }

    fn change_one(&self, change: PendingChange) -> Result<IssueRow, ChangeError> {
        match self.commit_one(change)? {
            ChangeOutcome::Changed(row) => Ok(*row),
            _ => Err(ChangeError::Invalid("the change had no row".to_owned())),
        }
    }

    fn commit_one(&self, change: PendingChange) -> Result<ChangeOutcome, ChangeError> {
        self.commit(vec![change])
            .pop()
            .unwrap_or_else(|| Err(ChangeError::Invalid("nothing was committed".to_owned())))
    }

    /// Writes the file again: sorted, one row an issue, comments first.
    ///
    /// Returns whether the file changed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the old file is as it was.
    pub fn compact(&self, when: CompactionRule) -> Result<bool, StoreError> {
        let _held = self.lock.acquire(self.lock_wait)?;
        let mut state = self.state();
        if when == CompactionRule::Now {
            // What is rewritten is what is there now, also if another program
            // edited the file in place.
            state.journal.forget();
        }
        state.refresh(Tail::Repair)?;
        state.check_seal(clock::now().wall);
        let sum = state.seal.sum();
        let compacted = state.compact(when);
        match compacted {
            Ok(true) => state.end_seal_of(sum, FileState::of(&self.path).as_ref()),
            _ => state.end_seal(sum),
        }
        compacted
    }

    /// Looks, in a transaction that changes nothing, for changes made outside
    /// one.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn check_seal(&self) -> Result<(), StoreError> {
        let _held = self.lock.acquire(self.lock_wait)?;
        let mut state = self.state();
        state.refresh(Tail::Repair)?;
        state.check_seal(clock::now().wall);
        let sum = state.seal.sum();
        state.end_seal(sum);
        Ok(())
    }

    /// Returns the changes made outside a transaction that were found since the
    /// last call, after this process's first one.
    pub fn take_outside_changes(&self) -> Vec<OutsideChange> {
        self.state().seal.take_found()
    }
}

/// Refuses a lease operation that the authority is not for.
fn granted(authority: &LeaseAuthority, operation: LeaseOperation) -> Result<(), ChangeError> {
    if authority.covers(operation) {
        return Ok(());
    }
    Err(ChangeError::Refused(LeaseRefusal {
        class: FailureClass::MutationCapabilityClaimMissing,
        detail: format!("`{}` was not authorised", operation.change().claim()),
    }))
}

#[cfg(test)]
mod tests;
