//! Changes of the issue store made outside a transaction: reported and recorded.

use super::Batch;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::{ForeignRow, OutsideChange, clock};

/// Returns the warning about foreign rows, with the command that accepts them;
/// `None` where there are none.
pub fn foreign_warning(rows: &[ForeignRow]) -> Option<String> {
    let first = rows.first()?;
    let which = match (rows.len(), &*first.issue_id) {
        (1, id) if !id.is_empty() => id,
        _ => "--all",
    };
    Some(format!(
        "{}: {}; where git set the file back (`git stash`, `git checkout`), restore it; else \
         accept the changes with `premath issue accept-changes {which} --override-reason TEXT`",
        FailureClass::MemoryChangedOutside,
        ForeignRow::summary_of(rows)
    ))
}

impl Batch {
    /// Returns what transactions found since the last call to have been changed
    /// by none, each with a row of its own in the trajectory.
    pub fn outside_changes(&self) -> Vec<OutsideChange> {
        let found = self.memory.take_outside_changes();
        for change in &found {
            let now = clock::now().wall;
            let id = format!("{}.{}.{}", action::MEMORY_CHANGED, self.id, change.number);
            let mut row = StepRow::new(id, action::MEMORY_CHANGED, "failed", now);
            row.batch_id = Some(self.id.clone());
            row.failure_classes = vec![FailureClass::MemoryChangedOutside.as_str().to_owned()];
            row.next_step = Some(change.describe());
            row.started_at = Some(now.into());
            if let Err(error) = self.record(&row) {
                tracing::error!(%error, "a change of the issue store was not recorded");
            }
        }
        found
    }

    /// Returns the rows of the issue store that changed outside a transaction and
    /// that the operator has not accepted, as of the last transaction.
    pub fn foreign_rows(&self) -> Vec<ForeignRow> {
        self.memory.foreign_rows()
    }

    /// Looks once more whether the issue store was changed by no transaction, for
    /// the last step may have done it.
    pub fn last_outside_changes(&self) -> Vec<OutsideChange> {
        if let Err(error) = self.memory.check_seal() {
            tracing::error!(%error, "the issue store was not looked at for changes from outside");
        }
        self.outside_changes()
    }
}
