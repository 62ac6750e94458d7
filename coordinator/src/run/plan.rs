//! What a batch is run with, and why one could not begin.

use crate::machine::Allowance;
use crate::report::DisabledLane;
use crate::spare::SpareSite;
use harness_worker::batch::BatchError;
use harness_worker::exit;
use harness_worker::settings::Settings;
use premath_kernel::policy::window::DayWindow;
use std::path::PathBuf;

/// The plan of a coordinator's run.
#[derive(Debug)]
pub struct Plan {
    /// What the batch is run with.
    pub settings: Settings,
    /// The lanes' worktrees, sorted, then the spare ones that are there.
    pub worktrees: Vec<PathBuf>,
    /// How many lanes there are: how many issues are worked on at once.
    pub lanes: usize,
    /// Where spare worktrees are made; none where they are a person's.
    pub spare: Option<SpareSite>,
    /// The prefix of worker ids.
    pub worker_prefix: String,
    /// How many dispatches lanes get.
    pub allowance: Allowance,
    /// Begin afresh although a batch was cut.
    pub new_batch: bool,
    /// The hours in which attempts begin.
    pub window: Option<DayWindow>,
    /// Requested lanes that could not be created.
    pub left_out: Vec<DisabledLane>,
    /// Since when it counts how long it continues, on CLOCK_BOOTTIME.
    pub started_ms: u64,
}

/// A batch that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Memory or trajectory cannot be used, or the graph has a cycle.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A thread cannot be started.
    #[error("cannot start a lane's thread")]
    Thread(#[source] std::io::Error),
}

impl RunError {
    /// Returns the exit code.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Batch(error) => error.exit_code(),
            Self::Thread(_) => exit::USAGE,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Batch(error) => error.hint(),
            Self::Thread(_) => None,
        }
    }
}
