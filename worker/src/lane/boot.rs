//! `boot`: from files to a lane that may take a step (HARNESS-RUNTIME 3.1).

use super::command::{CommandError, Occasion, Phase, Ran};
use super::{Lane, LaneRoots};
use crate::batch::Batch;
use crate::supervisor::{Supervisor, SupervisorError};
use premath_kernel::bootstrap::{Bootstrap, bootstrap};
use premath_kernel::failure::FailureClass;
use premath_kernel::graph::Scope;
use premath_kernel::session::{SessionState, SessionStep, SessionWrite, StepWrite};
use premath_memory::projection::{self, ProjectionError};
use premath_memory::{StoreError, WorktreeLock, clock, roots};
use premath_worktree::landing::LandingError;
use premath_worktree::tree::{Base, CommitText, Tree, TreeError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a boot waits for a dying predecessor to let go of the worktree:
/// its supervisor kills what it runs within a second.
const PREDECESSOR: Duration = Duration::from_secs(3);

/// What a session says while a step that was cut is taken up.
const TAKING_UP: &str = "take up the step that was cut";

/// What a boot found.
#[derive(Clone, Debug)]
pub struct BootReport {
    /// The session before, as it is resumed or attached to.
    pub handoff: Option<Bootstrap>,
    /// The branch on which a step that was cut is kept.
    pub salvage: Option<String>,
    /// The issue that a claim would take now.
    pub next_target: Option<String>,
    /// How many witness files there are, and whether an observation is.
    pub witnesses: usize,
    /// Whether `artifacts/observation/latest.json` is there.
    pub observation: bool,
    /// What a person should know of this worktree.
    pub warnings: Vec<String>,
}

/// A lane that could not be booted; nothing was dispatched to it.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The worktree is not one, or git refuses.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Another process holds the worktree, or a file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session or the ledger cannot be read or written.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// The branch that work lands on cannot be used.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// The supervisor cannot be started.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The runtime cannot be made.
    #[error("cannot make the lane's runtime")]
    Runtime(#[source] std::io::Error),
    /// The active issues wait for each other in a circle.
    #[error("the active issues wait for each other in a circle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The worktree belongs to another repository.
    #[error("{worktree} is no worktree of {repository}")]
    Foreign {
        /// The worktree.
        worktree: PathBuf,
        /// The repository root.
        repository: PathBuf,
    },
    /// Files go through a filter that is not run here.
    #[error(
        "{worktree} has files that go through the git filter `{filter}`, which is not run here"
    )]
    Filter {
        /// The worktree.
        worktree: PathBuf,
        /// The filter's name.
        filter: String,
    },
    /// Somebody's own changes are in the worktree.
    #[error("{worktree} holds changes that no step of ours made: {}", .paths.join(", "))]
    Dirty {
        /// The worktree.
        worktree: PathBuf,
        /// The paths, at most ten.
        paths: Vec<String>,
    },
    /// Somebody went on in the worktree of a step that was cut.
    #[error(
        "{worktree} has changes that are later than its step {step_id}, which was cut, could have made"
    )]
    Moved {
        /// The worktree.
        worktree: PathBuf,
        /// The step.
        step_id: String,
        /// The session that records it.
        session: PathBuf,
    },
    /// A boot command or the startup verification did not pass.
    #[error("the {phase} command did not pass: {}", .classes.join(", "))]
    Command {
        /// Which one.
        phase: &'static str,
        /// Its classes.
        classes: Vec<String>,
        /// Where its output is.
        output: PathBuf,
    },
    /// A boot command could not be run or witnessed.
    #[error("cannot run the {phase} command: {detail}")]
    Unrun {
        /// Which one.
        phase: &'static str,
        /// What stands against it.
        detail: String,
        /// The class.
        class: FailureClass,
    },
}

impl BootError {
    /// Returns the failure class.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Tree(_) | Self::Foreign { .. } | Self::Filter { .. } => {
                FailureClass::WorktreeInvalid
            }
            Self::Store(StoreError::LockBusy { .. }) => FailureClass::WorktreeBusy,
            Self::Store(error) => error.class(),
            Self::Projection(error) => error.class(),
            Self::Landing(error) => error.class(),
            Self::Supervisor(error) => error.class(),
            Self::Runtime(_) => FailureClass::ExecutorUnavailable,
            Self::Cycle(_) => FailureClass::DependencyCycle,
            Self::Dirty { .. } | Self::Moved { .. } => FailureClass::WorktreeDirty,
            Self::Command { phase, .. } => {
                if *phase == Phase::Startup.name() {
                    FailureClass::StartupCheckFailed
                } else {
                    FailureClass::HookFailed
                }
            }
            Self::Unrun { class, .. } => *class,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Dirty { .. } => Some(
                "commit, stash or remove them; the harness never touches what is not its own"
                    .to_owned(),
            ),
            Self::Store(StoreError::LockBusy { .. }) => Some(
                "another harness works in this worktree; name other worktrees, or end it"
                    .to_owned(),
            ),
            Self::Command { output, .. } => Some(format!("its output is in {}", output.display())),
            Self::Filter { .. } => Some(
                "its files would be committed raw; work in a repository without such a filter"
                    .to_owned(),
            ),
            Self::Moved { session, .. } => Some(format!(
                "if they are yours to keep, remove {} and run again",
                session.display()
            )),
            Self::Cycle(_) => Some("`premath dep remove` takes an edge away".to_owned()),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}

impl Lane {
    /// Boots a lane on a worktree.
    ///
    /// `tolerate_cycle` is for a batch that is resumed: a circle that appeared
    /// in its middle holds its members, and the rest goes on.
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
        let tree = Tree::open(&worktree)?;
        if let Some(filter) = tree.external_filters()? {
            return Err(BootError::Filter { worktree, filter });
        }
        let repository = &batch.settings.roots.repository;
        if roots::main_worktree(&worktree)?.as_ref() != Some(repository)
            && roots::main_worktree(repository)? != roots::main_worktree(&worktree)?
        {
            return Err(BootError::Foreign {
                worktree,
                repository: repository.clone(),
            });
        }
        let mut roots = LaneRoots::at(&worktree);
        if let Some(path) = &batch.settings.session_path {
            roots.session = worktree.join(path);
        }
        if let Some(path) = &batch.settings.ledger_path {
            roots.ledger = worktree.join(path);
        }
        let lock = WorktreeLock::acquire(&worktree, PREDECESSOR)?;
        roots.prepare()?;
        roots::exclude_from_status(&worktree)?;
        let diagnosis = batch.memory.diagnose(Scope::Active)?;
        if let Some(path) = diagnosis.cycle_path
            && !tolerate_cycle
        {
            return Err(BootError::Cycle(
                path.iter().map(ToString::to_string).collect(),
            ));
        }
        let session = projection::read_session(&roots.session)?;
        let ledger = projection::read_ledger(&roots.ledger)?;
        let handoff = session
            .as_ref()
            .map(|session| bootstrap(session, ledger.as_ref()));
        let shared = lock.share().map_err(|source| StoreError::LockIo {
            path: worktree.clone(),
            source,
        })?;
        let supervisor = Supervisor::start(&batch.program, shared)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BootError::Runtime)?;
        let mut lane = Self {
            batch,
            worker_id: worker_id.to_owned(),
            worktree,
            roots,
            tree,
            supervisor,
            runtime,
            session,
            step_index: 0,
            lock,
        };
        let salvage = lane.take_up()?;
        lane.refuse_dirty()?;
        lane.to_the_target()?;
        lane.tree.settle_index();
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
        lane.write_session(SessionWrite {
            state: SessionState::Active,
            issue_id: Some(String::new()),
            summary: Some("booted".to_owned()),
            next_step: Some(next_target.as_ref().map_or_else(
                || "nothing is ready".to_owned(),
                |issue| format!("claim {issue}"),
            )),
            issues_path: Some(issues_path),
            issues_snapshot_ref: Some(snapshot),
            worker_id: Some(worker),
            batch_id: Some(batch_id),
            step: StepWrite::Clear,
            ..SessionWrite::default()
        })?;
        let ready = lane
            .boot_setup()
            .and_then(|()| lane.boot_command(Phase::Boot))
            .and_then(|()| lane.boot_command(Phase::Startup))
            .and_then(|()| lane.refuse_dirty());
        if let Err(error) = ready {
            lane.write_session(SessionWrite {
                state: SessionState::Stopped,
                summary: Some(format!("not booted: {error}")),
                ..SessionWrite::default()
            })?;
            return Err(error);
        }
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

    /// Says what a person should know of the worktree.
    fn warnings(&self) -> Vec<String> {
        let issues = self.batch.memory.path();
        let tracked = issues
            .strip_prefix(&self.worktree)
            .is_ok_and(|path| self.tree.tracks(path));
        let mut warnings = Vec::new();
        if tracked {
            warnings.push(format!(
                "{} is tracked in the checkout that the lane works in: a `git stash` or `git reset` \
                 of the work command takes it back; a linked worktree is safe from that",
                issues.display()
            ));
        }
        if let Ok(paths) = self.tree.tracked_ours()
            && let Some(first) = paths.iter().find(|path| path.starts_with("artifacts/"))
        {
            warnings.push(format!(
                "{first} is tracked, but what lies in artifacts/ is never committed or put back"
            ));
        }
        if self.tree.submodules().unwrap_or(false) {
            warnings.push(
                "the repository has submodules: a step that moves one is refused, and its pointer is never committed"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Takes up what a killed harness left in this worktree: what its step did
    /// is salvaged, and the tree goes back to the step's base, unless that
    /// step had closed its issue.
    fn take_up(&mut self) -> Result<Option<String>, BootError> {
        let cut = match &self.session {
            Some(session) if session.state == SessionState::Active => session.step.clone(),
            _ => None,
        };
        let Some(step) = cut else {
            return Ok(None);
        };
        let closed = self.batch.memory.view(|view| {
            view.issue(&step.issue_id)
                .is_some_and(|issue| issue.closed_by_step.as_deref() == Some(&step.step_id))
        })?;
        if self.session.as_ref().and_then(|s| s.next_step.as_deref()) != Some(TAKING_UP) {
            self.refuse_moved(&step)?;
        }
        let base = if closed {
            self.tree.base()?
        } else {
            Base {
                commit: step.base_commit.clone(),
                branch: step.base_branch.clone(),
            }
        };
        // Should this be cut in turn, what it did is not taken for a person's.
        self.write_session(SessionWrite {
            state: SessionState::Active,
            next_step: Some(TAKING_UP.to_owned()),
            ..SessionWrite::default()
        })?;
        let salvage = self.back_to(&base, &step)?;
        self.leave_branch(&step, closed);
        Ok(salvage)
    }

    /// Refuses a worktree in which somebody went on after the step that was cut
    /// was over for certain: going back to its base would move their work away.
    fn refuse_moved(&self, step: &SessionStep) -> Result<(), BootError> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let limits = &self.batch.settings.limits;
        let margin = limits.verify + limits.grace * 3 + Duration::from_secs(60);
        // A step does not outlive its lease; one that closed its issue has none.
        let over = self.batch.memory.view(|view| {
            let row = view.row(&step.issue_id)?;
            let at = match &row.issue.lease {
                Some(lease) if lease.generation == step.generation => lease.expires_at.to_string(),
                _ if row.issue.closed_by_step.as_deref() == Some(&step.step_id) => {
                    row.text_of("closed_at")
                }
                _ => return None,
            };
            premath_kernel::time::parse(&at)
        })?;
        let (from, longest) = match over {
            Some(at) => (at, margin),
            None => (
                session.updated_at.time(),
                limits.step + limits.verify + margin,
            ),
        };
        let last = from.saturating_add(longest).unwrap_or(from);
        if self
            .tree
            .last_touched(&step.base_commit, clock::now().wall)?
            <= last
        {
            return Ok(());
        }
        Err(BootError::Moved {
            worktree: self.worktree.clone(),
            step_id: step.step_id.clone(),
            session: self.roots.session.clone(),
        })
    }

    /// Salvages and restores.
    pub(super) fn back_to(
        &self,
        base: &Base,
        step: &SessionStep,
    ) -> Result<Option<String>, TreeError> {
        let lease = format!("{}#{}", step.lease_id, step.generation);
        let text = CommitText {
            issue_id: &step.issue_id,
            title: "cut or failed step",
            lease: &lease,
            step_id: &step.step_id,
            witness: None,
        };
        let since = self
            .session
            .as_ref()
            .map(|session| session.updated_at.time());
        let salvage = self.tree.take_back(base, step.generation, &text, since)?;
        self.tree.must_be_clean()?;
        Ok(salvage.map(|salvage| salvage.to_string()))
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
            commit: landing.tip()?,
            branch: None,
        };
        self.tree.start_at(&base, &self.worker_id, 0)?;
        Ok(())
    }

    /// Refuses a tree with somebody's own changes.
    pub(super) fn refuse_dirty(&self) -> Result<(), BootError> {
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

    fn boot_setup(&mut self) -> Result<(), BootError> {
        self.on_boot(Phase::Setup, |lane, occasion| lane.set_up(occasion, None))
    }

    fn boot_command(&mut self, phase: Phase) -> Result<(), BootError> {
        let hooks = &self.batch.settings.hooks;
        let command = match phase {
            Phase::Startup => hooks.startup.clone(),
            _ => hooks.boot.clone(),
        };
        let Some(command) = command else {
            return Ok(());
        };
        self.on_boot(phase, |lane, occasion| {
            lane.run(phase, &command, occasion, None, None).map(Some)
        })
    }

    /// Runs what a boot runs; it must pass.
    fn on_boot(
        &mut self,
        phase: Phase,
        run: impl FnOnce(&mut Self, &Occasion<'_>) -> Result<Option<Ran>, CommandError>,
    ) -> Result<(), BootError> {
        let stamp = clock::now().wall.as_microsecond();
        let step_id = format!("{}.boot.{stamp}", self.worker_id);
        let variables: [(&str, OsString); 4] = [
            ("PREMATH_WORKTREE", self.worktree.clone().into()),
            ("PREMATH_WORKER_ID", self.worker_id.clone().into()),
            (
                "PREMATH_HARNESS_SESSION_PATH",
                self.roots.session.clone().into(),
            ),
            ("PREMATH_ISSUES_PATH", self.batch.memory.path().into()),
        ];
        let occasion = Occasion {
            step_id: &step_id,
            issue_id: "",
            generation: 0,
            variables: &variables,
        };
        let ran = run(self, &occasion).map_err(|error: CommandError| BootError::Unrun {
            phase: phase.name(),
            class: error.class(),
            detail: error.to_string(),
        })?;
        let Some(ran) = ran else { return Ok(()) };
        if ran.survivors > 0 {
            return Err(BootError::Unrun {
                phase: phase.name(),
                class: FailureClass::SupervisorLost,
                detail: format!("{} process(es) of it could not be ended", ran.survivors),
            });
        }
        if ran.passed() {
            return Ok(());
        }
        let streams = &self.batch.settings.roots.streams;
        Err(BootError::Command {
            phase: phase.name(),
            classes: ran.classes,
            output: crate::witness::file(streams, &step_id, phase.name(), "stderr"),
        })
    }
}
