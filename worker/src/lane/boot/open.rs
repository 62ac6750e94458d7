//! What a lane works by: its worktree, locked, with a supervisor.

use super::super::confine::Confinement;
use super::super::site::Site;
use super::super::{Lane, LanePlan, LaneRoots, LaneState, SessionBefore};
use super::BootError;
use crate::batch::Batch;
use crate::settings::Settings;
use crate::supervisor::Supervisor;
use premath_kernel::issue::graph::Scope;
use premath_kernel::record::bootstrap::{Bootstrap, bootstrap};
use premath_memory::projection::{PublishedCopy, WrittenLedger};
use premath_memory::roots::lane_name;
use premath_memory::{PREDECESSOR_WAIT, StoreError, WorktreeLock, ignored, projection};
use premath_worktree::tree::{Tree, Worktrees};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

impl Lane {
    /// Locks a worktree and starts its supervisor; returns the session before
    /// with the lane.
    pub(super) fn open(
        batch: Arc<Batch>,
        plan: &LanePlan,
    ) -> Result<(Self, Option<Bootstrap>), BootError> {
        let repository = &batch.settings.roots.repository;
        let (worktree, mut tree) = worktree_of(repository, &plan.worktree)?;
        if let Some(bytes) = batch.settings.resources.disk {
            tree.bound_holes(bytes);
        }
        let roots = roots_at(&worktree, &batch.settings);
        let lock = WorktreeLock::acquire_in(tree.git_folder(), PREDECESSOR_WAIT)?;
        tree.restore_git_file()?;
        let alone = batch.landing.branches();
        tree.release_held(&lane_name(&worktree));
        drop(alone);
        roots.prepare()?;
        for file in [&roots.session, &roots.ledger] {
            let worktree = &*worktree;
            projection::sweep_beside(PublishedCopy { worktree, file });
        }
        ignored::exclude_from_status_in(tree.common_folder())?;
        let cycle = batch.memory.diagnose(Scope::Active)?.cycle_path;
        if let Some(path) = cycle.filter(|_| !plan.tolerate_cycle) {
            let path = path.iter().map(ToString::to_string);
            return Err(BootError::Cycle(path.collect()));
        }
        let home = LaneState::at(repository, &worktree);
        let site = Site::prepare(repository, home.clone())?;
        let session = projection::read_session(&home.session)?;
        let ledger = projection::read_ledger(&home.ledger)?;
        let handoff = session
            .as_ref()
            .map(|session| bootstrap(session, ledger.as_ref()));
        let shared = lock.share().map_err(|source| StoreError::LockIo {
            path: worktree.clone(),
            source,
        })?;
        let supervisor = Supervisor::start(&batch.program, shared)?;
        let mut lane = Self {
            confinement: Confinement::of(&batch.settings, &tree, &worktree)?,
            kept: None,
            left: None,
            runtime: runtime()?,
            batch,
            worker_id: plan.worker_id.clone(),
            worktree,
            index: plan.index,
            roots,
            home,
            tree,
            site,
            supervisor,
            session,
            written_ledger: WrittenLedger::default(),
            before: handoff.as_ref().and_then(SessionBefore::of),
            away: None,
            step_index: 0,
            owes_tip: false,
            lock,
        };
        let state = &lane.site.state;
        lane.confinement.try_layers(&state.checkout, &state.changes);
        lane.use_filters()?;
        Ok((lane, handoff))
    }
}

/// Opens a worktree of a repository.
fn worktree_of(repository: &Path, worktree: &Path) -> Result<(PathBuf, Tree), BootError> {
    let worktree = std::fs::canonicalize(worktree).map_err(|source| StoreError::Io {
        operation: "find the worktree",
        path: worktree.to_path_buf(),
        source,
    })?;
    match Tree::open_in(repository, &worktree) {
        Ok(tree) => Ok((worktree, tree)),
        Err(_) if !Worktrees::of(repository).is_ok_and(|own| own.has(&worktree)) => {
            Err(BootError::Foreign {
                worktree,
                repository: repository.to_path_buf(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns where a lane's published files are.
fn roots_at(worktree: &Path, settings: &Settings) -> LaneRoots {
    let mut roots = LaneRoots::at(worktree);
    if let Some(path) = &settings.session_path {
        roots.session = worktree.join(path);
    }
    if let Some(path) = &settings.ledger_path {
        roots.ledger = worktree.join(path);
    }
    roots
}

fn runtime() -> Result<Runtime, BootError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BootError::Runtime)
}
