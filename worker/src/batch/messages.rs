//! The texts that an operator gives to agents while they run.

use super::Batch;
use premath_kernel::json::id::IssueId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The texts that agents have not been given yet.
#[derive(Debug, Default)]
pub(super) struct Messages {
    inner: Mutex<BTreeMap<IssueId, Outbox>>,
}

#[derive(Debug, Default)]
struct Outbox {
    /// How many agents with hooks work on the issue now.
    readers: usize,
    texts: Vec<Message>,
}

/// A text for an agent.
pub struct Message {
    /// The text.
    pub text: String,
    /// Called once the agent was given it.
    pub given: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.text.len()).finish()
    }
}

impl Messages {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IssueId, Outbox>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Keeps a text for the agent that works on an issue, until it is given or
    /// [`forget_messages`](Self::forget_messages). Returns false, and keeps nothing,
    /// where no agent whose hooks are wired works on it now.
    pub fn say(&self, issue_id: &IssueId, message: Message) -> bool {
        match self.messages.lock().get_mut(issue_id) {
            Some(outbox) if outbox.readers > 0 => {
                outbox.texts.push(message);
                true
            }
            _ => false,
        }
    }

    /// Drops the texts for an issue that no agent was given.
    pub fn forget_messages(&self, issue_id: &IssueId) {
        if let Some(outbox) = self.messages.lock().get_mut(issue_id) {
            outbox.texts.clear();
        }
    }

    /// Lets an agent that works on an issue be given texts, until the value is
    /// dropped.
    pub(crate) fn listen_for(&self, issue_id: &IssueId) -> MessageSource {
        let messages = Arc::clone(&self.messages);
        messages.lock().entry(issue_id.clone()).or_default().readers += 1;
        MessageSource {
            issue_id: issue_id.clone(),
            messages,
        }
    }
}

/// Where the hooks of an agent take the texts for it from.
#[derive(Debug)]
pub(crate) struct MessageSource {
    issue_id: IssueId,
    messages: Arc<Messages>,
}

impl MessageSource {
    /// Takes the texts that wait, as the agent reads them.
    pub(crate) fn take(&self) -> Option<TakenMessages> {
        let mut all = self.messages.lock();
        let waiting = std::mem::take(&mut all.get_mut(&self.issue_id)?.texts);
        let texts = waiting.iter().map(|message| {
            format!(
                "Message from the operator who supervises this work:\n{}",
                message.text
            )
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        (!waiting.is_empty()).then(|| TakenMessages {
            text,
            waiting,
            issue_id: self.issue_id.clone(),
            messages: Arc::clone(&self.messages),
        })
    }
}

/// Texts on their way to an agent. Dropped before they are
/// [given](TakenMessages::given), they wait again.
#[derive(Debug)]
pub(crate) struct TakenMessages {
    /// All of them, as the agent reads them.
    pub(crate) text: String,
    waiting: Vec<Message>,
    issue_id: IssueId,
    messages: Arc<Messages>,
}

impl TakenMessages {
    /// Reports that they were handed to the agent's hook.
    pub(crate) fn given(mut self) {
        for message in std::mem::take(&mut self.waiting) {
            (message.given)();
        }
    }
}

impl Drop for TakenMessages {
    fn drop(&mut self) {
        if let Some(outbox) = self.messages.lock().get_mut(&self.issue_id) {
            outbox.texts.splice(..0, self.waiting.drain(..));
        }
    }
}

impl Drop for MessageSource {
    fn drop(&mut self) {
        let mut all = self.messages.lock();
        if let Some(outbox) = all.get_mut(&self.issue_id) {
            outbox.readers = outbox.readers.saturating_sub(1);
            if outbox.readers == 0 && outbox.texts.is_empty() {
                all.remove(&self.issue_id);
            }
        }
    }
}
