//! A command that is over: its classes, its witness, its call in the evidence.

use super::hooked::HookedTurn;
use super::watch::Watched;
use super::{CommandError, CommandOwner, Cut, Phase, Ran, TimeLimit};
use crate::lane::Lane;
use crate::lane::saying::Saying;
use crate::supervisor::Exit;
use crate::witness;
use premath_evidence::{AgentEnd, CallEnd, FoldedStream, ShellCall};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::network::NetworkFacts;
use premath_kernel::policy::retry::{self, class_words, classes_of};
use premath_kernel::record::witness::{CommandFacts, CommandWitness};
use premath_memory::artifact;
use premath_worktree::tree::TreeState;
use std::path::PathBuf;
use std::time::Duration;

/// A command's end, on its way to the witness.
pub(super) struct FinishedCommand<'a> {
    pub(super) phase: Phase,
    pub(super) command: &'a str,
    pub(super) owner: &'a CommandOwner<'a>,
    pub(super) exit: &'a Exit,
    /// How long it might run.
    pub(super) limit: TimeLimit,
    pub(super) watched: Watched,
    pub(super) environment_names: Vec<String>,
    pub(super) sandbox_ref: Option<String>,
    pub(super) started_at: jiff::Timestamp,
    pub(super) finished_at: jiff::Timestamp,
    pub(super) before: &'a TreeState,
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
    pub(super) network: Option<NetworkFacts>,
    /// What the agent's hooks reported.
    pub(super) hooks: Option<HookedTurn>,
}

impl FinishedCommand<'_> {
    /// Says what went wrong, on one line, for the error envelope.
    fn message(&self) -> String {
        let saying = Saying {
            subject: match self.watched.stream {
                Some(_) => "the agent",
                None => self.phase.subject(),
            },
            exit: self.exit,
            limit: self.limit,
            stream: self.watched.stream.as_ref(),
            timeout: self.watched.timeout,
            stdout: &self.stdout,
            stderr: &self.stderr,
        };
        saying.line()
    }

    fn facts(&self, workdir: String, classes: &[String], after: &TreeState) -> CommandFacts {
        let exit = self.exit;
        CommandFacts {
            step_id: self.owner.step_id.to_owned(),
            issue_id: self.owner.issue_id.to_owned(),
            generation: self.owner.generation,
            phase: self.phase.name().to_owned(),
            command_digest: canonical::digest(&self.command),
            workdir,
            sandbox_ref: self.sandbox_ref.clone(),
            environment_names: self.environment_names.clone(),
            exit: witness::end(exit),
            duration_ms: exit.duration_ms,
            leaked_processes: exit.leaked,
            surviving_processes: exit.survivors,
            failure_classes: classes.to_vec(),
            started_at: Stamp::at(self.started_at),
            finished_at: Stamp::at(self.finished_at),
            before: witness::tree(self.before),
            after: witness::tree(after),
            stdout: witness::stream(&exit.stdout, &self.stdout),
            stderr: witness::stream(&exit.stderr, &self.stderr),
            agent: self.watched.stream.as_ref().map(FoldedStream::facts),
            hooks: self.hooks.as_ref().map(HookedTurn::facts),
            network: self.network.clone(),
        }
    }

    /// Returns the command as a call of the turn.
    fn call(&self, workdir: String, end: CallEnd, witness_ref: String) -> ShellCall {
        let exit = self.exit;
        ShellCall {
            phase: self.phase.name(),
            command_digest: canonical::digest(&self.command),
            prompt_digest: self.owner.prompt_digest(self.phase),
            workdir,
            sandbox_ref: self.sandbox_ref.clone(),
            exit_code: exit.code,
            signal: exit.signal,
            stdout_sha256: exit.stdout.sha256.clone(),
            stderr_sha256: exit.stderr.sha256.clone(),
            truncated: exit.stdout.truncated() || exit.stderr.truncated(),
            end: Some(end),
            witness_ref,
        }
    }
}

impl Lane {
    /// Names the classes of a command's end and writes its witness.
    pub(super) fn witnessed(&self, mut finished: FinishedCommand<'_>) -> Result<Ran, CommandError> {
        if let (Some(hooks), Some(stream)) = (&mut finished.hooks, &finished.watched.stream) {
            hooks.reconcile(stream);
        }
        let classes = self.classes(&finished);
        // The whole stream is kept; its digest is over the bytes that came.
        if finished.watched.stream.is_some() {
            finished.stdout = artifact::compress(&finished.stdout)?;
        }
        let phase = finished.phase;
        // What a verification leaves in its checkout is never looked at.
        let after = match phase.is_verification() {
            true => finished.before.clone(),
            false => self.tree.state_on(&finished.before.head)?,
        };
        let workdir = self.seen_by(phase).to_string_lossy().into_owned();
        let facts = finished.facts(workdir.clone(), &classes, &after);
        let witness = witness::write(
            &self.batch.settings.roots.witnesses,
            finished.owner.step_id,
            phase.name(),
            &CommandWitness::from(facts),
        )?;
        let end = match classes.first() {
            None => CallEnd::Ok,
            Some(class) => CallEnd::Error {
                class: class.clone(),
                retryable: !retry::decide(&self.batch.settings.retry, &classes, 1).is_escalation(),
                message: finished.message(),
            },
        };
        Ok(Ran {
            cut: finished.watched.cut,
            classes,
            call: finished.call(workdir, end, witness.reference.clone()),
            witness_ref: witness.reference,
            after,
            survivors: finished.exit.survivors,
            took: Duration::from_millis(finished.exit.duration_ms),
            stream: finished.watched.stream,
            hooks: finished.hooks.map(HookedTurn::into_journal),
        })
    }

    /// Names the classes of an end (`contracts.md` 7); none where it passed.
    fn classes(&self, finished: &FinishedCommand<'_>) -> Vec<String> {
        match finished.watched.cut {
            Some(Cut::Lease(class)) => vec![class.as_str().to_owned()],
            Some(Cut::Interrupt | Cut::Cancelled) => {
                vec![FailureClass::StepInterrupted.as_str().to_owned()]
            }
            Some(Cut::Superseded) => {
                vec![FailureClass::VerificationSuperseded.as_str().to_owned()]
            }
            None if finished.exit.is_unconfined() => {
                vec![FailureClass::SandboxUnavailable.as_str().to_owned()]
            }
            None => match &finished.watched.stream {
                None => self.classes_of_command(finished),
                Some(stream) => self.classes_of_agent(finished, stream),
            },
        }
    }

    fn classes_of_command(&self, finished: &FinishedCommand<'_>) -> Vec<String> {
        let exit = finished.exit;
        let out = witness::printed(&exit.stdout, &finished.stdout);
        let err = witness::printed(&exit.stderr, &finished.stderr);
        let words = class_words(&err, &out, &|word| self.knows(word));
        classes_of(&witness::end(exit), words, finished.phase.class())
    }

    /// Names the classes of an agent's end. What it prints is its stream, so
    /// that only its errors name a class.
    fn classes_of_agent(
        &self,
        finished: &FinishedCommand<'_>,
        stream: &FoldedStream,
    ) -> Vec<String> {
        let stderr = witness::printed(&finished.exit.stderr, &finished.stderr);
        let words = class_words(&stderr, &[], &|word| self.knows(word));
        let end = AgentEnd {
            command: &witness::end(finished.exit),
            stream,
            timeout: finished.watched.timeout,
        };
        let mut classes = end.classes(words);
        let hooks = finished.hooks.iter().flat_map(HookedTurn::classes);
        for class in hooks.map(FailureClass::as_str) {
            if !classes.iter().any(|known| known == class) {
                classes.push(class.to_owned());
            }
        }
        classes
    }

    fn knows(&self, word: &str) -> bool {
        self.batch.settings.retry.knows(word) && !retry::is_found_by_the_harness(word)
    }
}
