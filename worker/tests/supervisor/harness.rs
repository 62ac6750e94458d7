//! What is left when the harness goes away.

use crate::lane::{Lane, eventually, free, gone, in_folder, on_lane, pids, start};
use harness_worker::supervisor::ExitCause;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_closed_socket_ends_everything_and_only_then_frees_the_lock() {
    on_lane(async {
        let mut lane = Lane::new();
        let supervisor = lane.supervisor.pid().cast_signed();
        let (lock, file) = (lane.path("lock"), lane.path("pids"));
        let spec = lane.shell(
            "trap '' TERM; echo $$ >>pids; setsid sleep 1000 & echo kept; echo $! >>pids; wait",
        );
        let running = lane.begin(spec).await.unwrap();
        let all = pids(&file, 2);
        assert!(!free(&lock));
        // No request to stop goes out: what remains is the end of the socket.
        std::mem::forget(running);
        let Lane {
            folder,
            supervisor: handle,
        } = lane;
        drop(handle);
        assert!(gone(supervisor), "the drop waits for it");
        assert!(all.into_iter().all(gone));
        assert!(free(&lock));
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, "kept\n");
    });
}

/// The variable that makes [`a_harness_to_be_killed`] one.
const FOLDER: &str = "PREMATH_TEST_FOLDER";

#[test]
#[ignore = "the other process of the test below"]
fn a_harness_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    on_lane(async {
        let mut supervisor = start(&folder);
        fs::write(folder.join("supervisor"), format!("{}\n", supervisor.pid())).unwrap();
        let spec = in_folder(
            &folder,
            "trap '' TERM; (setsid sleep 1000 & echo $! >>pids); sleep 1000 & echo $! >>pids
             echo $$ >>pids; yes",
        );
        let out = File::create(folder.join("out")).unwrap();
        let err = File::create(folder.join("err")).unwrap();
        let mut running = supervisor.begin(spec, out, err).await.unwrap();
        running.wait().await.unwrap();
    });
}

#[test]
fn a_killed_harness_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "harness::a_harness_to_be_killed"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let supervisor = pids(&folder.path().join("supervisor"), 1)[0];
    let all = pids(&folder.path().join("pids"), 3);
    let lock = folder.path().join("lock");
    assert!(!free(&lock));
    harness.kill().unwrap();
    harness.wait().unwrap();
    eventually("the lock is free", || free(&lock).then_some(()));
    assert!(all.into_iter().all(gone), "the lock outlives the command");
    eventually("the supervisor ends", || gone(supervisor).then_some(()));
}

#[test]
fn a_limit_is_kept_while_the_harness_is_stopped() {
    // The socket is not read meanwhile: to the supervisor that is a harness
    // which was sent SIGSTOP.
    on_lane(async {
        let mut lane = Lane::new();
        let file = lane.path("pids");
        let mut spec = lane.shell("echo $$ >pids; yes");
        spec.limit = Duration::from_millis(600);
        let mut running = lane.begin(spec).await.unwrap();
        let shell = pids(&file, 1)[0];
        eventually("the limit is kept", || gone(shell).then_some(()));
        assert_eq!(running.wait().await.unwrap().cause, ExitCause::Limit);
    });
}
