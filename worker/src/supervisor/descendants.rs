//! The processes below this one: who they are, and how they end.
//!
//! The supervisor is a child subreaper, so a process that lost its parent
//! becomes its direct child, whatever group or session it moved to. Hence no
//! descendant can hide: as long as there is one, `wait` knows a child.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait,
};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a sweep looks again without a SIGCHLD: a process that was forked
/// while the list was made sends none.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What waiting for children has shown.
#[derive(Debug, Default)]
pub(super) struct Reaped {
    /// How the awaited process ended, where it was among them.
    pub(super) main: Option<WaitStatus>,
    /// No child or other descendant is left.
    pub(super) alone: bool,
}

/// What a sweep did.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// How the main process ended, where it was still there.
    pub(super) main: Option<WaitStatus>,
    /// How many others were killed.
    pub(super) leaked: u32,
    /// How many are left that could not be killed.
    pub(super) survivors: u32,
}

/// The children of this process, and the wake-up at each of their deaths.
#[derive(Debug)]
pub(super) struct Children {
    deaths: UnixStream,
}

impl Children {
    /// Makes this process the one that inherits its orphaned descendants and
    /// receives of every death.
    ///
    /// A pidfd would tell of one process only, and orphans have to be reaped
    /// while a command runs, however long that is.
    pub(super) fn adopt() -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let (deaths, handler) = UnixStream::pair()?;
        deaths.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, handler)?;
        Ok(Self { deaths })
    }

    /// Returns the descriptor that is readable after a death.
    pub(super) fn pollable(&self) -> BorrowedFd<'_> {
        self.deaths.as_fd()
    }

    /// Reaps everybody who is dead already.
    pub(super) fn reap(&self, main: Option<Pid>) -> Reaped {
        // First the wake-ups, then the dead: a death in between wakes us once
        // too often and is never missed.
        let mut wakeups = [0; 64];
        while matches!(rustix::io::read(&self.deaths, &mut wakeups), Ok(n) if n == wakeups.len()) {}

        let mut reaped = Reaped::default();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == main {
                        reaped.main = Some(status);
                    }
                }
                Ok(None) => return reaped,
                Err(Errno::INTR) => {}
                // The one other answer there is: no child.
                Err(_) => {
                    reaped.alone = true;
                    return reaped;
                }
            }
        }
    }

    /// Kills every descendant and reaps it, again until none is left.
    ///
    /// `main` is the command's main process if it is not reaped yet. Gives up
    /// on processes of another user at once, and after `patience` on those that
    /// the kernel holds.
    pub(super) fn sweep(&self, mut main: Option<Pid>, patience: Duration) -> Swept {
        let started = Instant::now();
        let mut killed = HashSet::new();
        let mut immune = HashSet::new();
        let mut swept = Swept::default();
        loop {
            let reaped = self.reap(main);
            if reaped.main.is_some() {
                swept.main = reaped.main;
                main = None;
            }
            if reaped.alone {
                break;
            }
            let living = living();
            // The group dies as one, so that it cannot outrun the loop below by
            // forking. Its number is surely still the command's only while the
            // main process is not reaped.
            if let Some(group) = main {
                let _ = kill_process_group(group, Signal::KILL);
            }
            for process in &living {
                match kill_process(process.pid, Signal::KILL) {
                    Err(Errno::PERM) => {
                        immune.insert(process.pid);
                    }
                    _ if process.zombie || Some(process.pid) == main => {}
                    _ => {
                        killed.insert(process.pid);
                    }
                }
            }
            let only_immune =
                !living.is_empty() && living.iter().all(|process| immune.contains(&process.pid));
            if only_immune || started.elapsed() >= patience {
                swept.survivors = count(living.iter().filter(|p| !p.zombie).count());
                break;
            }
            let mut fds = [rustix::event::PollFd::new(
                &self.deaths,
                rustix::event::PollFlags::IN,
            )];
            // An error means another look at once, which is right as well.
            let _ = rustix::event::poll(&mut fds, LOOK_AGAIN.try_into().ok().as_ref());
        }
        swept.leaked = count(killed.difference(&immune).count());
        swept
    }
}

/// Returns a number of processes as a report's field has it.
fn count(processes: usize) -> u32 {
    u32::try_from(processes).unwrap_or(u32::MAX)
}

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    pub(super) zombie: bool,
    /// A signal has stopped it.
    pub(super) stopped: bool,
    /// When it was started, in the clock ticks of the system: with it, a number
    /// that was given again is distinguished from the one before.
    pub(super) start: u64,
}

/// Returns the descendants of this process, parents before their children.
///
/// The list is a snapshot: a process that is missing because its parent died
/// while it was read is in the next one.
pub(super) fn living() -> Vec<Process> {
    below(getpid(), everybody())
}

/// Returns all processes that can be seen.
pub(super) fn everybody() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        look_up(Pid::from_raw(name.to_str()?.parse().ok()?)?)
    })
}

/// Checks that the process numbers of `/proc` are those that this process
/// signals by.
///
/// # Errors
///
/// In a namespace of processes with another one's `/proc`: its numbers would
/// name strangers, so nothing may be started that has to be found again.
pub(super) fn processes_are_ours() -> io::Result<()> {
    let shown = fs::read_link("/proc/self")?;
    if shown.as_os_str() == getpid().as_raw_nonzero().to_string().as_str() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "/proc belongs to another PID namespace: it shows this process as {}, but it is {}; \
         remount /proc",
        shown.display(),
        getpid().as_raw_nonzero()
    )))
}

/// Returns the process that has a number now.
pub(super) fn look_up(pid: Pid) -> Option<Process> {
    let pid = pid.as_raw_nonzero().get();
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    process(pid, &stat)
}

/// Returns those below `root`, parents before their children.
pub(super) fn below(root: Pid, everybody: impl Iterator<Item = Process>) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in everybody {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children
        .remove(&root.as_raw_nonzero().get())
        .unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        next += 1;
        // Taken out, so that numbers reused while we read cannot form a cycle.
        let more = children.remove(&process.pid.as_raw_nonzero().get());
        found.extend(more.into_iter().flatten());
    }
    found
}

/// Reads one line of `/proc/<pid>/stat`: `pid (name) state parent …`. The name
/// may hold anything, brackets and spaces included.
fn process(pid: i32, stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Process {
        pid: Pid::from_raw(pid)?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        zombie: matches!(state, "Z" | "X"),
        stopped: state == "T",
        // The 22nd field of the line, of which six are behind us.
        start: fields.nth(15)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(pid: i32, parent: i32) -> Process {
        Process {
            pid: Pid::from_raw(pid).unwrap(),
            parent,
            group: 0,
            session: 0,
            zombie: false,
            stopped: false,
            start: 0,
        }
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_parent() {
        let line = b"7 (a) R 1 (b) Z 42 8 9 0 -1 4 11 12 13 14 15 16 17 18 20 0 1 0 777 1000 5";
        let read = process(7, line).unwrap();
        assert_eq!((read.parent, read.zombie), (42, true));
        assert_eq!((read.group, read.session, read.start), (8, 9, 777));
        assert_eq!(process(7, b"7 (sh"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_strangers_are_not() {
        let all = [some(5, 4), some(9, 1), some(4, 2), some(3, 2), some(2, 1)];
        let root = Pid::from_raw(2).unwrap();
        let found: Vec<_> = below(root, all.into_iter())
            .into_iter()
            .map(|p| p.pid.as_raw_nonzero().get())
            .collect();
        assert_eq!(found, [4, 3, 5]);
    }

    #[test]
    fn a_cycle_of_parents_ends() {
        let root = Pid::from_raw(2).unwrap();
        assert_eq!(below(root, [some(3, 4), some(4, 3)].into_iter()), []);
        assert_eq!(below(root, [some(3, 2), some(2, 3)].into_iter()).len(), 2);
    }
}
