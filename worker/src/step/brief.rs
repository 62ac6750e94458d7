//! What the commands of a step are given: files, variables, and who works.

use super::attempt::Attempt;
use super::error::{StageError, StepError};
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase, Task, WorkUse};
use crate::lane::files::{ISSUE, PROMPT, StepFiles};
use crate::prompt;
use crate::settings::Work;
use crate::witness;
use premath_evidence::RunSpending;
use premath_kernel::json::canonical;
use premath_kernel::json::id::{IssueId, StepId};
use premath_memory::{Claimed, artifact};
use premath_worktree::tree::CommitText;
use std::ffi::OsString;

/// A longer title is whole in the issue's file; the system bounds a variable.
const LINE_MAX: usize = 2_000;

/// What the commands of a step are given.
#[derive(Debug)]
pub(super) struct Brief {
    pub(super) step_id: StepId,
    pub(super) issue_id: IssueId,
    generation: u64,
    variables: Vec<(&'static str, OsString)>,
    prompt_digest: String,
    /// What the work used before its present round.
    used: WorkUse,
    /// What the agent's session used in earlier attempts.
    pub(super) session_used: RunSpending,
    /// The agent or command that works.
    pub(super) work: Work,
    /// The title that the commits of the step name.
    title: String,
    lease: String,
}

impl Brief {
    /// Returns what a command of the step belongs to.
    pub(super) fn owner(&self) -> CommandOwner<'_> {
        CommandOwner {
            step_id: &self.step_id,
            issue_id: &self.issue_id,
            generation: self.generation,
            variables: &self.variables,
            task: Some(Task {
                agent: self.work.adapter.agent(),
                prompt_digest: &self.prompt_digest,
                used: self.used,
                session_used: self.session_used,
            }),
        }
    }

    /// Takes in that another round of the work follows, with a prompt of its own.
    pub(super) fn renew(&mut self, prompt_digest: String, used: WorkUse) {
        self.prompt_digest = prompt_digest;
        self.used = used;
    }

    /// Returns what its commits say.
    pub(super) fn text(&self) -> CommitText<'_> {
        CommitText {
            issue_id: &self.issue_id,
            title: &self.title,
            lease: &self.lease,
            step_id: &self.step_id,
            witness: None,
            ..CommitText::default()
        }
    }
}

impl Lane {
    /// Writes the files of the step.
    pub(super) fn brief(&mut self, attempt: &mut Attempt<'_>) -> Result<Brief, StageError> {
        let (batch, claimed, claim) = (attempt.batch, attempt.claimed, attempt.claim());
        let step_id = attempt.log.step_id();
        let folder = self.roots.step_folder()?;
        folder.clear()?;
        let last = batch.last_failure(&claim.issue_id);
        let template = batch.settings.prompt_template.as_deref();
        let template = template.unwrap_or(prompt::DEFAULT_TEMPLATE);
        let neighbours = batch.neighbours(&claimed.row)?;
        let before = self.before.as_ref().map(ToString::to_string);
        let provider = attempt.log.account.provider.clone().unwrap_or_default();
        let work = batch.settings.work.with(&provider).cloned();
        let mut work = work.ok_or_else(|| StepError::ProviderMissing(provider.clone()))?;
        let session_used = self.resume(attempt, &provider, &mut work);
        attempt.log.account.session_folder = self.session_folder(batch, &work);
        let (last, before) = (last.as_ref(), before.as_deref());
        let mut prompt = prompt::render(template, &claimed.row, &neighbours, last, before);
        if session_used.is_some() {
            prompt.insert_str(0, prompt::RESUMED);
        }
        let prompt_digest = self.hand_out_prompt(&step_id, Phase::Work(0), &prompt)?;
        let row = format!("{}\n", claimed.row.text);
        folder.write(ISSUE, row.as_bytes(), 0o600)?;
        let files = StepFiles::at(&self.roots.step);
        Ok(Brief {
            issue_id: claim.issue_id.clone(),
            generation: claim.generation,
            variables: self.variables(claimed, &step_id, &files),
            prompt_digest,
            used: WorkUse::default(),
            session_used: session_used.unwrap_or_default(),
            work,
            title: claimed.row.text_of("title"),
            lease: format!("{}#{}", claim.lease_id, claim.generation),
            step_id,
        })
    }

    /// Makes the work resume the session of the last attempt, where that is asked
    /// for and it is here; returns what the session used so far.
    fn resume(
        &mut self,
        attempt: &mut Attempt<'_>,
        provider: &str,
        work: &mut Work,
    ) -> Option<RunSpending> {
        let left = self.take_up_session(&attempt.claim().issue_id, provider)?;
        let spec = work.adapter.agent()?.spec();
        work.command = spec.resumed(&work.command, &left.session)?;
        attempt.log.account.resumed = true;
        tracing::info!("the agent resumes the session of the last attempt");
        Some(left.used)
    }

    /// Writes the prompt of a round for the agent, and keeps it; returns its
    /// digest.
    pub(super) fn hand_out_prompt(
        &self,
        step_id: &StepId,
        phase: Phase,
        prompt: &str,
    ) -> Result<String, StageError> {
        let bytes = prompt.as_bytes();
        self.roots.step_folder()?.write(PROMPT, bytes, 0o600)?;
        let streams = &self.batch.settings.roots.streams;
        artifact::overwrite(
            &witness::file(streams, step_id, phase.name(), "prompt"),
            bytes,
        )?;
        Ok(format!("sha256:{}", canonical::sha256_hex(bytes)))
    }

    /// Returns the variables of a step's commands.
    pub(super) fn variables(
        &self,
        claimed: &Claimed,
        step_id: &StepId,
        files: &StepFiles,
    ) -> Vec<(&'static str, OsString)> {
        let claim = &claimed.claim;
        let provider = self.batch.provider_of(&self.worker_id).unwrap_or_default();
        let mut variables = vec![
            ("PREMATH_ISSUE_ID", claim.issue_id.as_str().into()),
            ("PREMATH_ISSUE_TITLE", line(&claimed.row.text_of("title"))),
            ("PREMATH_ISSUE_FILE", files.issue.clone().into()),
            ("PREMATH_PROMPT_FILE", files.prompt.clone().into()),
            ("PREMATH_WORKTREE", self.worktree.clone().into()),
            ("PREMATH_WORKER_ID", self.worker_id.as_str().into()),
            ("PREMATH_PROVIDER", provider.into()),
            ("PREMATH_LEASE_ID", claim.lease_id.as_str().into()),
            (
                "PREMATH_LEASE_GENERATION",
                claim.generation.to_string().into(),
            ),
            ("PREMATH_STEP_ID", step_id.as_str().into()),
            (
                "PREMATH_HARNESS_SESSION_PATH",
                self.roots.session.clone().into(),
            ),
            ("PREMATH_EVIDENCE_PATH", files.evidence.clone().into()),
            ("PREMATH_OUTBOX", files.outbox.clone().into()),
            ("PREMATH_ISSUES_PATH", self.batch.memory.path().into()),
        ];
        variables.extend(self.world_variable());
        variables
    }
}

/// A variable cannot hold a NUL, and a title is one line.
fn line(text: &str) -> OsString {
    text.chars()
        .take(LINE_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
}
