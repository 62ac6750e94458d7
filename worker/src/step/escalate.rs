//! Terminal escalation: a turn of the harness's own, whose right admits
//! blocking and discovering, nothing else (`contracts.md` 7).

use super::stopped::Stopping;
use crate::batch::Filer;
use crate::lane::Lane;
use crate::settings::Revocation;
use crate::witness;
use premath_evidence::{EscalationFacts, escalation_grant};
use premath_kernel::issue::dispatch::is_follow_up;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::policy::escalation::{EscalationReport, EscalationRight, blocked_notes};
use premath_kernel::policy::retry::{Decision, EscalationAction};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::change_witness::FoundChange;
use premath_kernel::record::trajectory::{BlockedBy, RetryRecord};
use premath_kernel::turn::{Block, MutationReady};
use premath_memory::escalation::{CarriedOut, ESCALATION_PHASE};
use premath_memory::read_back::WrittenChange;
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
        let right = self.escalation_right(stopping, decision, escalation);
        if let Ok(Some(right)) = &right {
            stopping.log.witnesses.insert(right.witness_ref());
        }
        let changed = right.and_then(|right| match right {
            None => Ok(CarriedOut::Nothing),
            Some(EscalationRight::ToBlock(ready)) => {
                let witness = self.block(ready, &report, notes, claimed.claim.generation)?;
                stopping.log.witnesses.insert(&witness);
                Ok(CarriedOut::Blocked)
            }
            Some(EscalationRight::ToDiscover(ready)) => {
                let new = NewIssue::follow_up(&report, &claimed.row.issue);
                let filer = Filer {
                    step_id: &step_id,
                    parent: &claimed.claim.issue_id,
                    phase: "follow-up",
                    boundary: Boundary::EscalationFiled,
                };
                let (id, witness) = self.batch.file(ready, new, &filer)?;
                stopping.log.witnesses.insert(&witness);
                Ok(CarriedOut::Discovered(id))
            }
        });
        changed.map_err(|error| {
            stopping.failure.fail(error.class().as_str());
            tracing::error!(%step_id, %error, "escalation not carried out");
            if let ChangeError::Store(error) = error {
                stopping.failure.store_lost = Some(error.to_string());
            }
        })
    }

    /// Blocks the issue, and reads it back; returns the reference of the witness.
    fn block(
        &self,
        ready: MutationReady<Block>,
        report: &EscalationReport<'_>,
        notes: String,
        generation: u64,
    ) -> Result<String, ChangeError> {
        let mutation = ready.witness().clone();
        let by = blocked_by(report, generation);
        self.batch.memory.block(ready, notes, Some(by))?;
        self.batch.reached(Boundary::IssueBlocked);
        let change = WrittenChange {
            witnesses: &self.batch.settings.roots.witnesses,
            step_id: report.step_id,
            phase: "blocked",
            mutation: &mutation,
            issue_id: report.issue_id,
        };
        self.batch
            .memory
            .read_back(&change, FoundChange::is_blocked)
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
