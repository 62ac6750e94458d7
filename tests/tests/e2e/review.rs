//! `premath review`: what landed or was salvaged, listed and decided about.

use premath_tests::{Scratch, issue, skipped};
use serde_json::{Value, json};
use std::path::Path;

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

/// A batch of which `bd-1` and `bd-2` land and `bd-3` is salvaged.
fn night() -> Scratch {
    let issues = ["bd-1", "bd-2", "bd-3"].map(issue);
    let scratch = Scratch::with_issues(1, &issues);
    let verify = "[ $PREMATH_ISSUE_ID != bd-3 ]";
    scratch.landing_batch(EDIT, verify).end().exits(1);
    scratch
}

fn review(scratch: &Scratch, words: &[&str]) -> Value {
    let words = ["review"].iter().chain(words).chain(&["--json"]).copied();
    scratch.premath(words).end().exits(0).json()
}

fn ids(review: &Value) -> Vec<&str> {
    let items = review["items"].as_array().unwrap().iter();
    items
        .map(|item| item["issueId"].as_str().unwrap())
        .collect()
}

#[test]
fn without_a_terminal_it_lists_what_there_is_to_review() {
    let scratch = night();
    let listed = scratch.premath(["review"]).end().exits(0).stdout;
    assert!(listed.contains("git show "), "{listed}");
    let salvage = "git diff harness/integration...harness/salvage/bd-3/1";
    assert!(listed.contains(salvage), "{listed}");
    let answer = review(&scratch, &[]);
    assert_eq!(ids(&answer), ["bd-1", "bd-2", "bd-3"]);
    assert_eq!(answer["decisions"], json!({}));
    assert_eq!(ids(&review(&scratch, &["bd-2"])), ["bd-2"]);
    scratch
        .premath(["review", "bd-9"])
        .end()
        .exits(1)
        .says("nothing of issue bd-9 landed or was salvaged");
}

#[test]
fn on_a_terminal_changes_are_accepted_reverted_and_reopened() {
    let script = Path::new("/usr/bin/script");
    if !script.exists() {
        skipped(
            "a review on a terminal",
            "there is no `script`, which makes one",
        );
        return;
    }
    let scratch = night();
    let answers = "a\\nr\\nit breaks names\\no\\nuse the parser\\n";
    let talk = format!(
        "printf '{answers}' | {} -qefc 'stty rows 200 cols 120; \"$E2E_PREMATH\" review' /dev/null",
        script.display()
    );
    let talked = scratch
        .run(Path::new("/bin/sh"))
        .args(["-c", &talk])
        .env("TERM", "xterm")
        .end()
        .exits(0);
    let said = &talked.stdout;
    for expected in [
        "[1 of 3] bd-1",
        "proof: row ",
        "src/bd-1.txt",
        "accepted bd-1",
        "reverted bd-2 on harness/integration by ",
        "reopened bd-3",
        "3 decided, 0 left",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    what_was_decided_is_there(&scratch);
}

fn what_was_decided_is_there(scratch: &Scratch) {
    // The work is gone from the target by a commit of its own, the rest is there.
    let on = |path: &str| scratch.file_on("harness/integration", path);
    assert!(on("src/bd-1.txt").is_some());
    assert!(on("src/bd-2.txt").is_none());
    let messages = scratch.messages_on("harness/integration");
    assert!(
        messages[0].contains("an operator reverted it in review: it breaks names"),
        "{messages:?}"
    );
    for (id, status, note) in [
        ("bd-1", "closed", ""),
        (
            "bd-2",
            "open",
            "Its work was reverted in review: it breaks names",
        ),
        ("bd-3", "open", "use the parser"),
    ] {
        let row = scratch.issue(id);
        assert_eq!(row["status"], status, "{row}");
        assert!(
            row["notes"].as_str().unwrap_or_default().contains(note),
            "{row}"
        );
    }
    // Each decision has a row, and is not asked for again.
    let mut rows = scratch.trajectory();
    rows.retain(|row| row["action"] == "operator.reviewed");
    let decided: Vec<&Value> = rows.iter().map(|row| &row["resultClass"]).collect();
    assert_eq!(decided, ["accepted", "reverted", "reopened"]);
    let answer = review(scratch, &[]);
    assert_eq!(
        (ids(&answer).len(), &answer["decidedBefore"]),
        (0, &json!(3))
    );
    let all = review(scratch, &["--all"]);
    assert_eq!(all["items"][0]["reviewed"]["decision"], "accepted");
}
