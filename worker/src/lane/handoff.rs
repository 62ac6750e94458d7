//! What the session before left for a lane, in a line (HARNESS-RUNTIME 3.1).

use premath_kernel::record::bootstrap::{Bootstrap, BootstrapMode};
use std::fmt;

/// What the session of a lane says that is booted and had no step.
pub(super) const BOOTED: &str = "booted";

/// The summary of the last session in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionBefore {
    /// It ended.
    Ended(String),
    /// It did not end: its process was killed.
    Cut(String),
}

impl SessionBefore {
    /// Reads it from what a boot found; `None` where that had no step.
    pub(super) fn of(handoff: &Bootstrap) -> Option<Self> {
        let summary = handoff.summary.clone()?;
        if summary == BOOTED {
            return None;
        }
        Some(match handoff.mode {
            BootstrapMode::Resume => Self::Ended(summary),
            BootstrapMode::Attach => Self::Cut(summary),
        })
    }
}

impl fmt::Display for SessionBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(summary) => f.write_str(summary),
            Self::Cut(summary) => write!(f, "cut while {summary}"),
        }
    }
}
