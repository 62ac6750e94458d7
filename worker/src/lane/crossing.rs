//! The crossing of a step's turn to the world that it worked in (HARNESS-RUNTIME
//! 1.2): the context first, then the transport, then the gate there; what both
//! say is recorded with the step.

use super::Lane;
use super::progress::Progress;
use super::step::StepError;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::reference::RefSet;
use premath_kernel::record::feature::FeatureStatus;
use premath_kernel::record::trajectory::CrossingResult;
use premath_kernel::record::trajectory::{StepRow, Verification, action};
use premath_kernel::record::world::{Crossing, WorkContext};
use premath_kernel::turn::{Close, MutationReady};
use premath_memory::world::{LocalWorld, cross_to, keep_crossing};
use premath_memory::{Claimed, artifact, clock};
use serde_json::Value;
use std::path::Path;

impl Lane {
    /// Judges the turn by the gate here, and where the step works in another
    /// world by the gate there.
    pub(super) fn judge_where_it_is(
        &self,
        progress: &mut Progress,
    ) -> Result<Option<MutationReady<Close>>, StepError> {
        let Some(ready) = self.judge(progress)? else {
            return Ok(None);
        };
        let Some(there) = self.world_it_is_in() else {
            return Ok(Some(ready));
        };
        // As both are now: what changed while the work was done counts.
        let (from, to) = (self.own_world(), there);
        let crossing = self.take_across(progress, &from, &to)?;
        Ok((crossing == CrossingResult::Accepted).then_some(ready))
    }

    /// Records a step that was not begun, because its work cannot be placed:
    /// the transport says why, and no gate is asked.
    pub(super) fn not_placed(
        &mut self,
        claimed: &Claimed,
        progress: &mut Progress,
        from: &Result<LocalWorld, String>,
        to: &Result<LocalWorld, String>,
    ) -> Result<(), StepError> {
        let base = self.tree.base()?;
        self.begin_session(progress, &base)?;
        self.feature(claimed, FeatureStatus::InProgress, None)?;
        let before = progress.classes.clone();
        drop(self.judge(progress)?);
        // A gate's verdict on an empty turn carries no information.
        progress.classes = before;
        self.take_across(progress, from, to).map(drop)
    }

    /// Takes the step's turn across, and records what both sides say.
    fn take_across(
        &self,
        progress: &mut Progress,
        from: &Result<LocalWorld, String>,
        to: &Result<LocalWorld, String>,
    ) -> Result<CrossingResult, StepError> {
        let step_id = progress.identity.step_id();
        let folder = &self.batch.settings.roots.witnesses;
        let context = match self.context(progress, &step_id, folder)? {
            Ok(context) => context,
            Err(detail) => {
                let class = FailureClass::TransportWitnessUnverifiable;
                progress.fail(class.as_str());
                progress.said = Some((detail, folder.clone()));
                progress.crossed(CrossingResult::TransportFailed, None);
                return Ok(CrossingResult::TransportFailed);
            }
        };
        let crossing = cross_to(context, from, to);
        let mut witnesses = keep_crossing(&crossing, from, to)?;
        if from.is_err() {
            let kept = witness::write(folder, &step_id, "transport", &crossing.transport)?;
            witnesses.insert(kept.reference);
        }
        progress.witnesses.extend(&witnesses);
        let result = crossing.result();
        progress.crossed(result, crossing.transport.mapped_context_ref.clone());
        if result != CrossingResult::Accepted {
            let classes = crossing.failure_classes();
            progress.verification = Some(Verification {
                class: classes
                    .first()
                    .map_or(result.as_str(), |class| class.as_str())
                    .to_owned(),
                witness_ref: last_witness(&crossing, &witnesses),
            });
            classes
                .iter()
                .for_each(|class| progress.fail(class.as_str()));
            progress.said = Some((told(&crossing), folder.clone()));
        }
        Ok(result)
    }

    /// Computes the context of the turn from its witness as it was written, and
    /// the lineage that the step's row will have; says what is not a witness.
    fn context(
        &self,
        progress: &Progress,
        step_id: &str,
        folder: &Path,
    ) -> Result<Result<WorkContext, String>, StepError> {
        let file = witness::file(folder, step_id, "turn", "json");
        let document = artifact::read(&file)?.unwrap_or_default();
        let document: Value = match serde_json::from_slice(&document) {
            Ok(document) => document,
            Err(error) => return Ok(Err(format!("{}: {error}", file.display()))),
        };
        let now = clock::now().wall;
        let mut row = StepRow::new(step_id, action::WORKER_LOOP, "crossing", now);
        row.issue_id = Some(progress.identity.issue_id.to_string());
        row.lineage_refs = self.lineage(&progress.identity.issue_id);
        row.witness_refs = progress.witnesses.clone();
        let context = WorkContext::compute(document, Some(&row));
        Ok(context.map_err(|error| format!("{}: {error}", file.display())))
    }
}

impl Progress {
    fn crossed(&mut self, result: CrossingResult, mapped_context: Option<String>) {
        if let Some(abroad) = &mut self.abroad {
            abroad.record.crossing = Some(result);
            abroad.mapped_context = mapped_context;
        }
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
fn told(crossing: &Crossing) -> String {
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
