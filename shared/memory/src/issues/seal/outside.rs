//! What a transaction found to have changed without one, as it is counted.

use super::foreign::{ForeignKind, ForeignRow};
use serde::{Deserialize, Serialize};

/// How many issues a finding names.
const NAMED: usize = 8;
/// A longer name is cut: a row's id has no length limit.
const NAME_MAX: usize = 80;

/// What issue memory was changed by without a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutsideChange {
    /// Which finding of this memory it is, from 1.
    pub number: u64,
    /// When the transaction found it.
    pub found_at: String,
    /// How many issues are there that were not, as far as it could be
    /// determined.
    pub added: usize,
    /// How many have another row.
    pub altered: usize,
    /// How many issues are gone.
    pub removed: usize,
    /// Their ids, the first few.
    pub issues: Vec<String>,
}

impl OutsideChange {
    /// Counts and names rows.
    pub(super) fn count(&mut self, rows: &[ForeignRow]) {
        for row in rows {
            *match row.kind {
                ForeignKind::Added => &mut self.added,
                ForeignKind::Altered => &mut self.altered,
                ForeignKind::Removed => &mut self.removed,
                ForeignKind::Unknown => continue,
            } += 1;
            if self.issues.len() < NAMED {
                self.issues
                    .push(row.issue_id.chars().take(NAME_MAX).collect());
            }
        }
    }

    /// Says in a line what was found.
    pub fn describe(&self) -> String {
        if self.issues.is_empty() {
            return "issue store changed outside a transaction; the rows cannot be determined"
                .to_owned();
        }
        let named = self.added + self.altered + self.removed;
        let more = named.saturating_sub(self.issues.len());
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "issue store changed outside a transaction: {} added, {} changed, {} removed ({}{more})",
            self.added,
            self.altered,
            self.removed,
            self.issues.join(", ")
        )
    }
}
