//! A step whose work passed its verification: it is yet to land.

use super::attempt::Attempt;
use super::brief::Brief;
use super::error::StageError;
use super::failed::Failed;
use super::landed::Landed;
use super::landing::{Proposal, ReadyToClose};
use super::queued::QueuedWork;
use super::work::WorkDone;
use crate::lane::Lane;
use premath_kernel::record::boundary::Boundary;
use premath_memory::NewIssue;
use premath_worktree::landing::LandedMark;
use premath_worktree::tree::{Base, TreeState};

/// A step whose work passed its verification.
#[derive(Debug)]
#[must_use = "work that is verified lands"]
pub(super) struct Verified<'a> {
    pub(super) attempt: Attempt<'a>,
    pub(super) base: Base,
    pub(super) brief: Brief,
    /// The landing of an earlier attempt, whose work this is.
    pub(super) landed: Option<LandedMark>,
    /// The tree that the work left.
    pub(super) before: TreeState,
    /// The tree that passed.
    pub(super) after: TreeState,
    pub(super) requests: Vec<NewIssue>,
    pub(super) work: WorkDone,
    /// Its place in the landing queue, where it was verified there.
    pub(super) queued: Option<QueuedWork<'a>>,
}

impl<'a> Verified<'a> {
    /// Has the turn judged, and brings the work to where it belongs before its
    /// issue closes.
    pub(super) fn land(mut self, lane: &mut Lane) -> Result<Landed<'a>, Box<Failed>> {
        let admitted = match self.landed.take() {
            Some(mark) if lane.lands() => lane.adopt_landed(&mut self, &mark),
            None if lane.lands() => lane.land_work(&mut self),
            _ => lane.keep_work(&mut self),
        };
        match admitted {
            Ok(ready) => {
                self.work.commit = ready.commit;
                self.work.landing = ready.landing;
                Ok(Landed {
                    attempt: self.attempt,
                    base: self.base,
                    ready: ready.ready,
                    lock: ready.lock,
                    before: self.before,
                    after: ready.tree,
                    requests: self.requests,
                    work: self.work,
                    queued: self.queued,
                })
            }
            Err(stage_error) => {
                drop(self.queued);
                let base = Some(self.base);
                Err(self.attempt.failed(lane, base, self.work, stage_error))
            }
        }
    }
}

impl Lane {
    /// Adopts the landing of an earlier attempt, or takes it off the target.
    fn adopt_landed(
        &mut self,
        step: &mut Verified<'_>,
        mark: &LandedMark,
    ) -> Result<ReadyToClose, StageError> {
        let (attempt, owner) = (&mut step.attempt, step.brief.owner());
        let tree = step.after.clone();
        match self.adopt(attempt, &owner, &step.base, tree, mark) {
            Err(StageError::Failed(mut failure)) => {
                self.take_off_landed(&mut failure, attempt, mark, &step.base.commit);
                Err(failure.into())
            }
            admitted => admitted,
        }
    }

    fn land_work(&mut self, step: &mut Verified<'_>) -> Result<ReadyToClose, StageError> {
        let after = &step.after;
        let Some(head) = &step.work.commit else {
            return self.land_unchanged(&mut step.attempt, &step.base, after);
        };
        let proposal = Proposal {
            base: &step.base,
            text: &step.brief.text(),
            head,
        };
        let attempt = &mut step.attempt;
        let verified = || Some(after.clone());
        let queued = step
            .queued
            .get_or_insert_with(|| QueuedWork::join(attempt, verified()));
        self.land(attempt, &step.brief.owner(), &proposal, queued)
    }

    /// Moves the lane's branch to the work, where it does not land.
    fn keep_work(&mut self, step: &mut Verified<'_>) -> Result<ReadyToClose, StageError> {
        let ready = self.judge_where_it_is(&mut step.attempt.log)?;
        let mut tree = step.after.clone();
        let mut commit = None;
        if step.work.commit.is_some() {
            let from = &step.base.commit;
            let text = step.brief.text();
            let proven = self.proven_commit(&step.attempt.log, &text, from, from, &tree.tree)?;
            // Before the issue closes: a harness that dies in between must
            // leave the work where it belongs.
            self.tree.move_branch(&Base {
                commit: proven.clone(),
                branch: step.base.branch.clone(),
            })?;
            step.attempt.batch.reached(Boundary::BranchMoved);
            tree.head.clone_from(&proven);
            commit = Some(proven);
        }
        Ok(ReadyToClose {
            ready,
            landing: None,
            lock: None,
            commit,
            tree,
        })
    }
}
