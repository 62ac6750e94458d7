use super::*;
use crate::issue::graph::Hold;
use crate::issue::{Issue, RowChange, Status};
use std::time::Duration;

const BOOT: &str = "boot-a";

fn at(text: &str, boot_ms: u64) -> Moment {
    Moment {
        wall: text.parse().unwrap(),
        boot_ms,
    }
}

fn seen(moment: Moment, life: &dyn Fn(&Holder) -> Life) -> Observation<'_> {
    Observation {
        moment,
        boot_id: BOOT,
        life,
    }
}

fn alive(_: &Holder) -> Life {
    Life::Alive
}

fn issue(json: &str) -> Issue {
    serde_json::from_str(json).unwrap()
}

fn request(claimant: &str) -> ClaimRequest {
    ClaimRequest {
        claimant: claimant.into(),
        lease_id: None,
        term: Term::Ttl(Duration::from_secs(60)),
        assignees: AssigneeRule::Unassigned,
        holder: None,
        generation_floor: 0,
    }
}

fn holder() -> Holder {
    Holder {
        host: "h".into(),
        boot_id: BOOT.into(),
        pid: 7,
        started: 1,
        deadline_ms: 0,
        pid_ns: None,
    }
}

/// Applies a change the way the store does, through the row's JSON.
fn apply(row: &str, change: &RowChange) -> String {
    let mut map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(row).unwrap();
    for (name, value) in change.fields() {
        match value {
            Some(value) => map.insert(name.into(), value.clone()),
            None => map.remove(name),
        };
    }
    serde_json::to_string(&map).unwrap()
}

const OPEN: &str = r#"{"id":"x","title":"t","status":"open","assignee":""}"#;
const T0: &str = "2026-01-01T00:00:00Z";

fn claimed(by: &str, with: Option<Holder>) -> (String, Claim) {
    let mut wish = request(by);
    wish.holder = with;
    let (change, claim) = claim(&issue(OPEN), None, &wish, &seen(at(T0, 1_000), &alive)).unwrap();
    (apply(OPEN, &change), claim)
}

#[test]
fn a_claim_makes_an_active_lease_of_the_next_generation() {
    let (row, claim) = claimed("w.1", None);
    let issue = issue(&row);
    assert_eq!(claim.generation, 1);
    assert_eq!(claim.lease_id, "lease1_x_w_1");
    assert_eq!(issue.status, Status::InProgress);
    assert_eq!(
        state(Some(&issue), &seen(at(T0, 1_000), &alive)),
        LeaseState::Active
    );
}

#[test]
fn no_claim_succeeds_over_a_live_lease_not_even_its_own_name() {
    let (row, _) = claimed("w.1", None);
    let refusal = claim(
        &issue(&row),
        None,
        &request("w.1"),
        &seen(at("2026-01-01T00:00:59Z", 1_000), &alive),
    )
    .unwrap_err();
    assert_eq!(refusal.class, FailureClass::LeaseContentionActive);
}

#[test]
fn a_stale_lease_is_taken_over_at_once_and_its_assignee_counts_for_nothing() {
    let (row, _) = claimed("w.1", None);
    let (change, second) = claim(
        &issue(&row),
        Some(&[]),
        &request("w.2"),
        &seen(at("2026-01-01T00:01:00Z", 1_000), &alive),
    )
    .unwrap();
    assert_eq!(second.generation, 2);
    assert_eq!(second.taken_over.as_ref().unwrap().owner, "w.1");
    let row = apply(&row, &change);
    let back = release(&issue(&row), &second.key(), None, T0.parse().unwrap()).unwrap();
    assert_eq!(&*issue(&apply(&row, &back)).assignee, "");
}

#[test]
fn on_its_own_host_the_wall_clock_neither_ends_nor_prolongs_a_lease() {
    let (row, _) = claimed("w.1", Some(holder()));
    let issue = issue(&row);
    let year_ahead = at("2027-01-01T00:00:00Z", 2_000);
    assert_eq!(
        state(Some(&issue), &seen(year_ahead, &alive)),
        LeaseState::Active
    );
    let year_back = at("2025-01-01T00:00:00Z", 61_000);
    assert_eq!(
        state(Some(&issue), &seen(year_back, &alive)),
        LeaseState::Stale
    );
    let elsewhere = Observation {
        boot_id: "boot-b",
        ..seen(year_ahead, &alive)
    };
    assert_eq!(state(Some(&issue), &elsewhere), LeaseState::Stale);
}

#[test]
fn a_dead_holder_is_seen_at_once() {
    let (row, _) = claimed("w.1", Some(holder()));
    let dead = |_: &Holder| Life::Dead;
    assert_eq!(
        state(Some(&issue(&row)), &seen(at(T0, 1_001), &dead)),
        LeaseState::Stale
    );
    let unknown = |_: &Holder| Life::Unknown;
    assert_eq!(
        state(Some(&issue(&row)), &seen(at(T0, 1_001), &unknown)),
        LeaseState::Active
    );
}

#[test]
fn a_zombie_of_an_older_generation_can_change_nothing() {
    let (row, first) = claimed("w.1", None);
    let later = at("2026-01-01T00:02:00Z", 1_000);
    // The same name claims again: owner and id are equal, the generation is not.
    let (change, second) =
        claim(&issue(&row), None, &request("w.1"), &seen(later, &alive)).unwrap();
    let row = apply(&row, &change);
    let now = issue(&row);
    assert_eq!(first.lease_id, second.lease_id);
    let observed = seen(later, &alive);
    let term = Term::Ttl(TTL_MIN);
    for refusal in [
        renew(&now, &first.key(), term, &observed).unwrap_err(),
        release(&now, &first.key(), None, later.wall).unwrap_err(),
        close(&now, &first.key(), "s", &observed).unwrap_err(),
        block(&now, &first.key(), "n", &observed).unwrap_err(),
    ] {
        assert_eq!(refusal.class, FailureClass::LeaseGenerationMismatch);
    }
    assert!(close(&now, &second.key(), "s", &observed).is_ok());
}

#[test]
fn release_restores_the_assignee_and_keeps_the_generation() {
    let row = r#"{"id":"x","status":"open","assignee":"ann"}"#;
    let mut wish = request("w.1");
    wish.assignees = AssigneeRule::Any;
    let (change, first) = claim(&issue(row), None, &wish, &seen(at(T0, 0), &alive)).unwrap();
    let row = apply(row, &change);
    let retry_at = "2026-01-01T00:10:00Z".parse().unwrap();
    let change = release(
        &issue(&row),
        &first.key(),
        Some(retry_at),
        T0.parse().unwrap(),
    )
    .unwrap();
    let row = apply(&row, &change);
    let back = issue(&row);
    assert_eq!((&*back.assignee, back.lease_generation), ("ann", 1));
    assert!(back.lease.is_none());
    let early = claim(
        &back,
        None,
        &wish,
        &seen(at("2026-01-01T00:09:59Z", 0), &alive),
    );
    assert_eq!(early.unwrap_err().class, FailureClass::IssueNotReady);
    let (_, second) = claim(
        &back,
        None,
        &wish,
        &seen(at("2026-01-01T00:10:00Z", 0), &alive),
    )
    .unwrap();
    assert_eq!(second.generation, 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn every_refusal_has_its_class() {
    let (row, first) = claimed("w.1", None);
    let now = at(T0, 1_000);
    let observed = seen(now, &alive);
    let wrong_owner = LeaseKey {
        owner: Some("w.2".into()),
        ..first.key()
    };
    let wrong_id = LeaseKey {
        lease_id: Some("l".into()),
        ..first.key()
    };
    let term = Term::Ttl(TTL_DEFAULT);
    let class = |result: Result<RowChange, LeaseRefusal>| result.unwrap_err().class;
    let held_row = issue(&row);
    assert_eq!(
        class(renew(&held_row, &wrong_owner, term, &observed)),
        FailureClass::LeaseOwnerMismatch
    );
    assert_eq!(
        class(renew(&held_row, &wrong_id, term, &observed)),
        FailureClass::LeaseIdMismatch
    );
    assert_eq!(
        class(renew(&issue(OPEN), &first.key(), term, &observed)),
        FailureClass::LeaseMissing
    );
    assert_eq!(
        class(renew(
            &held_row,
            &first.key(),
            Term::Ttl(Duration::from_secs(29)),
            &observed
        )),
        FailureClass::LeaseInvalidTtl
    );
    assert_eq!(
        class(renew(
            &held_row,
            &first.key(),
            Term::Until(now.wall),
            &observed
        )),
        FailureClass::LeaseInvalidExpiresAt
    );
    assert_eq!(
        class(renew(
            &held_row,
            &first.key(),
            term,
            &seen(at("2026-01-01T00:01:00Z", 0), &alive)
        )),
        FailureClass::LeaseStale
    );
    let closed = r#"{"id":"x","status":"closed"}"#;
    assert_eq!(
        class(renew(&issue(closed), &first.key(), term, &observed)),
        FailureClass::LeaseIssueClosed
    );
    let manual = r#"{"id":"x","status":"in_progress"}"#;
    assert_eq!(
        claim(&issue(manual), None, &request("w"), &observed)
            .unwrap_err()
            .class,
        FailureClass::LeaseContentionActive
    );
    assert_eq!(
        claim(&issue(OPEN), None, &request(" "), &observed)
            .unwrap_err()
            .class,
        FailureClass::LeaseInvalidAssignee
    );
    let holds = [Hold::On("y".into()), Hold::OnMissing("z".into())];
    for (row, held_by, message) in [
        (
            OPEN,
            &holds,
            "issue x is not ready: it waits for y, z (missing)",
        ),
        (
            r#"{"id":"x","status":"blocked"}"#,
            &holds,
            "issue x is not ready: its status is blocked",
        ),
    ] {
        let refusal = claim(&issue(row), Some(held_by), &request("w"), &observed).unwrap_err();
        assert_eq!(refusal.class, FailureClass::IssueNotReady);
        assert_eq!(refusal.detail, message);
    }
}

#[test]
fn a_contended_row_is_healed_by_its_owners_renewal() {
    let (row, first) = claimed("w.1", None);
    let row = row.replace(r#""assignee":"w.1""#, r#""assignee":"ann""#);
    let observed = seen(at(T0, 0), &alive);
    assert_eq!(state(Some(&issue(&row)), &observed), LeaseState::Contended);
    assert_eq!(
        close(&issue(&row), &first.key(), "s", &observed)
            .unwrap_err()
            .class,
        FailureClass::LeaseContentionActive
    );
    let change = renew(&issue(&row), &first.key(), Term::Ttl(TTL_MIN), &observed).unwrap();
    assert_eq!(
        state(Some(&issue(&apply(&row, &change))), &observed),
        LeaseState::Active
    );
}

#[test]
fn an_expiry_that_cannot_be_read_is_its_own_state() {
    let row = r#"{"id":"x","status":"in_progress","assignee":"w","lease":{"lease_id":"l","owner":"w","acquired_at":"","expires_at":"soon"}}"#;
    assert_eq!(
        state(Some(&issue(row)), &seen(at(T0, 0), &alive)),
        LeaseState::InvalidExpiresAt
    );
}

#[test]
fn a_lease_that_others_wrote_over_ours_is_not_ours_though_the_row_kept_the_generation() {
    let (row, first) = claimed("w.1", None);
    // Another program knows `lease` and keeps `lease_generation` as it found it.
    let foreign = row.replace(r#""generation":1,"#, "");
    assert_ne!(foreign, row);
    let observed = seen(at(T0, 1_000), &alive);
    let refusal = renew(
        &issue(&foreign),
        &first.key(),
        Term::Ttl(TTL_MIN),
        &observed,
    );
    assert_eq!(
        refusal.unwrap_err().class,
        FailureClass::LeaseGenerationMismatch
    );
}

#[test]
fn a_generation_is_above_every_one_that_is_known_and_never_wraps() {
    let mut wish = request("w");
    wish.generation_floor = 7;
    let observed = seen(at(T0, 0), &alive);
    let (_, higher) = claim(&issue(OPEN), None, &wish, &observed).unwrap();
    assert_eq!(higher.generation, 8);
    let last = format!(r#"{{"id":"x","lease_generation":{}}}"#, u64::MAX);
    let refusal = claim(&issue(&last), None, &request("w"), &observed).unwrap_err();
    assert_eq!(refusal.class, FailureClass::LeaseInvalidPayload);
}

#[test]
fn null_in_a_lease_reads_as_absent() {
    let row = r#"{"id":"x","status":"in_progress","lease":{"lease_id":null,"owner":"w","acquired_at":null,"expires_at":"2026-01-02T00:00:00Z","generation":null}}"#;
    assert_eq!(&*issue(row).lease.unwrap().lease_id, "");
}

#[test]
fn a_claim_that_another_ends_leaves_the_assignee_of_before() {
    let left = |row: &str| {
        let mut change = RowChange::new();
        without_claim(&issue(row), &mut change);
        issue(&apply(row, &change)).assignee.to_string()
    };
    let row = r#"{"id":"x","status":"open","assignee":"ann"}"#;
    let mut wish = request("w.1");
    wish.assignees = AssigneeRule::Any;
    let (change, claim) = claim(&issue(row), None, &wish, &seen(at(T0, 0), &alive)).unwrap();
    let leased = apply(row, &change);
    assert_eq!(left(&leased), "ann");
    let observed = seen(at(T0, 0), &alive);
    let closed = |step: &str| {
        let change = close(&issue(&leased), &claim.key(), step, &observed).unwrap();
        apply(&leased, &change)
    };
    assert_eq!(left(&closed("w.1.x.1")), "");
    // Another step closed it: the assignee is of another origin.
    assert_eq!(left(&closed("w.2.x.1")), "w.1");
    assert_eq!(left(row), "ann");
}
