//! The processes below this one: who they are, and how they end.
//!
//! The supervisor is a child subreaper, so a process that lost its parent
//! becomes its direct child, whatever group or session it moved to. Hence no
//! descendant can hide: as long as there is one, `wait` knows a child.

use premath_platform::process::{Process, adopt_orphans};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait,
};
use std::collections::{BTreeMap, HashSet};
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

/// The result of a sweep.
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
        adopt_orphans()?;
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

    /// Signals every descendant to end, but for those of a group.
    pub(super) fn ask_to_end(&self, but: Option<Pid>) {
        let but = but.map(|group| group.as_raw_nonzero().get());
        for process in descendants_now() {
            if Some(process.group) != but {
                let _ = kill_process(process.pid, Signal::TERM);
                // One that was stopped would not hear it.
                let _ = kill_process(process.pid, Signal::CONT);
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
            let living = descendants_now();
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

/// Returns the descendants of this process, parents before their children.
///
/// The list is a snapshot: a process that is missing because its parent died
/// while it was read is in the next one.
pub(super) fn descendants_now() -> Vec<Process> {
    below(getpid(), Process::all())
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
            headless: false,
            stopped: false,
            threads: 1,
            start: 0,
        }
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
