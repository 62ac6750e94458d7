//! What a batch waits for beside its own work: the hours in which attempts begin,
//! and new issues.

use super::{InboxMessage, Shell};
use crate::machine::MachineEvent;
use crate::report::Notice;
use harness_worker::interrupt::Level;
use harness_worker::stderr::local_zone;
use premath_kernel::policy::window::{DayWindow, WindowState};
use premath_kernel::record::live::PauseKind;
use premath_memory::{Claimed, clock};
use premath_platform::watch::FolderWatch;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

/// How often the thread that watches the store looks whether the batch is over.
const LOOK_OVER: Duration = Duration::from_secs(1);
/// How long later changes of the store wait for the next report.
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// The hours in which attempts begin, and whether they were open when that was
/// looked at last.
#[derive(Debug)]
pub(super) struct Window {
    hours: Option<DayWindow>,
    was_open: bool,
}

impl Window {
    pub(super) const fn of(hours: Option<DayWindow>) -> Self {
        Self {
            hours,
            was_open: true,
        }
    }
}

/// Ends the thread that watches the store, dropped.
pub(super) struct StoreWatch {
    _runs: Arc<()>,
}

impl Shell<'_> {
    /// Returns that the window opened or closed since the last look.
    pub(super) fn window_changed(&mut self) -> Option<MachineEvent<Claimed>> {
        let hours = self.window.hours?;
        if self.batch.interrupt.level() != Level::None {
            return None;
        }
        let state = hours.state(&clock::now().wall.to_zoned(local_zone()));
        let (is_open, until) = match state {
            WindowState::Open { until } => (true, until),
            WindowState::Closed { opens } => (false, opens),
        };
        if is_open == self.window.was_open {
            return None;
        }
        self.window.was_open = is_open;
        let named = hours.to_string();
        let paused = (!is_open).then_some((named.as_str(), Some(until)));
        self.batch.note_pause(PauseKind::Window, paused);
        self.reporter.notice(&Notice::Window { is_open, until });
        Some(MachineEvent::Window { is_open })
    }

    /// Says once that the batch waits for new issues; the loop looks again and
    /// again.
    pub(super) fn await_issues(&mut self) {
        if !self.idle_said {
            self.idle_said = true;
            self.reporter.notice(&Notice::Idle);
        }
    }

    /// Has the batch look at a store that changed, where a lane waits for work.
    pub(super) fn store_changed(&self) -> Option<MachineEvent<Claimed>> {
        (!self.machine.idle().is_empty()).then_some(MachineEvent::Woke)
    }

    /// Watches the file of the issue store. Where that is not possible, the loop
    /// looks at it every few seconds.
    pub(super) fn watch_store(&self) -> Option<StoreWatch> {
        let path = self.batch.memory.path().to_path_buf();
        let watch = path.parent().map(FolderWatch::begin)?;
        let watch = match watch {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "the issue store is not watched, only looked at");
                return None;
            }
        };
        let (runs, send) = (Arc::new(()), self.send.clone());
        let is_over = Arc::downgrade(&runs);
        let thread = std::thread::Builder::new().name("store".to_owned());
        let started = thread.spawn(move || {
            let name = path.file_name().unwrap_or(OsStr::new(""));
            while is_over.strong_count() > 0 {
                match watch.changed(name, LOOK_OVER) {
                    Ok(false) => {}
                    // A step may change the file all the time.
                    Ok(true) => {
                        drop(send.send(InboxMessage::StoreChanged));
                        std::thread::sleep(STORE_PAUSE);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the issue store is not watched any more");
                        return;
                    }
                }
            }
        });
        started.ok().map(|_| StoreWatch { _runs: runs })
    }
}
