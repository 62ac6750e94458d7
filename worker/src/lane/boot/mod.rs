//! `boot`: from files to a lane that may take a step (HARNESS-RUNTIME 3.1).

mod baseline;
mod command;
mod error;
mod own_files;
mod recovery;

pub use error::BootError;

use super::command::Phase;
use super::confine::Confinement;
use super::site::Site;
use super::{Lane, LaneRoots, LaneState};
use crate::batch::Batch;
use crate::supervisor::Supervisor;
use premath_kernel::issue::graph::Scope;
use premath_kernel::record::bootstrap::{Bootstrap, bootstrap};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::session::{SessionState, SessionWrite, StepWrite};
use premath_memory::projection::{self};
use premath_memory::roots::lane_name;
use premath_memory::{StoreError, WorktreeLock, roots};
use premath_worktree::ownership::is_provisioned;
use premath_worktree::tree::{Base, Tree, is_worktree_of};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a boot waits for a dying predecessor to release the worktree: its
/// supervisor kills what it runs within a second.
pub(crate) const PREDECESSOR: Duration = Duration::from_secs(3);

/// How many secrets that steps can read a warning names.
const SECRETS_NAMED: usize = 10;

/// What a session says while a step that was cut is taken up.
const TAKING_UP: &str = "recover the interrupted step";

/// What a boot found.
#[derive(Clone, Debug)]
pub struct BootReport {
    /// The session before, as it is resumed or attached to.
    pub handoff: Option<Bootstrap>,
    /// The branch on which a step that was cut, or leftover work in a lane of
    /// the harness, is saved.
    pub salvage: Option<String>,
    /// The issue that a claim would take now.
    pub next_target: Option<String>,
    /// How many witness files there are, and whether an observation is.
    pub witnesses: usize,
    /// Whether `artifacts/observation/latest.json` is there.
    pub observation: bool,
    /// What a person should know about this worktree.
    pub warnings: Vec<String>,
}

impl Lane {
    /// Boots a lane on a worktree.
    ///
    /// `tolerate_cycle` is for a batch that is resumed: a cycle that appeared
    /// in its middle holds its members, and the rest continues.
    ///
    /// # Errors
    ///
    /// [`BootError`]; nothing was changed but what a step that was cut left.
    pub fn boot(
        batch: Arc<Batch>,
        worker_id: &str,
        worktree: &Path,
        tolerate_cycle: bool,
    ) -> Result<(Self, BootReport), BootError> {
        let worktree = std::fs::canonicalize(worktree).map_err(|source| StoreError::Io {
            operation: "find the worktree",
            path: worktree.to_path_buf(),
            source,
        })?;
        let repository = &batch.settings.roots.repository;
        if !is_worktree_of(repository, &worktree) {
            return Err(BootError::Foreign {
                worktree,
                repository: repository.clone(),
            });
        }
        let tree = Tree::open_in(repository, &worktree)?;
        if let Some(filter) = tree.external_filters()? {
            return Err(BootError::Filter { worktree, filter });
        }
        let mut roots = LaneRoots::at(&worktree);
        if let Some(path) = &batch.settings.session_path {
            roots.session = worktree.join(path);
        }
        if let Some(path) = &batch.settings.ledger_path {
            roots.ledger = worktree.join(path);
        }
        let lock = WorktreeLock::acquire_in(tree.git_folder(), PREDECESSOR)?;
        tree.lead_back()?;
        let alone = batch.landing.branches();
        tree.let_go(&lane_name(&worktree));
        drop(alone);
        roots.prepare()?;
        roots::exclude_from_status_in(tree.common_folder())?;
        let diagnosis = batch.memory.diagnose(Scope::Active)?;
        if let Some(path) = diagnosis.cycle_path
            && !tolerate_cycle
        {
            return Err(BootError::Cycle(
                path.iter().map(ToString::to_string).collect(),
            ));
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
        let confinement = Confinement::of(&batch.settings, &tree, &worktree)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BootError::Runtime)?;
        let mut lane = Self {
            batch,
            worker_id: worker_id.to_owned(),
            worktree,
            roots,
            home,
            tree,
            site,
            confinement,
            supervisor,
            runtime,
            session,
            away: None,
            step_index: 0,
            owes_tip: false,
            lock,
        };
        lane.remember_own_files()?;
        let mut salvage = lane.take_up()?;
        let is_ours = is_provisioned(lane.tree.git_folder());
        if is_ours {
            salvage = salvage.or(lane.clear()?);
        }
        lane.refuse_dirty()?;
        if !is_ours {
            lane.find_own_files()?;
        }
        lane.to_the_target()?;
        lane.batch.reached(Boundary::LaneAtTarget);
        lane.tree.settle_index();
        let base = lane.tree.base()?;
        lane.make_git(&base)?;
        let (next_target, snapshot) = lane.batch.memory.view(|view| {
            let next = view
                .ready()
                .find(|row| lane.batch.settings.selection.admits(&row.issue))
                .map(|row| row.issue.id.to_string());
            (next, view.snapshot_ref())
        })?;
        let issues_path = lane.batch.memory.path().to_string_lossy().into_owned();
        let worker = lane.worker_id.clone();
        let batch_id = lane.batch.id().to_owned();
        let instruction_refs = lane.batch.settings.mode.instruction_refs();
        lane.write_session(SessionWrite {
            state: SessionState::Active,
            issue_id: Some(String::new()),
            summary: Some("booted".to_owned()),
            next_step: Some(next_target.as_ref().map_or_else(
                || "no issue is ready".to_owned(),
                |issue| format!("claim {issue}"),
            )),
            instruction_refs: Some(instruction_refs),
            issues_path: Some(issues_path),
            issues_snapshot_ref: Some(snapshot),
            worker_id: Some(worker),
            batch_id: Some(batch_id),
            step: StepWrite::Clear,
            ..SessionWrite::default()
        })?;
        lane.batch.reached(Boundary::LaneBooted);
        let hooks = &lane.batch.settings.hooks;
        let is_as_it_was = !lane.batch.landing.is_on()
            && lane.setup().is_none()
            && hooks.boot.is_none()
            && hooks.startup.is_none();
        let ready = lane
            .boot_setup()
            .and_then(|()| lane.boot_command(Phase::Boot))
            .and_then(|()| lane.warm_up())
            .and_then(|()| lane.boot_command(Phase::Startup))
            .and_then(|()| match is_as_it_was {
                true => Ok(()),
                false => lane.refuse_dirty(),
            });
        if let Err(error) = ready {
            lane.write_session(SessionWrite {
                state: SessionState::Stopped,
                summary: Some(format!("not booted: {error}")),
                ..SessionWrite::default()
            })?;
            return Err(error);
        }
        lane.push_owed();
        let roots = &lane.batch.settings.roots;
        let report = BootReport {
            handoff,
            salvage,
            next_target,
            witnesses: std::fs::read_dir(&roots.witnesses).map_or(0, Iterator::count),
            observation: roots.observation.exists(),
            warnings: lane.warnings(),
        };
        Ok((lane, report))
    }

    /// Says what a person should know about the worktree.
    fn warnings(&self) -> Vec<String> {
        let issues = self.batch.memory.path();
        let tracked = issues
            .strip_prefix(&self.worktree)
            .is_ok_and(|path| self.tree.tracks(path));
        let mut warnings = self.confinement.warnings.clone();
        if tracked {
            warnings.push(format!(
                "{} is tracked in this checkout: a `git stash` or `git reset` of the work command \
                 reverts it; use a linked worktree",
                issues.display()
            ));
        }
        if let Ok(paths) = self.tree.tracked_ours()
            && let Some(first) = paths.iter().find(|path| path.starts_with("artifacts/"))
        {
            warnings.push(format!(
                "{first} is tracked, but files in artifacts/ are never committed or restored"
            ));
        }
        let mut secrets: Vec<String> = match self.confinement.mounts() {
            true => Vec::new(),
            false => self
                .tree
                .kept_out()
                .secrets()
                .map(|path| path.display().to_string())
                .collect(),
        };
        let more = secrets.len().saturating_sub(SECRETS_NAMED);
        secrets.truncate(SECRETS_NAMED);
        if more > 0 {
            secrets.push(format!("{more} more"));
        }
        if !secrets.is_empty() {
            warnings.push(format!(
                "steps in this worktree can read {}; only namespaces can hide files of a worktree",
                secrets.join(", ")
            ));
        }
        if self.tree.submodules().unwrap_or(false) {
            warnings.push(
                "the repository has submodules: a step that changes a submodule is refused"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Puts a lane whose steps begin at the landing target there, so that it
    /// is made ready and verified on what they begin with.
    fn to_the_target(&self) -> Result<(), BootError> {
        let landing = &self.batch.landing;
        if !landing.is_on() {
            return Ok(());
        }
        self.tree.remember_home()?;
        let base = Base {
            commit: landing.start()?,
            branch: None,
        };
        self.tree.start_at(&base, &self.worker_id, 0)?;
        Ok(())
    }

    /// Refuses a tree with a user's changes.
    pub(crate) fn refuse_dirty(&self) -> Result<(), BootError> {
        let mut paths = self.tree.changes()?;
        if paths.is_empty() {
            return Ok(());
        }
        paths.truncate(10);
        Err(BootError::Dirty {
            worktree: self.worktree.clone(),
            paths,
        })
    }
}
