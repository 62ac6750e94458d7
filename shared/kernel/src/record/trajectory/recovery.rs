//! Rows that a killed worker could not write any more (`contracts.md` 6).

use super::{RetryRecord, StepRow, action};
use crate::failure::FailureClass;
use crate::issue::handoff::{HandoffResult, NextAction};
use crate::issue::lease::Claim;
use crate::issue::lease::LeaseState;
use crate::issue::lease::default_lease_id;
use crate::json::id::{BatchId, IssueId, StepId, WorkerName};
use crate::json::reference::{self, LeaseHandoff, WorkOutcome};
use crate::json::time;
use crate::policy::retry::{Decision, EscalationAction};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When rows that are missing are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverAt {
    /// At a start: a worker that was not killed may be about to write its row.
    Start,
    /// At a batch's end.
    End,
}

impl RecoverAt {
    /// Returns how long after its close an issue's row is left to the worker
    /// that closed it: it writes the row right after, and knows more.
    pub const fn grace(self, others_run: bool) -> Duration {
        match (others_run, self) {
            (true, _) => Duration::from_secs(600),
            (false, Self::Start) => Duration::from_secs(5),
            (false, Self::End) => Duration::ZERO,
        }
    }
}

/// Returns whether a close is older than a grace; one whose time cannot be read
/// is.
pub fn is_settled(closed_at: &str, grace: Duration, now: Timestamp) -> bool {
    let latest = now.saturating_sub(grace).unwrap_or(now);
    time::parse(closed_at).is_none_or(|at| at <= latest)
}

/// A closed issue and the step that closed it, as issue memory shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedIssue {
    /// The step.
    pub step_id: StepId,
    /// The issue.
    pub issue_id: IssueId,
    /// Its assignee: who held the lease.
    pub assignee: String,
    /// The status of the issue.
    pub status: String,
    /// The generation of its newest lease.
    pub generation: u64,
    /// The instruction that the step acted under, where there was one.
    pub instruction_ref: Option<String>,
}

impl ClosedIssue {
    /// Returns the worker: what the step's id says before issue and
    /// generation, or the assignee where the id is of another shape.
    fn worker(&self) -> WorkerName {
        let end = format!(".{}.{}", self.issue_id, self.generation);
        WorkerName::from(self.step_id.strip_suffix(&end).unwrap_or(&self.assignee))
    }

    /// Returns the row of the step, as far as it can still be known.
    pub fn recovered_row(
        &self,
        batch_id: &BatchId,
        witness_prefix: &str,
        now: Timestamp,
    ) -> StepRow {
        let worker = self.worker();
        let mut row = StepRow::new(
            self.step_id.clone(),
            action::WORKER_LOOP,
            HandoffResult::Completed.as_str(),
            now,
        );
        row.started_at = Some(now.into());
        row.recovered = true;
        row.instruction_refs = self.instruction_ref.iter().collect();
        row.generation = Some(self.generation);
        row.batch_id = Some(batch_id.to_owned());
        row.next_step = Some(NextAction::ReleaseClosed.as_str().to_owned());
        row.witness_refs
            .insert(reference::lease_handoff(&LeaseHandoff {
                assignee: &self.assignee,
                issue_id: &self.issue_id,
                lease_action: NextAction::ReleaseClosed.as_str(),
                lease_id: &default_lease_id(&self.issue_id, &self.assignee),
                lease_owner: &self.assignee,
                lease_state: LeaseState::Released.as_str(),
                status: &self.status,
                worker_id: &worker,
            }));
        row.witness_refs.insert(reference::work_witness(
            witness_prefix,
            &worker,
            &self.issue_id,
            WorkOutcome::Completed,
        ));
        row.worker_id = Some(worker);
        row.issue_id = Some(self.issue_id.clone());
        row
    }
}

/// The step that blocked an issue, with what its row says: the issue keeps it,
/// because the row is written later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedBy {
    /// The step.
    pub step_id: StepId,
    /// The worker of the step.
    pub worker_id: WorkerName,
    /// The generation of the lease that it ran under.
    pub generation: u64,
    /// Why it failed, the cause first.
    pub failure_classes: Vec<String>,
    /// What the retry policy decided.
    pub retry: RetryRecord,
}

impl BlockedBy {
    /// Returns the row of the step, as far as it can still be known.
    pub fn recovered_row(&self, issue_id: &IssueId, batch_id: &BatchId, now: Timestamp) -> StepRow {
        let result = HandoffResult::IssueBlocked.as_str();
        let mut row = StepRow::new(self.step_id.clone(), action::WORKER_LOOP, result, now);
        row.started_at = Some(now.into());
        row.recovered = true;
        row.generation = Some(self.generation);
        row.batch_id = Some(batch_id.to_owned());
        row.next_step = Some(NextAction::Stop.as_str().to_owned());
        row.worker_id = Some(self.worker_id.clone());
        row.issue_id = Some(issue_id.to_owned());
        row.failure_classes.clone_from(&self.failure_classes);
        row.retry = Some(self.retry.clone());
        row
    }
}

/// Returns the row of an attempt whose lane panicked, by what the retry policy decides of
/// it. No turn hands its issue up: where its attempts are used up, it is left alone.
pub fn panicked_row(
    claim: &Claim,
    decision: &Decision,
    batch_id: &BatchId,
    now: Timestamp,
) -> StepRow {
    let step_id = StepId::of(&claim.owner, &claim.issue_id, claim.generation);
    let result = HandoffResult::LeaseReleased.as_str();
    let mut row = StepRow::new(step_id, action::WORKER_LOOP, result, now);
    row.started_at = Some(now.into());
    row.generation = Some(claim.generation);
    row.batch_id = Some(batch_id.to_owned());
    row.next_step = Some(NextAction::ClaimNext.as_str().to_owned());
    row.worker_id = Some(WorkerName::from(claim.owner.as_str()));
    row.issue_id = Some(claim.issue_id.clone());
    row.failure_classes = vec![FailureClass::LanePanicked.as_str().to_owned()];
    row.retry = Some(RetryRecord {
        action: decision.is_escalation().then_some(EscalationAction::Stop),
        ..RetryRecord::from(decision)
    });
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::retry::{RetryPolicy, decide};

    fn now() -> Timestamp {
        "2026-03-05T10:00:00Z".parse().unwrap()
    }

    fn closed(step_id: &str) -> ClosedIssue {
        ClosedIssue {
            step_id: step_id.into(),
            issue_id: "a.1".into(),
            assignee: "somebody".into(),
            status: "closed".into(),
            generation: 3,
            instruction_ref: Some("instruction://a/b".into()),
        }
    }

    #[test]
    fn an_attempt_that_panicked_is_retried_and_at_last_left_alone() {
        let claim = Claim {
            issue_id: "a".into(),
            owner: "worker.1".to_owned(),
            lease_id: "l".into(),
            generation: 2,
            taken_over: None,
        };
        let policy = RetryPolicy::embedded().unwrap();
        let classes = ["lane_panicked".to_owned()];
        let row = |attempt| {
            let decision = decide(&policy, &classes, attempt);
            panicked_row(&claim, &decision, &"b".into(), now())
        };
        for (attempt, action) in [(1, None), (2, Some(EscalationAction::Stop))] {
            let row = row(attempt);
            assert_eq!(&*row.step_id, "worker.1.a.2");
            assert_eq!(row.retry.as_ref().unwrap().action, action);
            assert!(row.is_attempt() && !row.succeeded());
        }
    }

    #[test]
    fn fresh_closes_are_left_to_workers_that_may_live() {
        let seconds = |at: RecoverAt, others| at.grace(others).as_secs();
        assert_eq!(seconds(RecoverAt::Start, true), 600);
        assert_eq!(seconds(RecoverAt::End, true), 600);
        assert_eq!(seconds(RecoverAt::Start, false), 5);
        assert_eq!(seconds(RecoverAt::End, false), 0);
        for (closed_at, grace, expected) in [
            ("2026-03-05T09:59:55Z", 5, true),
            ("2026-03-05T09:59:56Z", 5, false),
            ("2026-03-05T10:00:00Z", 0, true),
            ("2026-03-05T10:00:01Z", 0, false),
            ("", 600, true),
        ] {
            assert_eq!(
                is_settled(closed_at, Duration::from_secs(grace), now()),
                expected,
                "{closed_at} {grace}"
            );
        }
    }

    #[test]
    fn a_recovered_row_is_a_success_that_says_it_was_recovered() {
        let row = closed("w.2.a.1.3").recovered_row(&"hb1_x".into(), "work", now());
        assert!(row.succeeded() && row.recovered);
        assert_eq!(row.step_id, "w.2.a.1.3");
        assert_eq!(row.worker_id.as_deref(), Some("w.2"));
        assert_eq!(row.issue_id.as_deref(), Some("a.1"));
        assert_eq!(row.generation, Some(3));
        assert_eq!(row.batch_id.as_deref(), Some("hb1_x"));
        assert_eq!(row.witness_refs.iter().count(), 2);
        assert!(row.instruction_refs.contains("instruction://a/b"));
    }

    #[test]
    fn a_step_id_of_another_shape_leaves_the_assignee_as_the_worker() {
        let row = closed("by hand").recovered_row(&"hb1_x".into(), "work", now());
        assert_eq!(row.worker_id.as_deref(), Some("somebody"));
    }

    #[test]
    fn the_recovered_row_of_a_blocked_issue_counts_as_its_failed_attempt() {
        let decision = decide(&RetryPolicy::embedded().unwrap(), &["check_failed"], 1);
        let blocked = BlockedBy {
            step_id: "w.2.a.1.3".into(),
            worker_id: "w.2".into(),
            generation: 3,
            failure_classes: vec!["check_failed".into()],
            retry: RetryRecord::from(&decision),
        };
        let row = blocked.recovered_row(&"a.1".into(), &"hb1_x".into(), now());
        assert!(row.recovered && !row.succeeded());
        assert_eq!(row.step_id, "w.2.a.1.3");
        assert_eq!(row.retry, Some(blocked.retry.clone()));
        let text = serde_json::to_string(&blocked).unwrap();
        assert_eq!(serde_json::from_str::<BlockedBy>(&text).unwrap(), blocked);
    }
}
