//! What every stage of a step carries: its claim, its log, and the watch over
//! its lease.

use super::error::Setback;
use super::failed::Failed;
use super::log::StepLog;
use super::trouble::Trouble;
use super::work::WorkDone;
use crate::batch::Batch;
use crate::interrupt::Level;
use crate::lane::Lane;
use crate::lane::watch::LeaseWatch;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{self, Claim};
use premath_memory::{Claimed, clock};
use premath_worktree::landing::LandingTicket;
use premath_worktree::tree::Base;
use std::time::Duration;

/// How often a step that waits for its turn to land looks at its lease and the
/// interrupt, as a running command does.
const LOOK: Duration = Duration::from_millis(50);

/// A step under way.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) batch: &'a Batch,
    pub(super) claimed: &'a Claimed,
    pub(super) log: StepLog,
    pub(super) watch: LeaseWatch,
}

impl<'a> Attempt<'a> {
    /// Returns the claim.
    pub(super) fn claim(&self) -> &'a Claim {
        &self.claimed.claim
    }

    /// Puts the step into the queue of those that wait to land.
    pub(super) fn ticket(&self) -> LandingTicket<'a> {
        let priority = self.claimed.row.issue.priority;
        let (issue, step) = (&self.claim().issue_id, self.log.step_id());
        self.batch.landing.queue(priority, issue, &step)
    }

    /// Ends the step: it failed, with what is needed to stop.
    pub(super) fn failed(
        self,
        lane: &mut Lane,
        base: Option<Base>,
        work: WorkDone,
        setback: Setback,
    ) -> Box<Failed> {
        let mut trouble = Trouble::default();
        lane.absorb(&mut trouble, setback);
        Box::new(Failed {
            log: self.log,
            base,
            work,
            trouble,
        })
    }

    /// Fails where the lease can no longer be relied on, by its own clock.
    pub(super) fn look_at_lease(&mut self) -> Result<(), Box<Trouble>> {
        self.watch.look().map_err(Trouble::of_lease)
    }

    /// Fails where memory does not have the lease as the claim has it.
    pub(super) fn fence(&self) -> Result<(), Setback> {
        let claim = self.claim();
        let memory = &self.batch.memory;
        let held = memory.view(|view| match view.issue(&claim.issue_id) {
            Some(issue) => lease::fence(issue, &claim.key(), &clock::observe())
                .map_err(|refusal| refusal.class),
            None => Err(FailureClass::LeaseNotFound),
        });
        held?.map_err(|class| Trouble::of_lease(class).into())
    }

    /// Waits until no other step lands.
    pub(super) fn await_turn(&mut self, ticket: &mut LandingTicket<'_>) -> Result<(), Setback> {
        loop {
            self.look_at_lease()?;
            if self.batch.interrupt.level() >= Level::Kill {
                return Err(Trouble::of_interrupt().into());
            }
            if ticket.has_come()? {
                return Ok(());
            }
            ticket.wait(LOOK);
        }
    }
}
