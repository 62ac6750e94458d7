//! The supervisor process: one poll loop over its lane and its child.

use super::confine::landlock::HeldPaths;
use super::confine::scratch;
use super::descendants::Children;
use super::job;
use super::message::{FrameBuffer, Report, Request, STREAMS, frame};
use super::stream::CHUNK;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Runs this process as the supervisor of one lane, until the lane is gone.
///
/// Standard input is its control socket, standard output the lane's worktree
/// lock; nothing is ever written there. Fails if it was not started so, which
/// is by [`Supervisor::start`](super::Supervisor::start) only.
pub(super) fn main() -> ExitCode {
    let Ok((children, mut lane)) = prepare() else {
        return ExitCode::FAILURE;
    };
    // Whatever happens in the loop, even a mistake of ours, nothing of the
    // command may outlive this process.
    let served = catch_unwind(AssertUnwindSafe(|| lane.serve(&children)));
    // The lock is held for one that dies slowly; another user's process, which
    // we cannot kill, would hold it for ever.
    while !children.reap(None).alone && children.sweep(None, job::PATIENCE).leaked > 0 {}
    for folder in &lane.scratch {
        // The lane did, unless it was killed.
        let _ = scratch::remove(folder);
    }
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Makes this process what a supervisor has to be.
fn prepare() -> io::Result<(Children, LaneSocket)> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    close_inherited()?;
    // The lane alone says when to end, by its socket. A handler and not
    // "ignore", which the commands would inherit.
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&heard))?;
    }
    // A session of its own is out of reach of the terminal's Ctrl-C and has no
    // terminal, so that a command which asks for a password fails at once
    // instead of hanging. It fails only where it is one already.
    let _ = rustix::process::setsid();
    // The name that `ps` and `pkill` see would else be the harness's.
    premath_platform::program::set_name(c"premath-lane")?;

    let control = io::stdin().as_fd().try_clone_to_owned()?;
    // Fails on anything but a socket: a user typed the hidden mode.
    rustix::net::sockopt::socket_type(&control)?;
    rustix::io::ioctl_fionbio(&control, true)?;
    Ok((
        Children::adopt()?,
        LaneSocket {
            control,
            inbox: FrameBuffer::default(),
            files: VecDeque::new(),
            buffer: vec![0; CHUNK],
            scratch: Vec::new(),
            held: HeldPaths::default(),
        },
    ))
}

/// Closes every inherited descriptor, before it reaches a command: all but the
/// three that a supervisor is started with.
fn close_inherited() -> io::Result<()> {
    let own = premath_platform::program::descriptors()?;
    for number in own.into_iter().filter(|number| *number > 2) {
        // That of the list itself is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The lane is gone, or speaks nonsense, which is handled as the same.
#[derive(Debug)]
pub(super) struct LaneGone;

/// The supervisor's end of the control socket.
#[derive(Debug)]
pub(super) struct LaneSocket {
    control: OwnedFd,
    inbox: FrameBuffer,
    /// Stream files that came in, in order.
    files: VecDeque<File>,
    /// Where everything is read into first.
    pub(super) buffer: Vec<u8>,
    /// The folders of the latest command's own, and of its session.
    pub(super) scratch: Vec<PathBuf>,
    /// What its commands may write.
    pub(super) held: HeldPaths,
}

impl LaneSocket {
    /// Runs one command after another until the lane is gone.
    fn serve(&mut self, children: &Children) {
        loop {
            match self.next() {
                Ok(Some(Request::Begin(begin))) => {
                    let (Some(stdout), Some(stderr)) =
                        (self.files.pop_front(), self.files.pop_front())
                    else {
                        return;
                    };
                    if job::run(*begin, [stdout, stderr], self, children).is_err() {
                        return;
                    }
                }
                // It ended on its own just before.
                Ok(Some(Request::Stop { .. })) => {}
                Ok(None) => {
                    wait_for([self.pollable(), children.pollable()], None);
                    children.reap(None);
                    if self.receive().is_err() {
                        return;
                    }
                }
                Err(LaneGone) => return,
            }
        }
    }

    /// Returns the descriptor that is readable when the lane has spoken, or is
    /// gone.
    pub(super) fn pollable(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Returns the next request that is already here.
    pub(super) fn next(&mut self) -> Result<Option<Request>, LaneGone> {
        self.inbox.next().map_err(|_| LaneGone)
    }

    /// Takes in what the socket has, without waiting.
    pub(super) fn receive(&mut self) -> Result<(), LaneGone> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let received = recvmsg(
                &self.control,
                &mut [IoSliceMut::new(&mut self.buffer)],
                &mut rights,
                RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
            );
            match received {
                Ok(message) if message.bytes > 0 => {
                    for message in rights.drain() {
                        if let RecvAncillaryMessage::ScmRights(fds) = message {
                            self.files.extend(fds.map(File::from));
                        }
                    }
                    self.inbox.push(&self.buffer[..message.bytes]);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Ok(_) | Err(_) => return Err(LaneGone),
            }
        }
    }

    /// Sends a report. It always fits: the lane has room for hundreds, and gets
    /// two a command. So it never waits for a lane that was stopped.
    pub(super) fn report(&self, report: &Report) -> Result<(), LaneGone> {
        let bytes = frame(report).map_err(|_| LaneGone)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match send(&self.control, rest, SendFlags::NOSIGNAL) {
                Ok(n) => rest = &rest[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.control, PollFlags::OUT)];
                    let _ = poll(&mut fds, None);
                }
                Err(_) => return Err(LaneGone),
            }
        }
        Ok(())
    }
}

/// Waits until one of the descriptors has something, a signal came, or the
/// moment is there.
pub(super) fn wait_for<'a>(
    descriptors: impl IntoIterator<Item = BorrowedFd<'a>>,
    until: Option<Instant>,
) {
    let mut fds: Vec<_> = descriptors
        .into_iter()
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let timeout: Option<Timespec> = until
        .map(|until| until.saturating_duration_since(Instant::now()))
        .and_then(|left| left.try_into().ok());
    // The callers look at everything after each return, so an error, which can
    // only be a signal, needs no answer.
    let _ = poll(&mut fds, timeout.as_ref());
}
