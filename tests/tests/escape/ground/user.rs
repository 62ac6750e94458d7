//! Who runs the harness: an ordinary user, also if root runs the tests.

use premath_tests::{Run, processes_in};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The user of one ground. Each has a number of its own where root runs the
/// tests, so that signals, limits and processes of one test are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    id: Option<u32>,
}

/// The first number that is given, and how many there are: below what a user
/// namespace of a container maps as a rule.
const FIRST: u32 = 20_000;
const COUNT: u32 = 40_000;

/// How many numbers are tried.
const TRIES: usize = 1_000;

/// Folders that every user may write to.
pub(super) const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// Returns what a user has directly in a folder.
pub(super) fn owned_in(folder: &str, number: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_owned = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.uid() == number);
    paths.filter(is_owned).collect()
}

impl User {
    /// Returns a user that no other test has; the caller where that is not
    /// root.
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            return Self { id: None };
        }
        // A run that was killed leaves files of its users.
        let number = || {
            let number = std::process::id()
                .wrapping_mul(251)
                .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            FIRST + number % COUNT
        };
        let mut numbers = std::iter::repeat_with(number).take(TRIES);
        let has_files = |number| {
            SHARED
                .iter()
                .any(|folder| !owned_in(folder, number).is_empty())
        };
        let free = numbers.find(|number| !has_files(*number));
        Self {
            id: Some(free.expect("a number without files")),
        }
    }

    /// Returns the number.
    pub(crate) fn number(self) -> u32 {
        self.id.unwrap_or_else(|| geteuid().as_raw())
    }

    /// Returns whether the user belongs to this test alone.
    pub(crate) const fn is_own(self) -> bool {
        self.id.is_some()
    }

    /// Makes a run one of this user.
    pub(crate) fn runs(self, run: Run) -> Run {
        match self.id {
            Some(id) => run.user(id),
            None => run,
        }
    }

    /// Gives a path to the user, with everything below it.
    pub(crate) fn owns(self, path: &Path) {
        let Some(id) = self.id else { return };
        lchown(path, Some(id), Some(id)).unwrap();
        let is_folder = fs::symlink_metadata(path).unwrap().is_dir();
        if is_folder {
            for entry in fs::read_dir(path).unwrap() {
                self.owns(&entry.unwrap().path());
            }
        }
    }

    /// Returns the user's processes that belong to a ground, but for some and
    /// what these started.
    pub(crate) fn processes(self, folder: &Path, but: &[Pid]) -> Vec<String> {
        let mut found = processes_in(folder);
        if let Some(id) = self.id {
            found.extend(owned(id));
        }
        let is_spared = |process: &String| {
            let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
            let line = std::iter::successors(pid, |pid| parent_of(*pid));
            line.take(10)
                .any(|pid| but.iter().any(|but| but.as_raw_nonzero().get() == pid))
        };
        found.retain(|process| !is_spared(process));
        found.sort();
        found.dedup_by(|one, other| one.split(' ').next() == other.split(' ').next());
        found
    }

    /// Kills the processes that a ground left.
    pub(crate) fn ends_all(self, folder: &Path, but: &[Pid]) {
        for _ in 0..50 {
            let found = self.processes(folder, but);
            if found.is_empty() {
                return;
            }
            for process in found {
                let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
                if let Some(pid) = pid.and_then(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Returns the processes of a user that run.
fn owned(id: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() {
            continue;
        }
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let status = String::from_utf8_lossy(&read("status")).into_owned();
        let line = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key));
            line.map(str::to_owned).unwrap_or_default()
        };
        // A process that is not dumpable belongs to root in /proc.
        let is_of = line("Uid:").split_whitespace().nth(1) == Some(&id.to_string());
        let is_dead = line("State:").contains(['Z', 'X']);
        if is_of && !is_dead {
            let arguments = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            found.push(format!("{name} {}", arguments.trim_end()));
        }
    }
    found
}
