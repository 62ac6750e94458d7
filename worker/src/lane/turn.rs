//! A step's turn: its evidence, what the gate reports about it, and the close
//! that the gate admits.

use super::Lane;
use super::progress::{Progress, Told};
use super::step::StepError;
use crate::witness;
use premath_evidence::{AgentTurn, FileTurn, ShellTurn, agent_turn, file_turn, shell_turn};
use premath_kernel::failure::{FailureClass, causes_first};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::witness::{CloseFacts, CloseWitness, FoundIssue, TurnWitness};
use premath_kernel::turn::{
    CallSpec, Close, EvidenceError, JoinCheckInput, MutationBinding, MutationKind, MutationReady,
    ToolUse,
};
use premath_worktree::tree::TreeState;
use std::collections::BTreeSet;

impl Lane {
    /// Makes the evidence of what the step's commands did so far.
    pub(super) fn evidence(&self, progress: &Progress) -> JoinCheckInput {
        let (step, policies) = (&progress.identity, &self.batch.policies());
        let calls = &progress.calls;
        match &progress.told {
            None => shell_turn(&ShellTurn {
                step,
                policies,
                calls,
            }),
            Some(Told::Stream(stream)) => agent_turn(&AgentTurn {
                step,
                policies,
                stream,
                calls,
            }),
            Some(Told::File(told)) => file_turn(&FileTurn {
                step,
                policies,
                told,
                calls,
            }),
        }
    }

    /// Binds the step to what its mode rests on.
    pub(super) fn binding(&self, progress: &Progress) -> MutationBinding {
        let verification = format!("{}/verify", progress.identity.step_id());
        MutationBinding::of_mode(
            progress.identity.clone(),
            &self.batch.settings.mode,
            Some(verification),
        )
    }

    /// Returns whether the gate would grant the right to close now; nothing is
    /// recorded.
    pub(super) fn would_admit(&self, progress: &Progress) -> Result<bool, StepError> {
        let turn = walk(&self.evidence(progress))?;
        Ok(admit::<Close>(turn, &self.binding(progress)).is_ok())
    }

    /// Judges the turn, writes its witness, and returns the right to close
    /// where the gate grants it.
    pub(super) fn judge(
        &self,
        progress: &mut Progress,
    ) -> Result<Option<MutationReady<Close>>, StepError> {
        let input = self.evidence(progress);
        let turn = walk(&input)?;
        let report = turn.report();
        let judged = admit::<Close>(turn, &self.binding(progress));
        let classes: BTreeSet<FailureClass> = match &judged {
            Ok(_) => BTreeSet::new(),
            Err(classes) => classes.clone(),
        };
        let step_id = progress.identity.step_id();
        let document = TurnWitness::new(&step_id, &input, &report, &classes);
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, "turn", &document)?;
        self.batch.reached(Boundary::TurnWitnessed);
        progress.witnesses.insert(&witness.reference);
        progress.turn_witness = Some(witness.reference);
        // A command that failed is the cause; what the gate reports about it
        // follows.
        if progress.classes.is_empty() {
            for class in causes_first(&classes) {
                progress.fail(class.as_str());
            }
        }
        Ok(judged.ok())
    }

    /// Closes the issue, reads it back and witnesses that.
    pub(super) fn close(
        &self,
        progress: &mut Progress,
        ready: MutationReady<Close>,
        before: &TreeState,
        after: &TreeState,
    ) -> Result<(), StepError> {
        let step_id = progress.identity.step_id();
        let mutation = ready.witness().clone();
        progress.witnesses.insert(ready.witness_ref());
        self.batch.memory.close(ready)?;
        self.batch.reached(Boundary::IssueClosed);
        progress.closed = true;
        let found = self.batch.memory.view(|view| {
            view.issue(&progress.identity.issue_id)
                .map(|issue| FoundIssue {
                    status: issue.status.as_str().to_owned(),
                    leased: issue.lease.is_some(),
                    closed_by_this_step: issue.closed_by_step.as_deref() == Some(&step_id),
                })
        })?;
        let holds = found.as_ref().is_some_and(|found| {
            found.status == "closed" && !found.leased && found.closed_by_this_step
        });
        let document = CloseWitness::from(CloseFacts {
            step_id: &step_id,
            mutation: &mutation,
            found,
            holds,
            before: witness::tree(before),
            after: witness::tree(after),
            commit: progress.commit.as_deref(),
            changed_paths: &progress.changed_paths,
            landing: progress.landing.as_ref(),
        });
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, "mutation", &document)?;
        self.batch.reached(Boundary::CloseWitnessed);
        progress.witnesses.insert(&witness.reference);
        Ok(())
    }
}

/// Walks a turn up to its uses.
pub(super) fn walk(input: &JoinCheckInput) -> Result<ToolUse, EvidenceError> {
    Ok(CallSpec::bind(input)?.requests().results().tool_use())
}

/// Walks a turn on to the right for one kind of change.
pub(super) fn admit<C: MutationKind>(
    turn: ToolUse,
    binding: &MutationBinding,
) -> Result<MutationReady<C>, BTreeSet<FailureClass>> {
    let joined = turn.join().map_err(|refused| refused.into_parts().1)?;
    joined
        .admit::<C>(binding)
        .map_err(|refused| refused.into_parts().1)
}
