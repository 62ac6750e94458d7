//! The `premath` binary, run as its callers run it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends, and says where"
)]

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

/// A folder with issue memory in it.
struct Scratch {
    _guard: tempfile::TempDir,
    folder: PathBuf,
}

impl Scratch {
    fn with(issues: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = guard.path().canonicalize().unwrap();
        fs::create_dir(folder.join(".premath")).unwrap();
        fs::write(folder.join(".premath/issues.jsonl"), issues).unwrap();
        Self {
            _guard: guard,
            folder,
        }
    }

    fn issues(&self) -> PathBuf {
        self.folder.join(".premath/issues.jsonl")
    }

    fn command(&self, args: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(&self.folder);
        for name in [
            "PREMATH_STEP_ID",
            "PREMATH_OUTBOX",
            "PREMATH_ISSUES_PATH",
            "PREMATH_HARNESS_SESSION_PATH",
        ] {
            command.env_remove(name);
        }
        command.env("USER", "ann");
        command
    }

    fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    fn run_in_step(&self, args: &[&str], outbox: Option<&Path>) -> Answer {
        let mut command = self.command(args);
        command.env("PREMATH_STEP_ID", "worker.1.bd-1.1");
        if let Some(outbox) = outbox {
            command.env("PREMATH_OUTBOX", outbox);
        }
        Answer::of(command.output().unwrap())
    }

    /// Runs with `--json` and expects success.
    fn json(&self, args: &[&str]) -> Value {
        let answer = self.run(&[args, &["--json"]].concat());
        assert_eq!(answer.code, 0, "{args:?}: {}", answer.stderr);
        answer.json()
    }
}

struct Answer {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Reads stdout, which must be one JSON document and nothing else.
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

fn ids(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().unwrap();
    assert_eq!(answer["count"], items.len());
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}

fn row(id: &str, waits_for: &[&str]) -> String {
    let edges: Vec<_> = waits_for
        .iter()
        .map(|target| json!({"issue_id": id, "depends_on_id": target, "type": "blocks"}))
        .collect();
    format!(
        "{}\n",
        json!({"id": id, "title": id, "acceptance_criteria": "`make test`", "dependencies": edges})
    )
}

#[test]
fn an_issue_goes_from_filed_to_closed() {
    let scratch = Scratch::with("");
    let added = scratch.json(&["issue", "add", "Second", "--id", "a-2", "--type", "bug"]);
    assert_eq!(added["action"], "issue.add");
    assert_eq!(added["issuesPath"], scratch.issues().to_str().unwrap());
    assert_eq!(added["issue"]["issueType"], "bug");
    assert_eq!(added["issue"]["operatorOverride"]["operator"], "ann");
    scratch.json(&["issue", "add", "First", "--id", "a-1", "--priority", "-1"]);
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
fn a_lease_is_refused_renewed_and_given_back() {
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
fn an_edge_that_closes_a_circle_is_refused() {
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
fn diagnostics_name_a_circle_that_stands_in_the_file() {
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
        json!({"id": "a", "title": "a", "notes": notes, "status": "hooked"}),
        json!({"id": "b", "title": "b", "status": "in_progress", "acceptance_criteria": "`make`"}),
        json!({"id": "c", "title": "c", "status": "in_progress", "assignee": "w",
            "acceptance_criteria": "`make`", "lease":
            {"lease_id": "l", "owner": "w", "acquired_at": "2020-01-01T00:00:00Z",
             "expires_at": "2020-01-01T01:00:00Z"}}),
    ));
    let check = scratch.json(&["issue", "check", "--note-warn-threshold", "10"]);
    assert_eq!(check["result"], "accepted");
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
fn usage_errors_and_missing_files_are_2() {
    let scratch = Scratch::with(&row("a", &[]));
    for args in [
        &["issue", "update", "a"][..],
        &["issue", "add", " "],
        &["issue", "claim", "a"],
        &["issue", "list", "--issues", "nowhere.jsonl"],
        &["issue", "update", "a", "--notes", "x", "--notes-file", "y"],
        &["issue", "update", "a", "--notes-file", "nowhere.md"],
        &["harness-session", "read"],
        &[
            "harness-trajectory",
            "append",
            "--step-id",
            "s",
            "--action",
            "a",
            "--result-class",
            "ok",
            "--finished-at",
            "yesterday",
        ],
        &["transport-dispatch"],
    ] {
        let answer = scratch.run(args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stderr);
        assert!(answer.stdout.is_empty());
    }
    assert!(!scratch.folder.join("nowhere.jsonl.flock").exists());
    fs::write(scratch.folder.join("notes.md"), "from a file\n").unwrap();
    let updated = scratch.json(&["issue", "update", "a", "--notes-file", "notes.md"]);
    assert_eq!(updated["issue"]["notes"], "from a file\n");
    let odd = scratch.run(&["issue", "update", "a", "--status", "done"]);
    assert_eq!(odd.code, 0);
    assert!(odd.stderr.contains("`done`"));
}

#[test]
fn inside_a_step_nothing_changes() {
    let scratch = Scratch::with(&(row("a", &[]) + &row("b", &[])));
    let before = fs::read(scratch.issues()).unwrap();
    for args in [
        &["issue", "add", "x"][..],
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
fn a_session_is_written_over_and_bootstraps_the_same_twice() {
    let scratch = Scratch::with(&row("a", &[]));
    let issues = scratch.issues();
    let first = scratch.json(&[
        "harness-session",
        "write",
        "--state",
        "active",
        "--issue-id",
        "a",
        "--summary",
        "s",
        "--witness-ref",
        " w2 ",
        "--witness-ref",
        "w1",
        "--witness-ref",
        "w2",
        "--issues",
        issues.to_str().unwrap(),
    ]);
    let path = scratch.folder.join(".premath/harness_session.json");
    assert_eq!(first["path"], path.to_str().unwrap());
    assert_eq!(first["session"]["witnessRefs"], json!(["w1", "w2"]));
    assert_eq!(first["session"]["issuesPath"], issues.to_str().unwrap());
    let snapshot = first["session"]["issuesSnapshotRef"].as_str().unwrap();
    assert!(snapshot.starts_with("iss1_"));
    let attach = scratch.json(&["harness-session", "bootstrap"]);
    assert_eq!(attach["mode"], "attach");
    assert_eq!(attach["featureCount"], 0);

    let second = scratch.json(&[
        "harness-session",
        "write",
        "--summary",
        "",
        "--next-step",
        "n",
    ]);
    let session = &second["session"];
    assert_eq!(session["sessionId"], first["session"]["sessionId"]);
    assert_eq!(session["startedAt"], first["session"]["startedAt"]);
    assert_eq!(session["state"], "stopped");
    assert_eq!(session["issueId"], "a");
    assert_eq!(session.get("summary"), None);
    assert_eq!(
        session["issuesSnapshotRef"],
        first["session"]["issuesSnapshotRef"]
    );
    assert_eq!(
        scratch.json(&["harness-session", "read"])["session"],
        *session
    );

    let once = scratch.run(&["harness-session", "bootstrap", "--json"]);
    let twice = scratch.run(&["harness-session", "bootstrap", "--json"]);
    assert_eq!(once.stdout, twice.stdout);
    let start = once.json();
    assert_eq!(start["action"], "harness-session.bootstrap");
    assert_eq!(start["bootstrapKind"], "premath.harness.bootstrap.v1");
    assert_eq!(start["mode"], "resume");
    assert_eq!(start["resumeIssueId"], "a");
    assert_eq!(start["nextFeatureId"], Value::Null);

    fs::write(&path, "{\"schema\":1}").unwrap();
    let broken = scratch.run(&["harness-session", "write", "--json"]);
    assert_eq!(broken.code, 2);
    assert_eq!(
        broken.json()["failureClasses"],
        json!(["projection_invalid"])
    );
    assert!(broken.stderr.contains("sessionKind"), "{}", broken.stderr);
}

#[test]
fn the_ledger_names_the_next_feature_and_reports_what_is_wrong() {
    let scratch = Scratch::with("");
    let write = |id: &str, status: &str| {
        scratch.json(&[
            "harness-feature",
            "write",
            "--feature-id",
            id,
            "--status",
            status,
        ])
    };
    let next = || scratch.json(&["harness-feature", "next"])["nextFeatureId"].clone();
    assert_eq!(next(), Value::Null);
    write("f-2", "pending");
    assert_eq!(write("f-3", "pending")["featureId"], "f-3");
    assert_eq!(next(), "f-2");
    write("f-3", "in_progress");
    assert_eq!(next(), "f-3");
    assert_eq!(
        scratch.json(&["harness-feature", "check"])["result"],
        "accepted"
    );
    write("f-1", "in_progress");
    let check = scratch.run(&["harness-feature", "check", "--json"]);
    assert_eq!(check.code, 1);
    assert_eq!(
        check.json()["failureClasses"],
        json!(["harness_feature_ledger.in_progress.non_contractible"])
    );
    for id in ["f-1", "f-2", "f-3"] {
        scratch.json(&[
            "harness-feature",
            "write",
            "--feature-id",
            id,
            "--status",
            "completed",
            "--verification-ref",
            "v",
        ]);
    }
    let closed = scratch.json(&["harness-feature", "check", "--require-closure"]);
    assert_eq!(closed["summary"]["closureComplete"], true);
    scratch.json(&["harness-session", "write"]);
    let start = scratch.json(&["harness-session", "bootstrap"]);
    assert_eq!(start["featureClosureComplete"], true);
    assert_eq!(start["featureCount"], 3);
}

#[test]
fn the_trajectory_answers_in_order_and_takes_a_step_twice() {
    let scratch = Scratch::with("");
    let append = |step: &str, class: &str, at: &str| {
        scratch.json(&[
            "harness-trajectory",
            "append",
            "--step-id",
            step,
            "--action",
            "worker.loop",
            "--result-class",
            class,
            "--finished-at",
            at,
        ])
    };
    let empty = scratch.json(&["harness-trajectory", "query"]);
    assert_eq!(empty["totalCount"], 0);
    append("s1", "completed", "2026-03-05T10:00:00Z");
    append(
        "s3",
        "retry_needed_lease_active",
        "2026-03-05T12:00:00+01:00",
    );
    append("s2", "failed", "2026-03-05T11:00:00.000Z");
    let row = append("s1", "completed", "2026-03-05T12:00:00Z")["row"].clone();
    assert_eq!(row["stepKind"], "premath.harness.step.v1");
    assert_eq!(row.get("startedAt"), None);

    let steps = |mode: &str, limit: &str| {
        let answer = scratch.json(&[
            "harness-trajectory",
            "query",
            "--mode",
            mode,
            "--limit",
            limit,
        ]);
        let items = answer["items"].as_array().unwrap().clone();
        let steps: Vec<String> = items
            .iter()
            .map(|row| row["stepId"].as_str().unwrap().to_owned())
            .collect();
        (answer, steps.join(" "))
    };
    let (latest, order) = steps("latest", "20");
    assert_eq!(order, "s1 s2 s3 s1");
    assert_eq!(latest["failedCount"], 2);
    assert_eq!(steps("latest", "2").1, "s1 s2");
    assert_eq!(steps("failed", "20").1, "s2 s3");
    let (retry, order) = steps("retry-needed", "20");
    assert_eq!(order, "s3");
    assert_eq!(retry["mode"], "retry_needed");
    assert_eq!(retry["action"], "harness-trajectory.query");
}

fn known_answer() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../kernel/src/turn/tests/known_answer.json"
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_join_check_gives_the_known_answer() {
    let scratch = Scratch::with("");
    let known = known_answer();
    let input = scratch.folder.join("input.json");
    fs::write(&input, known["input"].to_string()).unwrap();
    let args = ["harness-join-check", "--input", "input.json"];
    let answer = scratch.json(&args);
    assert_eq!(answer["action"], "harness-join-check");
    assert_eq!(answer["result"], "accepted");
    assert_eq!(answer["joinClosed"], true);
    assert_eq!(answer["witness"]["digests"], known["digests"]);

    let run = |require: &str| scratch.run(&[&args[..], &["--require", require]].concat());
    assert_eq!(run("accepted").code, 0);
    assert_eq!(run("mutation-ready").code, 1);

    let mut open = known["input"].clone();
    open["evidence"]["toolResults"] = json!([]);
    open["evidence"]["colour"] = json!("red");
    fs::write(&input, open.to_string()).unwrap();
    let rejected = scratch.json(&[&args[..], &["--explain"]].concat());
    assert_eq!(rejected["result"], "rejected");
    assert_eq!(
        rejected["explain"]["ignoredFields"],
        json!(["evidence.colour"])
    );
    assert_eq!(run("accepted").code, 1);
}

#[test]
fn evidence_that_cannot_be_read_is_an_input_error() {
    let scratch = Scratch::with("");
    let input = scratch.folder.join("input.json");
    for text in ["", "{", "{}", "{\"evidence\":{}}", "[]"] {
        fs::write(&input, text).unwrap();
        let answer = scratch.run(&["harness-join-check", "--input", "input.json"]);
        assert_eq!(answer.code, 2, "{text}");
        assert!(
            answer.stderr.starts_with("harness_join_check_invalid: "),
            "{}",
            answer.stderr
        );
    }
    let missing = scratch.run(&["harness-join-check", "--input", "nowhere.json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.starts_with("harness_join_check_invalid: "));
}

#[test]
fn init_twice_overwrites_nothing() {
    let scratch = Scratch::with("");
    let project = scratch.folder.join("project");
    let first = scratch.json(&["init", "project"]);
    let instruction = first["wrote"][1].as_str().unwrap();
    assert!(instruction.starts_with("instructions/"), "{instruction}");
    assert_eq!(
        first["wrote"],
        json!([
            "policies/control/harness-instruction-policy-v1.json",
            instruction,
            "harness.toml",
            ".premath/issues.jsonl",
            "mise.toml"
        ])
    );
    let files = ["harness.toml", ".premath/issues.jsonl", "mise.toml"];
    let mine = ["[batch]\n", "{\"id\":\"a\",\"title\":\"a\"}\n", "[tools]\n"];
    for (file, text) in files.iter().zip(mine) {
        fs::write(project.join(file), text).unwrap();
    }
    let second = scratch.json(&["init", "project"]);
    assert_eq!(second["wrote"], json!(["mise.toml (added the tasks)"]));
    let third = scratch.json(&["init", "project"]);
    assert_eq!(third["wrote"], json!([]));
    assert_eq!(third["left"].as_array().unwrap().len(), 5);
    for (file, text) in files.iter().zip(mine) {
        let now = fs::read_to_string(project.join(file)).unwrap();
        assert!(now.starts_with(text), "{file}: {now}");
    }
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let scratch = Scratch::with(&format!(
        "{}\n",
        json!({"id": "a\u{1b}[31m", "title": "t\u{1b}]0;x\u{7}", "notes": "\u{9b}2J\nb",
               "status": "odd\u{1b}", "assignee": "\u{202e}w"})
    ));
    let hostile = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    for args in [
        &["issue", "list"][..],
        &["issue", "show", "a\u{1b}[31m"],
        &["issue", "check"],
        &["issue", "claim", "a\u{1b}[31m", "--assignee", "w"],
    ] {
        let answer = scratch.run(args);
        assert!(!hostile(&answer.stdout), "{args:?}: {}", answer.stdout);
        assert!(!hostile(&answer.stderr), "{args:?}: {}", answer.stderr);
    }
    let listed = scratch.json(&["issue", "list"]);
    assert_eq!(listed["items"][0]["id"], "a\u{1b}[31m");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let rows: String = (0..3000).map(|n| row(&format!("x-{n}"), &[])).collect();
    let scratch = Scratch::with(&rows);
    let mut child = scratch
        .command(&["issue", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
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

#[test]
fn a_linked_worktree_has_its_own_session_and_the_issues_of_the_main_one() {
    let scratch = Scratch::with("");
    let git = |folder: &str, args: &[&str]| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the person who makes the worktree"
        )]
        let mut git = Command::new("git");
        git.current_dir(scratch.folder.join(folder));
        git.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]);
        let output = git.args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    fs::create_dir(scratch.folder.join("main")).unwrap();
    git("main", &["init", "-q"]);
    git("main", &["commit", "-q", "--allow-empty", "-m", "first"]);
    git("main", &["worktree", "add", "-q", "../lane"]);
    let below = scratch.folder.join("lane/below");
    fs::create_dir(&below).unwrap();
    scratch.json(&["init", "main"]);
    let in_lane = |args: &[&str]| {
        let mut command = scratch.command(&[args, &["--json"]].concat());
        Answer::of(command.current_dir(&below).output().unwrap()).json()
    };
    let at = |path: &str| json!(scratch.folder.join(path).to_str().unwrap());
    let added = in_lane(&["issue", "add", "From the lane"]);
    assert_eq!(added["issuesPath"], at("main/.premath/issues.jsonl"));
    let session = in_lane(&["harness-session", "write"]);
    assert_eq!(session["path"], at("lane/.premath/harness_session.json"));
    let query = in_lane(&["harness-trajectory", "query"]);
    assert_eq!(query["path"], at("main/.premath/harness_trajectory.jsonl"));
    assert_eq!(git("lane", &["status", "--porcelain"]), "");
}

/// Gives the repository a policy of its own: the embedded one, changed.
fn own_policy(scratch: &Scratch, path: &str, edit: impl Fn(&mut Value)) {
    let mut document: Value =
        serde_json::from_str(premath_kernel::retry::RetryPolicy::embedded_text()).unwrap();
    edit(&mut document);
    let digest = premath_kernel::retry::RetryPolicy::digest(document.to_string().as_bytes());
    document["policyDigest"] = digest.unwrap().into();
    let path = scratch.folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, document.to_string()).unwrap();
}

#[test]
fn every_class_is_listed_with_its_place_in_the_embedded_policy() {
    let scratch = Scratch::with("");
    let all = scratch.json(&["classes"]);
    assert_eq!(all["action"], "classes");
    assert_eq!(all["policy"]["source"], "embedded");
    assert_eq!(all["policy"]["path"], Value::Null);
    let digest = all["policy"]["policyDigest"].as_str().unwrap();
    assert!(digest.starts_with("pol1_"));
    assert_eq!(
        all["count"],
        premath_kernel::failure::FailureClass::ALL.len()
    );
    let of_family = scratch.json(&["classes", "--family", "typestate"]);
    assert_eq!(of_family["count"], 42);
    let one = scratch.json(&["classes", "check_failed"]);
    assert_eq!(
        one["items"],
        json!([{
            "failureClass": "check_failed",
            "family": "execution",
            "meaning": "The verification did not pass.",
            "source": "contracts 7",
            "retry": {"ruleId": "semantic_no_retry", "maxAttempts": 1, "backoffClass": "none",
                      "escalationAction": "mark_blocked"},
        }])
    );
    let listed = scratch.run(&["classes"]).stdout;
    assert!(listed.contains(digest));
    for item in all["items"].as_array().unwrap() {
        let class = item["failureClass"].as_str().unwrap();
        let heads = listed
            .lines()
            .filter(|l| l.starts_with(&format!("{class} ")));
        assert_eq!(heads.count(), 1, "{class}");
    }
}

#[test]
fn a_repository_s_own_policy_gives_the_classes_their_place() {
    let scratch = Scratch::with("");
    let path = "policies/control/harness-retry-policy-v1.json";
    own_policy(&scratch, path, |document| {
        document["policyId"] = json!("own\u{1b}[31m");
        document["defaultRule"]["maxAttempts"] = json!(7);
        document["rules"][0]["failureClasses"] = json!(["word_of_my_own"]);
    });
    let usual = scratch.run(&["classes", "work_failed", "--json"]);
    assert_eq!((usual.code, usual.stderr.as_str()), (0, ""));
    assert_eq!(usual.json()["policy"]["source"], "file");

    let config = format!("[batch]\nretry_policy = \"{path}\"\n");
    fs::write(scratch.folder.join("harness.toml"), &config).unwrap();
    let named = scratch.run(&["classes", "work_failed", "word_of_my_own", "--json"]);
    assert_eq!((named.code, named.stderr.as_str()), (0, ""));
    let named = named.json();
    assert_eq!(named["policy"]["source"], "file");
    let place = scratch.folder.join(path);
    assert_eq!(named["policy"]["path"], place.to_str().unwrap());
    assert_eq!(named["items"][0]["retry"]["ruleId"], "default");
    assert_eq!(named["items"][0]["retry"]["maxAttempts"], 7);
    assert_eq!(named["items"][1]["meaning"], Value::Null);
    assert_eq!(named["items"][1]["retry"]["ruleId"], "transient_retry");
    for args in [&["classes"][..], &["classes", "word_of_my_own"]] {
        let shown = scratch.run(args).stdout;
        assert!(shown.contains("own\\u{1b}[31m"), "{shown}");
        assert!(shown.contains("word_of_my_own"), "{shown}");
    }

    fs::rename(
        scratch.folder.join("harness.toml"),
        scratch.folder.join("other.toml"),
    )
    .unwrap();
    let asked = scratch.json(&["classes", "--config", "other.toml"]);
    assert_eq!(asked["policy"]["source"], "file");
}

#[test]
fn a_policy_that_stops_the_loops_leaves_the_meanings() {
    let scratch = Scratch::with("");
    fs::write(
        scratch.folder.join("harness.toml"),
        "[batch]\nretry_policy = \"policy.json\"\n",
    )
    .unwrap();
    let embedded = premath_kernel::retry::RetryPolicy::embedded_text();
    let changed = embedded.replace("\"maxAttempts\": 3", "\"maxAttempts\": 4");
    for (policy, class) in [
        (None, "retry_policy_invalid"),
        (Some("{}"), "retry_policy_invalid"),
        (Some(changed.as_str()), "retry_policy_digest_mismatch"),
    ] {
        if let Some(policy) = policy {
            fs::write(scratch.folder.join("policy.json"), policy).unwrap();
        }
        let answer = scratch.run(&["classes", "retry_policy_digest_mismatch", "--json"]);
        assert_eq!(answer.code, 1, "{class}: {}", answer.stderr);
        assert!(answer.stderr.starts_with("error: "), "{}", answer.stderr);
        let document = answer.json();
        assert_eq!(document["policy"]["failureClasses"], json!([class]));
        assert_eq!(document["items"][0]["retry"], Value::Null);
        assert_eq!(document["items"][0]["family"], "loop");
    }
}

#[test]
fn an_unknown_class_is_a_usage_error_that_names_the_nearest() {
    let scratch = Scratch::with("");
    let answer = scratch.run(&["classes", "tool.use_mising\u{1b}", "--json"]);
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.stderr.lines().next(),
        Some(
            "error: `tool.use_mising\\u{1b}` is no failure class; the nearest is `tool.use_missing`"
        )
    );
    assert_eq!(answer.json()["action"], "classes");
    for args in [
        &["classes", "check_failed", "--family", "lease"][..],
        &["classes", "--markdown", "--family", "lease"],
        &["classes", "--family", "none"],
    ] {
        assert_eq!(scratch.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn the_page_of_classes_speaks_of_the_embedded_policy_wherever_it_is_made() {
    let scratch = Scratch::with("");
    own_policy(&scratch, "policy.json", |document| {
        document["policyId"] = json!("own");
    });
    fs::write(
        scratch.folder.join("harness.toml"),
        "[batch]\nretry_policy = \"policy.json\"\n",
    )
    .unwrap();
    let page = scratch.run(&["classes", "--markdown"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    assert!(page.stdout.starts_with("# Failure classes\n"));
    assert!(page.stdout.contains("policy.harness.retry.default.v1"));
    assert_eq!(
        scratch.json(&["classes", "--markdown"])["page"],
        page.stdout
    );
}

/// The suite of the repository.
const SUITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/conformance/harness-typestate"
);

#[test]
fn the_suite_of_the_repository_passes_as_a_whole() {
    let scratch = Scratch::with("");
    let count = scratch.json(&["conformance", "run"])["count"].clone();
    let answer = scratch.run(&["conformance", "run"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let expected = format!("{count} vectors, 42 classes, 0 uncovered\n");
    assert_eq!(answer.stdout, expected);
}

/// Returns a suite of the repository's base and one golden vector.
fn small_suite(scratch: &Scratch, patch: &Value) -> String {
    let folder = scratch.folder.join("suite");
    fs::create_dir_all(folder.join("bases")).unwrap();
    fs::create_dir_all(folder.join("golden")).unwrap();
    let base = Path::new(SUITE).join("bases/closed.json");
    fs::copy(base, folder.join("bases/closed.json")).unwrap();
    let says = "A turn\u{1b}.";
    let manifest = json!({
        "schema": 1,
        "manifestKind": "premath.conformance.manifest.v1",
        "vectors": [{"id": "golden/a", "says": says}]
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    let vector = json!({
        "schema": 1,
        "says": says,
        "document": {"base": "closed", "patch": patch},
        "expect": {}
    });
    fs::write(folder.join("golden/a.json"), vector.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn each_suite_is_run_by_its_name() {
    let scratch = Scratch::with("");
    for suite in ["golden", "adversarial", "invariance", "refusal"] {
        let document = scratch.json(&["conformance", "run", "--suite", suite]);
        assert_eq!(document["action"], "conformance.run");
        assert_eq!(document["source"], "embedded");
        assert_eq!(document["passed"], true);
        assert_eq!(document["classes"], 42);
        for id in ids(&document) {
            assert!(id.starts_with(&format!("{suite}/")), "{id}");
        }
        let own = scratch.json(&["conformance", "run", "--suite", suite, "--vectors", SUITE]);
        assert_eq!(own["items"], document["items"]);
    }
}

#[test]
fn a_vector_that_fails_is_shown_with_what_differs() {
    let scratch = Scratch::with("");
    let patch = json!([{"op": "remove", "path": "/evidence/toolUse/1"}]);
    let suite = small_suite(&scratch, &patch);
    let args = [
        "conformance",
        "run",
        "--vectors",
        &suite,
        "--suite",
        "golden",
    ];
    let answer = scratch.run(&args);
    assert_eq!((answer.code, answer.stderr.as_str()), (1, ""));
    let expected = "\
FAILED golden/a
  A turn\\u{1b}.
  failureClasses
    expected  none
    found     tool.join_incomplete, tool.use_missing

1 vectors, 42 classes, 42 uncovered
";
    assert_eq!(answer.stdout, expected);
    let document = scratch.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(
        (&document["passed"], &document["failed"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(
        document["items"][0]["differences"][0]["what"],
        "failureClasses"
    );
}

#[test]
fn a_whole_run_asks_for_coverage_and_a_suite_alone_does_not() {
    let scratch = Scratch::with("");
    let suite = small_suite(&scratch, &json!([]));
    let run = ["conformance", "run", "--vectors", &suite];
    let alone = scratch.run(&[&run[..], &["--suite", "golden"]].concat());
    assert_eq!(
        (alone.code, alone.stdout.as_str()),
        (0, "1 vectors, 42 classes, 42 uncovered\n")
    );
    let whole = scratch.run(&run);
    assert_eq!(whole.code, 1);
    assert!(whole.stdout.contains("\nLACKS tool::result_missing: "));
    assert!(
        whole
            .stdout
            .ends_with("\n\n1 vectors, 42 classes, 42 uncovered\n")
    );
    fs::write(Path::new(&suite).join("golden/b.json"), "{}").unwrap();
    let stray = scratch.run(&[&run[..], &["--suite", "golden"]].concat());
    assert_eq!(stray.code, 1);
    assert!(
        stray.stdout.starts_with("FAULT golden/b.json: "),
        "{}",
        stray.stdout
    );
}

#[test]
fn a_folder_of_vectors_that_cannot_be_read_is_a_usage_error() {
    let scratch = Scratch::with("");
    let args = ["conformance", "run", "--vectors", "nowhere"];
    let answer = scratch.run(&args);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(answer.stderr.starts_with("error: cannot read nowhere: "));
    assert_eq!(
        scratch.run(&["conformance", "run", "--suite", "all"]).code,
        2
    );
}

#[test]
fn the_slices_are_listed_and_make_a_page() {
    let scratch = Scratch::with("");
    let listed = scratch.json(&["conformance", "slices"]);
    assert_eq!(listed["count"], 18);
    assert_eq!(listed["items"][17]["number"], 18);
    let text = scratch.run(&["conformance", "slices"]).stdout;
    assert_eq!(text.lines().count(), 19);
    let page = scratch.run(&["conformance", "slices", "--markdown"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    assert!(page.stdout.starts_with("# Slices of the typestate\n"));
    let document = scratch.json(&["conformance", "slices", "--markdown"]);
    assert_eq!(document["page"], page.stdout);
}
