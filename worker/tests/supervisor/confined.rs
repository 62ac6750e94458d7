//! What Landlock lets a command do.

use crate::lane::{Lane, is_confining, on_lane, writing};
use harness_worker::supervisor::confine::landlock::Lists;
use harness_worker::supervisor::{ExitCause, SpawnFailure};
use std::fs::{self};
use std::io::Write;
use std::path::PathBuf;

/// A lane with a folder for the command, and one that it must not reach.
fn open_and_shut() -> Lane {
    let lane = Lane::new();
    for folder in ["open", "shut"] {
        fs::create_dir(lane.path(folder)).unwrap();
    }
    lane
}

#[test]
fn a_confined_command_reads_its_paths_alone() {
    if !is_confining() {
        return;
    }
    on_lane(async {
        let mut lane = open_and_shut();
        for folder in ["open", "shut"] {
            fs::write(lane.path(folder).join("x"), folder).unwrap();
        }
        let mut spec = lane.shell("cat open/x; cat shut/x; ls shut; : > open/x");
        let system = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/dev"].map(PathBuf::from);
        let read = [lane.path("open")];
        let read = read.iter().chain(&system).map(PathBuf::as_path);
        spec.lists = Some(Lists::new([], read));
        let exit = lane.run(spec).await;
        assert_eq!(lane.read("out"), "open", "{exit:?} {}", lane.read("err"));
        assert_eq!(lane.read("open/x"), "open");
        assert_eq!(lane.read("err").matches("Permission denied").count(), 3);
    });
}

/// Only root can try: others may not make devices anywhere.
#[test]
fn a_confined_command_makes_no_device() {
    if !is_confining() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "skipped: only root makes devices");
        return;
    }
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("mknod open c 1 3 || mknod open b 7 0 || echo none");
        spec.lists = writing(&[lane.folder.path().to_path_buf(), "/dev/null".into()]);
        lane.run(spec).await;
        assert_eq!(lane.read("out"), "none\n", "{}", lane.read("err"));
    });
}

#[test]
fn a_confined_command_writes_to_its_paths_alone_and_the_next_one_is_free() {
    if !is_confining() {
        return;
    }
    on_lane(async {
        let mut lane = open_and_shut();
        for file in ["file", "kept"] {
            fs::write(lane.path(file), "old").unwrap();
        }
        let command = "echo x > open/x; echo x > file; mkdir open/a && mv open/x open/a/x
            echo x > shut/x; true > kept; rm -f kept; mv kept open/kept; ln kept open/kept; echo x > new
            sh -c 'echo x > shut/y' & wait; cat kept";
        let mut spec = lane.shell(command);
        spec.lists = writing(&[
            lane.path("open"),
            lane.path("file"),
            lane.path("not-there"),
            "/dev/null".into(),
        ]);
        let exit = lane.run(spec).await;
        assert!(exit.succeeded(), "{exit:?}");
        assert_eq!(lane.read("out"), "old");
        assert_eq!(lane.read("file"), "x\n");
        assert_eq!(lane.read("open/a/x"), "x\n");
        assert!(lane.read("err").contains("Permission denied"));
        assert!(!lane.path("open/kept").exists());
        assert!(!lane.path("new").exists());
        assert_eq!(fs::read_dir(lane.path("shut")).unwrap().count(), 0);

        let exit = lane.run(lane.shell("echo x > shut/x")).await;
        assert!(exit.succeeded(), "the supervisor itself is not confined");
    });
}

#[test]
fn what_is_at_a_path_when_a_command_begins_is_open_to_it_and_nothing_from_before() {
    if !is_confining() {
        return;
    }
    on_lane(async {
        let mut lane = Lane::new();
        fs::create_dir(lane.path("open")).unwrap();
        let lists = writing(&[lane.path("open"), lane.path("later"), "/dev/null".into()]);
        let mut spec = lane.shell("echo 1 > open/x; mkdir later");
        spec.lists.clone_from(&lists);
        assert!(!lane.run(spec).await.succeeded());
        assert_eq!(lane.read("open/x"), "1\n");
        fs::rename(lane.path("open"), lane.path("before")).unwrap();
        fs::create_dir(lane.path("open")).unwrap();
        fs::create_dir(lane.path("later")).unwrap();
        let mut spec = lane.shell("echo 2 > before/x; echo 3 > open/x; echo 4 > later/x");
        spec.lists.clone_from(&lists);
        lane.run(spec).await;
        assert_eq!(lane.read("before/x"), "1\n");
        assert_eq!(lane.read("open/x"), "3\n");
        assert_eq!(lane.read("later/x"), "4\n");
        let mut spec = lane.shell("echo 5 > open/x");
        spec.lists = writing(&["/dev/null".into()]);
        lane.run(spec).await;
        assert_eq!(lane.read("open/x"), "3\n");
    });
}

#[test]
fn a_confined_command_that_cannot_be_started_says_why() {
    if !is_confining() {
        return;
    }
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("");
        spec.program = "/no/such/program".into();
        spec.lists = writing(&[]);
        let exit = lane.run(spec).await;
        let ExitCause::SpawnFailed { kind, .. } = exit.cause else {
            panic!("{exit:?}");
        };
        assert_eq!(kind, SpawnFailure::NotFound);
    });
}
