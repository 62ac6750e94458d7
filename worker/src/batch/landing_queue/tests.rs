use super::*;

const BOUNDS: QueueBounds = QueueBounds {
    speculation: 1,
    slots: 2,
    batch: 1,
};

fn assumed(state: &QueueState, ticket: Ticket) -> Assumption {
    match state.queue.next(ticket) {
        QueueStep::Try(ahead) => state.assumption(ahead),
        step => panic!("{step:?}"),
    }
}

/// A queue with a place whose verification has begun.
fn begun() -> (QueueState, Ticket, Assumption) {
    let mut state = QueueState::new(BOUNDS);
    let ticket = state.queue.join(0, &"a".into());
    let assumption = assumed(&state, ticket);
    let started = state.start(ticket, &assumption, "commit of a");
    assert_eq!(started, PlaceStart::Verified);
    (state, ticket, assumption)
}

#[test]
fn no_verification_begins_on_a_landing_that_was_taken_back_meanwhile() {
    let (mut state, landed, _) = begun();
    assert!(state.queue.passed(landed));
    state.queue.advanced(landed);
    let behind = state.queue.join(0, &"b".into());
    // It reads the tip now, which has the work of `a`.
    let assumption = assumed(&state, behind);
    state.taken_back(landed);
    let started = state.start(behind, &assumption, "commit of b on a");
    assert_eq!(started, PlaceStart::Stale);
    let assumption = assumed(&state, behind);
    let started = state.start(behind, &assumption, "commit of b");
    assert_eq!(started, PlaceStart::Verified);
}

#[test]
fn a_move_of_the_target_supersedes_what_is_verified() {
    let (mut state, ticket, assumption) = begun();
    let tip = |name: &str| Some(name.to_owned());
    // What was gone already moves nothing.
    state.taken_off(None, [tip("one"), tip("one")]);
    assert!(!state.queue.is_superseded(ticket));
    state.taken_off(None, [tip("one"), tip("two")]);
    assert!(state.queue.is_superseded(ticket));
    assert_eq!(
        state.start(ticket, &assumption, "commit of a"),
        PlaceStart::Stale
    );
}

#[test]
fn a_tip_that_cannot_be_read_counts_as_moved() {
    let (mut state, ticket, _) = begun();
    state.taken_off(None, [None, None]);
    assert!(state.queue.is_superseded(ticket));
}

#[test]
fn a_reservation_that_is_refused_wakes_no_thread() {
    let interrupt = Interrupt::new(std::time::Duration::ZERO);
    let queue = SharedQueue::new(BOUNDS, interrupt.clone());
    assert!(queue.reserve(&"a".into()));
    let seen = interrupt.changes();
    assert!(!queue.reserve(&"b".into()));
    assert_eq!(interrupt.changes(), seen);
    queue.change(|state| state.queue.release(&"a".into()));
    assert!(interrupt.changes() > seen);
    assert!(queue.reserve(&"b".into()));
}
