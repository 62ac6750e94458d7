//! The heartbeat of a lease, bound to the life of the step's child
//! (`storage.md`, "Leases that hold").

use crate::batch::Batch;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{Claim, Term};
use premath_kernel::policy::landing_queue::Ticket;
use premath_memory::{ChangeError, clock};
use std::sync::Arc;

/// Renews a lease at a third of its time, and says when it can no longer be
/// relied on.
#[derive(Debug)]
pub(crate) struct LeaseWatch {
    batch: Arc<Batch>,
    claim: Claim,
    ttl_ms: u64,
    /// On CLOCK_BOOTTIME, which no jump of the wall clock moves.
    reliable_until_ms: u64,
    next_renewal_ms: u64,
    /// The place in the landing queue whose verification runs.
    place: Option<Ticket>,
}

impl LeaseWatch {
    /// Begins a watch; the lease is asked about at the first look.
    pub(crate) fn new(batch: Arc<Batch>, claim: Claim, claimed_at_ms: u64) -> Self {
        let ttl_ms = u64::try_from(batch.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX);
        let mut watch = Self {
            batch,
            claim,
            ttl_ms,
            reliable_until_ms: 0,
            next_renewal_ms: 0,
            place: None,
        };
        watch.confirmed(claimed_at_ms);
        watch
    }

    /// Watches a place in the landing queue too, or none.
    pub(crate) fn follow(&mut self, place: Option<Ticket>) {
        self.place = place;
    }

    /// Returns whether the verification of the place that is watched is of no
    /// use any more.
    pub(crate) fn is_superseded(&self) -> bool {
        self.place
            .is_some_and(|ticket| self.batch.is_superseded(ticket))
    }

    /// Returns whether an operator cancelled the attempt.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.batch.is_cancelled(&self.claim)
    }

    fn confirmed(&mut self, at_ms: u64) {
        // A tenth is kept back for the kill and for the clock's steps.
        self.reliable_until_ms = at_ms + self.ttl_ms - self.ttl_ms / 10;
        self.next_renewal_ms = at_ms + self.ttl_ms / 3;
    }

    /// Looks at the clock, renews where it is time.
    ///
    /// # Errors
    ///
    /// The class that says why the lease cannot be relied on any more.
    pub(crate) fn look(&mut self) -> Result<(), FailureClass> {
        let now = clock::now().boot_ms;
        if now >= self.reliable_until_ms {
            return Err(FailureClass::LeaseStale);
        }
        if now < self.next_renewal_ms {
            return Ok(());
        }
        let renewed = self.batch.memory.renew(
            &self.batch.lease_authority(),
            &self.claim.issue_id,
            self.claim.key(),
            Term::Ttl(self.batch.settings.lease_ttl),
        );
        match renewed {
            Ok(_) => {
                self.confirmed(now);
                let owner = self.claim.owner.as_str().into();
                self.batch
                    .note_step(&owner, |step| step.lease_renewed_ms = now);
            }
            Err(ChangeError::Refused(refusal)) => return Err(refusal.class),
            Err(error) => {
                // A busy lock or a full disk may pass; the deadline does not
                // move.
                tracing::warn!(issue = %self.claim.issue_id, %error, "renewal failed");
                self.next_renewal_ms = now + self.ttl_ms / 30;
            }
        }
        Ok(())
    }
}
