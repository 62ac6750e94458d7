//! The supervisor as its lane sees it, with real processes.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot continue fails; some play the harness's part"
)]

use fs2::FileExt;
use harness_worker::supervisor::confine::landlock::Lists;
use harness_worker::supervisor::{
    CommandSpec, Exit, ExitCause, MARKER, MODE, Running, SpawnFailure, Supervisor, SupervisorError,
    confine, shell,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::policy::sandbox::SandboxMode;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any event of these tests takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A lane: a folder with a lock, and the supervisor.
struct Lane {
    folder: TempDir,
    supervisor: Supervisor,
}

impl Lane {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let supervisor = start(folder.path());
        Self { folder, supervisor }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shell(&self, command: &str) -> CommandSpec {
        in_folder(self.folder.path(), command)
    }

    async fn begin(&mut self, spec: CommandSpec) -> Result<Running<'_>, SupervisorError> {
        let out = File::create(self.path("out")).unwrap();
        let err = File::create(self.path("err")).unwrap();
        self.supervisor.begin(spec, out, err).await
    }

    async fn run(&mut self, spec: CommandSpec) -> Exit {
        let mut running = self.begin(spec).await.unwrap();
        running.wait().await.unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn start(folder: &Path) -> Supervisor {
    let lock = File::create(folder.join("lock")).unwrap();
    lock.try_lock_exclusive().unwrap();
    Supervisor::start(Path::new(env!("CARGO_BIN_EXE_harness-worker")), lock.into()).unwrap()
}

/// A shell command that works in a folder and finds its tools.
fn in_folder(folder: &Path, command: &str) -> CommandSpec {
    let mut spec = shell(command);
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spec.cwd = folder.to_owned();
    spec
}

/// Runs a future on a runtime of a lane's kind.
fn on_lane<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Looks for an event again and again, for a bounded time.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The ids that a command wrote into a file, once there are so many.
fn pids(file: &Path, count: usize) -> Vec<i32> {
    eventually("the command writes its process ids", || {
        let text = fs::read_to_string(file).ok()?;
        let whole = &text[..text.rfind('\n')? + 1];
        let pids: Vec<i32> = whole.lines().map(|line| line.parse().unwrap()).collect();
        (pids.len() == count).then_some(pids)
    })
}

/// Waits until the lane knows that the command was started.
async fn started(running: &mut Running<'_>) {
    while running.pid().is_none() {
        tokio::select! {
            exit = running.wait() => panic!("{exit:?}"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
}

/// Whether a process does not run; a zombie does not.
fn gone(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => true,
    }
}

fn free(lock: &Path) -> bool {
    File::open(lock).unwrap().try_lock_exclusive().is_ok()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Whether the kernel confines; otherwise it must report an error.
fn is_confining() -> bool {
    match confine::works(SandboxMode::Landlock) {
        Ok(()) => true,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            false
        }
    }
}

/// Lists of a command that may read everything.
fn writing(paths: &[PathBuf]) -> Option<Lists> {
    let write = paths.iter().map(PathBuf::as_path);
    Some(Lists::new(write, [Path::new("/")]))
}

#[test]
fn a_confined_command_reads_its_paths_alone() {
    if !is_confining() {
        return;
    }
    on_lane(async {
        let mut lane = Lane::new();
        for folder in ["open", "shut"] {
            fs::create_dir(lane.path(folder)).unwrap();
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
        let mut lane = Lane::new();
        for folder in ["open", "shut"] {
            fs::create_dir(lane.path(folder)).unwrap();
        }
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

/// Shorter than a person would wait, longer than a busy machine takes.
const SHORT: Duration = Duration::from_millis(700);

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
fn an_exit_that_waited_for_a_late_lane_is_no_loss() {
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
fn letting_go_of_a_stopped_supervisor_ends_it_and_what_runs() {
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
        .args(["--ignored", "--exact", "a_harness_to_be_killed"])
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
