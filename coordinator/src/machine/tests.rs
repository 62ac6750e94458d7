mod lanes;
mod mending;
mod until;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn machine(lanes: usize) -> Machine {
    with_spare(lanes, 0, Duration::ZERO)
}

fn crew(lanes: usize) -> Crew {
    Crew {
        worktrees: lanes,
        lanes,
        spare: 0,
        spare_per_lane: 0,
        patience: Duration::ZERO,
        can_grow: true,
    }
}

/// A batch with more worktrees than lanes, all of which have booted.
fn with_worktrees(worktrees: usize, lanes: usize) -> Machine {
    let crew = Crew {
        worktrees,
        ..crew(lanes)
    };
    let mut m = Machine::new(crew, machine(lanes).allowance);
    for lane in 0..worktrees {
        m.handle::<&str>(MachineEvent::Booted(lane), NOW);
    }
    m
}

fn with_spare(lanes: usize, spare: usize, patience: Duration) -> Machine {
    Machine::new(
        Crew {
            spare,
            patience,
            ..crew(lanes)
        },
        Allowance {
            rounds: None,
            steps_per_dispatch: 1,
            stop_on_failure: false,
            until: Until::Done,
        },
    )
}

fn passed(claims: &[(LaneIndex, &'static str)]) -> MachineEvent<&'static str> {
    MachineEvent::Passed(Pass {
        claims: claims.iter().copied().collect(),
        held: BTreeSet::new(),
        asks: None,
        look_at: None,
    })
}

fn ended(lane: LaneIndex) -> MachineEvent<&'static str> {
    MachineEvent::StepEnded {
        lane,
        succeeded: true,
        refused: false,
        lane_lost: false,
        store_lost: false,
    }
}

fn dispatch(lane: LaneIndex, claim: &'static str) -> Effect<&'static str> {
    Effect::Dispatch { lane, claim }
}

#[test]
fn the_first_pass_waits_for_every_boot_and_dispatches_in_order() {
    let mut m = machine(2);
    assert_eq!(m.handle::<&str>(MachineEvent::Booted(1), NOW), []);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(0), NOW),
        [Effect::Pass]
    );
    assert_eq!(
        m.handle(passed(&[(1, "b"), (0, "a")]), NOW),
        [dispatch(0, "a"), dispatch(1, "b")]
    );
}

#[test]
fn an_idle_lane_never_waits_for_a_busy_one() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    m.handle(passed(&[(0, "a"), (1, "b")]), NOW);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(1, "c")]), NOW), [dispatch(1, "c")]);
}

#[test]
fn a_lane_without_work_waits_while_another_may_still_make_some() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Pass]);
    assert_eq!(
        m.handle(passed(&[]), NOW),
        [Effect::Retire(0), Effect::Retire(1), Effect::Finish]
    );
}

#[test]
fn a_batch_waits_for_a_retry_and_then_passes_again() {
    let mut m = machine(1);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    let later: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let waiting = MachineEvent::Passed(Pass::<&str> {
        claims: BTreeMap::new(),
        held: BTreeSet::new(),
        asks: None,
        look_at: Some(later),
    });
    assert_eq!(m.handle(waiting, NOW), [Effect::WakeAt(later)]);
    assert_eq!(m.handle::<&str>(MachineEvent::Woke, later), [Effect::Pass]);
}

#[test]
fn an_interrupt_retires_the_idle_and_lets_the_busy_finish() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Interrupted, NOW),
        [Effect::Retire(1)]
    );
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0), Effect::Finish]);
}

#[test]
fn a_claim_made_while_the_interrupt_came_is_released() {
    let mut m = machine(1);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Interrupted, NOW),
        [Effect::Retire(0)]
    );
    assert_eq!(
        m.handle(passed(&[(0, "a")]), NOW),
        [Effect::Release("a"), Effect::Finish]
    );
}

#[test]
fn a_panic_costs_its_lane_and_its_claim_and_never_the_batch() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    m.handle(passed(&[(0, "a"), (1, "b")]), NOW);
    let effects = m.handle(
        MachineEvent::Panicked {
            lane: 0,
            claim: Some("a"),
        },
        NOW,
    );
    assert_eq!(effects, [Effect::EndPanicked("a")]);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(1, "a")]), NOW), [dispatch(1, "a")]);
    assert!(!m.idle().contains(&0));
}

#[test]
fn rounds_and_steps_bound_a_lane() {
    let mut m = Machine::new(
        crew(1),
        Allowance {
            rounds: Some(2),
            steps_per_dispatch: 2,
            stop_on_failure: false,
            until: Until::Done,
        },
    );
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    for _ in 0..3 {
        assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
        assert_eq!(m.handle(ended(0), NOW), [Effect::Pass]);
    }
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0), Effect::Finish]);
}

#[test]
fn a_lane_that_is_held_keeps_the_rest_of_its_dispatch() {
    let mut m = Machine::new(
        crew(1),
        Allowance {
            rounds: Some(1),
            steps_per_dispatch: 2,
            stop_on_failure: false,
            until: Until::Done,
        },
    );
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    m.handle(ended(0), NOW);
    let later: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let held = MachineEvent::Passed(Pass::<&str> {
        claims: BTreeMap::new(),
        held: [0].into(),
        asks: None,
        look_at: Some(later),
    });
    assert_eq!(m.handle(held, NOW), [Effect::WakeAt(later)]);
    assert_eq!(m.handle::<&str>(MachineEvent::Woke, later), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(0, "a")]), later), [dispatch(0, "a")]);
    assert!(m.is_busy());
    assert_eq!(
        m.handle(ended(0), later),
        [Effect::Retire(0), Effect::Finish]
    );
}

#[test]
fn a_step_that_its_provider_refused_does_not_count() {
    let mut m = Machine::new(
        crew(1),
        Allowance {
            rounds: Some(1),
            steps_per_dispatch: 1,
            stop_on_failure: true,
            until: Until::Done,
        },
    );
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    let refused = MachineEvent::<&str>::StepEnded {
        lane: 0,
        succeeded: false,
        refused: true,
        lane_lost: false,
        store_lost: false,
    };
    assert_eq!(m.handle(refused, NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0), Effect::Finish]);
}

#[test]
fn a_lane_that_asks_is_busy_until_it_knows() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    let asks = MachineEvent::Passed(Pass::<&str> {
        claims: BTreeMap::new(),
        held: [0, 1].into(),
        asks: Some(0),
        look_at: None,
    });
    assert_eq!(m.handle(asks, NOW), [Effect::Ask(0)]);
    assert_eq!(m.idle(), [1]);
    let answered = |lane_lost| MachineEvent::Answered { lane: 0, lane_lost };
    assert_eq!(m.handle::<&str>(answered(false), NOW), [Effect::Pass]);
    let asks = MachineEvent::Passed(Pass::<&str> {
        claims: BTreeMap::new(),
        held: [1].into(),
        asks: Some(0),
        look_at: None,
    });
    m.handle(asks, NOW);
    assert_eq!(
        m.handle::<&str>(answered(true), NOW),
        [Effect::Retire(0), Effect::Pass]
    );
    assert!(!m.idle().contains(&0));
}

#[test]
fn a_lost_store_ends_the_batch_after_what_runs() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    m.handle(passed(&[(0, "a"), (1, "b")]), NOW);
    assert_eq!(m.handle::<&str>(MachineEvent::StoreLost, NOW), []);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0)]);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Retire(1), Effect::Finish]);
    assert!(m.store_lost());
}

#[test]
fn lanes_that_all_fail_to_boot_end_the_batch() {
    let mut m = machine(1);
    let effects = m.handle::<&str>(
        MachineEvent::BootFailed {
            lane: 0,
            class: FailureClass::StartupCheckFailed,
        },
        NOW,
    );
    assert_eq!(effects, [Effect::Finish]);
    assert!(m.refused_at_startup());
}

fn done(lane: LaneIndex) -> MachineEvent<&'static str> {
    MachineEvent::WorkDone(lane)
}

#[test]
fn a_lane_whose_work_is_done_continues_in_a_spare_worktree() {
    let mut m = with_spare(1, 1, Duration::ZERO);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(done(0), NOW), [Effect::MakeSpare]);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Spare(SpareNews::Made), NOW),
        []
    );
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(1), NOW),
        [Effect::Pass]
    );
    assert_eq!(m.handle(passed(&[(1, "b")]), NOW), [dispatch(1, "b")]);
    // Its first work is over before the second is done: one issue is worked on
    // at a time.
    assert_eq!(m.handle(ended(0), NOW), []);
    assert_eq!(m.idle(), [0; 0]);
    assert_eq!(m.handle(done(1), NOW), [Effect::Pass]);
    assert_eq!(m.idle(), [0]);
}

#[test]
fn a_spare_worktree_is_made_once_work_has_waited_long_enough() {
    let mut m = with_spare(1, 1, Duration::from_secs(30));
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(m.handle(done(0), NOW), []);
    let later = NOW + Duration::from_secs(29);
    assert_eq!(m.handle::<&str>(MachineEvent::Looked, later), []);
    let later = NOW + Duration::from_secs(30);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Looked, later),
        [Effect::MakeSpare]
    );
    // One at a time.
    assert_eq!(m.handle::<&str>(MachineEvent::Looked, later), []);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Spare(SpareNews::NotNeeded), later),
        []
    );
    assert_eq!(
        m.handle::<&str>(MachineEvent::Looked, later),
        [Effect::MakeSpare]
    );
    assert_eq!(
        m.handle::<&str>(MachineEvent::Spare(SpareNews::Refused), later),
        []
    );
    assert_eq!(m.handle::<&str>(MachineEvent::Looked, later), []);
}

#[test]
fn no_spare_worktree_is_made_while_a_batch_drains_and_one_that_is_made_is_waited_for() {
    let mut m = with_spare(1, 2, Duration::ZERO);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(m.handle(done(0), NOW), [Effect::MakeSpare]);
    assert_eq!(m.handle::<&str>(MachineEvent::Interrupted, NOW), []);
    assert_eq!(m.handle(done(0), NOW), []);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0)]);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Spare(SpareNews::Made), NOW),
        []
    );
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(1), NOW),
        [Effect::Retire(1), Effect::Finish]
    );
}

#[test]
fn spare_worktrees_that_are_there_boot_with_the_lanes_and_are_used_when_a_lane_is_free() {
    let crew = Crew {
        worktrees: 2,
        ..crew(1)
    };
    let allowance = machine(1).allowance;
    let mut m = Machine::new(crew, allowance);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(0), NOW),
        [Effect::Pass]
    );
    assert_eq!(m.idle(), [0]);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.idle(), [0; 0]);
    assert_eq!(m.handle(done(0), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(1, "b")]), NOW), [dispatch(1, "b")]);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
}

fn ask(m: &mut Machine, asked: ControlEvent) -> Vec<Effect<&'static str>> {
    m.handle(MachineEvent::Control(asked), NOW)
}

#[test]
fn a_paused_batch_makes_no_pass_and_does_not_end() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(1), NOW),
        [Effect::Pass]
    );
    // The pass was asked for, and is not made.
    assert_eq!(
        ask(&mut m, ControlEvent::Pause),
        [Effect::Unpass, Effect::Answer(Verdict::Paused)]
    );
    assert_eq!(m.handle::<&str>(MachineEvent::Woke, NOW), []);
    assert_eq!(
        ask(&mut m, ControlEvent::Pause),
        [Effect::Answer(Verdict::PausedBefore)]
    );
    assert_eq!(
        ask(&mut m, ControlEvent::Resume),
        [Effect::Answer(Verdict::Resumed), Effect::Pass]
    );
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(
        ask(&mut m, ControlEvent::Resume),
        [Effect::Answer(Verdict::NotPaused)]
    );
    ask(&mut m, ControlEvent::Pause);
    assert_eq!(m.handle(ended(0), NOW), []);
    // An end that is asked for is made all the same.
    assert_eq!(
        ask(&mut m, ControlEvent::Drain),
        [
            Effect::Drain,
            Effect::Answer(Verdict::Draining),
            Effect::Retire(0),
            Effect::Retire(1),
            Effect::Finish
        ]
    );
}

#[test]
fn a_stop_ends_steps_and_a_batch_that_ends_takes_nothing_more() {
    let mut m = machine(1);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(
        ask(&mut m, ControlEvent::Stop),
        [Effect::Kill, Effect::Answer(Verdict::Stopping)]
    );
    for asked in [
        ControlEvent::Pause,
        ControlEvent::Resume,
        ControlEvent::Look,
        ControlEvent::AddLanes(1),
    ] {
        assert_eq!(ask(&mut m, asked), [Effect::Answer(Verdict::Ending)]);
    }
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0), Effect::Finish]);
}

#[test]
fn only_a_lane_with_a_step_is_cancelled() {
    let mut m = machine(2);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle::<&str>(MachineEvent::Booted(1), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    let cancelled = [Effect::Cancel(0), Effect::Answer(Verdict::Cancelling)];
    assert_eq!(ask(&mut m, ControlEvent::Cancel(0)), cancelled);
    for lane in [1, 7] {
        assert_eq!(
            ask(&mut m, ControlEvent::Cancel(lane)),
            [Effect::Answer(Verdict::NoStep)]
        );
    }
}
