use super::*;

fn bounded(speculation: usize, slots: usize) -> LandingQueue {
    LandingQueue::new(QueueBounds {
        speculation,
        slots,
        batch: 1,
    })
}

fn queue_of(count: usize) -> (LandingQueue, Vec<Ticket>) {
    let mut queue = bounded(19, usize::MAX);
    let tickets = (0..count)
        .map(|number| queue.join(0, &format!("bd-{number:02}").into()))
        .collect();
    (queue, tickets)
}

/// Starts the verification of a place on what is ahead of it.
fn start(queue: &mut LandingQueue, ticket: Ticket) -> Vec<Ticket> {
    let QueueStep::Try(ahead) = queue.next(ticket) else {
        panic!("{:?}", queue.next(ticket));
    };
    assert!(queue.started(ticket, &ahead));
    ahead
}

#[test]
fn each_verification_assumes_that_all_ahead_of_it_lands() {
    let (mut queue, t) = queue_of(3);
    assert_eq!(start(&mut queue, t[0]), []);
    assert_eq!(start(&mut queue, t[1]), [t[0]]);
    assert_eq!(start(&mut queue, t[2]), [t[0], t[1]]);
    assert!(queue.passed(t[2]) && queue.passed(t[0]));
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert_eq!(queue.next(t[0]), QueueStep::Land);
    queue.landed(t[0]);
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert!(queue.passed(t[1]));
    queue.landed(t[1]);
    assert_eq!(queue.next(t[2]), QueueStep::Land);
}

#[test]
fn what_contains_failed_work_is_verified_again_without_it() {
    let (mut queue, t) = queue_of(3);
    t.iter().for_each(|ticket| drop(start(&mut queue, *ticket)));
    assert!(queue.failed(t[1]));
    assert!(queue.is_superseded(t[2]) && !queue.is_superseded(t[0]));
    assert!(!queue.passed(t[2]), "a superseded verification counts");
    assert_eq!(start(&mut queue, t[2]), [t[0]]);
}

#[test]
fn a_failure_is_charged_only_on_a_state_that_landed() {
    let (mut queue, t) = queue_of(3);
    t.iter().for_each(|ticket| drop(start(&mut queue, *ticket)));
    assert!(queue.failed(t[2]));
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert!(queue.passed(t[0]));
    queue.landed(t[0]);
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert!(queue.failed(t[1]));
    assert_eq!(queue.next(t[1]), QueueStep::Charged);
    // It may have failed because of what was ahead of it.
    assert_eq!(queue.next(t[2]), QueueStep::Try(vec![]));
    start(&mut queue, t[2]);
    assert!(queue.failed(t[2]));
    assert_eq!(queue.next(t[2]), QueueStep::Charged);
}

#[test]
fn conflicting_work_waits_for_what_is_ahead_and_holds_nothing_up() {
    let (mut queue, t) = queue_of(3);
    start(&mut queue, t[0]);
    assert!(queue.conflicted(t[1], &[t[0]]));
    assert_eq!(start(&mut queue, t[2]), [t[0]]);
    assert!(queue.passed(t[0]) && queue.passed(t[2]));
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    queue.landed(t[0]);
    // The first one decides before the one behind it lands.
    assert_eq!(queue.next(t[1]), QueueStep::Try(vec![]));
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    queue.left(t[1]);
    assert_eq!(queue.next(t[2]), QueueStep::Land);
}

#[test]
fn conflicting_work_is_tried_again_when_what_is_ahead_fails() {
    let (mut queue, t) = queue_of(2);
    start(&mut queue, t[0]);
    assert!(queue.conflicted(t[1], &[t[0]]));
    assert!(queue.failed(t[0]));
    assert_eq!(queue.next(t[1]), QueueStep::Try(vec![]));
}

#[test]
fn a_position_is_fixed_once_its_verification_starts() {
    let mut queue = bounded(19, usize::MAX);
    let late = queue.join(2, &"a".into());
    let normal = queue.join(1, &"b".into());
    assert_eq!(queue.next(late), QueueStep::Wait);
    assert_eq!(start(&mut queue, normal), []);
    let urgent = queue.join(0, &"c".into());
    assert_eq!(start(&mut queue, urgent), [normal]);
    assert_eq!(start(&mut queue, late), [normal, urgent]);
}

#[test]
fn an_assumption_that_changed_in_between_is_not_taken() {
    let (mut queue, t) = queue_of(2);
    start(&mut queue, t[0]);
    let QueueStep::Try(ahead) = queue.next(t[1]) else {
        panic!()
    };
    queue.left(t[0]);
    assert!(!queue.started(t[1], &ahead));
    assert!(!queue.conflicted(t[1], &ahead));
    assert_eq!(queue.next(t[1]), QueueStep::Try(vec![]));
}

#[test]
fn a_target_that_others_move_supersedes_everything() {
    let (mut queue, t) = queue_of(2);
    t.iter().for_each(|ticket| drop(start(&mut queue, *ticket)));
    assert!(queue.passed(t[0]) && queue.failed(t[1]));
    queue.moved();
    assert_eq!(queue.next(t[0]), QueueStep::Try(vec![]));
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
}

#[test]
fn the_window_shrinks_for_charged_failures_and_grows_for_landings() {
    let (mut queue, t) = queue_of(12);
    for ticket in &t[..3] {
        start(&mut queue, *ticket);
        assert!(queue.failed(*ticket));
        queue.left(*ticket);
    }
    // 20, 10, 5, 3.
    let begun: Vec<_> = t[3..]
        .iter()
        .take_while(|ticket| match queue.next(**ticket) {
            QueueStep::Try(ahead) => queue.started(**ticket, &ahead),
            _ => false,
        })
        .copied()
        .collect();
    assert_eq!(begun, t[3..6]);
    assert!(queue.passed(begun[0]));
    queue.landed(begun[0]);
    assert_eq!(start(&mut queue, t[6]).len(), 2);
    assert_eq!(start(&mut queue, t[7]).len(), 3);
    assert_eq!(queue.next(t[8]), QueueStep::Wait);
}

/// What was verified already and is to be verified again is bounded, too.
#[test]
fn the_window_bounds_what_is_verified_again() {
    let (mut queue, t) = queue_of(12);
    for first in 0..3 {
        while let Some(ticket) = t[first..].iter().find(|ticket| {
            let step = queue.next(**ticket);
            matches!(step, QueueStep::Try(_))
        }) {
            start(&mut queue, *ticket);
        }
        assert!(queue.failed(t[first]));
        queue.left(t[first]);
    }
    // 20, 10, 5, 3.
    for ticket in &t[3..6] {
        start(&mut queue, *ticket);
    }
    assert_eq!(queue.next(t[6]), QueueStep::Wait);
}

#[test]
fn a_check_that_is_due_gets_the_next_slot() {
    let mut queue = bounded(19, 1);
    let [first, second] = [1, 2].map(|number| queue.join(0, &format!("bd-{number}").into()));
    start(&mut queue, first);
    assert!(queue.passed(first));
    queue.advanced(first);
    assert_eq!(queue.next(second), QueueStep::Wait);
    assert_eq!(queue.start_check(first), CheckStart::Begins);
    assert_eq!(queue.next(second), QueueStep::Wait);
    assert!(queue.checked(first, true));
    assert_eq!(start(&mut queue, second), []);
}

#[test]
fn without_speculation_one_place_is_verified_at_a_time() {
    let mut queue = bounded(0, usize::MAX);
    let first = queue.join(0, &"a".into());
    let second = queue.join(0, &"b".into());
    start(&mut queue, first);
    assert_eq!(queue.next(second), QueueStep::Wait);
    assert!(queue.failed(first));
    queue.left(first);
    assert_eq!(start(&mut queue, second), []);
}

#[test]
fn verifications_over_the_slots_wait_and_the_front_goes_first() {
    let mut queue = bounded(19, 2);
    let t: Vec<_> = ["a", "b", "c", "d"]
        .map(|id| queue.join(0, &id.into()))
        .to_vec();
    start(&mut queue, t[0]);
    start(&mut queue, t[1]);
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert!(queue.passed(t[1]));
    assert_eq!(start(&mut queue, t[2]), [t[0], t[1]]);
    assert_eq!(queue.next(t[3]), QueueStep::Wait);
    // Its failure supersedes what is behind it: both slots are free.
    assert!(queue.failed(t[0]));
    assert_eq!(queue.next(t[3]), QueueStep::Wait);
    assert_eq!(start(&mut queue, t[1]), []);
    assert_eq!(start(&mut queue, t[2]), [t[1]]);
    assert_eq!(queue.next(t[3]), QueueStep::Wait);
}

#[test]
fn a_queue_has_at_least_one_slot() {
    let mut queue = bounded(19, 0);
    let only = queue.join(0, &"a".into());
    assert_eq!(start(&mut queue, only), []);
}

#[test]
fn work_that_assumes_nothing_waits_for_what_is_ahead_and_for_its_check() {
    let (mut queue, t) = queue_of(2);
    start(&mut queue, t[0]);
    assert!(queue.assume_nothing(t[1]) && !queue.assume_nothing(t[1]));
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    assert!(queue.passed(t[0]));
    queue.advanced(t[0]);
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    assert!(queue.checked(t[0], true));
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    assert!(queue.settled(t[0]));
    assert_eq!(queue.next(t[1]), QueueStep::Try(vec![]));
}

#[test]
fn urgent_work_does_not_overtake_work_that_assumes_nothing() {
    let mut queue = bounded(19, usize::MAX);
    let first = queue.join(1, &"bd-1".into());
    start(&mut queue, first);
    // It was taken back, and has not started again.
    let late = queue.join(3, &"bd-2".into());
    assert!(queue.assume_nothing(late));
    let urgent = queue.join(0, &"bd-3".into());
    assert!(queue.passed(first));
    queue.landed(first);
    assert_eq!(start(&mut queue, late), []);
    assert_eq!(start(&mut queue, urgent), [late]);
}

#[test]
fn no_landing_is_reserved_before_work_that_assumes_nothing() {
    let (mut queue, t) = queue_of(1);
    assert!(queue.reserve(&"bd-8".into()));
    assert!(queue.assume_nothing(t[0]));
    queue.release(&"bd-8".into());
    assert!(!queue.reserve(&"bd-9".into()));
    queue.left(t[0]);
    assert!(queue.reserve(&"bd-9".into()));
}

#[test]
fn work_that_waits_is_in_the_order_of_priority_and_of_numbers_in_ids() {
    let mut queue = bounded(19, usize::MAX);
    let names = ["bd-10", "bd-2", "bd-1", "bd-9"];
    let [ten, two, one, nine] = names.map(|id| queue.join(1, &id.into()));
    let urgent = queue.join(0, &"bd-11".into());
    assert_eq!(start(&mut queue, urgent), []);
    assert_eq!(start(&mut queue, one), [urgent]);
    assert_eq!(start(&mut queue, two), [urgent, one]);
    assert_eq!(start(&mut queue, nine), [urgent, one, two]);
    assert_eq!(start(&mut queue, ten), [urgent, one, two, nine]);
}

#[test]
fn nothing_lands_before_work_that_has_the_reservation() {
    let (mut queue, t) = queue_of(2);
    t.iter().for_each(|ticket| drop(start(&mut queue, *ticket)));
    assert!(queue.passed(t[0]) && queue.reserve(&"bd-90".into()));
    // It still works: what is ready is verified, and waits.
    assert_eq!(queue.next(t[0]), QueueStep::Wait);
    assert!(queue.passed(t[1]));
    let last = queue.join(9, &"bd-90".into());
    assert_eq!(start(&mut queue, last), []);
    assert_eq!(start(&mut queue, t[0]), [last]);
    assert!(queue.passed(last));
    assert_eq!(queue.next(last), QueueStep::Land);
    queue.landed(last);
    assert!(queue.passed(t[0]));
    assert_eq!(queue.next(t[0]), QueueStep::Wait);
    queue.release(&"bd-90".into());
    assert_eq!(queue.next(t[0]), QueueStep::Land);
}

#[test]
fn what_joins_later_comes_behind_work_that_has_the_reservation() {
    let mut queue = bounded(19, usize::MAX);
    assert!(queue.reserve(&"bd-90".into()));
    let last = queue.join(9, &"bd-90".into());
    // The reserved work has not started yet.
    let urgent = queue.join(0, &"bd-01".into());
    assert_eq!(start(&mut queue, last), []);
    assert_eq!(start(&mut queue, urgent), [last]);
    assert!(queue.passed(last));
    assert_eq!(queue.next(last), QueueStep::Land);
}

#[test]
fn one_issue_has_the_reservation_until_it_releases_it() {
    let (mut queue, _) = queue_of(0);
    assert!(queue.reserve(&"bd-1".into()) && queue.reserve(&"bd-1".into()));
    assert!(!queue.reserve(&"bd-2".into()));
    queue.release(&"bd-2".into());
    assert!(!queue.reserve(&"bd-2".into()));
    queue.release(&"bd-1".into());
    assert!(queue.reserve(&"bd-2".into()));
}

#[test]
fn work_that_assumes_nothing_never_waits_as_one_that_conflicts() {
    let (mut queue, t) = queue_of(2);
    assert!(queue.assume_nothing(t[0]));
    assert!(!queue.conflicted(t[0], &[]));
    assert_eq!(start(&mut queue, t[0]), []);
    assert!(queue.passed(t[0]));
    assert_eq!(queue.next(t[0]), QueueStep::Land);
}

#[test]
fn slots_may_change_while_work_is_verified() {
    let mut queue = bounded(19, 1);
    let t: Vec<_> = (0..3)
        .map(|n| queue.join(1, &format!("bd-{n}").into()))
        .collect();
    assert_eq!(start(&mut queue, t[0]), []);
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    queue.set_slots(2);
    assert_eq!(start(&mut queue, t[1]), [t[0]]);
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    // What runs continues.
    queue.set_slots(0);
    assert!(queue.passed(t[1]));
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    assert!(queue.passed(t[0]));
    assert_eq!(start(&mut queue, t[2]), [t[0], t[1]]);
}
