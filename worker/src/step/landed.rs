//! A step whose work is where it belongs: its issue may close.

use super::attempt::Attempt;
use super::closed::Closed;
use super::error::StageError;
use super::failed::Failed;
use super::queued::QueuedWork;
use super::step_failure::StepFailure;
use super::work::WorkDone;
use crate::batch::Filer;
use crate::lane::Lane;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{CallSpec, Close, Discover, MutationReady};
use premath_memory::{LandingLock, NewIssue};
use premath_worktree::tree::{Base, TreeState};

/// A step whose work is where it belongs.
#[derive(Debug)]
#[must_use = "the issue of work that landed is closed"]
pub(super) struct Landed<'a> {
    pub(super) attempt: Attempt<'a>,
    pub(super) base: Base,
    /// The right to close the issue.
    pub(super) ready: MutationReady<Close>,
    /// Keeps other processes from taking an adopted landing back until the issue is
    /// closed.
    pub(super) lock: Option<LandingLock>,
    pub(super) before: TreeState,
    pub(super) after: TreeState,
    pub(super) requests: Vec<NewIssue>,
    pub(super) work: WorkDone,
    /// Keeps other steps from landing until the issue is closed.
    pub(super) queued: Option<QueuedWork<'a>>,
}

impl Landed<'_> {
    /// Files what the work asks for, and closes the issue.
    pub(super) fn close(mut self, lane: &mut Lane) -> Result<Closed, Box<Failed>> {
        let requests = std::mem::take(&mut self.requests);
        let filed = lane.file(&mut self.attempt, &mut self.work, requests);
        let trees = (&self.before, &self.after);
        let closed =
            filed.and_then(|()| lane.close(&mut self.attempt.log, self.ready, &self.work, trees));
        let ended = match closed {
            Ok(()) => {
                if let Some(queued) = self.queued.take() {
                    queued.place.landed();
                }
                Ok(Closed {
                    log: self.attempt.log,
                    base: self.base,
                    work: self.work,
                })
            }
            Err(stage_error) => {
                let base = Some(self.base);
                Err(self.attempt.failed(lane, base, self.work, stage_error))
            }
        };
        drop((self.queued, self.lock));
        ended
    }
}

/// Returns the phase of the witness of a request that was filed, by its place in the
/// outbox.
fn filed_phase(at: usize) -> String {
    match at {
        0 => "filed".to_owned(),
        at => format!("filed-{}", at + 1),
    }
}

impl Lane {
    /// Files the requests of the work's outbox.
    fn file(
        &self,
        attempt: &mut Attempt<'_>,
        work: &mut WorkDone,
        requests: Vec<NewIssue>,
    ) -> Result<(), StageError> {
        let batch = attempt.batch;
        let step_id = attempt.log.step_id();
        for (at, new) in requests.into_iter().enumerate() {
            let turn = CallSpec::bind(&self.turn(&attempt.log).0)?;
            let ready = turn.admitted::<Discover>(&self.binding(&attempt.log));
            let ready = ready.map_err(|classes| {
                let mut failure = Box::<StepFailure>::default();
                classes
                    .iter()
                    .for_each(|class| failure.fail(class.as_str()));
                failure
            })?;
            self.may_change()?;
            attempt.log.witnesses.insert(ready.witness_ref());
            let filer = Filer {
                step_id: &step_id,
                parent: &attempt.claim().issue_id,
                phase: &filed_phase(at),
                boundary: Boundary::FollowUpFiled,
            };
            let (filed, witness) = batch.file(ready, new, &filer)?;
            attempt.log.witnesses.insert(&witness);
            work.discovered.push(filed);
        }
        Ok(())
    }
}
