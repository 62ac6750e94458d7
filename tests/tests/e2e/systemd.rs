//! The units of `premath service`, and what a batch reports to the service manager
//! that started it.

use premath_tests::{PATIENCE, Scratch, binaries, command, issue, skipped, until};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A service manager, as far as a service sees it.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn at(path: &Path) -> Self {
        Self::of(UnixDatagram::bind(path), path.display().to_string())
    }

    /// Returns one that listens on an abstract socket.
    fn abstract_of(scratch: &Scratch) -> Self {
        let name = scratch.folder().join("manager").display().to_string();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self::of(UnixDatagram::bind_addr(&address), format!("@{name}"))
    }

    fn of(socket: std::io::Result<UnixDatagram>, name: String) -> Self {
        let socket = socket.unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, name }
    }

    /// Waits for the next message.
    fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Waits for a message that is so; returns what came before it, too.
    fn until(&self, is_it: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next());
            if is_it(seen.last().unwrap()) {
                return seen;
            }
            assert!(seen.len() < 10_000, "{:?}", &seen[..100]);
        }
    }
}

const VARIABLES: &str = "E2E_PREMATH,NOTIFY_SOCKET,WATCHDOG_USEC,WATCHDOG_PID";

#[test]
fn a_batch_reports_its_begin_its_progress_its_life_and_its_drain() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    for manager in [
        Manager::at(&scratch.folder().join("manager.sock")),
        Manager::abstract_of(&scratch),
    ] {
        let batch = scratch
            .batch("env > src/$PREMATH_ISSUE_ID.txt", "true")
            .args(["--until", "forever"])
            .env("NOTIFY_SOCKET", &manager.name)
            .env("WATCHDOG_USEC", "200000")
            // The manager's variables are the harness's own, whatever is allowed.
            .env("PREMATH_ENV_ALLOW", VARIABLES)
            .start();
        assert_eq!(manager.next(), "READY=1\n");
        let is_closed = |message: &str| message.contains(" 1 closed") || message.contains("0 of 1");
        let seen = manager.until(|message| message.starts_with("STATUS=") && is_closed(message));
        assert!(
            seen.iter().any(|message| message == "WATCHDOG=1\n"),
            "{seen:?}"
        );
        // An idle loop reports that it runs, too.
        for _ in 0..3 {
            manager.until(|message| message == "WATCHDOG=1\n");
        }
        batch.signal(Signal::TERM);
        manager.until(|message| message == "STOPPING=1\n");
        batch.wait().exits(143);
        scratch.no_process_left();
    }
    assert_eq!(scratch.issue("a")["status"], "closed");
    let branch = scratch.branches().into_iter();
    let texts = branch.filter_map(|branch| scratch.file_on(&branch, "src/a.txt"));
    let texts: Vec<String> = texts.collect();
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.contains("E2E_PREMATH="), "{text}");
        assert!(
            !text.contains("NOTIFY_SOCKET") && !text.contains("WATCHDOG"),
            "{text}"
        );
    }
}

#[test]
fn a_loop_that_is_stuck_is_silent_though_other_threads_run() {
    // The main loop alone writes events, here into a pipe that is full.
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let manager = Manager::at(&scratch.folder().join("manager.sock"));
    let pipe = scratch.folder().join("events");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let at_once = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    let open = |options: &mut OpenOptions| options.open(&pipe).unwrap();
    let mut reader = open(OpenOptions::new().read(true).custom_flags(at_once));
    let writer = open(OpenOptions::new().write(true));
    let go = scratch.home().join("go");
    let mut batch = command(&binaries().coordinator);
    batch
        .current_dir(&scratch.root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scratch.home())
        .env("PREMATH_SANDBOX_READ", scratch.home())
        .env("NOTIFY_SOCKET", &manager.name)
        .env("WATCHDOG_USEC", "200000")
        .args(["--json", "--override-reason", "test", "--startup", "off"])
        .args(["--landing", "none", "--verify-cmd", "true", "--work-cmd"])
        .arg(format!(
            "until test -e {}; do sleep 0.1; done",
            go.display()
        ))
        .arg("--worktree")
        .arg(&scratch.lanes[0]);
    let mut filler = open(OpenOptions::new().write(true).custom_flags(at_once));
    batch.stdout(writer).stderr(std::process::Stdio::null());
    let mut child = batch.spawn().unwrap();
    drop(batch);
    manager.until(|message| message == "WATCHDOG=1\n");
    // From here on the pipe takes nothing more: the next event blocks the loop.
    let full = filler.write_all(&[b' '; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    fs::write(&go, "").unwrap();
    let silence = Duration::from_secs(2);
    manager.socket.set_read_timeout(Some(silence)).unwrap();
    let mut bytes = [0; 4096];
    let is_silent = until(PATIENCE, || {
        manager.socket.recv(&mut bytes).is_err().then_some(())
    });
    assert!(is_silent.is_some(), "the loop reports although it is stuck");
    assert!(child.try_wait().unwrap().is_none());
    // It continues where the pipe is read, and reports again.
    drop(filler);
    let mut read = [0; 4096];
    while reader.read(&mut read).is_ok_and(|length| length > 0) {}
    let mut reader = open(OpenOptions::new().read(true));
    let drained = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    manager.until(|message| message == "STOPPING=1\n");
    child.wait().unwrap();
    drained.join().unwrap().unwrap();
}

fn unit(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.home().join(".config/systemd/user").join(name)
}

fn states(answer: &Value) -> Vec<&str> {
    let units = answer["units"].as_array().unwrap().iter();
    units.map(|unit| unit["state"].as_str().unwrap()).collect()
}

#[test]
fn a_service_is_installed_shown_and_uninstalled() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let json = |arguments: &[&str]| {
        let run = scratch.premath(arguments.iter().copied()).arg("--json");
        run.end().exits(0).json()
    };
    let install = ["service", "install", "--user", "--name", "night"];
    let nightly = [&install[..], &["--every-night", "22:00"]].concat();
    let tried = json(&[&nightly[..], &["--dry-run"]].concat());
    assert_eq!(states(&tried), ["would_write", "would_write"]);
    assert!(!unit(&scratch, "night.service").exists());
    assert_eq!(states(&json(&nightly)), ["wrote", "wrote"]);
    assert_eq!(states(&json(&nightly)), ["unchanged", "unchanged"]);
    let text = fs::read_to_string(unit(&scratch, "night.service")).unwrap();
    assert_eq!(Value::from(text.clone()), tried["units"][0]["text"]);
    let program = binaries().coordinator.display().to_string();
    assert!(
        text.contains(&format!("ExecStart=:\"{program}\"\n")),
        "{text}"
    );
    assert_eq!(
        states(&json(&["service", "show", "--name", "night"])),
        ["installed", "installed"]
    );
    // The drain of the configuration decides how long systemd waits.
    fs::write(
        scratch.root.join("harness.toml"),
        "[coordinator]\ndrain_grace = \"1m\"\n[notify]\ncommand = 'true'\n",
    )
    .unwrap();
    let forever = [&install[..], &["--forever"]].concat();
    let done = json(&forever);
    assert_eq!(states(&done), ["wrote", "deleted"]);
    assert_eq!(done["commands"][0], "systemctl --user stop night.timer");
    assert!(!unit(&scratch, "night.timer").exists());
    let text = fs::read_to_string(unit(&scratch, "night.service")).unwrap();
    assert!(text.contains("TimeoutStopSec=201s\n"), "{text}");
    let wants = unit(&scratch, "default.target.wants");
    fs::create_dir(&wants).unwrap();
    let link = wants.join("night.service");
    std::os::unix::fs::symlink(unit(&scratch, "night.service"), &link).unwrap();
    let gone = json(&["service", "uninstall", "--name", "night"]);
    assert_eq!(states(&gone), ["deleted"]);
    assert!(fs::symlink_metadata(&link).is_err());
    assert_eq!(
        states(&json(&["service", "show", "--name", "night"])),
        [""; 0]
    );
}

#[test]
fn a_unit_that_is_not_ours_is_left_alone() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let install = ["service", "install", "--user", "--name", "night"];
    scratch.premath(install).end().exits(0);
    let path = unit(&scratch, "night.service");
    let ours = fs::read_to_string(&path).unwrap();
    let changed = ours.replace("RestartSec=30s", "RestartSec=5s");
    fs::write(&path, &changed).unwrap();
    for arguments in [&install[..], &["service", "uninstall", "--name", "night"]] {
        let refused = scratch.premath(arguments.iter().copied()).end().exits(1);
        refused
            .says("was written or changed by a person")
            .says("--force");
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    }
    scratch.premath(install).arg("--force").end().exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), ours);
    // A link may lead anywhere.
    let elsewhere = scratch.home().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    scratch.premath(install).end().exits(1);
    scratch.premath(install).arg("--force").end().exits(0);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert_eq!(fs::read_to_string(&path).unwrap(), ours);
    // Another repository's unit keeps its repository.
    let other = Scratch::with_issues(1, &[issue("a")]);
    let refused = other
        .premath(install)
        .env("HOME", scratch.home())
        .end()
        .exits(1);
    refused.says("belongs to another repository").says("--name");
    let inside = scratch.premath(install).env("PREMATH_STEP_ID", "s");
    inside.end().exits(1).says("inside a step");
}

#[test]
fn systemd_accepts_the_units() {
    let works = command(Path::new("systemd-analyze"))
        .arg("--version")
        .output();
    if !works.is_ok_and(|ran| ran.status.success()) {
        skipped("the units, by systemd-analyze", "systemd is not installed");
        return;
    }
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let odd = scratch.folder().join("a b %h $HOME");
    fs::create_dir(&odd).unwrap();
    let program = odd.join("harness-coordinator");
    fs::copy(&binaries().coordinator, &program).unwrap();
    let mut said = BTreeSet::new();
    for schedule in [&["--every-night", "22:00"][..], &["--forever"], &[]] {
        let install = ["service", "install", "--user", "--name", "odd", "--force"];
        let install = scratch.premath(install).args(schedule);
        let install = install.arg("--program").arg(&program);
        let answer = install
            .arg("--json")
            .args(["--", "--work-cmd", "echo \"$X\" 100%; true"]);
        let answer = answer.end().exits(0).json();
        let paths = answer["units"].as_array().unwrap().iter();
        let paths = paths.filter(|unit| unit["text"].is_string());
        let verified = command(Path::new("systemd-analyze"))
            .args(["--user", "verify"])
            .args(paths.map(|unit| unit["path"].as_str().unwrap()))
            .env("HOME", scratch.home())
            .env("XDG_RUNTIME_DIR", scratch.folder())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&verified.stderr).into_owned();
        // What it says about other units of the machine is not about ours.
        said.extend(
            text.lines()
                .filter(|line| line.contains("odd."))
                .map(str::to_owned),
        );
        assert!(verified.status.success(), "{text}");
    }
    assert_eq!(said, BTreeSet::new());
}
