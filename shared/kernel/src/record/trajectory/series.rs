//! The attempts of one gated command, counted over the trajectory's rows, so
//! that a restart continues counting (`contracts.md` 6, 7).

use super::{StepRow, TAKE_OVER_BOUND, action};
use crate::failure::FailureClass;
use crate::json::id::{StepId, WorkerName};
use crate::json::reference::RefSet;
use crate::json::stamp::Stamp;
use crate::policy::retry::{BackoffTable, Decision, RetryVerdict, retry_at};
use jiff::Timestamp;

/// What the trajectory knows about one gated command since it last passed or
/// was handed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandSeries {
    begun: u64,
    failed: u32,
    cut: u32,
    open: Option<StepId>,
    last: Option<StepRow>,
    witness_refs: RefSet,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextAct {
    /// An attempt has no end: its harness died. It is to be recorded first.
    TakeOver {
        /// The attempt's step id.
        step_id: StepId,
    },
    /// The command was cut again and again: that counts as a failed attempt.
    CountCuts {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Attempts are used up, and the escalation is still due.
    Escalate(Box<Decision>),
    /// The next attempt, which may have to wait.
    Attempt {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The time at which the attempt may begin.
        due: Option<Timestamp>,
    },
}

impl CommandSeries {
    /// Folds the rows of a gate, whose worker id is `gate_id`, in file order.
    pub fn fold<'a>(rows: impl IntoIterator<Item = &'a StepRow>, gate_id: &WorkerName) -> Self {
        let mut series = Self::default();
        for row in rows {
            if row.worker_id.as_ref() == Some(gate_id) {
                series.observe(row);
            }
        }
        series
    }

    fn observe(&mut self, row: &StepRow) {
        match row.action.as_str() {
            action::GATE_BEGIN => {
                self.begun = self.begun.saturating_add(1);
                self.open = Some(row.step_id.clone());
            }
            action::GATE_TAKE_OVER => {
                self.open = None;
                self.cut = self.cut.saturating_add(1);
            }
            action::GATE_ATTEMPT if row.succeeded() => self.begin_afresh(),
            action::GATE_ATTEMPT => {
                self.open = None;
                self.witness_refs.extend(row.witness_refs.iter());
                // What a person cut uses up no attempt.
                if !row.has_class(FailureClass::StepInterrupted) {
                    self.failed = self.failed.saturating_add(1);
                    self.cut = 0;
                    self.last = Some(row.clone());
                }
            }
            action::ESCALATION => self.begin_afresh(),
            _ => {}
        }
    }

    fn begin_afresh(&mut self) {
        *self = Self {
            begun: self.begun,
            ..Self::default()
        };
    }

    /// Returns how often the command was ever begun; the next step's number is
    /// one more.
    pub const fn begun(&self) -> u64 {
        self.begun
    }

    /// Returns the witnesses of the attempts that failed.
    pub const fn witness_refs(&self) -> &RefSet {
        &self.witness_refs
    }

    /// Returns the classes of the last attempt that failed.
    pub fn failure_classes(&self) -> &[String] {
        self.last.as_ref().map_or(&[], |row| &row.failure_classes)
    }

    /// Returns what is to be done next.
    pub fn next(&self, backoff: &BackoffTable) -> NextAct {
        if let Some(step_id) = &self.open {
            return NextAct::TakeOver {
                step_id: step_id.clone(),
            };
        }
        let attempt = self.failed.saturating_add(1);
        if self.cut >= TAKE_OVER_BOUND {
            return NextAct::CountCuts { attempt };
        }
        let decided = self.last.as_ref().and_then(|row| {
            let record = row.retry.as_ref()?;
            Some((row, record, record.decision_again()?))
        });
        let Some((row, record, decision)) = decided else {
            return NextAct::Attempt { attempt, due: None };
        };
        if record.decision == RetryVerdict::Escalate {
            return NextAct::Escalate(Box::new(decision));
        }
        let wait = backoff.wait(&record.backoff_class, record.attempt);
        NextAct::Attempt {
            attempt,
            due: Some(retry_at(row.finished_at.time(), wait)),
        }
    }
}

/// Returns the row that says that a gated command begins.
pub fn gate_begin_row(gate_id: &WorkerName, step_id: &StepId, now: Timestamp) -> StepRow {
    gate_row(gate_id, step_id, action::GATE_BEGIN, "ok", now)
}

/// Returns the row of an attempt that was cut by the death of its harness.
pub fn gate_take_over_row(gate_id: &WorkerName, step_id: &StepId, now: Timestamp) -> StepRow {
    StepRow {
        failure_classes: vec![FailureClass::HarnessDied.as_str().to_owned()],
        ..gate_row(
            gate_id,
            step_id,
            action::GATE_TAKE_OVER,
            "retry_needed_harness_died",
            now,
        )
    }
}

/// Returns the row of an attempt; `decision` is absent where it passed or was
/// cut by a person.
pub fn gate_attempt_row(
    gate_id: &WorkerName,
    step_id: &StepId,
    classes: &[String],
    decision: Option<&Decision>,
    started_at: Timestamp,
    now: Timestamp,
) -> StepRow {
    let result = match decision {
        None if classes.is_empty() => "completed",
        None => "failed_step_interrupted",
        Some(decision) if decision.is_escalation() => "failed",
        Some(_) => "retry_needed",
    };
    StepRow {
        started_at: Some(Stamp::at(started_at)),
        failure_classes: classes.to_vec(),
        retry: decision.map(super::RetryRecord::from),
        ..gate_row(gate_id, step_id, action::GATE_ATTEMPT, result, now)
    }
}

fn gate_row(
    gate_id: &WorkerName,
    step_id: &StepId,
    action: &str,
    result: &str,
    now: Timestamp,
) -> StepRow {
    StepRow {
        worker_id: Some(gate_id.to_owned()),
        started_at: Some(Stamp::at(now)),
        ..StepRow::new(step_id.clone(), action, result, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::retry::{RetryPolicy, decide};

    const GATE: &str = "gate.x";

    fn at(second: i64) -> Timestamp {
        Timestamp::new(1_700_000_000 + second, 0).unwrap()
    }

    fn begin(n: u64) -> StepRow {
        gate_begin_row(&GATE.into(), &format!("{GATE}.{n}").into(), at(0))
    }

    fn attempt(n: u64, class: Option<&str>, count: u32) -> StepRow {
        let classes: Vec<String> = class.iter().map(|c| (*c).to_owned()).collect();
        let policy = RetryPolicy::embedded().unwrap();
        let decision = class
            .filter(|class| *class != "step_interrupted")
            .map(|_| decide(&policy, &classes, count));
        let id = format!("{GATE}.{n}");
        gate_attempt_row(
            &GATE.into(),
            &id.as_str().into(),
            &classes,
            decision.as_ref(),
            at(0),
            at(1),
        )
    }

    fn next(rows: &[StepRow]) -> NextAct {
        // What is read back is what counts.
        let rows: Vec<StepRow> = rows
            .iter()
            .map(|row| StepRow::parse(row.line().unwrap().as_bytes()).unwrap())
            .collect();
        CommandSeries::fold(&rows, &GATE.into()).next(&BackoffTable::default())
    }

    #[test]
    fn attempts_are_counted_until_the_command_passes_or_is_handed_up() {
        let fresh = NextAct::Attempt {
            attempt: 1,
            due: None,
        };
        assert_eq!(next(&[]), fresh);
        let mut rows = vec![begin(1), attempt(1, Some("gate_timeout"), 1)];
        assert_eq!(
            next(&rows),
            NextAct::Attempt {
                attempt: 2,
                due: Some(at(16))
            }
        );
        rows.extend([begin(2), attempt(2, Some("gate_timeout"), 2)]);
        assert_eq!(
            next(&rows),
            NextAct::Attempt {
                attempt: 3,
                due: Some(at(31))
            }
        );
        let mut passed = rows.clone();
        passed.extend([begin(3), attempt(3, None, 0)]);
        assert_eq!(next(&passed), fresh);
        assert_eq!(CommandSeries::fold(&passed, &GATE.into()).begun(), 3);
        rows.extend([begin(3), attempt(3, Some("gate_timeout"), 3)]);
        let policy = RetryPolicy::embedded().unwrap();
        let decision = decide(&policy, &["gate_timeout"], 3);
        assert_eq!(next(&rows), NextAct::Escalate(Box::new(decision)));
        rows.push(gate_row(
            &GATE.into(),
            &"e".into(),
            action::ESCALATION,
            "escalated",
            at(2),
        ));
        assert_eq!(next(&rows), fresh);
    }

    #[test]
    fn what_was_cut_uses_up_no_attempt_but_is_bounded() {
        let mut rows = vec![begin(1)];
        let cut = NextAct::TakeOver {
            step_id: "gate.x.1".into(),
        };
        assert_eq!(next(&rows), cut);
        rows.push(gate_take_over_row(&GATE.into(), &"gate.x.1".into(), at(1)));
        rows.extend([begin(2), attempt(2, Some("step_interrupted"), 1)]);
        let first = NextAct::Attempt {
            attempt: 1,
            due: None,
        };
        assert_eq!(next(&rows), first);
        for n in 3..=6 {
            rows.extend([
                begin(n),
                gate_take_over_row(&GATE.into(), &"s".into(), at(1)),
            ]);
        }
        assert_eq!(next(&rows), NextAct::CountCuts { attempt: 1 });
    }

    #[test]
    fn another_commands_rows_count_nothing() {
        let mut other = attempt(1, Some("gate_timeout"), 3);
        other.worker_id = Some("gate.y".into());
        assert_eq!(
            next(&[other]),
            NextAct::Attempt {
                attempt: 1,
                due: None
            }
        );
    }
}
