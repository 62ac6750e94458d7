//! Terminal escalation: a turn of the harness's own, whose right admits
//! blocking and discovering, nothing else (`contracts.md` 7).

use super::stopped::Stopping;
use crate::batch::read_back;
use crate::lane::Lane;
use crate::settings::Revocation;
use crate::witness;
use premath_evidence::{EscalationFacts, escalation_grant};
use premath_kernel::issue::dispatch::is_follow_up;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::policy::escalation::{EscalationReport, EscalationRight, blocked_notes};
use premath_kernel::policy::retry::{Decision, EscalationAction};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::trajectory::{BlockedBy, RetryRecord};
use premath_memory::escalation::{CarriedOut, ESCALATION_PHASE};
use premath_memory::{ChangeError, NewIssue};

/// Returns what the issue keeps of the step that blocks it.
fn blocked_by(report: &EscalationReport<'_>, generation: u64) -> BlockedBy {
    BlockedBy {
        step_id: report.step_id.to_owned(),
        worker_id: report.worker_id.to_owned(),
        generation,
        failure_classes: report.failure_classes.to_vec(),
        retry: RetryRecord::from(report.decision),
    }
}

impl Lane {
    /// Carries an escalation out; a failed one never reads as success.
    pub(super) fn escalate(
        &self,
        stopping: &mut Stopping<'_>,
        decision: &Decision,
        escalation: EscalationAction,
    ) -> Result<CarriedOut, ()> {
        let claimed = stopping.claimed;
        let title = claimed.row.text_of("title");
        let classes = stopping.failure.classes.clone();
        let witnesses = stopping.log.witnesses.clone();
        let step_id = stopping.log.identity.step_id();
        let report = EscalationReport {
            issue_id: &claimed.claim.issue_id,
            issue_title: &title,
            step_id: &step_id,
            worker_id: &self.worker_id,
            decision,
            failure_classes: &classes,
            witness_refs: &witnesses,
        };
        // A follow-up of a follow-up is never filed.
        if escalation == EscalationAction::IssueDiscover && is_follow_up(&claimed.row.issue) {
            return Ok(CarriedOut::Nothing);
        }
        let mut notes = blocked_notes(&report);
        if let Some(figures) = &stopping.used_up {
            notes.push_str(&format!("Used in this batch: {figures}\n"));
        }
        let memory = &self.batch.memory;
        let right = self.escalation_right(stopping, decision, escalation);
        if let Ok(Some(right)) = &right {
            stopping.log.witnesses.insert(right.witness_ref());
        }
        let changed = match right {
            Ok(None) => Ok(CarriedOut::Nothing),
            Ok(Some(EscalationRight::ToBlock(ready))) => {
                let by = blocked_by(&report, claimed.claim.generation);
                memory.block(ready, notes, Some(by)).and_then(|_| {
                    self.batch.reached(Boundary::IssueBlocked);
                    let shown = self.batch.shows_blocked(&claimed.claim.issue_id)?;
                    read_back(shown, &claimed.claim.issue_id, "blocked")?;
                    Ok(CarriedOut::Blocked)
                })
            }
            Ok(Some(EscalationRight::ToDiscover(ready))) => {
                let new = NewIssue::follow_up(&report, &claimed.row.issue);
                let parent = &claimed.claim.issue_id;
                let filed = self
                    .batch
                    .file(ready, new, parent, Boundary::EscalationFiled);
                filed.map(CarriedOut::Discovered)
            }
            Err(error) => Err(error),
        };
        changed.map_err(|error| {
            stopping.failure.fail(error.class().as_str());
            tracing::error!(%step_id, %error, "escalation not carried out");
            if let ChangeError::Store(error) = error {
                stopping.failure.store_lost = Some(error.to_string());
            }
        })
    }

    /// Has the escalation's turn judged, and writes its witness.
    fn escalation_right(
        &self,
        stopping: &mut Stopping<'_>,
        decision: &Decision,
        action: EscalationAction,
    ) -> Result<Option<EscalationRight>, ChangeError> {
        if let Err(Revocation { class, detail }) = self.batch.authorised() {
            return Err(LeaseRefusal { class, detail }.into());
        }
        let log = &mut stopping.log;
        let step_id = log.step_id();
        let failed = log.turn_witness.clone();
        let facts = EscalationFacts {
            step: &log.identity,
            policies: &self.batch.policies(),
            decision,
            failure_classes: &stopping.failure.classes,
            witness_ref: &failed.unwrap_or_else(|| format!("step://{step_id}")),
        };
        let grant = escalation_grant(action, &facts, &self.batch.settings.mode);
        if let Some(document) = &grant.witness {
            let folder = &self.batch.settings.roots.witnesses;
            let witness = witness::write(folder, &step_id, ESCALATION_PHASE, document)?;
            log.witnesses.insert(&witness.reference);
        }
        grant.right.map_err(ChangeError::Refused)
    }
}
