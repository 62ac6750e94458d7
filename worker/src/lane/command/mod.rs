//! A command of the lane: run under its supervisor, watched, classified,
//! witnessed (`contracts.md` 7, `agents.md`).

mod feed;
mod finished;
mod hooked;
mod limit;
mod phase;
mod watch;

pub(crate) use limit::TimeLimit;
pub(crate) use phase::Phase;

use super::Lane;
use super::confine::{ConfineError, KeptHome};
use super::listener::{Listener, spent};
use super::push;
use super::watch::LeaseWatch;
use crate::environment;
use crate::interrupt::LOOK;
use crate::supervisor::{CommandSpec, Exit, SupervisorError, shell};
use crate::witness;
use finished::FinishedCommand;
use hooked::HookedTurn;
use premath_evidence::{Agent, FoldedStream, HookJournal, RunSpending, ShellCall};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::policy::budget::Budget;
use premath_memory::{StoreError, artifact, clock};
use premath_worktree::tree::TreeState;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use watch::CommandWatch;

/// How often an agent's stream is read on. The supervisor writes it into a file,
/// which tells nothing of what is added to it.
const LISTEN: Duration = Duration::from_millis(50);

/// Why a command was ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The lease could not be relied on any more.
    Lease(FailureClass),
    /// The batch ends.
    Interrupt,
    /// An operator cancelled the attempt.
    Cancelled,
    /// What the verification assumes does not hold any more.
    Superseded,
}

/// A command that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) cut: Option<Cut>,
    /// The failure classes; empty if the command passed.
    pub(crate) classes: Vec<String>,
    pub(crate) call: ShellCall,
    pub(crate) witness_ref: String,
    /// HEAD and tree as the command left them.
    pub(crate) after: TreeState,
    /// Processes that could not be ended: the worktree cannot be trusted.
    pub(crate) survivors: u32,
    /// What the agent's event stream amounts to, where it printed one.
    pub(crate) stream: Option<FoldedStream>,
    /// What the agent's hooks reported, where it has any.
    pub(crate) hooks: Option<HookJournal>,
    /// How long it ran.
    pub(crate) took: Duration,
}

impl Ran {
    pub(crate) fn passed(&self) -> bool {
        self.classes.is_empty() && self.cut.is_none()
    }
}

/// A command could not be run or witnessed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tree(#[from] premath_worktree::tree::TreeError),
    #[error("cannot read the event stream {path}")]
    Stream {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Confine(#[from] ConfineError),
}

impl CommandError {
    pub(crate) fn class(&self) -> FailureClass {
        match self {
            Self::Supervisor(error) => error.class(),
            Self::Store(_) | Self::Stream { .. } => FailureClass::ProjectionStoreIo,
            Self::Tree(error) => error.class(),
            Self::Confine(error) => error.class(),
        }
    }
}

/// What a command belongs to.
pub(crate) struct CommandOwner<'a> {
    pub(crate) step_id: &'a StepId,
    pub(crate) issue_id: &'a IssueId,
    pub(crate) generation: u64,
    pub(crate) variables: &'a [(&'a str, OsString)],
    /// The agent; `None` if no work command belongs to it.
    pub(crate) task: Option<Task<'a>>,
}

/// What the work command of a step is.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    /// Whose event stream it prints.
    pub(crate) agent: Option<Agent>,
    /// The digest of its prompt.
    pub(crate) prompt_digest: &'a str,
    /// What the work used before.
    pub(crate) used: WorkUse,
    /// What the agent's session used in earlier attempts.
    pub(crate) session_used: RunSpending,
}

/// What earlier rounds of a step's work used: it counts against what the step
/// may.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkUse {
    /// What the agent reported.
    pub(crate) spent: RunSpending,
    /// How long it worked.
    pub(crate) worked: Duration,
    /// How long the step ran.
    pub(crate) own_time: Duration,
    /// How many calls were allowed.
    pub(crate) calls: u64,
}

impl CommandOwner<'_> {
    /// Returns the agent whose event stream a phase's command prints.
    pub(in crate::lane) fn agent(&self, phase: Phase) -> Option<Agent> {
        self.task(phase).and_then(|task| task.agent)
    }

    fn task(&self, phase: Phase) -> Option<Task<'_>> {
        self.task.filter(|_| phase.is_work())
    }

    /// Returns what the work used before a phase; nothing but for the work.
    pub(in crate::lane) fn used(&self, phase: Phase) -> WorkUse {
        self.task(phase).map(|task| task.used).unwrap_or_default()
    }

    /// Returns what the agent's session used so far, in all attempts.
    fn session_used(&self, phase: Phase) -> RunSpending {
        let earlier = self.task(phase).map(|task| task.session_used);
        let earlier = earlier.unwrap_or_default();
        earlier.plus(self.used(phase).spent)
    }

    fn prompt_digest(&self, phase: Phase) -> Option<String> {
        self.task(phase).map(|task| task.prompt_digest.to_owned())
    }
}

impl Lane {
    /// Runs a command to its end and writes its witness.
    pub(crate) fn run(
        &mut self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
        before: Option<TreeState>,
        lease: Option<&mut LeaseWatch>,
    ) -> Result<Ran, CommandError> {
        // What is known is not looked at again: a look hashes all that changed.
        let before = match before {
            Some(known) => known,
            None => self.tree_of(phase).state()?,
        };
        let budget = self.budget_of(phase, owner);
        let limit = self.time_limit(phase, owner, &budget);
        let mut spec = self.spec(phase, command, owner, limit.time);
        let kept = self.kept_for(phase, &mut spec);
        let mut confined = self.confine(phase, command, owner, (&mut spec, kept))?;
        let sandbox_ref = confined.reference.clone();
        self.touch_checkout(phase, &before.head)?;
        self.look_again_after(phase);
        self.link_git_folder(phase)?;
        let environment_names = names_of(&spec);
        let streams = &self.batch.settings.roots.streams;
        let [stdout, stderr] = ["stdout", "stderr"]
            .map(|stream| witness::file(streams, owner.step_id, phase.name(), stream));
        let files = (
            artifact::open_stream(&stdout)?,
            artifact::open_stream(&stderr)?,
        );
        let mut watch = CommandWatch::new(phase, lease, self.batch.interrupt.clone(), &stdout);
        if let Some(agent) = owner.agent(phase) {
            let file = files.0.try_clone().map_err(|source| watch.unread(source))?;
            let limits = &self.batch.settings.limits;
            let listener = Listener::new(agent, file, limits, budget);
            watch.listener = Some(listener.after(owner.session_used(phase)));
            watch.feed = Some(self.feed_of(owner.used(phase)));
        }
        self.note_command(phase, limit.time);
        let started_at = clock::now().wall;
        let exit = self.supervise(spec, files, &mut watch);
        self.batch
            .note_step(&self.worker_id, |step| step.command = None);
        let exit = exit?;
        let finished_at = clock::now().wall;
        let hooks = confined.take_hooks().map(HookedTurn::end).transpose()?;
        let (network, kept) = confined.end(self.keeps_home(phase, command, owner));
        self.kept = kept.or(self.kept.take());
        self.unlink_git_folder(phase)?;
        let watched = watch.end(&exit)?;
        let finished = FinishedCommand {
            phase,
            command,
            owner,
            exit: &exit,
            limit,
            watched,
            environment_names,
            sandbox_ref,
            started_at,
            finished_at,
            before: &before,
            stdout,
            stderr,
            network,
            hooks,
        };
        self.witnessed(finished)
    }

    /// Has the trees looked at again after a command that may change them.
    fn look_again_after(&self, phase: Phase) {
        if !phase.is_verification() || !self.is_worktree_ours() {
            self.tree.before_command();
        }
        if !self.is_checkout_ours() {
            self.site.checkout.tree().before_command();
        }
    }

    /// Returns what is left of what a command may use; no bound but for the work.
    fn budget_of(&self, phase: Phase, owner: &CommandOwner<'_>) -> Budget {
        let used = owner.used(phase);
        match phase.is_work() {
            true => self
                .batch
                .left_of(owner.issue_id)
                .left(spent(used.spent), used.own_time),
            false => Budget::default(),
        }
    }

    /// Returns how long a command may run.
    fn time_limit(&self, phase: Phase, owner: &CommandOwner<'_>, budget: &Budget) -> TimeLimit {
        let limits = &self.batch.settings.limits;
        match phase.is_work() {
            true => TimeLimit::of_work(limits.step, owner.used(phase).worked, budget.time),
            false => TimeLimit::of_other(limits.verify),
        }
    }

    /// Returns whether the home of a command stays, for the agent may be run again
    /// in its session.
    fn keeps_home(&self, phase: Phase, command: &str, owner: &CommandOwner<'_>) -> bool {
        let agent = owner.agent(phase);
        agent.is_some_and(|agent| self.batch.settings.keeps_session(agent, command))
    }

    /// Returns the home of the agent's session for a later round of its work.
    /// Other commands leave it where it is.
    fn kept_for(&mut self, phase: Phase, spec: &mut CommandSpec) -> Option<KeptHome> {
        let left = self.left.iter().filter_map(|left| left.home.as_ref());
        let left = left.map(|home| home.whole().to_path_buf());
        spec.scratch.extend(left);
        if phase.is_work() {
            return self.kept.take();
        }
        let kept = self.kept.iter().map(|kept| kept.whole().to_path_buf());
        spec.scratch.extend(kept);
        None
    }

    /// Deletes the home of the agent's session.
    pub(crate) fn forget_session(&mut self) {
        self.kept = None;
    }

    /// Describes the command to the supervisor, with its bounds.
    fn spec(
        &self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
        limit: Duration,
    ) -> CommandSpec {
        let settings = &self.batch.settings;
        let limits = &settings.limits;
        let mut spec = shell(command);
        spec.cwd = self.seen_by(phase).to_path_buf();
        spec.env = environment::of_command(
            settings.inherited(),
            &settings.environment,
            phase.is_work(),
            owner.variables,
        );
        spec.limit = limit;
        spec.grace = limits.grace;
        if phase == Phase::Push {
            spec.release = push::RELEASE;
        }
        spec.output_cap = limits.output_cap;
        spec.stream_cap = owner.agent(phase).map(|_| limits.stream_cap);
        spec.env.extend(environment::of_lane(self.index));
        spec.env.sort();
        let folder = self.seen_by(phase).as_os_str().to_owned();
        for (name, value) in &mut spec.env {
            if name == "PREMATH_WORKTREE" {
                value.clone_from(&folder);
            }
        }
        spec
    }

    /// Has the supervisor run a command to its end; the watch may cut it.
    fn supervise(
        &mut self,
        spec: CommandSpec,
        files: (File, File),
        watch: &mut CommandWatch<'_>,
    ) -> Result<Exit, CommandError> {
        let supervisor = &mut self.supervisor;
        let interrupt = self.batch.interrupt.clone();
        let look = match watch.listener {
            Some(_) => LISTEN,
            None => LOOK,
        };
        self.runtime.block_on(async {
            let mut running = supervisor.begin(spec, files.0, files.1).await?;
            loop {
                let woken = interrupt.woken();
                if let Some(stop) = watch.look()? {
                    running.stop(stop.is_kill()).await?;
                }
                tokio::select! {
                    biased;
                    exit = running.wait() => return Ok(exit?),
                    () = woken => {}
                    () = tokio::time::sleep(look) => {}
                }
            }
        })
    }
}

/// Returns the names of the variables of a command.
fn names_of(spec: &CommandSpec) -> Vec<String> {
    let names = spec.env.iter().map(|(name, _)| name.to_string_lossy());
    names.map(|name| name.into_owned()).collect()
}
