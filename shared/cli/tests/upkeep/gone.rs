//! What other commands report about what a clean-up deleted.

use crate::scratch::{Scratch, commit};
use serde_json::json;

/// A repository with an attempt that failed: its command ended, and its work was saved.
fn failed() -> Scratch {
    let scratch = Scratch::new();
    scratch.issues(&[json!({"id": "a", "title": "a", "status": "open"})]);
    let witness = format!("ciwitness://w.a.1/work/{}", "0".repeat(64));
    scratch.trajectory(&[
        json!({"schema": 1, "stepKind": "premath.harness.step.v1", "stepId": "w.a.1",
        "action": "worker.loop", "resultClass": "failed_retry", "issueId": "a",
        "finishedAt": "2026-03-05T10:00:00Z", "failureClasses": ["check_failed"],
        "witnessRefs": [witness], "salvage": "harness/salvage/a/1"}),
    ]);
    let work = commit(&scratch.git, None, &[scratch.first], 20);
    scratch.branch("harness/salvage/a/1", work);
    scratch
}

#[test]
fn deleted_output_and_a_deleted_salvage_branch_are_reported_as_gone() {
    let scratch = failed();
    scratch.file("artifacts/streams/w.a.1.work.stdout", "printed\n", 20);
    let logs = scratch.run(&["logs", "a"]);
    assert_eq!((logs.code, logs.stderr.as_str()), (0, ""));
    assert!(logs.stdout.contains("| printed\n"), "{}", logs.stdout);
    let diff = scratch.run(&["diff", "a"]);
    assert_eq!(diff.code, 0, "{}", diff.stderr);
    let offers = [&["why", "a"][..], &["issue", "show", "a"]];
    for args in offers {
        let said = scratch.run(args).stdout;
        assert!(said.contains("harness/salvage/a/1"), "{args:?}: {said}");
    }

    let deleted = scratch.clean(&["--salvage", "--older-than", "0s"]);
    for name in ["harness/salvage/a/1", "w.a.1"] {
        assert!(deleted.iter().any(|one| one == name), "{deleted:?}");
    }
    let logs = scratch.run(&["logs", "a"]);
    assert_eq!((logs.code, logs.stdout.as_str()), (0, ""));
    let note = "the output of attempt w.a.1 is gone: `premath clean` deletes old output\n";
    assert_eq!(logs.stderr, note);
    let diff = scratch.run(&["diff", "a"]);
    assert_eq!((diff.code, diff.stdout.as_str()), (1, ""));
    let error = "error: cannot show what attempt w.a.1 changed: its salvage branch \
        harness/salvage/a/1 is gone; `premath clean --salvage` deletes such branches\n";
    assert!(diff.stderr.starts_with(error), "{}", diff.stderr);
    for args in offers {
        let said = scratch.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert!(!said.stdout.contains("harness/salvage"), "{}", said.stdout);
    }
}

#[test]
fn an_attempt_that_printed_nothing_is_reported_as_such() {
    let scratch = failed();
    scratch.file("artifacts/streams/w.a.1.work.stdout", "", 1);
    let nothing = "attempt w.a.1 printed nothing\n";
    for (args, note) in [
        (&["logs", "a"][..], nothing),
        (&["logs", "a", "--follow"], nothing),
        (
            &["logs", "a", "--stream", "stderr"],
            "attempt w.a.1 printed nothing on stderr\n",
        ),
    ] {
        let logs = scratch.run(args);
        let said = (logs.code, logs.stdout.as_str(), logs.stderr.as_str());
        assert_eq!(said, (0, "", note), "{args:?}");
    }
}
