//! Terminates the processes that a lost supervisor leaves behind.
//!
//! The harness is a child subreaper as its supervisors are: what a killed
//! supervisor has started becomes the harness's own, and can be found. A
//! process belongs to a lost supervisor if one of these holds:
//!
//! - it was below it a moment before its end;
//! - it is in its session;
//! - its environment has [`MARKER`];
//! - it is below such a process;
//! - no other program can have started it: it is the harness's own child,
//!   younger than the supervisor, in a session that is not the harness's, and
//!   its environment names no supervisor or cannot be read. The harness starts
//!   nothing but supervisors, so it was inherited.
//!
//! A supervisor that lives and everything below it is left alone, and so is
//! every child in the harness's own session, which no orphan of a supervisor
//! can be in. That is also how an orphan is distinguished from a child that
//! another part of this process waits for.

use super::descendants::below;
use premath_platform::process::{self, Handle, Process};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process_group, waitid, waitpid,
};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The variable of every command that names its supervisor:
/// `<process id of the supervisor>.<number of the command>`.
pub const MARKER: &str = "PREMATH_SUPERVISOR";

/// The marker of a supervisor process itself, which is not a supervisor's
/// command.
pub(super) const MARKER_OF_SUPERVISOR: &str = "itself";

/// How long a process that was killed is waited for.
const KILLED: Duration = Duration::from_secs(2);

/// How long a sweep keeps killing what a lost supervisor left.
const SWEEP: Duration = Duration::from_secs(5);

/// How long a sweep sleeps between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// How many scans in a row must find none: a list of processes is not atomic,
/// and one whose parent ended meanwhile may be missing in it.
const CLEAN_LOOKS: u32 = 2;

/// The supervisors of this process that were not reaped yet.
static SUPERVISORS: Mutex<Supervisors> = Mutex::new(Supervisors(BTreeMap::new()));

/// The supervisors by process id, each with who waits for it.
#[derive(Debug)]
struct Supervisors(BTreeMap<i32, Waiter>);

/// Who waits for a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    /// The lane that started it; it has the handle.
    Lane,
    /// The next scan, which reaps it; the lane is gone.
    Scan,
}

fn supervisors() -> MutexGuard<'static, Supervisors> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a supervisor and adds it to the supervisors of this process.
///
/// Both happen under one lock. A sweep at the same time would take a child that
/// is not in the map for an orphan.
pub(super) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    process::check_numbers()?;
    process::adopt_orphans()?;
    let mut supervisors = supervisors();
    let child = spawn()?;
    supervisors
        .0
        .insert(raw(Pid::from_child(&child)), Waiter::Lane);
    Ok(child)
}

/// Waits for a supervisor that was instructed to end. False if it has not by
/// then.
pub(super) fn await_end(process: &mut Child, patience: Duration) -> bool {
    if ended(process, patience) {
        reap(process);
        return true;
    }
    false
}

/// Stops waiting for a supervisor. The next scan after its end reaps it.
pub(super) fn leave(process: &Child) {
    if let Some(waiter) = supervisors().0.get_mut(&raw(Pid::from_child(process))) {
        *waiter = Waiter::Scan;
    }
}

/// Kills a supervisor that does not answer, or has ended, and every process that
/// it left. Returns how many processes could not be terminated.
///
/// Takes milliseconds, and seconds at most.
pub(super) fn terminate(process: &mut Child, group: Option<Pid>) -> u32 {
    let pid = Pid::from_child(process);
    let lost = Lost {
        pid,
        start: Process::at(pid).map_or(0, |process| process.start),
        group,
        // Only one that was stopped, or never answered, still has any.
        lineage: below(pid, Process::all())
            .into_iter()
            .map(|process| (process.pid, process.start))
            .collect(),
    };
    // Before its children: it could start others. Until it is reaped, its
    // number is not reused.
    let _ = process.kill();
    ended(process, KILLED);
    let survivors = lost.sweep();
    if !reap(process) {
        leave(process);
    }
    survivors
}

/// Returns whether a supervisor does not run because it was sent a stop.
pub(super) fn is_stopped(process: &Child) -> bool {
    Process::at(Pid::from_child(process)).is_some_and(|process| process.stopped)
}

/// Reaps inherited processes that have ended.
///
/// Costs one system call if there is none.
pub(super) fn reap_inherited() {
    let any_child = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, any_child), Ok(Some(_))) {
        return;
    }
    let mut supervisors = supervisors();
    supervisors.reap_left();
    // The lane of this supervisor is about to reap it. Ended processes behind it
    // are found after that.
    if supervisors.0.keys().copied().any(is_dead) {
        return;
    }
    let me = raw(getpid());
    let Some(session) = own_session() else { return };
    for process in Process::all() {
        if process.zombie
            && process.parent == me
            && process.session != session
            && !supervisors.0.contains_key(&raw(process.pid))
        {
            let _ = waitpid(Some(process.pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns whether a child has ended and is not reaped.
fn is_dead(pid: i32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Pid::from_raw(pid).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_))))
}

impl Supervisors {
    /// Reaps supervisors whose lanes are gone.
    fn reap_left(&mut self) {
        self.0.retain(|pid, waiter| {
            *waiter == Waiter::Lane
                || Pid::from_raw(*pid)
                    .is_some_and(|pid| matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)))
        });
    }
}

/// Waits for a child's end without reaping it.
fn ended(process: &Child, patience: Duration) -> bool {
    // Without a handle it was reaped already.
    Handle::open(Pid::from_child(process)).map_or(true, |child| child.has_ended_within(patience))
}

/// Reaps a supervisor that has ended; false if it has not.
fn reap(process: &mut Child) -> bool {
    let mut supervisors = supervisors();
    let reaped = !matches!(process.try_wait(), Ok(None));
    if reaped {
        supervisors.0.remove(&raw(Pid::from_child(process)));
    }
    reaped
}

/// A supervisor that is lost.
#[derive(Debug)]
struct Lost {
    pid: Pid,
    start: u64,
    /// The process group of the command that ran.
    group: Option<Pid>,
    /// Who was below it before it was killed, by number and start.
    lineage: HashSet<(Pid, u64)>,
}

/// What an environment reports about whose command a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Ours,
    Others,
    None,
}

impl Lost {
    /// Kills and reaps until none is left; returns how many remain.
    fn sweep(&self) -> u32 {
        let until = Instant::now() + SWEEP;
        let mut clean = 0;
        loop {
            let (left, immune) = self.pass();
            clean = if left == 0 { clean + 1 } else { 0 };
            if clean == CLEAN_LOOKS {
                return 0;
            }
            // Another user's processes do not become killable by waiting.
            if left > 0 && (left == immune || Instant::now() >= until) {
                return u32::try_from(left).unwrap_or(u32::MAX);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Kills every process of the lost supervisor once; returns how many were
    /// not reaped at once, and how many of them this process may not kill.
    fn pass(&self) -> (usize, usize) {
        let mut supervisors = supervisors();
        supervisors.reap_left();
        let orphans = self.orphans(&supervisors);
        // The group dies as one, so that it cannot outrun us by forking. A
        // member of ours in it keeps its number from being reused.
        if let Some(group) = self.group
            && orphans.iter().any(|process| process.group == raw(group))
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let (mut left, mut immune) = (0, 0);
        for process in &orphans {
            // First a handle of the process with this number, then the check
            // that it is the one that was found.
            let Ok(handle) = Handle::open(process.pid) else {
                continue;
            };
            if Process::at(process.pid).is_none_or(|now| now.start != process.start) {
                continue;
            }
            let killed = handle.signal(Signal::KILL);
            // It is not our child yet where its parent has not died yet.
            if matches!(waitpid(Some(process.pid), WaitOptions::NOHANG), Ok(Some(_))) {
                continue;
            }
            left += 1;
            if killed == Err(Errno::PERM) {
                immune += 1;
            }
        }
        (left, immune)
    }

    /// Returns the processes that belong to the lost supervisor, parents first.
    fn orphans(&self, supervisors: &Supervisors) -> Vec<Process> {
        let me = getpid();
        let Some(session) = own_session() else {
            return Vec::new();
        };
        let mut found = HashSet::new();
        let mut spared = HashSet::new();
        let mut orphans = Vec::new();
        for process in below(me, Process::all()) {
            let number = raw(process.pid);
            let own_child = process.parent == raw(me);
            // A child in the harness's own session belongs to another part of
            // the program, or is a supervisor that has not left it yet.
            if supervisors.0.contains_key(&number)
                || spared.contains(&process.parent)
                || own_child && process.session == session
            {
                spared.insert(number);
            } else if found.contains(&process.parent)
                || process.session == raw(self.pid)
                || self.lineage.contains(&(process.pid, process.start))
                || match self.mark(process.pid) {
                    Mark::Ours => true,
                    Mark::Others => false,
                    // The first process of a namespace inherits foreign
                    // orphans.
                    Mark::None => own_child && raw(me) != 1 && process.start >= self.start,
                }
            {
                found.insert(number);
                orphans.push(process);
            }
        }
        orphans
    }

    fn mark(&self, pid: Pid) -> Mark {
        match process::environment(pid) {
            Some(environment) => mark(&environment, self.pid),
            None => Mark::None,
        }
    }
}

/// Reads whose command a process with this environment is.
fn mark(environment: &[u8], supervisor: Pid) -> Mark {
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="));
    let ours = format!("{}.", raw(supervisor));
    match value {
        Some(value) if value.starts_with(ours.as_bytes()) => Mark::Ours,
        Some(_) => Mark::Others,
        None => Mark::None,
    }
}

/// Returns the session of this process. It is 0 where its leader is outside of
/// this process's namespace, as after entering a container.
fn own_session() -> Option<i32> {
    Process::at(getpid()).map(|process| process.session)
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_distinguished_from_one_that_looks_like_it() {
        let twelve = Pid::from_raw(12).unwrap();
        for (environment, expected) in [
            (&b"A=1\0PREMATH_SUPERVISOR=12.7\0B=2\0"[..], Mark::Ours),
            (b"PREMATH_SUPERVISOR=12.1", Mark::Ours),
            (b"PREMATH_SUPERVISOR=123.1\0", Mark::Others),
            (b"PREMATH_SUPERVISOR=itself\0", Mark::Others),
            (b"X=PREMATH_SUPERVISOR=12.7\0", Mark::None),
            (b"PREMATH_SUPERVISORS=12.7\0", Mark::None),
            (b"", Mark::None),
        ] {
            assert_eq!(mark(environment, twelve), expected);
        }
    }

    #[test]
    fn this_process_finds_itself() {
        assert!(Process::at(getpid()).unwrap().start > 0);
    }
}
