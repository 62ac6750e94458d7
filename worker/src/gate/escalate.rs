//! The end of a gate whose attempts are used up: its issue is handed up by a
//! turn of the harness's own.

use super::{Gate, GateError};
use crate::stderr::say;
use premath_evidence::{EscalationFacts, StepDemand, TurnPolicies, escalation_grant};
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::IssueId;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::escalation::SessionSource;
use premath_kernel::policy::retry::{Decision, EscalationAction, RetryOutcome};
use premath_kernel::record::trajectory::{CommandSeries, generation_floor};
use premath_memory::escalation::{
    CarriedOut, CarriedOutEscalation, Escalation, escalation_row, session_source,
};
use premath_memory::roots::{LaneRoots, worktree_root};
use premath_memory::{IssueMemory, OpenOptions, clock};

/// An escalation that was not carried out; it never reads as success.
struct Failure {
    class: FailureClass,
    detail: String,
}

impl Failure {
    fn new(class: FailureClass, detail: impl ToString) -> Self {
        let detail = detail.to_string();
        Self { class, detail }
    }
}

impl Gate {
    /// Hands the issue up and records that it was, or why it could not be.
    pub(super) fn escalate(
        &self,
        series: &CommandSeries,
        decision: &Decision,
    ) -> Result<(), GateError> {
        let RetryOutcome::Escalate(action) = decision.outcome else {
            return Ok(());
        };
        let mut issue = self.issue.clone();
        let handed = if action == EscalationAction::Stop {
            Ok(CarriedOutEscalation::NOTHING)
        } else {
            self.escalate_issue(series, decision, action, &mut issue)
        };
        let classes: Vec<String> = handed
            .as_ref()
            .err()
            .map(|failure| failure.class.as_str().to_owned())
            .into_iter()
            .collect();
        let outcome = handed.as_ref().map_err(|_| classes.as_slice());
        let row = escalation_row(&self.id, issue.as_ref(), decision, outcome);
        self.trajectory.append(&row)?;
        let id = issue.as_deref().unwrap_or_default();
        say(&match handed {
            Err(failure) => format!(
                "error: not escalated: {}: {}",
                failure.class,
                plain(&failure.detail)
            ),
            Ok(handed) => match handed.carried_out {
                CarriedOut::Blocked => format!("{} is blocked", plain(id)),
                CarriedOut::Discovered(filed) => {
                    format!("{} was filed, discovered from {}", plain(&filed), plain(id))
                }
                CarriedOut::Nothing => "nothing changed".to_owned(),
            },
        });
        Ok(())
    }

    fn escalate_issue(
        &self,
        series: &CommandSeries,
        decision: &Decision,
        action: EscalationAction,
        issue: &mut Option<IssueId>,
    ) -> Result<CarriedOutEscalation, Failure> {
        let mode = self.settings.mode.as_ref().map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            Failure::new(
                FailureClass::MutationModeInvalid,
                format!("{error}; {hint}"),
            )
        })?;
        let options = OpenOptions {
            insist_on_network_filesystem: std::env::var_os("PREMATH_ALLOW_NETWORK_FS")
                .is_some_and(|value| value == "1"),
            ..OpenOptions::default()
        };
        let memory = IssueMemory::open(&self.settings.roots.issues, &options)
            .map_err(|error| Failure::new(error.class(), error))?;
        let issue_id = match issue {
            Some(id) => id.clone(),
            None => issue.insert(self.context(&memory)?).clone(),
        };
        let rows = self.trajectory.rows();
        let rows = rows.map_err(|error| Failure::new(error.class(), error))?;
        let witness = series.witness_refs().iter().last().map(str::to_owned);
        let escalation = Escalation {
            issue_id: &issue_id,
            claimant: &self.id,
            holder: clock::this_process(),
            generation_floor: generation_floor(&rows, &issue_id),
            decision,
            failure_classes: series.failure_classes(),
            witness_refs: series.witness_refs(),
            witnesses: &self.settings.roots.witnesses,
        };
        memory
            .escalate_issue(&mode.lease_authority(), &escalation, |step| {
                let facts = EscalationFacts {
                    step,
                    policies: &self.policies(mode),
                    decision,
                    failure_classes: series.failure_classes(),
                    witness_ref: &witness.unwrap_or_else(|| format!("step://{}", step.step_id())),
                };
                escalation_grant(action, &facts, mode)
            })
            .map_err(|error| Failure::new(error.class(), error))
    }

    fn policies(&self, mode: &MutationMode) -> TurnPolicies {
        TurnPolicies {
            mutation: mode.policy_digest(),
            profile: self.settings.governance.clone(),
            turn: None,
            demand: StepDemand::default(),
        }
    }

    /// Finds the issue in the order of the contract.
    fn context(&self, memory: &IssueMemory) -> Result<IssueId, Failure> {
        let text = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let session = match std::env::var_os("PREMATH_HARNESS_SESSION_PATH") {
            Some(path) if !path.is_empty() => session_source(path.as_ref()),
            _ => match worktree_root(&self.workdir) {
                Ok(root) => {
                    let root = root.unwrap_or_else(|| self.settings.roots.repository.clone());
                    session_source(&LaneRoots::at(&root).session)
                }
                Err(error) => SessionSource::ReadFailed {
                    reason: error.to_string(),
                },
            },
        };
        memory
            .escalation_context(
                text("PREMATH_ACTIVE_ISSUE_ID").as_deref(),
                text("PREMATH_ISSUE_ID").as_deref(),
                &session,
            )
            .map_err(|error| Failure::new(error.class(), error))?
            .map(|context| context.issue_id)
            .map_err(|error| Failure::new(error.class(), error))
    }
}
