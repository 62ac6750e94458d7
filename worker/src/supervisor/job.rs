//! One command in the supervisor process, from its start to its report.

use super::confine::landlock::{self, HeldPaths};
use super::confine::namespaces::{self, CommandBounds, OrderEnd, Record};
use super::confine::no_core;
use super::descendants::Children;
use super::message::{
    Begin, Exit, ExitCause, Report, Request, SpawnFailure, StreamReport, milliseconds,
};
use super::process::{LaneGone, LaneSocket, wait_for};
use super::stream::{Keep, Stream};
use super::usage::CommandUsage;
use premath_platform::process::{give_up_first, limit};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitStatus, getrlimit, kill_process_group,
    test_kill_process_group,
};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long what a finished command left may continue before it is killed: a
/// `tee` behind it has its last lines to write, and a process that closed its
/// pipes takes a moment to be dead. A command that leaves no process does not
/// wait.
const SETTLE: Duration = Duration::from_millis(200);

/// How long a sweep waits for a process that cannot be killed. It is shorter than
/// the lane's timeout for the supervisor. Otherwise the lane would take the
/// supervisor for one that hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a command until nothing of it is left, and reports to the lane.
///
/// Where the lane is gone, before or meanwhile, the command is killed.
pub(super) fn run(
    begin: Begin,
    files: [File; 2],
    lane: &mut LaneSocket,
    children: &Children,
) -> Result<(), LaneGone> {
    let id = begin.id;
    lane.scratch = begin
        .scratch
        .iter()
        .map(|path| PathBuf::from(&path.0))
        .collect();
    let exit = match Job::start(begin, files, &mut lane.held) {
        Ok(mut job) => {
            let pid = job.main.as_raw_nonzero().get();
            let attended = lane
                .report(&Report::Started { id, pid })
                .and_then(|()| job.wait_for_end(lane, children));
            // Even for a lane that is gone: nothing stays, and what its streams
            // hold may be all that anybody ever learns of the command.
            let exit = job.clear_away(lane, children);
            attended?;
            exit
        }
        Err(cause) => Exit {
            code: None,
            signal: None,
            cause,
            duration_ms: 0,
            stdout: StreamReport::nothing(),
            stderr: StreamReport::nothing(),
            leaked: 0,
            survivors: 0,
        },
    };
    lane.report(&Report::Exited { id, exit })
}

/// How far a command is on its way out.
#[derive(Debug)]
enum ShutdownPhase {
    /// Its main process runs, and may.
    Working,
    /// Its group was instructed to end and has until then.
    Ending { kill_at: Option<Instant> },
    /// Its main process is over; what it left may write its last until then.
    Settling { until: Instant },
}

/// The next action of a job.
enum Next {
    /// Wait for an event, at most until the moment.
    Wait(Option<Instant>),
    /// Kill what is left.
    Clear,
}

/// A command that was started.
struct Job {
    id: u64,
    /// Its main process, and the number of its group.
    main: Pid,
    /// How the main process ended; until then it is not reaped.
    status: Option<WaitStatus>,
    cause: ExitCause,
    phase: ShutdownPhase,
    started: Instant,
    limit_at: Option<Instant>,
    grace: Duration,
    release: Duration,
    /// When its processes were asked to end.
    asked: Option<Instant>,
    /// Its standard output and its standard error.
    streams: [Stream; 2],
    /// What the processes that confine it report about it, where there are
    /// some.
    record: Option<Record>,
    usage: CommandUsage,
}

impl Job {
    fn start(begin: Begin, files: [File; 2], held: &mut HeldPaths) -> Result<Self, ExitCause> {
        let id = begin.id;
        let grace = Duration::from_millis(begin.grace_ms);
        let release = Duration::from_millis(begin.release_ms);
        let limit = Duration::from_millis(begin.limit_ms);
        let [stdout, stderr] = files;
        let unopened = |error: io::Error| spawn_failed(SpawnFailure::Other, &error);
        let of_stdout = match begin.stream_cap {
            Some(cap) => Keep::Head(cap),
            None => Keep::Ends(begin.output_cap),
        };
        let of_stderr = Keep::Ends(begin.output_cap);
        let (stdout, stdout_pipe) = Stream::open(stdout, of_stdout).map_err(unopened)?;
        let (stderr, stderr_pipe) = Stream::open(stderr, of_stderr).map_err(unopened)?;
        let started = Instant::now();
        let usage = CommandUsage::of(begin.ceilings.clone(), started);
        let pipes = [stdout_pipe.into(), stderr_pipe.into()];
        let (main, record) = spawn(begin, pipes, held)?;
        Ok(Self {
            id,
            main,
            status: None,
            cause: ExitCause::Exited,
            phase: ShutdownPhase::Working,
            started,
            // A limit beyond the clock's end is none.
            limit_at: started.checked_add(limit),
            grace,
            release,
            asked: None,
            streams: [stdout, stderr],
            record,
            usage,
        })
    }

    /// Keeps the command going until what is left of it is to be killed.
    fn wait_for_end(&mut self, lane: &mut LaneSocket, children: &Children) -> Result<(), LaneGone> {
        loop {
            let reaped = children.reap(self.unreaped());
            self.status = self.status.or(reaped.main);
            let Next::Wait(until) = self.advance(Instant::now(), reaped.alone) else {
                return Ok(());
            };
            let pipes = self.streams.iter().filter_map(Stream::pollable);
            let heard = [lane.pollable(), children.pollable()];
            wait_for(heard.into_iter().chain(pipes), until);
            lane.receive()?;
            while let Some(request) = lane.next()? {
                match request {
                    Request::Stop { id, now } if id == self.id => {
                        if self.stop(now) {
                            return Ok(());
                        }
                    }
                    // It ended before this one began.
                    Request::Stop { .. } => {}
                    // A lane runs one command at a time.
                    Request::Begin(_) => return Err(LaneGone),
                }
            }
            for stream in &mut self.streams {
                stream.pump(&mut lane.buffer);
            }
        }
    }

    /// Moves on as far as the moment allows.
    fn advance(&mut self, now: Instant, alone: bool) -> Next {
        let over = self.status.is_some();
        if over && alone {
            return Next::Clear;
        }
        if let Some(resource) = self.usage.exceeded(now, self.launcher()) {
            self.cause = ExitCause::Exceeded(resource);
            return Next::Clear;
        }
        match self.phase {
            ShutdownPhase::Working if over => self.settle(now),
            ShutdownPhase::Working if reached(self.limit_at, now) => {
                self.end(ExitCause::Limit, now)
            }
            // The grace is the whole group's: a shell dies at once where the
            // agent below it has a session to save.
            ShutdownPhase::Ending { .. } if over && test_kill_process_group(self.main).is_err() => {
                self.settle(now);
            }
            _ => {}
        }
        let until = match self.phase {
            ShutdownPhase::Working => self.limit_at,
            ShutdownPhase::Ending { kill_at } => kill_at,
            ShutdownPhase::Settling { until } => Some(until),
        };
        if reached(until, now) {
            return Next::Clear;
        }
        Next::Wait([until, self.usage.next_look()].into_iter().flatten().min())
    }

    /// Answers the lane's request to end; true if that means to kill now.
    fn stop(&mut self, now: bool) -> bool {
        if let ShutdownPhase::Working = self.phase {
            if now {
                self.cause = ExitCause::Stopped;
            } else {
                self.end(ExitCause::Stopped, Instant::now());
            }
        }
        now
    }

    /// Signals the group to end. Only while working, so the main process is not
    /// reaped and the number is the group's.
    fn end(&mut self, cause: ExitCause, now: Instant) {
        self.cause = cause;
        self.phase = ShutdownPhase::Ending {
            kill_at: now.checked_add(self.grace),
        };
        self.asked = Some(Instant::now());
        self.terminate();
    }

    fn terminate(&self) {
        let _ = kill_process_group(self.main, Signal::TERM);
        // One that was stopped would not hear it.
        let _ = kill_process_group(self.main, Signal::CONT);
    }

    /// Before what is left is killed, lets it release what it holds, where it has
    /// time for that. The time of a group that was asked to end began then.
    fn release_held(&mut self, lane: &mut LaneSocket, children: &Children) {
        if self.release.is_zero() || matches!(self.cause, ExitCause::Exceeded(_)) {
            return;
        }
        let until = self.asked.unwrap_or_else(Instant::now) + self.release;
        loop {
            let reaped = children.reap(self.unreaped());
            self.status = self.status.or(reaped.main);
            if reaped.alone || Instant::now() >= until {
                return;
            }
            if self.asked.is_none() {
                self.ask(children);
            }
            let pipes = self.streams.iter().filter_map(Stream::pollable);
            wait_for([children.pollable()].into_iter().chain(pipes), Some(until));
            for stream in &mut self.streams {
                stream.pump(&mut lane.buffer);
            }
        }
    }

    /// Signals every process of the command to end: the group as one, where its number
    /// is surely still the command's, and the others one by one.
    fn ask(&mut self, children: &Children) {
        let group = self.unreaped();
        if group.is_some() {
            self.terminate();
        }
        children.ask_to_end(group);
        self.asked = Some(Instant::now());
    }

    fn settle(&mut self, now: Instant) {
        self.phase = ShutdownPhase::Settling {
            until: now + SETTLE,
        };
    }

    /// Returns the process of ours that the command is below, where it has one.
    fn launcher(&self) -> Option<Pid> {
        self.record.as_ref().map(|_| self.main)
    }

    fn unreaped(&self) -> Option<Pid> {
        self.status.is_none().then_some(self.main)
    }

    /// Kills what is left, completes the files, and says how it was.
    fn clear_away(mut self, lane: &mut LaneSocket, children: &Children) -> Exit {
        self.release_held(lane, children);
        let swept = children.sweep(self.unreaped(), PATIENCE);
        let status = self.status.or(swept.main);
        let end = End::of(self.record.as_ref(), status);
        // With the writers dead, the pipes hold the last there is.
        let [stdout, stderr] = self.streams.map(|s| s.finish(&mut lane.buffer));
        Exit {
            code: end.code,
            signal: end.signal,
            cause: end.cause.unwrap_or(self.cause),
            duration_ms: milliseconds(self.started.elapsed()),
            stdout,
            stderr,
            leaked: swept.leaked.saturating_sub(end.own) + end.left,
            survivors: swept.survivors,
        }
    }
}

/// How a command ended, by its own process or by those that confined it.
#[derive(Debug, Default)]
struct End {
    code: Option<i32>,
    signal: Option<i32>,
    /// Why, where it never ran.
    cause: Option<ExitCause>,
    /// How many of its processes were left, and ended with their namespace.
    left: u32,
    /// How many of the processes that were killed are ours, or the main one.
    own: u32,
}

impl End {
    fn of(record: Option<&Record>, status: Option<WaitStatus>) -> Self {
        let by_status = Self {
            code: status.and_then(WaitStatus::exit_status),
            signal: status.and_then(WaitStatus::terminating_signal),
            ..Self::default()
        };
        let Some(record) = record else {
            return by_status;
        };
        match record.outcome() {
            Some(OrderEnd::Ended { code, signal, left }) => Self {
                code,
                signal,
                left,
                ..Self::default()
            },
            Some(OrderEnd::NotStarted { errno, message }) => {
                let error = io::Error::from_raw_os_error(errno);
                let kind = match errno {
                    0 => SpawnFailure::Other,
                    _ => kind_of(&error),
                };
                Self::never(kind, message)
            }
            Some(OrderEnd::NotConfined { message }) => {
                Self::never(SpawnFailure::Confinement, message)
            }
            // The launcher was killed, and with it the init and the command.
            None if by_status.signal.is_some() => Self {
                own: 2,
                ..by_status
            },
            None => Self::never(
                SpawnFailure::Confinement,
                "the process that confines it ended without a report".to_owned(),
            ),
        }
    }

    fn never(kind: SpawnFailure, message: String) -> Self {
        Self {
            cause: Some(ExitCause::SpawnFailed { kind, message }),
            ..Self::default()
        }
    }
}

fn kind_of(error: &io::Error) -> SpawnFailure {
    match error.kind() {
        io::ErrorKind::NotFound => SpawnFailure::NotFound,
        io::ErrorKind::PermissionDenied => SpawnFailure::PermissionDenied,
        _ => SpawnFailure::Other,
    }
}

fn reached(moment: Option<Instant>, now: Instant) -> bool {
    moment.is_some_and(|moment| moment <= now)
}

/// Starts a command's main process in a group of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "only the supervisor starts commands"
)]
fn spawn(
    mut begin: Begin,
    [stdout, stderr]: [Stdio; 2],
    held: &mut HeldPaths,
) -> Result<(Pid, Option<Record>), ExitCause> {
    if let Some(view) = begin.view.take() {
        let started = namespaces::spawn(begin, view, [stdout, stderr]);
        let (launcher, record) =
            started.map_err(|error| spawn_failed(SpawnFailure::Confinement, &error))?;
        return Ok((Pid::from_child(&launcher), Some(record)));
    }
    let cwd = begin.cwd.0;
    let mut command = Command::new(begin.program.0);
    command
        .args(begin.args.into_iter().map(|text| text.0))
        .env_clear()
        .envs(begin.env.into_iter().map(|(name, value)| (name.0, value.0)))
        .current_dir(&cwd)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let started = match &begin.lists {
        None => command.spawn(),
        Some(lists) => landlock::spawn(&mut command, lists, held)
            .map_err(|error| spawn_failed(SpawnFailure::Confinement, &error))?,
    };
    match started {
        // The handle is not needed: `Children` reaps.
        Ok(child) => {
            let main = Pid::from_child(&child);
            if begin.lists.is_some() {
                bound(main, &begin.bounds);
            }
            Ok((main, None))
        }
        Err(error) => {
            // The system has one error for both.
            let kind = if !Path::new(&cwd).is_dir() {
                SpawnFailure::WorkingDirectory
            } else {
                kind_of(&error)
            };
            Err(spawn_failed(kind, &error))
        }
    }
}

/// Bounds a command that has just been started, before its shell has read a
/// line. The number of processes is the user's there, so it is only watched.
fn bound(main: Pid, bounds: &CommandBounds) {
    // Where the machine runs out of memory, the command goes first.
    let _ = give_up_first(main);
    let all = [
        (Resource::Nofile, bounds.open_files),
        (Resource::Fsize, bounds.file_bytes),
    ];
    // Each fails where the command has ended already.
    let _ = limit(main, Resource::Core, no_core());
    for (resource, bound) in all {
        let Some(bound) = bound else { continue };
        let before = getrlimit(resource);
        let least = |limit: Option<u64>| Some(limit.map_or(bound, |limit| limit.min(bound)));
        let limits = Rlimit {
            current: least(before.current),
            maximum: least(before.maximum),
        };
        let _ = limit(main, resource, limits);
    }
}

fn spawn_failed(kind: SpawnFailure, error: &io::Error) -> ExitCause {
    ExitCause::SpawnFailed {
        kind,
        message: error.to_string(),
    }
}
