//! When a batch ends where nothing is ready, and its window.

use super::*;

/// A machine of one lane that has booted.
fn booted(until: Until) -> Machine {
    let mut m = Machine::new(
        crew(1),
        Allowance {
            rounds: None,
            steps_per_dispatch: 1,
            stop_on_failure: false,
            until,
        },
    );
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m
}

/// A machine of one lane whose first pass found nothing.
fn idle_until(until: Until, look_at: Option<Timestamp>) -> (Machine, Vec<Effect<&'static str>>) {
    let mut m = booted(until);
    let effects = m.handle(nothing(look_at, &[]), NOW);
    (m, effects)
}

fn nothing(look_at: Option<Timestamp>, held: &[LaneIndex]) -> MachineEvent<&'static str> {
    MachineEvent::Passed(Pass {
        claims: BTreeMap::new(),
        held: held.iter().copied().collect(),
        asks: None,
        look_at,
    })
}

#[test]
fn a_batch_without_ready_issues_ends_waits_or_stays_as_asked() {
    let later: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let over = || vec![Effect::Retire(0), Effect::Finish];
    for (until, look_at, expected) in [
        (Until::Done, None, over()),
        (Until::Done, Some(later), vec![Effect::WakeAt(later)]),
        (Until::Idle, None, over()),
        (Until::Idle, Some(later), over()),
        (Until::Forever, None, vec![Effect::AwaitIssues]),
        (Until::Forever, Some(later), vec![Effect::WakeAt(later)]),
    ] {
        assert_eq!(idle_until(until, look_at).1, expected, "{until}");
    }
}

#[test]
fn a_batch_that_ends_when_idle_waits_for_what_holds_ready_work() {
    let later: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut m = booted(Until::Idle);
    let effects = m.handle(nothing(Some(later), &[0]), NOW);
    assert_eq!(effects, [Effect::WakeAt(later)]);
}

#[test]
fn a_batch_that_stays_looks_at_news_and_ends_when_it_drains() {
    let (mut m, _) = idle_until(Until::Forever, None);
    assert_eq!(m.handle::<&str>(MachineEvent::Woke, NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[]), NOW), [Effect::AwaitIssues]);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Interrupted, NOW),
        [Effect::Retire(0), Effect::Finish]
    );
}

#[test]
fn outside_of_its_window_a_batch_makes_no_pass_and_running_steps_finish() {
    let shut = || MachineEvent::<&str>::Window { is_open: false };
    let open = || MachineEvent::<&str>::Window { is_open: true };
    let mut m = machine(1);
    assert_eq!(m.handle(shut(), NOW), []);
    assert_eq!(m.handle::<&str>(MachineEvent::Booted(0), NOW), []);
    assert_eq!(m.handle(open(), NOW), [Effect::Pass]);
    // It closes before the pass is made.
    assert_eq!(m.handle(shut(), NOW), [Effect::Unpass]);
    assert_eq!(m.handle(open(), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(shut(), NOW), []);
    assert_eq!(m.handle(ended(0), NOW), []);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Interrupted, NOW),
        [Effect::Retire(0), Effect::Finish]
    );
}
