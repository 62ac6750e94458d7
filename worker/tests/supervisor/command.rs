//! What a command gets and what its exit reports.

use crate::lane::{Lane, on_lane};
use harness_worker::supervisor::{CommandSpec, ExitCause, MARKER, SpawnFailure};
use premath_kernel::json::canonical::sha256_hex;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;

#[test]
fn an_exit_tells_code_and_digests() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("printf out; printf error >&2; exit 3");
        let exit = lane.run(spec).await;
        assert_eq!((exit.code, exit.signal), (Some(3), None));
        assert_eq!(exit.cause, ExitCause::Exited);
        assert!(!exit.succeeded());
        assert_eq!((exit.stdout.bytes, exit.stderr.bytes), (3, 5));
        assert_eq!(exit.stdout.sha256, sha256_hex(b"out"));
        assert_eq!(exit.stderr.sha256, sha256_hex(b"error"));
        assert_eq!((exit.leaked, exit.survivors), (0, 0));
        assert_eq!(lane.read("out"), "out");
        assert_eq!(lane.read("err"), "error");
    });
}

#[test]
fn a_signal_is_reported_as_one() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("kill -9 $$");
        let exit = lane.run(spec).await;
        assert_eq!((exit.code, exit.signal), (None, Some(9)));
        assert_eq!(exit.cause, ExitCause::Exited);
    });
}

#[test]
fn one_supervisor_runs_many_commands() {
    on_lane(async {
        let mut lane = Lane::new();
        for code in 0..50 {
            let spec = lane.shell(&format!("exit {code}"));
            assert_eq!(lane.run(spec).await.code, Some(code));
        }
    });
}

#[test]
fn big_output_is_cut_in_the_middle_and_digested_whole() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("seq 1 300000; seq 1 10 >&2");
        spec.output_cap = 10_000;
        let exit = lane.run(spec).await;
        let whole: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(exit.stdout.bytes, whole.len() as u64);
        assert_eq!(exit.stdout.sha256, sha256_hex(whole.as_bytes()));
        assert!(exit.stdout.truncated() && !exit.stderr.truncated());
        let marker = format!("\n[premath: {} bytes cut here]\n", whole.len() - 10_000);
        let kept = lane.read("out");
        assert_eq!(kept.len(), 10_000 + marker.len());
        let (head, tail) = kept.split_once(&marker).unwrap();
        assert!(whole.starts_with(head) && whole.ends_with(tail));
        assert_eq!(head.len(), tail.len());
    });
}

#[test]
fn a_full_disk_does_not_end_the_command() {
    on_lane(async {
        let mut lane = Lane::new();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let err = File::create(lane.path("err")).unwrap();
        let spec = lane.shell("seq 1 100000; echo done >&2");
        let mut running = lane.supervisor.begin(spec, full, err).await.unwrap();
        let exit = running.wait().await.unwrap();
        assert!(exit.succeeded());
        assert_eq!(exit.stdout.bytes, 588_895);
        assert!(exit.stdout.write_error.is_some());
        assert_eq!(exit.stderr.write_error, None);
    });
}

#[test]
fn orphans_are_reaped_while_the_command_runs() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell(
            "(sh -c 'echo $$ >pids' &); while ! [ -s pids ]; do sleep 0.01; done
             while [ -e /proc/$(cat pids) ]; do sleep 0.01; done; echo reaped",
        );
        assert!(lane.run(spec).await.succeeded());
        assert_eq!(lane.read("out"), "reaped\n");
    });
}

#[test]
fn standard_input_is_at_its_end_and_there_is_no_terminal() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("read x; echo $?; (: </dev/tty) 2>/dev/null || echo none");
        lane.run(spec).await;
        assert_eq!(lane.read("out"), "1\nnone\n");
    });
}

#[test]
fn the_environment_is_exactly_the_given_one() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = CommandSpec::new("env");
        spec.args = vec!["-0".into()];
        spec.env = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("B".into(), OsString::from_vec(b"\xff\n=".to_vec())),
            ("A".into(), "x".into()),
        ];
        assert!(lane.run(spec).await.succeeded());
        let out = fs::read(lane.path("out")).unwrap();
        let mut seen: Vec<_> = out.split_inclusive(|byte| *byte == 0).collect();
        seen.sort();
        assert_eq!(
            seen,
            [
                &b"A=x\0"[..],
                b"B=\xff\n=\0",
                b"PATH=/usr/bin:/bin\0",
                format!("{MARKER}={}.1\0", lane.supervisor.pid()).as_bytes(),
            ]
        );
    });
}

#[test]
fn folder_and_descriptors_are_exactly_the_given_ones() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("pwd -P; cat /proc/$PPID/comm; ls /proc/self/fd");
        assert!(lane.run(spec).await.succeeded());
        let folder = lane.folder.path().canonicalize().unwrap();
        // `ls` has one of its own. The test runner may have more descriptors
        // open, and they are not inherited.
        let expected = format!("{}\npremath-lane\n0\n1\n2\n3\n", folder.display());
        assert_eq!(lane.read("out"), expected);
    });
}

#[test]
fn a_command_larger_than_a_socket_buffer_arrives() {
    on_lane(async {
        let mut lane = Lane::new();
        let mut spec = lane.shell("env | wc -c");
        spec.env
            .extend((0..10).map(|n| (format!("V{n}").into(), "y".repeat(100_000).into())));
        assert!(lane.run(spec).await.succeeded());
        assert!(lane.read("out").trim().parse::<u64>().unwrap() > 1_000_000);
    });
}

#[test]
fn a_command_that_cannot_start_says_why() {
    on_lane(async {
        let mut lane = Lane::new();
        let plain = lane.path("plain");
        fs::write(&plain, "").unwrap();
        let mut elsewhere = lane.shell("true");
        elsewhere.cwd = lane.path("nowhere");
        for (spec, expected) in [
            (CommandSpec::new("/no/such/program"), SpawnFailure::NotFound),
            (CommandSpec::new("no-such-program"), SpawnFailure::NotFound),
            (CommandSpec::new(plain), SpawnFailure::PermissionDenied),
            (elsewhere, SpawnFailure::WorkingDirectory),
        ] {
            let exit = lane.run(spec).await;
            assert_eq!((exit.code, exit.signal), (None, None));
            match exit.cause {
                ExitCause::SpawnFailed { kind, message } => {
                    assert_eq!(kind, expected);
                    assert!(!message.is_empty());
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(exit.stdout.sha256, sha256_hex(b""));
        }
        let spec = lane.shell("no-such-program");
        let exit = lane.run(spec).await;
        assert_eq!((exit.cause, exit.code), (ExitCause::Exited, Some(127)));
    });
}

#[test]
fn no_signal_is_ignored_for_a_command() {
    on_lane(async {
        let mut lane = Lane::new();
        let spec = lane.shell("cat /proc/$$/status; true");
        assert!(lane.run(spec).await.succeeded());
        let status = lane.read("out");
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
        // Above the 31 standard signals are two that the C library keeps to
        // itself, and has ignored in whatever it spawns.
        assert_eq!(ignored & 0x7fff_ffff, 0, "{status}");
    });
}
