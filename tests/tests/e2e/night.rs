//! What a night brings: usage limits, what fails alike, the hour to stop, a
//! full disk, a budget.

use premath_tests::{Ended, PATIENCE, Running, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;

/// Works, unless it is the first: that is refused until a moment from now.
const LIMITED: &str = r#"if mkdir "$HOME/limited" 2>/dev/null; then
  echo "usage_limit: five hours used, resets at $(( $(date +%s) + 2 ))" >&2; exit 1
fi
echo x > "src/$PREMATH_ISSUE_ID.txt""#;

fn settings(scratch: &Scratch, text: &str) {
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
}

/// Lines on the error output of these scripts park the provider.
const BELIEVED: &str = "[agent]\nlimit_lines = \"park\"\n";

fn issues(ids: &[&str]) -> Vec<Value> {
    ids.iter().map(|id| issue(id)).collect()
}

fn rows_of(scratch: &Scratch, action: &str) -> Vec<Value> {
    let mut rows = scratch.trajectory();
    rows.retain(|row| row["action"] == action);
    rows
}

fn events_of(ended: &Ended, name: &str) -> Vec<Value> {
    let mut events = ended.events();
    events.retain(|event| event["event"] == name);
    events
}

/// The names of events, in their order, those of interest only.
fn named_events(ended: &Ended, names: &[&str]) -> Vec<String> {
    let events = ended.events();
    let names = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .filter(|name| names.contains(name));
    names.map(str::to_owned).collect()
}

fn await_event(running: &Running, name: &str) -> Value {
    until(PATIENCE, || {
        let mut events = running.events().into_iter();
        events.find(|event| event["event"] == name)
    })
    .unwrap_or_else(|| panic!("no `{name}`: {}", running.stdout()))
}

fn await_file(scratch: &Scratch, name: &str) {
    let file = scratch.home().join(name);
    until(PATIENCE, || file.exists().then_some(())).unwrap_or_else(|| panic!("no {name}"));
}

fn release(scratch: &Scratch, name: &str) {
    fs::write(scratch.home().join(name), "").unwrap();
}

fn time(value: &Value) -> jiff::Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn a_usage_limit_parks_the_provider_and_costs_the_issue_nothing() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    settings(&scratch, BELIEVED);
    let ended = scratch.batch(LIMITED, "true").end().exits(0);
    let parked = rows_of(&scratch, "coordinator.provider_parked");
    assert_eq!(parked.len(), 1, "{parked:#?}");
    assert_eq!(parked[0]["supervision"]["provider"], "shell");
    assert_eq!(parked[0]["failureClasses"], json!(["usage_limit"]));
    assert_eq!(rows_of(&scratch, "coordinator.provider_resumed").len(), 1);
    let steps = scratch.steps();
    let by_issue: Vec<&str> = steps
        .iter()
        .map(|s| s["issueId"].as_str().unwrap())
        .collect();
    assert_eq!(by_issue, ["a", "a", "b"]);
    assert_eq!(steps[0]["failureClasses"], json!(["usage_limit"]));
    assert_eq!(
        steps[0]["resultClass"],
        "retry_needed_lease_active_transport_dispatched"
    );
    assert_eq!(steps[0]["retry"], Value::Null, "the policy was asked");
    let resumes = time(&parked[0]["supervision"]["until"]);
    assert!(time(&steps[1]["startedAt"]) >= resumes, "{}", steps[1]);
    let events = ended.events();
    let limited = events.iter().find(|event| event["event"] == "step.ended");
    assert_eq!(limited.unwrap()["ending"], "usage_limit");
    assert_eq!(
        named_events(
            &ended,
            &[
                "issue.dispatched",
                "provider.parked",
                "provider.resumed",
                "batch.waiting"
            ]
        ),
        [
            "issue.dispatched",
            "provider.parked",
            "issue.dispatched",
            "provider.resumed",
            "issue.dispatched"
        ]
    );
    let summary = events.last().unwrap();
    assert_eq!(summary["issues"][0]["attempts"], 1, "{summary}");
    assert_eq!(summary["providers"][0]["provider"], "shell");
    assert_eq!(summary["providers"][0]["parkings"], 1);
    assert!(summary["providers"][0]["parkedMs"].as_u64().unwrap() > 0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

/// Attack 17: anything in a step can print the line.
#[test]
fn a_limit_line_of_a_command_parks_nothing_and_costs_its_own_issue() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    let work = r#"[ "$PREMATH_ISSUE_ID" = b ] && echo x > src/b.txt && exit 0
echo "usage_limit: resets at $(( $(date +%s) + 3600 ))" >&2; exit 1"#;
    let ended = scratch.batch(work, "true").end();
    assert_eq!(
        rows_of(&scratch, "coordinator.provider_parked"),
        [Value::Null; 0]
    );
    assert_eq!(scratch.issue("b")["status"], "closed", "{}", ended.stderr);
    assert_ne!(scratch.issue("a")["status"], "closed");
    let steps = scratch.steps_of("a");
    assert_eq!(steps[0]["failureClasses"], json!(["usage_limit"]));
    assert_ne!(steps[0]["retry"], Value::Null, "no attempt was used up");
}

#[test]
fn one_step_asks_a_parked_provider_and_the_other_lanes_wait_for_its_answer() {
    let scratch = Scratch::with_issues(3, &issues(&["a", "b", "c", "d", "e", "f"]));
    settings(&scratch, BELIEVED);
    // The first three run until all of them are refused; the next lane waits
    // for the message.
    let work = r#"touch "$HOME/started-$PREMATH_ISSUE_ID.$PREMATH_LEASE_GENERATION"
if mkdir "$HOME/1" 2>/dev/null || mkdir "$HOME/2" 2>/dev/null || mkdir "$HOME/3" 2>/dev/null; then
  until [ -e "$HOME/refuse" ]; do sleep 0.02; done
  echo "usage_limit: resets at $(( $(date +%s) + 1 ))" >&2; exit 1
fi
until [ -e "$HOME/go" ]; do sleep 0.02; done"#;
    let batch = scratch.batch(work, "true").start();
    for lane in 1..=3 {
        await_file(&scratch, &lane.to_string());
    }
    release(&scratch, "refuse");
    let fourth = || {
        let dispatched = |event: &Value| event["event"] == "issue.dispatched";
        let count = batch.events().iter().filter(|e| dispatched(e)).count();
        (count > 3).then_some(())
    };
    until(PATIENCE, fourth).expect("the provider is asked again");
    release(&scratch, "go");
    let ended = batch.wait().exits(0);
    let names = named_events(&ended, &["issue.dispatched", "provider.resumed"]);
    let resumed = names.iter().position(|n| n == "provider.resumed").unwrap();
    assert_eq!(resumed, 4, "{names:?}");
    assert_eq!(names.len(), 10, "{names:?}");
    assert!(
        scratch
            .issues()
            .values()
            .all(|row| row["status"] == "closed")
    );
    scratch.no_process_left();
}

#[test]
fn a_fallback_takes_the_work_of_a_parked_provider() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c"]));
    settings(
        &scratch,
        "[agent]\nfallback = [\"spare\"]\nlimit_lines = \"park\"\n",
    );
    let work = r#"echo "$PREMATH_PROVIDER" > "src/$PREMATH_ISSUE_ID.txt"
[ "$PREMATH_PROVIDER" = spare ] || { echo "usage_limit: come back tomorrow" >&2; exit 1; }"#;
    let ended = scratch.batch(work, "true").end().exits(0);
    assert_eq!(events_of(&ended, "provider.parked").len(), 1);
    assert_eq!(events_of(&ended, "provider.resumed").len(), 0);
    for id in ["a", "b", "c"] {
        let file = scratch.file_on("lane-1", &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("spare\n"));
    }
}

#[test]
fn a_batch_that_is_taken_up_again_stays_parked() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    settings(&scratch, BELIEVED);
    let work = LIMITED.replace("+ 2", "+ 4");
    let first = scratch.batch(&work, "true").start();
    await_event(&first, "provider.parked");
    first.signal(Signal::KILL);
    first.wait();
    let ended = scratch.batch(&work, "true").end().exits(0);
    let events = ended.events();
    assert_eq!(events[0]["resumed"], true);
    assert_eq!(events[1]["event"], "provider.parked");
    let parked = rows_of(&scratch, "coordinator.provider_parked");
    assert_eq!(parked.len(), 1, "the window is the first one's");
    assert_eq!(events[1]["until"], parked[0]["supervision"]["until"]);
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2);
    assert!(time(&steps[1]["startedAt"]) >= time(&parked[0]["supervision"]["until"]));
}

#[test]
fn a_worker_alone_waits_for_the_limit_likewise() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    settings(&scratch, BELIEVED);
    let ended = scratch
        .worker(0, "worker.1", LIMITED, "true")
        .args(["--max-steps", "2"])
        .end()
        .exits(0)
        .says("PROVIDER PARKED: shell")
        .says("provider shell is available again");
    assert_eq!(ended.json()["count"], 3);
    let parked = rows_of(&scratch, "coordinator.provider_parked");
    let steps = scratch.steps();
    assert!(time(&steps[1]["startedAt"]) >= time(&parked[0]["supervision"]["until"]));
    assert_eq!(scratch.issue("b")["status"], "closed");
}

/// The first three fail; then one asks.
const FAIL_ABC: &str = r#"case "$PREMATH_ISSUE_ID" in a|b|c) exit 1;; esac"#;

#[test]
fn what_fails_alike_on_three_issues_pauses_dispatch_until_one_ends_otherwise() {
    let scratch = Scratch::with_issues(2, &issues(&["a", "b", "c", "d", "e"]));
    settings(&scratch, "[breaker]\npause = \"1s\"\n");
    // One lane, so that the order is that of the issues.
    let lanes = &scratch.lanes[..1];
    let ended = scratch.batch_on(lanes, FAIL_ABC, "true").end().exits(1);
    let opened = events_of(&ended, "breaker.open");
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0]["failureClass"], "work_failed");
    assert_eq!(opened[0]["issueIds"], json!(["a", "b", "c"]));
    assert_eq!(
        named_events(
            &ended,
            &["issue.dispatched", "breaker.open", "breaker.closed"]
        ),
        [
            "issue.dispatched",
            "issue.dispatched",
            "issue.dispatched",
            "breaker.open",
            "issue.dispatched",
            "breaker.closed",
            "issue.dispatched"
        ]
    );
    let row = &rows_of(&scratch, "coordinator.breaker_open")[0];
    let asks = &scratch.steps_of("d")[0];
    assert!(time(&asks["startedAt"]) >= time(&row["supervision"]["until"]));
    assert_eq!(rows_of(&scratch, "coordinator.breaker_closed").len(), 1);
    assert_eq!(ended.events().last().unwrap()["breakerOpenings"], 1);
    for id in ["a", "b", "c"] {
        assert_eq!(scratch.issue(id)["status"], "open", "{id}");
    }
}

#[test]
fn a_breaker_that_is_turned_off_stays_closed() {
    for (work, verify) in [(FAIL_ABC, "true"), ("true", "exit 1")] {
        let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c", "d"]));
        settings(&scratch, "[breaker]\nfailures = 0\n");
        let ended = scratch.batch(work, verify).end().exits(1);
        assert_eq!(
            named_events(&ended, &["breaker.open", "baseline.checked"]),
            [""; 0]
        );
        assert_eq!(scratch.steps().len(), 4);
    }
}

#[test]
fn a_verification_that_fails_without_any_work_pauses_dispatch() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c", "d", "e"]));
    settings(&scratch, "[breaker]\npause = \"1s\"\n");
    // It fails until the fourth attempt and leaves a file behind.
    let verify = r#"echo x > left.txt; case "$PREMATH_ISSUE_ID" in ''|a|b|c) exit 1;; esac"#;
    let ended = scratch.landing_batch("true", verify).end().exits(1);
    assert_eq!(
        named_events(
            &ended,
            &[
                "issue.dispatched",
                "baseline.checked",
                "breaker.open",
                "breaker.closed"
            ]
        ),
        [
            "issue.dispatched",
            "issue.dispatched",
            "issue.dispatched",
            "baseline.checked",
            "breaker.open",
            "issue.dispatched",
            "breaker.closed",
            "issue.dispatched"
        ]
    );
    assert_eq!(events_of(&ended, "baseline.checked")[0]["passes"], false);
    let opened = &events_of(&ended, "breaker.open")[0];
    assert_eq!(opened["failureClass"], "startup_check_failed");
    assert_eq!(opened["issueIds"], json!(["a", "b", "c"]));
    for id in ["d", "e"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

#[test]
fn a_verification_that_passes_without_any_work_leaves_it_to_the_issues() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c", "d"]));
    let verify = r#"[ -z "$PREMATH_ISSUE_ID" ]"#;
    let ended = scratch.batch("true", verify).end().exits(1);
    assert_eq!(events_of(&ended, "baseline.checked")[0]["passes"], true);
    assert_eq!(events_of(&ended, "breaker.open"), Vec::<Value>::new());
    assert_eq!(scratch.steps().len(), 4);
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c", "d"]));
    scratch
        .worker(0, "w", "true", verify)
        .args(["--max-steps", "9"])
        .end()
        .exits(1)
        .says("which passes without changes");
}

#[test]
fn nothing_left_to_do_does_not_wait_for_the_breaker() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b", "c"]));
    let ended = scratch.batch("exit 1", "true").end().exits(1);
    assert_eq!(events_of(&ended, "breaker.open").len(), 1);
    assert_eq!(scratch.steps().len(), 3);
}

/// The work says that it runs, and ends when it is instructed to.
const WAITS: &str = r#"touch "$HOME/started"; until [ -e "$HOME/go" ]; do sleep 0.02; done"#;

#[test]
fn the_hour_to_stop_lets_what_runs_finish_and_the_code_is_that_of_the_outcomes() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    for arguments in [
        ["--stop-at".to_owned(), at.to_string()],
        ["--max-duration".to_owned(), "1s".to_owned()],
    ] {
        let scratch = if arguments[0] == "--stop-at" {
            &scratch
        } else {
            &Scratch::with_issues(1, &issues(&["a", "b"]))
        };
        let batch = scratch.batch(WAITS, "true").args(&arguments).start();
        let ending = await_event(&batch, "batch.ending");
        await_file(scratch, "started");
        release(scratch, "go");
        let ended = batch.wait().exits(0);
        let by = if arguments[0] == "--stop-at" {
            "stop_at"
        } else {
            "max_duration"
        };
        assert_eq!(ending["endedBy"], by);
        assert_eq!(ended.events().last().unwrap()["endedBy"], by);
        assert_eq!(scratch.issue("a")["status"], "closed");
        assert_eq!(scratch.issue("b"), issue("b"), "it was dispatched");
        let end = &rows_of(scratch, "coordinator.batch_end")[0];
        assert_eq!(end["resultClass"], "completed");
    }
}

#[test]
fn what_does_not_finish_within_the_grace_is_ended_and_uses_up_no_attempt() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    settings(
        &scratch,
        "[coordinator]\ndrain_grace = \"100ms\"\nmax_duration = \"1s\"\n",
    );
    let ended = scratch.batch(WAITS, "true").end().exits(1);
    let summary = ended.events().pop().unwrap();
    assert_eq!(summary["endedBy"], "max_duration", "{summary}");
    assert_eq!(summary["issues"][0]["attempts"], 0);
    assert_eq!(summary["issues"][0]["ending"], "interrupted");
    let row = scratch.issue("a");
    assert_eq!(row["status"], "open");
    assert!(row.get("lease").is_none(), "{row}");
    scratch.no_process_left();
}

#[test]
fn a_worker_alone_stops_at_its_hour() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    let worker = scratch
        .worker(0, "w", WAITS, "true")
        .args(["--max-steps", "9", "--max-duration", "2s"])
        .start();
    await_file(&scratch, "started");
    until(PATIENCE, || {
        let began = scratch
            .home()
            .join("started")
            .metadata()
            .ok()?
            .modified()
            .ok()?;
        (began.elapsed().ok()?.as_secs() >= 3).then_some(())
    });
    release(&scratch, "go");
    worker.wait().exits(0).says("`max_duration` reached");
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.issue("b"), issue("b"), "it was claimed");
}

#[test]
fn a_start_says_when_it_ends() {
    let scratch = Scratch::with_issues(1, &[]);
    let until = ["--stop-at", "2099-11-23T06:00:00Z"];
    let worker = scratch.worker(0, "w", "true", "true").args(until);
    let ended = worker.env("TZ", "CET-1").end().exits(0);
    ended.says("ends at Mon 2099-11-23 07:00 CET\n");
    let ends_at = |ended: &Ended| events_of(ended, "batch.started")[0]["endsAt"].clone();
    let batch = || scratch.batch("true", "true");
    let ended = batch().args(until).end().exits(0);
    assert_eq!(ends_at(&ended), "2099-11-23T06:00:00.000000Z");
    assert_eq!(ends_at(&batch().end().exits(0)), Value::Null);
}

#[test]
fn a_time_that_is_none_is_a_usage_error() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    for (arguments, said) in [
        (
            ["--stop-at", "7am"],
            "invalid time `7am`: expected a time of day such as 07:00",
        ),
        (
            ["--stop-at", "2020-01-01T07:00:00Z"],
            "--stop-at: the time has passed",
        ),
        (
            ["--max-duration", "soon"],
            "--max-duration: invalid duration `soon`",
        ),
    ] {
        let batch = scratch.batch("true", "true").args(arguments);
        batch.end().exits(2).says(said);
    }
    let run = scratch.batch("true", "true").env("TZ", "UTC");
    run.args(["--stop-at", "23:59"]).end().exits(0);
}

#[test]
fn a_machine_without_room_gets_no_work_and_the_batch_reports_it_and_ends() {
    let scratch = Scratch::with_issues(2, &issues(&["a", "b"]));
    settings(
        &scratch,
        "[supervision]\nfree_disk = \"9999999TiB\"\nroom_wait = \"1s\"\n",
    );
    let ended = scratch.batch("true", "true").end().exits(1);
    let short = events_of(&ended, "room.short");
    assert_eq!(short.len(), 1, "it is reported once");
    assert_eq!(short[0]["of"], "disk");
    assert_eq!(ended.events().last().unwrap()["endedBy"], "room");
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    let row = &rows_of(&scratch, "coordinator.room_short")[0];
    assert_eq!(row["failureClasses"], json!(["room_short"]));
    settings(
        &scratch,
        "[supervision]\nfree_disk = 0\nfree_memory = \"9999TiB\"\nroom_wait = \"0s\"\n",
    );
    let worker = scratch.worker(0, "w", "true", "true").end().exits(1);
    worker.says("of memory free");
}

#[test]
fn a_batch_over_its_budget_dispatches_nothing_and_names_the_figures() {
    let scratch = Scratch::with_issues(1, &issues(&["a", "b"]));
    settings(&scratch, "[budget]\nbatch_tokens = 100\nbatch_usd = 2.50\n");
    let first = scratch.batch(WAITS, "true").start();
    await_file(&scratch, "started");
    first.signal(Signal::KILL);
    first.wait();
    scratch.no_process_left();
    // What an earlier run of the batch used counts.
    let start = rows_of(&scratch, "coordinator.batch_start").remove(0);
    let row = json!({
        "schema": 1, "stepKind": start["stepKind"], "stepId": "worker.1.z.1",
        "action": "worker.loop", "resultClass": "completed", "issueId": "z",
        "batchId": start["batchId"], "workerId": "worker.1",
        "startedAt": start["startedAt"], "finishedAt": start["finishedAt"],
        "agent": {
            "adapter": "codex", "calls": 1, "costNanoUsd": 250_000_000,
            "tokens": {"input": 90, "cached": 10, "output": 30},
        },
    });
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(scratch.trajectory_path())
        .unwrap();
    writeln!(file, "{row}").unwrap();
    release(&scratch, "go");
    let ended = scratch.batch(WAITS, "true").end().exits(1);
    let summary = ended.events().pop().unwrap();
    assert_eq!(summary["endedBy"], "budget");
    assert_eq!(summary["providers"][0]["provider"], "codex");
    assert_eq!(summary["providers"][0]["costNanoUsd"], 250_000_000);
    assert_eq!(events_of(&ended, "issue.dispatched"), Vec::<Value>::new());
    let ending = &events_of(&ended, "batch.ending")[0];
    assert_eq!(ending["detail"], "120 of 100 tokens, 0.25 of 2.50 USD");
    let row = &rows_of(&scratch, "coordinator.budget_exceeded")[0];
    assert_eq!(row["failureClasses"], json!(["budget_exceeded"]));
    assert_eq!(row["supervision"]["tokens"], 120);
    assert_eq!(row["supervision"]["tokensBound"], 100);
}

#[test]
fn an_issue_over_its_budget_is_blocked_with_the_figures() {
    let scratch = Scratch::with_issues(1, &issues(&["a"]));
    settings(
        &scratch,
        "[budget]\nissue_time = \"1ms\"\n[backoff]\nexponential_short = \"1ms\"\n",
    );
    // It is ended when its issue's time is up.
    scratch.batch("sleep 600", "true").end().exits(1);
    let row = scratch.issue("a");
    assert_eq!(row["status"], "blocked");
    let notes = row["notes"].as_str().unwrap();
    assert!(
        notes.contains("budget_exceeded after 1 attempt of 1"),
        "{notes}"
    );
    assert!(notes.contains("\nUsed in this batch: "), "{notes}");
    assert!(notes.contains(" ms of 1 ms"), "{notes}");
    assert_eq!(
        scratch.steps()[0]["failureClasses"],
        json!(["budget_exceeded", "gate_timeout"])
    );
}

/// A request to end that comes while the sandbox is being made reaches the
/// command: it is not ended by KILL after its grace.
#[test]
fn a_command_that_is_ended_at_once_ends_by_the_request() {
    let ids: Vec<String> = (0..12).map(|number| format!("a{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let scratch = Scratch::with_issues(1, &issues(&ids));
    settings(
        &scratch,
        "[budget]\nissue_time = \"5ms\"\n[backoff]\nexponential_short = \"1ms\"\n",
    );
    scratch.batch("sleep 600", "true").end().exits(1);
    let steps = scratch.steps();
    assert_eq!(steps.len(), ids.len());
    for step in steps {
        let file = format!("{}.work.json", step["stepId"].as_str().unwrap());
        let file = scratch.root.join("artifacts/ciwitness").join(file);
        let witness: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_ne!(witness["exit"]["signal"], 9, "{witness}");
    }
}
