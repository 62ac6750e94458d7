//! Landing: work that passed is brought onto the target's tip, verified again
//! where that makes another tree, and only then may its issue close
//! (HARNESS-RUNTIME 3.2).

use super::attempt::Attempt;
use super::error::{Setback, StepError};
use super::log::StepLog;
use super::trouble::Trouble;
use super::verify::Verification;
use crate::batch::Batch;
use crate::lane::Lane;
use crate::lane::command::{Occasion, Phase};
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::plain::listed;
use premath_kernel::policy::landing::{LandingRecord, ROUNDS};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::{Close, MutationReady};
use premath_memory::artifact;
use premath_worktree::landing::{Advance, LandedMark, LandingError, LandingTicket, Undone};
use premath_worktree::signing::Signer;
use premath_worktree::tree::{Base, CommitText, Merged, TreeState};
use std::sync::Arc;

/// What is to land.
pub(super) struct Proposal<'a> {
    /// Where the step began.
    pub(super) base: &'a Base,
    /// What its commits say.
    pub(super) text: &'a CommitText<'a>,
    /// The commit that was verified; none where nothing changed.
    pub(super) head: Option<&'a str>,
    /// The tree that was verified.
    pub(super) verified: TreeState,
}

/// Work whose issue may close.
pub(super) struct ReadyToClose {
    /// The right to close.
    pub(super) ready: MutationReady<Close>,
    pub(super) landing: Option<AdvancedLanding>,
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
    issue_id: String,
    commit: String,
}

/// A landing whose commit is on the target. It ends by `unmark` once the row
/// of the close is written, or by `undo`; where it is dropped before, its mark
/// stays, and the issue's next step adopts it.
#[derive(Debug)]
#[must_use = "a landing ends with its mark removed, or it is undone"]
pub(super) struct AdvancedLanding {
    batch: Arc<Batch>,
    issue_id: String,
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
            issue_id: claim.issue_id.to_string(),
            commit: commit.to_owned(),
        })
    }

    /// Advances the target to the commit; `None` where the target has moved.
    fn advance(self, from: &str, step_id: &str) -> Result<Option<AdvancedLanding>, LandingError> {
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
        }
    }
}

impl AdvancedLanding {
    /// Takes over the landing of an earlier attempt.
    pub(super) fn adopt(batch: &Arc<Batch>, claim: &Claim, mark: &LandedMark) -> Self {
        Self {
            batch: batch.clone(),
            issue_id: claim.issue_id.to_string(),
            record: batch.landing.record(&mark.commit),
        }
    }

    /// Returns where the work landed.
    pub(super) fn record(&self) -> &LandingRecord {
        &self.record
    }

    /// Takes the commit off the target, and the mark away.
    pub(super) fn undo(
        self,
        step_id: &str,
        signer: Option<&Signer>,
    ) -> Result<Undone, LandingError> {
        let landing = &self.batch.landing;
        let undone = landing.undo(&self.record.commit, step_id, signer)?;
        self.batch.reached(Boundary::LandingUndone);
        landing.unmark(&self.issue_id);
        self.batch.reached(Boundary::UndoneUnmarked);
        Ok(undone)
    }

    /// Ends the landing: its issue is closed, and the row of that is written.
    pub(super) fn unmark(self) {
        self.batch.landing.unmark(&self.issue_id);
        self.batch.reached(Boundary::LandingUnmarked);
    }
}

impl Lane {
    /// Lands work; returns the right to close its issue.
    pub(super) fn land(
        &mut self,
        attempt: &mut Attempt<'_>,
        occasion: &Occasion<'_>,
        ticket: &mut LandingTicket<'_>,
        mut proposal: Proposal<'_>,
    ) -> Result<ReadyToClose, Setback> {
        let Some(head) = proposal.head else {
            return self.land_unchanged(attempt, proposal);
        };
        let batch = self.batch.clone();
        let landing = &batch.landing;
        attempt.await_turn(ticket)?;
        // The previous lease holder may have landed since the step began.
        if let Some(LandedMark { commit, .. }) = landing.landed(&attempt.claim().issue_id)? {
            let text = format!("an earlier attempt of the issue landed as {commit}");
            return Err(self.refusal(&attempt.log, 0, FailureClass::LandingConflict, &text));
        }
        for round in 0..ROUNDS.len() {
            let tip = landing.tip()?;
            self.verify_merged(attempt, occasion, (round, &tip, head), &mut proposal)?;
            let commit = self.landing_commit(&attempt.log, &proposal, &tip)?;
            batch.reached(Boundary::LandingCommitted);
            let check = landing.rule().check.as_deref();
            let ready = match check {
                Some(_) if self.would_admit(&attempt.log)? => None,
                _ => Some(self.admitted(&mut attempt.log)?),
            };
            attempt.look_at_lease()?;
            attempt.fence()?;
            let marked = MarkedLanding::mark(&batch, attempt.claim(), &commit)?;
            let Some(landed) = marked.advance(&tip, occasion.step_id)? else {
                continue;
            };
            let (ready, landed) = match (ready, check) {
                (None, Some(check)) => {
                    self.check_advanced(attempt, occasion, (landed, &tip), check)?
                }
                (Some(ready), _) => (ready, landed),
                (None, None) => (self.admitted(&mut attempt.log)?, landed),
            };
            return Ok(ReadyToClose {
                ready,
                landing: Some(landed),
                commit: Some(commit),
                tree: proposal.verified,
            });
        }
        let text = format!("{} is being moved repeatedly", landing.target());
        let class = FailureClass::LandingTargetUnusable;
        Err(self.refusal(&attempt.log, ROUNDS.len() - 1, class, &text))
    }

    /// Lands work that changed nothing: what the step found is what the target
    /// holds.
    fn land_unchanged(
        &self,
        attempt: &mut Attempt<'_>,
        proposal: Proposal<'_>,
    ) -> Result<ReadyToClose, Setback> {
        let ready = self.admitted(&mut attempt.log)?;
        let commit = &proposal.base.commit;
        let marked = MarkedLanding::mark(&self.batch, attempt.claim(), commit)?;
        Ok(ReadyToClose {
            ready,
            landing: Some(marked.there()),
            commit: None,
            tree: proposal.verified,
        })
    }

    /// Merges the work with the target's tip, and verifies it where that makes
    /// another tree.
    fn verify_merged(
        &mut self,
        attempt: &mut Attempt<'_>,
        occasion: &Occasion<'_>,
        (round, tip, head): (usize, &str, &str),
        proposal: &mut Proposal<'_>,
    ) -> Result<(), Setback> {
        let tree = match self.tree.merged(tip, head)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => {
                let target = self.batch.landing.target();
                let paths = listed(&paths);
                let text = format!("merge conflict with {target} at {tip} in: {paths}");
                return Err(self.refusal(
                    &attempt.log,
                    round,
                    FailureClass::LandingConflict,
                    &text,
                ));
            }
        };
        if tree == proposal.verified.tree {
            return Ok(());
        }
        let joined = self.tree.squash(proposal.text, tip, &tree, None)?;
        let verification = Verification {
            phase: Phase::Land(round),
            command: &self.batch.settings.hooks.verify.clone(),
            commit: &joined,
        };
        match self.verify(attempt, occasion, &verification) {
            Ok(state) => {
                proposal.verified = state;
                Ok(())
            }
            Err(Setback::Failed(trouble)) => Err(self.refused(&mut attempt.log, trouble)),
            Err(error) => Err(error),
        }
    }

    /// Checks what landed, and takes it off the target where it may not stay.
    fn check_advanced(
        &mut self,
        attempt: &mut Attempt<'_>,
        occasion: &Occasion<'_>,
        (landed, tip): (AdvancedLanding, &str),
        check: &str,
    ) -> Result<(MutationReady<Close>, AdvancedLanding), Setback> {
        let commit = landed.record().commit.clone();
        let checked = self.check_landed(attempt, occasion, &commit, check);
        let mut trouble = match checked {
            Ok(ready) => return Ok((ready, landed)),
            // The tip itself, which holds all of the work: nothing is on the
            // target that was not there before.
            Err(Setback::Failed(trouble)) if commit == tip => {
                landed.unmark();
                return Err(trouble.into());
            }
            Err(Setback::Failed(trouble)) => trouble,
            Err(Setback::Error(error)) => {
                let mut trouble = Box::<Trouble>::default();
                let undone = self.take_off(&mut trouble, occasion.step_id, landed);
                let error = undone.err().map_or(error, StepError::from);
                self.absorb(&mut trouble, error);
                return Err(trouble.into());
            }
        };
        if let Err(error) = self.take_off(&mut trouble, occasion.step_id, landed) {
            self.absorb(&mut trouble, error);
        }
        Err(trouble.into())
    }

    /// Writes the commit that lands: the whole of the work on the target's tip,
    /// with the verification that its tree passed. The tip itself where it holds
    /// all of the work.
    fn landing_commit(
        &self,
        log: &StepLog,
        proposal: &Proposal<'_>,
        tip: &str,
    ) -> Result<String, Setback> {
        let tree = &proposal.verified.tree;
        if self.tree.tree_of(tip)? == *tree {
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
    ) -> Result<String, Setback> {
        let witness = log.verified_by();
        let trajectory = self.batch.trajectory.chain_head();
        let text = CommitText {
            witness: witness.as_deref(),
            trajectory: trajectory.map_err(|error| StepError::Unproven(error.to_string()))?,
            base: Some(base),
            verified_tree: Some(tree),
            ..*text
        };
        let signer = self.batch.settings.signer.as_ref();
        Ok(self.tree.squash(&text, parent, tree, signer)?)
    }

    /// Returns the failure of a landing, with what a person and the next
    /// attempt read about it.
    fn refusal(&self, log: &StepLog, round: usize, class: FailureClass, text: &str) -> Setback {
        let folder = &self.batch.settings.roots.streams;
        let phase = Phase::Land(round);
        let file = witness::file(folder, &log.step_id(), phase.name(), "stderr");
        if let Err(error) = artifact::overwrite(&file, format!("{class}: {text}\n").as_bytes()) {
            return error.into();
        }
        let mut trouble = Trouble::of(class);
        trouble.said = Some((text.to_owned(), file));
        trouble.into()
    }
}
