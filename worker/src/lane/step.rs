//! `step`: one bounded item, changed only through the gate
//! (HARNESS-RUNTIME 3.2).

use super::command::{CommandError, Cut, Occasion, Phase, Ran, Task};
use super::files::{EVIDENCE, ISSUE, PROMPT, StepFiles};
use super::land::Work;
use super::progress::{Progress, Told};
use super::report::StepReport;
use super::turn::{admit, walk};
use super::watch::LeaseWatch;
use super::{BootError, Lane, outbox};
use crate::prompt;
use crate::settings::Adapter;
use crate::supervisor::SupervisorError;
use crate::witness;
use premath_evidence::CallEnd;
use premath_kernel::authority::StepIdentity;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::canonical;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::feature::FeatureStatus;
use premath_kernel::record::session;
use premath_kernel::record::trajectory::Verification;
use premath_kernel::turn::{Discover, EvidenceError, ParsedInput};
use premath_memory::projection::ProjectionError;
use premath_memory::untrusted::{EVIDENCE_MAX, UntrustedError};
use premath_memory::{ChangeError, Claimed, NewIssue, StoreError, artifact, clock};
use premath_worktree::landing::{LandedMark, LandingError};
use premath_worktree::tree::{Base, CommitText, TreeError};
use std::ffi::OsString;

/// A cause other than a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Outbox(#[from] outbox::OutboxError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error("no agent uses the provider `{0}`")]
    ProviderMissing(String),
    #[error("verification failed: {0}")]
    Unproven(String),
    #[error(transparent)]
    Landing(#[from] LandingError),
    #[error("cannot judge the turn: {0}")]
    Evidence(#[from] EvidenceError),
    #[error("cannot read the evidence of the work command: {0}")]
    EvidenceFile(#[source] UntrustedError),
    #[error(transparent)]
    Untrusted(#[from] UntrustedError),
}

impl StepError {
    fn class(&self) -> FailureClass {
        match self {
            Self::Tree(error) => error.class(),
            Self::Projection(error) => error.class(),
            Self::Store(_) | Self::Untrusted(_) => FailureClass::ProjectionStoreIo,
            Self::EvidenceFile(_) => FailureClass::ToolSchemaInvalid,
            Self::Command(error) => error.class(),
            Self::Outbox(_) => FailureClass::OutboxInvalid,
            Self::Change(error) => error.class(),
            Self::ProviderMissing(_) => FailureClass::ExecutorUnavailable,
            Self::Unproven(_) => FailureClass::WorkUnproven,
            Self::Landing(error) => error.class(),
            Self::Evidence(error) => error.class(),
        }
    }
}

impl Lane {
    /// Takes one step under a claim: session and feature, work, verification,
    /// commit, gate, close, and `stop` on every path out.
    pub fn step(&mut self, claimed: &Claimed) -> StepReport {
        self.step_index += 1;
        let now = clock::now();
        let claim = &claimed.claim;
        let identity = StepIdentity {
            issue_id: claim.issue_id.clone(),
            worker_id: self.worker_id.as_str().into(),
            owner: claim.owner.clone(),
            lease_id: claim.lease_id.clone(),
            generation: claim.generation,
            session_id: session::session_id(Some(&claim.issue_id), now.wall),
        };
        let _span = tracing::error_span!(
            "step",
            issue = %claim.issue_id,
            generation = claim.generation,
            attempt = self.batch.attempts(&claim.issue_id) + 1
        )
        .entered();
        let mut progress = Progress::new(identity, now);
        progress.provider = self.batch.provider_of(&self.worker_id);
        tracing::info!(provider = progress.provider, "step started");
        let ready = self.roots.secure().map_err(BootError::from);
        if let Err(error) = ready.and_then(|()| self.refuse_dirty()) {
            progress.lane_lost = Some((error.class(), error.to_string()));
            return self.not_begun(claimed, progress);
        }
        let mut watch = LeaseWatch::new(self.batch.clone(), claim.clone(), progress.started_ms);
        let tried = match self.depart(claimed, &mut progress) {
            Ok(true) => self.attempt(claimed, &mut progress, &mut watch),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = tried {
            let class = error.class();
            progress.fail(class.as_str());
            match &error {
                StepError::Change(ChangeError::Store(_)) => {
                    progress.store_lost = Some(error.to_string());
                }
                StepError::Command(CommandError::Supervisor(lost)) => {
                    tracing::warn!(error = %lost, "supervisor lost");
                    progress.lane_lost = self.mend_supervisor(lost);
                    progress.restored = progress.lane_lost.is_none();
                }
                _ => {
                    let folder = &self.batch.settings.roots.streams;
                    progress.said = Some((error.to_string(), folder.clone()));
                }
            }
        }
        let is_warm = progress.is_warm;
        let report = self.stop(claimed, progress);
        tracing::info!(ending = %report.ending, classes = ?report.failure_classes, "step ended");
        self.come_home();
        if is_warm && report.succeeded() && report.commit.is_some() && report.world.is_none() {
            self.owes_tip = true;
            self.batch.warmth.note_landed();
        }
        report
    }

    /// Starts another supervisor where nothing of the lost one's command is
    /// left; says why the lane cannot continue otherwise.
    pub(super) fn mend_supervisor(
        &mut self,
        lost: &SupervisorError,
    ) -> Option<(FailureClass, String)> {
        let why = |detail: String| Some((FailureClass::SupervisorLost, detail));
        if let SupervisorError::Lost { survivors, .. } = lost
            && *survivors > 0
        {
            return why(format!("cannot kill {survivors} process(es) of the step"));
        }
        if !self.supervisor.is_lost() {
            return why(lost.to_string());
        }
        let restarted = match self.lock.share() {
            Ok(lock) => self
                .supervisor
                .restart(lock)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        restarted.err().and_then(why)
    }

    /// Everything up to the close; what it leaves in `progress` counts.
    fn attempt(
        &mut self,
        claimed: &Claimed,
        progress: &mut Progress,
        watch: &mut LeaseWatch,
    ) -> Result<(), StepError> {
        let batch = self.batch.clone();
        let claim = &claimed.claim;
        let step_id = progress.identity.step_id();
        // The record of where the step starts comes before its first change.
        let base = self.starting_point(claim)?;
        progress.base = Some(base.clone());
        self.begin_session(progress, &base)?;
        batch.reached(Boundary::SessionBegun);
        self.sync_target(claim, &base)?;
        batch.reached(Boundary::BranchMade);
        self.make_git(&base)?;
        batch.reached(Boundary::GitPrepared);
        let clean = self.tree.clean_state()?;
        self.feature(claimed, FeatureStatus::InProgress, None)?;
        batch.reached(Boundary::FeatureBegun);
        let files = StepFiles::at(&self.roots.step);
        let folder = self.roots.step_folder()?;
        folder.clear()?;
        let last = batch.last_failure(&claim.issue_id);
        let template = batch
            .settings
            .prompt_template
            .as_deref()
            .unwrap_or(prompt::DEFAULT_TEMPLATE);
        let neighbours = batch.neighbours(&claimed.row)?;
        let prompt = prompt::render(template, &claimed.row, &neighbours, last.as_ref());
        folder.write(PROMPT, prompt.as_bytes(), 0o600)?;
        let kept = witness::file(&batch.settings.roots.streams, &step_id, "work", "prompt");
        artifact::overwrite(&kept, prompt.as_bytes())?;
        let prompt_digest = format!("sha256:{}", canonical::sha256_hex(prompt.as_bytes()));
        let provider = progress.provider.clone().unwrap_or_default();
        let workforce = &batch.settings.work;
        let work = workforce.with(&provider).cloned();
        let work = work.ok_or(StepError::ProviderMissing(provider))?;
        let row = format!("{}\n", claimed.row.text);
        folder.write(ISSUE, row.as_bytes(), 0o600)?;
        batch.reached(Boundary::FilesWritten);
        let variables = self.variables(claimed, &step_id, &files);
        let occasion = Occasion {
            step_id: &step_id,
            issue_id: &claim.issue_id,
            generation: claim.generation,
            variables: &variables,
            task: Some(Task {
                agent: work.adapter.agent(),
                prompt_digest: &prompt_digest,
            }),
        };
        // Pre-mutation check: the lease is in force before any work is done.
        if let Err(class) = self.fence(claim)? {
            progress.cut = Some(Cut::Lease(class));
            progress.fail(class.as_str());
            return Ok(());
        }
        if let Some(ran) = self.set_up(Phase::Setup, &occasion, Some(&mut *watch))? {
            let after = ran.after.clone();
            if !self.take_in(progress, ran, Phase::Setup) {
                return self.judge(progress).map(drop);
            }
            if after != clean {
                let detail = "the setup command changed files that git does not ignore";
                return Err(StepError::Unproven(detail.to_owned()));
            }
        }
        // Work that landed before a harness died is not done a second time.
        let landed = self.landed(&claim.issue_id)?;
        let worked = if landed.is_some() {
            clean.clone()
        } else {
            let ran = self.run(
                Phase::Work,
                &work.command,
                &occasion,
                Some(clean.clone()),
                Some(&mut *watch),
            )?;
            batch.reached(Boundary::WorkEnded);
            let worked = ran.after.clone();
            let goes_on = self.take_in(progress, ran, Phase::Work);
            let is_told = self.take_in_told(progress, work.adapter)?;
            if !goes_on || !is_told {
                return self.judge(progress).map(drop);
            }
            worked
        };
        let changed = worked.tree != clean.tree;
        if let Some(nested) = self.tree.nested_repository(&base.commit)? {
            return Err(StepError::Unproven(format!(
                "{nested} is a nested git repository; a commit would not contain its files"
            )));
        }
        // What is verified is what is committed, whatever comes after.
        if changed && self.tree.keep_content(&base.commit)? != worked.tree {
            return Err(StepError::Unproven(
                "the tree changed after the work ended".to_owned(),
            ));
        }
        batch.reached(Boundary::TreeImported);
        if changed
            && let Some((rules, hidden)) = self.tree.hides_files(&base.commit, &worked.tree)?
        {
            return Err(StepError::Unproven(format!(
                "{rules} ignores {hidden}, a tracked file: later changes to it would be lost"
            )));
        }
        if changed {
            progress.changed_paths = self.tree.changed_since(&base.commit, &worked.tree)?;
            if self.is_protected(progress, &base) {
                return self.judge(progress).map(drop);
            }
        }
        let lease = format!("{}#{}", claim.lease_id, claim.generation);
        let title = claimed.row.text_of("title");
        let text = CommitText {
            issue_id: &claim.issue_id,
            title: &title,
            lease: &lease,
            step_id: &step_id,
            witness: None,
            ..CommitText::default()
        };
        // Its commit is recreated when its verification can be named.
        let candidate = match changed {
            true => self.tree.squash(&text, &base.commit, &worked.tree, None)?,
            false => base.commit.clone(),
        };
        batch.reached(Boundary::CandidateWritten);
        let in_turn = || {
            let priority = claimed.row.issue.priority;
            batch.landing.queue(priority, &claim.issue_id, &step_id)
        };
        let verification = super::verify::Verification {
            phase: Phase::Verify,
            command: &self.verify_command(),
            commit: &candidate,
        };
        let Some(verified) = self.verify(progress, watch, &occasion, &verification)? else {
            self.judge(progress)?;
            if let Some(mark) = &landed {
                self.take_off_landed(progress, watch, &occasion, in_turn(), &mark.commit)?;
            }
            return Ok(());
        };
        let requests = self.requests(claim, landed.as_ref())?;
        let before = worked;
        let mut after = verified;
        progress.commit = changed.then_some(candidate);
        if let Err(class) = watch.look() {
            progress.cut = Some(Cut::Lease(class));
            progress.fail(class.as_str());
            return Ok(());
        }
        if progress.commit.is_none() && landed.is_none() && batch.settings.refuse_no_change {
            progress.fail(FailureClass::WorkNoChange.as_str());
            return self.judge(progress).map(drop);
        }
        // Held until the issue is closed: one lands at a time.
        let mut turn = self.lands().then(in_turn);
        let ready = match (&landed, &mut turn) {
            (Some(LandedMark { commit, .. }), _) => {
                let ready = self.adopt(progress, watch, &occasion, &base, commit)?;
                if ready.is_none() {
                    drop(turn);
                    self.take_off_landed(progress, watch, &occasion, in_turn(), commit)?;
                    return Ok(());
                }
                ready
            }
            (None, Some(turn)) => {
                let mut work = Work {
                    base: &base,
                    text: &text,
                    verified: after,
                };
                let ready = self.land(claim, progress, watch, &occasion, turn, &mut work)?;
                after = work.verified;
                ready
            }
            (None, None) => {
                let ready = self.judge_where_it_is(progress)?;
                if ready.is_some() && progress.commit.is_some() {
                    let from = &base.commit;
                    let commit = self.proven_commit(progress, &text, from, from, &after.tree)?;
                    // Before the issue closes: a harness that dies in between
                    // must leave the work where it belongs.
                    self.tree.move_branch(&Base {
                        commit: commit.clone(),
                        branch: base.branch.clone(),
                    })?;
                    batch.reached(Boundary::BranchMoved);
                    after.head.clone_from(&commit);
                    progress.commit = Some(commit);
                }
                ready
            }
        };
        let Some(ready) = ready else {
            return Ok(());
        };
        for new in requests {
            let turn = walk(&self.evidence(progress))?;
            let ready = match admit::<Discover>(turn, &self.binding(progress)) {
                Ok(ready) => ready,
                Err(classes) => {
                    classes
                        .iter()
                        .for_each(|class| progress.fail(class.as_str()));
                    return Ok(());
                }
            };
            let filed = batch.memory.discover(ready, new)?;
            batch.reached(Boundary::FollowUpFiled);
            batch.note_filed(&filed.issue, &claim.issue_id);
            progress.discovered.push(filed.issue.id.to_string());
        }
        self.close(progress, ready, &before, &after)
    }

    /// Reads the requests of the step's outbox or, where earlier work landed,
    /// of that work's. The outbox of work that is to land is kept first.
    fn requests(
        &self,
        claim: &Claim,
        landed: Option<&LandedMark>,
    ) -> Result<Vec<NewIssue>, StepError> {
        let streams = &self.batch.settings.roots.streams;
        let kept = |generation| outbox::kept(streams, &claim.issue_id, generation);
        if let Some(mark) = landed {
            let bytes = artifact::read(&kept(mark.generation))?;
            return Ok(outbox::parse(&bytes.unwrap_or_default())?);
        }
        let bytes = outbox::read(&self.roots.step_folder()?)?;
        let requests = outbox::parse(&bytes)?;
        if self.lands() && !requests.is_empty() {
            artifact::overwrite(&kept(claim.generation), &bytes)?;
        }
        Ok(requests)
    }

    /// Takes in what the work command wrote down of its calls, where its
    /// adapter has it do so; returns whether it is there.
    fn take_in_told(&self, progress: &mut Progress, adapter: Adapter) -> Result<bool, StepError> {
        if adapter != Adapter::EvidenceFile || !progress.classes.is_empty() {
            return Ok(true);
        }
        let folder = self.roots.step_folder()?;
        let read = folder.read(EVIDENCE, EVIDENCE_MAX);
        let Some(bytes) = read.map_err(StepError::EvidenceFile)? else {
            let said = "the work command wrote no evidence to PREMATH_EVIDENCE_PATH";
            let folder = self.batch.settings.roots.streams.clone();
            progress.said = Some((said.to_owned(), folder));
            progress.fail(FailureClass::MutationUseEvidenceMissing.as_str());
            return Ok(false);
        };
        let told = ParsedInput::from_slice(&bytes)?.input;
        progress.told = Some(Told::File(Box::new(told)));
        Ok(true)
    }

    /// Returns whether the work changed protected files, and records the
    /// failure.
    fn is_protected(&self, progress: &mut Progress, base: &Base) -> bool {
        let settings = &self.batch.settings;
        let exists = |path: &str| self.tree.holds(&base.commit, path);
        let paths = &progress.changed_paths;
        let judged = self.protect().judge(paths, &self.verify_command(), exists);
        let refusal = judged.refusal();
        progress.sensitive = judged.sensitive;
        let Some(said) = refusal else {
            return false;
        };
        progress.fail(FailureClass::WorkProtectedPath.as_str());
        progress.said = Some((said, settings.roots.streams.clone()));
        true
    }

    /// Takes a command's end in; returns whether the step continues.
    pub(super) fn take_in(&self, progress: &mut Progress, ran: Ran, phase: Phase) -> bool {
        self.note_limit(progress, &ran, phase);
        progress.witnesses.insert(&ran.witness_ref);
        for class in &ran.classes {
            progress.fail(class);
        }
        if matches!(phase, Phase::Verify | Phase::Land(_)) {
            progress.verification = Some(Verification {
                class: ran
                    .classes
                    .first()
                    .cloned()
                    .unwrap_or_else(|| "passed".to_owned()),
                witness_ref: Some(ran.witness_ref.clone()),
            });
        }
        if let Some(CallEnd::Error { message, .. }) = &ran.call.end {
            let folder = &self.batch.settings.roots.streams;
            let step_id = progress.identity.step_id();
            let of_agent = ran.stream.as_ref().is_some_and(|one| one.log().lines > 0);
            let kind = if of_agent { "stdout.gz" } else { "stderr" };
            let output = witness::file(folder, &step_id, phase.name(), kind);
            progress.said = Some((message.clone(), output));
        }
        if ran.survivors > 0 {
            progress.restored = false;
            progress.lane_lost = Some((
                FailureClass::SupervisorLost,
                format!("cannot kill {} process(es) of the step", ran.survivors),
            ));
        }
        progress.cut = ran.cut;
        let passed = ran.passed();
        if let Some(stream) = ran.stream {
            progress.take_in_stream(stream);
        }
        progress.calls.push(ran.call);
        passed && progress.lane_lost.is_none()
    }

    pub(super) fn variables(
        &self,
        claimed: &Claimed,
        step_id: &str,
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
            ("PREMATH_WORKER_ID", self.worker_id.clone().into()),
            ("PREMATH_PROVIDER", provider.into()),
            ("PREMATH_LEASE_ID", claim.lease_id.as_str().into()),
            (
                "PREMATH_LEASE_GENERATION",
                claim.generation.to_string().into(),
            ),
            ("PREMATH_STEP_ID", step_id.into()),
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

/// A longer title is whole in the issue's file; the system bounds a variable.
const LINE_MAX: usize = 2_000;

/// A variable cannot hold a NUL, and a title is one line.
fn line(text: &str) -> OsString {
    text.chars()
        .take(LINE_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
}
