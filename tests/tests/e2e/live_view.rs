//! The live view on a terminal: `premath watch`, and a coordinator that shows it.

use super::misbehaviour::titled;
use premath_tests::{
    NO_STARTUP, PATIENCE, Run, Running, Scratch, Terminal, binaries, issue, until,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// The work says that it runs and prints something, and ends when it may.
pub(super) const WORK: &str = r#"echo x > "src/$PREMATH_ISSUE_ID.txt"; echo "work on $PREMATH_ISSUE_ID begins"
touch "$HOME/started-$PREMATH_ISSUE_ID"; [ ! -e "$HOME/fail-$PREMATH_ISSUE_ID" ] || exit 1
until [ -e "$HOME/go" ] || [ -e "$HOME/go-$PREMATH_ISSUE_ID" ]; do sleep 0.05; done"#;

/// A title that would name the window, clear the screen and turn the line.
const HOSTILE: &str = "evil \u{1b}]0;forged\u{7}\u{1b}[2J\u{202e}drow \u{9b}31m";

pub(super) fn watch(scratch: &Scratch, columns: u16, rows: u16) -> Terminal {
    let terminal = scratch.premath(["watch"]).on_terminal(columns, rows);
    terminal.shows("q quit");
    terminal
}

pub(super) fn started(scratch: &Scratch, id: &str) {
    let started = scratch.home().join(format!("started-{id}"));
    until(PATIENCE, || started.exists().then_some(())).expect("the work runs");
}

pub(super) fn release(scratch: &Scratch, id: &str) {
    fs::write(scratch.home().join(format!("go-{id}")), "").unwrap();
}

pub(super) fn finish(scratch: &Scratch, batch: Running, code: i32) {
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait().exits(code);
    scratch.no_process_left();
}

pub(super) fn status(scratch: &Scratch) -> Value {
    scratch.premath(["status", "--json"]).end().exits(0).json()
}

/// Asserts that a terminal is as it was before the view.
#[track_caller]
pub(super) fn restored(terminal: &Terminal) {
    assert!(terminal.is_set_as_before(), "{:?}", terminal.printed());
    assert!(!terminal.is_taken(), "{:?}", terminal.printed());
    assert!(!terminal.hides_cursor(), "{:?}", terminal.printed());
}

#[test]
fn lanes_appear_keys_pause_and_resume_and_q_leaves_the_batch_running() {
    let issues = [titled("a", HOSTILE, 0), issue("b"), issue("c"), issue("d")];
    let scratch = Scratch::with_issues(2, &issues);
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    started(&scratch, "b");
    let mut view = watch(&scratch, 80, 24);
    view.shows("lanes: 2 of 2 at work");
    view.shows("worker.1");
    view.shows("worker.2");
    view.shows("evil \\u{1b}]0;forged");
    assert!(view.is_taken());
    view.types("p");
    view.shows("PAUSED");
    view.shows("no new attempts start until");
    let pauses = status(&scratch)["batches"][0]["pauses"].clone();
    assert_eq!(pauses[0]["kind"], "operator");
    view.types("p");
    view.shows("already paused");
    view.types("r");
    until(PATIENCE, || {
        let seen = view.rows();
        (!seen.iter().any(|row| row.contains("PAUSED"))).then_some(())
    })
    .expect("the pause is over");
    // What the lane prints.
    view.types("\r");
    view.shows("work on a begins");
    view.shows("following");
    view.types("/nothing\r");
    view.shows("refused: no line has: nothing");
    view.types("q");
    view.shows("lanes: 2 of 2 at work");
    view.resize(120, 40);
    view.shows("+/- priority");
    view.types("q");
    assert!(view.ends().success());
    restored(&view);
    let printed = view.printed();
    for forbidden in ["\u{1b}]", "\u{202e}", "\u{9b}", "\u{7}"] {
        assert!(!printed.contains(forbidden), "{forbidden:?} in {printed:?}");
    }
    assert_eq!(status(&scratch)["running"], true);
    finish(&scratch, batch, 0);
}

#[test]
fn an_issue_is_cancelled_after_a_question_reopened_with_a_note_and_ranked() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    let mut view = watch(&scratch, 100, 30);
    view.shows("lanes: 1 of 1 at work");
    view.types("c");
    view.shows("cancel a on worker.1?");
    view.types("n");
    view.types("c");
    view.types("y");
    view.shows("it is deferred");
    assert_eq!(scratch.issue("a")["status"], "deferred");
    started(&scratch, "b");
    view.shows("ended last: 1 attempts");
    view.types("\to");
    view.shows("reopen a; note for the next attempt:");
    view.types("begin with the parser\r");
    until(PATIENCE, || {
        (scratch.issue("a")["status"] == "open").then_some(())
    })
    .expect("the issue is open again");
    let notes = scratch.issue("a")["notes"].clone();
    assert!(
        notes.as_str().unwrap().contains("begin with the parser"),
        "{notes}"
    );
    view.types("P");
    view.shows("issue and priority");
    view.types("\u{1b}");
    // The selected issue is in the question already.
    view.types("P");
    view.shows("0 (first) to 4: a");
    view.types("0\r");
    view.shows("the priority of a is 0, and was");
    assert_eq!(scratch.issue("a")["priority"], 0);
    view.types("+");
    view.shows("refused: the priority of a is 0");
    view.types("-");
    view.shows("the priority of a is 1, and was 0");
    view.types("q");
    assert!(view.ends().success());
    finish(&scratch, batch, 0);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_signal_ends_the_view_and_restores_the_terminal() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut view = watch(&scratch, 80, 24);
        assert!(view.is_taken());
        view.signal(signal);
        assert!(view.ends().success(), "{signal:?}");
        restored(&view);
    }
    let mut view = watch(&scratch, 80, 24);
    // As the terminal sends it.
    view.types("\u{3}");
    assert!(view.ends().success());
    restored(&view);
}

#[test]
fn a_view_whose_terminal_is_gone_ends() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut view = watch(&scratch, 80, 24);
    view.hangs_up();
    view.ends();
    scratch.no_process_left();
}

#[test]
fn a_stopped_view_restores_the_terminal_and_takes_it_again() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut view = watch(&scratch, 80, 24);
    view.signal(Signal::TSTP);
    until(PATIENCE, || (!view.is_taken()).then_some(())).expect("the terminal is restored");
    restored(&view);
    let stat = format!("/proc/{}/stat", view.pid());
    until(PATIENCE, || {
        let stat = fs::read_to_string(&stat).unwrap();
        stat.contains(") T ").then_some(())
    })
    .expect("it is stopped");
    view.signal(Signal::CONT);
    until(PATIENCE, || view.is_taken().then_some(())).expect("the terminal is taken again");
    view.shows("q quit");
    view.types("q");
    assert!(view.ends().success());
    restored(&view);
}

#[test]
fn a_view_without_a_batch_names_the_next_command_and_shows_one_that_begins() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut view = watch(&scratch, 80, 24);
    view.shows("no batch is running, and none ran before");
    view.shows("start one: harness-coordinator");
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    view.shows("lanes: 1 of 1 at work");
    release(&scratch, "a");
    batch.wait().exits(0);
    view.shows("ended with exit code 0");
    view.shows("no batch is running; this is the last one");
    view.shows("ended last: 1 attempts");
    view.types("p");
    view.shows("refused: no batch is running");
    view.types("q");
    assert!(view.ends().success());
}

#[test]
fn without_a_terminal_an_error_names_the_command_for_lines() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let refused = scratch.premath(["watch"]).end().exits(2);
    assert!(
        refused.stderr.contains("premath status --watch"),
        "{}",
        refused.stderr
    );
    let mut dumb = scratch
        .premath(["watch"])
        .env("TERM", "dumb")
        .on_terminal(80, 24);
    assert_eq!(dumb.ends().code(), Some(2));
    assert!(!dumb.printed().contains('\u{1b}'), "{:?}", dumb.printed());
}

/// A run of the coordinator that prints for a person.
fn batch_for_a_person(scratch: &Scratch) -> Run {
    scratch
        .run(&binaries().coordinator)
        .args(["--override-reason", "test", "--landing", "none"])
        .args(["--work-cmd", WORK, "--verify-cmd", "true"])
        .args(NO_STARTUP)
        .arg("--worktree")
        .arg(&scratch.lanes[0])
}

/// A coordinator on a terminal, whose work waits.
pub(super) fn coordinator(scratch: &Scratch) -> Terminal {
    let terminal = batch_for_a_person(scratch).on_terminal(100, 30);
    started(scratch, "a");
    terminal
}

#[test]
fn a_coordinator_on_a_terminal_shows_the_view_and_its_lines_after_it() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let mut view = coordinator(&scratch);
    view.shows("lanes: 1 of 1 at work");
    assert!(view.is_taken());
    // The batch answers its own process.
    view.types("p");
    view.shows("PAUSED");
    view.types("r");
    view.types("q");
    view.shows("the batch continues; `premath watch` shows it again");
    restored(&view);
    view.shows("worker.1 started a");
    release(&scratch, "a");
    view.shows("worker.1 a closed after");
    release(&scratch, "b");
    assert_eq!(view.ends().code(), Some(0));
    view.shows("exit code 0");
    scratch.no_process_left();
}

#[test]
fn the_report_follows_a_view_that_stayed_to_the_end() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut view = coordinator(&scratch);
    view.shows("lanes: 1 of 1 at work");
    release(&scratch, "a");
    assert_eq!(view.ends().code(), Some(0));
    restored(&view);
    let seen = view.rows().join("\n");
    for line in [
        "worker.1 started a",
        "worker.1 a closed after",
        "exit code 0",
    ] {
        assert!(seen.contains(line), "{line} in {seen}");
    }
    scratch.no_process_left();
}

#[test]
fn ctrl_c_drains_a_batch_whose_view_is_shown() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let mut view = coordinator(&scratch);
    view.shows("lanes: 1 of 1 at work");
    view.types("\u{3}");
    view.shows("draining");
    assert!(view.is_taken());
    release(&scratch, "a");
    assert_eq!(view.ends().code(), Some(130));
    restored(&view);
    assert_eq!(scratch.issue("b")["status"], "open");
    scratch.no_process_left();
}

#[test]
fn lines_are_printed_where_they_are_asked_for() {
    for (flags, variable) in [
        (&["--plain"][..], None),
        (&["--quiet"][..], None),
        (&["--json"][..], None),
        (&[][..], Some(("NO_COLOR", "1"))),
        (&[][..], Some(("TERM", "dumb"))),
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        fs::write(scratch.home().join("go"), "").unwrap();
        let run = batch_for_a_person(&scratch).args(flags);
        let run = variable
            .into_iter()
            .fold(run, |run, (name, value)| run.env(name, value));
        let mut lines = run.on_terminal(100, 30);
        assert_eq!(lines.ends().code(), Some(0), "{flags:?}");
        assert!(
            !lines.printed().contains('\u{1b}'),
            "{flags:?} {:?}",
            lines.printed()
        );
    }
}

#[test]
fn no_colour_is_printed_where_none_is_wanted() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    let view = |variables: &[(&str, &str)]| {
        let run = variables
            .iter()
            .fold(scratch.premath(["watch"]), |run, (name, value)| {
                run.env(name, value)
            });
        let mut view = run.on_terminal(80, 24);
        view.shows("worker.1");
        view.types("b");
        view.shows("refused: no other batch runs");
        view.types("q");
        view.ends();
        view.printed()
    };
    let coloured = |printed: &str| {
        let sequences = printed.split("\u{1b}[").skip(1);
        let of_colour = sequences.filter_map(|rest| rest.split_once('m'));
        let codes = of_colour.flat_map(|(codes, _)| codes.split(';').map(str::to_owned));
        let is_colour = |code: &String| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107));
        codes.filter(is_colour).count()
    };
    assert_eq!(coloured(&view(&[("NO_COLOR", "1")])), 0);
    assert!(coloured(&view(&[])) > 0);
    finish(&scratch, batch, 0);
}
