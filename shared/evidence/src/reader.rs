//! A stream of bytes, in pieces of any size, read line by line.
//!
//! What is kept between two pieces is one unfinished line, of at most
//! [`MAX_LINE_BYTES`], and the adapter's open calls.

use crate::adapter::{Adapter, Agent};
use crate::event::{Event, EventKind, Source};
use crate::flaw::{Flaw, MAX_LINE_BYTES};
use crate::json::Object;
use premath_kernel::canonical;
use std::io::BufRead;
use std::sync::Arc;

/// How much of the buffer is kept after a long line.
const KEPT_BYTES: usize = 64 << 10;

/// Reads an agent's stream; see [`StreamReader::feed`].
#[derive(Debug)]
pub struct StreamReader {
    adapter: Adapter,
    line: Vec<u8>,
    /// The digest of the first bytes of a line that is over the bound, whose
    /// rest is passed over.
    too_long: Option<Arc<str>>,
    log: StreamLog,
}

/// What a stream was, as bytes and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLog {
    /// All bytes.
    pub bytes: u64,
    /// Lines that hold more than white space.
    pub lines: u64,
    /// Lines with nothing on them.
    pub blank_lines: u64,
    /// The digest over the digests of all lines, each taken up into the one
    /// before it; empty where there was none. Of a line that is too long, its
    /// first bytes count.
    pub digest: String,
}

impl StreamReader {
    /// Begins with a stream.
    pub fn new(agent: Agent) -> Self {
        Self {
            adapter: Adapter::new(agent),
            line: Vec::new(),
            too_long: None,
            log: StreamLog::default(),
        }
    }

    /// Reads on; how the stream is cut into pieces changes nothing.
    ///
    /// A line that is no evidence is an [`EventKind::Invalid`], and reading
    /// goes on: what comes after it (usage, limits) still counts, but the
    /// stream as a whole stays invalid.
    pub fn feed(&mut self, mut piece: &[u8], each: &mut dyn FnMut(Event)) {
        self.log.bytes += piece.len() as u64;
        while !piece.is_empty() {
            let ended = if self.too_long.is_some() {
                pass_over(&mut piece)
            } else {
                self.take(&mut piece)
            };
            if ended {
                self.end_line(each);
            }
        }
    }

    /// Ends the stream. A last line without a line feed counts where it is whole.
    pub fn finish(mut self, each: &mut dyn FnMut(Event)) -> StreamLog {
        if self.too_long.is_some() || is_whole(&self.line) {
            self.end_line(each);
        } else if !self.line.trim_ascii().is_empty() {
            let source = self.log_line(sha256(&self.line));
            each(invalid(&source, Flaw::Cut));
        }
        self.log
    }

    /// Tells whether a call may run that is told only when it is over.
    pub const fn may_be_in_call(&self) -> bool {
        self.adapter.may_be_in_call()
    }

    /// Returns how many bytes the reader holds.
    pub fn retained_bytes(&self) -> usize {
        size_of::<Self>() + self.line.capacity() + self.adapter.retained_bytes()
    }

    /// Takes bytes up to the end of a line; tells whether it was reached.
    fn take(&mut self, piece: &mut &[u8]) -> bool {
        let room = MAX_LINE_BYTES + 1 - self.line.len();
        let mut within = piece.get(..room).unwrap_or(piece);
        // Reading from a slice cannot fail.
        let taken = within.read_until(b'\n', &mut self.line);
        *piece = &piece[taken.unwrap_or(piece.len())..];
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return true;
        }
        if self.line.len() > MAX_LINE_BYTES {
            self.too_long = Some(sha256(&self.line));
            self.clear();
        }
        false
    }

    fn end_line(&mut self, each: &mut dyn FnMut(Event)) {
        if let Some(digest) = self.too_long.take() {
            let source = self.log_line(digest);
            each(invalid(&source, Flaw::TooLong));
            return;
        }
        if self.line.trim_ascii().is_empty() {
            self.log.blank_lines += 1;
        } else {
            let source = self.log_line(sha256(&self.line));
            let text = std::str::from_utf8(&self.line).ok();
            let read = match text.and_then(Object::read) {
                None => Err(Flaw::NotJson),
                Some(object) => self.adapter.read(&object, &mut |kind| {
                    each(Event {
                        source: source.clone(),
                        kind,
                    });
                }),
            };
            if let Err(flaw) = read {
                each(invalid(&source, flaw));
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
    }

    /// Writes a line into the log, and returns its place.
    fn log_line(&mut self, sha256: Arc<str>) -> Source {
        self.log.lines += 1;
        let before = std::mem::take(&mut self.log.digest);
        self.log.digest = canonical::sha256_hex(format!("{before}{sha256}").as_bytes());
        Source {
            line: self.log.lines + self.log.blank_lines,
            sha256,
        }
    }
}

/// Passes over the rest of a line; tells whether its end was reached.
fn pass_over(piece: &mut &[u8]) -> bool {
    let end = piece.iter().position(|byte| *byte == b'\n');
    *piece = end.map_or(&[], |end| &piece[end + 1..]);
    end.is_some()
}

fn is_whole(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line).ok();
    text.and_then(Object::read).is_some()
}

fn sha256(line: &[u8]) -> Arc<str> {
    canonical::sha256_hex(line).into()
}

fn invalid(source: &Source, flaw: Flaw) -> Event {
    Event {
        source: source.clone(),
        kind: EventKind::Invalid(flaw),
    }
}
