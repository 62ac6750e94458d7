//! Sessions, ledgers and the trajectory.

use crate::answer::Answer;
use crate::scratch::{Scratch, row};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Bootstraps twice, with one answer, which resumes.
#[track_caller]
fn bootstraps_the_same_twice(scratch: &Scratch) {
    let once = scratch.run(&["harness-session", "bootstrap", "--json"]);
    let twice = scratch.run(&["harness-session", "bootstrap", "--json"]);
    assert_eq!(once.stdout, twice.stdout);
    let start = once.json();
    assert_eq!(start["action"], "harness-session.bootstrap");
    assert_eq!(start["bootstrapKind"], "premath.harness.bootstrap.v1");
    assert_eq!(start["mode"], "resume");
    assert_eq!(start["resumeIssueId"], "a");
    assert_eq!(start["nextFeatureId"], Value::Null);
}

fn attaches(scratch: &Scratch) {
    let attach = scratch.json(&["harness-session", "bootstrap"]);
    assert_eq!(attach["mode"], "attach");
    assert_eq!(attach["featureCount"], Value::Null);
    assert_eq!(attach["featureClosureComplete"], Value::Null);
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
    attaches(&scratch);

    let second = [
        "harness-session",
        "write",
        "--summary",
        "",
        "--next-step",
        "n",
    ];
    let second = scratch.json(&second);
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

    bootstraps_the_same_twice(&scratch);

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
fn a_write_that_the_check_refuses_is_kept_and_warned_of() {
    let scratch = Scratch::with("");
    let write = |id: &str, status: &str| {
        let written = [
            "harness-feature",
            "write",
            "--feature-id",
            id,
            "--status",
            status,
        ];
        let ran = scratch.run(&written);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    let check = || scratch.run(&["harness-feature", "check", "--json"]);
    assert_eq!(write("f-1", "in_progress"), "");
    let second = write("f-2", "in_progress");
    let warning = "warning: harness_feature_ledger.in_progress.non_contractible: More than one \
                   feature is in progress. (f-1, f-2)\n";
    assert!(second.contains(warning), "{second}");
    assert!(second.contains("hint: `premath harness-feature check` fails on this\n"));
    assert_eq!(check().code, 1);
    write("f-1", "pending");
    let unverified = write("f-2", "completed");
    let warning = "warning: harness_feature_ledger.completed_missing_verification_ref: ";
    assert!(unverified.contains(warning), "{unverified}");
    let check = check();
    assert_eq!(check.code, 1);
    assert_eq!(
        check.json()["failureClasses"],
        json!(["harness_feature_ledger.completed_missing_verification_ref"])
    );
    // A write of another feature does not repeat it.
    assert_eq!(write("f-3", "pending"), "");
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
    let first = scratch.run(&["init", "main"]).stdout;
    let again = scratch.run(&["init", "main"]).stdout;
    let excluded = "added session, lock and stream files to .git/info/exclude";
    assert!(first.contains(excluded), "{first}");
    assert!(!again.contains(excluded), "{again}");
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

#[test]
fn features_that_are_written_at_once_are_all_kept() {
    const WRITERS: usize = 4;
    const FEATURES: usize = 12;
    let scratch = Scratch::with("");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let scratch = &scratch;
            scope.spawn(move || {
                for number in 0..FEATURES {
                    let id = format!("f-{writer}-{number:02}");
                    scratch.json(&["harness-feature", "write", "--feature-id", &id]);
                }
            });
        }
    });
    let ledger = scratch.json(&["harness-feature", "read"])["ledger"].clone();
    let features = ledger["features"].as_array().unwrap();
    assert_eq!(features.len(), WRITERS * FEATURES);
}

#[test]
fn a_session_does_not_keep_the_digest_of_another_issue_store() {
    let scratch = Scratch::with(&row("a", &[]));
    let write = |issues: &str| {
        let answer = scratch.run(&["harness-session", "write", "--issues", issues, "--json"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()["session"].clone()
    };
    let session = write(scratch.issues().to_str().unwrap());
    assert!(session["issuesSnapshotRef"].is_string());
    let session = write("missing.jsonl");
    assert_eq!(session.get("issuesSnapshotRef"), None);
    assert!(
        session["issuesPath"]
            .as_str()
            .unwrap()
            .ends_with("/missing.jsonl")
    );
}
