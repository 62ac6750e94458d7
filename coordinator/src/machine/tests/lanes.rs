//! Lanes that an operator adds and removes.

use super::*;

#[test]
fn lanes_are_made_one_after_the_other_and_get_work() {
    let mut m = machine(1);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(
        ask(&mut m, ControlEvent::AddLanes(2)),
        [
            Effect::Answer(Verdict::Growing),
            Effect::Lanes(3),
            Effect::MakeLane
        ]
    );
    let made = || MachineEvent::Spare::<&str>(SpareNews::Made);
    assert_eq!(m.handle(made(), NOW), [Effect::MakeLane]);
    assert_eq!(
        m.handle::<&str>(MachineEvent::Booted(1), NOW),
        [Effect::Pass]
    );
    assert_eq!(m.handle(passed(&[(1, "b")]), NOW), [dispatch(1, "b")]);
    // The batch does not end while one is made.
    m.handle(ended(1), NOW);
    m.handle(ended(0), NOW);
    assert_eq!(m.handle(passed(&[]), NOW), [Effect::Pass]);
    let over = m.handle(passed(&[]), NOW);
    assert_eq!(over, [Effect::Retire(0), Effect::Retire(1)]);
    let refused = MachineEvent::Spare::<&str>(SpareNews::Refused);
    assert_eq!(m.handle(refused, NOW), [Effect::Lanes(2), Effect::Finish]);
}

#[test]
fn a_lane_is_left_where_one_was_removed_for_another_that_cannot_be_made() {
    let mut m = with_worktrees(2, 1);
    m.handle(passed(&[(0, "a")]), NOW);
    assert_eq!(
        ask(&mut m, ControlEvent::AddLanes(1)),
        [
            Effect::Answer(Verdict::Growing),
            Effect::Lanes(2),
            Effect::MakeLane
        ]
    );
    assert_eq!(
        ask(&mut m, ControlEvent::RemoveLane(0)),
        [Effect::Answer(Verdict::Leaving), Effect::Lanes(1)]
    );
    m.handle::<&str>(MachineEvent::Spare(SpareNews::Refused), NOW);
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0), Effect::Pass]);
    assert_eq!(m.idle(), [1]);
}

#[test]
fn lanes_that_a_person_named_are_all_there_are() {
    let named = Crew {
        can_grow: false,
        ..crew(1)
    };
    let mut m = Machine::new(
        named,
        Allowance {
            rounds: None,
            steps_per_dispatch: 1,
            stop_on_failure: false,
            until: Until::Done,
        },
    );
    let refused = [Effect::Answer(Verdict::CannotGrow)];
    assert_eq!(ask(&mut m, ControlEvent::AddLanes(1)), refused);
}

#[test]
fn a_removed_lane_finishes_its_step_and_the_last_one_stays() {
    let mut m = machine(3);
    for lane in 0..3 {
        m.handle::<&str>(MachineEvent::Booted(lane), NOW);
    }
    m.handle(passed(&[(0, "a"), (1, "b")]), NOW);
    let leaving = Effect::Answer(Verdict::Leaving);
    assert_eq!(
        ask(&mut m, ControlEvent::RemoveLane(2)),
        [leaving, Effect::Lanes(2), Effect::Retire(2)]
    );
    let leaving = Effect::Answer(Verdict::Leaving);
    assert_eq!(
        ask(&mut m, ControlEvent::RemoveLane(0)),
        [leaving, Effect::Lanes(1)]
    );
    let leaving = [Effect::Answer(Verdict::Leaving)];
    assert_eq!(ask(&mut m, ControlEvent::RemoveLane(0)), leaving);
    for (lane, verdict) in [
        (1, Verdict::LastLane),
        (2, Verdict::LaneOver),
        (3, Verdict::LaneOver),
    ] {
        let refused = [Effect::Answer(verdict)];
        assert_eq!(ask(&mut m, ControlEvent::RemoveLane(lane)), refused);
    }
    assert_eq!(m.handle(ended(0), NOW), [Effect::Retire(0)]);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(1, "c")]), NOW), [dispatch(1, "c")]);
}

#[test]
fn spare_worktrees_are_as_many_as_lanes_that_are_added_and_removed() {
    let crew = Crew {
        spare: 1,
        spare_per_lane: 1,
        ..crew(1)
    };
    let mut m = Machine::new(crew, machine(1).allowance);
    m.handle::<&str>(MachineEvent::Booted(0), NOW);
    m.handle(passed(&[(0, "a")]), NOW);
    assert!(ask(&mut m, ControlEvent::AddLanes(2)).contains(&Effect::Lanes(3)));
    assert_eq!(m.crew.spare, 3);
    assert!(ask(&mut m, ControlEvent::RemoveLane(0)).contains(&Effect::Lanes(2)));
    assert_eq!(m.crew.spare, 2);
    // The lanes are not made.
    let refused = m.handle::<&str>(MachineEvent::Spare(SpareNews::Refused), NOW);
    assert!(refused.contains(&Effect::Lanes(1)));
    assert_eq!(m.crew.spare, 1);
}
