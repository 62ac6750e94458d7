//! The coordinator's one channel.

use crate::control::ControlMessage;
use crate::lane::LaneMessage;
use crate::machine::LaneIndex;
use crossbeam_channel::{Receiver, Sender, unbounded};
use premath_kernel::json::id::IssueId;
use std::path::PathBuf;

/// What reaches the coordinator's one channel.
pub(super) enum InboxMessage {
    Lane(LaneIndex, LaneMessage),
    /// A spare worktree is made, or why it is not.
    Spare(Result<PathBuf, String>),
    Interrupted,
    /// What came over the control socket.
    Control(ControlMessage),
    /// The agent of an issue was given a text, by the number of the request.
    Told(u64, IssueId),
    /// The issue store's file changed.
    StoreChanged,
    /// The threads of all lanes have ended.
    Joined,
}

/// Lets signals reach a coordinator that runs.
#[derive(Clone, Debug)]
pub struct Waker {
    send: Sender<InboxMessage>,
}

impl std::fmt::Debug for InboxMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InboxMessage")
    }
}

impl Waker {
    /// Signals the coordinator to check the interrupt.
    pub fn wake(&self) {
        let _ = self.send.send(InboxMessage::Interrupted);
    }
}

/// The channel between signals and a coordinator that is yet to run.
#[derive(Debug)]
pub struct Inbox {
    pub(super) send: Sender<InboxMessage>,
    pub(super) messages: Receiver<InboxMessage>,
}

impl Inbox {
    /// Makes the channel.
    pub fn new() -> (Self, Waker) {
        let (send, messages) = unbounded();
        let waker = Waker { send: send.clone() };
        (Self { send, messages }, waker)
    }
}
