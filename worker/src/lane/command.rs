//! A command of the lane: run under its supervisor, watched, classified,
//! witnessed (`contracts.md` 7, `agents.md`).

use super::Lane;
use super::confine::ConfineError;
use super::listener::Listener;
use super::saying::Saying;
use super::watch::LeaseWatch;
use crate::environment;
use crate::interrupt::Level;
use crate::supervisor::{Exit, ExitCause, SupervisorError, shell};
use crate::witness;
use premath_evidence::{Agent, AgentEnd, CallEnd, FoldedStream, ShellCall};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::budget::Budget;
use premath_kernel::policy::landing::ROUNDS;
use premath_kernel::policy::network::{NetworkFacts, NetworkPhase};
use premath_kernel::policy::retry::{self, class_words, classes_of};
use premath_kernel::policy::silence::AgentTimeout;
use premath_kernel::record::witness::{CommandFacts, CommandWitness};
use premath_memory::{StoreError, artifact, clock};
use premath_worktree::tree::TreeState;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a running command's lease and the interrupt are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Which command of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Boot,
    Startup,
    Work,
    Verify,
    /// The verification of work and target together, in one of its rounds.
    Land(usize),
    /// The check of what landed.
    Landed,
    /// The push of the landing target.
    Push,
    Setup,
    /// The setup of the checkout for verifications.
    VerifySetup,
    /// The verification of the operator's base, for the build state it leaves.
    Warm,
    /// The verification of the last commit, without any build state.
    Tip,
    Stop,
}

impl Phase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Startup => "startup",
            Self::Work => "work",
            Self::Verify => "verify",
            Self::Land(round) => {
                ROUNDS[if round < ROUNDS.len() {
                    round
                } else {
                    ROUNDS.len() - 1
                }]
            }
            Self::Landed => "landed",
            Self::Push => "push",
            Self::Setup => "setup",
            Self::VerifySetup => "verify-setup",
            Self::Warm => "warm",
            Self::Tip => "tip",
            Self::Stop => "stop",
        }
    }

    /// Returns whether the command runs in the checkout for verifications.
    pub(crate) const fn is_verification(self) -> bool {
        matches!(
            self,
            Self::Startup
                | Self::Verify
                | Self::Land(_)
                | Self::Landed
                | Self::VerifySetup
                | Self::Warm
                | Self::Tip
        )
    }

    /// Returns whose network policy the command has.
    pub(crate) const fn network(self) -> NetworkPhase {
        if self.is_verification() {
            NetworkPhase::Verify
        } else {
            NetworkPhase::Work
        }
    }

    /// How far an interrupt must go to end the command: before the first step
    /// there is nothing to finish.
    const fn cut_at(self) -> Level {
        match self {
            Self::Boot | Self::Startup | Self::Warm => Level::Drain,
            Self::Work
            | Self::Verify
            | Self::Land(_)
            | Self::Landed
            | Self::Push
            | Self::Setup
            | Self::VerifySetup
            | Self::Tip
            | Self::Stop => Level::Kill,
        }
    }

    /// The class of a failure that has no better one.
    const fn class(self) -> FailureClass {
        match self {
            Self::Boot | Self::Setup | Self::VerifySetup | Self::Stop => FailureClass::HookFailed,
            Self::Startup => FailureClass::StartupCheckFailed,
            Self::Work => FailureClass::WorkFailed,
            Self::Verify | Self::Warm => FailureClass::CheckFailed,
            Self::Land(_) | Self::Landed | Self::Tip => FailureClass::LandingCheckFailed,
            Self::Push => FailureClass::LandingPushFailed,
        }
    }
}

/// Why a command was ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The lease could not be relied on any more.
    Lease(FailureClass),
    /// A person asked for it.
    Interrupt,
}

/// A command that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) cut: Option<Cut>,
    /// Empty where it passed.
    pub(crate) classes: Vec<String>,
    pub(crate) call: ShellCall,
    pub(crate) witness_ref: String,
    /// HEAD and tree as the command left them.
    pub(crate) after: TreeState,
    /// Processes that could not be ended: the worktree cannot be trusted.
    pub(crate) survivors: u32,
    /// What the agent's event stream amounts to, where it printed one.
    pub(crate) stream: Option<FoldedStream>,
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
pub(crate) struct Occasion<'a> {
    pub(crate) step_id: &'a str,
    pub(crate) issue_id: &'a str,
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
}

impl Occasion<'_> {
    fn task(&self, phase: Phase) -> Option<Task<'_>> {
        self.task.filter(|_| phase == Phase::Work)
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
        occasion: &Occasion<'_>,
        before: Option<TreeState>,
        mut watch: Option<&mut LeaseWatch>,
    ) -> Result<Ran, CommandError> {
        // What is known is not looked at again: a look hashes all that changed.
        let before = match before {
            Some(known) => known,
            None => self.tree_of(phase).state()?,
        };
        let batch = self.batch.clone();
        let limits = &batch.settings.limits;
        let mut spec = shell(command);
        spec.cwd = self.seen_by(phase).to_path_buf();
        spec.env = environment::of_command(
            self.batch.settings.inherited(),
            &self.batch.settings.environment,
            phase == Phase::Work,
            occasion.variables,
        );
        spec.limit = if phase == Phase::Work {
            limits.step
        } else {
            limits.verify
        };
        let budget = match phase {
            Phase::Work => self.batch.left_of(occasion.issue_id),
            _ => Budget::default(),
        };
        spec.limit = spec.limit.min(budget.time.unwrap_or(Duration::MAX));
        spec.grace = limits.grace;
        spec.output_cap = limits.output_cap;
        let agent = occasion.task(phase).and_then(|task| task.agent);
        spec.stream_cap = agent.map(|_| limits.stream_cap);
        let folder = self.seen_by(phase).as_os_str().to_owned();
        for (name, value) in &mut spec.env {
            if name == "PREMATH_WORKTREE" {
                value.clone_from(&folder);
            }
        }
        let confined = self.confine(phase, command, occasion, &mut spec)?;
        let sandbox_ref = confined.reference.clone();
        self.touch_checkout(phase, &before.head)?;
        self.lead_in(phase)?;
        let limit = spec.limit;
        let names = spec
            .env
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect::<Vec<_>>();
        let streams = &self.batch.settings.roots.streams;
        let stdout = witness::file(streams, occasion.step_id, phase.name(), "stdout");
        let stderr = witness::file(streams, occasion.step_id, phase.name(), "stderr");
        let (out, err) = (
            artifact::open_stream(&stdout)?,
            artifact::open_stream(&stderr)?,
        );
        let unread = |source| CommandError::Stream {
            path: stdout.clone(),
            source,
        };
        let mut listener = match agent {
            None => None,
            Some(agent) => {
                let file = out.try_clone().map_err(unread)?;
                Some(Listener::new(agent, file, limits, budget))
            }
        };
        let started_at = clock::now().wall;
        let interrupt = self.batch.interrupt.clone();
        let supervisor = &mut self.supervisor;
        let mut overdue = None;
        let (exit, mut cut) = self.runtime.block_on(async {
            let mut running = supervisor.begin(spec, out, err).await?;
            let mut cut = None;
            let mut look = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    biased;
                    exit = running.wait() => {
                        return Ok::<(Exit, Option<Cut>), CommandError>((exit?, cut));
                    }
                    _ = look.tick() => {}
                }
                if cut.is_none()
                    && let Some(watch) = watch.as_deref_mut()
                    && let Err(class) = watch.look()
                {
                    cut = Some(Cut::Lease(class));
                    running.stop(true).await?;
                }
                if cut.is_none() && interrupt.level() >= phase.cut_at() {
                    cut = Some(Cut::Interrupt);
                    running.stop(false).await?;
                }
                if cut.is_none()
                    && overdue.is_none()
                    && let Some(listener) = &mut listener
                {
                    overdue = listener.look().map_err(unread)?;
                    if overdue.is_some() {
                        running.stop(false).await?;
                    }
                }
            }
        })?;
        let finished_at = clock::now().wall;
        let network = confined.end();
        self.lead_out(phase)?;
        // A process that was stopped for long wakes up to an exit and a lease
        // that is over: the lease counts.
        if cut.is_none()
            && let Some(watch) = watch
            && let Err(class) = watch.look()
        {
            cut = Some(Cut::Lease(class));
        }
        // What ended by itself before the signal reached it was not cut.
        if exit.cause != ExitCause::Stopped {
            cut = cut.filter(|cut| *cut != Cut::Interrupt);
            overdue = None;
        }
        let stream = listener.map(Listener::finish).transpose().map_err(unread)?;
        let classes = match cut {
            Some(Cut::Lease(class)) => vec![class.as_str().to_owned()],
            Some(Cut::Interrupt) => vec![FailureClass::StepInterrupted.as_str().to_owned()],
            None => match &stream {
                None => self.classify(phase, &exit, &stdout, &stderr),
                Some(stream) => self.classify_agent(&exit, &stderr, stream, overdue),
            },
        };
        // The whole stream is kept; its digest is over the bytes that came.
        let stdout = match &stream {
            None => stdout,
            Some(_) => artifact::compress(&stdout)?,
        };
        // What a verification leaves in its checkout is never looked at.
        let after = match phase.is_verification() {
            true => before.clone(),
            false => self.tree.state_on(&before.head)?,
        };
        self.witnessed(
            phase,
            command,
            occasion,
            Outcome {
                exit: &exit,
                limit,
                classes,
                cut,
                names: &names,
                sandbox_ref,
                started_at,
                finished_at,
                before: &before,
                after: &after,
                stdout: &stdout,
                stderr: &stderr,
                stream,
                overdue,
                network,
            },
        )
    }

    /// Names the classes of an end (`contracts.md` 7); none where it passed.
    fn classify(&self, phase: Phase, exit: &Exit, stdout: &Path, stderr: &Path) -> Vec<String> {
        if exit.is_unconfined() {
            return vec![FailureClass::SandboxUnavailable.as_str().to_owned()];
        }
        let [out, err] = [(&exit.stdout, stdout), (&exit.stderr, stderr)]
            .map(|(report, path)| witness::said(report, path));
        let words = class_words(&err, &out, &|word| self.knows(word));
        classes_of(&witness::end(exit), words, phase.class())
    }

    /// Names the classes of an agent's end. What it prints is its stream, so
    /// that only its errors name a class.
    fn classify_agent(
        &self,
        exit: &Exit,
        stderr: &Path,
        stream: &FoldedStream,
        overdue: Option<AgentTimeout>,
    ) -> Vec<String> {
        if exit.is_unconfined() {
            return vec![FailureClass::SandboxUnavailable.as_str().to_owned()];
        }
        let said = witness::said(&exit.stderr, stderr);
        let words = class_words(&said, &[], &|word| self.knows(word));
        let end = AgentEnd {
            command: &witness::end(exit),
            stream,
            overdue,
        };
        end.classes(words)
    }

    fn knows(&self, word: &str) -> bool {
        self.batch.settings.retry.knows(word) || word.parse::<FailureClass>().is_ok()
    }

    fn witnessed(
        &self,
        phase: Phase,
        command: &str,
        occasion: &Occasion<'_>,
        outcome: Outcome<'_>,
    ) -> Result<Ran, CommandError> {
        let command_digest = canonical::digest(&command);
        let workdir = self.seen_by(phase).to_string_lossy().into_owned();
        let exit = outcome.exit;
        let facts = CommandFacts {
            step_id: occasion.step_id.to_owned(),
            issue_id: occasion.issue_id.to_owned(),
            generation: occasion.generation,
            phase: phase.name().to_owned(),
            command_digest: command_digest.clone(),
            workdir: workdir.clone(),
            sandbox_ref: outcome.sandbox_ref.clone(),
            environment_names: outcome.names.to_vec(),
            exit: witness::end(exit),
            duration_ms: exit.duration_ms,
            leaked_processes: exit.leaked,
            surviving_processes: exit.survivors,
            failure_classes: outcome.classes.clone(),
            started_at: Stamp::at(outcome.started_at),
            finished_at: Stamp::at(outcome.finished_at),
            before: witness::tree(outcome.before),
            after: witness::tree(outcome.after),
            stdout: witness::stream(&exit.stdout, outcome.stdout),
            stderr: witness::stream(&exit.stderr, outcome.stderr),
            agent: outcome.stream.as_ref().map(FoldedStream::facts),
            network: outcome.network,
        };
        let witness = witness::write(
            &self.batch.settings.roots.witnesses,
            occasion.step_id,
            phase.name(),
            &CommandWitness::from(facts),
        )?;
        let end = match outcome.classes.first() {
            None => CallEnd::Ok,
            Some(class) => CallEnd::Error {
                class: class.clone(),
                retryable: !retry::decide(&self.batch.settings.retry, &outcome.classes, 1)
                    .is_escalation(),
                message: Saying {
                    exit,
                    limit: outcome.limit,
                    stream: outcome.stream.as_ref(),
                    overdue: outcome.overdue,
                    stdout: outcome.stdout,
                    stderr: outcome.stderr,
                }
                .line(),
            },
        };
        Ok(Ran {
            cut: outcome.cut,
            classes: outcome.classes.clone(),
            call: ShellCall {
                phase: phase.name(),
                command_digest,
                prompt_digest: occasion.prompt_digest(phase),
                workdir,
                sandbox_ref: outcome.sandbox_ref.clone(),
                exit_code: exit.code,
                signal: exit.signal,
                stdout_sha256: exit.stdout.sha256.clone(),
                stderr_sha256: exit.stderr.sha256.clone(),
                truncated: exit.stdout.truncated() || exit.stderr.truncated(),
                end: Some(end),
                witness_ref: witness.reference.clone(),
            },
            witness_ref: witness.reference,
            after: outcome.after.clone(),
            survivors: exit.survivors,
            stream: outcome.stream,
        })
    }
}

/// A command's end, on its way to the witness.
struct Outcome<'a> {
    exit: &'a Exit,
    /// How long it may run.
    limit: Duration,
    classes: Vec<String>,
    cut: Option<Cut>,
    names: &'a [String],
    sandbox_ref: Option<String>,
    started_at: jiff::Timestamp,
    finished_at: jiff::Timestamp,
    before: &'a TreeState,
    after: &'a TreeState,
    stdout: &'a Path,
    stderr: &'a Path,
    stream: Option<FoldedStream>,
    overdue: Option<AgentTimeout>,
    network: Option<NetworkFacts>,
}
