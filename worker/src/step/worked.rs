//! A step whose work is done: it is yet to be verified.

use super::attempt::Attempt;
use super::brief::Brief;
use super::error::StageError;
use super::failed::Failed;
use super::landing::Proposal;
use super::outbox;
use super::queued::{QueuedWork, Until};
use super::step_failure::StepFailure;
use super::verified::Verified;
use super::verify::VerificationTask;
use super::work::WorkDone;
use crate::lane::Lane;
use crate::lane::command::Phase;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::dispatch::may_need_no_change;
use premath_kernel::policy::landing::VERIFY_ROUNDS;
use premath_kernel::record::boundary::Boundary;
use premath_memory::{NewIssue, artifact};
use premath_worktree::landing::LandedMark;
use premath_worktree::tree::{Base, TreeState};

/// A step whose work is done.
#[derive(Debug)]
#[must_use = "work that is done is verified"]
pub(super) struct Worked<'a> {
    pub(super) attempt: Attempt<'a>,
    pub(super) base: Base,
    pub(super) brief: Brief,
    /// The tree before the work.
    pub(super) clean: TreeState,
    /// The landing of an earlier attempt, whose work this is.
    pub(super) landed: Option<LandedMark>,
    /// The tree that the work left.
    pub(super) tree: TreeState,
    /// The commit that is to be verified; none where nothing changed.
    pub(super) candidate: Option<String>,
    pub(super) work: WorkDone,
}

/// The tree that passed, the work's place in the landing queue if it has one, and
/// the requests.
type Passed<'a> = (TreeState, Option<QueuedWork<'a>>, Vec<NewIssue>);

/// The verification of work: what passed, or why the work may be charged.
type Judged<T> = Result<T, Box<StepFailure>>;

impl<'a> Worked<'a> {
    /// Ends the step: it failed.
    pub(super) fn failed(self, lane: &mut Lane, stage_error: StageError) -> Box<Failed> {
        let base = Some(self.base);
        self.attempt.failed(lane, base, self.work, stage_error)
    }

    /// Verifies the work, as often as its agent mends it, and reads what it asks
    /// to be filed.
    pub(super) fn verify(mut self, lane: &mut Lane) -> Result<Verified<'a>, Box<Failed>> {
        let verified = loop {
            if lane.is_for_the_queue(&self) {
                self.attempt.bound.work_done();
            }
            let mended = match lane.verify_work(&mut self) {
                Ok(Ok(passed)) => break Ok(passed),
                Ok(Err(red)) => lane.repair(&mut self, red),
                Err(stage_error) => Err(stage_error),
            };
            if let Err(stage_error) = mended {
                break Err(stage_error);
            }
        };
        lane.forget_session();
        match verified {
            Ok((verified, queued, requests)) => Ok(Verified {
                attempt: self.attempt,
                base: self.base,
                brief: self.brief,
                landed: self.landed,
                before: self.tree,
                after: verified,
                requests,
                work: self.work,
                queued,
            }),
            Err(stage_error) => Err(self.failed(lane, stage_error)),
        }
    }
}

impl Lane {
    /// Returns whether work is verified in the landing queue, beside other work,
    /// and not by itself.
    pub(super) fn is_for_the_queue(&self, step: &Worked<'_>) -> bool {
        let speculates = self.batch.landing.rule().speculation > 0;
        step.candidate.is_some() && self.lands() && step.landed.is_none() && speculates
    }

    /// Verifies the work.
    fn verify_work<'a>(&mut self, step: &mut Worked<'a>) -> Result<Judged<Passed<'a>>, StageError> {
        let is_for_the_queue = self.is_for_the_queue(step);
        let (verified, queued) = match step.candidate.clone() {
            Some(head) if is_for_the_queue => match self.verify_in_queue(step, &head)? {
                Ok(queued) => (queued.tree().cloned(), Some(queued)),
                Err(red) => return Ok(Err(red)),
            },
            _ => (None, None),
        };
        let verified = match verified {
            Some(verified) => verified,
            None => match self.verify_alone(step)? {
                Ok(verified) => verified,
                Err(red) => return Ok(Err(red)),
            },
        };
        let attempt = &mut step.attempt;
        let requests = self.requests(attempt, step.landed.as_ref())?;
        step.work.commit = step.candidate.take();
        attempt.look_at_lease()?;
        let is_nothing = step.work.commit.is_none() && step.landed.is_none();
        let is_refused = attempt.batch.settings.refuse_no_change
            && !may_need_no_change(&attempt.claimed.row.issue);
        if is_nothing && is_refused {
            let failure = StepFailure::of(FailureClass::WorkNoChange);
            return Err(self.refused(&mut attempt.log, failure));
        }
        Ok(Ok((verified, queued, requests)))
    }

    /// Verifies the work on the state that it would land on.
    fn verify_in_queue<'a>(
        &mut self,
        step: &mut Worked<'a>,
        head: &str,
    ) -> Result<Judged<QueuedWork<'a>>, StageError> {
        let mut queued = QueuedWork::join(&step.attempt, None);
        let proposal = Proposal {
            base: &step.base,
            text: &step.brief.text(),
            head,
        };
        let owner = step.brief.owner();
        let (attempt, until) = (&mut step.attempt, Until::Passed);
        let taken = self.take_turn(attempt, &owner, &proposal, &mut queued, until)?;
        attempt.verified_runs = queued.runs_before_pass();
        attempt.verified_states += queued.states_before_pass();
        Ok(taken.map(|()| queued))
    }

    /// Verifies the work by itself.
    fn verify_alone(&mut self, step: &mut Worked<'_>) -> Result<Judged<TreeState>, StageError> {
        let command = self.verification_of(&step.attempt.claim().issue_id);
        let verification = VerificationTask {
            phase: Phase::Verify(step.attempt.verified_runs),
            command: &command,
            commit: step.candidate.as_ref().unwrap_or(&step.base.commit),
        };
        let (attempt, owner) = (&mut step.attempt, step.brief.owner());
        let mut runs = attempt.verified_runs + 1;
        let next = &mut || {
            let run = runs;
            runs += 1;
            (run < VERIFY_ROUNDS.len()).then_some(Phase::Verify(run))
        };
        let verified = self.verify_repeatedly(attempt, &owner, &verification, next);
        attempt.verified_runs = runs;
        match verified {
            Err(StageError::Failed(failure)) => Ok(Err(failure)),
            verified => Ok(Ok(verified?)),
        }
    }

    /// Ends a step whose work failed its verification.
    pub(super) fn refused_work(
        &mut self,
        step: &mut Worked<'_>,
        mut failure: Box<StepFailure>,
    ) -> StageError {
        self.keep_session(step, &failure);
        self.judge_failure(&mut step.attempt.log, &mut failure);
        // What landed earlier does not pass any more.
        if let Some(mark) = &step.landed {
            let judged = &step.base.commit;
            self.take_off_landed(&mut failure, &mut step.attempt, mark, judged);
        }
        failure.into()
    }

    /// Reads the requests of the step's outbox or, where earlier work landed,
    /// of that work's. The outbox of work that is to land is kept first.
    fn requests(
        &self,
        attempt: &Attempt<'_>,
        landed: Option<&LandedMark>,
    ) -> Result<Vec<NewIssue>, StageError> {
        let claim = attempt.claim();
        let streams = &self.batch.settings.roots.streams;
        let kept = |generation| outbox::kept(streams, &claim.issue_id, generation);
        if let Some(mark) = landed {
            let bytes = artifact::read(&kept(mark.generation))?;
            return Ok(outbox::parse(&bytes.unwrap_or_default())?);
        }
        let bytes = outbox::read(&self.roots.step_folder()?)?;
        let requests = outbox::parse(&bytes)?;
        if self.lands() && !requests.is_empty() {
            artifact::overwrite(&kept(claim.generation), &bytes)?;
            self.batch.reached(Boundary::OutboxKept);
        }
        Ok(requests)
    }
}
