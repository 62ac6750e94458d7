//! What may end a command before its own end: its lease, an interrupt, an
//! assumption that broke, the silence of its agent.

use super::feed::AgentFeed;
use super::{CommandError, Cut, Phase};
use crate::interrupt::Interrupt;
use crate::lane::listener::Listener;
use crate::lane::watch::LeaseWatch;
use crate::supervisor::{Exit, ExitCause};
use premath_evidence::FoldedStream;
use premath_kernel::policy::silence::AgentTimeout;
use std::path::Path;

/// How a command is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has the grace to end by itself.
    Terminate,
    Kill,
}

impl Stop {
    pub(super) const fn is_kill(self) -> bool {
        matches!(self, Self::Kill)
    }
}

/// What a watch found by the time its command was over.
pub(super) struct Watched {
    pub(super) cut: Option<Cut>,
    pub(super) timeout: Option<AgentTimeout>,
    /// What the agent's event stream amounts to.
    pub(super) stream: Option<FoldedStream>,
}

/// Looks after a running command, and says when it is to be stopped.
pub(super) struct CommandWatch<'a> {
    phase: Phase,
    lease: Option<&'a mut LeaseWatch>,
    interrupt: Interrupt,
    /// Reads what an agent prints.
    pub(super) listener: Option<Listener>,
    /// Notes what it heard.
    pub(super) feed: Option<AgentFeed>,
    stdout: &'a Path,
    cut: Option<Cut>,
    timeout: Option<AgentTimeout>,
}

impl<'a> CommandWatch<'a> {
    pub(super) const fn new(
        phase: Phase,
        lease: Option<&'a mut LeaseWatch>,
        interrupt: Interrupt,
        stdout: &'a Path,
    ) -> Self {
        Self {
            phase,
            lease,
            interrupt,
            listener: None,
            feed: None,
            stdout,
            cut: None,
            timeout: None,
        }
    }

    /// Makes the error of an event stream that cannot be read.
    pub(super) fn unread(&self, source: std::io::Error) -> CommandError {
        CommandError::Stream {
            path: self.stdout.to_path_buf(),
            source,
        }
    }

    /// Looks once; returns how the command is to be stopped, where it is.
    pub(super) fn look(&mut self) -> Result<Option<Stop>, CommandError> {
        if self.cut.is_some() {
            return Ok(None);
        }
        if self.look_at_lease() {
            return Ok(Some(Stop::Kill));
        }
        if self.interrupt.level() >= self.phase.cut_at() {
            self.cut = Some(Cut::Interrupt);
            return Ok(Some(Stop::Terminate));
        }
        if (self.lease.as_deref()).is_some_and(LeaseWatch::is_cancelled) {
            self.cut = Some(Cut::Cancelled);
            return Ok(Some(Stop::Terminate));
        }
        if (self.lease.as_deref()).is_some_and(LeaseWatch::is_superseded) {
            self.cut = Some(Cut::Superseded);
            return Ok(Some(Stop::Kill));
        }
        if self.timeout.is_none()
            && let Some(listener) = &mut self.listener
        {
            let timeout = listener.look();
            if let Some(feed) = &mut self.feed {
                feed.look(listener);
            }
            self.timeout = timeout.map_err(|source| self.unread(source))?;
            return Ok(self.timeout.map(|_| Stop::Terminate));
        }
        Ok(None)
    }

    /// Renews the lease where it is time; returns whether it is lost.
    fn look_at_lease(&mut self) -> bool {
        if let Some(lease) = self.lease.as_deref_mut()
            && let Err(class) = lease.look()
        {
            self.cut = Some(Cut::Lease(class));
            return true;
        }
        false
    }

    /// Says what cut a command that is over, and what its agent printed.
    pub(super) fn end(mut self, exit: &Exit) -> Result<Watched, CommandError> {
        // A process that was stopped for long wakes up to an exit and a lease
        // that is over: the lease counts.
        if self.cut.is_none() {
            self.look_at_lease();
        }
        // What ended by itself before the signal reached it was not cut.
        if exit.cause != ExitCause::Stopped {
            self.cut = self.cut.filter(|cut| matches!(cut, Cut::Lease(_)));
            self.timeout = None;
        }
        let stream = self.listener.take().map(Listener::finish).transpose();
        Ok(Watched {
            cut: self.cut,
            timeout: self.timeout,
            stream: stream.map_err(|source| self.unread(source))?,
        })
    }
}
