//! `premath issue close`, `reopen`, `defer` and `delete`, and the order and the
//! limit of lists.

use crate::scratch::{Scratch, ids, row};
use serde_json::json;
use std::fs;

fn text(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.issues()).unwrap()
}

#[test]
fn several_issues_are_closed_and_reopened_at_once() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &[]) + &row("c", &["a"])));
    let closed = scratch.json(&["issue", "close", "a", "b", "a", "--reason", "not needed"]);
    assert_eq!(closed["action"], "issue.close");
    assert_eq!(ids(&closed), ["a", "b"]);
    for issue in closed["items"].as_array().unwrap() {
        assert_eq!(issue["status"], "closed");
        assert_eq!(issue["operatorOverride"]["reason"], "not needed");
        assert_eq!(issue["operatorOverride"]["operator"], "ann");
    }
    let before = text(&scratch);
    let again = scratch.json(&["issue", "close", "a", "--reason", "again"]);
    assert_eq!(
        (&again["count"], &again["unchanged"]),
        (&json!(0), &json!(["a"]))
    );
    assert_eq!(text(&scratch), before);
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["c"]);
    let reopened = scratch.json(&["issue", "reopen", "a", "c"]);
    assert_eq!(ids(&reopened), ["a"]);
    assert_eq!(reopened["unchanged"], json!(["c"]));
    assert_eq!(reopened["items"][0].get("closedAt"), None);
}

#[test]
fn all_of_the_issues_are_changed_or_none() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &[])));
    let before = text(&scratch);
    for (args, code, said) in [
        (
            &["close", "a", "nowhere", "--reason", "r"][..],
            1,
            "no issue nowhere",
        ),
        (&["defer", "a", "nowhere"], 1, "no issue nowhere"),
        (&["close", "a"], 2, "--reason TEXT"),
        (&["delete", "a"], 2, "--reason TEXT"),
        (&["close", "--reason", "r"], 2, "ID"),
        (&["reopen"], 2, "ID"),
    ] {
        let refused = scratch.run(&[&["issue"], args].concat());
        assert_eq!(refused.code, code, "{args:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(said),
            "{args:?}: {}",
            refused.stderr
        );
    }
    for args in [
        &["issue", "close", "a", "--reason", "r"][..],
        &["issue", "reopen", "a"],
        &["issue", "defer", "a"],
        &["issue", "delete", "a", "--reason", "r"],
        &["issue", "import", "nowhere"],
    ] {
        let refused = scratch.run_in_step(args, None);
        assert_eq!(refused.code, 1, "{args:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("inside a step"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(text(&scratch), before);
}

#[test]
fn a_deferred_issue_is_not_ready_and_a_lease_that_ends_is_named() {
    let scratch = Scratch::with(&row("a", &[]));
    scratch.json(&["issue", "claim", "a", "--assignee", "bob"]);
    let reopened = scratch.run(&["issue", "reopen", "a"]);
    assert_eq!(reopened.code, 1);
    assert!(reopened.stderr.contains("premath issue release"));
    let deferred = scratch.run(&["issue", "defer", "a", "--reason", "later"]);
    assert!(
        deferred.stderr.contains("a was leased to bob"),
        "{}",
        deferred.stderr
    );
    assert!(ids(&scratch.json(&["issue", "ready"])).is_empty());
    assert_eq!(scratch.json(&["issue", "check"])["warnings"], json!([]));
    scratch.json(&["issue", "reopen", "a"]);
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["a"]);
}

#[test]
fn a_deleted_issue_is_a_tombstone_and_comes_back_whole() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &["a"])));
    let before = text(&scratch);
    let refused = scratch.run(&["issue", "delete", "a", "--reason", "r"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("b depends on it"),
        "{}",
        refused.stderr
    );
    assert_eq!(text(&scratch), before);
    let both = scratch.json(&["issue", "delete", "a", "b", "--reason", "twice the same"]);
    assert_eq!(ids(&both), ["a", "b"]);
    let last = text(&scratch).lines().last().unwrap().to_owned();
    for part in [
        r#""status":"tombstone""#,
        r#""deleted_by":"ann""#,
        r#""delete_reason":"twice the same""#,
        r#""original_type":"task""#,
        r#""depends_on_id":"a""#,
    ] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let closed = scratch.run(&["issue", "close", "a", "--reason", "r"]);
    assert_eq!(closed.code, 1);
    scratch.json(&["issue", "reopen", "a", "b"]);
    let last = text(&scratch).lines().last().unwrap().to_owned();
    assert!(!last.contains("delete"), "{last}");
    assert_eq!(ids(&scratch.json(&["issue", "blocked"])), ["b"]);
    scratch.json(&["issue", "delete", "a", "--force", "--reason", "r"]);
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["b"]);
}

#[test]
fn epics_whose_children_are_over_are_closed_inner_ones_first() {
    let scratch = Scratch::with("");
    for args in [
        &["outer", "--type", "epic"][..],
        &["inner", "--type", "epic", "--parent", "bd-1"],
        &["part", "--parent", "bd-2"],
        &["childless", "--type", "epic"],
        &["task"],
        &["part of a task", "--parent", "bd-5"],
    ] {
        scratch.json(&[&["issue", "add"], args].concat());
    }
    let none = scratch.run(&["issue", "close", "--epics"]);
    assert_eq!(none.code, 0);
    assert!(none.stderr.contains("nothing to do"), "{}", none.stderr);
    scratch.json(&["issue", "close", "bd-3", "bd-6", "--reason", "r"]);
    let closed = scratch.json(&["issue", "close", "--epics"]);
    assert_eq!(ids(&closed), ["bd-2", "bd-1"]);
    let reason = &closed["items"][0]["operatorOverride"]["reason"];
    assert_eq!(reason, "every child is over");
}

#[test]
fn lists_are_in_the_order_of_numbers_and_have_a_limit() {
    let rows: String = ["bd-10", "bd-2", "bd-1"]
        .iter()
        .map(|id| row(id, &["x"]))
        .collect();
    let scratch = Scratch::with(&(rows + &row("x", &[])));
    assert_eq!(
        ids(&scratch.json(&["issue", "list"])),
        ["bd-1", "bd-2", "bd-10", "x"]
    );
    assert_eq!(
        ids(&scratch.json(&["issue", "blocked"])),
        ["bd-1", "bd-2", "bd-10"]
    );
    for (list, shown, total) in [("list", 2, 4), ("blocked", 2, 3), ("ready", 1, 1)] {
        let some = scratch.json(&["issue", list, "--limit", "2"]);
        assert_eq!(ids(&some).len(), shown, "{list}");
        assert_eq!(some["total"], total, "{list}");
    }
    let some = scratch.run(&["issue", "list", "--limit", "1"]);
    assert!(some.stderr.contains("3 more of 4"), "{}", some.stderr);
    // What the contracts order by id stays ordered by bytes.
    scratch.json(&["issue", "close", "x", "--reason", "r"]);
    assert_eq!(
        ids(&scratch.json(&["issue", "ready"])),
        ["bd-1", "bd-10", "bd-2"]
    );
}
