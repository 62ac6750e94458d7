//! A step's turn: its evidence, what the gate reports about it, and the close
//! that the gate admits.

use super::account::{ReportedCalls, StreamRound};
use super::error::{StageError, StepError};
use super::landing::AdvancedLanding;
use super::log::StepLog;
use super::step_failure::StepFailure;
use super::work::WorkDone;
use crate::lane::Lane;
use crate::witness;
use premath_evidence::{
    AgentTurn, FileTurn, ShellTurn, TurnPolicies, agent_context, agent_turn, claims_of,
    file_context, file_turn, shell_context, shell_turn,
};
use premath_kernel::failure::{FailureClass, causes_first};
use premath_kernel::issue::Status;
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::record::witness::{
    CloseFacts, CloseWitness, FoundIssue, Judgement, TurnWitness,
};
use premath_kernel::turn::{CallSpec, Close, JoinCheckInput, MutationBinding, MutationReady};
use premath_worktree::tree::TreeState;
use std::collections::BTreeSet;

/// The verdict of the gate: the right to close, or why it is refused.
type GateVerdict = Result<MutationReady<Close>, BTreeSet<FailureClass>>;

impl Lane {
    /// Makes the evidence of what the step's commands did so far, and what its
    /// context rows are digests of.
    pub(super) fn turn(&self, log: &StepLog) -> (JoinCheckInput, TurnContext) {
        let step = &log.identity;
        let policies = &TurnPolicies {
            demand: log.demand.clone(),
            ..self.batch.policies()
        };
        let calls = &log.calls;
        match &log.account.reported {
            None => {
                let turn = ShellTurn {
                    step,
                    policies,
                    calls,
                };
                (shell_turn(&turn), shell_context(&turn))
            }
            Some(ReportedCalls::Streams(streams)) => {
                let rounds: Vec<_> = streams.iter().map(StreamRound::of_turn).collect();
                let turn = AgentTurn {
                    step,
                    policies,
                    rounds: &rounds,
                    calls,
                };
                (agent_turn(&turn), agent_context(&turn))
            }
            Some(ReportedCalls::File(reported)) => {
                let turn = FileTurn {
                    step,
                    policies,
                    reported,
                    calls,
                };
                (file_turn(&turn), file_context(&turn))
            }
        }
    }

    /// Binds the step to what its mode rests on.
    pub(super) fn binding(&self, log: &StepLog) -> MutationBinding {
        let verification = format!("{}/{}", log.identity.step_id(), log.verified.passed_in);
        MutationBinding::of_mode(
            log.identity.clone(),
            &self.batch.settings.mode,
            Some(verification),
        )
    }

    /// Returns whether the gate would grant the right to close now; nothing is
    /// recorded.
    pub(super) fn would_admit(&self, log: &StepLog) -> Result<bool, StageError> {
        let turn = CallSpec::bind(&self.turn(log).0)?;
        Ok(turn.admitted::<Close>(&self.binding(log)).is_ok())
    }

    /// Judges the turn and writes its witness.
    fn judge(&self, log: &mut StepLog) -> Result<GateVerdict, StepError> {
        let (input, context) = self.turn(log);
        let turn = CallSpec::bind(&input)?;
        let report = turn.report();
        let binding = self.binding(log);
        let judged = turn.admitted::<Close>(&binding);
        let classes: BTreeSet<FailureClass> = match &judged {
            Ok(_) => BTreeSet::new(),
            Err(classes) => classes.clone(),
        };
        let step_id = log.step_id();
        let judgement = Judgement {
            report: &report,
            close: &classes,
        };
        // A turn that may not close changes nothing at all.
        let admitted = match &judged {
            Ok(_) => binding.changes_of_step(),
            Err(_) => Vec::new(),
        };
        let claims = match &log.account.reported {
            Some(ReportedCalls::File(reported)) => Some(claims_of(reported)),
            _ => None,
        };
        let document = TurnWitness::new(&binding, &input, judgement, admitted);
        let document = document.with_claims(claims).with_context(&context);
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, "turn", &document)?;
        self.batch.reached(Boundary::TurnWitnessed);
        log.witnesses.insert(&witness.reference);
        log.turn_witness = Some(witness.reference);
        Ok(judged)
    }

    /// Judges the turn; returns the right to close where the gate grants it.
    pub(super) fn admitted(&self, log: &mut StepLog) -> Result<MutationReady<Close>, StageError> {
        let ready = self.judge(log)?.map_err(|classes| {
            let mut failure = Box::<StepFailure>::default();
            failure.blame(&classes);
            failure
        })?;
        self.may_change()?;
        Ok(ready)
    }

    /// Fails where what changes rest on is not as it was when the batch began.
    pub(super) fn may_change(&self) -> Result<(), Box<StepFailure>> {
        let held = self.batch.authorised();
        held.map_err(|revoked| StepFailure::of(revoked.class))
    }

    /// Judges the turn of a step that failed. A command that failed is the
    /// cause: what the gate reports about it counts where nothing else is known.
    pub(super) fn judge_failure(&mut self, log: &mut StepLog, failure: &mut StepFailure) {
        match self.judge(log) {
            Ok(Err(classes)) if failure.classes.is_empty() => failure.blame(&classes),
            Ok(_) => {}
            Err(error) => self.absorb(failure, error),
        }
    }

    /// Judges the turn of a step that failed, and returns the failure.
    pub(super) fn refused(
        &mut self,
        log: &mut StepLog,
        mut failure: Box<StepFailure>,
    ) -> StageError {
        self.judge_failure(log, &mut failure);
        failure.into()
    }

    /// Closes the issue, reads it back and witnesses that.
    pub(super) fn close(
        &self,
        log: &mut StepLog,
        ready: MutationReady<Close>,
        work: &WorkDone,
        (before, after): (&TreeState, &TreeState),
    ) -> Result<(), StageError> {
        let step_id = log.step_id();
        let mutation = ready.witness().clone();
        log.witnesses.insert(ready.witness_ref());
        self.may_change()?;
        self.batch.memory.close(ready)?;
        self.batch.reached(Boundary::IssueClosed);
        let found = self.batch.memory.view(|view| {
            view.issue(&log.identity.issue_id).map(|issue| {
                let found = FoundIssue {
                    status: issue.status.as_str().to_owned(),
                    leased: issue.lease.is_some(),
                    closed_by_this_step: issue.closed_by_step.as_deref() == Some(&step_id),
                };
                let is_closed = issue.status == Status::Closed;
                let holds = is_closed && !found.leased && found.closed_by_this_step;
                (found, holds)
            })
        })?;
        let (found, holds) = found.map_or((None, false), |(found, holds)| (Some(found), holds));
        let document = CloseWitness::from(CloseFacts {
            step_id: &step_id,
            mutation: &mutation,
            found,
            holds,
            before: witness::tree(before),
            after: witness::tree(after),
            commit: work.commit.as_deref(),
            changed_paths: &work.changed_paths,
            landing: work.landing.as_ref().map(AdvancedLanding::record),
        });
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, WitnessRef::CLOSE, &document)?;
        self.batch.reached(Boundary::CloseWitnessed);
        log.witnesses.insert(&witness.reference);
        match holds {
            true => Ok(()),
            false => Err(StepFailure::of(FailureClass::MutationReadBackMismatch).into()),
        }
    }
}

impl StepFailure {
    /// Adds what the gate reports, the causes first.
    fn blame(&mut self, classes: &BTreeSet<FailureClass>) {
        for class in causes_first(classes) {
            self.fail(class.as_str());
        }
    }
}
