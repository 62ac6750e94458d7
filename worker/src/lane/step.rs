//! `step`: one bounded item, changed only through the gate
//! (HARNESS-RUNTIME 3.2).

use super::command::{CommandError, Cut, Occasion, Phase, Ran, StepFiles};
use super::watch::LeaseWatch;
use super::{BootError, Lane, outbox};
use crate::prompt;
use crate::supervisor::SupervisorError;
use crate::tree::{Base, CommitText, Departure, TreeError, TreeState};
use crate::witness;
use premath_evidence::{CallEnd, ShellCall, ShellTurn, shell_turn};
use premath_kernel::authority::StepIdentity;
use premath_kernel::canonical::value_of;
use premath_kernel::failure::FailureClass;
use premath_kernel::feature::{FeatureLedger, FeatureStatus, FeatureWrite};
use premath_kernel::reference::RefSet;
use premath_kernel::session::{self, SessionState, SessionStep, SessionWrite, StepWrite};
use premath_kernel::trajectory::Verification;
use premath_kernel::turn::{
    CallSpec, Change, Close, Discover, JoinCheckInput, MutationBinding, MutationReady, join_check,
};
use premath_memory::projection::{self, ProjectionError};
use premath_memory::{ChangeError, Claimed, StoreError, artifact, clock};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnding {
    /// The issue is closed.
    Closed,
    /// It may be claimed again, from a time where the policy waits.
    Retry {
        /// From when.
        at: Option<jiff::Timestamp>,
    },
    /// It is blocked, with notes.
    Blocked,
    /// It is open, a follow-up was filed, and this batch leaves it alone.
    Discovered {
        /// The follow-up.
        follow_up: String,
    },
    /// It is open, and this batch leaves it alone.
    Stopped,
    /// The lease was not ours any more; nothing was changed.
    LeaseLost,
    /// The batch was interrupted; the issue is open.
    Interrupted,
    /// The step did not begin; the issue is open.
    NotBegun,
}

impl fmt::Display for StepEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Retry { at: None } => f.write_str("to retry"),
            Self::Retry { at: Some(at) } => write!(f, "to retry at {at:.0}"),
            Self::Blocked => f.write_str("blocked"),
            Self::Discovered { follow_up } => write!(f, "open, follow-up {follow_up}"),
            Self::Stopped => f.write_str("open, given up"),
            Self::LeaseLost => f.write_str("lease lost"),
            Self::Interrupted => f.write_str("open, interrupted"),
            Self::NotBegun => f.write_str("open, not begun"),
        }
    }
}

/// The report of a step.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The issue.
    pub issue_id: String,
    /// Its title.
    pub title: String,
    /// The step.
    pub step_id: String,
    /// The lease's generation.
    pub generation: u64,
    /// What it came to.
    pub ending: StepEnding,
    /// The trajectory row's result class.
    pub result_class: String,
    /// Every failure class.
    pub failure_classes: Vec<String>,
    /// Which attempt of the issue in this batch it was, from 1.
    pub attempt: u32,
    /// The commit that holds the work, where there is one.
    pub commit: Option<String>,
    /// The branch on which what the step left is kept.
    pub salvage: Option<String>,
    /// Issues that were filed.
    pub discovered: Vec<String>,
    /// What the command that failed said last, and where all of it is.
    pub said: Option<(String, PathBuf)>,
    /// From claim to row, in milliseconds.
    pub duration_ms: u64,
    /// Why the lane cannot go on, where it cannot.
    pub lane_lost: Option<(FailureClass, String)>,
    /// Why memory or trajectory cannot be used any more, where they cannot.
    pub store_lost: Option<String>,
}

impl StepReport {
    /// Tells whether the issue ended well.
    pub fn succeeded(&self) -> bool {
        self.ending == StepEnding::Closed
    }
}

/// Where a step is while it runs; `stop` reads it, whatever happened.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) identity: StepIdentity,
    pub(super) started_at: jiff::Timestamp,
    pub(super) started_ms: u64,
    pub(super) base: Option<Base>,
    pub(super) calls: Vec<ShellCall>,
    pub(super) witnesses: RefSet,
    pub(super) verification: Option<Verification>,
    pub(super) classes: Vec<String>,
    pub(super) cut: Option<Cut>,
    pub(super) commit: Option<String>,
    pub(super) closed: bool,
    pub(super) discovered: Vec<String>,
    pub(super) lane_lost: Option<(FailureClass, String)>,
    pub(super) store_lost: Option<String>,
    /// The reference of the turn's witness, for an escalation to rest on.
    pub(super) turn_witness: Option<String>,
    /// Whether the tree is where the next step may start from.
    pub(super) restored: bool,
    pub(super) said: Option<(String, PathBuf)>,
    /// Whether the verification left something in the tree.
    pub(super) untidy: bool,
}

impl Progress {
    pub(super) fn fail(&mut self, class: impl AsRef<str>) {
        let class = class.as_ref().to_owned();
        if !self.classes.contains(&class) {
            self.classes.push(class);
        }
    }

    pub(super) fn session_step(&self, base: &Base) -> SessionStep {
        SessionStep {
            step_id: self.identity.step_id(),
            issue_id: self.identity.issue_id.clone(),
            generation: self.identity.generation,
            lease_id: self.identity.lease_id.clone(),
            lease_owner: self.identity.owner.clone(),
            base_commit: base.commit.clone(),
            base_branch: base.branch.clone(),
        }
    }
}

/// Something other than a command stood in the way.
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
    #[error("the work is not proven: {0}")]
    Unproven(String),
    #[error("the turn cannot be judged: {0}")]
    Evidence(#[from] premath_kernel::turn::EvidenceError),
}

impl StepError {
    fn class(&self) -> FailureClass {
        match self {
            Self::Tree(error) => error.class(),
            Self::Projection(error) => error.class(),
            Self::Store(_) => FailureClass::ProjectionStoreIo,
            Self::Command(error) => error.class(),
            Self::Outbox(_) => FailureClass::OutboxInvalid,
            Self::Change(error) => error.class(),
            Self::Unproven(_) => FailureClass::WorkUnproven,
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
        let mut progress = Progress {
            identity: StepIdentity {
                issue_id: claim.issue_id.clone(),
                worker_id: self.worker_id.clone(),
                owner: claim.owner.clone(),
                lease_id: claim.lease_id.clone(),
                generation: claim.generation,
                session_id: session::session_id(Some(&claim.issue_id), now.wall),
            },
            started_at: now.wall,
            started_ms: now.boot_ms,
            base: None,
            calls: Vec::new(),
            witnesses: RefSet::new(),
            verification: None,
            classes: Vec::new(),
            cut: None,
            commit: None,
            closed: false,
            discovered: Vec::new(),
            lane_lost: None,
            store_lost: None,
            turn_witness: None,
            restored: true,
            untidy: false,
            said: None,
        };
        let ready = self.roots.secure().map_err(BootError::from);
        if let Err(error) = ready.and_then(|()| self.refuse_dirty()) {
            progress.lane_lost = Some((error.class(), error.to_string()));
            return self.not_begun(claimed, progress);
        }
        let mut watch = LeaseWatch::new(self.batch.clone(), claim.clone(), progress.started_ms);
        if let Err(error) = self.attempt(claimed, &mut progress, &mut watch) {
            let class = error.class();
            progress.fail(class.as_str());
            match &error {
                StepError::Change(ChangeError::Store(_)) => {
                    progress.store_lost = Some(error.to_string());
                }
                StepError::Command(CommandError::Supervisor(lost)) => {
                    tracing::warn!(step = %progress.identity.step_id(), error = %lost, "supervisor lost");
                    progress.lane_lost = self.mend_supervisor(lost);
                    progress.restored = progress.lane_lost.is_none();
                }
                _ => {
                    let folder = &self.batch.settings.roots.streams;
                    progress.said = Some((error.to_string(), folder.clone()));
                }
            }
        }
        self.stop(claimed, progress)
    }

    /// Starts another supervisor where nothing of the lost one's command is
    /// left; says why the lane cannot go on otherwise.
    pub(super) fn mend_supervisor(
        &mut self,
        lost: &SupervisorError,
    ) -> Option<(FailureClass, String)> {
        let why = |detail: String| Some((FailureClass::SupervisorLost, detail));
        if let SupervisorError::Lost { survivors, .. } = lost
            && *survivors > 0
        {
            return why(format!(
                "{survivors} process(es) of the step could not be ended"
            ));
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
        let base = self.tree.base()?;
        let clean = self.tree.clean_state()?;
        progress.base = Some(base.clone());
        self.begin_session(progress, &base)?;
        self.feature(claimed, FeatureStatus::InProgress, None)?;
        let files = StepFiles::at(&self.roots.step);
        files.clear()?;
        let last = batch.last_failure(&claim.issue_id);
        let template = batch
            .settings
            .prompt_template
            .as_deref()
            .unwrap_or(prompt::DEFAULT_TEMPLATE);
        let prompt = prompt::render(template, &claimed.row, last.as_ref());
        artifact::overwrite(&files.prompt, prompt.as_bytes())?;
        artifact::overwrite(&files.issue, format!("{}\n", claimed.row.text).as_bytes())?;
        let variables = self.variables(claimed, &step_id, &files);
        let occasion = Occasion {
            step_id: &step_id,
            issue_id: &claim.issue_id,
            generation: claim.generation,
            variables: &variables,
        };
        // Pre-mutation check: the lease is in force before any work is done.
        self.batch
            .memory
            .view(|view| match view.issue(&claim.issue_id) {
                Some(issue) => premath_kernel::lease::fence(issue, &claim.key(), &clock::observe())
                    .map_err(|refusal| refusal.class),
                None => Err(FailureClass::LeaseNotFound),
            })?
            .unwrap_or_else(|class| {
                progress.cut = Some(Cut::Lease(class));
                progress.fail(class.as_str());
            });
        if progress.cut.is_some() {
            return Ok(());
        }
        let hooks = batch.settings.hooks.clone();
        let work = self.run(
            Phase::Work,
            &hooks.work,
            &occasion,
            Some(clean.clone()),
            Some(&mut *watch),
        )?;
        let worked = work.after.clone();
        if !self.take_in(progress, work, Phase::Work) {
            return self.judge(progress).map(drop);
        }
        // Where nothing changed there is nothing to look into.
        if worked != clean || self.tree.base()? != base {
            self.on_its_way(&base)?;
        }
        // What is verified is what is committed, whatever the verification
        // itself leaves in the tree.
        if worked.tree != clean.tree && self.tree.keep_content()? != worked.tree {
            return Err(StepError::Unproven(
                "the tree changed after the work ended".to_owned(),
            ));
        }
        let verify = self.run(
            Phase::Verify,
            &hooks.verify,
            &occasion,
            Some(worked.clone()),
            Some(&mut *watch),
        )?;
        let verified = verify.after.clone();
        if !self.take_in(progress, verify, Phase::Verify) {
            return self.judge(progress).map(drop);
        }
        if verified.head != worked.head {
            return Err(StepError::Unproven(
                "the verification moved HEAD".to_owned(),
            ));
        }
        let requests = outbox::read(&files.outbox)?;
        let lease = format!("{}#{}", claim.lease_id, claim.generation);
        let text = CommitText {
            issue_id: &claim.issue_id,
            title: &claimed.row.text_of("title"),
            lease: &lease,
            step_id: &step_id,
        };
        progress.untidy = verified.tree != worked.tree || verified.nested;
        progress.commit = if worked.tree == self.tree.clean_state()?.tree {
            None
        } else if verified.tree == worked.tree {
            self.tree.commit_exactly(&text, &worked.tree)?
        } else {
            self.tree.commit_kept(&text, &worked.tree)?
        };
        let before = worked;
        let after = self.tree.clean_state()?;
        if after.tree != before.tree {
            return Err(StepError::Unproven(
                "the commit is not what was verified".to_owned(),
            ));
        }
        if progress.commit.is_none() && after.head != base.commit {
            progress.commit = Some(after.head.clone());
        }
        if let Err(class) = watch.look() {
            progress.cut = Some(Cut::Lease(class));
            progress.fail(class.as_str());
            return Ok(());
        }
        let Some(ready) = self.judge(progress)? else {
            return Ok(());
        };
        for new in requests {
            let ready = match self.admitted::<Discover>(progress)? {
                Ok(ready) => ready,
                Err(classes) => {
                    classes
                        .iter()
                        .for_each(|class| progress.fail(class.as_str()));
                    return Ok(());
                }
            };
            let filed = batch.memory.discover(ready, new)?;
            batch.note_filed(&filed.issue, &claim.issue_id);
            progress.discovered.push(filed.issue.id.to_string());
        }
        self.close(progress, ready, &before, &after)
    }

    /// Makes sure that the step's work goes on from its base, on the lane's
    /// branch, with nothing unfinished.
    fn on_its_way(&self, base: &Base) -> Result<(), StepError> {
        let departed = match self.tree.departure(base)? {
            // Work that went on elsewhere comes back to the lane's branch.
            Some(Departure::Branch { .. }) => {
                let rejoined = self.tree.rejoin(base);
                rejoined.map_err(|error| StepError::Unproven(error.to_string()))?;
                self.tree.departure(base)?
            }
            departed => departed,
        };
        match departed {
            Some(departure) => Err(StepError::Unproven(departure.to_string())),
            None => Ok(()),
        }
    }

    /// Closes the issue, reads it back and witnesses that.
    fn close(
        &self,
        progress: &mut Progress,
        ready: MutationReady<Close>,
        before: &TreeState,
        after: &TreeState,
    ) -> Result<(), StepError> {
        let step_id = progress.identity.step_id();
        let facts = value_of(ready.witness());
        progress.witnesses.insert(ready.witness_ref());
        self.batch.memory.close(ready)?;
        progress.closed = true;
        let found = self.batch.memory.view(|view| {
            view.issue(&progress.identity.issue_id).map(|issue| {
                (
                    issue.status.as_str().to_owned(),
                    issue.lease.is_some(),
                    issue.closed_by_step.as_deref() == Some(&step_id),
                )
            })
        })?;
        let holds = found
            .as_ref()
            .is_some_and(|(status, leased, by_us)| status == "closed" && !leased && *by_us);
        let document = json!({
            "schema": 1,
            "witnessKind": "premath.harness.mutation_witness.v1",
            "stepId": step_id,
            "mutation": facts,
            "found": found.map(|(status, leased, by_us)| json!({
                "status": status, "leased": leased, "closedByThisStep": by_us,
            })),
            "holds": holds,
            "before": before,
            "after": after,
            "commit": progress.commit,
        });
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, "mutation", &document)?;
        progress.witnesses.insert(&witness.reference);
        Ok(())
    }

    /// Takes a command's end in; tells whether the step goes on.
    fn take_in(&self, progress: &mut Progress, ran: Ran, phase: Phase) -> bool {
        progress.witnesses.insert(&ran.witness_ref);
        for class in &ran.classes {
            progress.fail(class);
        }
        if phase == Phase::Verify {
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
            let output = witness::file(folder, &step_id, phase.name(), "stderr");
            progress.said = Some((message.clone(), output));
        }
        if ran.survivors > 0 {
            progress.restored = false;
            progress.lane_lost = Some((
                FailureClass::SupervisorLost,
                format!(
                    "{} process(es) of the step could not be ended",
                    ran.survivors
                ),
            ));
        }
        progress.cut = ran.cut;
        let passed = ran.passed();
        progress.calls.push(ran.call);
        passed && progress.lane_lost.is_none()
    }

    /// Judges the turn, writes its witness, and returns the right to close
    /// where the gate grants it.
    fn judge(&self, progress: &mut Progress) -> Result<Option<MutationReady<Close>>, StepError> {
        let input = self.evidence(progress);
        let judged = self.admitted::<Close>(progress)?;
        let classes: BTreeSet<FailureClass> = match &judged {
            Ok(_) => BTreeSet::new(),
            Err(classes) => classes.clone(),
        };
        let step_id = progress.identity.step_id();
        let document = json!({
            "schema": 1,
            "witnessKind": "premath.harness.turn_witness.v1",
            "stepId": step_id,
            "input": input,
            "joinCheck": join_check(&input)?,
            "closeFailureClasses": classes,
        });
        let folder = &self.batch.settings.roots.witnesses;
        let witness = witness::write(folder, &step_id, "turn", &document)?;
        progress.witnesses.insert(&witness.reference);
        progress.turn_witness = Some(witness.reference);
        // A command that failed is the cause; what the gate says of it follows.
        if progress.classes.is_empty() {
            classes
                .iter()
                .for_each(|class| progress.fail(class.as_str()));
        }
        Ok(judged.ok())
    }

    fn evidence(&self, progress: &Progress) -> JoinCheckInput {
        shell_turn(&ShellTurn {
            step: &progress.identity,
            policies: &self.batch.policies(),
            calls: &progress.calls,
        })
    }

    /// Walks the step's turn to the right for one kind of change.
    fn admitted<C: Change>(
        &self,
        progress: &Progress,
    ) -> Result<Result<MutationReady<C>, BTreeSet<FailureClass>>, StepError> {
        let verification = format!("{}/verify", progress.identity.step_id());
        let binding = MutationBinding::of_mode(
            progress.identity.clone(),
            &self.batch.settings.mode,
            Some(verification),
        );
        Ok(admit::<C>(&self.evidence(progress), &binding)?)
    }

    fn begin_session(&mut self, progress: &Progress, base: &Base) -> Result<(), ProjectionError> {
        // A step is a session of its own, from files.
        self.session = None;
        let step = &progress.identity;
        let write = SessionWrite {
            session_id: Some(step.session_id.clone()),
            state: SessionState::Active,
            issue_id: Some(step.issue_id.clone()),
            summary: Some(format!("working on {}", step.issue_id)),
            next_step: Some("work, verify, gate, close".to_owned()),
            lineage_refs: Some(self.lineage(&step.issue_id)),
            issues_path: Some(self.batch.memory.path().to_string_lossy().into_owned()),
            worker_id: Some(self.worker_id.clone()),
            batch_id: Some(self.batch.id().to_owned()),
            step: StepWrite::Set(progress.session_step(base)),
            ..SessionWrite::default()
        };
        self.write_session(write)
    }

    pub(super) fn lineage(&self, issue_id: &str) -> RefSet {
        premath_kernel::reference::site_lineage(
            issue_id,
            &self.worker_id,
            &self.batch.settings.roots.repository.to_string_lossy(),
            &self.batch.memory.path().to_string_lossy(),
            &self.worktree.to_string_lossy(),
            &self.batch.settings.mode,
        )
    }

    /// Projects the issue's feature; any other that a crash left in progress
    /// is pending again.
    pub(super) fn feature(
        &self,
        claimed: &Claimed,
        status: FeatureStatus,
        verification: Option<&str>,
    ) -> Result<(), ProjectionError> {
        let path = &self.roots.ledger;
        let id = &claimed.claim.issue_id;
        let now = clock::now().wall;
        let mut ledger = projection::read_ledger(path)?;
        let left: Vec<String> = ledger
            .iter()
            .flat_map(|ledger| &ledger.features)
            .filter(|feature| {
                feature.known_status() == Some(FeatureStatus::InProgress)
                    && feature.feature_id != *id
            })
            .map(|feature| feature.feature_id.clone())
            .collect();
        let mut writes: Vec<FeatureWrite> = left
            .into_iter()
            .map(|other| FeatureWrite {
                status: Some(FeatureStatus::Pending),
                ..FeatureWrite::new(other)
            })
            .collect();
        writes.push(FeatureWrite {
            status: Some(status),
            issue_id: Some(id.clone()),
            summary: Some(claimed.row.text_of("title")),
            session_ref: self
                .session
                .as_ref()
                .map(|session| premath_kernel::reference::session(&session.session_id)),
            verification_refs: verification.map(|reference| RefSet::from_iter([reference])),
            ..FeatureWrite::new(id)
        });
        for write in writes {
            match FeatureLedger::write(ledger.clone(), write, now) {
                Ok(written) => ledger = Some(written),
                Err(source) => {
                    return Err(ProjectionError::Ledger {
                        path: path.clone(),
                        source,
                    });
                }
            }
        }
        match ledger {
            Some(ledger) => projection::write_ledger(path, &ledger),
            None => Ok(()),
        }
    }

    pub(super) fn variables(
        &self,
        claimed: &Claimed,
        step_id: &str,
        files: &StepFiles,
    ) -> Vec<(&'static str, OsString)> {
        let claim = &claimed.claim;
        vec![
            ("PREMATH_ISSUE_ID", claim.issue_id.clone().into()),
            ("PREMATH_ISSUE_TITLE", line(&claimed.row.text_of("title"))),
            ("PREMATH_ISSUE_FILE", files.issue.clone().into()),
            ("PREMATH_PROMPT_FILE", files.prompt.clone().into()),
            ("PREMATH_WORKTREE", self.worktree.clone().into()),
            ("PREMATH_WORKER_ID", self.worker_id.clone().into()),
            ("PREMATH_LEASE_ID", claim.lease_id.clone().into()),
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
        ]
    }
}

/// Walks a turn through the chain.
pub(super) fn admit<C: Change>(
    input: &JoinCheckInput,
    binding: &MutationBinding,
) -> Result<Result<MutationReady<C>, BTreeSet<FailureClass>>, premath_kernel::turn::EvidenceError> {
    let joined = CallSpec::bind(input)?
        .requests()
        .results()
        .tool_use()
        .join();
    Ok(joined
        .map_err(|refused| refused.into_parts().1)
        .and_then(|joined| {
            joined
                .admit::<C>(binding)
                .map_err(|refused| refused.into_parts().1)
        }))
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
