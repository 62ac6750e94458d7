//! What a person reads in the morning: the report at the end, and what commands
//! report about it later.

use crate::misbehaviour::{VERIFY, command_line, titled};
use premath_evidence::Agent;
use premath_tests::{NO_STARTUP, Scratch, binaries, issue};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

/// The latest text that a batch saved at its end.
fn report(scratch: &Scratch) -> String {
    scratch.kept_report()
}

fn issues(ids: &[&str]) -> Vec<Value> {
    ids.iter().map(|id| issue(id)).collect()
}

#[test]
fn a_batchs_report_can_be_read_again() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    scratch
        .premath(["report"])
        .end()
        .exits(1)
        .says("no batch in ")
        .says("did work yet; `harness-coordinator` runs one");
    scratch.batch(EDIT, "true").end().exits(0);
    let printed = report(&scratch);
    let listed = scratch.premath(["report", "--list", "--json"]).end();
    let listed = listed.exits(0).json();
    assert_eq!(listed["count"], 1, "{listed}");
    let batch = listed["items"][0]["batchId"].as_str().unwrap();
    let path = listed["items"][0]["path"].as_str().unwrap();
    assert!(
        printed.starts_with(&format!("batch {batch}, ended ")),
        "{printed}"
    );
    assert!(
        printed.contains("1 of 1 attempted issues closed in "),
        "{printed}"
    );
    let last = printed.lines().last().unwrap();
    let end = format!("report saved in {path}; `premath report` has more");
    assert_eq!(last, end);
    assert_eq!(fs::read_to_string(path).unwrap(), printed);
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let named = scratch
        .premath(["report", "--batch", batch, "--json"])
        .end();
    let named = named.exits(0).json();
    assert_eq!(named["batches"][0]["batchId"], batch);
    let kept = format!("artifacts/reports/{batch}.txt");
    assert_eq!(named["keptTexts"], serde_json::json!([kept]));
    scratch
        .premath(["report", "--batch", "hb1_none"])
        .end()
        .exits(1)
        .says("no batch hb1_none in ");
    // It is nothing that a commit takes along.
    let status = scratch.git_command(["status", "--porcelain", "--", "artifacts/reports"]);
    assert_eq!(status.end().exits(0).stdout, "");
}

/// Has a batch land what it did, with a report.
fn landing_report(scratch: &Scratch, work: &str, verify: &str, code: i32) -> String {
    scratch.landing_batch(work, verify).end().exits(code);
    report(scratch)
}

#[test]
fn an_empty_batch_never_hides_the_last_one_that_did_work() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    scratch.batch(EDIT, "true").end().exits(0);
    let made = || scratch.premath(["report", "--json"]).end().exits(0).json();
    let before = made();
    scratch.batch(EDIT, "true").end().exits(0);
    let after = made();
    assert_eq!(after["batches"], before["batches"]);
    assert_eq!(after["laterEmptyBatches"], 1);
    assert_eq!(after["totals"]["closed"], 1);
    let since = scratch.premath(["report", "--since", "1h", "--json"]).end();
    assert_eq!(
        since.exits(0).json()["batches"].as_array().unwrap().len(),
        2
    );
    scratch
        .premath(["report", "--since", "soon"])
        .end()
        .exits(2)
        .says("expected a time");
    let since = scratch.premath(["report", "--since", "2026-01-01", "--json"]);
    assert_eq!(since.end().exits(0).json()["totals"]["closed"], 1);
    let nothing = scratch.premath(["report", "--since", "2999-01-01T10:00"]);
    nothing.end().exits(1).says("no attempt since then");
    let unknown = scratch.premath(["report", "--issue", "nosuch"]);
    unknown.end().exits(1).says("no attempt of issue nosuch");
    let of_issue = scratch.premath(["report", "--issue", "a", "--json"]).end();
    let batches = &of_issue.exits(0).json()["batches"];
    assert_eq!(
        batches, &before["batches"],
        "the empty one did not work on it"
    );
}

#[test]
fn a_report_and_a_history_have_failures_with_their_proof_and_commands() {
    let scratch = one_of_each();
    scratch
        .premath(["retry", "c", "--note", "three is three"])
        .end()
        .exits(0);
    let verify = "[ $PREMATH_ISSUE_ID != c ] || { echo 'four is two'; exit 1; }";
    scratch
        .default_batch(EDIT, verify)
        .args(NO_STARTUP)
        .end()
        .exits(1);
    let shown = scratch
        .premath(["report", "--width", "80"])
        .end()
        .exits(0)
        .stdout;
    for expected in [
        "FAILED (1)",
        "why       check_failed: ",
        "output    artifacts/streams/worker.1.c.2.verify.stdout",
        "premath retry c --note \"…\"",
        "git diff harness/integration...harness/salvage/c/2",
        "1 of 2",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let of_issue = scratch.premath(["report", "--issue", "c", "--json"]).end();
    let of_issue = of_issue.exits(0).json();
    assert_eq!(of_issue["totals"]["attempts"], 2, "{of_issue}");
    assert_eq!(of_issue["batches"].as_array().unwrap().len(), 2);
    // The history has every attempt, and the stream that has content.
    let history = scratch.premath(["issue", "show", "c", "--json"]).end();
    let history = history.exits(0).json();
    let attempts = history["attempts"].as_array().unwrap();
    let ends: Vec<&Value> = attempts.iter().map(|one| &one["outputEnd"]).collect();
    assert_eq!(
        ends,
        [
            &serde_json::json!(["three is two"]),
            &serde_json::json!(["four is two"])
        ]
    );
    assert_ne!(attempts[0]["batchId"], attempts[1]["batchId"]);
    let text = scratch
        .premath(["issue", "show", "c"])
        .end()
        .exits(0)
        .stdout;
    for expected in [
        "attempts (2), latest first",
        "| four is two",
        "| three is two",
        "run log row ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    the_latest_alone(&scratch, attempts);
}

/// Asserts that a limit leaves out attempts, and neither their number nor their totals.
fn the_latest_alone(scratch: &Scratch, attempts: &[Value]) {
    let show = |limit: &str| {
        let show = ["issue", "show", "c", "--limit", limit];
        let text = scratch.premath(show).end().exits(0).stdout;
        (
            text,
            scratch.premath(show).arg("--json").end().exits(0).json(),
        )
    };
    let all = show("2").1;
    assert_eq!(all["attempts"].as_array().unwrap(), attempts);
    assert_eq!(all["earlierAttempts"], 0, "{all}");
    let (text, one) = show("1");
    assert_eq!(one["attempts"].as_array().unwrap(), &attempts[1..]);
    assert_eq!(one["earlierAttempts"], 1, "{one}");
    assert_eq!(one["attemptTotals"], all["attemptTotals"]);
    assert_eq!(one["attemptTotals"]["attempts"], 2, "{one}");
    assert!(text.contains("attempts (2), latest first"), "{text}");
    assert!(
        text.contains("\n1 earlier not shown; `--limit 2` shows all\n"),
        "{text}"
    );
    assert!(!text.contains("| three is two"), "{text}");
}

#[test]
fn what_a_command_printed_into_the_wrong_stream_or_a_link_is_handled() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    scratch
        .batch("echo 'it broke'; exit 1", "true")
        .end()
        .exits(1);
    let shown = || {
        scratch
            .premath(["issue", "show", "a", "--json"])
            .end()
            .exits(0)
            .json()
    };
    let attempt = shown()["attempts"][0].clone();
    assert_eq!(
        attempt["failureClasses"],
        serde_json::json!(["work_failed"])
    );
    let output = attempt["output"].as_str().unwrap();
    assert!(output.ends_with(".work.stdout"), "{output}");
    assert_eq!(attempt["outputEnd"], serde_json::json!(["it broke"]));
    // A link in its place is not followed.
    let path = scratch.root.join(output);
    let secret = scratch.folder().join("secret");
    fs::write(&secret, "a secret\n").unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    let attempt = shown()["attempts"][0].clone();
    assert_eq!(attempt["outputEnd"], serde_json::json!([]), "{attempt}");
}

/// A batch of which `a` lands, `b` changed nothing and `c` is not verified.
fn one_of_each() -> Scratch {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c"]));
    let work = format!("[ $PREMATH_ISSUE_ID = b ] || {{ {EDIT}; }}");
    let verify = "[ $PREMATH_ISSUE_ID != c ] || { echo 'three is two' >&2; exit 1; }";
    scratch
        .default_batch(&work, verify)
        .args(NO_STARTUP)
        .end()
        .exits(1);
    scratch
}

#[test]
fn every_failure_in_the_report_says_why_and_where() {
    let scratch = one_of_each();
    let printed = report(&scratch);
    let turn = scratch
        .root
        .join("artifacts/ciwitness/worker.1.b.1.turn.json");
    let output = scratch
        .root
        .join("artifacts/streams/worker.1.c.1.verify.stderr");
    let why = format!(
        "b: work_no_change: the attempt changed nothing; the label no-change of the issue, or \
         on_no_change = \"allow\" under [batch] in harness.toml, allows that\n  verdict: premath harness-join-check --explain --input \
         {}\nc: three is two\n  output: {}\n  saved work: harness/salvage/c/1\n\n",
        turn.display(),
        output.display()
    );
    assert!(printed.contains(&why), "{why}{printed}");
    let judged = ["harness-join-check", "--explain", "--input"];
    scratch.premath(judged).arg(&turn).end().exits(0);
}

#[test]
fn work_that_changed_nothing_is_not_counted_as_landed() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    let work = format!("[ $PREMATH_ISSUE_ID = b ] || {{ {EDIT}; }}");
    let printed = landing_report(&scratch, &work, "true", 0);
    let row = printed.lines().find(|line| line.starts_with("b "));
    assert!(
        row.is_some_and(|row| row.contains("closed, no changes")),
        "{printed}"
    );
    let sum = printed
        .lines()
        .find(|line| line.starts_with("1 of 2 closed issues landed on harness/integration"));
    assert!(
        sum.is_some_and(|sum| sum.ends_with("; 1 without changes")),
        "{printed}"
    );
    let hint = "closed without changes, by the verification alone: b";
    assert!(printed.contains(hint), "{printed}");
}

#[test]
fn the_report_says_what_can_be_done_next() {
    let mut rows = issues(&["a", "b", "c"]);
    rows[2]["dependencies"] =
        serde_json::json!([{"issue_id": "c", "depends_on_id": "b", "type": "blocks"}]);
    let scratch = Scratch::with_issues(1, &rows);
    let verify = "[ $PREMATH_ISSUE_ID != b ]";
    let printed = landing_report(&scratch, EDIT, verify, 1);
    let (_, next) = printed
        .split_once("\nnext:\n")
        .unwrap_or_else(|| panic!("{printed}"));
    let commands: Vec<&str> = next
        .lines()
        .map_while(|line| line.strip_prefix("  ")?.split("  ").next())
        .collect();
    assert_eq!(
        commands,
        [
            "git merge harness/integration",
            "git diff harness/integration...harness/salvage/b/1",
            "premath retry b --note \"…\"",
        ]
    );
    assert!(next.contains("\nc is blocked by b\n"), "{printed}");
    // They do what they say.
    for command in &commands[..2] {
        let words = command.split(' ').skip(1);
        let shown = scratch.git_command(words).end().exits(0).stdout;
        assert!(
            command.contains("merge") || shown.contains("src/b.txt"),
            "{shown}"
        );
    }
    assert!(scratch.root.join("src/a.txt").exists());
    scratch
        .premath(commands[2].split(' ').skip(1))
        .end()
        .exits(0);
    assert_eq!(scratch.issue("b")["status"], "open");
    // Where all went well there is nothing to release.
    let printed = landing_report(&scratch, EDIT, "true", 0);
    assert!(
        printed.contains("\n  git merge harness/integration "),
        "{printed}"
    );
    assert!(!printed.contains("premath issue update"), "{printed}");
    assert!(!printed.contains("waits for"), "{printed}");
}

#[test]
fn a_report_names_no_salvage_branch_that_is_gone() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    let run = scratch.landing_batch(EDIT, "false");
    run.end().exits(1);
    let report = || scratch.premath(["report"]).end().exits(0).stdout;
    let named = |report: &str, issue: &str| report.contains(&format!("harness/salvage/{issue}/1"));
    let before = report();
    assert!(named(&before, "a") && named(&before, "b"), "{before}");
    let run = scratch.git_command(["branch", "-D", "harness/salvage/a/1"]);
    run.end().exits(0);
    let after = report();
    assert!(!named(&after, "a") && named(&after, "b"), "{after}");
    let json = scratch.premath(["report", "--json"]).end().exits(0).json();
    assert_eq!(json["totals"]["salvaged"], 1);
}

#[test]
fn an_issue_that_was_abandoned_says_why() {
    let scratch = one_of_each();
    let show = |id: &str| {
        let shown = scratch.premath(["issue", "show", id]).end().exits(0);
        let json = scratch.premath(["issue", "show", id, "--json"]).end();
        (shown.stdout, json.exits(0).json()["lastFailure"].clone())
    };
    let (text, failure) = show("c");
    let output = scratch
        .root
        .join("artifacts/streams/worker.1.c.1.verify.stderr");
    assert_eq!(
        failure["failureClasses"],
        serde_json::json!(["check_failed"])
    );
    assert_eq!(failure["said"], "three is two");
    assert_eq!(failure["output"], output.to_str().unwrap());
    assert_eq!(failure["salvage"], "harness/salvage/c/1");
    assert!(
        text.contains("\nlast failure\n  check_failed: three is two\n"),
        "{text}"
    );
    assert!(
        text.contains("  saved work: harness/salvage/c/1\n"),
        "{text}"
    );
    let (text, failure) = show("b");
    assert_eq!(
        failure["failureClasses"],
        serde_json::json!(["work_no_change"])
    );
    assert!(
        text.contains("  work_no_change: The work changed nothing"),
        "{text}"
    );
    assert!(text.contains("worker.1.b.1.turn.json\n"), "{text}");
    let (text, failure) = show("a");
    assert!(failure.is_null(), "{failure}");
    assert!(!text.contains("last failure"), "{text}");
}

#[test]
fn a_turn_that_the_gate_refused_is_reported_with_the_place() {
    let missing = titled("m", "missing", 1);
    let scratch = Scratch::with_issues(1, &[missing]);
    let command = command_line(Agent::Codex, "");
    let settings = format!(
        "[agent]\nuse = [\"codex\"]\ncodex_cmd = '''{command}'''\n\
         [backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n"
    );
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
        .run(&binaries().coordinator)
        .args(["--override-reason", "test", "--verify-cmd", VERIFY])
        .args(NO_STARTUP)
        .arg("--worktree")
        .arg(&scratch.lanes[0])
        .end()
        .exits(1);
    let printed = report(&scratch);
    let why =
        "\nm: tool.result_missing: A requested tool call has no terminal result. toolRequests[";
    assert!(printed.contains(why), "{printed}");
    assert!(
        printed.contains("  verdict: premath harness-join-check"),
        "{printed}"
    );
    let shown = scratch
        .premath(["issue", "show", "m"])
        .end()
        .exits(0)
        .stdout;
    let why = "  tool.result_missing: A requested tool call has no terminal result. toolRequests[";
    assert!(shown.contains(why), "{shown}");
}
