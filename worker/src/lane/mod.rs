//! A lane: a worktree that is locked and booted, with all that its commands
//! run by (HARNESS-RUNTIME 3.1). A step in it is `step`'s.

mod boot;
pub(crate) mod branch;
pub(crate) mod command;
mod confine;
pub(crate) mod files;
mod filter;
mod handoff;
pub(crate) mod left_session;
pub(crate) mod listener;
mod projection;
mod push;
mod repair;
mod saying;
mod setup;
mod site;
mod tip;
mod warm;
pub(crate) mod watch;
pub(crate) mod world;

pub use boot::{BootError, BootReport};
pub use handoff::SessionBefore;
pub(crate) use site::SiteError;

use crate::batch::Batch;
use crate::supervisor::Supervisor;
use confine::{Confinement, KeptHome};
use left_session::LeftSession;
use premath_kernel::json::id::WorkerName;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::live::LiveLaneState;
use premath_kernel::record::session::{Session, SessionState, SessionWrite};
use premath_memory::projection::{ProjectionError, PublishedCopy, WrittenLedger, write_published};
use premath_memory::roots::{LaneRoots, LaneState};
use premath_memory::{StoreError, WorktreeLock, clock};
use premath_worktree::tree::Tree;
use site::Site;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;
use world::RemoteSite;

/// Which lane is to be booted.
#[derive(Clone, Debug)]
pub struct LanePlan {
    /// The worker's id.
    pub worker_id: WorkerName,
    /// The worktree.
    pub worktree: PathBuf,
    /// The number of the lane, from 1.
    pub index: usize,
    /// Whether a cycle among the issues does not refuse the boot: for a batch
    /// that is resumed, where a cycle that appeared in its middle holds its
    /// members and the rest continues.
    pub tolerate_cycle: bool,
}

/// A worktree that is locked and booted, ready for steps.
#[derive(Debug)]
pub struct Lane {
    pub(crate) batch: Arc<Batch>,
    pub(crate) worker_id: WorkerName,
    pub(crate) worktree: PathBuf,
    /// The number of the lane, from 1.
    index: usize,
    /// The published files in the worktree.
    pub(crate) roots: LaneRoots,
    /// What the harness keeps of the lane, where no step sees it.
    home: LaneState,
    pub(crate) tree: Tree,
    pub(crate) site: Site,
    confinement: Confinement,
    /// The home of the session that a step's agent may be run in again.
    kept: Option<KeptHome>,
    /// The session that a failed attempt left.
    left: Option<LeftSession>,
    supervisor: Supervisor,
    runtime: Runtime,
    pub(crate) session: Option<Session>,
    written_ledger: WrittenLedger,
    /// The summary of the session before, where it had a step.
    pub(crate) before: Option<SessionBefore>,
    /// Where the lane is instead, while a step works in another world.
    pub(crate) away: Option<RemoteSite>,
    /// Counts the steps of this run, from 1.
    pub(crate) step_index: u64,
    /// Whether work closed here whose verification began with build state.
    pub(crate) owes_tip: bool,
    /// Held as long as the lane; the supervisor shares it. Last, so that it is
    /// released after the supervisor.
    lock: WorktreeLock,
}

impl Lane {
    /// Updates the session and writes it.
    pub(crate) fn write_session(&mut self, write: SessionWrite) -> Result<(), ProjectionError> {
        let session =
            premath_kernel::record::session::write(self.session.take(), write, clock::now().wall);
        let copy = PublishedCopy {
            worktree: self.roots.worktree(),
            file: &self.roots.session,
        };
        let written = write_published(&self.home.session, copy, &session);
        self.session = Some(session);
        written
    }

    /// Goes back to the branch that the worktree was on before the batch; where
    /// the lane is not in order, the next boot sees to it.
    fn return_to_branch(&self) {
        let step_is_open = self
            .session
            .as_ref()
            .is_some_and(|session| session.step.is_some());
        if !self.batch.landing.is_on() || step_is_open {
            return;
        }
        let home = self
            .tree
            .must_be_clean()
            .and_then(|()| self.tree.return_to_branch());
        if let Err(error) = home {
            tracing::warn!(worker = %self.worker_id, %error, "cannot switch the worktree back to \
                                                             its branch");
        }
    }

    /// Ends the lane: the session's last snapshot of issue memory.
    ///
    /// # Errors
    ///
    /// [`ProjectionError`].
    pub fn finish(mut self) -> Result<(), ProjectionError> {
        self.batch
            .note_lane(&self.worker_id, |lane| lane.state = LiveLaneState::Done);
        self.supervisor.close();
        self.roots.remove_step_folder().map_err(StoreError::from)?;
        self.return_to_branch();
        self.batch.reached(Boundary::LaneHome);
        let snapshot = self.batch.memory.view(|view| view.snapshot_ref())?;
        let step_is_open = self
            .session
            .as_ref()
            .is_some_and(|session| session.step.is_some());
        self.write_session(SessionWrite {
            state: if step_is_open {
                SessionState::Active
            } else {
                SessionState::Stopped
            },
            issues_snapshot_ref: Some(snapshot),
            ..SessionWrite::default()
        })?;
        self.batch.reached(Boundary::LaneFinished);
        Ok(())
    }
}
