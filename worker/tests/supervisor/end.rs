//! How a command and what it left are ended.

use crate::lane::{Lane, eventually, gone, on_lane, pids, signal, started};
use harness_worker::supervisor::ExitCause;
use rustix::process::Signal;
use std::fs::{self};
use std::time::Duration;

#[test]
fn a_hung_command_is_ended_at_its_limit() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("echo before; sleep 1000; echo after");
        spec.limit = Duration::from_millis(600);
        let exit = lane.run(spec).await;
        assert_eq!(exit.cause, ExitCause::Limit);
        assert_eq!(exit.signal, Some(15));
        assert!(exit.duration_ms >= 600);
        assert_eq!(exit.leaked, 0, "the group heard it and ended");
        assert_eq!(lane.read("out"), "before\n");
    });
}

#[test]
fn a_command_that_ignores_the_request_is_killed_after_its_grace() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("trap '' TERM; echo $$ >pids; sleep 1000 & echo $! >>pids; wait");
        spec.limit = Duration::from_millis(600);
        spec.grace = Duration::from_millis(100);
        let exit = lane.run(spec).await;
        assert_eq!(exit.cause, ExitCause::Limit);
        assert_eq!(exit.signal, Some(9));
        assert!(exit.duration_ms >= 700);
        assert_eq!(exit.leaked, 1);
        assert!(pids(&lane.path("pids"), 2).into_iter().all(gone));
    });
}

#[test]
fn the_grace_is_the_whole_groups() {
    on_lane(async {
        let mut lane = Lane::new();
        // The shell dies of the signal; the one below it has something to save,
        // and takes longer for it than a finished command's rest would get.
        let spec = lane.shell(
            "sh -c 'trap \"sleep 0.5; echo saved; exit\" TERM; echo >ready; \
             while :; do sleep 0.01; done'; true",
        );
        let ready = lane.path("ready");
        let mut running = lane.begin(spec).await.unwrap();
        eventually("the command is ready", || ready.exists().then_some(()));
        running.stop(false).await.unwrap();
        let exit = running.wait().await.unwrap();
        drop(running);
        assert_eq!(exit.cause, ExitCause::Stopped);
        assert_eq!(exit.leaked, 0);
        assert_eq!(lane.read("out"), "saved\n");
    });
}

#[test]
fn a_stop_without_grace_kills_at_once() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("trap '' TERM; echo $$ >pids; while :; do sleep 1000; done");
        let file = lane.path("pids");
        let mut running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        running.stop(false).await.unwrap();
        running.stop(true).await.unwrap();
        let exit = running.wait().await.unwrap();
        assert_eq!(exit.cause, ExitCause::Stopped);
        assert_eq!(exit.signal, Some(9));
        assert!(gone(shell));
        assert_eq!(running.wait().await.unwrap(), exit, "the same again");
        running.stop(true).await.unwrap();
    });
}

#[test]
fn what_a_command_leaves_behind_is_killed_and_counted() {
    for (name, command) in [
        ("in the background", "sleep 1000 & echo $! >pids"),
        (
            "in a session of its own, without our pipes",
            "setsid sh -c 'echo $$ >pids; exec sleep 1000' >/dev/null 2>&1 </dev/null &
             while ! [ -s pids ]; do sleep 0.01; done",
        ),
        (
            "forked twice",
            "(setsid sh -c 'sleep 1000 & echo $! >pids'); true",
        ),
    ] {
        on_lane(async {
            let mut lane = Lane::new();
            let spec = lane.shell(command);
            let exit = lane.run(spec).await;
            assert!(exit.succeeded(), "{name}");
            assert_eq!(exit.leaked, 1, "{name}");
            assert!(pids(&lane.path("pids"), 1).into_iter().all(gone), "{name}");
        });
    }
}

#[test]
fn a_tree_of_what_was_left_is_killed_to_its_leaves() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell(
            "touch pids
             setsid sh -c 'echo $$ >>pids
                 setsid sh -c \"echo \\$\\$ >>pids; sleep 1000 & echo \\$! >>pids; wait\" &
                 wait' &
             while [ \"$(wc -l <pids)\" != 3 ]; do sleep 0.01; done",
        );
        let exit = lane.run(spec).await;
        assert_eq!(exit.leaked, 3);
        assert!(pids(&lane.path("pids"), 3).into_iter().all(gone));
    });
}

#[test]
fn a_last_writer_may_finish_its_lines() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane
            .shell("(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; echo late) & echo early");
        let exit = lane.run(spec).await;
        assert_eq!(exit.leaked, 0);
        assert_eq!(lane.read("out"), "early\nlate\n");
    });
}

#[test]
fn a_writer_without_end_does_not_block() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("yes & true");
        spec.output_cap = 1000;
        let exit = lane.run(spec).await;
        assert!(exit.succeeded());
        assert_eq!(exit.leaked, 1);
    });
}

#[test]
fn a_abandoned_command_is_dead_before_the_next_begins() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("echo $$ >pids; sleep 1000; true");
        let file = lane.path("pids");
        let running = lane.begin(spec).await.unwrap();
        let first = pids(&file, 1)[0];
        drop(running);
        let spec = lane.shell(&format!("kill -0 {first} 2>/dev/null || echo dead"));
        assert!(lane.run(spec).await.succeeded());
        assert_eq!(lane.read("out"), "dead\n");
    });
}

#[test]
fn waiting_can_be_cut_short_and_taken_up_again() {
    on_lane(async {
        let mut lane = Lane::new();
        let go = lane.path("go");
        let spec = lane.shell("while ! [ -e go ]; do sleep 0.01; done; exit 5");
        let mut running = lane.begin(spec).await.unwrap();
        started(&mut running).await;
        fs::write(go, "").unwrap();
        assert_eq!(running.wait().await.unwrap().code, Some(5));
    });
}

#[test]
fn signals_to_the_supervisor_do_not_end_it() {
    on_lane(async {
        let mut lane = Lane::new();
        let supervisor = lane.supervisor.pid();
        let (go, file) = (lane.path("go"), lane.path("pids"));
        let spec = lane.shell("echo $$ >pids; while ! [ -e go ]; do sleep 0.01; done; exit 4");
        let mut running = lane.begin(spec).await.unwrap();
        pids(&file, 1);
        for one in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
            signal(supervisor, one);
        }
        fs::write(go, "").unwrap();
        assert_eq!(running.wait().await.unwrap().code, Some(4));
    });
}
