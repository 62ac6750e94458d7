//! Processes of this machine, by their numbers (proc_pid_stat(5)).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getrlimit, pidfd_open, pidfd_send_signal,
    prlimit, set_child_subreaper, setrlimit, test_kill_process,
};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The most bytes of an environment that is read: the system gives a program 6 MiB
/// of arguments and variables at most.
const ENVIRON_MAX: u64 = 8 << 20;

/// The most bytes of a process's `stat`: 52 numbers and a name of at most 64.
const STAT_MAX: usize = 2048;

/// How many files this process might have open before [`raise_open_files`].
static OPEN_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process have as many files open as the system lets it: a lane holds a file
/// for each level of the folders that a step made.
///
/// # Errors
///
/// As the system reports it; the bound stays then.
pub fn raise_open_files() -> Result<()> {
    let before = OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, raised)
}

/// Gives a process that this one has started the bound that was in force before
/// [`raise_open_files`]: programs that use select(2) fail above 1,024.
///
/// # Errors
///
/// As [`limit`].
pub fn restore_open_files(pid: Pid) -> Result<()> {
    match OPEN_FILES.get() {
        Some(before) => limit(pid, Resource::Nofile, *before),
        None => Ok(()),
    }
}

/// A process as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: Pid,
    /// The number of its parent; 0 where that is in another namespace.
    pub parent: i32,
    /// The number of its process group.
    pub group: i32,
    /// The number of its session.
    pub session: i32,
    /// It has ended and was not waited for.
    pub zombie: bool,
    /// Its first thread has ended and others run: by its number `/proc` shows no
    /// memory and no files.
    pub headless: bool,
    /// A signal has stopped it.
    pub stopped: bool,
    /// How many threads it has, the first one included.
    pub threads: u64,
    /// When it was started, in the clock ticks of the system since boot: with it,
    /// a number that was given again is distinguished from the one before.
    pub start: u64,
}

/// Whether a process number is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A process with this number runs.
    Running(Process),
    /// By none, or by one that has ended.
    Gone,
    /// It cannot be looked at: no right, or no descriptor left.
    Unknown,
}

impl Process {
    /// Returns the process that has a number now.
    pub fn at(pid: Pid) -> Option<Self> {
        parse(pid, stat(pid, &mut [0; STAT_MAX]).ok()?)
    }

    /// Returns the number by which `/proc` shows what it holds: its own, or that
    /// of a thread that runs.
    pub fn shown_as(&self) -> Pid {
        let tasks = self.headless.then(|| fs::read_dir(entry(self.pid, "task")));
        let tasks = tasks.into_iter().flatten().flatten().flatten();
        let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let mut others = numbers
            .filter_map(Pid::from_raw)
            .filter(|task| *task != self.pid);
        others.next().unwrap_or(self.pid)
    }

    /// Returns all processes that can be seen. The list is a snapshot that is
    /// not atomic: one that is started or moved meanwhile may be missing.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten();
        entries.filter_map(|entry| {
            let name = entry.ok()?.file_name();
            Self::at(Pid::from_raw(name.to_str()?.parse().ok()?)?)
        })
    }
}

/// Returns whether a process number is in use.
pub fn presence(pid: Pid) -> Presence {
    match stat(pid, &mut [0; STAT_MAX]) {
        Ok(stat) => match parse(pid, stat) {
            Some(process) if process.zombie => Presence::Gone,
            Some(process) => Presence::Running(process),
            None => Presence::Unknown,
        },
        Err(error) => {
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            let has_no_entry = matches!(errno, Some(Errno::NOENT | Errno::SRCH));
            // A hidden process has no entry either: the kernel knows.
            let exists = test_kill_process(pid) != Err(Errno::SRCH);
            match has_no_entry && !exists {
                true => Presence::Gone,
                false => Presence::Unknown,
            }
        }
    }
}

/// Returns the environment that a process was started with, its entries each
/// ended by a zero byte; empty where it cannot be read. `None` where it is larger
/// than the system gives a program: the process made it so itself.
pub fn environment(pid: Pid) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(entry(pid, "environ")) {
        // What was read before an error counts.
        let _ = file.take(ENVIRON_MAX + 1).read_to_end(&mut bytes);
    }
    (bytes.len() as u64 <= ENVIRON_MAX).then_some(bytes)
}

/// Returns the file of the program that a process runs; `None` where it cannot
/// be read. The name of a file that is no longer there ends in ` (deleted)`.
pub fn program(pid: Pid) -> Option<PathBuf> {
    fs::read_link(entry(pid, "exe")).ok()
}

/// Checks that the process numbers of `/proc` are those that this process
/// signals by.
///
/// # Errors
///
/// In a namespace of processes with another one's `/proc`: its numbers would
/// name strangers, so nothing may be started that has to be found again.
pub fn check_numbers() -> io::Result<()> {
    let shown = fs::read_link("/proc/self")?;
    let own = getpid().as_raw_nonzero();
    if shown.as_os_str() == own.to_string().as_str() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "/proc belongs to another PID namespace: it shows this process as {}, but it is {own}; \
         remount /proc",
        shown.display(),
    )))
}

/// Makes this process the parent of its descendants whose own parents have
/// ended.
///
/// # Errors
///
/// As the system reports it.
pub fn adopt_orphans() -> Result<()> {
    set_child_subreaper(Some(getpid()))
}

/// Makes the system end a process first where the memory of the machine is used
/// up.
///
/// # Errors
///
/// The process has ended, or may not be changed.
pub fn give_up_first(pid: Pid) -> io::Result<()> {
    fs::write(entry(pid, "oom_score_adj"), "1000")
}

/// Sets a limit of a process.
///
/// # Errors
///
/// As the system reports it: the process has ended, or may not be changed.
pub fn limit(pid: Pid, resource: Resource, limits: Rlimit) -> Result<()> {
    prlimit(Some(pid), resource, limits).map(drop)
}

/// A process that stays the same one although numbers are used again.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// Opens the process that has a number now.
    ///
    /// # Errors
    ///
    /// `SRCH` where there is none; else as the system reports it.
    pub fn open(pid: Pid) -> Result<Self> {
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// `PERM` without the right, `SRCH` where it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        pidfd_send_signal(&self.0, signal)
    }

    /// Waits for its end; returns whether it has ended by then.
    pub fn has_ended_within(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left: Option<Timespec> = left.try_into().ok();
            match poll(&mut fds, left.as_ref()) {
                // A signal to this process may cut one wait short.
                Err(Errno::INTR) => {}
                other => return matches!(other, Ok(1..)),
            }
        }
    }
}

/// Reads the `stat` of a process at once: it is read for every process of the
/// machine, again and again.
fn stat(pid: Pid, buffer: &mut [u8; STAT_MAX]) -> io::Result<&[u8]> {
    let read = File::open(entry(pid, "stat"))?.read(buffer)?;
    Ok(&buffer[..read])
}

fn entry(pid: Pid, file: &str) -> String {
    format!("/proc/{}/{file}", pid.as_raw_nonzero())
}

/// Reads the line of a process's `stat`: `pid (name) state parent …`. The name
/// may hold anything, brackets and spaces included.
fn parse(pid: Pid, stat: &[u8]) -> Option<Process> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // The 20th field of the line, of which six are behind us, and the 22nd.
    let threads: u64 = fields.nth(13)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    let has_ended = matches!(state, "Z" | "X");
    Some(Process {
        pid,
        parent,
        group,
        session,
        zombie: has_ended && threads < 2,
        headless: has_ended && threads >= 2,
        stopped: state == "T",
        threads,
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getppid;

    #[test]
    fn this_process_is_found() {
        let own = Process::at(getpid()).unwrap();
        assert!(own.start > 0 && !own.zombie);
        assert_eq!(Pid::from_raw(own.parent), getppid());
        // Threads of other tests begin and end meanwhile.
        let is_own = |process: Process| (process.pid, process.start) == (own.pid, own.start);
        assert!(Process::all().any(is_own));
        assert!(matches!(presence(getpid()), Presence::Running(process) if is_own(process)));
        assert!(!environment(getpid()).unwrap().is_empty());
        check_numbers().unwrap();
        let handle = Handle::open(getpid()).unwrap();
        assert!(!handle.has_ended_within(Duration::ZERO));
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_parent() {
        let line = b"7 (a) R 1 (b) Z 42 8 9 0 -1 4 11 12 13 14 15 16 17 18 20 0 1 0 777 1000 5";
        let seven = Pid::from_raw(7).unwrap();
        let read = parse(seven, line).unwrap();
        assert_eq!((read.parent, read.zombie), (42, true));
        assert_eq!((read.group, read.session, read.start), (8, 9, 777));
        assert_eq!(parse(seven, b"7 (sh"), None);
    }

    #[test]
    fn a_process_whose_first_thread_ended_has_not_ended() {
        let line = b"7 (a) Z 42 8 9 0 -1 4 11 12 13 14 15 16 17 18 20 0 2 0 777 1000 5";
        let read = parse(Pid::from_raw(7).unwrap(), line).unwrap();
        assert_eq!(read.threads, 2);
        assert_eq!((read.zombie, read.headless), (false, true));
        let own = Process::at(getpid()).unwrap();
        assert_eq!(own.shown_as(), getpid());
        // As if it were: any other thread of this one.
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || stopped.recv());
        let headless = Process {
            headless: true,
            ..own
        };
        let shown = headless.shown_as();
        assert_ne!(shown, getpid());
        assert!(fs::read_dir(entry(shown, "fd")).unwrap().count() > 2);
        drop(stop);
        assert!(other.join().unwrap().is_err());
    }

    #[test]
    fn a_number_that_no_process_has_is_gone() {
        let pid = Pid::from_raw(i32::MAX).unwrap();
        assert_eq!(Process::at(pid), None);
        assert_eq!(presence(pid), Presence::Gone);
        assert!(Handle::open(pid).is_err());
    }
}
