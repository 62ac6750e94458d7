//! What the main loop reports to the service manager that started the batch. It is
//! sent from that loop alone: a loop that is stuck is silent.

use harness_worker::batch::Batch;
use premath_kernel::record::live::LiveBatch;
use premath_platform::manager::ServiceManager;
use premath_view::service::progress;
use std::time::{Duration, Instant};

/// The least time between two lines of progress.
const SPACING: Duration = Duration::from_secs(1);

/// The service manager; none where a person started the batch.
#[derive(Debug, Default)]
pub(super) struct Manager {
    manager: Option<ServiceManager>,
    /// When the main loop last reported to the watchdog.
    alive_at: Option<Instant>,
    /// The progress that was sent last, and when.
    sent: Option<(Instant, String)>,
    is_stopping: bool,
}

impl Manager {
    /// Finds the manager by the environment.
    pub(super) fn find() -> Self {
        let found = ServiceManager::find(|name| std::env::var_os(name), std::process::id());
        let manager = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "the service manager is not notified");
            None
        });
        Self {
            manager,
            ..Self::default()
        }
    }

    /// Reports that the batch has begun.
    pub(super) fn ready(&mut self) {
        self.send("READY=1");
    }

    /// Reports that nothing new begins any more.
    pub(super) fn stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.send("STOPPING=1");
        }
    }

    /// Reports that the loop runs, as often as the watchdog needs it, and the
    /// progress where it changed.
    pub(super) fn alive(&mut self, batch: &Batch) {
        let Some(manager) = &self.manager else {
            return;
        };
        if manager.watchdog().is_some() && self.until_alive().is_zero() {
            self.alive_at = Some(Instant::now());
            self.send("WATCHDOG=1");
        }
        let is_due = |(at, _): &(Instant, String)| at.elapsed() >= SPACING;
        if self.sent.as_ref().is_none_or(is_due)
            && let Some(text) = batch.with_published(|live: &LiveBatch| progress(live))
        {
            let is_new = self.sent.as_ref().is_none_or(|(_, sent)| *sent != text);
            if is_new {
                self.send(&format!("STATUS={text}"));
            }
            self.sent = Some((Instant::now(), text));
        }
    }

    /// Returns how long the loop may wait before it is to report again.
    pub(super) fn patience(&self) -> Duration {
        match &self.manager {
            Some(manager) if manager.watchdog().is_some() => self.until_alive(),
            _ => Duration::MAX,
        }
    }

    fn until_alive(&self) -> Duration {
        let watchdog = self.manager.as_ref().and_then(ServiceManager::watchdog);
        // Half of it, as sd_watchdog_enabled(3) advises.
        let period = watchdog.map_or(Duration::MAX, |period| period / 2);
        let silent = self.alive_at.map(|at| at.elapsed());
        silent.map_or(Duration::ZERO, |silent| period.saturating_sub(silent))
    }

    fn send(&self, line: &str) {
        if let Some(manager) = &self.manager
            && let Err(error) = manager.send(&format!("{line}\n"))
        {
            tracing::debug!(%error, "the service manager took no message");
        }
    }
}
