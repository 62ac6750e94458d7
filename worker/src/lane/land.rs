//! Landing: work that passed is brought onto the target's tip, verified again
//! where that makes another tree, and only then may its issue close
//! (HARNESS-RUNTIME 3.2).

use super::Lane;
use super::command::{Cut, Occasion, Phase};
use super::progress::Progress;
use super::step::StepError;
use super::verify::Verification;
use super::watch::LeaseWatch;
use crate::interrupt::Level;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{self, Claim};
use premath_kernel::json::plain::listed;
use premath_kernel::policy::landing::ROUNDS;
use premath_kernel::policy::landing::is_step_branch;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::session::SessionStep;
use premath_kernel::turn::{Close, MutationReady};
use premath_memory::{StoreError, artifact, clock};
use premath_worktree::landing::{Advance, LandingTicket};
use premath_worktree::tree::{Base, CommitText, Merged, TreeState};
use std::time::Duration;

/// How often a step that waits for its turn looks.
const LOOK: Duration = Duration::from_millis(10);

/// What is to land.
pub(super) struct Work<'a> {
    /// Where the step began.
    pub(super) base: &'a Base,
    /// What its commits say.
    pub(super) text: &'a CommitText<'a>,
    /// The commit and the tree that were verified.
    pub(super) verified: TreeState,
}

impl Lane {
    /// Returns where a step begins: at the target's tip on a branch of its
    /// own, or where the lane is.
    pub(super) fn starting_point(&self, claim: &Claim) -> Result<Base, StepError> {
        if let Some(away) = &self.away {
            return away.starting_point(claim);
        }
        let landing = &self.batch.landing;
        if !landing.is_on() {
            return Ok(self.tree.base()?);
        }
        // What the issue's own landing left is looked at as it is.
        let commit = match landing.landed(&claim.issue_id)? {
            Some(_) => landing.tip()?,
            None => landing.start()?,
        };
        Ok(Base {
            commit,
            branch: Some(landing.free_branch(&claim.issue_id, claim.generation)?),
        })
    }

    /// Puts the lane where the step begins.
    pub(super) fn sync_target(&self, claim: &Claim, base: &Base) -> Result<(), StepError> {
        if self.away.is_some() || self.batch.landing.is_on() {
            let alone = self.batch.landing.branches();
            self.tree.make_branch(base)?;
            drop(alone);
            self.tree
                .start_at(base, &claim.issue_id, claim.generation)?;
        }
        Ok(())
    }

    /// Takes the lane off a step's branch, and the branch away where nothing
    /// is on it that the target or the base does not hold.
    pub(super) fn leave_branch(&self, step: &SessionStep, closed: bool) {
        if step.world.is_some() {
            self.leave_branch_abroad(step);
            return;
        }
        let landing = &self.batch.landing;
        let Some(branch) = &step.base_branch else {
            return;
        };
        let name = branch.trim_start_matches("refs/heads/");
        let is_kept = closed && !landing.merges();
        if !landing.is_on() || is_kept || !is_step_branch(name, &step.issue_id, step.generation) {
            return;
        }
        let tip = landing.tip().unwrap_or_else(|_| step.base_commit.clone());
        let _alone = landing.branches();
        if let Err(error) = self.tree.leave(branch, &[&step.base_commit, &tip]) {
            tracing::warn!(step = %step.step_id, %error, "the step's branch was not left");
        }
    }

    /// Returns whether memory has the lease as the claim has it.
    pub(super) fn fence(&self, claim: &Claim) -> Result<Result<(), FailureClass>, StoreError> {
        self.batch
            .memory
            .view(|view| match view.issue(&claim.issue_id) {
                Some(issue) => lease::fence(issue, &claim.key(), &clock::observe())
                    .map_err(|refusal| refusal.class),
                None => Err(FailureClass::LeaseNotFound),
            })
    }

    /// Lands work and returns the right to close its issue; `None` where it
    /// did not land, with the reason in `progress`.
    #[expect(clippy::too_many_arguments, reason = "they are parts of the one step")]
    pub(super) fn land(
        &mut self,
        claim: &Claim,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        occasion: &Occasion<'_>,
        turn: &mut LandingTicket<'_>,
        work: &mut Work<'_>,
    ) -> Result<Option<MutationReady<Close>>, StepError> {
        let batch = self.batch.clone();
        let landing = &batch.landing;
        let (issue, generation) = (&claim.issue_id, claim.generation);
        let Some(head) = progress.commit.clone() else {
            // Nothing changed: what the step found is what the target holds.
            let Some(ready) = self.judge(progress)? else {
                return Ok(None);
            };
            landing.mark(issue, generation, &work.base.commit)?;
            batch.reached(Boundary::LandingMarked);
            progress.landing = Some(landing.record(&work.base.commit));
            return Ok(Some(ready));
        };
        if !self.await_turn(progress, watch, turn)? {
            return Ok(None);
        }
        // The previous lease holder may have landed since the step began.
        if let Some(landed) = landing.landed(issue)? {
            let commit = landed.commit;
            let text = format!("an earlier attempt of the issue landed as {commit}");
            self.say(progress, 0, FailureClass::LandingConflict, &text)?;
            return Ok(None);
        }
        for round in 0..ROUNDS.len() {
            let tip = landing.tip()?;
            let tree = match self.tree.merged(&tip, &head)? {
                Merged::Clean(tree) => tree,
                Merged::Conflict(paths) => {
                    self.conflicts(progress, round, &tip, &paths)?;
                    return Ok(None);
                }
            };
            if tree != work.verified.tree {
                let joined = self.tree.squash(work.text, &tip, &tree, None)?;
                let verification = Verification {
                    phase: Phase::Land(round),
                    command: &self.batch.settings.hooks.verify.clone(),
                    commit: &joined,
                };
                let Some(state) = self.verify(progress, watch, occasion, &verification)? else {
                    return self.judge(progress).map(|_| None);
                };
                work.verified = state;
            }
            let commit = self.landing_commit(progress, work, &tip)?;
            batch.reached(Boundary::LandingCommitted);
            let check = landing.rule().check.clone();
            let ready = if check.is_some() && self.would_admit(progress)? {
                None
            } else {
                match self.judge(progress)? {
                    Some(ready) => Some(ready),
                    None => return Ok(None),
                }
            };
            let lease = match watch.look() {
                Ok(()) => self.fence(claim)?,
                lost => lost,
            };
            if let Err(class) = lease {
                progress.cut = Some(Cut::Lease(class));
                progress.fail(class.as_str());
                return Ok(None);
            }
            landing.mark(issue, generation, &commit)?;
            batch.reached(Boundary::LandingMarked);
            let message = format!("premath: land {}", occasion.step_id);
            if landing.advance(&tip, &commit, &message)? != Advance::Done {
                continue;
            }
            batch.reached(Boundary::TargetAdvanced);
            let ready = match check {
                Some(check) if ready.is_none() => {
                    let checked = self.check_landed(progress, watch, occasion, &commit, &check);
                    match checked {
                        Ok(ready) => ready,
                        Err(error) => {
                            self.take_off(progress, occasion, &commit)?;
                            return Err(error);
                        }
                    }
                }
                _ => ready,
            };
            if ready.is_some() {
                progress.landing = Some(landing.record(&commit));
                progress.commit = Some(commit);
            } else if commit != tip {
                self.take_off(progress, occasion, &commit)?;
            }
            return Ok(ready);
        }
        let class = FailureClass::LandingTargetUnusable;
        self.say(
            progress,
            ROUNDS.len() - 1,
            class,
            &format!("{} is being moved repeatedly", landing.target()),
        )?;
        Ok(None)
    }

    /// Writes the commit that lands: the whole of the work on the target's tip,
    /// with the verification that its tree passed. The tip itself where it holds
    /// all of the work.
    fn landing_commit(
        &self,
        progress: &Progress,
        work: &Work<'_>,
        tip: &str,
    ) -> Result<String, StepError> {
        if self.tree.tree_of(tip)? == work.verified.tree {
            return Ok(tip.to_owned());
        }
        let base = &work.base.commit;
        self.proven_commit(progress, work.text, base, tip, &work.verified.tree)
    }

    /// Writes the commit of work that was verified, with what proves it, signed
    /// where a key is configured. Commits that are yet to be verified are not
    /// signed.
    pub(super) fn proven_commit(
        &self,
        progress: &Progress,
        text: &CommitText<'_>,
        base: &str,
        parent: &str,
        tree: &str,
    ) -> Result<String, StepError> {
        let witness = progress.verified_by();
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

    /// Waits until no other step lands; returns whether the step continues.
    pub(super) fn await_turn(
        &self,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
        turn: &mut LandingTicket<'_>,
    ) -> Result<bool, StepError> {
        loop {
            if let Err(class) = watch.look() {
                progress.cut = Some(Cut::Lease(class));
                progress.fail(class.as_str());
                return Ok(false);
            }
            if self.batch.interrupt.level() >= Level::Kill {
                progress.cut = Some(Cut::Interrupt);
                progress.fail(FailureClass::StepInterrupted.as_str());
                return Ok(false);
            }
            if turn.has_come()? {
                return Ok(true);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn conflicts(
        &self,
        progress: &mut Progress,
        round: usize,
        tip: &str,
        paths: &[String],
    ) -> Result<(), StepError> {
        let text = format!(
            "merge conflict with {} at {tip} in: {}",
            self.batch.landing.target(),
            listed(paths)
        );
        self.say(progress, round, FailureClass::LandingConflict, &text)
    }

    /// Fails the step with what a person and the next attempt are reported.
    fn say(
        &self,
        progress: &mut Progress,
        round: usize,
        class: FailureClass,
        text: &str,
    ) -> Result<(), StepError> {
        let folder = &self.batch.settings.roots.streams;
        let step_id = progress.identity.step_id();
        let file = witness::file(folder, &step_id, Phase::Land(round).name(), "stderr");
        artifact::overwrite(&file, format!("{class}: {text}\n").as_bytes())?;
        progress.fail(class.as_str());
        progress.said = Some((text.to_owned(), file));
        Ok(())
    }
}
