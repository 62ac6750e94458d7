//! One attempt: run, watched, classified, witnessed.

use super::output::replay;
use super::{Gate, GateError};
use crate::environment;
use crate::interrupt::{LOOK, Level};
use crate::stderr::say;
use crate::supervisor::{CommandSpec, Exit, ExitCause, SupervisorError};
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::StepId;
use premath_kernel::json::plain::plain;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::retry::{class_words, classes_of};
use premath_kernel::record::witness::{CommandFacts, CommandWitness, TreeFacts};
use premath_memory::roots::worktree_root;
use premath_memory::{artifact, clock};
use premath_worktree::tree::Tree;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

/// What a gate's commands are witnessed as.
const PHASE: &str = "gate";

/// Variables of the caller that name the issue, for what the command itself
/// may have to ask.
const PASSED_ON: [&str; 2] = ["PREMATH_ACTIVE_ISSUE_ID", "PREMATH_ISSUE_ID"];

/// An attempt that is over.
pub(super) struct AttemptRun {
    /// The failure classes; empty if the command passed.
    pub(super) classes: Vec<String>,
    /// None where its supervisor was lost.
    pub(super) witness_ref: Option<String>,
    pub(super) survivors: u32,
}

impl Gate {
    pub(super) fn attempt(
        &mut self,
        step_id: &StepId,
        attempt: u32,
    ) -> Result<AttemptRun, GateError> {
        let _span = tracing::error_span!("attempt", step = step_id.as_str(), attempt).entered();
        let before = self.tree();
        let spec = self.spec(attempt);
        let names: Vec<String> = spec
            .env
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        let streams = &self.settings.roots.streams;
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|stream| witness::file(streams, step_id, PHASE, stream));
        let files = (
            artifact::open_stream(&stdout)?,
            artifact::open_stream(&stderr)?,
        );
        let started_at = clock::now().wall;
        let exit = self.run_to_end(spec, files)?;
        let finished_at = clock::now().wall;
        replay(&stdout, &stderr);
        if let ExitCause::SpawnFailed { message, .. } = &exit.cause {
            say(&format!(
                "error: cannot start `{}`: {}",
                plain(self.command.first().map_or("", String::as_str)),
                plain(message)
            ));
        }
        let classes = self.classes(&exit, &stdout, &stderr);
        let facts = CommandFacts {
            step_id: step_id.to_owned(),
            issue_id: self.issue.clone().unwrap_or_default(),
            generation: 0,
            phase: PHASE.to_owned(),
            command_digest: self.command_digest.clone(),
            workdir: self.workdir.to_string_lossy().into_owned(),
            sandbox_ref: None,
            environment_names: names,
            exit: witness::end(&exit),
            duration_ms: exit.duration_ms,
            leaked_processes: exit.leaked,
            surviving_processes: exit.survivors,
            failure_classes: classes.clone(),
            started_at: Stamp::at(started_at),
            finished_at: Stamp::at(finished_at),
            before,
            after: self.tree(),
            stdout: witness::stream(&exit.stdout, &stdout),
            stderr: witness::stream(&exit.stderr, &stderr),
            agent: None,
            hooks: None,
            network: None,
        };
        let folder = &self.settings.roots.witnesses;
        let witness = witness::write(folder, step_id, PHASE, &CommandWitness::from(facts))?;
        Ok(AttemptRun {
            classes,
            witness_ref: Some(witness.reference),
            survivors: exit.survivors,
        })
    }

    /// Runs the command. The first interrupt asks for its end, the second kills
    /// it.
    fn run_to_end(&mut self, spec: CommandSpec, files: (File, File)) -> Result<Exit, GateError> {
        let (interrupt, supervisor) = (self.interrupt.clone(), &mut self.supervisor);
        let exit = self.runtime.block_on(async {
            let mut running = supervisor.begin(spec, files.0, files.1).await?;
            let mut asked = Level::None;
            loop {
                let woken = interrupt.woken();
                let level = interrupt.level();
                if level > asked {
                    asked = level;
                    running.stop(level == Level::Kill).await?;
                }
                tokio::select! {
                    biased;
                    exit = running.wait() => return exit,
                    () = woken => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        });
        exit.map_err(|error: SupervisorError| GateError::from(error))
    }

    fn spec(&self, attempt: u32) -> CommandSpec {
        let (program, arguments) = self
            .command
            .split_first()
            .map_or(("", &[][..]), |(p, a)| (p, a));
        let mut spec = CommandSpec::new(program);
        spec.args = arguments.iter().map(Into::into).collect();
        let mut variables: Vec<(&str, OsString)> = PASSED_ON
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)))
            .collect();
        variables.push(("PREMATH_ATTEMPT", attempt.to_string().into()));
        variables.push((
            "PREMATH_ISSUES_PATH",
            self.settings.roots.issues.clone().into(),
        ));
        spec.env = environment::of_command(
            std::env::vars_os(),
            &self.settings.environment,
            false,
            &variables,
        );
        spec.cwd.clone_from(&self.workdir);
        let limits = &self.settings.limits;
        spec.limit = limits.verify;
        spec.grace = limits.grace;
        spec.output_cap = limits.output_cap;
        spec
    }

    /// Names the classes of an end; a failure without a class is a failed
    /// check.
    fn classes(&self, exit: &Exit, stdout: &Path, stderr: &Path) -> Vec<String> {
        let read = |path: &Path| artifact::read(path).ok().flatten().unwrap_or_default();
        let policy = &self.settings.retry;
        let known = |word: &str| policy.knows(word) || word.parse::<FailureClass>().is_ok();
        let words = class_words(&read(stderr), &read(stdout), &known);
        classes_of(&witness::end(exit), words, FailureClass::CheckFailed)
    }

    /// Looks at the worktree. Where there is none, or one that cannot be
    /// looked at, the witness has nothing to show.
    fn tree(&self) -> TreeFacts {
        let root = worktree_root(&self.workdir).ok().flatten();
        let state = root.and_then(|root| Tree::open(&root).ok()?.state().ok());
        state.as_ref().map_or_else(
            || TreeFacts {
                head: String::new(),
                tree: String::new(),
            },
            witness::tree,
        )
    }
}
