//! Ends or stops this process at a named boundary, or has its thread panic there, for the
//! tests of recovery.

use premath_kernel::record::boundary::{Boundary, KillAt, UnknownBoundary};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Names the boundary, as `<boundary>` or `<boundary>:<occurrence>`.
const KILL_AT: &str = "PREMATH_KILL_AT";

/// Names the boundary at which this process is stopped by SIGSTOP, likewise.
const STOP_AT: &str = "PREMATH_STOP_AT";

/// Names the boundary at which each thread that reaches it panics, from an occurrence on.
const PANIC_AT: &str = "PREMATH_PANIC_AT";

/// How long a stop takes at most to reach every thread.
const STOPPED_WITHIN: Duration = Duration::from_millis(200);

/// Where this process ends or stops itself, or panics; nowhere by default.
#[derive(Debug, Default)]
pub(crate) struct KillSwitch {
    kill: Trigger,
    stop: Trigger,
    panic: Trigger,
}

/// A boundary, and how often it was reached.
#[derive(Debug, Default)]
struct Trigger {
    at: Option<KillAt>,
    reached: AtomicU32,
}

impl Trigger {
    fn named_by(variable: &str) -> Result<Self, UnknownBoundary> {
        let named = std::env::var(variable).ok().filter(|name| !name.is_empty());
        Ok(Self {
            at: named.map(|name| name.parse()).transpose()?,
            reached: AtomicU32::new(0),
        })
    }

    /// Returns whether a boundary is the named one, in its occurrence.
    fn is_at(&self, boundary: Boundary) -> bool {
        let Some(at) = self.at.filter(|at| at.boundary == boundary) else {
            return false;
        };
        self.reached.fetch_add(1, Ordering::Relaxed) + 1 == at.occurrence
    }

    /// Returns whether a boundary is the named one, in its occurrence or a later one.
    fn is_past(&self, boundary: Boundary) -> bool {
        let at = self.at.filter(|at| at.boundary == boundary);
        at.is_some_and(|at| self.reached.fetch_add(1, Ordering::Relaxed) + 1 >= at.occurrence)
    }
}

impl KillSwitch {
    /// Reads the environment.
    ///
    /// # Errors
    ///
    /// [`UnknownBoundary`].
    pub(crate) fn from_environment() -> Result<Self, UnknownBoundary> {
        Ok(Self {
            kill: Trigger::named_by(KILL_AT)?,
            stop: Trigger::named_by(STOP_AT)?,
            panic: Trigger::named_by(PANIC_AT)?,
        })
    }

    /// Marks a boundary. Ends the process with SIGKILL where it is the named
    /// one: no destructor runs and no buffer is written, as in a power cut.
    ///
    /// # Panics
    ///
    /// Where the boundary is named for it.
    pub(crate) fn reached(&self, boundary: Boundary) {
        if self.kill.is_at(boundary) {
            let _ = kill_process(getpid(), Signal::KILL);
        }
        if self.stop.is_at(boundary) {
            let _ = kill_process(getpid(), Signal::STOP);
            // Another thread may take the signal: this one goes no further
            // before the stop has reached it too.
            std::thread::sleep(STOPPED_WITHIN);
        }
        let panics = self.panic.is_past(boundary);
        assert!(!panics, "{PANIC_AT} names this boundary");
    }
}
