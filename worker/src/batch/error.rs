//! Why a batch cannot begin or continue.

use premath_kernel::record::boundary::UnknownBoundary;
use premath_memory::{StoreError, TrajectoryFileError};
use premath_worktree::landing::LandingError;

/// A batch cannot begin, or issue memory or trajectory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The active issues wait for each other in a cycle.
    #[error("the active issues wait for each other in a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A boundary that does not exist.
    #[error("invalid PREMATH_KILL_AT, PREMATH_STOP_AT or PREMATH_PANIC_AT")]
    KillAt(#[from] UnknownBoundary),
    /// The branch that work lands on.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// Issue memory.
    #[error(transparent)]
    Memory(#[from] StoreError),
    /// The trajectory.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryFileError),
}

impl BatchError {
    /// Returns the exit code of a loop that could not begin.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Cycle(_) => crate::exit::REFUSED,
            Self::KillAt(_) | Self::Landing(_) | Self::Memory(_) | Self::Trajectory(_) => {
                crate::exit::USAGE
            }
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Cycle(_) => {
                Some("remove an edge with `premath dep remove`; nothing was dispatched".to_owned())
            }
            Self::Landing(error) => error.hint(),
            Self::Memory(error) => error.hint(),
            Self::KillAt(_) | Self::Trajectory(_) => None,
        }
    }
}
