//! A step: one bounded item in a lane, changed only through the gate
//! (HARNESS-RUNTIME 3.2).
//!
//! Each stage is a type. A transition consumes a stage and returns the next
//! one, or `Failed` with what is needed to stop:
//!
//! | stage | transition |
//! |---|---|
//! | `ClaimedStep` | `prepare`: session, branch, git folder, files, setup |
//! | `Prepared` | `work`: the work command, the commit of what it left |
//! | `Worked` | `verify`: the place in the landing queue, the verification, the repair of work that fails it, the requests of the outbox |
//! | `Verified` | `land`: the turn, the gate, the landing, its check |
//! | `Landed` | `close`: follow-ups, the close |
//! | `Closed` or `Failed` | `stop`: lane, lease, row, feature, session |
//!
//! [`premath_kernel::record::boundary`] names what is durable between them.

mod account;
mod attempt;
mod brief;
mod candidate;
mod checked;
mod claimed;
mod closed;
mod crossing;
mod earlier;
mod error;
mod escalate;
mod failed;
mod hand_back;
mod landed;
mod landing;
mod limit;
mod live;
mod log;
mod outbox;
mod prepared;
mod queued;
mod remote;
mod repair;
mod report;
mod risk;
mod shared;
mod step_failure;
mod stopped;
mod turn;
mod undo;
mod verifications;
mod verified;
mod verify;
mod work;
mod work_bound;
mod worked;

pub use earlier::earlier_steps;
pub use report::{StepEnding, StepReport};
pub use work_bound::{Unbounded, WorkBound};

use crate::lane::watch::LeaseWatch;
use crate::lane::{BootError, Lane};
use attempt::Attempt;
use claimed::ClaimedStep;
use closed::Closed;
use failed::Failed;
use log::StepLog;
use premath_kernel::authority::StepIdentity;
use premath_kernel::record::live::StepPhase;
use premath_kernel::record::session;
use premath_memory::{Claimed, clock};

impl Lane {
    /// Takes one step under a claim, and stops it on every path. `bound` says
    /// when its agent may work again, after its work was in the landing queue.
    pub fn step(&mut self, claimed: &Claimed, bound: &dyn WorkBound) -> StepReport {
        self.step_index += 1;
        let now = clock::now();
        let claim = &claimed.claim;
        let identity = StepIdentity {
            issue_id: claim.issue_id.clone(),
            worker_id: self.worker_id.as_str().into(),
            owner: claim.owner.clone(),
            lease_id: claim.lease_id.clone(),
            generation: claim.generation,
            session_id: session::session_id(Some(&claim.issue_id), now.wall),
        };
        let _span = tracing::error_span!(
            "step",
            issue = %claim.issue_id,
            generation = claim.generation,
            attempt = self.batch.attempts(&claim.issue_id) + 1
        )
        .entered();
        let provider = self.batch.provider_of(&self.worker_id);
        tracing::info!(provider, "step started");
        self.note_begun(claimed, &identity, now, provider.as_deref());
        let log = StepLog::new(identity, now, provider);
        let ready = self.roots.secure().map_err(BootError::from);
        if let Err(error) = ready.and_then(|()| self.refuse_unready()) {
            let report = self.not_begun(claimed, log, &error);
            self.note_ended(&report);
            return report;
        }
        let batch = self.batch.clone();
        let watch = LeaseWatch::new(batch.clone(), claim.clone(), log.started_ms);
        let attempt = Attempt {
            batch: &batch,
            claimed,
            bound,
            log,
            watch,
            verified_runs: 0,
            verified_states: 0,
            reservation: None,
        };
        let ended = self.take_through(ClaimedStep { attempt });
        self.forget_session();
        let is_warm = match &ended {
            Ok(closed) => closed.log.verified.is_warm,
            Err(failed) => failed.log.verified.is_warm,
        };
        self.batch.note_phase(&self.worker_id, StepPhase::Stopping);
        let report = self.stop(claimed, ended);
        self.note_ended(&report);
        tracing::info!(ending = %report.ending, classes = report.failure_classes.join(","), "step ended");
        self.leave_world();
        if is_warm && report.succeeded() && report.commit.is_some() && report.world.is_none() {
            // Again: another batch may have verified the target in between.
            if let Err(error) = self.record_tip_debt() {
                tracing::warn!(%error, "a batch that is cut now leaves its last commit unverified");
            }
            self.owe_tip();
        }
        report
    }

    /// Takes a step through its stages up to the close.
    fn take_through(&mut self, step: ClaimedStep<'_>) -> Result<Closed, Box<Failed>> {
        let prepared = step.prepare(self)?;
        let worked = prepared.work(self)?;
        let verified = worked.verify(self)?;
        self.batch.note_phase(&self.worker_id, StepPhase::Landing);
        let landed = verified.land(self)?;
        self.batch.note_phase(&self.worker_id, StepPhase::Closing);
        landed.close(self)
    }
}
