//! Issues that failed in one batch after another.

use super::{StepRow, action};
use crate::failure::FailureClass;
use crate::issue::handoff::HandoffResult;
use crate::json::id::{BatchId, IssueId};
use crate::record::control::{ControlOperation, ControlResult};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A batch in which an issue failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FailedIn {
    batch: BatchId,
    /// When it failed there last.
    at: Timestamp,
}

/// The issues that failed, by the rows of a trajectory in file order.
///
/// An attempt that was cut, or that a limit of the batch ended, does not count, nor one
/// that lost its lease or found the target unusable: its issue has no part in that. A close
/// ends the streak of an issue, and so does an operator who takes the issue up again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureStreaks {
    issues: BTreeMap<IssueId, Vec<FailedIn>>,
}

impl FailureStreaks {
    /// Records what a row reports.
    pub fn observe(&mut self, row: &StepRow) {
        if row.action == action::CONTROL {
            return self.observe_control(row);
        }
        let (Some(issue), Some(batch)) = (&row.issue_id, &row.batch_id) else {
            return;
        };
        if row.action != action::WORKER_LOOP {
            return;
        }
        if row.succeeded() {
            self.issues.remove(issue);
            return;
        }
        if row.is_cut() || is_of_surroundings(row) {
            return;
        }
        let at = row.finished_at.time();
        let batches = self.issues.entry(issue.clone()).or_default();
        match batches.iter_mut().rfind(|failed| failed.batch == *batch) {
            Some(failed) => failed.at = at,
            None => batches.push(FailedIn {
                batch: batch.clone(),
                at,
            }),
        }
    }

    fn observe_control(&mut self, row: &StepRow) {
        let Some(control) = &row.control else {
            return;
        };
        if matches!(control.operation, ControlOperation::Retry { .. }) {
            let issues = control.issues.iter();
            for issue in issues.filter(|issue| issue.result == ControlResult::Done) {
                self.issues.remove(&issue.issue_id);
            }
        }
    }

    /// Forgets the failures of an issue before an operator changed it.
    pub fn pardon(&mut self, issue: &IssueId, changed_at: Timestamp) {
        if let Some(batches) = self.issues.get_mut(issue) {
            batches.retain(|failed| failed.at >= changed_at);
        }
    }

    /// Returns the issues that failed in at least so many batches before a certain
    /// one; none where the number is 0. What fails in that batch does not count:
    /// its own rules end the attempts there.
    pub fn set_aside<'a>(
        &'a self,
        after: u32,
        batch: Option<&'a BatchId>,
    ) -> impl Iterator<Item = &'a IssueId> {
        self.issues
            .iter()
            .filter(move |(_, batches)| {
                let before = batches.iter().filter(|failed| batch != Some(&failed.batch));
                after > 0 && before.count() >= usize::try_from(after).unwrap_or(usize::MAX)
            })
            .map(|(issue, _)| issue)
    }
}

/// Returns whether the lease or the landing target failed. A command may name a class of
/// leases, so that what the stop found counts.
fn is_of_surroundings(row: &StepRow) -> bool {
    let lost = [
        HandoffResult::LeaseLost,
        HandoffResult::LeaseStale,
        HandoffResult::LeaseContended,
        HandoffResult::LeaseMissing,
        HandoffResult::LeaseInvariant,
    ];
    let target = FailureClass::LandingTargetUnusable.as_str();
    row.failure_classes
        .first()
        .is_some_and(|class| class == target)
        || lost
            .iter()
            .any(|lost| row.result_class.starts_with(lost.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::stamp::Stamp;
    use crate::record::control::IssueControl;
    use crate::record::trajectory::ControlRecord;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn failed(batch: &str, second: i64, class: FailureClass) -> StepRow {
        StepRow {
            issue_id: Some("a".into()),
            batch_id: Some(batch.into()),
            failure_classes: vec![class.as_str().to_owned()],
            finished_at: Stamp::at(at(second)),
            ..StepRow::new("s", action::WORKER_LOOP, "failed", at(second))
        }
    }

    fn after(rows: &[StepRow]) -> FailureStreaks {
        let mut streaks = FailureStreaks::default();
        rows.iter().for_each(|row| streaks.observe(row));
        streaks
    }

    fn is_set_aside(streaks: &FailureStreaks, after: u32, batch: &str) -> bool {
        let batch = batch.into();
        streaks.set_aside(after, Some(&batch)).next().is_some()
    }

    #[test]
    fn a_class_that_a_command_names_saves_no_issue_from_being_set_aside() {
        let named = FailureClass::LeaseMissing;
        let streaks = after(&[failed("b1", 1, named), failed("b2", 2, named)]);
        assert!(is_set_aside(&streaks, 2, "b3"));
    }

    #[test]
    fn batches_are_counted_and_not_attempts() {
        let check = FailureClass::CheckFailed;
        let streaks = after(&[
            failed("b1", 1, check),
            failed("b1", 2, check),
            failed("b2", 3, check),
            failed("b3", 4, FailureClass::StepInterrupted),
            StepRow {
                result_class: "failed_lease_missing_transport_dispatched".to_owned(),
                ..failed("b3", 5, FailureClass::LeaseMissing)
            },
            failed("b3", 6, FailureClass::LandingTargetUnusable),
        ]);
        assert!(is_set_aside(&streaks, 2, "b4"));
        assert!(!is_set_aside(&streaks, 3, "b4"));
        assert!(!is_set_aside(&streaks, 0, "b4"));
        // The batch that fails now continues by its own rules.
        assert!(!is_set_aside(&streaks, 2, "b2"));
    }

    #[test]
    fn a_close_and_an_operator_end_a_streak() {
        let check = FailureClass::CheckFailed;
        let rows = [failed("b1", 1, check), failed("b2", 5, check)];
        let mut streaks = after(&rows);
        streaks.pardon(&"a".into(), at(1));
        assert!(is_set_aside(&streaks, 2, "b3"));
        streaks.pardon(&"a".into(), at(6));
        assert!(!is_set_aside(&streaks, 1, "b3"));
        // Failures before a change do not count after it.
        let mut streaks = after(&rows);
        streaks.pardon(&"a".into(), at(3));
        assert!(is_set_aside(&streaks, 1, "b3"));
        assert!(!is_set_aside(&streaks, 2, "b3"));

        let closed = StepRow {
            result_class: "ok".to_owned(),
            failure_classes: Vec::new(),
            ..failed("b2", 6, check)
        };
        assert!(closed.succeeded());
        let [first, second] = rows.clone();
        let streaks = after(&[first, closed, second]);
        assert!(is_set_aside(&streaks, 1, "b3"));
        assert!(!is_set_aside(&streaks, 2, "b3"));

        for (result, stays) in [(ControlResult::Done, false), (ControlResult::Refused, true)] {
            let retry = StepRow {
                control: Some(ControlRecord {
                    operation: ControlOperation::Retry { issues: Vec::new() },
                    uid: 0,
                    pid: 1,
                    operator: None,
                    reason: None,
                    detail: String::new(),
                    issues: vec![IssueControl {
                        issue_id: "a".into(),
                        result,
                        detail: String::new(),
                        salvage: None,
                    }],
                }),
                ..StepRow::new("c", action::CONTROL, "ok", at(9))
            };
            let rows: Vec<StepRow> = rows.iter().cloned().chain([retry]).collect();
            assert_eq!(is_set_aside(&after(&rows), 2, "b3"), stays);
        }
    }
}
