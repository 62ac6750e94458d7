//! The lane's side: starts the supervisor process and speaks with it.

use super::command::CommandSpec;
use super::message::{Begin, Exit, FrameBuffer, Report, Request, STREAMS, frame};
use super::orphans::{self, MARKER, MARKER_OF_SUPERVISOR};
use super::{MODE, job};
use premath_kernel::failure::FailureClass;
use premath_platform::manager;
use premath_platform::process::restore_open_files;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// How long a lane that releases its supervisor waits for its end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Says what went wrong between a lane and its supervisor.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The supervisor process could not be started.
    #[error("cannot start the lane's supervisor `{}`", program.display())]
    Start {
        /// The executable that was to be it.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The control socket could not be registered with the lane's runtime.
    #[error("cannot watch the control socket of the lane's supervisor")]
    Register {
        /// The runtime's answer.
        source: io::Error,
    },
    /// The command could not be put into a request: it is far too long.
    #[error("cannot send the command to the lane's supervisor")]
    Request {
        /// What is wrong with it.
        source: io::Error,
    },
    /// The supervisor process ended, hangs, or speaks nonsense. It and what it
    /// had started is killed.
    #[error("the lane's supervisor (process {pid}) is lost")]
    Lost {
        /// The process id of the supervisor.
        pid: u32,
        /// How many processes that it left could not be ended. The lane's
        /// worktree cannot be trusted while there are any.
        survivors: u32,
        /// What the socket said, where it said more than its end.
        source: Option<io::Error>,
    },
}

impl SupervisorError {
    /// Returns the failure class that the error belongs to.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Start { .. } | Self::Register { .. } | Self::Request { .. } => {
                FailureClass::ExecutorUnavailable
            }
            Self::Lost { .. } => FailureClass::SupervisorLost,
        }
    }
}

/// Holds a lane's supervisor process and the control socket to it.
///
/// Runs one command at a time. Everything asynchronous happens on the runtime
/// that the first [`begin`](Self::begin) was called in.
///
/// Starting one makes this process a child subreaper, so that what a killed
/// supervisor leaves can be found. This process should start no session leaders
/// of its own; see the module on what is taken for an orphan.
///
/// Dropping it ends the process, which kills what runs, and waits for that up
/// to two seconds; a stopped one is killed, which is bounded as well.
#[derive(Debug)]
pub struct Supervisor {
    process: Child,
    program: PathBuf,
    patience: Duration,
    control: Control,
    inbox: FrameBuffer,
    /// What is to be sent yet, and the files that go with its first byte.
    outbox: Vec<u8>,
    files: Vec<OwnedFd>,
    /// The number of the latest command.
    latest: u64,
    /// Whether its exit has not been received yet.
    outstanding: bool,
    /// Its process group, while it exists.
    group: Option<Pid>,
    /// The grace of the command between terminate and kill.
    grace: Duration,
    /// When its exit must have been received; nothing is outstanding, or its
    /// limit is beyond the clock's end, where there is none. Only ever moved
    /// ahead, however often it is waited for.
    backstop: Option<Instant>,
    lost: bool,
    survivors: u32,
}

/// The control socket, before and after a runtime knows it.
#[derive(Debug)]
enum Control {
    Plain(StdStream),
    Watched(UnixStream),
    Closed,
}

// A supervisor that cannot end a process reports that before it is abandoned.
const _: () = assert!(Supervisor::PATIENCE.as_secs() > job::PATIENCE.as_secs() + 2);

impl Supervisor {
    /// How much longer than a command may take its supervisor may: when the
    /// command's limit and grace and this have passed without its exit, or the
    /// grace and this since a stop, or this alone since a stop without grace,
    /// the supervisor is lost.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// Starts the supervisor process of a lane.
    ///
    /// `program` is the running executable itself, or another one of the same
    /// build whose `main` begins with [`hidden_mode`](super::hidden_mode()).
    /// `/proc/self/exe` is it even after the file was replaced by an update,
    /// where `current_exe` is not. `lock` is the descriptor that holds the
    /// lane's worktree lock; the process keeps it open until nothing it started
    /// is left, and this process releases it here.
    ///
    /// # Errors
    ///
    /// [`SupervisorError::Start`].
    pub fn start(program: &Path, lock: OwnedFd) -> Result<Self, SupervisorError> {
        let failed = |source| SupervisorError::Start {
            program: program.to_owned(),
            source,
        };
        // Both ends close at exec, or else one lane's supervisor would hold
        // another's socket open.
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the supervisor itself; everything else is started by it"
        )]
        let start = || {
            let mut command = Command::new(program);
            for name in manager::VARIABLES {
                command.env_remove(name);
            }
            command
                .arg0("premath-supervisor")
                .arg(MODE)
                .env(MARKER, MARKER_OF_SUPERVISOR)
                .stdin(OwnedFd::from(theirs))
                .stdout(lock)
                .spawn()
        };
        let process = orphans::start(start).map_err(failed)?;
        // It starts nothing before it receives a request, and its commands have its bounds.
        let _ = restore_open_files(Pid::from_child(&process));
        Ok(Self {
            process,
            program: program.to_owned(),
            patience: Self::PATIENCE,
            control: Control::Plain(ours),
            inbox: FrameBuffer::default(),
            outbox: Vec::new(),
            files: Vec::new(),
            latest: 0,
            outstanding: false,
            group: None,
            grace: Duration::ZERO,
            backstop: None,
            lost: false,
            survivors: 0,
        })
    }

    /// Sets another patience than `PATIENCE`.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts a new supervisor process in the place of this one, of the same
    /// program and with the same patience.
    ///
    /// Meant for one that is lost; any other is ended first, as by a drop.
    /// `lock` is as for [`start`](Self::start). If the loss reported survivors,
    /// the worktree is not the lane's alone, and a restart does not change
    /// that.
    ///
    /// # Errors
    ///
    /// [`SupervisorError::Start`]; the supervisor is lost then.
    pub fn restart(&mut self, lock: OwnedFd) -> Result<(), SupervisorError> {
        self.end();
        self.lost = true;
        let fresh = Self::start(&self.program, lock)?;
        *self = fresh.with_patience(self.patience);
        Ok(())
    }

    /// Returns whether the supervisor was found to be lost, so that every
    /// [`begin`](Self::begin) fails until a [`restart`](Self::restart).
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Lets the supervisor process end, which a drop waits for. No command can
    /// be begun any more.
    pub(crate) fn close(&mut self) {
        self.control = Control::Closed;
    }

    /// Returns the process id of the supervisor.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Begins a command whose output goes to two empty files.
    ///
    /// The command gets one variable more than the given ones, [`MARKER`].
    /// Waits first for the exit of an earlier command that was given up; that
    /// one is killed. A command that cannot be started is not an error here but
    /// an [`Exit`] with that cause.
    ///
    /// # Errors
    ///
    /// [`SupervisorError::Lost`] if the supervisor has ended,
    /// [`SupervisorError::Request`] if the command is too long to be passed on,
    /// [`SupervisorError::Register`] if the socket cannot be watched.
    pub async fn begin(
        &mut self,
        mut command: CommandSpec,
        stdout: File,
        stderr: File,
    ) -> Result<Running<'_>, SupervisorError> {
        if self.lost {
            return Err(self.lost_because(None));
        }
        orphans::reap_inherited();
        self.watch()?;
        if self.outstanding {
            // Long ago perhaps, and its time over: first what is here already.
            self.drain();
            if !matches!(self.take_in(), Ok(Some(_))) {
                self.request_stop(true)?;
                self.exit().await?;
            }
        }
        let id = self.latest + 1;
        let marker = format!("{}.{id}", self.pid());
        command.env.push((MARKER.into(), marker.into()));
        let (limit, grace) = (command.limit, command.grace);
        let request = Request::Begin(Box::new(Begin::new(id, command)));
        let bytes = frame(&request).map_err(|source| SupervisorError::Request { source })?;
        self.grace = grace;
        self.backstop = Instant::now()
            .checked_add(limit)
            .and_then(|at| at.checked_add(grace))
            .and_then(|at| at.checked_add(self.patience));
        // The rest of an old request goes before the files of a new one.
        self.flush().await?;
        self.latest = id;
        // From here on, also if this future is dropped: the next command waits.
        self.outstanding = true;
        self.outbox = bytes;
        self.files = vec![stdout.into(), stderr.into()];
        self.flush().await?;
        Ok(Running {
            supervisor: self,
            exit: None,
        })
    }

    /// Has the runtime watch the socket, once.
    fn watch(&mut self) -> Result<(), SupervisorError> {
        if let Control::Plain(stream) = &self.control {
            let registered = stream
                .try_clone()
                .and_then(UnixStream::from_std)
                .map_err(|source| SupervisorError::Register { source })?;
            self.control = Control::Watched(registered);
        }
        Ok(())
    }

    fn stream(&self) -> Result<&UnixStream, SupervisorError> {
        match &self.control {
            Control::Watched(stream) => Ok(stream),
            Control::Plain(_) | Control::Closed => Err(self.lost_because(None)),
        }
    }

    /// Asks for the end of the latest command; the request is sent by `flush`.
    fn request_stop(&mut self, now: bool) -> Result<(), SupervisorError> {
        let grace = if now { Duration::ZERO } else { self.grace };
        let by = Instant::now()
            .checked_add(grace)
            .and_then(|at| at.checked_add(self.patience));
        // None is later than any.
        self.backstop = self.backstop.into_iter().chain(by).min();
        let stop = Request::Stop {
            id: self.latest,
            now,
        };
        let bytes = frame(&stop).map_err(|source| SupervisorError::Request { source })?;
        self.outbox.extend(bytes);
        Ok(())
    }

    /// Sends what is to be sent. Dropped in the middle, it leaves the rest for
    /// the next call.
    async fn flush(&mut self) -> Result<(), SupervisorError> {
        match within(self.backstop, self.send()).await {
            Some(sent) => sent,
            None => Err(self.lost(Some(no_answer()))),
        }
    }

    async fn send(&mut self) -> Result<(), SupervisorError> {
        while !self.outbox.is_empty() {
            let ready = self.stream()?.writable().await;
            if let Err(error) = ready.and_then(|()| self.send_some()) {
                return Err(self.lost(Some(error)));
            }
        }
        Ok(())
    }

    /// Sends as much as goes without waiting.
    fn send_some(&mut self) -> io::Result<()> {
        let Control::Watched(stream) = &self.control else {
            return Ok(());
        };
        let sent = stream.try_io(Interest::WRITABLE, || {
            let files: Vec<_> = self.files.iter().map(AsFd::as_fd).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            if !files.is_empty() {
                rights.push(SendAncillaryMessage::ScmRights(&files));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            Ok(sendmsg(
                stream,
                &[IoSlice::new(&self.outbox)],
                &mut rights,
                flags,
            )?)
        });
        match sent {
            Ok(count) => {
                self.files.clear();
                self.outbox.drain(..count);
                Ok(())
            }
            Err(error) if retry(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the exit of the latest command, at most until the backstop.
    ///
    /// Cancel-safe: what has come in stays in the inbox.
    async fn exit(&mut self) -> Result<Exit, SupervisorError> {
        self.flush().await?;
        if let Some(exit) = within(self.backstop, self.receive_exit()).await {
            return exit;
        }
        // It may have been us who hung: a harness that was stopped wakes up
        // late, to an exit that its runtime does not know about yet.
        self.drain();
        match self.take_in() {
            Ok(Some(exit)) => Ok(exit),
            Ok(None) => Err(self.lost(Some(no_answer()))),
            Err(error) => Err(self.lost(Some(error))),
        }
    }

    async fn receive_exit(&mut self) -> Result<Exit, SupervisorError> {
        loop {
            match self.take_in() {
                Ok(Some(exit)) => return Ok(exit),
                Ok(None) => {}
                Err(error) => return Err(self.lost(Some(error))),
            }
            let stream = self.stream()?;
            let mut bytes = [0; 4096];
            let read = match stream.readable().await {
                Ok(()) => stream.try_read(&mut bytes),
                Err(error) => Err(error),
            };
            match read {
                Ok(0) => return Err(self.lost(None)),
                Ok(count) => self.inbox.push(&bytes[..count]),
                Err(error) if retry(&error) => {}
                Err(error) => return Err(self.lost(Some(error))),
            }
        }
    }

    /// Takes the reports in that are here, up to the exit of the latest
    /// command.
    fn take_in(&mut self) -> io::Result<Option<Exit>> {
        loop {
            match self.inbox.next()? {
                Some(Report::Started { pid, .. }) => self.group = Pid::from_raw(pid),
                Some(Report::Exited { id, exit }) if id == self.latest => {
                    self.group = None;
                    self.outstanding = false;
                    self.backstop = None;
                    return Ok(Some(exit));
                }
                // Of an earlier command, which is not waited for any more.
                Some(Report::Exited { .. }) => self.group = None,
                None => return Ok(None),
            }
        }
    }

    /// Reads what the socket has, whatever the runtime knows about it.
    fn drain(&mut self) {
        if let Control::Watched(stream) = &self.control {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = rustix::io::read(stream, &mut bytes) {
                self.inbox.push(&bytes[..count]);
            }
        }
    }

    /// Marks the supervisor lost: kills it, if it still runs, and what it
    /// left behind, as it cannot do so itself.
    fn lost(&mut self, source: Option<io::Error>) -> SupervisorError {
        // What it said before its end may name the group, or end it.
        self.drain();
        let _ = self.take_in();
        self.control = Control::Closed;
        self.inbox = FrameBuffer::default();
        self.outbox.clear();
        self.files.clear();
        self.outstanding = false;
        self.backstop = None;
        self.lost = true;
        self.survivors = orphans::terminate(&mut self.process, self.group.take());
        self.lost_because(source)
    }

    /// Ends the supervisor process, which ends what it runs. Bounded.
    fn end(&mut self) {
        self.control = Control::Closed;
        // One that is lost is dead, or cannot be killed, and was left.
        if self.lost {
            return;
        }
        orphans::reap_inherited();
        // It would not see the socket close if it was stopped by a signal. Not
        // reaped, so the number is its own.
        let _ = kill_process(Pid::from_child(&self.process), Signal::CONT);
        if orphans::await_end(&mut self.process, EXIT_TIMEOUT) {
            return;
        }
        if orphans::is_stopped(&self.process) {
            orphans::terminate(&mut self.process, self.group.take());
        } else {
            // One that still has a process to see off is left to it: killed, it
            // could not.
            orphans::leave(&self.process);
        }
    }

    fn lost_because(&self, source: Option<io::Error>) -> SupervisorError {
        SupervisorError::Lost {
            pid: self.pid(),
            survivors: self.survivors,
            source,
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Holds a command that was begun.
///
/// Dropped before its exit, it has the command killed; the next
/// [`begin`](Supervisor::begin) waits for that.
#[derive(Debug)]
#[must_use = "dropping it kills the command"]
pub struct Running<'a> {
    supervisor: &'a mut Supervisor,
    exit: Option<Exit>,
}

impl Running<'_> {
    /// Waits for the command's exit. Nothing of the command is left then, but
    /// for [`Exit::survivors`].
    ///
    /// Cancel-safe, and answers the same again once it has answered. Answers
    /// within the command's limit, its grace and `Supervisor::PATIENCE`,
    /// whatever happened to the supervisor, and counts that from the command's
    /// begin however often the wait is cut short.
    ///
    /// # Errors
    ///
    /// [`SupervisorError::Lost`]; what is left of the command is killed then.
    /// Killing it may block the thread, for milliseconds as a rule and for
    /// seconds if the kernel does not release a process.
    pub async fn wait(&mut self) -> Result<Exit, SupervisorError> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        let exit = self.supervisor.exit().await?;
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    /// Asks for the command's end: its group gets TERM and its grace, or, with
    /// `kill_now`, everything is killed. [`wait`](Self::wait) then reports how
    /// it ended.
    ///
    /// Does nothing for a command that is over, and may be called again.
    ///
    /// # Errors
    ///
    /// [`SupervisorError::Lost`]; what is left of the command is killed then.
    pub async fn stop(&mut self, kill_now: bool) -> Result<(), SupervisorError> {
        if self.exit.is_some() {
            return Ok(());
        }
        if self.supervisor.lost {
            return Err(self.supervisor.lost_because(None));
        }
        self.supervisor.request_stop(kill_now)?;
        self.supervisor.flush().await
    }

    /// Returns the id of the command's main process, which is that of its
    /// group too, once [`wait`](Self::wait) has been polled after its start.
    pub fn pid(&self) -> Option<u32> {
        let group = self.supervisor.group?;
        u32::try_from(group.as_raw_nonzero().get()).ok()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // What does not go out now is sent by the next `begin`; and if there
        // is none, the socket's end says the same.
        if self.exit.is_none()
            && !self.supervisor.lost
            && self.supervisor.request_stop(true).is_ok()
        {
            let _ = self.supervisor.send_some();
        }
    }
}

/// Awaits a future until a moment; none if it is not there by then.
async fn within<T>(until: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => tokio::time::timeout_at(until.into(), future).await.ok(),
        None => Some(future.await),
    }
}

/// Returns the error of a supervisor that did not answer in time.
fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer")
}

/// Returns whether a call has to be made again, now or when the socket is
/// ready.
fn retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
