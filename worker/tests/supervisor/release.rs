//! What a command may release before it is killed.

use crate::lane::{Lane, eventually, gone, on_lane, pids};
use harness_worker::supervisor::ExitCause;
use std::time::{Duration, Instant};

/// Longer than what is asked to end takes for that.
const LONG: Duration = Duration::from_secs(60);

/// A shell that writes a line when it is asked to end.
const RELEASES: &str = "sh -c 'trap \"echo released; exit\" TERM; echo $$ >pids; \
                        while :; do sleep 0.01; done'";

#[test]
fn a_command_that_is_killed_at_once_may_release_what_it_holds() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell(RELEASES);
        spec.release = LONG;
        let file = lane.path("pids");
        let mut running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        running.stop(true).await.unwrap();
        let exit = running.wait().await.unwrap();
        drop(running);
        assert_eq!(exit.cause, ExitCause::Stopped);
        assert_eq!(exit.leaked, 0);
        assert_eq!(lane.read("out"), "released\n");
        assert!(gone(shell));
    });
}

#[test]
fn what_a_main_process_that_was_killed_left_may_release_it() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell(&format!(
            "{RELEASES} & while ! [ -s pids ]; do sleep 0.01; done; kill -KILL $$"
        ));
        spec.release = LONG;
        let exit = lane.run(spec).await;
        assert_eq!(exit.signal, Some(9));
        assert_eq!(exit.leaked, 0);
        assert_eq!(lane.read("out"), "released\n");
    });
}

#[test]
fn what_left_the_group_may_release_it_too() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell(&format!(
            "setsid {RELEASES} & while ! [ -s pids ]; do sleep 0.01; done"
        ));
        spec.release = LONG;
        let exit = lane.run(spec).await;
        assert!(exit.succeeded());
        assert_eq!(exit.leaked, 0);
        assert_eq!(lane.read("out"), "released\n");
    });
}

#[test]
fn what_does_not_end_is_killed_after_its_time() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("trap '' TERM; echo $$ >pids; while :; do sleep 1000; done");
        spec.release = Duration::from_millis(300);
        let file = lane.path("pids");
        let mut running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        let began = Instant::now();
        running.stop(true).await.unwrap();
        let exit = running.wait().await.unwrap();
        assert_eq!(exit.signal, Some(9));
        assert!(began.elapsed() >= Duration::from_millis(300));
        assert!(gone(shell));
    });
}

#[test]
fn a_command_without_grace_may_release_what_it_holds() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell(RELEASES);
        spec.grace = Duration::ZERO;
        spec.release = LONG;
        let file = lane.path("pids");
        let mut running = lane.begin(spec).await.unwrap();
        pids(&file, 1);
        running.stop(false).await.unwrap();
        let exit = running.wait().await.unwrap();
        drop(running);
        assert_eq!(exit.cause, ExitCause::Stopped);
        assert_eq!(lane.read("out"), "released\n");
    });
}

#[test]
fn what_was_asked_to_end_is_not_asked_again() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec =
            lane.shell("trap 'echo asked >>asked' TERM; echo >ready; while :; do sleep 0.01; done");
        spec.grace = LONG;
        spec.release = Duration::from_millis(300);
        let [ready, asked] = ["ready", "asked"].map(|name| lane.path(name));
        let mut running = lane.begin(spec).await.unwrap();
        eventually("the command is ready", || ready.exists().then_some(()));
        running.stop(false).await.unwrap();
        eventually("the command was asked", || asked.exists().then_some(()));
        running.stop(true).await.unwrap();
        let exit = running.wait().await.unwrap();
        drop(running);
        assert_eq!(exit.signal, Some(9));
        assert_eq!(std::fs::read_to_string(asked).unwrap(), "asked\n");
    });
}

#[test]
fn what_is_printed_while_it_is_released_is_read() {
    on_lane(async {
        let mut lane = Lane::new();
        // More than a pipe holds.
        let mut spec = lane.shell(
            "sh -c 'trap \"head -c 300000 /dev/zero; exit\" TERM; echo $$ >pids; \
             while :; do sleep 0.01; done'",
        );
        spec.release = LONG;
        let file = lane.path("pids");
        let mut running = lane.begin(spec).await.unwrap();
        pids(&file, 1);
        running.stop(true).await.unwrap();
        let exit = running.wait().await.unwrap();
        drop(running);
        assert_eq!(exit.stdout.bytes, 300_000);
    });
}
