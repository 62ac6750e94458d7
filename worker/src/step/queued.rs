//! Work in the landing queue: it is verified on the state that it would land
//! on, while the work ahead of it is verified too.

use super::attempt::Attempt;
use super::error::{StageError, StepError};
use super::landing::Proposal;
use super::log::LogMark;
use super::step_failure::StepFailure;
use super::verify::VerificationTask;
use crate::batch::{Assumption, LandingPlace, PlaceStart, PlaceStep};
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::plain::listed;
use premath_kernel::policy::landing::{LAND_ROUNDS, VERIFY_ROUNDS};
use premath_kernel::policy::landing_queue::Part;
use premath_kernel::policy::verified_states::VerifiedStates;
use premath_worktree::tree::{Merged, TreeState};
use std::time::{Duration, Instant};

/// Work in the landing queue.
#[derive(Debug)]
pub(super) struct QueuedWork<'a> {
    pub(super) place: LandingPlace<'a>,
    /// The tree that passed last.
    pub(super) verified: Option<TreeState>,
    /// The tree that it would land as, where other work is verified with it.
    pub(super) rides: Option<TreeState>,
    /// Whether it is verified by itself: its issue has a verification of its own,
    /// or what it was verified with did not land.
    is_alone: bool,
    /// The failure that may be charged.
    failed: Option<FailedRun>,
    /// How long the verification took that passed last.
    passed_took: Duration,
    states: VerifiedStates,
    /// How many verifications ran before one passed, and after that, with those that
    /// repeat one.
    runs: [usize; 2],
    /// How many checks ran of the work after it landed.
    checks: usize,
}

/// A verification that failed on a state that is yet to land.
#[derive(Debug)]
struct FailedRun {
    failure: Box<StepFailure>,
    /// What the log was before it.
    mark: LogMark,
    took: Duration,
}

/// How far work goes in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The work waits until a verification passes.
    Passed,
    /// Until it is its turn to land.
    Turn,
}

impl<'a> QueuedWork<'a> {
    /// Puts work into the queue, with the tree that passed already.
    pub(super) fn join(attempt: &Attempt<'a>, verified: Option<TreeState>) -> Self {
        let priority = attempt.claimed.row.issue.priority;
        let mut states = VerifiedStates::after_repair(attempt.verified_states);
        if verified.is_some() {
            states.passed();
        }
        Self {
            place: attempt
                .batch
                .join_landing(priority, &attempt.claim().issue_id),
            verified,
            rides: None,
            is_alone: attempt.batch.own_check(&attempt.claim().issue_id).is_some(),
            failed: None,
            passed_took: Duration::ZERO,
            states,
            runs: [attempt.verified_runs, 0],
            checks: 0,
        }
    }

    /// Puts work into the queue again that was taken back with other work. From
    /// now on it is verified by itself.
    pub(super) fn join_again(&mut self, attempt: &Attempt<'a>) {
        let priority = attempt.claimed.row.issue.priority;
        let batch = attempt.batch;
        self.place = batch.join_landing(priority, &attempt.claim().issue_id);
        self.states.taken_back();
        self.rides = None;
        self.is_alone = true;
    }

    /// Takes in that the target is not where the queue assumed it; `false` where
    /// that happened too often. Work that rode is verified by itself from now on.
    pub(super) fn moved(&mut self) -> bool {
        self.place.moved();
        let rides = self.rides.is_some();
        self.is_alone |= rides;
        self.states.moved(rides)
    }

    /// Returns the tree that it lands as if its turn comes.
    pub(super) fn tree(&self) -> Option<&TreeState> {
        self.rides.as_ref().or(self.verified.as_ref())
    }

    /// Returns the phase of the next check of work that landed.
    pub(super) const fn next_check(&mut self) -> Phase {
        let round = self.checks;
        self.checks += 1;
        Phase::Landed(round)
    }

    /// Begins the verification on another state; returns its phase, if there is a
    /// name for it.
    fn next_phase(&mut self) -> Option<Phase> {
        self.states.begin();
        self.next_run()
    }

    /// Returns the phase of the next run, on a new state or on the same one.
    fn next_run(&mut self) -> Option<Phase> {
        let has_passed = self.states.has_passed();
        let runs = &mut self.runs[usize::from(has_passed)];
        let run = *runs;
        *runs += 1;
        match has_passed {
            false => (run < VERIFY_ROUNDS.len()).then_some(Phase::Verify(run)),
            true => (run < LAND_ROUNDS.len()).then_some(Phase::Land(run)),
        }
    }

    /// Returns how many verifications of the step ran before one passed.
    pub(super) const fn runs_before_pass(&self) -> usize {
        self.runs[0]
    }

    /// Returns on how many states the work was verified before it passed.
    pub(super) const fn states_before_pass(&self) -> usize {
        self.states.before_pass()
    }

    /// Returns the round of the landing, for the names of its outputs.
    pub(super) fn land_round(&self) -> usize {
        self.runs[1].min(LAND_ROUNDS.len() - 1)
    }

    fn has_verified(&self, tree: &str) -> bool {
        let verified = self.verified.as_ref();
        verified.is_some_and(|verified| verified.tree == tree)
    }

    /// Limits how the work is verified as one with other work. `adds` is whether
    /// it changes the state that it is verified on: without that it has no commit
    /// of its own.
    fn limit(&self, tree: &str, adds: bool) {
        if self.is_alone || !self.states.may_assume() || !adds {
            self.place.limit(Part::Single);
        } else if self.has_verified(tree) {
            self.place.limit(Part::Leads);
        }
    }
}

/// Returns whether an error is of the files of a state: git or a filter refuses them,
/// or one is in the place of a provided file.
fn is_of_files(error: &StepError) -> bool {
    let of_git = [
        FailureClass::WorktreeRepository,
        FailureClass::WorktreeFilter,
    ];
    of_git.contains(&error.class()) || matches!(error, StepError::Provide(_))
}

impl Lane {
    /// Takes work through the queue: it is merged with what it assumes, verified,
    /// and verified again where the assumption does not hold. The inner error is
    /// a verification that failed and is charged to the work.
    pub(super) fn take_turn(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        proposal: &Proposal<'_>,
        queued: &mut QueuedWork<'_>,
        until: Until,
    ) -> Result<Result<(), Box<StepFailure>>, StageError> {
        loop {
            if !queued.states.may_assume() {
                queued.place.assume_nothing();
            }
            let step = attempt.await_place(&mut queued.place)?;
            let failed = queued.failed.take();
            match (step, failed) {
                (PlaceStep::Land | PlaceStep::Wait, _) => return Ok(Ok(())),
                (PlaceStep::Charged, Some(failed)) => {
                    return Ok(Err(failed.failure));
                }
                (PlaceStep::Charged, None) => {}
                (PlaceStep::Try(assumption), failed) => {
                    if let Some(failed) = failed {
                        attempt.log.discard_from(failed.mark);
                        attempt.log.waited += failed.took;
                    }
                    let passed = self.try_on(attempt, owner, proposal, queued, &assumption)?;
                    if passed && until == Until::Passed {
                        return Ok(Ok(()));
                    }
                }
            }
        }
    }

    /// Verifies work on an assumed state; returns whether it passed there.
    fn try_on(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        proposal: &Proposal<'_>,
        queued: &mut QueuedWork<'_>,
        assumption: &Assumption,
    ) -> Result<bool, StageError> {
        let state = self.assumed_commit(assumption, queued)?;
        let base = &proposal.base.commit;
        let tree = match self.tree.merged(base, &state, proposal.head)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) if queued.place.conflicted(assumption) => {
                // What it conflicts with may have been taken back just now.
                if self.assumed_commit(assumption, queued)? != state {
                    return Ok(false);
                }
                let round = queued.land_round();
                return Err(self.conflict(attempt, round, &state, &paths));
            }
            Merged::Conflict(_) => return Ok(false),
        };
        let commit = if state == proposal.base.commit {
            proposal.head.to_owned()
        } else {
            self.tree.squash(proposal.text, &state, &tree, None)?
        };
        if self.batch.landing.rule().batch() > 1 {
            queued.limit(&tree, self.tree.tree_of(&state)? != tree);
        }
        queued.rides = None;
        match queued.place.started(assumption, &commit) {
            PlaceStart::Stale => return Ok(false),
            PlaceStart::Rides => {
                queued.rides = Some(TreeState {
                    head: commit,
                    tree,
                    nested: false,
                });
                return Ok(false);
            }
            PlaceStart::Verified => {}
        }
        if let Some(verified) = queued
            .verified
            .as_ref()
            .filter(|_| queued.has_verified(&tree))
        {
            let pass = self.shared_pass(&attempt.log, verified);
            return Ok(queued.place.passed(pass));
        }
        // What passed does not count: work ahead of it did not land.
        attempt.log.waited += std::mem::take(&mut queued.passed_took);
        let Some(phase) = queued.next_phase() else {
            return Err(self.moved_repeatedly(&attempt.log, queued.land_round()));
        };
        let verification = VerificationTask {
            phase,
            command: &self.verification_of(&attempt.claim().issue_id),
            commit: &commit,
        };
        self.verify_queued(attempt, owner, queued, &verification)
    }

    /// Returns the commit that a verification rests on.
    fn assumed_commit(
        &self,
        assumption: &Assumption,
        queued: &QueuedWork<'_>,
    ) -> Result<String, StageError> {
        Ok(match &assumption.commit {
            Some(commit) => commit.clone(),
            None if queued.place.is_locked() => self.batch.landing.tip()?,
            // Without the work of another process that is yet to be checked.
            None => self.batch.landing_start()?,
        })
    }

    /// Runs a verification that is superseded when its assumption breaks.
    fn verify_queued(
        &mut self,
        attempt: &mut Attempt<'_>,
        owner: &CommandOwner<'_>,
        queued: &mut QueuedWork<'_>,
        verification: &VerificationTask<'_>,
    ) -> Result<bool, StageError> {
        let mark = attempt.log.mark();
        let began = Instant::now();
        attempt.watch.follow(Some(queued.place.ticket()));
        let next = &mut || queued.next_run();
        let verified = self.verify_repeatedly(attempt, owner, verification, next);
        attempt.watch.follow(None);
        match verified {
            Ok(state) => {
                let pass = self.shared_pass(&attempt.log, &state);
                queued.passed_took = began.elapsed();
                queued.verified = Some(state);
                queued.states.passed();
                Ok(queued.place.passed(pass))
            }
            Err(stage_error) => {
                let failure = self.failure_of_state(stage_error)?;
                let took = began.elapsed();
                if queued.place.failed() {
                    queued.failed = Some(FailedRun {
                        failure,
                        mark,
                        took,
                    });
                } else {
                    tracing::info!(phase = verification.phase.name(), "verification superseded");
                    attempt.log.discard_from(mark);
                    attempt.log.waited += took;
                }
                Ok(false)
            }
        }
    }

    /// Returns the failure of a verification that the verified state may have
    /// caused: its command failed, or its files cannot be checked out.
    fn failure_of_state(
        &mut self,
        stage_error: StageError,
    ) -> Result<Box<StepFailure>, StageError> {
        let mut failure = Box::<StepFailure>::default();
        match stage_error {
            StageError::Failed(of_command) if of_command.is_of_the_command() => {
                return Ok(of_command);
            }
            StageError::Error(error) if is_of_files(&error) => {
                self.absorb(&mut failure, error);
            }
            other => return Err(other),
        }
        Ok(failure)
    }

    /// Returns the failure of work that conflicts with the target.
    fn conflict(
        &self,
        attempt: &Attempt<'_>,
        round: usize,
        tip: &str,
        paths: &[String],
    ) -> StageError {
        let target = self.batch.landing.target();
        let paths = listed(paths);
        let text = format!("merge conflict with {target} at {tip} in: {paths}");
        self.refusal(&attempt.log, round, FailureClass::LandingConflict, &text)
    }
}
