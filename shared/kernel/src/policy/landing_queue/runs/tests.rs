use super::super::{CheckEnd, QueueBounds, QueueStep};
use super::*;

fn queue_of(batch: usize, count: usize) -> (LandingQueue, Vec<Ticket>) {
    let mut queue = LandingQueue::new(QueueBounds {
        speculation: 19,
        slots: usize::MAX,
        batch,
    });
    let tickets = (0..count)
        .map(|number| queue.join(0, &format!("bd-{number:02}").into()))
        .collect();
    (queue, tickets)
}

/// Starts all places that can start, in order; returns those that are verified.
fn start(queue: &mut LandingQueue, tickets: &[Ticket]) -> Vec<Ticket> {
    let mut verified = Vec::new();
    for ticket in tickets {
        if let QueueStep::Try(ahead) = queue.next(*ticket) {
            assert!(queue.started(*ticket, &ahead));
            verified.extend((!queue.is_riding(*ticket)).then_some(*ticket));
        }
    }
    verified
}

/// Lands a run whose leader passed, the leader last.
fn land(queue: &mut LandingQueue, run: &[Ticket]) {
    for ticket in run {
        assert_eq!(queue.next(*ticket), QueueStep::Land);
        match queue.is_riding(*ticket) {
            true => queue.advanced_riding(*ticket),
            false => queue.advanced(*ticket),
        }
    }
}

#[test]
fn only_the_last_of_a_run_is_verified_and_all_land_in_order() {
    let (mut queue, t) = queue_of(3, 7);
    assert_eq!(start(&mut queue, &t), [t[2], t[5], t[6]]);
    assert_eq!(queue.next(t[0]), QueueStep::Wait);
    assert!(queue.passed(t[2]));
    assert_eq!(queue.leader(t[0]), Some(t[2]));
    assert_eq!(queue.leader(t[3]), None);
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    land(&mut queue, &t[..3]);
    // The leader closes first: until then nothing verified is closed.
    assert_eq!(queue.next_check(t[0]), None);
    assert_eq!(queue.next_check(t[2]), None);
    assert!(queue.checked(t[2], true));
    assert_eq!(queue.next_check(t[2]), Some(CheckEnd::MayClose));
    assert_eq!(queue.next_check(t[1]), None);
    assert!(queue.may_be_taken_back(t[0]) && queue.closing(t[2]));
    assert!(!queue.may_be_taken_back(t[0]));
    assert!(queue.settled(t[2]));
    assert!(!queue.may_be_taken_back(t[1]));
    for rider in [t[1], t[0]] {
        assert_eq!(queue.next_check(rider), Some(CheckEnd::MayClose));
        assert!(queue.settled(rider));
    }
    assert!(!queue.has_unchecked());
}

#[test]
fn a_place_with_nothing_behind_it_is_verified() {
    let (mut queue, t) = queue_of(3, 1);
    assert_eq!(start(&mut queue, &t), t);
    let later = queue.join(0, &"bd-90".into());
    assert_eq!(start(&mut queue, &[later]), [later]);
}

#[test]
fn without_speculation_nothing_rides() {
    let mut queue = LandingQueue::new(QueueBounds {
        speculation: 0,
        slots: 1,
        batch: 4,
    });
    let t = ["a", "b"].map(|id| queue.join(0, &id.into()));
    assert_eq!(start(&mut queue, &t), [t[0]]);
}

#[test]
fn the_failure_of_a_run_is_searched_in_halves_and_charged_to_one() {
    let (mut queue, t) = queue_of(4, 4);
    assert_eq!(start(&mut queue, &t), [t[3]]);
    assert!(queue.failed(t[3]));
    assert_ne!(queue.next(t[3]), QueueStep::Charged);
    assert_eq!(start(&mut queue, &t), [t[1], t[3]]);
    assert!(queue.failed(t[1]));
    // What is behind it is verified again, as it was split.
    assert_eq!(start(&mut queue, &t), [t[0], t[1], t[3]]);
    assert!(queue.passed(t[0]) && queue.failed(t[1]));
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    land(&mut queue, &t[..1]);
    assert!(queue.checked(t[0], true) && queue.settled(t[0]));
    assert_eq!(queue.next(t[1]), QueueStep::Charged);
    queue.left(t[1]);
    assert_eq!(start(&mut queue, &t[2..]), [t[3]]);
    assert!(queue.passed(t[3]));
    land(&mut queue, &t[2..]);
}

#[test]
fn where_the_leader_is_gone_the_last_one_that_rides_leads() {
    let (mut queue, t) = queue_of(3, 3);
    assert_eq!(start(&mut queue, &t), [t[2]]);
    queue.left(t[2]);
    assert!(queue.is_riding(t[0]));
    assert_eq!(start(&mut queue, &t[..2]), [t[1]]);
    // It does not ride again.
    let later = queue.join(0, &"bd-90".into());
    queue.moved();
    assert_eq!(start(&mut queue, &[t[0], t[1], later]), [t[1], later]);
}

#[test]
fn nothing_rides_on_work_that_is_verified_by_itself() {
    let (mut queue, t) = queue_of(3, 3);
    assert!(queue.limit(t[2], Part::Single));
    assert_eq!(start(&mut queue, &t), [t[1], t[2]]);
    assert!(queue.limit(t[1], Part::Single));
    queue.moved();
    assert_eq!(start(&mut queue, &t), t);
}

#[test]
fn conflicting_work_leads_nothing() {
    let (mut queue, t) = queue_of(3, 3);
    let QueueStep::Try(ahead) = queue.next(t[0]) else {
        panic!()
    };
    assert!(queue.started(t[0], &ahead) && queue.is_riding(t[0]));
    assert!(queue.conflicted(t[1], &[t[0]]));
    assert_eq!(start(&mut queue, &t[2..]), [t[2]]);
    assert!(queue.passed(t[2]));
    assert_eq!(queue.leader(t[0]), Some(t[2]));
    queue.advanced_riding(t[0]);
    // It is tried again once what it conflicts with has closed.
    assert_eq!(queue.next(t[1]), QueueStep::Wait);
    land(&mut queue, &t[2..]);
}

#[test]
fn what_landed_riding_is_taken_back_where_its_leader_does_not_land() {
    for gone in [1, 2] {
        let (mut queue, t) = queue_of(3, 4);
        assert_eq!(start(&mut queue, &t), [t[2], t[3]]);
        assert!(queue.passed(t[2]) && queue.passed(t[3]));
        queue.advanced_riding(t[0]);
        queue.left(t[gone]);
        assert_eq!(queue.next_check(t[0]), Some(CheckEnd::Withdraw));
        assert_eq!(queue.landings_from(t[0]), [t[0]]);
        queue.taken_back(t[0]);
        assert_eq!(queue.next_check(t[0]), Some(CheckEnd::LandAgain));
    }
}

#[test]
fn nothing_lands_on_what_is_to_be_taken_back() {
    let (mut queue, t) = queue_of(2, 3);
    assert_eq!(start(&mut queue, &t), [t[1], t[2]]);
    assert!(queue.passed(t[1]));
    queue.advanced_riding(t[0]);
    queue.left(t[1]);
    assert_eq!(start(&mut queue, &t[2..]), [t[2]]);
    assert!(queue.passed(t[2]));
    assert_eq!(queue.next(t[2]), QueueStep::Wait);
    queue.taken_back(t[0]);
    assert_eq!(start(&mut queue, &t[2..]), [t[2]]);
}

#[test]
fn a_run_that_fails_its_check_is_taken_back_whole_and_charged_to_none() {
    let (mut queue, t) = queue_of(3, 4);
    assert_eq!(start(&mut queue, &t), [t[2], t[3]]);
    assert!(queue.passed(t[2]) && queue.passed(t[3]));
    land(&mut queue, &t);
    assert!(queue.checked(t[2], false));
    assert_eq!(queue.next_check(t[2]), None);
    assert_eq!(queue.next_check(t[0]), Some(CheckEnd::Withdraw));
    assert_eq!(queue.next_check(t[1]), None);
    for of in [t[0], t[1], t[2]] {
        assert_eq!(queue.landings_from(of), t);
    }
    queue.taken_back(t[0]);
    for ticket in &t {
        assert_eq!(queue.next_check(*ticket), Some(CheckEnd::LandAgain));
    }
}

#[test]
fn what_rides_stays_with_a_leader_whose_issue_does_not_close() {
    let (mut queue, t) = queue_of(2, 2);
    assert_eq!(start(&mut queue, &t), [t[1]]);
    assert!(queue.passed(t[1]));
    land(&mut queue, &t);
    assert!(queue.checked(t[1], true) && queue.closing(t[1]) && queue.stayed(t[1]));
    assert_eq!(queue.next_check(t[0]), Some(CheckEnd::Leave));
    assert!(!queue.may_be_taken_back(t[0]) && queue.stayed(t[0]));
    assert!(!queue.has_unchecked());
}

#[test]
fn a_run_that_began_to_land_continues_before_reserved_work() {
    let (mut queue, t) = queue_of(3, 4);
    assert_eq!(start(&mut queue, &t), [t[2], t[3]]);
    assert!(queue.passed(t[2]) && queue.passed(t[3]));
    queue.advanced_riding(t[0]);
    assert!(queue.reserve(&"bd-90".into()));
    assert!(queue.owes_landing(t[1]) && queue.owes_landing(t[2]) && !queue.owes_landing(t[3]));
    let last = queue.join(9, &"bd-90".into());
    land(&mut queue, &t[1..3]);
    assert_eq!(queue.next(t[3]), QueueStep::Wait);
    assert_eq!(start(&mut queue, &[last]), [last]);
    assert!(!queue.owes_landing(last));
}

#[test]
fn what_rides_takes_no_slot() {
    let mut queue = LandingQueue::new(QueueBounds {
        speculation: 19,
        slots: 1,
        batch: 2,
    });
    let t = ["a", "b", "c", "d"].map(|id| queue.join(0, &id.into()));
    assert_eq!(start(&mut queue, &t), [t[1]]);
    assert!(queue.passed(t[1]));
    assert_eq!(start(&mut queue, &t), [t[3]]);
}
