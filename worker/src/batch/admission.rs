//! Claims for the lanes that admission lets start.

use super::{Batch, BatchError};
use premath_kernel::issue::lease;
use premath_kernel::json::id::WorkerName;
use premath_kernel::policy::admission::{Admission, AdmittedWorker, Waiting};
use premath_kernel::policy::room::{Room, Shortage};
use premath_kernel::record::live::PauseKind;
use premath_memory::{Claimed, IssueRow, MemoryView, StoreError, TrajectoryFileError, clock};
use std::sync::{MutexGuard, PoisonError};

/// What a pass gave the idle lanes.
#[derive(Debug, Default)]
pub struct Admitted {
    /// A claim for each worker that got one, in the workers' order.
    pub claims: Vec<Option<Claimed>>,
    /// What the others wait for.
    pub waiting: Waiting,
}

impl Batch {
    /// Locks what decides which lanes may start. Held for one decision at a
    /// time; the decisions are the kernel's.
    pub fn admission(&self) -> MutexGuard<'_, Admission> {
        self.admission
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an issue for each idle worker that may start a step now.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn admit(&self, workers: &[WorkerName]) -> Result<Admitted, BatchError> {
        if self.authorised().is_err() {
            return Ok(Admitted {
                claims: workers.iter().map(|_| None).collect(),
                waiting: Waiting::default(),
            });
        }
        self.look_at_held()?;
        self.pardon()?;
        let room = self.room();
        let now = clock::now().wall;
        let mut pass = self.admission().pass(workers, &room, now);
        let mut claims: Vec<Option<Claimed>> = workers.iter().map(|_| None).collect();
        loop {
            let round = pass.round(&self.admission());
            if round.is_empty() {
                break;
            }
            let names: Vec<WorkerName> = round.iter().map(|s| workers[s.worker].clone()).collect();
            let found = self.claim_next(&names)?;
            for (admitted, claim) in round.into_iter().zip(found) {
                let AdmittedWorker { worker, .. } = admitted;
                if claim.is_some() {
                    pass.claimed(&mut self.admission(), admitted);
                }
                claims[worker] = claim;
            }
        }
        let mut with_work = Vec::new();
        for index in pass.left() {
            if self.has_work_for(&workers[*index])? {
                with_work.push(*index);
            }
        }
        let waiting = pass.end(&mut self.admission(), &with_work);
        Ok(Admitted { claims, waiting })
    }

    /// Looks at what is free on the machine.
    pub fn room(&self) -> Room {
        super::room::look(&self.settings.roots.repository)
    }

    /// Takes in that lanes wait for room, or that none does; records it where the
    /// batch ends by it.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn wait_for_room(
        &self,
        short: Option<&Shortage>,
        runs: bool,
    ) -> Result<(), TrajectoryFileError> {
        let named = short.map(|short| (short.of, None));
        self.note_pause(PauseKind::Room, named);
        let is_over = self.admission().wait_for_room(short, runs, clock::now());
        match short {
            Some(short) if is_over => self.room_short(short),
            _ => Ok(()),
        }
    }

    /// Returns the provider that a worker's lane uses now: its own, or a
    /// fallback while its own is parked; `None` where the lane waits.
    pub(crate) fn provider_of(&self, worker: &WorkerName) -> Option<String> {
        let admission = self.admission();
        let provider = admission.provider_of(worker, clock::now().wall);
        provider.map(str::to_owned)
    }

    /// Returns whether a worker would get a claim now.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn has_work_for(&self, worker: &WorkerName) -> Result<bool, StoreError> {
        let _paused = self.filing.paused();
        let may_claim = self.claimable_by(worker);
        let has_work = |view: MemoryView<'_>| view.ready().chain(view.leased()).any(may_claim);
        self.memory.view(has_work)
    }

    /// Returns the issue that a claim of a worker would take now, with the state that it
    /// was found in.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub(crate) fn next_for(
        &self,
        worker: &WorkerName,
    ) -> Result<(Option<String>, String), StoreError> {
        let may_claim = self.claimable_by(worker);
        self.memory.view(|view| {
            let ready = view.ready().find(|row| may_claim(row));
            let stale = view.leased().filter(|row| may_claim(row));
            let offered = ready.into_iter().chain(stale);
            let next = offered.min_by_key(|row| (row.issue.priority, row.issue.id.clone()));
            let next = next.map(|row| row.issue.id.to_string());
            (next, view.snapshot_ref())
        })
    }

    /// Returns whether a worker may claim an issue now.
    fn claimable_by(&self, worker: &WorkerName) -> impl Fn(&IssueRow) -> bool + '_ {
        let left_out = self.left_out();
        let wish = self.claim_request(worker);
        let seen = clock::observe();
        move |row| {
            self.settings.selection.admits(&row.issue)
                && !left_out.contains(&*row.issue.id)
                && lease::claimable(&row.issue, &wish, &seen)
        }
    }
}
