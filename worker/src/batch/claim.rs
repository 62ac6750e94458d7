//! What a batch claims for its lanes, what it releases, and what it waits for.

use super::Knowledge;
use super::{Batch, BatchError};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::dispatch::awaited_retry;
use premath_kernel::issue::handoff::{Handoff, StepEnd};
use premath_kernel::issue::lease::{self, Claim, ClaimRequest, LeaseKey, LeaseState, Term};
use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::json::reference::{self, LeaseHandoff};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::trajectory::take_over_row;
use premath_memory::{ChangeError, ClaimScope, Claimed, StoreError, clock};
use std::collections::BTreeSet;

impl Batch {
    /// Claims the next issue for each worker, in one transaction, and records
    /// whose lease was taken over.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub(crate) fn claim_next(
        &self,
        workers: &[WorkerName],
    ) -> Result<Vec<Option<Claimed>>, BatchError> {
        let wishes = workers
            .iter()
            .map(|worker| self.claim_request(worker))
            .collect();
        let paused = self.filing.paused();
        let scope = ClaimScope {
            selection: self.settings.selection.clone(),
            left_out: self.left_out(),
            generation_floors: self.knowledge().generations.clone(),
        };
        let claims = self
            .memory
            .claim_next(&self.lease_authority(), wishes, &scope)
            .map_err(|error| match error {
                ChangeError::Store(error) => error,
                // A wish of ours is well-formed; whatever else is reported
                // about it is about the file.
                other => StoreError::Io {
                    operation: "claim in",
                    path: self.memory.path().to_path_buf(),
                    source: std::io::Error::other(other.to_string()),
                },
            })?;
        drop(paused);
        if claims.iter().any(Option::is_some) {
            self.reached(Boundary::Claimed);
        }
        for claimed in claims.iter().flatten() {
            let issue_id = claimed.claim.issue_id.clone();
            self.knowledge().dispatched.insert(issue_id);
            if let Some(before) = &claimed.claim.taken_over {
                let issue = &claimed.claim.issue_id;
                let step = StepId::from(format!("{}.{issue}.{}", before.owner, before.generation));
                // A step that could still say how it ended has its row.
                if self.trajectory.has_step(&step)? {
                    continue;
                }
                let mut row = take_over_row(
                    Some(&self.id),
                    &step,
                    issue,
                    before.generation,
                    clock::now().wall,
                );
                if !before.holder_dead {
                    row.failure_classes = vec![FailureClass::LeaseStale.as_str().to_owned()];
                    row.result_class = "retry_needed_lease_stale".to_owned();
                }
                self.record(&row)?;
                self.reached(Boundary::TakeOverRecorded);
            }
        }
        Ok(claims)
    }

    /// Records that a claim was released without a step, so that another lane
    /// may have it.
    pub fn unreserve(&self, claim: &Claim) {
        self.knowledge().dispatched.remove(claim.issue_id.as_str());
    }

    /// Returns the issues that no claim of this batch takes now.
    pub(crate) fn left_out(&self) -> BTreeSet<IssueId> {
        // Read at one moment: a step that ends between two reads would be
        // missed by both.
        let knowledge = self.knowledge();
        let mut left_out = self.refused_by(&knowledge);
        left_out.extend(knowledge.dispatched.iter().cloned());
        left_out
    }

    /// Returns the issues that this batch does not take, whether or not a lane
    /// works on them.
    pub(super) fn not_taken(&self) -> BTreeSet<IssueId> {
        self.refused_by(&self.knowledge())
    }

    fn refused_by(&self, knowledge: &Knowledge) -> BTreeSet<IssueId> {
        let mut refused = knowledge.used_up(&self.id);
        refused.extend(knowledge.discoveries.left_for_later().iter().cloned());
        refused.extend(self.held());
        refused.extend(self.set_aside_by(knowledge));
        refused
    }

    /// Returns when the first ready issue that this batch would take, were it
    /// not for its retry time, may be claimed. One that the batch has not
    /// touched is waited for a day at most.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn next_retry(&self, worker: &WorkerName) -> Result<Option<jiff::Timestamp>, StoreError> {
        let _paused = self.filing.paused();
        let left_out = self.left_out();
        let touched = self.endings();
        let wish = self.claim_request(worker);
        let seen = clock::observe();
        self.memory.view(|view| {
            view.ready()
                .filter(|row| {
                    self.settings.selection.admits(&row.issue) && !left_out.contains(&*row.issue.id)
                })
                .filter_map(|row| {
                    let touched = touched.contains_key(&*row.issue.id);
                    awaited_retry(&row.issue, touched, &wish, &seen)
                })
                .min()
        })
    }

    /// What a worker wishes for.
    pub(crate) fn claim_request(&self, worker: &WorkerName) -> ClaimRequest {
        ClaimRequest {
            claimant: worker.to_string(),
            lease_id: None,
            term: Term::Ttl(self.settings.lease_ttl),
            assignees: self.settings.assignees.clone(),
            holder: clock::this_process(),
            generation_floor: 0,
        }
    }

    /// Releases the stale leases of issues that this batch leaves alone: a
    /// failed issue must not stay blocked by an ownerless lease.
    pub(super) fn release_used_up(&self) -> Result<(), BatchError> {
        let seen = clock::observe();
        let used_up = self.used_up();
        let held: Vec<(IssueId, LeaseKey)> = self.memory.view(|view| {
            view.leased()
                .filter(|row| {
                    used_up.contains(&*row.issue.id)
                        && lease::state(Some(&row.issue), &seen) == LeaseState::Stale
                })
                .filter_map(|row| {
                    let held = row.issue.lease.as_ref()?;
                    let key = LeaseKey {
                        lease_id: Some((&*held.lease_id).into()),
                        owner: Some(held.owner.to_string()),
                        generation: Some(row.issue.lease_generation),
                    };
                    Some((IssueId::from(&*row.issue.id), key))
                })
                .collect()
        })?;
        for (issue_id, key) in held {
            let released = self
                .memory
                .release(&self.lease_authority(), &issue_id, key, None);
            match released {
                Ok(_) | Err(ChangeError::Refused(_) | ChangeError::Invalid(_)) => {}
                Err(ChangeError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Classifies the state of a claim's issue as memory has it now, and names
    /// the lease reference for it.
    pub(crate) fn handoff(
        &self,
        claim: &Claim,
        end: StepEnd,
        worker_id: &WorkerName,
    ) -> Result<(Handoff, String), StoreError> {
        self.memory.view(|view| {
            let issue = view.issue(&claim.issue_id);
            let handoff =
                premath_kernel::issue::handoff::classify(issue, claim, end, &clock::observe());
            let (lease_id, lease_owner) =
                premath_kernel::issue::handoff::lease_named(issue, claim, &handoff, end);
            let reference = reference::lease_handoff(&LeaseHandoff {
                assignee: issue.map_or("", |issue| &issue.assignee),
                issue_id: &claim.issue_id,
                lease_action: handoff.action.as_str(),
                lease_id,
                lease_owner,
                lease_state: handoff.state.as_str(),
                status: issue.map_or("", |issue| issue.status.as_str()),
                worker_id,
            });
            (handoff, reference)
        })
    }
}
