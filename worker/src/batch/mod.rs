//! What the lanes of one process share: memory, trajectory, settings, and what
//! the batch knows about its issues.

mod admission;
mod bases;
mod cancelled;
mod claim;
mod error;
mod failure;
mod filing;
mod filters;
mod holder;
mod knowledge;
mod landing_queue;
mod live;
mod messages;
mod opening;
mod outside;
mod own_checks;
mod planned;
mod pushed;
mod recovery;
mod revocation;
mod room;
mod row_feed;
mod set_aside;
mod settled;
mod shared_run;
mod supervision;
mod warmth;

pub use admission::Admitted;
pub(crate) use bases::BaseVerdict;
use bases::Bases;
pub use bases::FailedCommand;
use cancelled::Cancellations;
pub use error::BatchError;
pub use messages::Message;
use messages::Messages;
pub(crate) use messages::{MessageSource, TakenMessages};
pub use opening::Opening;
pub use outside::foreign_warning;
pub(crate) use planned::{PlannedCrew, planned};
pub use premath_kernel::record::trajectory::RecoverAt;
use pushed::PushNews;
pub use pushed::Pushed;
pub use row_feed::{LaneTimes, RecordedRow};
pub use set_aside::{set_aside, set_aside_of};
pub use supervision::{SupervisedEnd, SupervisedStep, SupervisionChange};
pub(crate) use warmth::WarmState;
pub use warmth::{Leaving, Warmth};

use crate::boundary::KillSwitch;
use crate::interrupt::Interrupt;
use crate::settings::Settings;
pub(crate) use filing::Filer;
use filing::Filing;
pub(crate) use holder::batch_holder;
use knowledge::Knowledge;
use landing_queue::SharedQueue;
pub(crate) use landing_queue::{
    Assumption, LandingPlace, LandingReservation, PlaceStart, PlaceStep,
};
use premath_evidence::{StepDemand, TurnPolicies};
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{BatchId, IssueId, WorkerName};
use premath_kernel::policy::admission::Admission;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::TipCheck;
use premath_kernel::record::live::LiveTotals;
use premath_kernel::record::trajectory::{StepRow, action, batch_end_row};
use premath_memory::world::LocalWorld;
use premath_memory::{
    IssueMemory, MemoryView, RepositoryUse, Trajectory, TrajectoryFileError, clock,
};
use premath_worktree::landing::Landing;
pub(crate) use settled::Abandoned;
pub(crate) use shared_run::SharedPass;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// The landing of closed work.
    pub landing: Landing,
    /// Whether the batch is to stop; wakes the threads that wait for a change.
    pub interrupt: Interrupt,
    /// This repository as a world when the batch began: a step may write the
    /// main worktree's files since.
    pub(crate) own_world: Result<LocalWorld, String>,
    /// The build state that verifications begin with.
    pub warmth: Warmth,
    /// What is known about the commits that lanes begin at.
    pub(crate) bases: Bases,
    /// The executable that lanes start as their supervisor.
    pub program: PathBuf,
    opened: SystemTime,
    id: BatchId,
    target_sync: Vec<TargetSync>,
    /// Issues whose row has a verification that no operator wrote.
    unknown_checks: Vec<IssueId>,
    /// Whether the batch has rows of its own in the trajectory.
    recorded: bool,
    resumed: bool,
    knowledge: Mutex<Knowledge>,
    filing: Filing,
    admission: Mutex<Admission>,
    landing_queue: SharedQueue,
    /// Whether landed work may not be pushed yet.
    owes_push: AtomicBool,
    /// The pushes that are yet to be reported.
    push_news: PushNews,
    kill_switch: KillSwitch,
    filters: filters::SharedFilters,
    cancellations: Cancellations,
    messages: Arc<Messages>,
    /// What it publishes about itself.
    live: Arc<live::Live>,
    /// What it recorded, for its exporter.
    row_feed: row_feed::RowFeed,
    ends: revocation::Ends,
    /// Nothing of the harness is removed from the repository meanwhile.
    _in_use: RepositoryUse,
}

/// What a person must know of a batch beside how its issues and its lanes ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndFacts {
    /// The classes of what failed.
    pub classes: Vec<FailureClass>,
    /// What happened, a text each.
    pub texts: Vec<String>,
}

impl Batch {
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
                worker_id: WorkerName::default(),
                commit: self.landing.tip().unwrap_or_default(),
                passed: false,
                failure_classes: Vec::new(),
                detail: Some("no lane was left to verify it".to_owned()),
                output: None,
            });
        }
        tips
    }

    /// Records that the remote may not have what is on the target yet: work landed, or
    /// was reverted, or the batch was cut.
    pub(crate) fn owe_push(&self) {
        self.owes_push.store(true, Ordering::SeqCst);
    }

    /// Returns whether the remote may not have what is on the target.
    pub(crate) fn owes_push(&self) -> bool {
        self.owes_push.load(Ordering::SeqCst)
    }

    /// Returns whether landed work may not be pushed yet, to one caller.
    pub(crate) fn take_owed_push(&self) -> bool {
        let has_closed = |view: MemoryView<'_>| {
            let mut rows = view.rows();
            rows.any(|row| row.issue.closed_by_step.is_some())
        };
        self.owes_push.swap(false, Ordering::SeqCst) && self.memory.view(has_closed).unwrap_or(true)
    }

    /// Marks a boundary between two durable actions; a test may end the
    /// process there.
    pub fn reached(&self, boundary: Boundary) {
        self.kill_switch.reached(boundary);
    }

    /// Returns the batch's id.
    pub fn id(&self) -> &BatchId {
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
            knowledge.observe(row, &self.id);
        }
        // A row that is recovered may be of an attempt before the one that runs.
        if row.action == action::WORKER_LOOP
            && !row.recovered
            && let Some(issue_id) = &row.issue_id
        {
            knowledge.dispatched.remove(issue_id);
        }
        if new && self.row_feed.is_on() {
            let has_totals = matches!(&*row.action, action::WORKER_LOOP | action::BATCH_END);
            let totals = has_totals
                .then(|| LiveTotals::of(&knowledge.account, knowledge.given_up(&self.id)));
            self.row_feed.send(RecordedRow::of(row.clone(), totals));
        }
        Ok(())
    }

    /// Appends a row that no knowledge of the batch rests on, where it has none yet.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub(crate) fn record_once(&self, row: &StepRow) -> Result<(), TrajectoryFileError> {
        if self.trajectory.append_if_absent(row)? && self.row_feed.is_on() {
            self.row_feed.send(RecordedRow::of(row.clone(), None));
        }
        Ok(())
    }

    /// Returns the rows that it records, to one caller, from its start on; `None`
    /// where nothing is exported.
    pub(crate) fn recorded_rows(&self) -> Option<Receiver<RecordedRow>> {
        self.row_feed.rows()
    }

    /// Returns when the lanes worked before the batch was cut; empty where it is not
    /// resumed.
    pub fn earlier_lanes(&self) -> &LaneTimes {
        self.row_feed.earlier_lanes()
    }

    /// Ends those rows; returns how many were dropped.
    pub(crate) fn close_rows(&self) -> u64 {
        self.row_feed.close()
    }

    /// Closes the batch in the trajectory, with what a person must know of its end
    /// beside its issues and lanes.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn end(&self, result_class: &str, facts: &EndFacts) -> Result<(), TrajectoryFileError> {
        if self.recorded {
            let mut row = batch_end_row(&self.id, result_class, clock::now().wall);
            let classes = facts.classes.iter();
            row.failure_classes = classes.map(|class| class.as_str().to_owned()).collect();
            row.next_step = (!facts.texts.is_empty()).then(|| facts.texts.join("; "));
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
            profile: self.settings.governance.clone(),
            turn: Some(self.settings.turn.clone()),
            demand: StepDemand::default(),
        }
    }
}
