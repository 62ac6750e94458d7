//! What the lanes of one process share: memory, trajectory, settings, and what
//! the batch knows about its issues.

mod admission;
mod claim;
mod error;
mod failure;
mod holder;
mod knowledge;
mod outside;
mod recovery;
mod room;
mod supervision;
mod warmth;

pub use admission::Admitted;
pub use error::BatchError;
pub use outside::foreign_warning;
pub use premath_kernel::record::trajectory::RecoverAt;
pub use supervision::{EndedStep, StepEnd, SupervisionChange};
pub(crate) use warmth::WarmState;
pub use warmth::{Leaving, Warmth};

use crate::boundary::KillSwitch;
use crate::interrupt::Interrupt;
use crate::settings::Settings;
pub(crate) use holder::batch_holder;
use holder::is_alive;
use knowledge::Knowledge;
use premath_evidence::TurnPolicies;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::issue::graph::Scope;
use premath_kernel::policy::admission::Admission;
use premath_kernel::policy::provider::ProviderDesk;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::TipCheck;
use premath_kernel::record::trajectory::{
    BatchHistory, BatchRecord, StepRow, action, batch_end_row, batch_id, batch_resume_row,
    batch_start_row,
};
use premath_memory::{IssueMemory, OpenOptions, Trajectory, TrajectoryFileError, View, clock};
use premath_worktree::landing::Landing;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What lanes of one process share.
#[derive(Debug)]
pub struct Batch {
    /// What the batch is run with.
    pub settings: Settings,
    /// Issue memory.
    pub memory: IssueMemory,
    /// The trajectory.
    pub trajectory: Trajectory,
    /// Where closed work lands.
    pub landing: Landing,
    /// What the person at the keyboard asked for.
    pub interrupt: Interrupt,
    /// The build state that verifications begin with.
    pub warmth: Warmth,
    /// The executable that lanes start as their supervisor.
    pub program: PathBuf,
    opened: SystemTime,
    id: String,
    target_sync: Vec<TargetSync>,
    /// Whether the batch has rows of its own in the trajectory.
    recorded: bool,
    resumed: bool,
    knowledge: Mutex<Knowledge>,
    admission: Mutex<Admission>,
    /// Whether landed work may not be pushed yet.
    owes_push: AtomicBool,
    kill_switch: KillSwitch,
}

/// How a batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A coordinator's: recorded; resumes an interrupted one, unless disabled.
    Coordinator {
        /// Begin afresh.
        afresh: bool,
    },
    /// A single worker's: counted in this process, not recorded.
    Worker,
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
        let options = OpenOptions {
            insist_on_network_filesystem: std::env::var_os("PREMATH_ALLOW_NETWORK_FS")
                .is_some_and(|value| value == "1"),
            ..OpenOptions::default()
        };
        let kill_switch = KillSwitch::from_environment()?;
        let opened = SystemTime::now();
        settings.settle_landing(worktrees)?;
        settings.settle_warmth(worktrees)?;
        let memory = IssueMemory::open(&settings.roots.issues, &options)?;
        let trajectory = Trajectory::open(&settings.roots.trajectory)?;
        let rows = trajectory.rows()?;
        let mut knowledge = Knowledge {
            history: BatchHistory::fold(&rows),
            ..Knowledge::default()
        };
        for row in &rows {
            knowledge.note(row);
        }
        let digest = settings.digest(worktrees);
        let holder = batch_holder(clock::this_process().as_ref());
        let now = clock::now().wall;
        let resumable = match opening {
            Opening::Coordinator { afresh: false } => {
                knowledge.history.resumable(&digest, &is_alive).cloned()
            }
            _ => None,
        };
        // A cycle that was there before the batch refuses it before anything is
        // written; one that appeared in its middle holds its members.
        if resumable.is_none()
            && let Some(path) = memory.diagnose(Scope::Active)?.cycle_path
        {
            let path = path.iter().map(ToString::to_string).collect();
            return Err(BatchError::Cycle(path));
        }
        let repository = settings.roots.repository.clone();
        let landing = Landing::begin(settings.landing.clone(), repository)?;
        settings.roots.prepare()?;
        memory.check_seal()?;
        let mut open = knowledge.history.open().iter();
        let others = open.any(|batch| is_alive(&batch.holder));
        let closed = memory.view(|view| knowledge.landed(&view))?;
        let target_sync = landing.sync_target(closed, others)?;
        kill_switch.reached(Boundary::TargetReady);
        if resumable.is_none() {
            // What a person did before the batch is none of its business.
            drop(memory.take_outside_changes());
        }
        let (id, mut first) = match &resumable {
            Some(open) => (open.batch_id.clone(), batch_resume_row(open, holder, now)),
            None => {
                let id = batch_id(&holder, now);
                let record = BatchRecord {
                    settings_digest: digest,
                    holder,
                };
                (id.clone(), batch_start_row(&id, record, now))
            }
        };
        for row in &rows {
            knowledge.note_account(row, &id);
        }
        let bounds = &settings.bounds;
        let jitter = settings.backoff.jitter_percent();
        let mut desk = ProviderDesk::new(bounds.providers.clone(), jitter, &id);
        for (provider, until) in knowledge.account.parked() {
            desk.restore(provider, until);
        }
        let admission = Admission::new(bounds.admission(), desk);
        first.instruction_refs = settings.mode.instruction_refs();
        let recorded = opening != Opening::Worker;
        let batch = Self {
            settings,
            memory,
            trajectory,
            landing,
            interrupt,
            warmth: Warmth::default(),
            program: PathBuf::from("/proc/self/exe"),
            opened,
            id,
            target_sync,
            recorded,
            resumed: resumable.is_some(),
            knowledge: Mutex::new(knowledge),
            admission: Mutex::new(admission),
            owes_push: AtomicBool::new(resumable.is_some()),
            kill_switch,
        };
        if recorded {
            let stale: Vec<StepRow> = batch
                .knowledge()
                .history
                .abandoned(Some(&batch.id), &is_alive)
                .iter()
                .map(|open| {
                    let mut row = batch_end_row(&open.batch_id, "abandoned", now);
                    row.instruction_refs.clone_from(&open.instruction_refs);
                    row
                })
                .collect();
            for row in &stale {
                batch.record(row)?;
                batch.owe_push();
            }
            batch.record(&first)?;
            batch.reached(Boundary::BatchRecorded);
        } else {
            batch.knowledge().history.observe(&first);
        }
        if let Some(open) = &resumable {
            batch.take_up_filed(open.started_at.time())?;
        }
        batch.recover_rows(RecoverAt::Start)?;
        batch.release_used_up()?;
        Ok(batch)
    }

    /// Removes what processes that were killed before this batch began left
    /// half-done in the repository's shared git folder.
    pub fn sweep_shared(&self) {
        premath_worktree::tree::sweep_shared(&self.settings.roots.repository, self.opened);
    }

    /// Returns the outcomes of the verifications of last commits without build
    /// state; one that was due and not run did not pass.
    pub fn tips(&self) -> Vec<TipCheck> {
        let mut tips = self.warmth.tips();
        if tips.is_empty() && self.warmth.has_landed() && self.landing.merges() {
            tips.push(TipCheck {
                worker_id: String::new(),
                commit: self.landing.tip().unwrap_or_default(),
                passed: false,
                failure_classes: Vec::new(),
                detail: Some("no lane was left to verify it".to_owned()),
                output: None,
            });
        }
        tips
    }

    /// Records that landed work may not be pushed yet: its batch was cut.
    fn owe_push(&self) {
        self.owes_push.store(true, Ordering::Relaxed);
    }

    /// Returns whether landed work may not be pushed yet, to one caller.
    pub(crate) fn take_owed_push(&self) -> bool {
        let has_closed = |view: View<'_>| {
            let mut rows = view.rows();
            rows.any(|row| row.issue.closed_by_step.is_some())
        };
        self.owes_push.swap(false, Ordering::Relaxed)
            && self.memory.view(has_closed).unwrap_or(false)
    }

    /// Marks a boundary between two durable actions; a test may end the
    /// process there.
    pub fn reached(&self, boundary: Boundary) {
        self.kill_switch.reached(boundary);
    }

    /// Returns the batch's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what there is to report about the landing target before the
    /// first step.
    pub fn target_sync(&self) -> &[TargetSync] {
        &self.target_sync
    }

    /// Returns whether a batch that was cut continues here.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row, a step's only where it has none yet, and records it.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn record(&self, row: &StepRow) -> Result<(), TrajectoryFileError> {
        let new = if row.action == action::WORKER_LOOP {
            self.trajectory.append_if_absent(row)?
        } else {
            self.trajectory.append(row)?;
            true
        };
        let mut knowledge = self.knowledge();
        if new {
            knowledge.history.observe(row);
            knowledge.note(row);
            knowledge.note_account(row, &self.id);
        }
        if row.action == action::WORKER_LOOP
            && let Some(issue_id) = &row.issue_id
        {
            knowledge.dispatched.remove(issue_id);
        }
        Ok(())
    }

    /// Closes the batch in the trajectory.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn end(&self, result_class: &str) -> Result<(), TrajectoryFileError> {
        if self.recorded {
            let mut row = batch_end_row(&self.id, result_class, clock::now().wall);
            row.instruction_refs = self.settings.mode.instruction_refs();
            self.record(&row)?;
        }
        Ok(())
    }

    /// Returns the authority for lease operations.
    pub fn lease_authority(&self) -> LeaseAuthority {
        self.settings.mode.lease_authority()
    }

    /// Returns the policies that turns are bound to.
    pub(crate) fn policies(&self) -> TurnPolicies {
        TurnPolicies {
            mutation: self.settings.mode.policy_digest(),
            governance: self.settings.retry.policy_digest().to_owned(),
            profile: self.settings.governance.clone(),
        }
    }
}
