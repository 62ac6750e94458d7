use super::*;
use crate::json::id::WorkerName;
use crate::json::size::Size;
use crate::json::time::Moment;
use crate::policy::budget::Spent;
use crate::policy::provider::{LimitLines, ProviderRule, UsageLimit};
use crate::policy::room::Room;
use std::collections::BTreeSet;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn moment(seconds: i64) -> Moment {
    Moment {
        wall: at(seconds),
        boot_ms: u64::try_from(seconds).unwrap() * 1_000,
    }
}

fn admission(rule: AdmissionRule) -> Admission {
    let providers = ProviderRule {
        own: vec!["codex".into()],
        fallback: Vec::new(),
        pause: Duration::from_secs(300),
        limit_lines: LimitLines::Ignore,
    };
    Admission::new(rule, ProviderPool::new(providers, 0, "batch"))
}

/// Makes a pass with workers `w.1` to `w.<n>`, of which those in `with_work`
/// find an issue. Returns which of them got a claim, and what the others wait
/// for.
fn pass(
    admission: &mut Admission,
    workers: usize,
    with_work: &[usize],
    now: i64,
) -> (Vec<usize>, Waiting) {
    let names: Vec<WorkerName> = (1..=workers).map(|n| format!("w.{n}").into()).collect();
    let with_work: BTreeSet<usize> = with_work.iter().copied().collect();
    let mut pass = admission.pass(&names, &Room::default(), at(now));
    let mut claimed = Vec::new();
    loop {
        let round = pass.round(admission);
        if round.is_empty() {
            break;
        }
        for admitted in round {
            if with_work.contains(&admitted.worker) {
                claimed.push(admitted.worker);
                pass.claimed(admission, admitted);
            }
        }
    }
    let left: Vec<usize> = pass.left().to_vec();
    let held: Vec<usize> = left.into_iter().filter(|i| with_work.contains(i)).collect();
    (claimed, pass.end(admission, &held))
}

fn end(admission: &mut Admission, worker: &str, answer: ProviderAnswer, blame: Blame, now: i64) {
    let step = StepResult {
        worker: &worker.into(),
        issue_id: &worker.into(),
        answer,
        blame,
    };
    let _ = admission.step_ended(step, at(now));
}

#[test]
fn every_idle_lane_with_work_starts() {
    let mut admission = admission(AdmissionRule::default());
    let (claimed, waiting) = pass(&mut admission, 3, &[0, 2], 0);
    assert_eq!(claimed, [0, 2]);
    assert_eq!(waiting.held, [false; 3]);
    assert_eq!(waiting.look_at, None);
}

#[test]
fn a_parked_provider_is_probed_by_one_lane_that_has_work() {
    let mut admission = admission(AdmissionRule::default());
    let (claimed, _) = pass(&mut admission, 1, &[0], 0);
    assert_eq!(claimed, [0]);
    let refused = ProviderAnswer::Refused(UsageLimit::default());
    end(&mut admission, "w.1", refused, Blame::NotCounted, 0);
    let (claimed, waiting) = pass(&mut admission, 3, &[0, 1, 2], 10);
    assert!(claimed.is_empty());
    assert_eq!(waiting.held, [true; 3]);
    assert_eq!(waiting.look_at, Some(at(300)));
    // The first worker has no work any more: the second one probes.
    let (claimed, waiting) = pass(&mut admission, 3, &[1, 2], 300);
    assert_eq!(claimed, [1]);
    assert_eq!(waiting.held, [false, false, true]);
    // The third waits for a step that runs.
    assert_eq!(waiting.look_at, None);
    end(
        &mut admission,
        "w.2",
        ProviderAnswer::Answered,
        Blame::Issue,
        310,
    );
    assert_eq!(pass(&mut admission, 3, &[2], 310).0, [2]);
}

#[test]
fn an_open_breaker_holds_all_lanes_and_lets_one_step_through() {
    let rule = AdmissionRule {
        breaker: BreakerRule {
            failures: 1,
            pause: Duration::from_secs(60),
        },
        ..AdmissionRule::default()
    };
    let mut admission = admission(rule);
    assert_eq!(pass(&mut admission, 2, &[0, 1], 0).0, [0, 1]);
    let blame = || Blame::Surroundings("executor_unavailable".into());
    end(&mut admission, "w.1", ProviderAnswer::Answered, blame(), 0);
    end(&mut admission, "w.2", ProviderAnswer::Answered, blame(), 0);
    let (claimed, waiting) = pass(&mut admission, 2, &[0, 1], 59);
    assert!(claimed.is_empty());
    assert_eq!(
        (waiting.held, waiting.look_at),
        (vec![true; 2], Some(at(60)))
    );
    // The first lane has nothing to claim: it does not use the probe up.
    assert_eq!(pass(&mut admission, 2, &[1], 60).0, [1]);
    assert!(pass(&mut admission, 2, &[0], 60).0.is_empty());
    end(
        &mut admission,
        "w.2",
        ProviderAnswer::Answered,
        Blame::Issue,
        61,
    );
    assert_eq!(pass(&mut admission, 2, &[0, 1], 61).0, [0, 1]);
}

#[test]
fn verifications_that_fail_in_a_row_are_asked_about_by_one_lane() {
    let rule = AdmissionRule {
        breaker: BreakerRule {
            failures: 2,
            pause: Duration::from_secs(60),
        },
        ..AdmissionRule::default()
    };
    let mut admission = admission(rule);
    for worker in ["w.1", "w.2"] {
        end(
            &mut admission,
            worker,
            ProviderAnswer::Answered,
            Blame::Check,
            0,
        );
    }
    let (claimed, waiting) = pass(&mut admission, 3, &[1, 2], 1);
    assert!(claimed.is_empty());
    assert_eq!(waiting.asks, Some(1));
    assert_eq!(waiting.look_at, None);
    assert_eq!(pass(&mut admission, 3, &[2], 1).1.asks, None);
    assert_eq!(admission.baseline_answered(true, at(2)), None);
    assert_eq!(pass(&mut admission, 3, &[2], 2).0, [2]);
}

#[test]
fn a_shortage_holds_lanes_and_ends_the_batch_after_its_patience() {
    let rule = AdmissionRule {
        room: RoomRule {
            disk: Size(100),
            patience: Duration::from_secs(30),
            ..RoomRule::default()
        },
        ..AdmissionRule::default()
    };
    let mut admission = admission(rule);
    let room = Room {
        disk: Some(1),
        memory: None,
    };
    let mut short = admission.pass(&["w.1".into()], &room, at(10));
    assert!(short.round(&admission).is_empty());
    let waiting = short.end(&mut admission, &[0]);
    assert_eq!(waiting.look_at, Some(at(15)));
    let short = waiting.short.unwrap();
    assert!(!admission.wait_for_room(Some(&short), false, moment(10)));
    // A running step may free some: the wait restarts.
    assert!(!admission.wait_for_room(Some(&short), true, moment(50)));
    assert!(!admission.wait_for_room(Some(&short), false, moment(60)));
    assert!(!admission.wait_for_room(Some(&short), false, moment(89)));
    assert_eq!(admission.end_by(0, moment(89), false), None);
    assert!(admission.wait_for_room(Some(&short), false, moment(90)));
    assert_eq!(admission.end_by(0, moment(90), false), Some(EndedBy::Room));
    assert_eq!(admission.end_by(0, moment(91), false), None);
    assert_eq!(admission.ended_by(), Some(EndedBy::Room));
}

#[test]
fn a_budget_ends_the_batch_once() {
    let budget = Budget {
        tokens: Some(100),
        ..Budget::default()
    };
    let rule = AdmissionRule {
        budget,
        ..AdmissionRule::default()
    };
    let mut admission = admission(rule);
    let spent = |tokens| Spent {
        tokens: Some(tokens),
        cost_nano_usd: None,
    };
    assert_eq!(admission.spend(spent(99)), None);
    assert_eq!(admission.spend(spent(100)), Some(budget));
    assert_eq!(admission.spend(spent(200)), None);
    // Also where a signal drains the batch already.
    assert_eq!(admission.end_by(0, moment(1), true), Some(EndedBy::Budget));
}

#[test]
fn a_bound_in_time_ends_a_batch_that_is_not_interrupted() {
    let rule = AdmissionRule {
        deadline: Deadline {
            stop_at: Some(at(1_000)),
            max_duration: Some(Duration::from_secs(50)),
            window_end: None,
        },
        ..AdmissionRule::default()
    };
    let mut admission = admission(rule);
    // It started at 10 s on CLOCK_BOOTTIME.
    let left = admission.until_bound(10_000, moment(20));
    assert_eq!(left, Some(Duration::from_secs(40)));
    assert_eq!(admission.end_by(10_000, moment(59), false), None);
    assert_eq!(admission.end_by(10_000, moment(60), true), None);
    let ended = admission.end_by(10_000, moment(60), false);
    assert_eq!(ended, Some(EndedBy::MaxDuration));
    assert_eq!(admission.end_by(10_000, moment(2_000), false), None);
}
