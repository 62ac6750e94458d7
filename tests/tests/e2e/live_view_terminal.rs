//! The terminal after the live view, however it ends, and what the view costs.

use super::live_view::{WORK, coordinator, finish, release, restored, started, status, watch};
use premath_tests::{Length, Scratch, Terminal, binaries, issue};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

/// Starts a program that shows the view and panics in a place, when it may.
fn panicking(scratch: &Scratch, place: &str) -> Terminal {
    let probe = binaries().folder().join("premath-probe");
    let root = scratch.root.display().to_string();
    let go = scratch.home().join(place).display().to_string();
    let run = scratch.run(&probe).args(["panic", place, &root, &go]);
    let view = run.on_terminal(80, 24);
    view.shows("q quit");
    assert!(view.is_taken() && !view.is_set_as_before());
    fs::write(go, "").unwrap();
    view
}

#[test]
fn a_panic_restores_the_terminal_before_it_says_what_happened() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut view = panicking(&scratch, "main");
    assert_eq!(view.ends().code(), Some(101));
    restored(&view);
    // It is on the screen that stays.
    view.shows("a panic of the probe");
    // Where another thread panics, the program continues, and its lines are seen.
    let mut view = panicking(&scratch, "thread");
    view.shows("the probe continues");
    assert_eq!(view.ends().code(), Some(0));
    restored(&view);
    view.shows("a panic of the probe");
}

#[test]
fn signals_to_a_coordinator_drain_it_and_restore_its_terminal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 143)] {
        let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
        let mut view = coordinator(&scratch);
        view.shows("lanes: 1 of 1 at work");
        view.signal(signal);
        view.shows("draining");
        release(&scratch, "a");
        assert_eq!(view.ends().code(), Some(code), "{signal:?}");
        restored(&view);
        scratch.no_process_left();
    }
}

#[test]
fn a_view_beside_a_coordinator_that_is_killed_continues_and_restores_its_terminal() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    let mut view = watch(&scratch, 80, 24);
    view.shows("lanes: 1 of 1 at work");
    batch.signal(Signal::KILL);
    batch.wait();
    view.shows("no batch is running; this is the last one");
    assert!(view.is_taken());
    view.types("q");
    assert!(view.ends().success());
    restored(&view);
    scratch.no_process_left();
}

/// Returns how long a process used a processor.
fn used(view: &Terminal) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", view.pid())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = [11, 12]
        .map(|at| fields[at].parse::<u64>().unwrap())
        .iter()
        .sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

/// Returns how much of a processor a view uses in a time, in percent.
fn share(view: &Terminal, during: Duration) -> f64 {
    let (before, began) = (used(view), Instant::now());
    // The time is what is measured.
    std::thread::sleep(during);
    let spent = used(view).saturating_sub(before);
    100.0 * spent.as_secs_f64() / began.elapsed().as_secs_f64()
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn sixteen_lanes_cost_little_and_a_storm_of_resizes_neither_flickers_nor_stays() {
    let ids: Vec<String> = (1..=16).map(|number| format!("i{number:02}")).collect();
    let issues: Vec<Value> = ids.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(16, &issues);
    let batch = scratch.batch(WORK, "true").start();
    ids.iter().for_each(|id| started(&scratch, id));
    let mut view = watch(&scratch, 80, 24);
    view.shows("lanes: 16 of 16 at work");
    // In quick form the machine is busy with other tests.
    let most_used = Length::asked("the share of a processor of a view").pick(10, 3) as f64;
    let idle = share(&view, Duration::from_secs(5));
    assert!(idle <= most_used, "{idle:.1} % of a processor");
    // The size is the same each time: nothing is cleared.
    let before = view.printed();
    let stormed = used(&view);
    let began = Instant::now();
    for number in 1..=200 {
        view.signal(Signal::WINCH);
        let due = Duration::from_millis(10) * number;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    let stormed = used(&view).saturating_sub(stormed);
    let printed = view.printed()[before.len()..].to_owned();
    let clears = [count(&printed, "\u{1b}[2J"), count(&printed, "\u{1b}[J")];
    assert_eq!(clears, [0, 0], "{printed:?}");
    // A picture at most each tenth of a second: a byte for each cell, and some colours.
    let pictures = usize::try_from(began.elapsed().as_millis() / 100).unwrap() + 2;
    let most = pictures * 80 * 24 * 3 / 2;
    assert!(printed.len() < most, "{} bytes", printed.len());
    let after = share(&view, Duration::from_secs(5));
    assert!(after <= most_used, "{after:.1} % of a processor");
    // Each picture is one update of the terminal.
    let all = view.printed();
    let updates = ["\u{1b}[?2026h", "\u{1b}[?2026l"].map(|mark| count(&all, mark));
    assert!(updates[0].abs_diff(updates[1]) <= 1, "{updates:?}");
    // Sizes that change, down to one that is too small, and back.
    for number in 0..100 {
        let (columns, rows) = [(80, 24), (120, 40), (40, 10), (200, 60)][number % 4];
        view.resize(columns, rows);
        view.signal(Signal::WINCH);
    }
    view.resize(80, 24);
    view.signal(Signal::WINCH);
    view.shows("lanes: 16 of 16 at work");
    view.shows("q quit");
    let last = share(&view, Duration::from_secs(5));
    assert!(last <= most_used, "{last:.1} % of a processor");
    let figures = format!(
        "16 lanes: {idle:.1} % idle, {stormed:?} for 200 signals ({} bytes), {after:.1} % and \
         {last:.1} % afterwards",
        printed.len()
    );
    writeln!(std::io::stdout(), "{figures}").unwrap();
    view.types("q");
    assert!(view.ends().success());
    restored(&view);
    finish(&scratch, batch, 0);
}

#[test]
fn a_view_that_is_killed_leaves_the_batch_running() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch(WORK, "true").start();
    started(&scratch, "a");
    let mut view = watch(&scratch, 80, 24);
    view.signal(Signal::KILL);
    view.ends();
    assert_eq!(status(&scratch)["running"], true);
    finish(&scratch, batch, 0);
}
