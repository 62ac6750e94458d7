//! Group commit: changes that the threads of a process ask for at the same
//! time share one lock, one write and one sync, in the order of asking.

use super::IssueMemory;
use super::change::{ChangeOutcome, PendingChange};
use super::own_checks;
use crate::clock;
use crate::error::{ChangeError, StoreError};
use crate::journal::Tail;
use crate::row::IssueRow;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How often a transaction is decided again because the file was replaced under
/// it; a process that replaces it more often is in a loop.
const REDECIDE_MAX: usize = 8;

/// The changes that wait for a leader.
#[derive(Debug, Default)]
pub(super) struct Queue {
    inner: Mutex<Waiting>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    tickets: Vec<Arc<Ticket>>,
    led: bool,
}

/// The changes of one caller, and their outcomes.
#[derive(Debug)]
struct Ticket {
    size: usize,
    changes: Mutex<Option<Vec<PendingChange>>>,
    outcomes: Mutex<Option<Vec<Result<ChangeOutcome, ChangeError>>>>,
}

/// Releases the lead. A transaction that panicked has no outcomes: its
/// callers get an error, and what the process knew of the file is forgotten.
struct GroupLeader<'a> {
    memory: &'a IssueMemory,
    group: Vec<Arc<Ticket>>,
}

impl Drop for GroupLeader<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.memory.state().journal.forget();
        }
        for ticket in &self.group {
            lock(&ticket.outcomes).get_or_insert_with(|| {
                let cause = std::io::Error::other("the transaction panicked");
                let error = StoreError::io("change", &self.memory.path)(cause);
                all_failed(ticket.size, error)
            });
        }
        lock(&self.memory.queue.inner).led = false;
        self.memory.queue.done.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IssueMemory {
    /// Commits changes, together with those of other threads.
    pub(super) fn commit(
        &self,
        changes: Vec<PendingChange>,
    ) -> Vec<Result<ChangeOutcome, ChangeError>> {
        let ticket = Arc::new(Ticket {
            size: changes.len(),
            changes: Mutex::new(Some(changes)),
            outcomes: Mutex::new(None),
        });
        let mut waiting = lock(&self.queue.inner);
        waiting.tickets.push(ticket.clone());
        loop {
            if let Some(outcomes) = lock(&ticket.outcomes).take() {
                return outcomes;
            }
            if !waiting.led {
                waiting.led = true;
                let group = std::mem::take(&mut waiting.tickets);
                drop(waiting);
                let lead = GroupLeader {
                    memory: self,
                    group,
                };
                self.commit_group(&lead.group);
                drop(lead);
                waiting = lock(&self.queue.inner);
                continue;
            }
            waiting = self
                .queue
                .done
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn commit_group(&self, group: &[Arc<Ticket>]) {
        let mut changes = Vec::new();
        for ticket in group {
            changes.extend(lock(&ticket.changes).take().unwrap_or_default());
        }
        let mut outcomes = self.transact(&changes).into_iter();
        for ticket in group {
            *lock(&ticket.outcomes) = Some(outcomes.by_ref().take(ticket.size).collect());
        }
    }

    /// One transaction over all changes: `storage.md`, "A transaction".
    fn transact(&self, changes: &[PendingChange]) -> Vec<Result<ChangeOutcome, ChangeError>> {
        // The lock first: who only looks does not wait with us.
        let held = match self.lock.acquire(self.lock_wait) {
            Ok(held) => held,
            Err(error) => return all_failed(changes.len(), error),
        };
        let mut state = self.state();
        for _ in 0..REDECIDE_MAX {
            if let Err(error) = state.refresh(Tail::Repair) {
                return all_failed(changes.len(), error);
            }
            let seen = clock::observe();
            state.check_seal(clock::now().wall);
            let mut sum = state.seal.sum();
            let mut lines = Vec::new();
            let mut notes = Vec::new();
            let outcomes: Vec<_> = changes
                .iter()
                .map(|change| {
                    let (rows, outcome) = change.decide(&mut state, &seen)?;
                    notes.extend(change.check_note(&rows, seen.moment.wall));
                    for row in rows {
                        write_line(&mut lines, &row);
                        sum.replace(state.get(&row.issue.id), &row);
                        state.put(row);
                    }
                    Ok(outcome)
                })
                .collect();
            if lines.is_empty() {
                if state.seal.is_open() {
                    state.end_seal(sum);
                }
                return outcomes;
            }
            let noted = own_checks::note(&self.path, notes);
            state.seal.begin(sum);
            let appended = noted.and_then(|()| state.journal.append(&lines));
            if let Err(error) = appended {
                // The rows that were put are not in the file: read it again.
                return all_failed(changes.len(), error);
            }
            if state.journal.is_current() {
                state.seal.append(&lines);
                state.end_seal(sum);
                drop(held);
                return outcomes;
            }
            state.journal.forget();
        }
        all_failed(
            changes.len(),
            StoreError::Io {
                operation: "keep hold of",
                path: self.path.clone(),
                source: std::io::Error::other("the file is being replaced repeatedly"),
            },
        )
    }
}

fn write_line(lines: &mut Vec<u8>, row: &IssueRow) {
    lines.extend_from_slice(row.text.as_bytes());
    lines.push(b'\n');
}

/// Tells every caller of a group the one cause.
fn all_failed(count: usize, error: StoreError) -> Vec<Result<ChangeOutcome, ChangeError>> {
    let mut failed: Vec<Result<ChangeOutcome, ChangeError>> = (1..count)
        .map(|_| Err(ChangeError::Store(repeated(&error))))
        .collect();
    failed.push(Err(ChangeError::Store(error)));
    failed.truncate(count);
    failed
}

/// A store error said once more: causes of the operating system are not `Clone`.
fn repeated(error: &StoreError) -> StoreError {
    let cause = |source: &std::io::Error| std::io::Error::new(source.kind(), source.to_string());
    match error {
        StoreError::LockBusy {
            path,
            waited,
            holder,
        } => StoreError::LockBusy {
            path: path.clone(),
            waited: *waited,
            holder: holder.clone(),
        },
        StoreError::Removing { path } => StoreError::Removing { path: path.clone() },
        StoreError::LockIo { path, source } => StoreError::LockIo {
            path: path.clone(),
            source: cause(source),
        },
        StoreError::Io {
            operation,
            path,
            source,
        } => StoreError::Io {
            operation,
            path: path.clone(),
            source: cause(source),
        },
        StoreError::Missing { path } => StoreError::Missing { path: path.clone() },
        StoreError::Corrupt {
            path,
            line,
            column,
            detail,
        } => StoreError::Corrupt {
            path: path.clone(),
            line: *line,
            column: *column,
            detail: detail.clone(),
        },
        StoreError::Poisoned { path, cause } => StoreError::Poisoned {
            path: path.clone(),
            cause: cause.clone(),
        },
        StoreError::NetworkFilesystem { path, kind } => StoreError::NetworkFilesystem {
            path: path.clone(),
            kind,
        },
        StoreError::Repository { path, detail } => StoreError::Repository {
            path: path.clone(),
            detail: detail.clone(),
        },
    }
}
