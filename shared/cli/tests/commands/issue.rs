//! Issues, edges and leases.

use crate::answer::Answer;
use crate::scratch::{Scratch, ids, row};
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;

/// Claims the next issue, and looks at its lease.
#[track_caller]
fn next_is_claimed(scratch: &Scratch) {
    let claimed = scratch.json(&["issue", "claim-next", "--assignee", "w"]);
    assert_eq!(claimed["action"], "issue.claim_next");
    assert_eq!(claimed["claimed"], true);
    assert_eq!(claimed["issue"]["id"], "a-1");
    let lease = claimed["issue"]["lease"].as_object().unwrap();
    let keys: Vec<_> = lease.keys().collect();
    assert_eq!(
        keys,
        [
            "acquiredAt",
            "expiresAt",
            "generation",
            "leaseId",
            "owner",
            "renewedAt"
        ]
    );
    assert_eq!(lease["leaseId"], "lease1_a-1_w");
    assert_eq!(lease["generation"], 1);
}

/// Compacts issue memory, which changes it once.
#[track_caller]
fn issue_memory_is_compacted(scratch: &Scratch) {
    assert_eq!(scratch.json(&["issue", "compact"])["changed"], true);
    assert_eq!(scratch.json(&["issue", "compact"])["changed"], false);
    assert_eq!(
        fs::read_to_string(scratch.issues())
            .unwrap()
            .lines()
            .count(),
        3
    );
    // The answer has the path as it was given; a bare name is one too.
    fs::copy(scratch.issues(), scratch.folder.join("bare.jsonl")).unwrap();
    scratch.json(&[
        "issue",
        "update",
        "a-1",
        "--priority",
        "3",
        "--issues",
        "bare.jsonl",
    ]);
    let compacted = scratch.json(&["issue", "compact", "--issues", "bare.jsonl"]);
    assert_eq!(compacted["issuesPath"], "bare.jsonl");
    assert_eq!(compacted["changed"], true);
}

#[test]
fn an_issue_goes_from_filed_to_closed() {
    let scratch = Scratch::with("");
    let added = scratch.json(&["issue", "add", "Second", "--id", "a-2", "--type", "bug"]);
    assert_eq!(added["action"], "issue.add");
    assert_eq!(added["issuesPath"], scratch.issues().to_str().unwrap());
    assert_eq!(added["issue"]["issueType"], "bug");
    assert_eq!(added["issue"]["operatorOverride"]["operator"], "ann");
    scratch.json(&["issue", "add", "First", "--id", "a-1", "--priority", "high"]);
    scratch.json(&["issue", "add", "Third", "--description", "later"]);
    scratch.json(&["dep", "add", "a-3", "a-1"]);

    assert_eq!(
        ids(&scratch.json(&["issue", "list"])),
        ["a-1", "a-2", "a-3"]
    );
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["a-1", "a-2"]);
    let blocked = scratch.json(&["issue", "blocked"]);
    assert_eq!(ids(&blocked), ["a-3"]);
    assert_eq!(
        blocked["items"][0]["blockedBy"],
        json!([{"id": "a-1", "kind": "dependency", "status": "open"}])
    );
    assert_eq!(blocked["items"][0]["blockers"][0]["createdBy"], "");

    next_is_claimed(&scratch);
    let closed = scratch.json(&[
        "issue",
        "update",
        "a-1",
        "--status",
        "closed",
        "--override-reason",
        "done by hand",
    ]);
    assert_eq!(closed["issue"]["status"], "closed");
    assert_eq!(closed["issue"].get("lease"), None);
    assert_eq!(
        closed["issue"]["operatorOverride"]["reason"],
        "done by hand"
    );
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["a-2", "a-3"]);
    assert_eq!(
        ids(&scratch.json(&["issue", "list", "--status", "closed"])),
        ["a-1"]
    );
    issue_memory_is_compacted(&scratch);
}

#[test]
fn an_empty_list_says_which_value_no_issue_has() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &[])));
    let closed = ["issue", "close", "b", "--reason", "done by hand"];
    assert_eq!(scratch.run(&closed).code, 0);
    assert_eq!(scratch.run(&["issue", "add", "c", "--labels", "x"]).code, 0);
    for (filters, expected) in [
        (
            &["--status", "opne"][..],
            "no issue has the status `opne`; there is `closed`, `open`\n",
        ),
        (
            &["--status", "open", "--label", "y"],
            "no issue has the label `y`; there is `x`\n",
        ),
        (
            &["--status", "closed", "--label", "x"],
            "no issue matches\n",
        ),
    ] {
        let listed = scratch.run(&[&["issue", "list"], filters].concat());
        assert_eq!(listed.code, 0);
        assert_eq!(listed.stdout, "", "{filters:?}");
        assert_eq!(listed.stderr, expected, "{filters:?}");
    }
}

#[test]
fn a_lease_is_refused_renewed_and_released() {
    let scratch = Scratch::with(&row("a", &[]));
    scratch.json(&[
        "issue",
        "claim",
        "a",
        "--assignee",
        "w",
        "--lease-ttl-seconds",
        "60",
    ]);
    let again = scratch.run(&["issue", "claim", "a", "--assignee", "w", "--json"]);
    assert_eq!(again.code, 1);
    assert_eq!(again.json()["claimed"], false);
    assert_eq!(
        again.json()["failureClasses"],
        json!(["lease_contention_active"])
    );
    assert!(again.stderr.starts_with("error: lease_contention_active: "));

    let none = scratch.json(&["issue", "claim-next", "--assignee", "v"]);
    assert_eq!(
        (&none["claimed"], &none["issue"]),
        (&json!(false), &Value::Null)
    );

    let wrong = scratch.run(&["issue", "renew", "a", "--generation", "7", "--json"]);
    assert_eq!(
        wrong.json()["failureClasses"],
        json!(["lease_generation_mismatch"])
    );
    let renewed = scratch.json(&["issue", "renew", "a", "--owner", "w"]);
    assert!(renewed["issue"]["lease"]["renewedAt"].is_string());
    let released = scratch.json(&["issue", "release", "a", "--lease-id", "lease1_a_w"]);
    assert_eq!(released["issue"]["status"], "open");
    assert_eq!(released["issue"]["leaseGeneration"], 1);

    let short = scratch.run(&[
        "issue",
        "claim",
        "a",
        "--assignee",
        "w",
        "--lease-ttl-seconds",
        "1",
    ]);
    assert_eq!(short.code, 1);
    assert!(short.stderr.contains("lease_invalid_ttl"));
    let missing = scratch.run(&["issue", "claim", "zz", "--assignee", "w", "--json"]);
    assert_eq!(missing.json()["failureClasses"], json!(["lease_not_found"]));
}

#[test]
fn an_edge_that_closes_a_cycle_is_refused() {
    let scratch = Scratch::with(&(row("a", &["b"]) + &row("b", &[])));
    let before = fs::read(scratch.issues()).unwrap();
    let refused = scratch.run(&["dep", "add", "b", "a", "--json"]);
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.json()["failureClasses"],
        json!(["dependency_cycle"])
    );
    assert!(refused.stderr.contains("a -> b -> a"), "{}", refused.stderr);
    assert_eq!(fs::read(scratch.issues()).unwrap(), before);

    let replaced = scratch.json(&["dep", "replace", "a", "b", "--to-type", "related"]);
    assert_eq!(replaced["dependency"]["fromType"], "blocks");
    assert_eq!(replaced["issue"]["dependencies"][0]["type"], "related");
    scratch.json(&["dep", "add", "b", "a", "--created-by", "ann"]);
    let removed = scratch.json(&["dep", "remove", "a", "b", "--type", "related"]);
    assert_eq!(removed["issue"].get("dependencies"), None);
    assert_eq!(
        scratch
            .run(&["dep", "add", "a", "b", "--type", "novel"])
            .code,
        2
    );
}

#[test]
fn diagnostics_name_a_cycle_that_is_in_the_file() {
    let closed = "{\"id\":\"z\",\"title\":\"z\",\"status\":\"closed\"}\n";
    let scratch =
        Scratch::with(&(row("a", &["b"]) + &row("b", &["a"]) + &row("c", &["a", "x"]) + closed));
    let found = scratch.json(&["dep", "diagnostics"]);
    assert_eq!(found["action"], "dep.diagnostics");
    assert_eq!(found["graphScope"], "active");
    assert_eq!(
        found["integrity"],
        json!({"hasCycle": true, "cyclePath": ["a", "b", "a"]})
    );
    assert_eq!(found["cycles"], json!([["a", "b"]]));
    assert_eq!(
        found["dangling"],
        json!([{"issueId": "c", "dependsOnId": "x"}])
    );
    assert_eq!(found["neverReady"], json!(["a", "b", "c"]));
    let required = scratch.run(&["dep", "diagnostics", "--require", "acyclic", "--json"]);
    assert_eq!(required.code, 1);
    assert_eq!(required.json()["integrity"]["hasCycle"], true);

    let check = scratch.run(&["issue", "check", "--json"]);
    assert_eq!(check.code, 1);
    assert_eq!(check.json()["result"], "rejected");
    assert_eq!(
        check.json()["failureClasses"],
        json!(["dependency_cycle", "issue_graph.dependency.dangling"])
    );

    let calm = Scratch::with(&row("a", &[]));
    let found = calm.json(&["dep", "diagnostics", "--graph-scope", "full"]);
    assert_eq!(
        found["integrity"],
        json!({"hasCycle": false, "cyclePath": null})
    );
}

#[test]
fn a_check_warns_of_what_is_odd_and_passes() {
    let notes = "\u{e9}".repeat(11);
    let scratch = Scratch::with(&format!(
        "{}\n{}\n{}\n",
        json!({"id": "a", "title": "a", "notes": notes, "status": "odd"}),
        json!({"id": "b", "title": "b", "status": "in_progress", "acceptance_criteria": "`make`"}),
        json!({"id": "c", "title": "c", "status": "in_progress", "assignee": "w",
            "acceptance_criteria": "`make`", "lease":
            {"lease_id": "l", "owner": "w", "acquired_at": "2020-01-01T00:00:00Z",
             "expires_at": "2020-01-01T01:00:00Z"}}),
    ));
    let check = scratch.json(&["issue", "check", "--note-warn-threshold", "10"]);
    assert_eq!(check["result"], "accepted");
    assert_eq!(check["summary"]["noteWarnThreshold"], 10);
    assert_eq!(
        (&check["checkCount"], &check["errorCount"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(
        check["warningClasses"],
        json!([
            "issue_graph.notes.large",
            "issue_graph.status.unknown",
            "lease_missing",
            "lease_stale"
        ])
    );
    assert_eq!(check["warnings"][0]["issueId"], "a");
    let default = scratch.json(&["issue", "check"]);
    assert_eq!(default["warningCount"], 3);
}

#[test]
fn a_corrupt_line_is_named_and_the_file_is_not_touched() {
    let text = row("a", &[]) + "{\"id\":\"b\",,}\n" + &row("c", &[]);
    let scratch = Scratch::with(&text);
    for args in [
        &["issue", "list"][..],
        &["issue", "check"],
        &["issue", "add", "x"],
        &["issue", "claim-next", "--assignee", "w"],
        &["dep", "diagnostics"],
    ] {
        let answer = scratch.run(args);
        assert_eq!(answer.code, 2, "{args:?}");
        assert!(answer.stdout.is_empty());
        assert!(
            answer.stderr.contains("issues.jsonl:2:11: "),
            "{}",
            answer.stderr
        );
        assert!(answer.stderr.contains("hint: "));
    }
    let refused = scratch.run(&["issue", "ready", "--json"]);
    assert_eq!(refused.code, 2);
    assert_eq!(
        refused.json()["failureClasses"],
        json!(["issue_memory_corrupt"])
    );
    assert_eq!(fs::read_to_string(scratch.issues()).unwrap(), text);
}

#[test]
fn a_status_that_takes_a_turn_is_set_by_hand_only_with_a_reason() {
    let scratch = Scratch::with(&row("a", &[]));
    let before = fs::read(scratch.issues()).unwrap();
    for status in ["closed", "blocked", "tombstone"] {
        let update = ["issue", "update", "a", "--status", status];
        for reason in [&[][..], &["--reason", " "]] {
            let refused = scratch.run(&[&update, reason].concat());
            assert_eq!(refused.code, 2, "{status}: {}", refused.stderr);
            assert!(
                refused.stderr.contains("--reason TEXT"),
                "{}",
                refused.stderr
            );
        }
        assert_eq!(fs::read(scratch.issues()).unwrap(), before);
    }
    let update = ["issue", "update", "a", "--status", "blocked"];
    let blocked = scratch.json(&[&update[..], &["--reason", "waits for legal"]].concat());
    assert_eq!(blocked["issue"]["status"], "blocked");
    let recorded = &blocked["issue"]["operatorOverride"];
    assert_eq!(recorded["reason"], "waits for legal");
    // Reopening releases nothing, and needs no reason.
    scratch.json(&["issue", "update", "a", "--status", "open"]);
}

#[test]
fn inside_a_step_nothing_changes() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &[])));
    let before = fs::read(scratch.issues()).unwrap();
    for args in [
        &["issue", "add", "x"][..],
        &[
            "issue", "update", "a", "--status", "closed", "--reason", "me",
        ],
        &["issue", "update", "a", "--status", "closed"],
        &["issue", "claim", "a", "--assignee", "w"],
        &["issue", "claim-next", "--assignee", "w"],
        &["issue", "renew", "a"],
        &["issue", "release", "a"],
        &["issue", "compact"],
        &["dep", "add", "a", "b"],
        &["dep", "remove", "a", "b"],
        &["dep", "replace", "a", "b", "--to-type", "related"],
    ] {
        let refused = scratch.run_in_step(&[args, &["--json"]].concat(), None);
        assert_eq!(refused.code, 1, "{args:?}");
        assert_eq!(
            refused.json()["failureClasses"],
            json!(["mutation.use_evidence_missing"])
        );
    }
    assert_eq!(scratch.run_in_step(&["issue", "ready"], None).code, 0);
    assert_eq!(fs::read(scratch.issues()).unwrap(), before);
}

#[test]
fn discover_files_an_issue_and_inside_a_step_a_request() {
    let scratch = Scratch::with(&row("a-1", &[]));
    let filed = scratch.json(&["issue", "discover", "a-1", "More to do"]);
    assert_eq!(filed["issue"]["id"], "a-2");
    assert_eq!(
        filed["dependency"],
        json!({"issueId": "a-2", "dependsOnId": "a-1", "type": "discovered-from"})
    );

    let before = fs::read(scratch.issues()).unwrap();
    let outbox = scratch.folder.join("outbox.jsonl");
    let args = [
        "issue",
        "discover",
        "a-1",
        "Found\nthis",
        "--priority",
        "1",
        "--labels",
        "x,y",
        "--json",
    ];
    let queued = scratch.run_in_step(&args, Some(&outbox));
    assert_eq!(queued.json()["queued"], true);
    scratch.run_in_step(&["issue", "discover", "a-1", "And that"], Some(&outbox));
    let text = fs::read_to_string(&outbox).unwrap();
    let requests: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        requests[0],
        json!({"title": "Found\nthis", "description": "", "priority": 1, "issueType": "task",
               "labels": ["x", "y"], "parent": "a-1"})
    );
    assert_eq!(requests.len(), 2);
    assert_eq!(fs::read(scratch.issues()).unwrap(), before);

    let nowhere = scratch.run_in_step(&["issue", "discover", "a-1", "x"], None);
    assert_eq!(nowhere.code, 1);
    let dropped = ["issue", "discover", "a-1", "x", "--id", "mine"];
    assert_eq!(scratch.run_in_step(&dropped, Some(&outbox)).code, 2);
}

#[test]
fn sixteen_processes_claim_a_hundred_issues_once_each() {
    let rows: String = (0..100).map(|n| row(&format!("x-{n:03}"), &[])).collect();
    let scratch = Arc::new(Scratch::with(&rows));
    let claim = |scratch: &Scratch, name: &str| -> Child {
        scratch
            .command(&["issue", "claim-next", "--assignee", name, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let racers: Vec<_> = (0..16)
        .map(|n| {
            let scratch = scratch.clone();
            std::thread::spawn(move || {
                let name = format!("w{n}");
                let mut claimed = Vec::new();
                loop {
                    let output = claim(&scratch, &name).wait_with_output().unwrap();
                    let answer = Answer::of(output);
                    assert_eq!(answer.code, 0, "{}", answer.stderr);
                    let answer = answer.json();
                    if answer["claimed"] == false {
                        return claimed;
                    }
                    claimed.push(answer["issue"]["id"].as_str().unwrap().to_owned());
                }
            })
        })
        .collect();
    let mut claimed: Vec<String> = Vec::new();
    for racer in racers {
        claimed.extend(racer.join().unwrap());
    }
    claimed.sort();
    let expected: Vec<String> = (0..100).map(|n| format!("x-{n:03}")).collect();
    assert_eq!(claimed, expected);
}
