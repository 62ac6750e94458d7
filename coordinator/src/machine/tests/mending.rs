//! Agents that mend work which failed in the landing queue count as lanes.

use super::*;

fn mend_due(lane: LaneIndex) -> MachineEvent<&'static str> {
    MachineEvent::MendDue(lane)
}

/// A batch with one lane and a spare worktree, which works on `b` while the work
/// of `a` is in the landing queue.
fn one_at_work() -> Machine {
    let mut m = with_worktrees(2, 1);
    assert_eq!(m.handle(passed(&[(0, "a")]), NOW), [dispatch(0, "a")]);
    assert_eq!(m.handle(done(0), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(1, "b")]), NOW), [dispatch(1, "b")]);
    m
}

#[test]
fn an_agent_mends_its_work_once_no_other_issue_is_worked_on() {
    let mut m = one_at_work();
    assert_eq!(m.handle(mend_due(0), NOW), []);
    assert_eq!(m.handle(done(1), NOW), [Effect::Mend(0)]);
    // It is worked on again: its worktree and the other one are in use.
    assert_eq!(m.handle(ended(1), NOW), []);
    assert_eq!(m.idle(), [0; 0]);
    assert_eq!(m.handle(done(0), NOW), [Effect::Pass]);
    assert_eq!(m.idle(), [1]);
}

#[test]
fn an_agent_mends_its_work_at_once_where_a_lane_is_free() {
    let mut m = one_at_work();
    m.handle(done(1), NOW);
    assert_eq!(m.handle(mend_due(1), NOW), [Effect::Mend(1)]);
    assert_eq!(m.handle(mend_due(0), NOW), []);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Mend(0)]);
}

#[test]
fn those_who_wait_to_mend_come_in_their_order_and_before_new_issues() {
    let mut m = with_worktrees(4, 2);
    m.handle(passed(&[(0, "a"), (1, "b")]), NOW);
    m.handle(done(0), NOW);
    m.handle(passed(&[(2, "c")]), NOW);
    m.handle(done(1), NOW);
    m.handle(passed(&[(3, "d")]), NOW);
    assert_eq!(m.handle(mend_due(1), NOW), []);
    assert_eq!(m.handle(mend_due(0), NOW), []);
    assert_eq!(m.handle(ended(2), NOW), [Effect::Mend(1)]);
    assert_eq!(m.handle(ended(3), NOW), [Effect::Mend(0)]);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
}

#[test]
fn a_step_that_ends_while_it_waits_to_mend_keeps_nothing_from_beginning() {
    let mut m = one_at_work();
    assert_eq!(m.handle(mend_due(0), NOW), []);
    assert_eq!(m.handle(ended(0), NOW), []);
    assert_eq!(m.handle(done(1), NOW), [Effect::Pass]);
    assert_eq!(m.handle(passed(&[(0, "c")]), NOW), [dispatch(0, "c")]);
}

#[test]
fn an_agent_that_did_not_wait_counts_once() {
    let mut m = one_at_work();
    assert_eq!(m.handle(mend_due(0), NOW), []);
    // It worked again at once, and its work is in the queue.
    assert_eq!(m.handle(done(0), NOW), []);
    assert_eq!(m.handle(ended(1), NOW), [Effect::Pass]);
    assert_eq!(m.idle(), [1]);
}
