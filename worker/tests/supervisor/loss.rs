//! A supervisor that is lost, stopped or replaced.

use crate::lane::{Lane, PATIENCE, gone, on_lane, pids, signal, started};
use harness_worker::supervisor::{MODE, Supervisor, SupervisorError};
use premath_kernel::failure::FailureClass;
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Shorter than a person would wait, longer than a busy machine takes.
const SHORT: Duration = Duration::from_millis(700);

#[test]
fn a_lost_supervisor_is_reported_and_its_command_killed() {
    on_lane(async {
        let mut lane = Lane::new();
        let supervisor = lane.supervisor.pid();
        let file = lane.path("pids");
        let spec = lane.shell("echo $$ >pids; sleep 1000; true");
        let mut running = lane.begin(spec).await.unwrap();
        started(&mut running).await;
        let shell = pids(&file, 1)[0];
        signal(supervisor, Signal::KILL);
        let lost = running.wait().await.unwrap_err();
        drop(running);
        assert_eq!(lost.class(), FailureClass::SupervisorLost);
        assert!(gone(shell));
        let spec = lane.shell("true");
        let again = lane.begin(spec).await.map(drop).unwrap_err();
        assert_eq!(again.class(), FailureClass::SupervisorLost);
    });
}

/// A lane whose patience is short.
fn short_lane() -> Lane {
    let Lane { folder, supervisor } = Lane::new();
    let supervisor = supervisor.with_patience(SHORT);
    Lane { folder, supervisor }
}

/// Whether nothing is left of a process, not even its number. A zombie may
/// belong to another parent, which the sweep does not reap.
fn reaped(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_stopped_supervisor_is_abandoned_after_limit_grace_and_patience() {
    on_lane(async {
        let mut lane = short_lane();
        let supervisor = lane.supervisor.pid().cast_signed();
        let file = lane.path("pids");
        let mut spec = lane.shell(
            "trap '' TERM; echo $$ >>pids; setsid sleep 1000 & echo $! >>pids
             kill -STOP $PPID; while :; do sleep 0.1; done",
        );
        spec.limit = Duration::from_millis(200);
        spec.grace = Duration::from_millis(100);
        let began = Instant::now();
        let mut running = lane.begin(spec).await.unwrap();
        // A wait that is cut short again and again does not begin again.
        let lost = loop {
            tokio::select! {
                exit = running.wait() => break exit.unwrap_err(),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            assert!(began.elapsed() < PATIENCE, "it is never given up");
        };
        assert!(began.elapsed() >= SHORT + Duration::from_millis(300));
        assert_eq!(lost.class(), FailureClass::SupervisorLost);
        assert!(matches!(lost, SupervisorError::Lost { survivors: 0, .. }));
        running.stop(true).await.unwrap_err();
        running.wait().await.unwrap_err();
        drop(running);
        assert!(lane.supervisor.is_lost());
        assert!(reaped(supervisor));
        assert!(pids(&file, 2).into_iter().all(reaped));
    });
}

#[test]
fn a_stop_does_not_wait_for_a_stopped_supervisor() {
    for now in [true, false] {
        on_lane(async {
            let mut lane = short_lane();
            let file = lane.path("pids");
            let mut spec = lane.shell("kill -STOP $PPID; echo $$ >pids; sleep 1000; true");
            spec.grace = Duration::from_millis(100);
            let mut running = lane.begin(spec).await.unwrap();
            let shell = pids(&file, 1)[0];
            let asked = Instant::now();
            running.stop(now).await.unwrap();
            running.wait().await.unwrap_err();
            assert!(asked.elapsed() >= SHORT && asked.elapsed() < PATIENCE);
            assert!(reaped(shell));
        });
    }
}

#[test]
fn a_command_abandoned_with_its_supervisor_stopped_does_not_hold_the_next_up() {
    on_lane(async {
        let mut lane = short_lane();
        let file = lane.path("pids");
        let spec = lane.shell("kill -STOP $PPID; echo $$ >pids; sleep 1000; true");
        let running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        drop(running);
        let spec = lane.shell("true");
        assert!(lane.begin(spec).await.is_err());
        assert!(lane.supervisor.is_lost() && reaped(shell));
    });
}

#[test]
fn an_exit_that_waited_for_a_late_lane_is_not_a_loss() {
    on_lane(async {
        let mut lane = short_lane();
        let mut spec = lane.shell("exit 6");
        spec.limit = Duration::from_millis(200);
        spec.grace = Duration::ZERO;
        let mut running = lane.begin(spec.clone()).await.unwrap();
        // Nothing runs here meanwhile: a harness that was stopped.
        std::thread::sleep(SHORT + Duration::from_millis(400));
        assert_eq!(running.wait().await.unwrap().code, Some(6));
        drop(running);
        drop(lane.begin(spec.clone()).await.unwrap());
        std::thread::sleep(SHORT + Duration::from_millis(400));
        assert_eq!(lane.run(spec).await.code, Some(6));
    });
}

#[test]
fn what_a_killed_supervisor_leaves_is_killed_and_reaped() {
    for (name, command) in [
        (
            "out of the group",
            "setsid sleep 1000 & echo $! >>pids; kill -9 $PPID",
        ),
        (
            "out of the group, and its parents gone",
            "(setsid sh -c 'sleep 1000 & echo $! >>pids'); kill -9 $PPID",
        ),
        (
            "without its environment, and its parents gone",
            "(env -i setsid sh -c 'sleep 1000 & echo $! >>pids'); kill -9 $PPID",
        ),
        (
            "below one without",
            "env -i setsid sh -c 'setsid sleep 1000 & echo $! >>pids; wait' &
             while ! [ -s pids ]; do sleep 0.01; done; kill -9 $PPID",
        ),
        (
            "stopped as well",
            "setsid sleep 1000 & echo $! >>pids; kill -STOP $!; kill -9 $PPID; sleep 1000",
        ),
    ] {
        on_lane(async {
            let mut lane = Lane::new();
            let spec = lane.shell(command);
            let mut running = lane.begin(spec).await.unwrap();
            let lost = running.wait().await.unwrap_err();
            drop(running);
            assert!(
                matches!(lost, SupervisorError::Lost { survivors: 0, .. }),
                "{name}: {lost:?}"
            );
            let left = pids(&lane.path("pids"), 1);
            assert!(left.into_iter().all(reaped), "{name}");
        });
    }
}

#[test]
fn a_loss_touches_neither_other_lanes_nor_other_children() {
    on_lane(async {
        let mut other = Lane::new();
        let (go, file) = (other.path("go"), other.path("pids"));
        let spec = other.shell(
            "setsid sh -c 'echo $$ >>pids; exec sleep 1000' &
             env -i /usr/bin/setsid /bin/sh -c 'echo $$ >>pids; exec sleep 1000' &
             while ! [ -e go ]; do sleep 0.01; done; exit 4",
        );
        let mut running = other.begin(spec).await.unwrap();
        let left = pids(&file, 2);
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();

        let mut lane = Lane::new();
        let spec = lane.shell("kill -9 $PPID; sleep 1000");
        lane.begin(spec).await.unwrap().wait().await.unwrap_err();

        assert!(!left.iter().any(|pid| gone(*pid)));
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::write(go, "").unwrap();
        let exit = running.wait().await.unwrap();
        assert_eq!((exit.code, exit.leaked), (Some(4), 2));
    });
}

#[test]
fn a_lost_supervisor_is_replaced_in_place() {
    on_lane(async {
        let mut lane = short_lane();
        for signal in ["KILL", "STOP"] {
            let before = lane.supervisor.pid();
            let mut spec = lane.shell(&format!("kill -{signal} $PPID; sleep 1000"));
            spec.limit = Duration::from_millis(100);
            spec.grace = Duration::ZERO;
            lane.begin(spec).await.unwrap().wait().await.unwrap_err();
            assert!(lane.supervisor.is_lost());
            let lock = File::create(lane.path(signal)).unwrap();
            lane.supervisor.restart(lock.into()).unwrap();
            assert!(!lane.supervisor.is_lost());
            assert_ne!(lane.supervisor.pid(), before);
            let spec = lane.shell("exit 3");
            assert_eq!(lane.run(spec).await.code, Some(3));
        }
    });
}

#[test]
fn a_restart_ends_a_supervisor_that_was_not_lost() {
    on_lane(async {
        let mut lane = Lane::new();
        let before = lane.supervisor.pid().cast_signed();
        let file = lane.path("pids");
        let spec = lane.shell("echo $$ >pids; sleep 1000; true");
        let running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        drop(running);
        let lock = File::create(lane.path("another")).unwrap();
        lane.supervisor.restart(lock.into()).unwrap();
        assert!(reaped(before) && gone(shell));
        let spec = lane.shell("exit 3");
        assert_eq!(lane.run(spec).await.code, Some(3));
    });
}

#[test]
fn releasing_a_stopped_supervisor_ends_it_and_what_runs() {
    on_lane(async {
        let mut lane = Lane::new();
        let supervisor = lane.supervisor.pid().cast_signed();
        let file = lane.path("pids");
        // Stopped again whenever it is let continue.
        let spec = lane.shell(
            "trap '' TERM; echo $$ >>pids; setsid sleep 1000 & echo $! >>pids
             while :; do kill -STOP $PPID; done",
        );
        let running = lane.begin(spec).await.unwrap();
        let all = pids(&file, 2);
        drop(running);
        let began = Instant::now();
        drop(lane);
        assert!(began.elapsed() < Duration::from_secs(9));
        assert!(gone(supervisor) && all.into_iter().all(gone));
    });
}

#[test]
fn a_supervisor_that_cannot_start_reports_it() {
    let lock = tempfile::tempfile().unwrap();
    let error = Supervisor::start(Path::new("/no/such/binary"), lock.into()).unwrap_err();
    assert_eq!(error.class(), FailureClass::ExecutorUnavailable);
}

#[test]
fn the_hidden_mode_refuses_to_run_by_hand() {
    let status = Command::new(env!("CARGO_BIN_EXE_harness-worker"))
        .arg(MODE)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
}
