use super::*;
use crate::issue::lease::Life;
use crate::json::time::Moment;
use crate::record::why::ReasonKind;
use serde_json::{Value, json};

fn issue(id: &str, more: Value) -> Issue {
    let mut row = json!({"id": id, "title": "t", "status": "open"});
    for (key, value) in more.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
    serde_json::from_value(row).unwrap()
}

fn on(id: &str, others: &[&str]) -> Issue {
    let edges = others
        .iter()
        .map(|other| json!({"issue_id": id, "depends_on_id": other, "type": "blocks"}));
    issue(id, json!({"dependencies": edges.collect::<Vec<_>>()}))
}

/// Plays a batch of so many lanes.
fn played(issues: &[Issue], lanes: usize, attempts_per_lane: Option<u64>) -> Schedule {
    played_waiting(issues, lanes, (attempts_per_lane, true))
}

/// Plays one that waits for later attempts, or does not.
fn played_waiting(
    issues: &[Issue],
    lanes: usize,
    (attempts_per_lane, waits): (Option<u64>, bool),
) -> Schedule {
    let seen = Observation {
        moment: Moment {
            wall: "2026-03-05T10:00:00Z".parse().unwrap(),
            boot_ms: 0,
        },
        boot_id: "b",
        life: &|_| Life::Dead,
    };
    let workers: Vec<WorkerName> = (1..=lanes).map(|n| format!("worker.{n}").into()).collect();
    let scope = PlanScope {
        selection: &Selection::default(),
        assignees: &AssigneeRule::Unassigned,
        left_out: &["left".into()].into_iter().collect(),
        set_aside: &["aside".into()].into_iter().collect(),
        waits,
        workers: &workers,
        attempts_per_lane,
        batches: &[],
        seen: &seen,
        title: &|id| format!("title of {id}"),
    };
    let issues: Vec<&Issue> = issues.iter().collect();
    schedule(&issues, &scope)
}

fn order(schedule: &Schedule) -> Vec<(&str, u64)> {
    let order = schedule.order.iter();
    order
        .map(|planned| (&*planned.issue_id, planned.round))
        .collect()
}

/// Returns the first reason of each issue that never runs.
fn never_kinds(schedule: &Schedule) -> Vec<(&str, ReasonKind, Option<&str>)> {
    let never = schedule.never.iter();
    never
        .map(|never| {
            let root = never.root.as_ref().map(IssueId::as_str);
            (&*never.issue_id, never.reasons[0].kind, root)
        })
        .collect()
}

#[test]
fn issues_are_given_by_priority_then_id_once_nothing_holds_them() {
    let issues = [
        on("c", &["a"]),
        issue("a", json!({"priority": 3})),
        issue("b", json!({"priority": 1})),
        on("d", &["c", "b"]),
        issue("done", json!({"status": "closed"})),
    ];
    let one = played(&issues, 1, None);
    assert_eq!(order(&one), [("b", 1), ("a", 2), ("c", 3), ("d", 4)]);
    assert_eq!(one.first, [Some("b".into())]);
    assert_eq!(one.order[3].waits_for, ["b", "c"].map(IssueId::from));
    assert_eq!(one.order[3].title, "title of d");
    let two = played(&issues, 2, None);
    assert_eq!(order(&two), [("b", 1), ("a", 1), ("c", 2), ("d", 3)]);
    assert_eq!(two.first, [Some("b".into()), Some("a".into())]);
    assert_eq!((two.rounds, two.never.len()), (3, 0));
}

#[test]
fn a_lease_that_is_over_is_taken_over_in_its_place() {
    let lease = |expires: &str| {
        json!({"status": "in_progress", "assignee": "w", "lease_generation": 1, "lease": {
            "lease_id": "l", "owner": "w", "acquired_at": "2026-03-01T00:00:00Z",
            "expires_at": expires, "generation": 1, "assignee_before": ""}})
    };
    let issues = [
        issue("a", json!({})),
        issue("b", lease("2026-03-05T09:00:00Z")),
        issue("c", json!({})),
        issue("d", lease("2026-03-05T11:00:00Z")),
    ];
    let found = played(&issues, 1, None);
    assert_eq!(order(&found), [("a", 1), ("b", 2), ("c", 3)]);
    assert!(found.order[1].takes_over && !found.order[0].takes_over);
    assert_eq!(never_kinds(&found), [("d", ReasonKind::Leased, None)]);
}

#[test]
fn an_attempt_that_begins_later_is_waited_for_a_day_at_most() {
    let at = |at: &str| json!({"retry_at": at});
    let issues = [
        issue("a", at("2026-03-05T12:00:00Z")),
        issue("b", json!({})),
        issue("c", at("2026-03-06T10:00:01Z")),
        on("e", &["a"]),
    ];
    let found = played(&issues, 1, None);
    assert_eq!(order(&found), [("b", 1), ("a", 2), ("e", 3)]);
    let not_before = found.order[1].not_before.as_ref().unwrap();
    assert_eq!(not_before.as_str(), "2026-03-05T12:00:00.000000Z");
    assert_eq!(never_kinds(&found), [("c", ReasonKind::Retry, None)]);
    // One that ends when nothing is ready waits for none.
    let found = played_waiting(&issues, 1, (None, false));
    assert_eq!(order(&found), [("b", 1)]);
    assert_eq!(
        never_kinds(&found),
        [
            ("a", ReasonKind::Retry, None),
            ("c", ReasonKind::Retry, None),
            ("e", ReasonKind::Held, Some("a")),
        ]
    );
}

#[test]
fn what_never_runs_has_its_reason_and_the_issue_that_it_hangs_on() {
    let issues = [
        issue("aside", json!({})),
        issue("assigned", json!({"assignee": "eve"})),
        issue("blocked", json!({"status": "blocked"})),
        on("behind", &["middle"]),
        on("cyclic-1", &["cyclic-2"]),
        on("cyclic-2", &["cyclic-1"]),
        on("cyclic-3", &["cyclic-2"]),
        issue("deferred", json!({"status": "deferred"})),
        issue("epic", json!({"issue_type": "epic"})),
        issue("left", json!({})),
        issue(
            "manual",
            json!({"status": "in_progress", "assignee": "eve"}),
        ),
        on("middle", &["blocked"]),
        on("missing", &["nowhere"]),
    ];
    let found = played(&issues, 2, None);
    assert_eq!(order(&found), []);
    assert_eq!(
        never_kinds(&found),
        [
            ("aside", ReasonKind::SetAside, None),
            ("assigned", ReasonKind::Assigned, None),
            ("behind", ReasonKind::Held, Some("blocked")),
            ("blocked", ReasonKind::Blocked, None),
            ("cyclic-1", ReasonKind::Cycle, None),
            ("cyclic-2", ReasonKind::Cycle, None),
            ("cyclic-3", ReasonKind::Held, None),
            ("deferred", ReasonKind::SetAside, None),
            ("epic", ReasonKind::NotSelected, None),
            ("left", ReasonKind::LeftOut, None),
            ("manual", ReasonKind::Manual, None),
            ("middle", ReasonKind::Held, Some("blocked")),
            ("missing", ReasonKind::HeldByMissing, Some("nowhere")),
        ]
    );
}

#[test]
fn attempts_end_where_lanes_have_no_more_of_them() {
    let issues = ["a", "b", "c"].map(|id| issue(id, json!({})));
    let found = played(&issues, 1, Some(2));
    assert_eq!(order(&found), [("a", 1), ("b", 2)]);
    assert_eq!(never_kinds(&found), [("c", ReasonKind::OutOfRounds, None)]);
    let none = played(&issues[..1], 0, None);
    assert_eq!(never_kinds(&none)[0].1, ReasonKind::Ready);
}
