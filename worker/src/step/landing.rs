//! Landing: work that passed is brought onto the target's tip, verified again
//! where that makes another tree, and only then may its issue close
//! (HARNESS-RUNTIME 3.2).

use super::attempt::Attempt;
use super::error::{StageError, StepError};
use super::log::StepLog;
use super::queued::{QueuedWork, Until};
use super::step_failure::StepFailure;
use crate::batch::Batch;
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase};
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{Close, MutationReady};
use premath_memory::{LandingLock, artifact};
use premath_worktree::landing::{Advance, LandedMark, LandingError, Undone};
use premath_worktree::signing::Signer;
use premath_worktree::tree::{Base, CommitText, Merged, TreeState};
use std::sync::{Arc, MutexGuard};

/// The work that is to land.
pub(super) struct Proposal<'a> {
    /// The base of the step.
    pub(super) base: &'a Base,
    /// The text of the commits.
    pub(super) text: &'a CommitText<'a>,
    /// The commit of the work.
    pub(super) head: &'a str,
}

/// Work whose issue may close.
pub(super) struct ReadyToClose {
    /// The right to close.
    pub(super) ready: MutationReady<Close>,
    pub(super) landing: Option<AdvancedLanding>,
    /// The right to land, kept until the close where an earlier landing is adopted:
    /// without it another process could take that back.
    pub(super) lock: Option<LandingLock>,
    /// The commit that holds the work; none where nothing changed.
    pub(super) commit: Option<String>,
    /// The tree that passed last.
    pub(super) tree: TreeState,
}

/// A landing whose mark is written: the mark is the recovery point from which a
/// later step continues, should this process die.
#[derive(Debug)]
#[must_use = "a landing that is marked advances the target, or is marked again"]
struct MarkedLanding {
    batch: Arc<Batch>,
    issue_id: IssueId,
    generation: u64,
    commit: String,
}

/// A landing whose commit is on the target. It ends by `unmark` once the row
/// of the close is written, or by `undo`; where it is dropped before, its mark
/// stays, and the issue's next step adopts it.
#[derive(Debug)]
#[must_use = "a landing ends with its mark removed, or it is undone"]
pub(super) struct AdvancedLanding {
    batch: Arc<Batch>,
    issue_id: IssueId,
    /// The generation of the lease under which it landed.
    generation: u64,
    record: LandingRecord,
}

impl MarkedLanding {
    /// Marks a commit as about to land.
    fn mark(batch: &Arc<Batch>, claim: &Claim, commit: &str) -> Result<Self, LandingError> {
        let landing = &batch.landing;
        landing.mark(&claim.issue_id, claim.generation, commit)?;
        batch.reached(Boundary::LandingMarked);
        Ok(Self {
            batch: batch.clone(),
            issue_id: claim.issue_id.clone(),
            generation: claim.generation,
            commit: commit.to_owned(),
        })
    }

    /// Advances the target to the commit; `None` where the target has moved.
    fn advance(
        self,
        from: &str,
        step_id: &StepId,
    ) -> Result<Option<AdvancedLanding>, LandingError> {
        let message = format!("premath: land {step_id}");
        let advanced = self.batch.landing.advance(from, &self.commit, &message)?;
        if advanced != Advance::Done {
            return Ok(None);
        }
        self.batch.reached(Boundary::TargetAdvanced);
        Ok(Some(self.there()))
    }

    /// Takes the commit as landed: the target holds it already.
    fn there(self) -> AdvancedLanding {
        AdvancedLanding {
            record: self.batch.landing.record(&self.commit),
            batch: self.batch,
            issue_id: self.issue_id,
            generation: self.generation,
        }
    }
}

impl AdvancedLanding {
    /// Takes over the landing of an earlier attempt.
    pub(super) fn adopt(batch: &Arc<Batch>, claim: &Claim, mark: &LandedMark) -> Self {
        Self {
            batch: batch.clone(),
            issue_id: claim.issue_id.clone(),
            generation: mark.generation,
            record: batch.landing.record(&mark.commit),
        }
    }

    /// Returns where the work landed.
    pub(super) fn record(&self) -> &LandingRecord {
        &self.record
    }

    /// Returns whether the commit is what the step landed, and not one that it
    /// found its work in.
    pub(super) fn is_own(&self) -> Result<bool, LandingError> {
        let landing = &self.batch.landing;
        landing.is_own(&self.record.commit, &self.issue_id, self.generation)
    }

    /// Takes the commit off the target, if it is the step's own, with what
    /// landed on top and is still checked, and the mark away. `None` where it
    /// stays, with its mark: an issue closed that was verified as one with it.
    ///
    /// The mark stays too where it cannot be taken off and did not fail (`is_cut`): the
    /// next attempt adopts it.
    pub(super) fn undo(
        self,
        step_id: &StepId,
        signer: Option<&Signer>,
        is_cut: bool,
    ) -> Result<Option<Undone>, LandingError> {
        let landing = &self.batch.landing;
        let undone = match self.is_own()? {
            true => {
                let take = |commits: &[String]| landing.take_back(commits, step_id, signer);
                match self.batch.take_back(&self.record.commit, take)? {
                    Some(undone) => undone,
                    None => return Ok(None),
                }
            }
            false => Undone::Foreign,
        };
        self.batch.reached(Boundary::LandingUndone);
        if is_cut && matches!(undone, Undone::Conflict) {
            return Ok(Some(undone));
        }
        landing.unmark(&self.issue_id);
        self.batch.reached(Boundary::UndoneUnmarked);
        Ok(Some(undone))
    }

    /// Ends the landing: its issue is closed, and the row of that is written.
    pub(super) fn unmark(self) {
        self.batch.landing.unmark(&self.issue_id);
        self.batch.reached(Boundary::LandingUnmarked);
    }
}

impl Lane {
    /// Lands work in its turn; returns the right to close its issue.
    pub(super) fn land<'a>(
        &mut self,
        attempt: &mut Attempt<'a>,
        owner: &CommandOwner<'_>,
        proposal: &Proposal<'_>,
        queued: &mut QueuedWork<'a>,
    ) -> Result<ReadyToClose, StageError> {
        let batch = self.batch.clone();
        let landing = &batch.landing;
        let mut waits = None;
        loop {
            let alone = self.await_turn(attempt, owner, proposal, queued)?;
            self.refuse_landed(attempt, queued)?;
            let tip = landing.tip()?;
            let before = attempt.log.mark();
            let Some((own, verified)) = self.verified_on(attempt, &tip, proposal, queued)? else {
                self.moved(attempt, queued)?;
                continue;
            };
            let commit = self.landing_commit(&attempt.log, proposal, &own, &tip)?;
            batch.reached(Boundary::LandingCommitted);
            let ready = match landing.rule().defers_close() {
                true if self.would_admit(&attempt.log)? => None,
                _ => Some(self.admitted(&mut attempt.log)?),
            };
            attempt.look_at_lease()?;
            attempt.fence()?;
            let marked = MarkedLanding::mark(&batch, attempt.claim(), &commit)?;
            let landed = match marked.advance(&tip, owner.step_id) {
                Err(error) if attempt.may_wait_for_checkout(&error, &mut waits) => {
                    attempt.log.discard_from(before);
                    drop(alone);
                    attempt.await_checkout()?;
                    continue;
                }
                advanced => advanced?,
            };
            let Some(landed) = landed else {
                attempt.log.discard_from(before);
                self.moved(attempt, queued)?;
                continue;
            };
            if ready.is_none() {
                let own = (commit != tip).then_some(&*commit);
                queued.place.advanced(own, queued.rides.is_some());
            }
            drop(alone);
            let landed = match ready {
                None => self.check_advanced(attempt, owner, queued, landed)?,
                Some(ready) => Some((ready, landed)),
            };
            let Some((ready, landed)) = landed else {
                attempt.log.discard_from(before);
                queued.join_again(attempt);
                continue;
            };
            return Ok(ReadyToClose {
                ready,
                landing: Some(landed),
                lock: None,
                // None where the tip holds all of the work.
                commit: (commit != tip).then_some(commit),
                tree: verified,
            });
        }
    }

    /// Refuses work of an issue that a previous lease holder landed since the step began.
    /// A mark of the step's own generation is not an earlier attempt's: the step was about
    /// to land.
    fn refuse_landed(
        &self,
        attempt: &Attempt<'_>,
        queued: &QueuedWork<'_>,
    ) -> Result<(), StageError> {
        let claim = attempt.claim();
        let landed = self.batch.landed(&claim.issue_id)?;
        let Some(mark) = landed.filter(|mark| mark.generation != claim.generation) else {
            return Ok(());
        };
        let text = format!("an earlier attempt of the issue landed as {}", mark.commit);
        let (round, class) = (queued.land_round(), FailureClass::LandingConflict);
        Err(self.refusal(&attempt.log, round, class, &text))
    }

    /// Takes work through the queue to its turn, with the right to land.
    fn await_turn<'a>(
        &mut self,
        attempt: &mut Attempt<'a>,
        owner: &CommandOwner<'_>,
        proposal: &Proposal<'_>,
        queued: &mut QueuedWork<'a>,
    ) -> Result<MutexGuard<'a, ()>, StageError> {
        loop {
            let taken = self.take_turn(attempt, owner, proposal, queued, Until::Turn)?;
            if let Err(failure) = taken {
                return Err(self.refused(&mut attempt.log, failure));
            }
            attempt.await_lock(&mut queued.place)?;
            let alone = queued.place.alone();
            // Another issue may have reserved the next landing meanwhile.
            if queued.place.is_locked() && queued.place.has_turn() {
                return Ok(alone);
            }
        }
    }

    /// Returns the tree that the work makes on the target's tip, and what passed
    /// with it: the same, or what it rides on. `None` where neither did.
    fn verified_on(
        &self,
        attempt: &mut Attempt<'_>,
        tip: &str,
        proposal: &Proposal<'_>,
        queued: &QueuedWork<'_>,
    ) -> Result<Option<(String, TreeState)>, StageError> {
        let base = &proposal.base.commit;
        let merged = self.tree.merged(base, tip, proposal.head)?;
        let is_same = |own: &&TreeState| merged == Merged::Clean(own.tree.clone());
        let Some(own) = queued.tree().filter(is_same) else {
            return Ok(None);
        };
        if queued.rides.is_none() {
            return Ok(Some((own.tree.clone(), own.clone())));
        }
        // It rides as a commit of its own, or not at all.
        if self.tree.tree_of(tip)? == own.tree {
            return Ok(None);
        }
        let verified = self.rest_on_shared(attempt, queued, own)?;
        Ok(verified.map(|verified| (own.tree.clone(), verified)))
    }

    /// Has the queue begin on the target where it is now. Others may have moved it
    /// too often.
    fn moved(&self, attempt: &Attempt<'_>, queued: &mut QueuedWork<'_>) -> Result<(), StageError> {
        match queued.moved() {
            true => Ok(()),
            false => Err(self.moved_repeatedly(&attempt.log, queued.land_round())),
        }
    }

    /// Returns the failure of work whose target others move.
    pub(super) fn moved_repeatedly(&self, log: &StepLog, round: usize) -> StageError {
        let text = format!("{} is being moved repeatedly", self.batch.landing.target());
        self.refusal(log, round, FailureClass::LandingTargetUnusable, &text)
    }

    /// Returns the end of an attempt during which others took landed work off the target.
    /// The first such ends of an issue are not charged; later ones are failures.
    pub(super) fn moved_meanwhile(&self, attempt: &Attempt<'_>, round: usize) -> StageError {
        match self.batch.may_land_again(&attempt.claim().issue_id) {
            true => StepFailure::of_interrupt().into(),
            false => self.moved_repeatedly(&attempt.log, round),
        }
    }

    /// Lands work that changed nothing: what the step found is what the target
    /// holds.
    pub(super) fn land_unchanged(
        &self,
        attempt: &mut Attempt<'_>,
        base: &Base,
        tree: &TreeState,
    ) -> Result<ReadyToClose, StageError> {
        let ready = self.admitted(&mut attempt.log)?;
        let marked = MarkedLanding::mark(&self.batch, attempt.claim(), &base.commit)?;
        Ok(ReadyToClose {
            ready,
            landing: Some(marked.there()),
            lock: None,
            commit: None,
            tree: tree.clone(),
        })
    }

    /// Writes the commit that lands: the whole of the work on the target's tip,
    /// with the verification that its tree passed. The tip itself where it holds
    /// all of the work.
    fn landing_commit(
        &self,
        log: &StepLog,
        proposal: &Proposal<'_>,
        tree: &str,
        tip: &str,
    ) -> Result<String, StageError> {
        if self.tree.tree_of(tip)? == tree {
            return Ok(tip.to_owned());
        }
        let base = &proposal.base.commit;
        self.proven_commit(log, proposal.text, base, tip, tree)
    }

    /// Writes the commit of work that was verified, with what proves it, signed
    /// where a key is configured. Commits that are yet to be verified are not
    /// signed.
    pub(super) fn proven_commit(
        &self,
        log: &StepLog,
        text: &CommitText<'_>,
        base: &str,
        parent: &str,
        tree: &str,
    ) -> Result<String, StageError> {
        let witness = log.verified.latest_witness();
        let trajectory = self.batch.trajectory.chain_head();
        let shared = log.verified.shared.as_ref();
        let text = CommitText {
            witness: witness.as_deref(),
            trajectory: trajectory.map_err(|error| StepError::Unproven(error.to_string()))?,
            base: Some(base),
            verified_tree: shared.is_none().then_some(tree),
            verified_in: shared.map(|shared| shared.tree.as_str()),
            ..*text
        };
        let signer = self.batch.settings.signer.as_ref();
        Ok(self.tree.squash(&text, parent, tree, signer)?)
    }

    /// Returns the failure of a landing, with what a person and the next
    /// attempt read about it.
    pub(super) fn refusal(
        &self,
        log: &StepLog,
        round: usize,
        class: FailureClass,
        text: &str,
    ) -> StageError {
        let folder = &self.batch.settings.roots.streams;
        let phase = Phase::Land(round);
        let file = witness::file(folder, &log.step_id(), phase.name(), "stderr");
        if let Err(error) = artifact::overwrite(&file, format!("{class}: {text}\n").as_bytes()) {
            return error.into();
        }
        let mut failure = StepFailure::of(class);
        failure.said = Some((text.to_owned(), file));
        failure.into()
    }
}
