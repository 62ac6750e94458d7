//! The opening of a batch: a new one, or the interrupted one that is resumed.

use super::bases::Bases;
use super::cancelled::Cancellations;
use super::filing::Filing;
use super::filters::SharedFilters;
use super::holder::{batch_holder, is_alive};
use super::knowledge::Knowledge;
use super::landing_queue::SharedQueue;
use super::live::Live;
use super::revocation::Ends;
use super::row_feed::{LaneTimes, RowFeed};
use super::{Batch, BatchError, RecoverAt, Warmth, own_checks};
use crate::boundary::KillSwitch;
use crate::interrupt::Interrupt;
use crate::settings::Settings;
use premath_kernel::issue::graph::Scope;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::admission::Admission;
use premath_kernel::policy::landing_queue::QueueBounds;
use premath_kernel::policy::provider::ProviderPool;
use premath_kernel::policy::slots::SlotRule;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::live::{LiveBatch, millis};
use premath_kernel::record::trajectory::{
    BatchRecord, OpenBatch, StepRow, batch_end_row, batch_id, batch_resume_row, batch_start_row,
};
use premath_memory::live::LiveFolder;
use premath_memory::world::LocalWorld;
use premath_memory::{IssueMemory, OpenOptions, RepositoryUse, Trajectory, clock};
use premath_worktree::landing::Landing;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The way in which a batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A coordinator's: recorded; resumes an interrupted one, unless disabled.
    Coordinator {
        /// Begin afresh.
        afresh: bool,
    },
    /// A single worker's: counted in this process, not recorded.
    Worker,
    /// No step begins: the verification without any work is all that runs. What
    /// earlier batches left stays for the next one.
    Baseline,
}

impl Opening {
    const fn begins_steps(self) -> bool {
        !matches!(self, Self::Baseline)
    }

    const fn is_recorded(self) -> bool {
        matches!(self, Self::Coordinator { .. })
    }

    /// Returns the interrupted batch that is resumed.
    pub(super) fn resumed<'k>(
        self,
        knowledge: &'k Knowledge,
        digest: &str,
    ) -> Option<&'k OpenBatch> {
        match self {
            Self::Coordinator { afresh: false } => knowledge.history.resumable(digest, &is_alive),
            Self::Coordinator { afresh: true } | Self::Worker | Self::Baseline => None,
        }
    }
}

/// Which batch begins: a new one, or the interrupted one that is resumed.
struct BatchStart {
    id: BatchId,
    /// The row that opens or resumes it.
    row: StepRow,
    resumed: Option<OpenBatch>,
    at: jiff::Timestamp,
}

impl BatchStart {
    fn of(resumed: Option<OpenBatch>, record: BatchRecord, at: jiff::Timestamp) -> Self {
        let (id, row) = match &resumed {
            Some(open) => (
                open.batch_id.clone(),
                batch_resume_row(open, record.holder, at),
            ),
            None => {
                let id = batch_id(&record.holder, at);
                (id.clone(), batch_start_row(&id, record, at))
            }
        };
        Self {
            id,
            row,
            resumed,
            at,
        }
    }
}

impl Batch {
    /// Opens memory and trajectory, and begins or resumes a batch.
    ///
    /// A closed issue whose step has no row gets it here (`contracts.md` 6).
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn open(
        mut settings: Settings,
        worktrees: &[PathBuf],
        opening: Opening,
        interrupt: Interrupt,
    ) -> Result<Self, BatchError> {
        let (kill_switch, opened) = (KillSwitch::from_environment()?, SystemTime::now());
        let in_use = RepositoryUse::begin(&settings.roots.repository)?;
        settings.settle_landing(worktrees)?;
        settings.settle_warmth(worktrees)?;
        let memory = IssueMemory::open(&settings.roots.issues, &open_options())?;
        let trajectory = Trajectory::open(&settings.roots.trajectory)?;
        let rows = trajectory.rows()?;
        let mut knowledge = Knowledge::of(&rows);
        let record = BatchRecord {
            settings_digest: settings.digest(worktrees),
            holder: batch_holder(clock::this_process().as_ref()),
        };
        let resumed = opening.resumed(&knowledge, &record.settings_digest);
        let mut start = BatchStart::of(resumed.cloned(), record, clock::now().wall);
        // A cycle that was there before the batch refuses it before anything is
        // written; one that appeared in its middle holds its members.
        if start.resumed.is_none() && opening.begins_steps() {
            refuse_cycle(&memory)?;
        }
        let landing = Landing::begin(settings.landing.clone(), settings.roots.repository.clone())?;
        settings.roots.prepare()?;
        let target_sync = made_ready(opening, &landing, &knowledge, &memory)?;
        kill_switch.reached(Boundary::TargetReady);
        // What a person did before the batch is not reported.
        let is_new = start.resumed.is_none();
        let _before = is_new.then(|| memory.take_outside_changes());
        knowledge.note_account(&rows, &start.id);
        start.row.instruction_refs = settings.mode.instruction_refs();
        settings.issue_checks &= opening.begins_steps();
        let unknown_checks = own_checks::authorise(&mut settings, &memory, &mut start.row)?;
        let batch = Self {
            row_feed: feed_of(&settings, opening, lane_times(&rows, &start)),
            live: Arc::new(live_of(&settings, &start)),
            own_world: LocalWorld::find(&settings.roots.repository),
            landing_queue: shared_queue(&settings, worktrees.len(), &interrupt),
            admission: Mutex::new(admission_of(&settings, &knowledge, &start.id)),
            settings,
            memory,
            trajectory,
            landing,
            interrupt,
            warmth: Warmth::default(),
            bases: Bases::default(),
            program: premath_platform::program::itself().to_path_buf(),
            opened,
            id: start.id.clone(),
            target_sync,
            unknown_checks,
            recorded: opening.is_recorded(),
            resumed: start.resumed.is_some(),
            knowledge: Mutex::new(knowledge),
            filing: Filing::default(),
            owes_push: AtomicBool::new(start.resumed.is_some()),
            push_news: Mutex::default(),
            kill_switch,
            filters: SharedFilters::default(),
            cancellations: Cancellations::default(),
            messages: Arc::default(),
            ends: Ends::default(),
            _in_use: in_use,
        };
        batch.take_up(&start, opening)?;
        Ok(batch)
    }

    /// Records the start, and takes up what batches that were cut left.
    fn take_up(&self, start: &BatchStart, opening: Opening) -> Result<(), BatchError> {
        if !opening.begins_steps() {
            return Ok(());
        }
        if self.recorded {
            for row in self.abandoned(start.at) {
                self.record(&row)?;
                self.owe_push();
            }
            self.record(&start.row)?;
            self.reached(Boundary::BatchRecorded);
        } else {
            self.knowledge().history.observe(&start.row);
        }
        if let Some(open) = &start.resumed {
            self.take_up_filed(open.started_at.time())?;
        }
        self.take_back_unchecked()?;
        // An earlier batch may have failed to push.
        if self.landing.may_be_unpushed() {
            self.owe_push();
        }
        self.recover_rows(RecoverAt::Start)?;
        self.pardon()?;
        self.release_used_up()
    }

    /// Returns the rows that close the batches whose processes are dead.
    fn abandoned(&self, now: jiff::Timestamp) -> Vec<StepRow> {
        let knowledge = self.knowledge();
        let open = knowledge.history.abandoned(Some(&self.id), &is_alive);
        let row = |open: &OpenBatch| {
            let mut row = batch_end_row(&open.batch_id, "abandoned", now);
            row.instruction_refs.clone_from(&open.instruction_refs);
            row
        };
        open.iter().map(|open| row(open)).collect()
    }
}

pub(super) fn open_options() -> OpenOptions {
    OpenOptions {
        insist_on_network_filesystem: std::env::var_os("PREMATH_ALLOW_NETWORK_FS")
            .is_some_and(|value| value == "1"),
        ..OpenOptions::default()
    }
}

fn shared_queue(settings: &Settings, lanes: usize, interrupt: &Interrupt) -> SharedQueue {
    let bounds = QueueBounds {
        speculation: settings.landing.speculation,
        slots: SlotRule::of(settings.verify_slots, lanes).at_once,
        batch: settings.landing.batch(),
    };
    SharedQueue::new(bounds, interrupt.clone())
}

fn refuse_cycle(memory: &IssueMemory) -> Result<(), BatchError> {
    let path = memory.diagnose(Scope::Active)?.cycle_path;
    path.map_or(Ok(()), |path| {
        let path = path.iter().map(ToString::to_string);
        Err(BatchError::Cycle(path.collect()))
    })
}

/// Looks for changes of issue memory that no transaction made, where steps begin, and
/// puts the landing target where they begin.
fn made_ready(
    opening: Opening,
    landing: &Landing,
    knowledge: &Knowledge,
    memory: &IssueMemory,
) -> Result<Vec<TargetSync>, BatchError> {
    if opening.begins_steps() {
        memory.check_seal()?;
    }
    sync_target(landing, knowledge, memory)
}

/// Returns what takes the rows for the export.
fn feed_of(settings: &Settings, opening: Opening, earlier: LaneTimes) -> RowFeed {
    let is_on = settings.telemetry.is_some() && opening.is_recorded();
    RowFeed::new(is_on, earlier)
}

/// Returns the first start and the last end of the rows of the lanes of a batch that is
/// resumed.
fn lane_times(rows: &[StepRow], start: &BatchStart) -> LaneTimes {
    let mut lanes = LaneTimes::new();
    let id = start.resumed.as_ref().map(|open| &open.batch_id);
    let of_batch = |row: &&StepRow| row.batch_id.is_some() && row.batch_id.as_ref() == id;
    for row in rows.iter().filter(of_batch) {
        let Some(worker) = &row.worker_id else {
            continue;
        };
        let ended = &row.finished_at;
        let began = row.started_at.as_ref().unwrap_or(ended);
        let times = lanes
            .entry(worker.clone())
            .or_insert_with(|| (began.clone(), ended.clone()));
        if began.time() < times.0.time() {
            times.0 = began.clone();
        }
        if ended.time() > times.1.time() {
            times.1 = ended.clone();
        }
    }
    lanes
}

/// Puts the landing target where the batch's steps begin.
fn sync_target(
    landing: &Landing,
    knowledge: &Knowledge,
    memory: &IssueMemory,
) -> Result<Vec<TargetSync>, BatchError> {
    let mut open = knowledge.history.open().iter();
    let others = open.any(|batch| is_alive(&batch.holder));
    let closed = memory.view(|view| knowledge.landed(&view))?;
    Ok(landing.sync_target(closed, others)?)
}

/// Returns what the batch publishes about itself at first.
fn live_of(settings: &Settings, start: &BatchStart) -> Live {
    let now = clock::now();
    let began = start.resumed.as_ref().map(|open| open.started_at.clone());
    let holder = batch_holder(clock::this_process().as_ref());
    let at = began.unwrap_or(Stamp::at(start.at));
    // A batch that is resumed began earlier on this clock, or before its start.
    let ran = Duration::try_from(now.wall.duration_since(at.time())).unwrap_or_default();
    let started_ms = now.boot_ms.saturating_sub(millis(ran));
    let mut document = LiveBatch::new(start.id.clone(), holder, at, started_ms);
    document.resumed = start.resumed.is_some();
    document.budget = settings.bounds.batch.into();
    let ends_at = settings.bounds.deadline.ends_at(now.wall, Duration::ZERO);
    document.ends_at = ends_at.map(Stamp::at);
    Live::new(document, LiveFolder::of(&settings.roots))
}

/// Returns the admission, in which providers stay parked.
fn admission_of(settings: &Settings, knowledge: &Knowledge, batch_id: &BatchId) -> Admission {
    let bounds = &settings.bounds;
    let jitter = settings.backoff.jitter_percent();
    let mut pool = ProviderPool::new(bounds.providers.clone(), jitter, batch_id.as_str());
    for (provider, until) in knowledge.account.parked() {
        pool.restore(provider, until);
    }
    Admission::new(bounds.admission(), pool)
}
