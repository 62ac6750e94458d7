//! `stop`: the handoff, on every path out (HARNESS-RUNTIME 3.3,
//! `contracts.md` 4).
//!
//! It classifies what issue memory shows first; then the policy's decision is
//! carried out; then the row is written.

use super::Lane;
use super::command::{CommandError, Cut, Occasion, Phase};
use super::escalate::CarriedOut;
use super::files::StepFiles;
use super::progress::Progress;
use super::report::{StepEnding, StepReport};
use crate::settings::HostActionTransport;
use premath_kernel::authority::lineage;
use premath_kernel::authority::transport::{self, DispatchRequest, TransportAction, Transported};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::handoff::{Handoff, StepEnd};
use premath_kernel::issue::lease::LeaseState;
use premath_kernel::json::reference::{self, WorkOutcome};
use premath_kernel::policy::retry::{self, Decision, RetryOutcome, retry_at};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::feature::FeatureStatus;
use premath_kernel::record::session::{SessionState, SessionWrite, StepWrite};
use premath_kernel::record::trajectory::{RetryRecord, StepRow, action};
use premath_memory::dispatch::dispatch;
use premath_memory::roots::lane_name;
use premath_memory::{ChangeError, Claimed, clock};

impl Lane {
    /// Ends a step: tree, lease, row, feature, session.
    pub(super) fn stop(&mut self, claimed: &Claimed, mut progress: Progress) -> StepReport {
        // A close whose answer was lost is in memory all the same; where memory
        // cannot be read nothing is taken back on a guess.
        let step_id = progress.identity.step_id();
        let closed = self.batch.memory.view(|view| {
            view.issue(&claimed.claim.issue_id)
                .is_some_and(|issue| issue.closed_by_step.as_deref() == Some(&step_id))
        });
        match closed {
            Ok(closed) => progress.closed |= closed,
            Err(error) => {
                progress.restored = false;
                progress.fail(error.class().as_str());
                progress.store_lost = Some(error.to_string());
                let class = UNKNOWN.result_class.to_owned();
                return self.report(claimed, progress, StepEnding::LeaseLost, class, 0, None);
            }
        }
        let end = if progress.closed {
            StepEnd::Succeeded
        } else {
            StepEnd::Failed
        };
        // A command may have put something else in the place of the folder that
        // session and ledger go to.
        if let Err(error) = self.roots.secure() {
            progress.lane_lost = Some((error.class(), error.to_string()));
        }
        let mut salvage = if progress.closed {
            self.settle(&mut progress);
            None
        } else {
            self.take_back(&mut progress)
        };
        self.batch.reached(Boundary::LaneCleaned);
        if let Some(base) = progress.base.clone()
            && progress.restored
        {
            self.leave_branch(&progress.session_step(&base), progress.closed);
        }
        self.batch.reached(Boundary::BranchLeft);
        let alone = self.batch.landing.branches();
        self.tree.let_go(&lane_name(&self.worktree));
        drop(alone);
        self.batch.reached(Boundary::CandidateReleased);
        self.settle_abroad(&mut progress, &mut salvage);
        let attempt = self.batch.attempts(&claimed.claim.issue_id) + 1;
        let (handoff, lease_ref) = match self.batch.handoff(&claimed.claim, end, &self.worker_id) {
            Ok((handoff, reference)) => (handoff, Some(reference)),
            Err(error) => {
                progress.store_lost = Some(error.to_string());
                progress.fail(error.class().as_str());
                (UNKNOWN, None)
            }
        };
        progress.witnesses.extend(lease_ref);
        let mut result_class = handoff.result_class.to_owned();
        if handoff.result_class == "failed_lease_lost" && progress.cut.is_none() {
            progress.fail(FailureClass::LeaseGenerationMismatch.as_str());
        }
        self.note_used_up(&mut progress);
        let mut decision = None;
        let ending = if progress.closed {
            StepEnding::Closed
        } else {
            self.carry_out(
                claimed,
                &mut progress,
                &handoff,
                attempt,
                &mut decision,
                &mut result_class,
            )
        };
        if let Some(transported) = progress.transported {
            result_class = transported.ends(&result_class);
        }
        let mut row = self.row(
            claimed,
            &progress,
            &handoff,
            &result_class,
            decision.as_ref(),
        );
        row.salvage.clone_from(&salvage);
        let recorded = self.batch.record(&row);
        self.batch.reached(Boundary::RowWritten);
        match recorded {
            Err(error) => progress.store_lost = Some(error.to_string()),
            Ok(()) if progress.landing.is_some() && progress.closed => {
                self.batch.landing.unmark(&claimed.claim.issue_id);
                self.batch.reached(Boundary::LandingUnmarked);
            }
            Ok(()) => {}
        }
        if progress.closed && progress.landing.is_some() && progress.lane_lost.is_none() {
            self.push(claimed, &mut progress);
        }
        // The row is written: what the hook does costs the step nothing.
        if progress.cut != Some(Cut::Interrupt) && progress.lane_lost.is_none() {
            let hooked = self.stop_command(claimed, &mut progress);
            salvage = salvage.or(hooked.map(|kept| self.kept(kept)));
        }
        let verification = progress
            .verification
            .as_ref()
            .and_then(|verification| verification.witness_ref.clone());
        let feature = match &ending {
            StepEnding::Closed => FeatureStatus::Completed,
            StepEnding::Blocked => FeatureStatus::Blocked,
            _ => FeatureStatus::Pending,
        };
        let feature = self.feature(claimed, feature, verification.as_deref());
        self.batch.reached(Boundary::FeatureEnded);
        let session = self.end_session(&progress, &row, &ending, &handoff);
        self.batch.reached(Boundary::SessionEnded);
        for error in [feature.err(), session.err()].into_iter().flatten() {
            // A projection is never an authority: the step is valid without it.
            tracing::error!(step = %row.step_id, %error, "projection not written");
            progress.lane_lost = Some((error.class(), error.to_string()));
        }
        self.report(claimed, progress, ending, result_class, attempt, salvage)
    }

    /// After a failure: what the step left is kept, and the lane goes back.
    fn take_back(&self, progress: &mut Progress) -> Option<String> {
        let base = progress.base.clone()?;
        let taken = self
            .back_to(&base, &progress.session_step(&base))
            .and_then(|salvage| self.reset(&base).map(|()| salvage));
        match taken {
            Ok(salvage) => salvage,
            Err(error) => {
                progress.restored = false;
                progress.fail(error.class().as_str());
                progress.lane_lost = Some((error.class(), error.to_string()));
                None
            }
        }
    }

    /// After a success: the lane goes to the commit that closed the issue, and
    /// nothing else of the step stays in it.
    fn settle(&self, progress: &mut Progress) {
        let Some(mut base) = progress.base.clone() else {
            return;
        };
        if let Some(commit) = &progress.commit {
            base.commit.clone_from(commit);
        }
        if let Err(error) = self.reset(&base) {
            progress.restored = false;
            progress.lane_lost = Some((error.class(), error.to_string()));
        }
    }

    /// Nothing may be left over for the next step: what a stop hook left is kept
    /// like a failed step's work.
    pub(super) fn tidy(&self, progress: &mut Progress) -> Option<String> {
        let tidied = self.tree.changes().and_then(|changes| {
            if changes.is_empty() {
                return Ok(None);
            }
            let now = self.tree.base()?;
            self.back_to(&now, &progress.session_step(&now))
        });
        match tidied {
            Ok(salvage) => salvage,
            Err(error) => {
                progress.restored = false;
                progress.lane_lost = Some((error.class(), error.to_string()));
                None
            }
        }
    }

    /// Runs the stop hook; its failure is named in the report and changes
    /// nothing. Returns where what it left in the tree is kept.
    fn stop_command(&mut self, claimed: &Claimed, progress: &mut Progress) -> Option<String> {
        let command = self.batch.settings.hooks.stop.clone()?;
        let step_id = progress.identity.step_id();
        let files = StepFiles::at(&self.roots.step);
        let mut variables = self.variables(claimed, &step_id, &files);
        let outcome = if progress.closed {
            "completed"
        } else {
            "failed"
        };
        variables.push(("PREMATH_STEP_OUTCOME", outcome.into()));
        let occasion = Occasion {
            step_id: &step_id,
            issue_id: &claimed.claim.issue_id,
            generation: claimed.claim.generation,
            variables: &variables,
            task: None,
        };
        let ran = self.run(Phase::Stop, &command, &occasion, None, None);
        self.batch.reached(Boundary::StopHookEnded);
        match ran {
            Ok(ran) => {
                if !ran.passed() {
                    progress.fail(FailureClass::HookFailed.as_str());
                }
                if ran.survivors > 0 {
                    progress.restored = false;
                    progress.lane_lost = Some((
                        FailureClass::SupervisorLost,
                        format!("cannot kill {} process(es) of the stop hook", ran.survivors),
                    ));
                }
            }
            Err(error) => {
                progress.fail(FailureClass::HookFailed.as_str());
                tracing::warn!(%step_id, %error, "stop hook not run");
                if let CommandError::Supervisor(lost) = &error {
                    progress.lane_lost = self.mend_supervisor(lost);
                }
            }
        }
        self.tidy(progress)
    }

    /// Does with the issue what memory's state and the policy say.
    #[expect(clippy::too_many_arguments, reason = "they are parts of the one step")]
    fn carry_out(
        &self,
        claimed: &Claimed,
        progress: &mut Progress,
        handoff: &Handoff,
        attempt: u32,
        decision: &mut Option<Decision>,
        result_class: &mut String,
    ) -> StepEnding {
        let ours = handoff.action == "issue_lease_renew" || handoff.state == LeaseState::Contended;
        if !ours || progress.store_lost.is_some() {
            // The issue was released during the step: the policy's decision
            // still applies, or the batch would retry it forever.
            if handoff.state == LeaseState::Unleased && progress.limit.is_none() {
                *decision = Some(retry::decide(
                    &self.batch.settings.retry,
                    &progress.classes,
                    attempt,
                ));
            }
            return StepEnding::LeaseLost;
        }
        if self.batch.settings.transport == HostActionTransport::LocalRepl {
            let class = FailureClass::HostActionMcpTransportRequired.as_str();
            *result_class = class.to_owned();
            progress.fail(class);
            return StepEnding::LeaseLost;
        }
        if progress.cut == Some(Cut::Interrupt) {
            return match self.release(claimed, progress, None) {
                Ok(()) => StepEnding::Interrupted,
                Err(()) => StepEnding::LeaseLost,
            };
        }
        // The provider is parked for it, not the issue.
        if progress.limit.is_some() {
            progress.fail(FailureClass::UsageLimit.as_str());
            return match self.release(claimed, progress, None) {
                Ok(()) => StepEnding::UsageLimit,
                Err(()) => StepEnding::LeaseLost,
            };
        }
        let decided = retry::decide(&self.batch.settings.retry, &progress.classes, attempt);
        let step_id = progress.identity.step_id();
        let ending = match decided.outcome {
            RetryOutcome::Retry => {
                let wait =
                    self.batch
                        .settings
                        .backoff
                        .wait_of(&decided.backoff_class, attempt, &step_id);
                let at = (!wait.is_zero()).then(|| retry_at(clock::now().wall, wait));
                self.release(claimed, progress, at)
                    .map(|()| StepEnding::Retry { at })
            }
            RetryOutcome::Escalate(escalation) => {
                match self.escalate(claimed, progress, &decided, escalation) {
                    Ok(CarriedOut::Blocked) => Ok(StepEnding::Blocked),
                    Ok(CarriedOut::Discovered(follow_up)) => self
                        .release(claimed, progress, None)
                        .map(|()| StepEnding::Discovered { follow_up }),
                    Ok(CarriedOut::Nothing) | Err(()) => self
                        .release(claimed, progress, None)
                        .map(|()| StepEnding::Stopped),
                }
            }
        };
        *decision = Some(decided);
        ending.unwrap_or(StepEnding::LeaseLost)
    }

    fn release(
        &self,
        claimed: &Claimed,
        progress: &mut Progress,
        at: Option<jiff::Timestamp>,
    ) -> Result<(), ()> {
        let claim = &claimed.claim;
        let action = TransportAction::IssueLeaseRelease;
        let request = DispatchRequest::Release {
            issue_id: claim.issue_id.clone(),
            key: claim.key(),
            retry_at: at,
        };
        let authority = self.batch.lease_authority();
        let released = dispatch(&self.batch.memory, &authority, request);
        self.batch.reached(Boundary::LeaseReleased);
        progress.witnesses.insert(reference::transport_dispatch(
            action.as_str(),
            &transport::digest_of(action),
        ));
        let (transported, answer) = match released {
            Ok(_) => (Transported::Dispatched, Ok(())),
            Err(error) => {
                progress.fail(error.class().as_str());
                if let ChangeError::Store(error) = error {
                    progress.store_lost = Some(error.to_string());
                    (Transported::Error, Err(()))
                } else {
                    (Transported::Rejected, Err(()))
                }
            }
        };
        progress.transported = Some(transported);
        answer
    }

    fn row(
        &self,
        claimed: &Claimed,
        progress: &Progress,
        handoff: &Handoff,
        result_class: &str,
        decision: Option<&Decision>,
    ) -> StepRow {
        let issue_id = &claimed.claim.issue_id;
        let mut row = StepRow::new(
            progress.identity.step_id(),
            action::WORKER_LOOP,
            result_class,
            clock::now().wall,
        );
        row.issue_id = Some(issue_id.to_string());
        row.started_at = Some(progress.started_at.into());
        row.generation = Some(claimed.claim.generation);
        row.worker_id = Some(self.worker_id.clone());
        row.batch_id = Some(self.batch.id().to_owned());
        row.failure_classes.clone_from(&progress.classes);
        row.verification.clone_from(&progress.verification);
        row.next_step = Some(handoff.action.to_owned());
        row.retry = decision.map(RetryRecord::from);
        row.instruction_refs = self.batch.settings.mode.instruction_refs();
        row.lineage_refs = self.lineage(issue_id);
        if let Some(abroad) = &progress.abroad {
            row.lineage_refs.extend(&abroad.mapped_context);
            row.world = Some(abroad.record.clone());
        }
        row.witness_refs = progress.witnesses.clone();
        row.agent.clone_from(&progress.agent);
        if progress.closed {
            row.note_sensitive(&progress.sensitive);
        }
        row.landing = progress.landing.clone().filter(|_| progress.closed);
        let outcome = if progress.closed {
            WorkOutcome::Completed
        } else {
            WorkOutcome::Failed
        };
        let settings = &self.batch.settings;
        row.witness_refs.insert(reference::work_witness(
            &settings.witness_prefix,
            &self.worker_id,
            issue_id,
            outcome,
        ));
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
        progress: &Progress,
        row: &StepRow,
        ending: &StepEnding,
        handoff: &Handoff,
    ) -> Result<(), premath_memory::projection::ProjectionError> {
        let summary = match ending {
            StepEnding::Closed => format!("closed {}", progress.identity.issue_id),
            _ => format!(
                "{} not closed: {}",
                progress.identity.issue_id,
                progress.classes.join(", ")
            ),
        };
        // A tree that is not back where it began stays on record: the next
        // boot takes it up.
        let (state, step) = if progress.restored {
            (SessionState::Stopped, StepWrite::Clear)
        } else {
            (SessionState::Active, StepWrite::Keep)
        };
        self.write_session(SessionWrite {
            state,
            summary: Some(summary),
            next_step: Some(handoff.action.to_owned()),
            witness_refs: Some(row.witness_refs.clone()),
            lineage_refs: Some(row.lineage_refs.clone()),
            step,
            ..SessionWrite::default()
        })
    }

    /// Gives a claim back that no step was begun for.
    pub(super) fn not_begun(&self, claimed: &Claimed, mut progress: Progress) -> StepReport {
        let _ = self.release(claimed, &mut progress, None);
        self.batch.unreserve(&claimed.claim);
        self.report(
            claimed,
            progress,
            StepEnding::NotBegun,
            "not_begun".to_owned(),
            0,
            None,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "they are parts of the one step")]
    fn report(
        &self,
        claimed: &Claimed,
        progress: Progress,
        ending: StepEnding,
        result_class: String,
        attempt: u32,
        salvage: Option<String>,
    ) -> StepReport {
        StepReport {
            issue_id: claimed.claim.issue_id.to_string(),
            title: claimed.row.text_of("title"),
            step_id: progress.identity.step_id().into(),
            generation: claimed.claim.generation,
            ending,
            result_class,
            failure_classes: progress.classes,
            attempt,
            commit: progress.commit.filter(|_| progress.closed),
            salvage,
            world: progress.abroad.map(|abroad| abroad.record),
            discovered: progress.discovered,
            base: progress.base.map(|base| base.commit),
            sensitive: progress.sensitive,
            said: progress.said,
            provider: progress.provider,
            limit: progress.limit,
            spent: progress.spent,
            duration_ms: clock::now().boot_ms.saturating_sub(progress.started_ms),
            lane_lost: progress.lane_lost,
            store_lost: progress.store_lost,
        }
    }
}

/// What is reported where memory cannot be read.
const UNKNOWN: Handoff = Handoff {
    state: LeaseState::InvalidExpiresAt,
    action: "stop",
    result_class: "failed_lease_invariant",
};
