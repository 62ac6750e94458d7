//! What a killed harness left, one thing at a time.

use premath_tests::{PATIENCE, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// The first fails; the others say that they run, and end when told to.
const WORK: &str = r#"[ "$PREMATH_ISSUE_ID" != a ] || exit 1
echo part > src/part.txt; touch "$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.05; done"#;

/// Kills a batch in the middle of its second issue.
fn killed() -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let batch = scratch.batch(WORK, "true").start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    batch.signal(Signal::KILL);
    batch.wait();
    scratch.no_process_left();
    scratch
}

fn names_in(scratch: &Scratch, part: &str) -> Vec<String> {
    fs::read_dir(scratch.root.join(".premath"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(part))
        .collect()
}

#[test]
fn a_resumed_batch_leaves_alone_what_had_used_its_attempts_up() {
    let scratch = killed();
    fs::write(scratch.home().join("go"), "").unwrap();
    let ended = scratch.batch(WORK, "true").end().exits(1);
    assert_eq!(ended.events()[0]["resumed"], true);
    assert_eq!(scratch.steps_of("a").len(), 1, "it was dispatched again");
    assert_eq!(scratch.issue("b")["status"], "closed");
}

#[test]
fn a_new_batch_tries_again_what_an_older_one_had_abandoned() {
    let scratch = killed();
    fs::write(scratch.home().join("go"), "").unwrap();
    scratch
        .batch(WORK, "true")
        .arg("--new-batch")
        .end()
        .exits(1);
    assert_eq!(scratch.steps_of("a").len(), 2);
}

#[test]
fn a_dead_holders_lease_is_taken_over_at_once_and_that_is_recorded() {
    let scratch = killed();
    assert_eq!(scratch.issue("b")["status"], "in_progress");
    fs::write(scratch.home().join("go"), "").unwrap();
    scratch.batch(WORK, "true").end().exits(1);
    let row = scratch.issue("b");
    assert_eq!(row["closed_by_step"], "worker.1.b.2");
    let rows = scratch.trajectory();
    let taken: Vec<&Value> = rows
        .iter()
        .filter(|row| row["action"] == "coordinator.take_over")
        .collect();
    assert_eq!(taken.len(), 1, "{rows:#?}");
    assert_eq!(taken[0]["issueId"], "b");
}

#[test]
fn what_a_cut_step_left_is_kept_aside_and_the_lane_goes_back() {
    let scratch = killed();
    assert!(scratch.lanes[0].join("src/part.txt").exists());
    let run = scratch.batch("true", "true").end().exits(0);
    let salvage = &run.events()[1]["salvage"];
    assert_eq!(salvage, "harness/salvage/b/1", "{}", run.stdout);
    assert_eq!(
        scratch
            .file_on("harness/salvage/b/1", "src/part.txt")
            .as_deref(),
        Some("part\n")
    );
    assert!(!scratch.lanes[0].join("src/part.txt").exists());
    assert_eq!(scratch.file_on("lane-1", "src/part.txt"), None);
}

#[test]
fn a_closed_issue_whose_row_was_not_written_gets_it_once() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    scratch.batch("true", "true").end().exits(0);
    let lost = |row: &Value| row["issueId"] == "b" && row["action"] == "worker.loop";
    let kept: String = scratch
        .trajectory()
        .iter()
        .filter(|row| !lost(row))
        .map(|row| format!("{row}\n"))
        .collect();
    fs::write(scratch.trajectory_path(), kept).unwrap();
    scratch.batch("true", "true").end().exits(0);
    scratch.batch("true", "true").end().exits(0);
    let rows = scratch.steps_of("b");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["resultClass"], "completed");
    assert_eq!(rows[0]["recovered"], true);
    assert_eq!(rows[0]["stepId"], scratch.issue("b")["closed_by_step"]);
}

#[test]
fn a_blocked_issue_whose_row_was_not_written_gets_it_once() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = || scratch.landing_batch("echo a > src/a.txt", "[ ! -e src/a.txt ]");
    let killed = batch().env("PREMATH_KILL_AT", "issue-blocked").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.steps(), [Value::Null; 0]);
    // The batch did not succeed, although nothing is left to be done.
    let ended = batch().end().exits(1);
    assert_eq!(ended.events()[0]["resumed"], true);
    batch().end();
    let rows = scratch.steps_of("a");
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(rows[0]["recovered"], true);
    assert_eq!(
        rows[0]["failureClasses"],
        serde_json::json!(["check_failed"])
    );
    assert_eq!(rows[0]["retry"]["decision"], "escalate");
    scratch.premath(["audit"]).end().exits(0);
    let open = ["issue", "update", "a", "--status", "open"];
    scratch.premath(open).end().exits(0);
    assert!(scratch.issue("a")["blocked_by"].is_null());
}

#[test]
fn a_batch_that_continues_reports_time_and_failures_of_before_the_kill() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let verify = "[ ! -e src/a.txt ] || { echo 'a is wrong here' >&2; exit 1; }";
    let work = "echo x > \"src/$PREMATH_ISSUE_ID.txt\"";
    let batch = || scratch.landing_batch(work, verify);
    let began = Instant::now();
    let killed = batch().env("PREMATH_KILL_AT", "target-advanced").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    let events = batch().end().exits(1).events();
    let lasted = began.elapsed();
    let at = |event: &Value| -> jiff::Timestamp { event["at"].as_str().unwrap().parse().unwrap() };
    let (resumed, ended) = (&events[0], &events[events.len() - 1]);
    assert_eq!(ended["event"], "batch.ended");
    let elapsed = Duration::from_millis(ended["elapsedMs"].as_u64().unwrap());
    let own = Duration::try_from(at(ended).duration_since(at(resumed))).unwrap();
    // Longer than this process ran, and not longer than both.
    assert!(
        own < elapsed && elapsed <= lasted,
        "{own:?} {elapsed:?} {lasted:?}"
    );
    let issues = ended["issues"].as_array().unwrap();
    let of_a = issues.iter().find(|issue| issue["issueId"] == "a").unwrap();
    assert!(of_a.to_string().contains("a is wrong here"), "{of_a:#}");
}

/// Work of `b` that changed nothing is adopted after a kill. Its mark is on the
/// commit that it began at, which is that of `a`.
fn adopts_unchanged_work(is_red: bool) {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = "[ $PREMATH_ISSUE_ID = b ] || echo a > src/a.txt";
    let verify = r#"[ "$PREMATH_ISSUE_ID" != b ] || [ ! -e "$HOME/red" ]"#;
    let batch = || scratch.landing_batch(work, verify);
    let killed = batch().env("PREMATH_KILL_AT", "landing-marked:2").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    if is_red {
        fs::write(scratch.home().join("red"), "").unwrap();
    }
    batch().end().exits(i32::from(is_red));
    let ended = if is_red { "blocked" } else { "closed" };
    assert_eq!(scratch.issue("b")["status"], ended);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let kept = scratch.file_on("harness/integration", "src/a.txt");
    assert_eq!(kept.as_deref(), Some("a\n"));
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn a_red_adoption_of_work_that_changed_nothing_takes_back_no_other_work() {
    adopts_unchanged_work(true);
}

#[test]
fn an_adoption_of_work_that_changed_nothing_claims_no_other_work() {
    adopts_unchanged_work(false);
}

#[test]
fn a_torn_tail_of_issue_memory_is_kept_aside_and_costs_no_row() {
    let scratch = Scratch::new(1);
    let text = format!("{}\n{}\n{{\"id\":\"a\",\"tit", issue("a"), issue("b"));
    scratch.write_issues(text.as_bytes());
    scratch.batch("true", "true").end().exits(0);
    let issues = scratch.issues();
    assert!(issues.values().all(|row| row["status"] == "closed"));
    assert_eq!(issues["a"]["title"], "issue a");
    let aside = names_in(&scratch, "issues.jsonl.torn-");
    assert_eq!(aside.len(), 1, "{aside:?}");
    let torn = fs::read_to_string(scratch.root.join(".premath").join(&aside[0])).unwrap();
    assert!(torn.starts_with("{\"id\":\"a\",\"tit"), "{torn}");
}

#[test]
fn a_last_row_without_its_newline_counts() {
    let scratch = Scratch::new(1);
    let text = format!("{}\n{}", issue("a"), issue("b"));
    scratch.write_issues(text.as_bytes());
    scratch.batch("true", "true").end().exits(0);
    assert_eq!(scratch.issues().len(), 2);
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(names_in(&scratch, ".torn-"), [""; 0]);
}

#[test]
fn a_torn_tail_of_the_trajectory_is_kept_aside_and_costs_no_row() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch("true", "true").end().exits(0);
    let before = scratch.trajectory();
    let mut text = fs::read(scratch.trajectory_path()).unwrap();
    text.extend_from_slice(b"{\"stepId\":\"worker.1.");
    fs::write(scratch.trajectory_path(), text).unwrap();
    scratch.batch("true", "true").end().exits(0);
    assert_eq!(scratch.trajectory()[..before.len()], before[..]);
    assert_eq!(
        names_in(&scratch, "harness_trajectory.jsonl.torn-").len(),
        1
    );
}

#[test]
fn locks_that_a_killed_git_left_do_not_stop_the_lane() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    // What `git commit` leaves where KILL meets it in its middle.
    let work = r#"echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt"
[ "$PREMATH_ISSUE_ID" = a ] || { git add -A && git commit -qm own; exit; }
own=$(git rev-parse --git-dir) shared=$(git rev-parse --git-common-dir)
touch "$own/index.lock" "$own/HEAD.lock" "$own/AUTO_MERGE.lock" "$shared/refs/heads/lane-1.lock"
exit 1"#;
    scratch.batch(work, "true").end().exits(1);
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(scratch.messages_on("lane-1").len(), 1);
    assert_eq!(
        scratch
            .file_on("harness/salvage/a/1", "src/a.txt")
            .as_deref(),
        Some("a\n")
    );
}

#[test]
fn an_issue_whose_attempts_panic_takes_no_more_lanes_than_the_policy_allows() {
    let scratch = Scratch::with_issues(3, &[issue("a")]);
    let settings = "[backoff]\nfixed_short = \"1s\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let batch = || scratch.landing_batch("echo a > src/a.txt", "true");
    let ended = batch().env("PREMATH_PANIC_AT", "work-ended").end().exits(1);
    let rows = scratch.steps_of("a");
    let panicked = serde_json::json!(["lane_panicked"]);
    // Nothing hands the issue up, as the row states.
    let expected = [(1, "retry", Value::Null), (2, "escalate", "stop".into())];
    for (row, (generation, decision, action)) in rows.iter().zip(expected) {
        assert_eq!(row["failureClasses"], panicked, "{row:#}");
        assert_eq!(row["generation"], generation);
        assert_eq!(row["retry"]["decision"], decision, "{row:#}");
        assert_eq!(row["retry"]["action"], action, "{row:#}");
    }
    assert_eq!(rows.len(), 2, "{rows:#?}");
    // The policy's wait is between them.
    let at =
        |row: &Value| -> jiff::Timestamp { row["finishedAt"].as_str().unwrap().parse().unwrap() };
    let between = at(&rows[1]).duration_since(at(&rows[0]));
    assert!(between.as_millis() >= 1_000, "{between:?}");
    let lost = ended
        .events()
        .into_iter()
        .filter(|event| event["event"] == "lane.given_up");
    assert_eq!(lost.count(), 2);
    let row = scratch.issue("a");
    assert_eq!(row["status"], "open");
    assert!(row["lease"].is_null(), "{row:#}");
    scratch.premath(["audit"]).end().exits(0);
    batch().end();
    assert_eq!(scratch.issue("a")["status"], "closed");
}
