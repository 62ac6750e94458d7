//! What a batch prints, and where: events and the report on stdout, what is wrong on
//! stderr.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use premath_tests::{Ended, NO_STARTUP, Run, Scratch, binaries, issue};
use serde_json::json;
use std::fs;

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

/// A batch that a person reads.
fn batch(scratch: &Scratch, verify: &str) -> Run {
    scratch
        .run(&binaries().coordinator)
        .args(["--override-reason", "test", "--work-cmd", EDIT])
        .args(["--verify-cmd", verify])
        .args(NO_STARTUP)
        .arg("--worktree")
        .arg(&scratch.lanes[0])
}

/// Returns the events of what was printed, without their times, and the report.
fn read(ended: &Ended) -> (Vec<&str>, &str) {
    let (events, report) = ended.stdout.split_once("\n\n").expect("a report follows");
    let events = events.lines().map(|line| {
        let (at, event) = line.split_at_checked(9).expect("a line has its time");
        let at: Result<Time, _> = at.trim_end().parse();
        assert!(at.is_ok(), "{line}");
        event
    });
    (events.collect(), report)
}

#[test]
fn a_batch_prints_a_line_an_event_and_then_its_report() {
    let mut hostile = issue("a");
    hostile["title"] = json!("Write\u{1b}[2J\n12:00:00 worker.1 b closed");
    let scratch = Scratch::with_issues(1, &[hostile, issue("b")]);
    let verify = "[ $PREMATH_ISSUE_ID = a ] || { echo no >&2; exit 1; }";
    let ended = batch(&scratch, verify).end().exits(1);
    assert_eq!(
        ended.stderr.matches("warning").count(),
        ended.stderr.lines().count()
    );
    let (events, report) = read(&ended);
    let at = |part: &str| {
        let place = events.iter().position(|event| event.contains(part));
        place.unwrap_or_else(|| panic!("`{part}` is not in {events:#?}"))
    };
    let order = [
        at(" begins: 1 lane(s)"),
        at("worker.1 ready in "),
        at("worker.1 started a Write\\u{1b}[2J\\n12:00:00 worker.1 b closed"),
        at("worker.1 a closed after "),
        at("worker.1 landed a as "),
        at("worker.1 started b "),
        at("worker.1 b blocked after "),
        at(" ended after "),
    ];
    assert!(order.is_sorted(), "{order:?} {events:#?}");
    assert!(events.iter().any(|event| event.contains(": check_failed")));
    assert!(events.last().unwrap().ends_with(": exit code 1"));
    assert!(report.starts_with("issue  outcome"), "{report}");
    let kept = scratch.kept_report();
    assert!(kept.ends_with(report), "{kept}\n{report}");
}

#[test]
fn the_time_of_a_line_is_that_of_the_zone_of_the_terminal() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let zone = TimeZone::fixed(jiff::tz::offset(5));
    let clock = || jiff::Timestamp::now().to_zoned(zone.clone());
    let began = clock();
    let ended = batch(&scratch, "true").env("TZ", "XYZ-5").end().exits(0);
    let took = began.duration_until(&clock());
    let first: Time = ended.stdout[..8].parse().unwrap();
    // Also over midnight.
    let behind = began
        .time()
        .duration_until(first)
        .as_secs()
        .rem_euclid(86_400);
    assert!(
        behind == 86_399 || behind <= took.as_secs(),
        "{began} {first}"
    );
}

#[test]
fn a_quiet_batch_prints_its_report_alone() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let ended = batch(&scratch, "true").arg("--quiet").end().exits(0);
    let report = ended.stdout.strip_prefix('\n').unwrap();
    assert!(report.starts_with("issue  outcome"), "{report}");
    assert!(!ended.stdout.contains("worker.1 started"));
    batch(&scratch, "true")
        .args(["--quiet", "--json"])
        .end()
        .exits(2);
}

#[test]
fn a_push_is_an_event_and_one_that_fails_a_warning() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = scratch.folder().join("remote.git");
    let init = ["init", "--quiet", "--bare"];
    scratch.git_command(init).arg(&remote).end().exits(0);
    let add = ["remote", "add", "origin", "../remote.git"];
    scratch.git_command(add).end().exits(0);
    let settings = "[landing]\npush = \"origin\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let ended = batch(&scratch, "true").end().exits(0);
    let pushed = "harness/integration pushed to origin at ";
    assert!(ended.stdout.contains(pushed), "{}", ended.stdout);
    fs::remove_dir_all(&remote).unwrap();
    scratch.premath(["issue", "add", "another"]).end().exits(0);
    let ended = batch(&scratch, "true").arg("--json").end().exits(1);
    let events = ended.events();
    let push = events
        .iter()
        .find(|event| event["event"] == "landing.pushed");
    let push = push.unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!(
        (&push["remote"], &push["commit"]),
        (&json!("origin"), &json!(null))
    );
    assert!(
        push["failure"].as_str().unwrap().contains("fatal:"),
        "{push}"
    );
    let mut last = None;
    for event in &events {
        assert_eq!(event["schema"], 1, "{event}");
        let at: jiff::Timestamp = event["at"].as_str().unwrap().parse().unwrap();
        assert!(last <= Some(at), "{event}");
        last = Some(at);
    }
}
