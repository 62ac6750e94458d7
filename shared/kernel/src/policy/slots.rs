//! How many verifications run at once, and how many spare worktrees let lanes
//! begin their next issue while the work of the last one is in the landing
//! queue (`[verify] slots`).
//!
//! An attempt keeps its worktree until its work has landed or failed. Its lane
//! is free once its work is done: it continues in a spare worktree.

use std::time::Duration;

/// How long work waits in the queue before a spare worktree is made, where the
/// settings do not ask for slots. Short verifications gain nothing from one.
const PATIENCE: Duration = Duration::from_secs(30);

/// The slots of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRule {
    /// How many verifications of the landing queue may run at once.
    pub at_once: usize,
    /// How many spare worktrees there may be.
    pub spare: usize,
    /// How long work is in the queue before a spare worktree is made.
    pub patience: Duration,
}

impl SlotRule {
    /// Returns the rule of a batch with so many lanes, by the setting. With 0,
    /// attempts are verified in their lanes.
    pub const fn of(slots: Option<usize>, lanes: usize) -> Self {
        match slots {
            None => Self {
                at_once: lanes,
                spare: lanes,
                patience: PATIENCE,
            },
            Some(0) => Self {
                at_once: lanes,
                spare: 0,
                patience: Duration::ZERO,
            },
            Some(slots) => Self {
                at_once: slots,
                spare: slots,
                patience: Duration::ZERO,
            },
        }
    }

    /// Returns the rule without spare worktrees.
    #[must_use]
    pub const fn in_lanes(self) -> Self {
        Self { spare: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_many_as_lanes_and_made_late_where_nothing_is_set() {
        let rule = SlotRule::of(None, 8);
        assert_eq!((rule.at_once, rule.spare), (8, 8));
        assert_eq!(rule.patience, PATIENCE);
        assert_eq!(rule.in_lanes().spare, 0);
    }

    #[test]
    fn slots_that_are_set_are_made_at_once_and_none_means_none() {
        let rule = SlotRule::of(Some(2), 8);
        assert_eq!((rule.at_once, rule.spare), (2, 2));
        assert_eq!(rule.patience, Duration::ZERO);
        let rule = SlotRule::of(Some(0), 8);
        assert_eq!((rule.at_once, rule.spare), (8, 0));
    }
}
