//! An escalation outside a lane: the issue is held by a lease of its own, and
//! changed by the right that the escalation's turn was granted
//! (`contracts.md` 7).

use crate::clock;
use crate::error::{ChangeError, StoreError};
use crate::issues::{Claimed, IssueMemory, NewIssue};
use crate::projection::{self, ProjectionError};
use crate::read_back::WrittenChange;
use crate::witness;
use premath_kernel::authority::{LeaseAuthority, StepIdentity};
use premath_kernel::issue::Holder;
use premath_kernel::issue::dispatch::is_follow_up;
use premath_kernel::issue::lease::{
    self, AssigneeRule, Claim, ClaimRequest, LeaseKey, LeaseState, TTL_MIN, Term,
};
use premath_kernel::json::id::IssueId;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::escalation::{
    ContextSources, EscalationGrant, EscalationReport, EscalationRight, IssueContext,
    IssueContextError, SessionSource, blocked_notes, issue_context,
};
use premath_kernel::policy::retry::{Decision, EscalationAction, RetryOutcome};
use premath_kernel::record::change_witness::FoundChange;
use premath_kernel::record::session::session_id;
use premath_kernel::record::trajectory::{RetryRecord, StepRow, action};
use premath_kernel::turn::{Block, Discover, MutationReady};
use std::path::Path;

/// What is escalated, and in whose name.
#[derive(Debug)]
pub struct Escalation<'a> {
    /// The issue.
    pub issue_id: &'a IssueId,
    /// Who escalates: the lease's owner.
    pub claimant: &'a str,
    /// The process that holds the lease; a loop's only.
    pub holder: Option<Holder>,
    /// The highest generation of the issue that is known from elsewhere.
    pub generation_floor: u64,
    /// The decision of the policy.
    pub decision: &'a Decision,
    /// Every class of the failure, in their order.
    pub failure_classes: &'a [String],
    /// The failure's witnesses.
    pub witness_refs: &'a RefSet,
    /// The folder of witnesses, for those of the escalation's turn and of its change.
    pub witnesses: &'a Path,
}

/// What the witness of an escalation's turn is named by.
pub const ESCALATION_PHASE: &str = "escalation";

/// The change that an escalation made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarriedOut {
    /// The issue is blocked.
    Blocked,
    /// A follow-up was filed: its id.
    Discovered(IssueId),
    /// The action changes nothing.
    Nothing,
}

/// An escalation that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedOutEscalation {
    /// The change that was made.
    pub carried_out: CarriedOut,
    /// The step under which it was done; none where nothing was.
    pub step: Option<StepIdentity>,
    /// What the change rests on.
    pub witness_ref: Option<String>,
    /// The witness of the escalation's turn.
    pub turn_witness_ref: Option<String>,
    /// The witness of what the issue shows after the change.
    pub change_witness_ref: Option<String>,
}

impl CarriedOutEscalation {
    /// One that changes nothing, and of which nothing was judged.
    pub const NOTHING: Self = Self {
        carried_out: CarriedOut::Nothing,
        step: None,
        witness_ref: None,
        turn_witness_ref: None,
        change_witness_ref: None,
    };
}

impl IssueMemory {
    /// Finds the issue of an escalation, in the order of the contract.
    ///
    /// # Errors
    ///
    /// [`IssueContextError`] where no source names one, or several do;
    /// [`StoreError`] where issue memory cannot be read.
    pub fn escalation_context(
        &self,
        active_env: Option<&str>,
        env: Option<&str>,
        session: &SessionSource,
    ) -> Result<Result<IssueContext, IssueContextError>, StoreError> {
        self.view(|view| {
            let ready: Vec<String> = view.ready().map(|row| row.issue.id.to_string()).collect();
            issue_context(&ContextSources {
                active_env,
                env,
                session,
                ready: &ready,
            })
        })
    }

    /// Carries an escalation out.
    ///
    /// It acts under the lease that its claimant has on the issue, where that
    /// names no process; else under a claim of its own, which it releases.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]: the issue cannot be held, the gate refused the turn, or
    /// the change was refused. The issue is as it was.
    pub fn escalate_issue(
        &self,
        authority: &LeaseAuthority,
        escalation: &Escalation<'_>,
        grant: impl FnOnce(&StepIdentity) -> EscalationGrant,
    ) -> Result<CarriedOutEscalation, ChangeError> {
        if escalation.decision.outcome == RetryOutcome::Escalate(EscalationAction::Stop) {
            return Ok(CarriedOutEscalation::NOTHING);
        }
        let (claimed, is_ours) = self.hold(authority, escalation)?;
        let done = self.change_held(&claimed, escalation, grant);
        // Blocking ends the lease by itself.
        let blocked = matches!(
            &done,
            Ok(CarriedOutEscalation {
                carried_out: CarriedOut::Blocked,
                ..
            })
        );
        if is_ours && !blocked {
            let key = LeaseKey {
                lease_id: Some(claimed.claim.lease_id.clone()),
                owner: Some(claimed.claim.owner.clone()),
                generation: Some(claimed.claim.generation),
            };
            let released = self.release(authority, escalation.issue_id, key, None);
            // What failed before is what counts.
            if done.is_ok() {
                released?;
            }
        }
        done
    }

    fn hold(
        &self,
        authority: &LeaseAuthority,
        escalation: &Escalation<'_>,
    ) -> Result<(Claimed, bool), ChangeError> {
        let seen = clock::observe();
        let held = self.view(|view| {
            let row = view.row(escalation.issue_id)?;
            let lease = row.issue.lease.as_ref()?;
            let is_own = lease.holder.is_none()
                && *lease.owner == *escalation.claimant
                && lease::state(Some(&row.issue), &seen) == LeaseState::Active;
            is_own.then(|| Claimed {
                claim: Claim {
                    issue_id: escalation.issue_id.clone(),
                    owner: lease.owner.to_string(),
                    lease_id: (&*lease.lease_id).into(),
                    generation: lease.generation,
                    taken_over: None,
                },
                row: row.clone(),
            })
        })?;
        if let Some(claimed) = held {
            return Ok((claimed, false));
        }
        let request = ClaimRequest {
            claimant: escalation.claimant.to_owned(),
            lease_id: None,
            term: Term::Ttl(TTL_MIN),
            assignees: AssigneeRule::Any,
            holder: escalation.holder.clone(),
            generation_floor: escalation.generation_floor,
        };
        Ok((self.claim(authority, escalation.issue_id, request)?, true))
    }

    fn change_held(
        &self,
        claimed: &Claimed,
        escalation: &Escalation<'_>,
        grant: impl FnOnce(&StepIdentity) -> EscalationGrant,
    ) -> Result<CarriedOutEscalation, ChangeError> {
        let step = StepIdentity {
            issue_id: claimed.claim.issue_id.clone(),
            worker_id: escalation.claimant.into(),
            owner: claimed.claim.owner.clone(),
            lease_id: claimed.claim.lease_id.clone(),
            generation: claimed.claim.generation,
            session_id: session_id(Some(escalation.issue_id), clock::now().wall),
        };
        let grant = grant(&step);
        let turn_witness_ref = grant.witness.as_ref().map(|document| {
            let folder = escalation.witnesses;
            witness::write_another(folder, &step.step_id(), ESCALATION_PHASE, document)
        });
        let turn_witness_ref = turn_witness_ref.transpose()?;
        let right = grant.right.map_err(ChangeError::Refused)?;
        let witness_ref = right.as_ref().map(EscalationRight::witness_ref);
        let title = claimed.row.text_of("title");
        let (step_id, worker_id) = (step.step_id(), &step.worker_id);
        let report = EscalationReport {
            issue_id: escalation.issue_id,
            issue_title: &title,
            step_id: &step_id,
            worker_id,
            decision: escalation.decision,
            failure_classes: escalation.failure_classes,
            witness_refs: escalation.witness_refs,
        };
        let witnesses = escalation.witnesses;
        let (carried_out, change_witness_ref) = match right {
            None => (CarriedOut::Nothing, None),
            // A follow-up of a follow-up is never filed.
            Some(EscalationRight::ToDiscover(_)) if is_follow_up(&claimed.row.issue) => {
                (CarriedOut::Nothing, None)
            }
            Some(EscalationRight::ToBlock(ready)) => {
                let reference = self.block_seen(ready, &report, witnesses)?;
                (CarriedOut::Blocked, Some(reference))
            }
            Some(EscalationRight::ToDiscover(ready)) => {
                let new = NewIssue::follow_up(&report, &claimed.row.issue);
                let (filed, reference) = self.discover_seen(ready, new, &report, witnesses)?;
                (CarriedOut::Discovered(filed), Some(reference))
            }
        };
        Ok(CarriedOutEscalation {
            carried_out,
            step: Some(step),
            witness_ref,
            turn_witness_ref,
            change_witness_ref,
        })
    }

    /// Blocks the issue, and reads it back; returns the reference of the witness.
    fn block_seen(
        &self,
        ready: MutationReady<Block>,
        report: &EscalationReport<'_>,
        witnesses: &Path,
    ) -> Result<String, ChangeError> {
        let mutation = ready.witness().clone();
        self.block(ready, blocked_notes(report), None)?;
        let change = WrittenChange {
            witnesses,
            step_id: report.step_id,
            phase: "blocked",
            mutation: &mutation,
            issue_id: report.issue_id,
        };
        self.read_back(&change, FoundChange::is_blocked)
    }

    /// Files a follow-up, and reads it back; returns its id, and the reference of the
    /// witness.
    fn discover_seen(
        &self,
        ready: MutationReady<Discover>,
        new: NewIssue,
        report: &EscalationReport<'_>,
        witnesses: &Path,
    ) -> Result<(IssueId, String), ChangeError> {
        let mutation = ready.witness().clone();
        let filed = IssueId::from(self.discover(ready, new)?.issue.id.as_ref());
        let change = WrittenChange {
            witnesses,
            step_id: report.step_id,
            phase: "follow-up",
            mutation: &mutation,
            issue_id: &filed,
        };
        let reference = self.read_back(&change, |found| found.is_from(report.issue_id))?;
        Ok((filed, reference))
    }
}

/// Reads what a session reports about its issue.
pub fn session_source(path: &Path) -> SessionSource {
    match projection::read_session(path) {
        Ok(None) => SessionSource::Absent,
        Ok(Some(session)) => SessionSource::Read {
            issue_id: session.issue_id,
        },
        Err(ProjectionError::Store(error)) => SessionSource::ReadFailed {
            reason: error.to_string(),
        },
        Err(error) => {
            let cause = std::error::Error::source(&error);
            SessionSource::Invalid {
                reason: cause.map_or_else(|| error.to_string(), ToString::to_string),
            }
        }
    }
}

/// Returns the row of an escalation: `escalated` where it was carried out,
/// `escalation_failed` where it was not. Neither counts as success.
pub fn escalation_row(
    claimant: &str,
    issue_id: Option<&IssueId>,
    decision: &Decision,
    outcome: Result<&CarriedOutEscalation, &[String]>,
) -> StepRow {
    let now = clock::now().wall;
    let step = outcome.ok().and_then(|handed| handed.step.as_ref());
    let step_id = step.map_or_else(
        || format!("{claimant}.escalation.{}", now.as_microsecond()).into(),
        StepIdentity::step_id,
    );
    let result = match outcome {
        Ok(_) => "escalated",
        Err(_) => "escalation_failed",
    };
    let refs = |handed: &CarriedOutEscalation| {
        let refs = [
            &handed.witness_ref,
            &handed.turn_witness_ref,
            &handed.change_witness_ref,
        ];
        refs.into_iter().flatten().map(String::as_str).collect()
    };
    let failure_classes = match outcome {
        Ok(_) => vec![decision.class.clone()],
        Err(classes) => classes.to_vec(),
    };
    let mut row = StepRow::new(step_id, action::ESCALATION, result, now);
    row.issue_id = issue_id.cloned();
    row.started_at = Some(Stamp::at(now));
    row.failure_classes = failure_classes;
    row.generation = step.map(|step| step.generation);
    row.worker_id = Some(claimant.into());
    row.retry = Some(RetryRecord::from(decision));
    row.witness_refs = outcome.map(refs).unwrap_or_default();
    row
}
