//! What a batch publishes about itself while it runs: its threads note what they do,
//! and one thread writes the document, at most once a second.

use super::Batch;
use crate::interrupt::Level;
use jiff::Timestamp;
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::live::{
    BatchPhase, LiveBatch, LiveLane, LiveOutcome, LiveQueue, LiveStep, LiveTotals, PauseEnd,
    PauseKind, QueueScope, StepPhase, short,
};
use premath_memory::StoreError;
use premath_memory::clock;
use premath_memory::live::{LiveFolder, store_stamp};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The least time between two documents.
const SPACING: Duration = Duration::from_secs(1);

/// How long a document stays as it is where nothing happens.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The time between two counts of the issues: at least `COUNT_LEAST`, and
/// `COUNT_SHARE` times as long as the last one took.
const COUNT_LEAST: Duration = Duration::from_secs(1);
const COUNT_SHARE: u32 = 50;

/// How many issues that are not taken a document names.
const LEFT_OUT_MAX: usize = 1_000;

/// What the threads of a batch note of what they do.
#[derive(Debug)]
pub(crate) struct Live {
    state: Mutex<LiveState>,
    changed: Condvar,
    folder: LiveFolder,
    /// Held from the look at the batch to the end of the write.
    counter: Mutex<QueueCounter>,
}

#[derive(Debug)]
struct LiveState {
    document: LiveBatch,
    is_changed: bool,
    /// Whether the thread that writes may do so at the next change.
    is_awaited: bool,
    is_over: bool,
    /// The document as it was written last.
    written: Option<Box<LiveBatch>>,
}

/// Counts the issues of the store, as often as that is cheap.
#[derive(Debug, Default)]
struct QueueCounter {
    counted: Option<(Instant, Duration, LiveQueue)>,
}

impl Live {
    /// Begins with the document of a batch.
    pub(super) fn new(document: LiveBatch, folder: LiveFolder) -> Self {
        Self {
            state: Mutex::new(LiveState {
                document,
                is_changed: true,
                is_awaited: false,
                is_over: false,
                written: None,
            }),
            changed: Condvar::new(),
            folder,
            counter: Mutex::new(QueueCounter::default()),
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the document.
    fn update(&self, change: impl FnOnce(&mut LiveBatch)) {
        let mut state = self.state();
        change(&mut state.document);
        state.is_changed = true;
        let is_awaited = state.is_awaited;
        drop(state);
        // Lanes change often: the thread sleeps through the least time.
        if is_awaited {
            self.changed.notify_all();
        }
    }

    /// Waits until the document is to be written again; returns whether it is.
    fn await_change(&self, written: Instant) -> bool {
        let wait = |state, time: Duration, is_early: fn(&mut LiveState) -> bool| {
            let waited = self.changed.wait_timeout_while(state, time, is_early);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let state = self.state();
        let least = SPACING.saturating_sub(written.elapsed());
        let mut state = wait(state, least, |state| !state.is_over);
        state.is_awaited = true;
        let most = HEARTBEAT.saturating_sub(written.elapsed());
        let mut state = wait(state, most, |state| !state.is_over && !state.is_changed);
        state.is_awaited = false;
        !state.is_over
    }
}

impl Batch {
    /// Begins to publish what the batch does, until it is over. What cannot be
    /// published is missing from `premath status` and from nothing else.
    pub fn publish(self: &Arc<Self>) {
        let stays = |live: &LiveBatch| {
            live.batch_id != self.id
                && live.phase != BatchPhase::Ended
                && super::holder::is_alive(&live.holder)
        };
        if let Err(error) = self.live.folder.prepare(stays) {
            tracing::warn!(%error, "what the batch does is not published");
            return;
        }
        let (live, batch) = (self.live.clone(), Arc::downgrade(self));
        let thread = std::thread::Builder::new().name("live".to_owned());
        if let Err(error) = thread.spawn(move || write_until_over(&live, &batch)) {
            tracing::warn!(%error, "what the batch does is not published");
        }
    }

    /// Publishes the end of the batch.
    pub fn publish_end(&self, exit_code: u8) {
        {
            let mut state = self.live.state();
            state.is_over = true;
            let document = &mut state.document;
            document.phase = BatchPhase::Ended;
            document.exit_code = Some(exit_code);
            document.ended_at = Some(Stamp::at(clock::now().wall));
            document.lanes.iter_mut().for_each(|lane| lane.step = None);
        }
        self.live.changed.notify_all();
        self.write_live();
    }

    /// Notes what a lane does.
    pub fn note_lane(&self, worker_id: &WorkerName, change: impl FnOnce(&mut LiveLane)) {
        self.live.update(|live| change(live.lane(worker_id)));
    }

    /// Notes what the attempt of a lane does; of a lane without one, nothing.
    pub(crate) fn note_step(&self, worker_id: &WorkerName, change: impl FnOnce(&mut LiveStep)) {
        self.note_lane(worker_id, |lane| {
            if let Some(step) = &mut lane.step {
                change(step);
            }
        });
    }

    /// Notes that the attempt of a lane entered a phase.
    pub(crate) fn note_phase(&self, worker_id: &WorkerName, phase: StepPhase) {
        let now_ms = clock::now().boot_ms;
        self.note_step(worker_id, |step| step.enter(phase, now_ms));
    }

    /// Notes the end of an attempt.
    pub(crate) fn note_ended(&self, outcome: LiveOutcome) {
        self.live.update(|live| live.ended(outcome));
    }

    /// Notes that lanes wait for something, or that they do not any more.
    pub fn note_pause(&self, kind: PauseKind, paused: Option<(&str, Option<Timestamp>)>) {
        self.live.update(|live| {
            live.resume(kind);
            if let Some((name, until)) = paused {
                live.pause(kind, name, Some(PauseEnd(until.map(Stamp::at))));
            }
        });
    }

    /// Writes the document as the batch is now.
    fn write_live(&self) {
        let mut counter = self.live.counter.lock();
        let counter = match &mut counter {
            Ok(counter) => counter,
            Err(poisoned) => poisoned.get_mut(),
        };
        let (totals, parked) = {
            let knowledge = self.knowledge();
            let parked = knowledge.account.parked();
            let parked: Vec<_> = parked.map(|(name, at)| (short(name), at)).collect();
            let given_up = knowledge.given_up(&self.id);
            (LiveTotals::of(&knowledge.account, given_up), parked)
        };
        let is_over = self.live.state().is_over;
        let queue = counter.queue(self, is_over);
        let mut document = {
            let mut state = self.live.state();
            state.is_changed = false;
            state.document.clone()
        };
        document.totals = totals;
        document.queue = queue;
        let left_out = match is_over {
            true => self.set_aside_next(),
            false => self.not_taken(),
        };
        document.left_out = left_out.into_iter().take(LEFT_OUT_MAX).collect();
        let now = clock::now();
        document.written_at = Stamp::at(now.wall);
        document.written_ms = now.boot_ms;
        for (name, until) in parked {
            let until = Some(PauseEnd(Some(Stamp::at(until))));
            document.pause(PauseKind::Provider, &name, until);
        }
        if document.phase != BatchPhase::Ended {
            document.phase = match self.interrupt.level() {
                Level::None => BatchPhase::Running,
                Level::Drain => BatchPhase::Draining,
                Level::Kill => BatchPhase::Cancelling,
            };
        }
        document.sort_lanes();
        if let Err(error) = self.live.folder.write(&document) {
            tracing::debug!(%error, "what the batch does was not published");
        }
        self.live.state().written = Some(Box::new(document));
    }

    /// Returns when the batch began, before a resumption too.
    pub fn started_at(&self) -> Stamp {
        self.live.state().document.started_at.clone()
    }

    /// Returns for how long the batch lasts, from its first start on.
    pub fn elapsed(&self) -> Duration {
        let started_ms = self.live.state().document.started_ms;
        Duration::from_millis(clock::now().boot_ms.saturating_sub(started_ms))
    }

    /// Looks at what was published last; `None` before that.
    pub fn with_published<T>(&self, look: impl FnOnce(&LiveBatch) -> T) -> Option<T> {
        self.live.state().written.as_deref().map(look)
    }

    /// Counts the issues; after the end of the batch, as the next one takes them.
    fn count_queue(&self, is_over: bool) -> Result<LiveQueue, StoreError> {
        let stamp = store_stamp(self.memory.path());
        let left_out = match is_over {
            true => self.set_aside_next(),
            false => self.left_out(),
        };
        let scope = QueueScope {
            selection: &self.settings.selection,
            assignees: &self.settings.assignees,
            left_out: &left_out,
            now: clock::now().wall,
        };
        let mut queue = self.memory.view(|view| {
            let issues = view.rows().map(|row| &row.issue);
            LiveQueue::count(issues, view.graph(), &scope)
        })?;
        if is_over {
            queue.set_aside += std::mem::take(&mut queue.left_out);
        }
        Ok(LiveQueue {
            // Of a file that changed in between, the counts are of neither state.
            store: stamp.filter(|_| stamp == store_stamp(self.memory.path())),
            ..queue
        })
    }
}

impl QueueCounter {
    /// Returns the counts, new ones where the batch is over or where the last ones
    /// are old enough for what they cost.
    fn queue(&mut self, batch: &Batch, is_over: bool) -> Option<LiveQueue> {
        if let Some((at, took, queue)) = &self.counted
            && !is_over
            && at.elapsed() < COUNT_LEAST.max(*took * COUNT_SHARE)
        {
            return Some(queue.clone());
        }
        let began = Instant::now();
        let queue = batch.count_queue(is_over).ok()?;
        self.counted = Some((Instant::now(), began.elapsed(), queue.clone()));
        Some(queue)
    }
}

/// Writes the document again and again until the batch is over or gone.
fn write_until_over(live: &Live, batch: &Weak<Batch>) {
    loop {
        match batch.upgrade() {
            Some(batch) => batch.write_live(),
            None => return,
        }
        if !live.await_change(Instant::now()) {
            return;
        }
    }
}
