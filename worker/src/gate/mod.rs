//! `harness-worker gate -- COMMAND`: any command, run under a supervisor,
//! classified, tried again and handed up by the retry policy
//! (`contracts.md` 7).
//!
//! Its attempts are rows of the trajectory (`gate.begin`, `gate.attempt`,
//! `gate.take_over`), counted by the digest of command and folder until the
//! command passes or is handed up. What comes next is always read from there,
//! so a gate that was killed and started again continues where it was.

mod attempt;
mod escalate;
mod output;

use attempt::AttemptRun;
use premath_kernel::json::id::{IssueId, StepId, WorkerName};

use crate::exit;
use crate::interrupt::{Interrupt, Level};
use crate::settings::{GateFlags, GateSettings, SettingsError};
use crate::stderr::{failed, say};
use crate::supervisor::{Supervisor, SupervisorError};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::retry::{Decision, RetryOutcome, decide_within};
use premath_kernel::record::trajectory::{
    CommandSeries, NextAct, StepRow, gate_attempt_row, gate_begin_row, gate_take_over_row,
};
use premath_memory::{
    CommandLock, PREDECESSOR_WAIT, StoreError, Trajectory, TrajectoryFileError, clock,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often the wall clock is read while an attempt waits for its time.
const READ_CLOCK: Duration = Duration::from_secs(5);

/// Run a command under the retry policy; escalate its issue on failure
///
/// Attempts are counted in the trajectory, across restarts. The command gets no
/// input; its output is shown when it ends. Exit codes: 0 the command passed, 1
/// it failed, 2 usage error or unreadable input.
#[derive(Clone, Debug, clap::Args)]
pub struct GateArgs {
    #[command(flatten)]
    flags: GateFlags,
    /// Limit the attempts; the policy's rules may allow fewer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: Option<u32>,
    /// Set the issue to escalate
    ///
    /// [default: $PREMATH_ACTIVE_ISSUE_ID, $PREMATH_ISSUE_ID, the session's,
    /// the only ready one]
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// The command and its arguments; for a shell line use `sh -c LINE`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A gate that cannot continue.
#[derive(Debug, thiserror::Error)]
enum GateError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trajectory(#[from] TrajectoryFileError),
    #[error("cannot run the command")]
    Supervisor(#[from] SupervisorError),
    #[error("cannot {0}")]
    System(&'static str, #[source] std::io::Error),
    #[error("cannot kill {0} process(es) of the command")]
    Survivors(u32),
}

impl GateError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Settings(error) => error.hint(),
            Self::Store(error) | Self::Trajectory(TrajectoryFileError::Store(error)) => {
                error.hint()
            }
            _ => None,
        }
    }

    /// What cannot be read is usage; the rest is a failure.
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_)
            | Self::Store(
                StoreError::Corrupt { .. }
                | StoreError::Missing { .. }
                | StoreError::Repository { .. },
            )
            | Self::Trajectory(
                TrajectoryFileError::Row(_)
                | TrajectoryFileError::Store(StoreError::Corrupt { .. }),
            ) => exit::USAGE,
            _ => exit::FAILED,
        }
    }
}

/// Runs a gate to its end and returns the exit code.
pub fn main(arguments: &GateArgs, listen: impl FnOnce(Interrupt) -> std::io::Result<()>) -> u8 {
    let run = || {
        let settings = GateSettings::resolve(&arguments.flags, clock::now().wall)?;
        let interrupt = Interrupt::new(settings.limits.drain_grace);
        listen(interrupt.clone()).map_err(|source| GateError::System("listen", source))?;
        Gate::open(arguments, settings, interrupt)?.run()
    };
    match run() {
        Ok(true) => exit::OK,
        Ok(false) => exit::FAILED,
        Err(error) => failed(&error, error.hint(), error.exit_code()),
    }
}

/// A command under the retry policy.
struct Gate {
    settings: GateSettings,
    interrupt: Interrupt,
    trajectory: Trajectory,
    command: Vec<String>,
    command_digest: String,
    workdir: PathBuf,
    issue: Option<IssueId>,
    budget: Option<u32>,
    /// `gate.<digest>`: by which its rows are known.
    id: WorkerName,
    supervisor: Supervisor,
    runtime: Runtime,
    /// Held as long as the gate; the supervisor shares it.
    lock: CommandLock,
}

impl Gate {
    fn open(
        arguments: &GateArgs,
        settings: GateSettings,
        interrupt: Interrupt,
    ) -> Result<Self, GateError> {
        let workdir = std::fs::canonicalize(Path::new("."))
            .map_err(|source| GateError::System("find the folder", source))?;
        let key = canonical::ref_digest(&json!({
            "command": arguments.command,
            "workdir": workdir.to_string_lossy(),
        }));
        let id = WorkerName::from(format!("gate.{}", key.chars().take(16).collect::<String>()));
        settings.roots.prepare()?;
        let lock = settings.roots.streams.join(format!("{id}.flock"));
        let lock = CommandLock::acquire(lock, PREDECESSOR_WAIT)?;
        let shared = lock
            .share()
            .map_err(|source| GateError::System("share the lock", source))?;
        let supervisor = Supervisor::start(premath_platform::program::itself(), shared)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| GateError::System("start", source))?;
        Ok(Self {
            trajectory: Trajectory::open(&settings.roots.trajectory)?,
            settings,
            interrupt,
            command: arguments.command.clone(),
            command_digest: canonical::digest(&arguments.command),
            workdir,
            issue: arguments.issue.clone().map(IssueId::from),
            budget: arguments.max_attempts,
            id,
            supervisor,
            runtime,
            lock,
        })
    }

    /// Does what comes next until the command passed or was handed up; returns
    /// whether it passed.
    fn run(&mut self) -> Result<bool, GateError> {
        loop {
            let series = CommandSeries::fold(&self.trajectory.rows()?, &self.id);
            let now = clock::now().wall;
            match series.next(&self.settings.backoff) {
                NextAct::TakeOver { step_id } => {
                    say(&format!("{step_id} was interrupted: its harness died"));
                    self.append(gate_take_over_row(&self.id, &step_id, now))?;
                }
                NextAct::CountCuts { attempt } => {
                    let classes = [FailureClass::HarnessDied.as_str().to_owned()];
                    let decision = self.decide(&classes, attempt);
                    let step_id = StepId::from(format!("{}.cut.{}", self.id, series.begun()));
                    let row =
                        gate_attempt_row(&self.id, &step_id, &classes, Some(&decision), now, now);
                    self.append(row)?;
                }
                NextAct::Escalate(decision) => {
                    self.escalate(&series, &decision)?;
                    return Ok(false);
                }
                NextAct::Attempt { attempt, due } => {
                    if let Some(due) = due
                        && !self.wait_until(attempt, due)
                    {
                        say("interrupted; the next run continues the attempts");
                        return Ok(false);
                    }
                    match self.try_once(&series, attempt)? {
                        Tried::Passed => return Ok(true),
                        Tried::Cut => return Ok(false),
                        Tried::Failed => {}
                    }
                }
            }
        }
    }

    fn try_once(&mut self, series: &CommandSeries, attempt: u32) -> Result<Tried, GateError> {
        if self.interrupt.level() != Level::None {
            return Ok(Tried::Cut);
        }
        let step_id = StepId::from(format!("{}.{}", self.id, series.begun() + 1));
        let started_at = clock::now().wall;
        self.append(gate_begin_row(&self.id, &step_id, started_at))?;
        let ran = match self.attempt(&step_id, attempt) {
            Err(GateError::Supervisor(error)) => self.without_supervisor(&error)?,
            ran => ran?,
        };
        let interrupted = FailureClass::StepInterrupted.as_str();
        let was_cut = ran.classes.iter().any(|class| class == interrupted);
        let decision =
            (!ran.classes.is_empty() && !was_cut).then(|| self.decide(&ran.classes, attempt));
        let mut row = gate_attempt_row(
            &self.id,
            &step_id,
            &ran.classes,
            decision.as_ref(),
            started_at,
            clock::now().wall,
        );
        row.witness_refs.extend(&ran.witness_ref);
        self.append(row)?;
        if ran.survivors > 0 {
            return Err(GateError::Survivors(ran.survivors));
        }
        Ok(match decision {
            None if was_cut => {
                say("interrupted; the attempt does not count");
                Tried::Cut
            }
            None => Tried::Passed,
            Some(decision) => {
                say(&self.describe(&decision));
                Tried::Failed
            }
        })
    }

    /// Starts another supervisor: the command killed the first one, which is
    /// how the attempt failed.
    fn without_supervisor(&mut self, error: &SupervisorError) -> Result<AttemptRun, GateError> {
        say(&format!("error: {}", plain(&error.to_string())));
        let shared = self
            .lock
            .share()
            .map_err(|source| GateError::System("share the lock", source))?;
        self.supervisor.restart(shared)?;
        Ok(AttemptRun {
            classes: vec![error.class().as_str().to_owned()],
            witness_ref: None,
            survivors: 0,
        })
    }

    fn decide(&self, classes: &[String], attempt: u32) -> Decision {
        decide_within(&self.settings.retry, classes, attempt, self.budget)
    }

    fn describe(&self, decision: &Decision) -> String {
        let next = match decision.outcome {
            RetryOutcome::Retry => "to retry".to_owned(),
            RetryOutcome::Escalate(action) => action.as_str().to_owned(),
        };
        format!(
            "{}: attempt {} of {} ({}): {next}",
            plain(&decision.class),
            decision.attempt,
            decision.max_attempts,
            plain(&decision.rule_id),
        )
    }

    fn append(&self, mut row: StepRow) -> Result<(), GateError> {
        row.issue_id.clone_from(&self.issue);
        Ok(self.trajectory.append(&row)?)
    }

    /// Waits; returns whether it came to the time without an interrupt.
    fn wait_until(&self, attempt: u32, due: jiff::Timestamp) -> bool {
        if let Ok(left) = Duration::try_from(due.duration_since(clock::now().wall)) {
            say(&format!(
                "attempt {attempt} starts in {:.1}s",
                left.as_secs_f64()
            ));
        }
        while self.interrupt.level() == Level::None {
            let left = due.duration_since(clock::now().wall);
            let Ok(left) = Duration::try_from(left) else {
                return true;
            };
            if left.is_zero() {
                return true;
            }
            // The wall clock may jump: it is read again after a while.
            self.interrupt.wait(left.min(READ_CLOCK));
        }
        false
    }
}

/// The end of an attempt.
enum Tried {
    Passed,
    Failed,
    /// The attempt was interrupted.
    Cut,
}
