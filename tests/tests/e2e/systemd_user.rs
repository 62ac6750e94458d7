//! The units of `premath service` under a real systemd: a manager of a user in
//! namespaces of its own, which root can make.

use premath_tests::{PATIENCE, Scratch, binaries, command, issue, skipped, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The manager.
const SYSTEMD: &str = "/lib/systemd/systemd";

/// Where its cgroup is made: the whole hierarchy, or beside those of version 1.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Enters a cgroup of its own and makes the namespaces.
const OUTSIDE: &str = "echo $$ > \"$1/cgroup.procs\" && exec unshare --mount --pid --fork \
     --kill-child --cgroup --mount-proc /bin/sh -ec \"$2\"";

/// Makes the machine look as if systemd had booted it, and starts the manager.
const INSIDE: &str = "mount --make-rprivate /; mount -t tmpfs none /run
mkdir -p /run/systemd/system; umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
/lib/systemd/systemd --user --unit=basic.target & wait";

/// A systemd of a user; dropped, it is killed with everything that it started.
struct UserManager {
    child: Child,
    /// The first process of its namespaces.
    inside: String,
    cgroup: PathBuf,
    runtime: PathBuf,
}

impl UserManager {
    /// Starts one; the error says why there is none.
    fn start(scratch: &Scratch) -> Result<Self, String> {
        if !Path::new(SYSTEMD).exists() {
            return Err("systemd is not installed".to_owned());
        }
        if !rustix::process::geteuid().is_root() {
            return Err("only root makes its namespaces".to_owned());
        }
        let is_there = |root: &&&str| Path::new(root).join("cgroup.procs").exists();
        let root = HIERARCHIES.iter().find(is_there);
        let root = root.ok_or("there is no cgroup of version 2")?;
        let name = scratch.folder();
        let cgroup = Path::new(root).join(name.file_name().unwrap());
        fs::create_dir(&cgroup).map_err(|error| format!("{}: {error}", cgroup.display()))?;
        let runtime = scratch.folder().join("run");
        fs::create_dir(&runtime).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&runtime, private).unwrap();
        let log = fs::File::create(scratch.folder().join("systemd.log")).unwrap();
        let units = scratch.home().join(".config/systemd/user");
        let mut started = command(Path::new("/bin/sh"));
        started
            .args(["-c", OUTSIDE, "sh"])
            .args([cgroup.as_os_str(), INSIDE.as_ref()])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", scratch.home())
            .env("XDG_RUNTIME_DIR", &runtime)
            .env(
                "SYSTEMD_UNIT_PATH",
                format!("{}:/usr/lib/systemd/user", units.display()),
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let mut manager = Self {
            child: started.spawn().unwrap(),
            inside: String::new(),
            cgroup,
            runtime,
        };
        let listens = until(PATIENCE, || {
            let has_ended = manager.child.try_wait().unwrap().is_some();
            let is_there = manager.runtime.join("systemd/private").exists();
            (has_ended || is_there).then_some(is_there)
        });
        if listens != Some(true) {
            let log = fs::read_to_string(scratch.folder().join("systemd.log"));
            let log = log.unwrap_or_default();
            let last = log.lines().next_back().unwrap_or("it does not begin");
            return Err(format!("a systemd of a user does not work here: {last}"));
        }
        let pid = manager.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        manager.inside = children.trim().to_owned();
        Ok(manager)
    }

    fn systemctl(&self, arguments: &[&str]) -> Command {
        let mut inside = command(Path::new("nsenter"));
        inside
            .args(["--target", &self.inside, "--mount", "--pid", "--cgroup"])
            .args(["systemctl", "--user"])
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &self.runtime);
        inside
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) {
        let ran = self.systemctl(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{arguments:?}: {said}");
    }

    /// Returns a property of a unit.
    fn property(&self, unit: &str, name: &str) -> String {
        let arguments = ["show", unit, "--value", "--property", name];
        let ran = self.systemctl(&arguments).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Waits until a property is so.
    #[track_caller]
    fn becomes(&self, unit: &str, name: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let found = until(PATIENCE, || {
            last = self.property(unit, name);
            is_it(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{name} of {unit} stays {last:?}"))
    }
}

impl Drop for UserManager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The processes are gone with their namespace; the kernel takes a moment.
        let _ = until(Duration::from_secs(10), || remove(&self.cgroup).ok());
    }
}

/// Removes a cgroup with those below it.
fn remove(cgroup: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let path = entry?.path();
        if path.is_dir() {
            remove(&path)?;
        }
    }
    fs::remove_dir(cgroup)
}

/// Puts settings beside an installed unit, as an operator does.
fn drop_in(scratch: &Scratch, unit: &str, text: &str) {
    let folder = scratch.home().join(".config/systemd/user");
    let folder = folder.join(format!("{unit}.d"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("test.conf"), text).unwrap();
}

const SERVICE: &str = "night.service";
const TIMER: &str = "night.timer";

/// A repository whose service is installed; its batch waits for issues.
fn installed() -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let install = ["service", "install", "--user", "--name", "night"];
    let install = scratch
        .premath(install)
        .args(["--every-night", "22:00", "--program"])
        .arg(&binaries().coordinator)
        .args(["--", "--until", "forever", "--override-reason", "test"])
        .args([
            "--landing",
            "none",
            "--startup",
            "off",
            "--on-no-change",
            "allow",
        ])
        .args(["--work-cmd", "true", "--verify-cmd", "true"])
        .arg("--worktree")
        .arg(&scratch.lanes[0]);
    install.end().exits(0);
    let log = scratch.folder().join("service.log");
    let text = format!(
        "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=10s\nRestartSec=100ms\n\
         StandardOutput=append:{0}\nStandardError=append:{0}\n",
        log.display()
    );
    drop_in(&scratch, SERVICE, &text);
    scratch
}

#[test]
fn a_real_systemd_starts_watches_restarts_and_stops_the_service() {
    let scratch = installed();
    let manager = match UserManager::start(&scratch) {
        Ok(manager) => manager,
        Err(why) => return skipped("a real systemd", &why),
    };
    // It returns when the batch has reported that it is ready.
    manager.run(&["start", SERVICE]);
    assert_eq!(manager.property(SERVICE, "ActiveState"), "active");
    assert_eq!(manager.property(SERVICE, "SubState"), "running");
    manager.becomes(SERVICE, "StatusText", |text| text.contains("0 ready"));
    let closed = until(PATIENCE, || {
        (scratch.issue("a")["status"] == "closed").then_some(())
    });
    assert!(closed.is_some(), "{:?}", scratch.issue("a"));
    // An idle batch reports for longer than the watchdog waits.
    let first = manager.property(SERVICE, "WatchdogTimestampMonotonic");
    let first: u64 = first.parse().unwrap();
    manager.becomes(SERVICE, "WatchdogTimestampMonotonic", |text| {
        text.parse::<u64>().unwrap_or(0) > first + 5_000_000
    });
    assert_eq!(manager.property(SERVICE, "NRestarts"), "0");
    // A main process that is stuck is ended, and the batch continues.
    let stuck = manager.property(SERVICE, "MainPID");
    let stop = ["kill", "--signal=STOP", "--kill-who=main", SERVICE];
    manager.run(&stop);
    manager.becomes(SERVICE, "NRestarts", |text| text == "1");
    manager.becomes(SERVICE, "ActiveState", |text| text == "active");
    assert_ne!(manager.property(SERVICE, "MainPID"), stuck);
    let actions = || {
        let rows = scratch.trajectory().into_iter();
        let actions = rows.map(|row| row["action"].as_str().unwrap().to_owned());
        actions.collect::<Vec<_>>()
    };
    assert!(actions().contains(&"coordinator.batch_resume".to_owned()));
    // A stop drains, long before systemd would kill.
    let began = Instant::now();
    manager.run(&["stop", SERVICE]);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(manager.property(SERVICE, "ActiveState"), "inactive");
    assert_eq!(manager.property(SERVICE, "Result"), "success");
    let log = fs::read_to_string(scratch.folder().join("service.log")).unwrap();
    assert!(log.contains("draining"), "{log}");
    assert_eq!(actions().pop().unwrap(), "coordinator.batch_end");
    drop(manager);
    scratch.no_process_left();
}

#[test]
fn a_real_systemd_starts_the_service_by_its_timer() {
    let scratch = installed();
    let manager = match UserManager::start(&scratch) {
        Ok(manager) => manager,
        Err(why) => return skipped("a timer of a real systemd", &why),
    };
    manager.run(&["start", TIMER]);
    let next = manager.property(TIMER, "NextElapseUSecRealtime");
    assert!(next.contains(" 22:00:0"), "{next}");
    assert_eq!(manager.property(SERVICE, "ActiveState"), "inactive");
    // The same timer, at every second instead.
    drop_in(
        &scratch,
        TIMER,
        "[Timer]\nOnCalendar=*:*:*\nAccuracySec=10ms\n",
    );
    manager.run(&["daemon-reload"]);
    manager.run(&["restart", TIMER]);
    manager.becomes(SERVICE, "ActiveState", |text| text == "active");
    assert_eq!(manager.property(SERVICE, "TriggeredBy"), TIMER);
    manager.run(&["stop", TIMER, SERVICE]);
    assert_eq!(manager.property(SERVICE, "Result"), "success");
    drop(manager);
    scratch.no_process_left();
}
