//! Issues that no batch works on because they failed in one batch after another.

use super::Batch;
use super::knowledge::Knowledge;
use premath_kernel::json::id::{BatchId, IssueId};
use premath_kernel::record::trajectory::{FailureStreaks, StepRow};
use premath_memory::{IssueMemory, StoreError, clock};
use std::collections::BTreeSet;

/// Returns the issues that a batch sets aside, by the rows of the trajectory; that of
/// a new batch where none is resumed.
///
/// # Errors
///
/// [`StoreError`] where issue memory cannot be read.
pub fn set_aside<'a>(
    rows: impl IntoIterator<Item = &'a StepRow>,
    memory: &IssueMemory,
    (after, resumed): (u32, Option<&BatchId>),
) -> Result<BTreeSet<IssueId>, StoreError> {
    let mut streaks = FailureStreaks::default();
    rows.into_iter().for_each(|row| streaks.observe(row));
    set_aside_of(streaks, memory, (after, resumed))
}

/// Returns the issues that a batch would set aside, by what was observed of them.
///
/// # Errors
///
/// The issue memory cannot be read.
pub fn set_aside_of(
    mut streaks: FailureStreaks,
    memory: &IssueMemory,
    (after, resumed): (u32, Option<&BatchId>),
) -> Result<BTreeSet<IssueId>, StoreError> {
    let aside = streaks.set_aside(after, resumed).cloned().collect();
    for (id, at) in changed(aside, memory)? {
        streaks.pardon(&id, at);
    }
    Ok(streaks.set_aside(after, resumed).cloned().collect())
}

/// Returns when an operator last changed each of these issues, where one did.
fn changed(
    aside: Vec<IssueId>,
    memory: &IssueMemory,
) -> Result<Vec<(IssueId, jiff::Timestamp)>, StoreError> {
    if aside.is_empty() {
        return Ok(Vec::new());
    }
    let now = clock::now().wall;
    memory.view(|view| {
        let changed_at = |id: IssueId| {
            let at = view.row(id.as_str())?.operator_changed_at()?;
            // A later one was not written by a transaction.
            (at <= now).then_some((id, at))
        };
        aside.into_iter().filter_map(changed_at).collect()
    })
}

impl Batch {
    /// Returns the issues that are set aside.
    pub fn set_aside(&self) -> BTreeSet<IssueId> {
        self.set_aside_by(&self.knowledge())
    }

    pub(super) fn set_aside_by(&self, knowledge: &Knowledge) -> BTreeSet<IssueId> {
        let after = self.settings.set_aside_after;
        let aside = knowledge.streaks.set_aside(after, Some(&self.id));
        aside.cloned().collect()
    }

    /// Returns the issues that the next batch sets aside: what failed in this one
    /// counts there.
    pub fn set_aside_next(&self) -> BTreeSet<IssueId> {
        let knowledge = self.knowledge();
        let after = self.settings.set_aside_after;
        let aside = knowledge.streaks.set_aside(after, None);
        aside.cloned().collect()
    }

    /// Takes issues up again that an operator changed after their last failure.
    pub(super) fn pardon(&self) -> Result<(), StoreError> {
        let aside = self.set_aside().into_iter().collect();
        for (id, at) in changed(aside, &self.memory)? {
            self.knowledge().streaks.pardon(&id, at);
        }
        Ok(())
    }
}
