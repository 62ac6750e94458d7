//! A harness in an entered PID namespace, as in a container: its session leader
//! is outside, so the session id reads as 0.

use premath_tests::{Run, Scratch, binaries, issue, skipped};
use std::path::Path;

/// Returns a run of a script as the first process of a new namespace, with
/// `/proc` as it is asked for; none where this user may make none.
fn inside(scratch: &Scratch, own_proc: bool, script: &str) -> Option<Run> {
    let flags: &[&str] = if rustix::process::geteuid().is_root() {
        &["--pid", "--kill-child"]
    } else {
        &["--user", "--map-root-user", "--pid", "--kill-child"]
    };
    let unshare = || {
        let run = scratch.run(Path::new("unshare")).args(flags);
        let run = if own_proc {
            run.arg("--mount-proc")
        } else {
            run
        };
        run.args(["sh", "-c"])
    };
    let possible = unshare().arg("exit 0").end().code == Some(0);
    possible.then(|| unshare().arg(script))
}

fn batch(scratch: &Scratch) -> String {
    // The shell stays the first process, so that the harness is not.
    format!(
        "{} --worktree {} --work-cmd 'sleep 60 & setsid sleep 60 & echo x > src/x.txt' \
         --verify-cmd true --override-reason tests; exit $?",
        binaries().coordinator.display(),
        scratch.lanes[0].display(),
    )
}

#[test]
fn a_batch_runs_where_its_session_is_led_from_outside() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let Some(run) = inside(&scratch, true, &batch(&scratch)) else {
        return skipped("a batch in a namespace", "`unshare` may make none here");
    };
    let ended = run.end().exits(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(scratch.issue("a")["status"], "closed");
    scratch.no_process_left();
}

#[test]
fn a_harness_that_sees_the_processes_of_another_namespace_starts_nothing() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let Some(run) = inside(&scratch, false, &batch(&scratch)) else {
        return skipped("a batch in a namespace", "`unshare` may make none here");
    };
    run.end()
        .exits(1)
        .says("/proc belongs to another PID namespace");
    assert_eq!(scratch.issue("a")["status"], "open");
}
