//! Ends this process at a named boundary, for the tests of recovery.

use premath_kernel::record::boundary::{Boundary, KillAt, UnknownBoundary};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the boundary, as `<boundary>` or `<boundary>:<occurrence>`.
const KILL_AT: &str = "PREMATH_KILL_AT";

/// Where this process ends itself; nowhere by default.
#[derive(Debug, Default)]
pub(crate) struct KillSwitch {
    at: Option<KillAt>,
    reached: AtomicU32,
}

impl KillSwitch {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`UnknownBoundary`].
    pub(crate) fn from_environment() -> Result<Self, UnknownBoundary> {
        let named = std::env::var(KILL_AT).ok().filter(|name| !name.is_empty());
        Ok(Self {
            at: named.map(|name| name.parse()).transpose()?,
            reached: AtomicU32::new(0),
        })
    }

    /// Marks a boundary. Ends the process with SIGKILL where it is the named
    /// one: no destructor runs and no buffer is written, as in a power cut.
    pub(crate) fn reached(&self, boundary: Boundary) {
        let Some(at) = self.at.filter(|at| at.boundary == boundary) else {
            return;
        };
        if self.reached.fetch_add(1, Ordering::Relaxed) + 1 == at.occurrence {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
