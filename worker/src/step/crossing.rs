//! The crossing of a step's turn to the world that it worked in (HARNESS-RUNTIME
//! 1.2): the context first, then the transport, then the gate there; what both
//! say is recorded with the step.

use super::attempt::Attempt;
use super::error::StageError;
use super::log::StepLog;
use super::step_failure::StepFailure;
use crate::lane::Lane;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_kernel::json::reference::RefSet;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::feature::FeatureStatus;
use premath_kernel::record::trajectory::CrossingResult;
use premath_kernel::record::trajectory::{StepRow, Verification, action};
use premath_kernel::record::world::{Crossing, WorkContext};
use premath_kernel::turn::{Close, MutationReady};
use premath_memory::world::{LocalWorld, cross_to, keep_crossing};
use premath_memory::{artifact, clock};
use serde_json::Value;
use std::path::Path;

impl Lane {
    /// Judges the turn by the gate here, and where the step works in another
    /// world by the gate there.
    pub(super) fn judge_where_it_is(
        &self,
        log: &mut StepLog,
    ) -> Result<MutationReady<Close>, StageError> {
        let ready = self.admitted(log)?;
        if let Some(there) = self.world_it_is_in() {
            // The other world as it is now, and this one as the batch began.
            self.take_across(log, &self.batch.own_world, &there)?;
        }
        Ok(ready)
    }

    /// Records a step that was not begun, because its work cannot be placed, and
    /// the transport says why; or because the gate there refuses it whatever is
    /// done, and says why.
    pub(super) fn not_placed(
        &mut self,
        attempt: &mut Attempt<'_>,
        from: &Result<LocalWorld, String>,
        to: &Result<LocalWorld, String>,
    ) -> Result<(), StageError> {
        let base = self.tree.base()?;
        let log = &mut attempt.log;
        self.begin_session(&log.identity, log.session_step(&base))?;
        self.feature(attempt.claimed, FeatureStatus::InProgress, None)?;
        // The verdict of the gate here on an empty turn carries no information.
        match self.admitted(log) {
            Err(StageError::Error(error)) => return Err(error.into()),
            Ok(_) | Err(StageError::Failed(_)) => {}
        }
        self.take_across(log, from, to)
    }

    /// Takes the step's turn across, and records what both sides say; fails
    /// where the other side does not accept it.
    fn take_across(
        &self,
        log: &mut StepLog,
        from: &Result<LocalWorld, String>,
        to: &Result<LocalWorld, String>,
    ) -> Result<(), StageError> {
        let step_id = log.step_id();
        let folder = &self.batch.settings.roots.witnesses;
        let context = match self.context(log, &step_id, folder)? {
            Ok(context) => context,
            Err(detail) => {
                let mut failure = StepFailure::of(FailureClass::TransportWitnessUnverifiable);
                failure.said = Some((detail, folder.clone()));
                log.crossed(CrossingResult::TransportFailed, None);
                return Err(failure.into());
            }
        };
        let crossing = cross_to(context, from, to);
        let mut witnesses = keep_crossing(&crossing, from, to)?;
        if from.is_err() {
            let kept = witness::write(folder, &step_id, "transport", &crossing.transport)?;
            witnesses.insert(kept.reference);
        }
        self.batch.reached(Boundary::CrossingWitnessed);
        log.witnesses.extend(&witnesses);
        let result = crossing.result();
        log.crossed(result, crossing.transport.mapped_context_ref.clone());
        if result == CrossingResult::Accepted {
            return Ok(());
        }
        let classes = crossing.failure_classes();
        let class = classes
            .first()
            .map_or(result.as_str(), |class| class.as_str());
        log.verified.latest = Some(Verification {
            class: class.to_owned(),
            witness_ref: last_witness(&crossing, &witnesses),
        });
        let mut failure = Box::<StepFailure>::default();
        classes
            .iter()
            .for_each(|class| failure.fail(class.as_str()));
        failure.said = Some((describe(&crossing), folder.clone()));
        Err(failure.into())
    }

    /// Computes the context of the turn from its witness as it was written, and
    /// the lineage that the step's row will have; says what is not a witness.
    fn context(
        &self,
        log: &StepLog,
        step_id: &StepId,
        folder: &Path,
    ) -> Result<Result<WorkContext, String>, StageError> {
        let file = witness::file(folder, step_id, "turn", "json");
        let document = artifact::read(&file)?.unwrap_or_default();
        let document: Value = match serde_json::from_slice(&document) {
            Ok(document) => document,
            Err(error) => return Ok(Err(format!("{}: {error}", file.display()))),
        };
        let now = clock::now().wall;
        let mut row = StepRow::new(step_id.clone(), action::WORKER_LOOP, "crossing", now);
        row.issue_id = Some(log.identity.issue_id.clone());
        row.lineage_refs = self.lineage(&log.identity.issue_id);
        row.witness_refs = log.witnesses.clone();
        let context = WorkContext::compute(document, Some(&row));
        Ok(context.map_err(|error| format!("{}: {error}", file.display())))
    }
}

/// Returns the last witness: the gate's if it was reached.
fn last_witness(crossing: &Crossing, witnesses: &RefSet) -> Option<String> {
    let phase = match crossing.gate {
        Some(_) => "/gate/",
        None => "/transport/",
    };
    let mut of_phase = witnesses.iter().filter(|witness| witness.contains(phase));
    of_phase.next().map(str::to_owned)
}

/// The message about a crossing that failed.
fn describe(crossing: &Crossing) -> String {
    match &crossing.gate {
        None => {
            let detail = crossing.transport.detail.as_deref();
            format!(
                "the transport failed: {}",
                detail.unwrap_or("no reason given")
            )
        }
        Some(gate) => {
            let classes: Vec<&str> = gate.failure_classes.iter().map(|c| c.as_str()).collect();
            let detail = gate.detail.clone().unwrap_or_else(|| classes.join(", "));
            format!("the gate of {} refused the turn: {detail}", gate.world)
        }
    }
}
