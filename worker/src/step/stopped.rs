//! `stop`: the handoff, on every path out (HARNESS-RUNTIME 3.3,
//! `contracts.md` 4).
//!
//! It classifies what issue memory shows first; then the policy's decision is
//! carried out; then the row is written, which says what was done.

use super::closed::Closed;
use super::failed::Failed;
use super::hand_back::IssueEnd;
use super::landing::AdvancedLanding;
use super::log::StepLog;
use super::report::{StepEnding, StepReport};
use super::step_failure::StepFailure;
use super::work::WorkDone;
use crate::lane::command::{CommandError, CommandOwner, Cut, Phase};
use crate::lane::files::StepFiles;
use crate::lane::{BootError, Lane, SessionBefore};
use crate::witness;
use premath_kernel::authority::lineage;
use premath_kernel::authority::transport::Transported;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::handoff::{Handoff, HandoffResult, StepEnd};
use premath_kernel::json::reference::{self, WorkOutcome};
use premath_kernel::policy::landing::FAILURE_ROUND;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::feature::FeatureStatus;
use premath_kernel::record::session::{SessionState, SessionWrite, StepWrite};
use premath_kernel::record::trajectory::{RetryRecord, RowOutcome, StepRow, action};
use premath_memory::projection::ProjectionError;
use premath_memory::roots::lane_name;
use premath_memory::{Claimed, StoreError, artifact, clock};
use premath_worktree::tree::Base;

/// A step that is being stopped.
#[derive(Debug)]
pub(super) struct Stopping<'a> {
    pub(super) claimed: &'a Claimed,
    pub(super) log: StepLog,
    pub(super) base: Option<Base>,
    pub(super) work: WorkDone,
    pub(super) failure: StepFailure,
    /// Whether its issue is closed.
    pub(super) is_closed: bool,
    /// The outcome of releasing the lease.
    pub(super) transported: Option<Transported>,
    /// The figures, where the issue's budget is used up.
    pub(super) used_up: Option<String>,
}

/// A step that is stopped.
#[derive(Debug)]
struct Stopped {
    ending: StepEnding,
    result_class: String,
    /// Which attempt of the issue in this batch it was, from 1.
    attempt: u32,
    /// The branch on which what the step left is kept.
    salvage: Option<String>,
}

impl<'a> Stopping<'a> {
    fn new(claimed: &'a Claimed, ended: Result<Closed, Box<Failed>>) -> Self {
        let is_closed = ended.is_ok();
        let (log, base, work, failure) = match ended {
            Ok(Closed { log, base, work }) => (log, Some(base), work, StepFailure::default()),
            Err(failed) => (failed.log, failed.base, failed.work, failed.failure),
        };
        Self {
            claimed,
            log,
            base,
            work,
            failure,
            is_closed,
            transported: None,
            used_up: None,
        }
    }

    /// Returns the report.
    fn report(self, stopped: Stopped) -> StepReport {
        let (log, failure) = (self.log, self.failure);
        StepReport {
            issue_id: self.claimed.claim.issue_id.clone(),
            title: self.claimed.row.text_of("title"),
            step_id: log.step_id(),
            generation: self.claimed.claim.generation,
            ending: stopped.ending,
            result_class: stopped.result_class,
            failure_classes: failure.classes,
            attempt: stopped.attempt,
            commit: self.work.commit.filter(|_| self.is_closed),
            salvage: stopped.salvage,
            world: log.remote.map(|remote| remote.record),
            discovered: self.work.discovered,
            base: self.base.map(|base| base.commit),
            sensitive: self.work.sensitive,
            flaky: log.verified.flaky.len(),
            shared: log.verified.shared.filter(|_| self.is_closed),
            repairs: log.account.repairs(),
            said: failure.said,
            provider: log.account.provider,
            limit: log.account.limit,
            spent: log.account.spent,
            duration_ms: clock::now().boot_ms.saturating_sub(log.started_ms),
            lane_lost: failure.lane_lost,
            store_lost: failure.store_lost,
        }
    }
}

impl Lane {
    /// Ends a step: tree, lease, row, feature, session.
    pub(super) fn stop(
        &mut self,
        claimed: &Claimed,
        ended: Result<Closed, Box<Failed>>,
    ) -> StepReport {
        let mut stopping = Stopping::new(claimed, ended);
        if let Err(error) = self.confirm(&mut stopping) {
            let failure = &mut stopping.failure;
            failure.is_stranded = true;
            failure.fail(error.class().as_str());
            failure.store_lost = Some(error.to_string());
            return stopping.report(Stopped {
                ending: StepEnding::LeaseLost,
                result_class: HandoffResult::LeaseInvariant.as_str().to_owned(),
                attempt: 0,
                salvage: None,
            });
        }
        let salvage = self.put_in_order(&mut stopping);
        self.keep_said(&mut stopping);
        let attempt = self.batch.attempts(&claimed.claim.issue_id) + 1;
        let handoff = self.classify_issue(&mut stopping);
        let end = self.end_issue(&mut stopping, &handoff, attempt);
        let mut row = self.row(&stopping, &end);
        row.salvage.clone_from(&salvage);
        self.record_step(&mut stopping, &row);
        let salvage = salvage.or(self.run_stop_hook(&mut stopping));
        self.end_projections(&mut stopping, &row, &end);
        stopping.report(Stopped {
            ending: end.ending,
            result_class: end.result_class,
            attempt,
            salvage,
        })
    }

    /// Keeps what the harness itself says about a failure, for reports and for the next
    /// attempt.
    fn keep_said(&self, stopping: &mut Stopping<'_>) {
        let streams = &self.batch.settings.roots.streams;
        let step_id = stopping.log.step_id();
        let failure = &mut stopping.failure;
        let (Some(class), Some((said, output))) = (failure.classes.first(), &mut failure.said)
        else {
            return;
        };
        // A command has files of its own.
        if output != streams {
            return;
        }
        let line = said.lines().collect::<Vec<_>>().join("; ");
        let file = witness::file(streams, &step_id, FAILURE_ROUND, "stderr");
        match artifact::overwrite(&file, format!("{class}: {line}\n").as_bytes()) {
            Ok(()) => *output = file,
            Err(error) => tracing::warn!(%step_id, %error, "what failed is in no file"),
        }
    }

    /// Looks whether the issue is closed: a close whose answer was lost is in
    /// memory all the same. Where memory cannot be read, nothing is taken back
    /// on a guess.
    fn confirm(&self, stopping: &mut Stopping<'_>) -> Result<(), StoreError> {
        let step_id = stopping.log.step_id();
        let closed = self.batch.memory.view(|view| {
            view.issue(&stopping.claimed.claim.issue_id)
                .is_some_and(|issue| issue.was_closed_by(&step_id))
        })?;
        stopping.is_closed |= closed;
        Ok(())
    }

    /// Puts the lane where the next step may start; returns where what the
    /// step left is kept.
    fn put_in_order(&mut self, stopping: &mut Stopping<'_>) -> Option<String> {
        // A command may have put something else in the place of the folder that
        // session and ledger go to.
        if let Err(error) = self.roots.secure() {
            stopping.failure.lane_lost = Some((error.class(), error.to_string()));
        }
        let salvage = if stopping.is_closed {
            self.settle(stopping);
            None
        } else {
            self.take_back(stopping)
        };
        self.batch.reached(Boundary::LaneCleaned);
        if let Some(base) = &stopping.base
            && !stopping.failure.is_stranded
        {
            let step = stopping.log.session_step(base);
            self.leave_branch(&step, stopping.is_closed);
        }
        self.batch.reached(Boundary::BranchLeft);
        let alone = self.batch.landing.branches();
        self.tree.release_held(&lane_name(&self.worktree));
        drop(alone);
        self.batch.reached(Boundary::CandidateReleased);
        let commit = stopping.work.commit.clone().filter(|_| stopping.is_closed);
        let base = stopping.base.as_ref();
        stopping.log.settle_remote(base, commit);
        salvage.map(|salvage| self.kept(salvage))
    }

    /// After a failure: what the step left is kept, and the lane goes back.
    fn take_back(&self, stopping: &mut Stopping<'_>) -> Option<String> {
        let base = stopping.base.as_ref()?;
        let taken = self
            .back_to(base, &stopping.log.session_step(base))
            .and_then(|salvage| self.reset(base).map(|()| salvage));
        match taken {
            Ok(salvage) => salvage,
            Err(error) => {
                stopping.failure.fail(error.class().as_str());
                stopping
                    .failure
                    .mark_stranded(error.class(), error.to_string());
                None
            }
        }
    }

    /// After a success: the lane goes to the commit that closed the issue, and
    /// nothing else of the step stays in it.
    fn settle(&self, stopping: &mut Stopping<'_>) {
        let Some(mut base) = stopping.base.clone() else {
            return;
        };
        if let Some(commit) = &stopping.work.commit {
            // What landed is safe; the lane stays where it began.
            match self.tree.must_keep_own_files(commit) {
                Ok(()) => base.commit.clone_from(commit),
                Err(error) => {
                    stopping.failure.lane_lost = Some((error.class(), error.to_string()));
                }
            }
        }
        if let Err(error) = self.reset_after_work(&base) {
            stopping
                .failure
                .mark_stranded(error.class(), error.to_string());
        }
    }

    /// Classifies the state of the issue as memory has it.
    fn classify_issue(&self, stopping: &mut Stopping<'_>) -> Handoff {
        let end = match stopping.is_closed {
            true => StepEnd::Succeeded,
            false => StepEnd::Failed,
        };
        let claim = &stopping.claimed.claim;
        let handoff = match self.batch.handoff(claim, end, &self.worker_id) {
            Ok((handoff, reference)) => {
                stopping.log.witnesses.insert(reference);
                handoff
            }
            Err(error) => {
                stopping.failure.store_lost = Some(error.to_string());
                stopping.failure.fail(error.class().as_str());
                Handoff::UNKNOWN
            }
        };
        if handoff.result == HandoffResult::LeaseLost && stopping.failure.cut.is_none() {
            let class = FailureClass::LeaseGenerationMismatch;
            stopping.failure.fail(class.as_str());
        }
        handoff
    }

    /// Writes the step's row, ends its landing, and pushes it, or the revert of it.
    fn record_step(&mut self, stopping: &mut Stopping<'_>, row: &StepRow) {
        let recorded = self.batch.record(row);
        self.batch.reached(Boundary::RowWritten);
        let landing = stopping.work.landing.take().filter(|_| stopping.is_closed);
        let has_landed = landing.is_some();
        match (recorded, landing) {
            (Err(error), _) => stopping.failure.store_lost = Some(error.to_string()),
            (Ok(()), Some(landing)) => landing.unmark(),
            (Ok(()), None) => {}
        }
        // Once the mark is gone: a push leaves marked work out.
        if has_landed {
            self.batch.owe_push();
        }
        // What is owed stays owed where the lane is lost.
        if stopping.failure.lane_lost.is_some() || !self.batch.owes_push() {
            return;
        }
        // A failure changes nothing: the next push takes this work along.
        let claim = &stopping.claimed.claim;
        let step_id = stopping.log.step_id();
        if !self.push_target(&step_id, &claim.issue_id, claim.generation) {
            let class = FailureClass::LandingPushFailed;
            stopping.failure.fail(class.as_str());
        }
    }

    /// Runs the stop hook; its failure is named in the report and changes
    /// nothing, for the row is written. Returns where what it left in the tree
    /// is kept.
    fn run_stop_hook(&mut self, stopping: &mut Stopping<'_>) -> Option<String> {
        let is_over = matches!(stopping.failure.cut, Some(Cut::Interrupt | Cut::Cancelled));
        if is_over || stopping.failure.lane_lost.is_some() {
            return None;
        }
        let command = self.batch.settings.hooks.stop.clone()?;
        let step_id = stopping.log.step_id();
        let files = StepFiles::at(&self.roots.step);
        let mut variables = self.variables(stopping.claimed, &step_id, &files);
        let outcome = match stopping.is_closed {
            true => "completed",
            false => "failed",
        };
        variables.push(("PREMATH_STEP_OUTCOME", outcome.into()));
        let owner = CommandOwner {
            step_id: &step_id,
            issue_id: &stopping.claimed.claim.issue_id,
            generation: stopping.claimed.claim.generation,
            variables: &variables,
            task: None,
        };
        let ran = self.run(Phase::Stop, &command, &owner, None, None);
        self.batch.reached(Boundary::StopHookEnded);
        let failure = &mut stopping.failure;
        match ran {
            Ok(ran) => {
                if !ran.passed() {
                    failure.fail(FailureClass::HookFailed.as_str());
                }
                if ran.survivors > 0 {
                    let count = ran.survivors;
                    let detail = format!("cannot kill {count} process(es) of the stop hook");
                    failure.mark_stranded(FailureClass::SupervisorLost, detail);
                }
            }
            Err(error) => {
                failure.fail(FailureClass::HookFailed.as_str());
                tracing::warn!(%step_id, %error, "stop hook not run");
                if let CommandError::Supervisor(lost) = &error {
                    failure.lane_lost = self.replace_supervisor(lost);
                }
            }
        }
        self.clean_tree(stopping).map(|kept| self.kept(kept))
    }

    /// Nothing may be left over for the next step: what a stop hook left is kept
    /// like a failed step's work.
    fn clean_tree(&self, stopping: &mut Stopping<'_>) -> Option<String> {
        let tidied = self.tree.changes().and_then(|changes| {
            if changes.is_empty() {
                return Ok(None);
            }
            let now = self.tree.base()?;
            self.back_to(&now, &stopping.log.session_step(&now))
        });
        match tidied {
            Ok(salvage) => salvage,
            Err(error) => {
                stopping
                    .failure
                    .mark_stranded(error.class(), error.to_string());
                None
            }
        }
    }

    /// Writes the ends of feature and session.
    fn end_projections(&mut self, stopping: &mut Stopping<'_>, row: &StepRow, end: &IssueEnd) {
        let verification = stopping.log.verified.latest_witness();
        let feature = match end.ending {
            StepEnding::Closed => FeatureStatus::Completed,
            StepEnding::Blocked => FeatureStatus::Blocked,
            _ => FeatureStatus::Pending,
        };
        let feature = self.feature(stopping.claimed, feature, verification.as_deref());
        self.batch.reached(Boundary::FeatureEnded);
        let session = self.end_session(stopping, row, end);
        self.batch.reached(Boundary::SessionEnded);
        for error in [feature.err(), session.err()].into_iter().flatten() {
            // A projection is never an authority: the step is valid without it.
            tracing::error!(step = %row.step_id, %error, "projection not written");
            stopping.failure.lane_lost = Some((error.class(), error.to_string()));
        }
    }

    fn row(&self, stopping: &Stopping<'_>, end: &IssueEnd) -> StepRow {
        let claim = &stopping.claimed.claim;
        let issue_id = &claim.issue_id;
        let (log, settings) = (&stopping.log, &self.batch.settings);
        let mut row = StepRow::new(
            log.identity.step_id(),
            action::WORKER_LOOP,
            &*end.result_class,
            clock::now().wall,
        );
        row.issue_id = Some(issue_id.clone());
        row.started_at = Some(log.started_at.into());
        row.generation = Some(claim.generation);
        row.worker_id = Some(self.worker_id.clone());
        row.batch_id = Some(self.batch.id().to_owned());
        row.failure_classes.clone_from(&stopping.failure.classes);
        row.verification.clone_from(&log.verified.latest);
        row.flaky_refs.clone_from(&log.verified.flaky);
        let waited = u64::try_from(log.waited.as_millis()).ok();
        row.waited_ms = waited.filter(|waited| *waited > 0);
        row.next_step = Some(end.next.as_str().to_owned());
        row.retry = end.decision.as_ref().map(RetryRecord::from);
        row.instruction_refs = settings.mode.instruction_refs();
        row.lineage_refs = self.lineage(issue_id);
        if let Some(remote) = &log.remote {
            row.lineage_refs.extend(&remote.mapped_context);
            row.world = Some(remote.record.clone());
        }
        row.witness_refs = log.witnesses.clone();
        row.agent.clone_from(&log.account.agent);
        let mut outcome = WorkOutcome::Failed;
        if stopping.is_closed {
            outcome = WorkOutcome::Completed;
            row.note_sensitive(&stopping.work.sensitive);
            row.shared_verification.clone_from(&log.verified.shared);
            let landing = stopping.work.landing.as_ref();
            row.landing = landing.map(AdvancedLanding::record).cloned();
        }
        let prefix = &settings.witness_prefix;
        let witness = reference::work_witness(prefix, &self.worker_id, issue_id, outcome);
        row.witness_refs.insert(witness);
        row.witness_refs.insert(lineage::worker_lane_policy(
            &settings.mode,
            &self.worker_id,
            issue_id,
            self.step_index,
        ));
        row
    }

    fn end_session(
        &mut self,
        stopping: &Stopping<'_>,
        row: &StepRow,
        end: &IssueEnd,
    ) -> Result<(), ProjectionError> {
        let issue_id = &stopping.log.identity.issue_id;
        let summary = match end.ending {
            StepEnding::Closed => format!("closed {issue_id}"),
            _ => {
                let word = RowOutcome::of(&end.result_class).as_str();
                let classes = stopping.failure.classes.join(", ");
                format!("{issue_id} not closed ({word}): {classes}")
            }
        };
        self.before = Some(SessionBefore::Ended(summary.clone()));
        // A tree that is not back where it began stays on record: the next
        // boot takes it up.
        let (state, step) = match stopping.failure.is_stranded {
            false => (SessionState::Stopped, StepWrite::Clear),
            true => (SessionState::Active, StepWrite::Keep),
        };
        self.write_session(SessionWrite {
            state,
            summary: Some(summary),
            next_step: Some(end.next.as_str().to_owned()),
            witness_refs: Some(row.witness_refs.clone()),
            lineage_refs: Some(row.lineage_refs.clone()),
            step,
            ..SessionWrite::default()
        })
    }

    /// Releases a claim that no step was begun for.
    pub(super) fn not_begun(
        &self,
        claimed: &Claimed,
        log: StepLog,
        error: &BootError,
    ) -> StepReport {
        let failure = StepFailure {
            lane_lost: Some((error.class(), error.to_string())),
            ..StepFailure::default()
        };
        let mut stopping = Stopping {
            claimed,
            log,
            base: None,
            work: WorkDone::default(),
            failure,
            is_closed: false,
            transported: None,
            used_up: None,
        };
        if !self.is_without_host() {
            let _ = self.release(&mut stopping, None);
        }
        self.batch.unreserve(&claimed.claim);
        stopping.report(Stopped {
            ending: StepEnding::NotBegun,
            result_class: "not_begun".to_owned(),
            attempt: 0,
            salvage: None,
        })
    }
}
