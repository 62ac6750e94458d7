//! Terminal escalation: a turn of the harness's own, whose right admits
//! blocking and discovering, nothing else (`contracts.md` 7).

use super::Lane;
use super::progress::Progress;
use super::turn::{admit, walk};
use premath_evidence::{ESCALATION_NORMALIZER, EscalationFacts, escalation_turn};
use premath_kernel::dispatch::{FOLLOW_UP_LABEL, is_follow_up};
use premath_kernel::escalation::{EscalationReport, blocked_notes, follow_up};
use premath_kernel::failure::FailureClass;
use premath_kernel::retry::{Decision, EscalationAction};
use premath_kernel::turn::{Block, Change, Discover, MutationBinding, MutationReady};
use premath_memory::{ChangeError, Claimed, NewIssue};

/// What an escalation did.
#[derive(Debug)]
pub(super) enum CarriedOut {
    /// The issue is blocked.
    Blocked,
    /// A follow-up was filed.
    Discovered(String),
    /// The action changes nothing.
    Nothing,
}

impl Lane {
    /// Carries an escalation out; a failed one never reads as success.
    pub(super) fn escalate(
        &self,
        claimed: &Claimed,
        progress: &mut Progress,
        decision: &Decision,
        escalation: EscalationAction,
    ) -> Result<CarriedOut, ()> {
        let title = claimed.row.text_of("title");
        let classes = progress.classes.clone();
        let witnesses = progress.witnesses.clone();
        let step_id = progress.identity.step_id();
        let report = EscalationReport {
            issue_id: &claimed.claim.issue_id,
            issue_title: &title,
            step_id: &step_id,
            worker_id: &self.worker_id,
            decision,
            failure_classes: &classes,
            witness_refs: &witnesses,
        };
        let changed = match escalation {
            EscalationAction::Stop => return Ok(CarriedOut::Nothing),
            // A follow-up of a follow-up helps nobody.
            EscalationAction::IssueDiscover if is_follow_up(&claimed.row.issue) => {
                return Ok(CarriedOut::Nothing);
            }
            EscalationAction::MarkBlocked => self
                .escalation_right::<Block>(progress, decision)
                .and_then(|ready| {
                    self.batch
                        .memory
                        .block(ready, blocked_notes(&report))
                        .map(|_| CarriedOut::Blocked)
                }),
            EscalationAction::IssueDiscover => self
                .escalation_right::<Discover>(progress, decision)
                .and_then(|ready| {
                    let follow_up = follow_up(&report);
                    let new = NewIssue {
                        title: follow_up.title,
                        description: follow_up.description,
                        priority: Some(claimed.row.issue.priority),
                        issue_type: Some(claimed.row.issue.issue_type.to_string()),
                        labels: vec![FOLLOW_UP_LABEL.to_owned()],
                        ..NewIssue::default()
                    };
                    let filed = self.batch.memory.discover(ready, new)?;
                    self.batch.note_filed(&filed.issue, &claimed.claim.issue_id);
                    Ok(CarriedOut::Discovered(filed.issue.id.to_string()))
                }),
        };
        changed.map_err(|error| {
            progress.fail(error.class().as_str());
            tracing::error!(%step_id, %error, "escalation not carried out");
            if let ChangeError::Store(error) = error {
                progress.store_lost = Some(error.to_string());
            }
        })
    }

    fn escalation_right<C: Change>(
        &self,
        progress: &Progress,
        decision: &Decision,
    ) -> Result<MutationReady<C>, ChangeError> {
        let witness = progress
            .turn_witness
            .clone()
            .unwrap_or_else(|| format!("step://{}", progress.identity.step_id()));
        let input = escalation_turn(&EscalationFacts {
            step: &progress.identity,
            policies: &self.batch.policies(),
            decision,
            failure_classes: &progress.classes,
            witness_ref: &witness,
        });
        let binding =
            MutationBinding::of_mode(progress.identity.clone(), &self.batch.settings.mode, None)
                .normalized_by(ESCALATION_NORMALIZER);
        let refused = |class: FailureClass, detail: String| {
            ChangeError::Refused(premath_kernel::lease::LeaseRefusal { class, detail })
        };
        let turn = walk(&input).map_err(|error| refused(error.class(), error.to_string()))?;
        admit::<C>(turn, &binding).map_err(|classes| {
            let class = classes.first().copied();
            refused(
                class.unwrap_or(FailureClass::MutationUseEvidenceMissing),
                "the gate refused the escalation's turn".to_owned(),
            )
        })
    }
}
