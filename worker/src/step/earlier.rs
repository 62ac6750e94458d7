//! What a batch did before this process took it up, by its rows.

use super::StepReport;
use crate::batch::Batch;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::step_failure::{LeftFiles, StepFailure};
use premath_memory::{LinePlace, StoreError, artifact, each_glance, witness};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the last attempts of the batch at issues, with their workers, by issue.
///
/// # Errors
///
/// [`StoreError`].
pub fn earlier_steps(
    batch: &Batch,
    issues: &BTreeSet<IssueId>,
) -> Result<Vec<(WorkerName, StepReport)>, StoreError> {
    if issues.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: BTreeMap<IssueId, StepRow> = BTreeMap::new();
    each_glance(batch.trajectory.path(), LinePlace::FIRST, |found| {
        let glance = found.glance();
        let issue_id = glance.issue_id.map(IssueId::from);
        let is_of_batch =
            glance.action == action::WORKER_LOOP && glance.batch_id == Some(&**batch.id());
        if let Some(issue_id) = issue_id.filter(|id| is_of_batch && issues.contains(id))
            && let Some(row) = found.into_row()
        {
            rows.insert(issue_id, row);
        }
    })?;
    let titles = batch.memory.view(|view| {
        let title = |id: &IssueId| view.row(id).map(|row| row.text_of("title"));
        rows.keys()
            .map(|id| title(id).unwrap_or_default())
            .collect::<Vec<_>>()
    })?;
    let roots = &batch.settings.roots;
    let report = |((issue_id, row), title): ((IssueId, StepRow), String)| {
        let close = WitnessRef::CLOSE;
        let close = artifact::of_step(&roots.witnesses, &row.step_id, close, "json");
        let commit = row.commit(witness::read(&roots.repository, &close).as_ref());
        let worker = row.worker_id.clone()?;
        let failure = StepFailure::read(&row, roots, &LeftFiles::default());
        let said = failure.and_then(|failure| Some((failure.said, failure.output?)));
        let report = StepReport::of_row(issue_id, title, row, commit);
        Some((worker, StepReport { said, ..report }))
    };
    Ok(rows.into_iter().zip(titles).filter_map(report).collect())
}
