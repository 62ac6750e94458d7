//! An agent's stream from its bytes to what it amounts to.

use crate::adapter::Agent;
use crate::fold::{FoldedStream, RunSpending, StreamFold};
use crate::reader::StreamReader;

/// Reads and folds in one: bytes in, what they amount to out.
#[derive(Debug)]
pub struct AgentStream {
    reader: StreamReader,
    fold: StreamFold,
}

impl AgentStream {
    /// Begins with a stream.
    pub fn new(agent: Agent) -> Self {
        Self {
            reader: StreamReader::new(agent),
            fold: StreamFold::new(agent),
        }
    }

    /// Begins with the stream of a session that is resumed, and used so much
    /// before.
    pub fn resumed(agent: Agent, before: RunSpending) -> Self {
        Self {
            reader: StreamReader::new(agent),
            fold: StreamFold::resumed(agent, before),
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, piece: &[u8]) {
        let fold = &mut self.fold;
        self.reader.feed(piece, &mut |event| fold.apply(event));
    }

    /// Returns what the bytes so far amount to.
    pub const fn so_far(&self) -> &StreamFold {
        &self.fold
    }

    /// Returns whether a tool call runs, as far as can be determined: some
    /// agents tell of a call only when it is over.
    pub fn is_in_call(&self) -> bool {
        self.fold.is_in_call() || self.reader.may_be_in_call()
    }

    /// Returns how many lines show that the agent works: all but those by which
    /// it says that it asks its provider once more.
    pub const fn lines_of_work(&self) -> u64 {
        self.reader.lines().saturating_sub(self.fold.retries())
    }

    /// Returns how many lines there were.
    pub const fn lines(&self) -> u64 {
        self.reader.lines()
    }

    /// Ends the stream.
    pub fn finish(mut self) -> FoldedStream {
        let fold = &mut self.fold;
        let log = self.reader.finish(&mut |event| fold.apply(event));
        self.fold.close(log)
    }

    /// Returns about how many bytes are held.
    pub fn retained_bytes(&self) -> usize {
        self.reader.retained_bytes() + self.fold.retained_bytes()
    }
}
