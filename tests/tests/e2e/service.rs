//! When a batch ends: when it is done, when it is idle, at the end of its window, or
//! only when it is stopped.

use jiff::ToSpan;
use jiff::tz::TimeZone;
use premath_tests::{PATIENCE, Running, Scratch, issue, until};
use serde_json::{Value, json};

const EDIT: &str = "echo x > src/$PREMATH_ISSUE_ID.txt";

/// Waits until a batch printed an event.
#[track_caller]
fn awaited(batch: &Running, event: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let found = until(PATIENCE, || {
        let mut events = batch.events().into_iter();
        events.find(|found| found["event"] == event && is_it(found))
    });
    found.unwrap_or_else(|| panic!("{event} was not printed: {}", batch.stdout()))
}

fn drain(scratch: &Scratch) {
    scratch.premath(["batch", "drain"]).end().exits(0);
}

/// Returns hours from so many hours before now to so many after it.
fn hours(from: i32, to: i32) -> String {
    let now = jiff::Timestamp::now().to_zoned(TimeZone::UTC);
    let at = |hours: i32| (&now + hours.hours()).strftime("%H:%M").to_string();
    format!("{}-{}", at(from), at(to))
}

#[test]
fn a_batch_that_stays_works_on_what_is_added_and_ends_when_it_is_drained() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch(EDIT, "true").args(["--until", "forever"]);
    let batch = batch.start();
    awaited(&batch, "batch.idle", |_| true);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let add = ["issue", "add", "another", "--id", "next"];
    scratch.premath(add).end().exits(0);
    awaited(&batch, "step.ended", |step| step["issueId"] == "next");
    let idle = until(PATIENCE, || {
        let events = batch.events();
        let idle = events.iter().filter(|event| event["event"] == "batch.idle");
        (idle.count() == 2).then_some(())
    });
    assert!(idle.is_some(), "{}", batch.stdout());
    drain(&scratch);
    let ended = batch.wait().exits(143);
    assert_eq!(scratch.issue("next")["status"], "closed");
    assert_eq!(
        ended.events().pop().unwrap()["issues"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    scratch.no_process_left();
}

#[test]
fn a_batch_begins_nothing_outside_of_its_window() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    for stays in [&["--until", "forever"][..], &[]] {
        let batch = scratch
            .batch(EDIT, "true")
            .env("TZ", "UTC")
            .args(["--window", &hours(2, 4)])
            .args(stays)
            .start();
        let shut = awaited(&batch, "batch.window", |window| window["open"] == false);
        awaited(&batch, "lane.booted", |_| true);
        let opens: jiff::Timestamp = shut["until"].as_str().unwrap().parse().unwrap();
        let ahead = jiff::Timestamp::now().duration_until(opens).as_secs();
        assert!((3_600..=7_200).contains(&ahead), "{ahead}");
        let status = scratch.premath(["status", "--json"]);
        let pause = until(PATIENCE, || {
            let status = scratch.premath(["status", "--json"]).end().exits(0).json();
            let pause = status["batches"][0]["pauses"][0].clone();
            (pause["kind"] == "window").then_some(pause)
        });
        assert!(pause.is_some(), "{}", status.end().stdout);
        drain(&scratch);
        let ended = batch.wait().exits(143);
        let dispatched = |event: &Value| event["event"] == "issue.dispatched";
        assert!(!ended.events().iter().any(dispatched), "{}", ended.stdout);
        assert_eq!(scratch.issue("a")["status"], "open");
    }
}

#[test]
fn a_batch_in_its_window_works_and_ends_with_it() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch(EDIT, "true").env("TZ", "UTC");
    let ended = batch.args(["--window", &hours(-1, 2)]).end().exits(0);
    let ends: jiff::Timestamp = ended.events()[0]["endsAt"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let ahead = jiff::Timestamp::now().duration_until(ends).as_secs();
    assert!((3_600..=7_200).contains(&ahead), "{ahead}");
    assert_eq!(scratch.issue("a")["status"], "closed");
    let wrong = scratch.batch(EDIT, "true").args(["--window", "22:00"]);
    wrong.end().exits(2).says("expected two times of day");
}

#[test]
fn an_idle_batch_waits_for_no_retry() {
    let mut later = issue("a");
    let at = jiff::Timestamp::now() + 2.hours();
    later["retry_at"] = json!(at.to_string());
    let scratch = Scratch::with_issues(1, &[later, issue("b")]);
    let batch = scratch.batch(EDIT, "true").args(["--until", "idle"]);
    batch.end().exits(0);
    assert_eq!(scratch.issue("b")["status"], "closed");
    let batch = scratch.batch(EDIT, "true").start();
    awaited(&batch, "batch.waiting", |_| true);
    drain(&scratch);
    batch.wait().exits(143);
    assert_eq!(scratch.issue("a")["status"], "open");
}
