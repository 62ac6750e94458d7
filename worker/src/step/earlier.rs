//! What a batch did before this process took it up, by its rows.

use super::StepReport;
use crate::batch::Batch;
use crate::witness;
use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::{LinePlace, StoreError, artifact, each_glance};
use serde_json::Value;
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
    let report = |((issue_id, row), title): ((IssueId, StepRow), String)| {
        let commit = commit_of(batch, &row);
        let worker = row.worker_id.clone()?;
        Some((worker, StepReport::of_row(issue_id, title, row, commit)))
    };
    Ok(rows.into_iter().zip(titles).filter_map(report).collect())
}

/// Returns the commit of the work that a closed step landed or left on its branch, as
/// the witness of its close names it.
fn commit_of(batch: &Batch, row: &StepRow) -> Option<String> {
    if !row.succeeded() {
        return None;
    }
    let file = witness::file(
        &batch.settings.roots.witnesses,
        &StepId::from(&*row.step_id),
        "mutation",
        "json",
    );
    let witness = artifact::read(&file).ok()??;
    let witness: Value = serde_json::from_slice(&witness).ok()?;
    witness["commit"].as_str().map(str::to_owned)
}
