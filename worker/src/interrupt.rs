//! The batch's flag for an end (none, drain or kill), raised by signals or by
//! the batch itself. It also wakes the threads that wait for a change: of the
//! flag, of the landing queue, or of a lock.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// How long a thread waits for a change before it looks at the clocks again:
/// that of the lease and that of the drain grace. Both count suspended time,
/// which a wait does not.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// The number of SIGTERM.
const TERMINATE: u64 = 15;

/// How far an interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Continue.
    None,
    /// No new work; running steps finish within the drain grace.
    Drain,
    /// End running steps now.
    Kill,
}

/// The flag, and the wake-up of the threads that wait.
#[derive(Clone, Debug)]
pub struct Interrupt {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    epoch: Instant,
    drain_grace: Duration,
    /// 0, or one more than the milliseconds from `epoch` to the first signal.
    drained_at: AtomicU64,
    signals: AtomicU64,
    /// How far the batch itself goes, as a [`Level`].
    own: AtomicU8,
    last_signal: AtomicU64,
    /// How many changes of the batch there were for which something may wait: of
    /// the flags above, of the landing queue, of locks.
    changes: Mutex<u64>,
    changed: Condvar,
    /// The same for what waits in a runtime.
    woken: Notify,
}

impl Interrupt {
    /// Makes a flag that is down.
    pub fn new(drain_grace: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                epoch: Instant::now(),
                drain_grace,
                drained_at: AtomicU64::new(0),
                signals: AtomicU64::new(0),
                own: AtomicU8::new(0),
                last_signal: AtomicU64::new(0),
                changes: Mutex::new(0),
                changed: Condvar::new(),
                woken: Notify::new(),
            }),
        }
    }

    /// Records a signal: the first drains, a further one kills.
    pub fn signal(&self, number: u64) -> Level {
        self.begin();
        self.inner.last_signal.store(number, Ordering::SeqCst);
        let before = self.inner.signals.fetch_add(1, Ordering::SeqCst);
        self.wake();
        if before == 0 {
            Level::Drain
        } else {
            Level::Kill
        }
    }

    /// Drains for a reason of the batch's own, as the first signal does.
    pub fn drain(&self) {
        self.begin();
        self.inner.own.fetch_max(1, Ordering::SeqCst);
        self.wake();
    }

    /// Ends running steps for a reason of the batch's own, as a further signal
    /// does.
    pub fn kill(&self) {
        self.begin();
        self.inner.own.fetch_max(2, Ordering::SeqCst);
        self.wake();
    }

    /// Goes so far because an operator asks for it. The batch ends as by SIGTERM;
    /// to ask again changes nothing.
    pub fn ask(&self, level: Level) {
        self.begin();
        let last = &self.inner.last_signal;
        let _ = last.compare_exchange(0, TERMINATE, Ordering::SeqCst, Ordering::SeqCst);
        self.inner.own.fetch_max(level as u8, Ordering::SeqCst);
        self.wake();
    }

    /// Waits until something asks for an end, or until a time is over.
    pub fn wait(&self, most: Duration) {
        let began = Instant::now();
        loop {
            let seen = self.changes();
            let left = most.saturating_sub(began.elapsed());
            if self.level() != Level::None || left.is_zero() {
                return;
            }
            self.wait_since(seen, left);
        }
    }

    /// Returns how many changes there were, for [`wait_since`](Self::wait_since).
    pub(crate) fn changes(&self) -> u64 {
        *self.counted()
    }

    /// Waits until there is a change after the ones that were counted, or until a
    /// time is over.
    pub(crate) fn wait_since(&self, seen: u64, most: Duration) {
        let is_as_seen = |changes: &mut u64| *changes == seen;
        let changed = &self.inner.changed;
        drop(changed.wait_timeout_while(self.counted(), most, is_as_seen));
    }

    /// Waits in a runtime for a change after this call.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.inner.woken.notified()
    }

    /// Has those who wait look again.
    pub fn wake(&self) {
        *self.counted() += 1;
        self.inner.changed.notify_all();
        self.inner.woken.notify_waiters();
    }

    fn counted(&self) -> MutexGuard<'_, u64> {
        let changes = &self.inner.changes;
        changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        let elapsed = self.elapsed_ms() + 1;
        let _ =
            self.inner
                .drained_at
                .compare_exchange(0, elapsed, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Returns how far the interrupt goes now; a drain whose grace is over kills.
    pub fn level(&self) -> Level {
        let own = self.inner.own.load(Ordering::SeqCst);
        match self.inner.signals.load(Ordering::SeqCst).max(own.into()) {
            0 => Level::None,
            1 => {
                let drained_at = self
                    .inner
                    .drained_at
                    .load(Ordering::SeqCst)
                    .saturating_sub(1);
                let running = Duration::from_millis(self.elapsed_ms().saturating_sub(drained_at));
                if running >= self.inner.drain_grace {
                    Level::Kill
                } else {
                    Level::Drain
                }
            }
            _ => Level::Kill,
        }
    }

    /// Returns the number of the last signal; `None` where there was none.
    pub fn last_signal(&self) -> Option<u64> {
        match self.inner.last_signal.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number),
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.inner.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_drains_and_the_second_kills() {
        let interrupt = Interrupt::new(Duration::from_secs(600));
        assert_eq!(interrupt.level(), Level::None);
        assert_eq!(interrupt.signal(2), Level::Drain);
        assert_eq!(interrupt.level(), Level::Drain);
        assert_eq!(interrupt.signal(15), Level::Kill);
        assert_eq!(interrupt.level(), Level::Kill);
        assert_eq!(interrupt.last_signal(), Some(15));
    }

    #[test]
    fn a_wait_ends_with_the_next_change_and_misses_none() {
        let interrupt = Interrupt::new(Duration::from_secs(600));
        let seen = interrupt.changes();
        interrupt.wake();
        // The change came before the wait, and counts.
        ended_wait(&interrupt, seen);
        let seen = interrupt.changes();
        let other = interrupt.clone();
        let waker = std::thread::spawn(move || other.drain());
        ended_wait(&interrupt, seen);
        waker.join().unwrap();
        assert_eq!(interrupt.level(), Level::Drain);
    }

    /// Fails where a wait for a change after the counted ones does not end.
    #[track_caller]
    fn ended_wait(interrupt: &Interrupt, seen: u64) {
        let (send, ended) = std::sync::mpsc::sync_channel(1);
        let waits = interrupt.clone();
        std::thread::spawn(move || {
            waits.wait_since(seen, Duration::MAX);
            send.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn what_the_batch_asks_for_is_not_a_signal() {
        let interrupt = Interrupt::new(Duration::from_secs(600));
        interrupt.drain();
        assert_eq!(interrupt.level(), Level::Drain);
        // The first signal asks for what is done already, the second for more.
        assert_eq!(interrupt.signal(2), Level::Drain);
        assert_eq!(interrupt.level(), Level::Drain);
        let other = Interrupt::new(Duration::from_secs(600));
        other.kill();
        other.drain();
        assert_eq!(other.level(), Level::Kill);
        assert_eq!(other.last_signal(), None);
    }

    #[test]
    fn what_an_operator_asks_for_ends_the_batch_as_a_signal_does() {
        let interrupt = Interrupt::new(Duration::from_secs(600));
        for _ in 0..2 {
            interrupt.ask(Level::Drain);
            assert_eq!(interrupt.level(), Level::Drain);
        }
        assert_eq!(interrupt.last_signal(), Some(TERMINATE));
        interrupt.ask(Level::Kill);
        assert_eq!(interrupt.level(), Level::Kill);
    }

    #[test]
    fn a_wait_ends_when_an_end_is_asked_for() {
        let interrupt = Interrupt::new(Duration::from_secs(600));
        interrupt.wait(Duration::from_millis(1));
        assert_eq!(interrupt.level(), Level::None);
        let other = interrupt.clone();
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(3_600)));
        interrupt.drain();
        waiter.join().unwrap();
    }

    #[test]
    fn a_drain_whose_grace_is_over_kills() {
        let interrupt = Interrupt::new(Duration::ZERO);
        interrupt.signal(2);
        assert_eq!(interrupt.level(), Level::Kill);
    }
}
