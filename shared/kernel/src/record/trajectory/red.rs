//! Whether the rows say that the verification fails without any work, or on what landed.

use super::action;
use super::row::StepRow;
use crate::failure::FailureClass;
use crate::policy::health::{KnownRed, RedSubject};

/// Returns the last verification of no issue that failed, where no later row shows one
/// that passed: a last commit that was verified, or work that closed.
pub fn known_red<'a>(rows: impl IntoIterator<Item = &'a StepRow>) -> Option<KnownRed> {
    let startup = FailureClass::StartupCheckFailed.as_str();
    let mut red = None;
    for row in rows {
        let failed = |subject| KnownRed {
            subject,
            at: row.finished_at.time(),
        };
        let is_startup = row.failure_classes.iter().any(|class| class == startup);
        match &*row.action {
            action::TIP_VERIFIED if super::is_success(&row.result_class) => red = None,
            action::TIP_VERIFIED => red = Some(failed(RedSubject::Tip)),
            action::LANE_GIVEN_UP | action::BREAKER_OPEN if is_startup => {
                red = Some(failed(RedSubject::Base));
            }
            action::WORKER_LOOP if super::is_success(&row.result_class) => red = None,
            _ => {}
        }
    }
    red
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(action: &str, result: &str, classes: &[&str]) -> StepRow {
        let now = "2026-03-05T10:00:00Z".parse().unwrap();
        let mut row = StepRow::new("s".to_owned(), action, result, now);
        row.failure_classes = classes.iter().map(|&class| class.to_owned()).collect();
        row
    }

    #[test]
    fn a_red_verification_is_known_until_one_passes() {
        let startup = ["startup_check_failed"];
        let given_up = row(action::LANE_GIVEN_UP, "failed", &startup);
        let other = row(action::LANE_GIVEN_UP, "failed", &["worktree_dirty"]);
        let paused = row(action::BREAKER_OPEN, "paused", &startup);
        let tip = row(action::TIP_VERIFIED, "failed", &["landing_check_failed"]);
        let passed = row(action::TIP_VERIFIED, "passed", &[]);
        let closed = row(action::WORKER_LOOP, "completed", &[]);
        let blocked = row(action::WORKER_LOOP, "failed", &["check_failed"]);
        for (rows, is_red) in [
            (vec![], false),
            (vec![&other, &blocked], false),
            (vec![&given_up], true),
            (vec![&paused, &blocked], true),
            (vec![&tip], true),
            (vec![&tip, &closed], false),
            (vec![&given_up, &passed], false),
            (vec![&passed, &given_up], true),
        ] {
            let found = known_red(rows.iter().copied());
            assert_eq!(found.is_some(), is_red, "{rows:?}");
        }
        let of = |row: &StepRow| known_red([row]).unwrap().subject;
        assert_eq!(
            [of(&given_up), of(&tip)],
            [RedSubject::Base, RedSubject::Tip]
        );
    }
}
