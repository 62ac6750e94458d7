//! A stream of bytes, in pieces of any size, read line by line.
//!
//! What is kept between two pieces is one unfinished line, of at most
//! [`MAX_LINE_BYTES`], and the adapter's open calls.

use crate::adapter::{Agent, LineReader};
use crate::event::{EventKind, LineSource, StreamEvent};
use crate::flaw::{Flaw, MAX_LINE_BYTES};
use crate::json::{Object, Shape};
use memchr::memchr;
use premath_kernel::json::canonical::Sum;
use sha2::{Digest, Sha256};

/// How much of the buffer is kept after a long line.
const KEPT_BYTES: usize = 64 << 10;

/// Reads an agent's stream; see [`StreamReader::feed`].
#[derive(Debug)]
pub struct StreamReader {
    adapter: Box<dyn LineReader>,
    shape: &'static Shape,
    /// The begin of a line whose end is yet to come.
    begun: Vec<u8>,
    /// The digest of the first bytes of a line that is over the bound, whose
    /// rest is skipped.
    too_long: Option<Sum>,
    lines: Sha256,
    log: StreamLog,
}

/// What a stream was, as bytes and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamLog {
    /// The number of bytes read.
    pub bytes: u64,
    /// Lines that hold more than white space.
    pub lines: u64,
    /// Lines with nothing on them.
    pub blank_lines: u64,
    /// The SHA-256 over the SHA-256 of every line (32 bytes each, in their
    /// order), in hexadecimal; empty where there was none. Of a line that is
    /// too long, its first bytes count.
    pub digest: String,
}

impl StreamReader {
    /// Begins with a stream.
    pub fn new(agent: Agent) -> Self {
        let spec = agent.spec();
        Self {
            adapter: (spec.reader)(),
            shape: spec.shape,
            begun: Vec::new(),
            too_long: None,
            lines: Sha256::new(),
            log: StreamLog::default(),
        }
    }

    /// Reads on; how the stream is cut into pieces changes nothing.
    ///
    /// A line that is not evidence is an [`EventKind::Invalid`], and reading
    /// continues: what comes after it (usage, limits) still counts, but the
    /// stream as a whole stays invalid.
    pub fn feed(&mut self, piece: &[u8], each: &mut dyn FnMut(StreamEvent<'_>)) {
        self.log.bytes += piece.len() as u64;
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            self.end_line(&rest[..end], each);
            rest = &rest[end + 1..];
        }
        self.hold(rest);
    }

    /// Ends the stream. A last line without a line feed counts where it is whole.
    pub fn finish(mut self, each: &mut dyn FnMut(StreamEvent<'_>)) -> StreamLog {
        let line = std::mem::take(&mut self.begun);
        if self.too_long.is_some() || !matches!(object(&line, &Shape::FLAT), Err(Flaw::NotJson)) {
            self.end_line(&line, each);
        } else if !line.trim_ascii().is_empty() {
            let source = self.log_line(Sum::of(&line));
            each(invalid(source, Flaw::Cut));
        }
        if self.log.lines > 0 {
            let digest: [u8; 32] = self.lines.finalize().into();
            self.log.digest = Sum::from(digest).hex();
        }
        self.log
    }

    /// Returns whether a call may run that is reported only when it is over.
    pub(crate) fn may_be_in_call(&self) -> bool {
        self.adapter.may_be_in_call()
    }

    /// Returns how many lines were read.
    pub(crate) const fn lines(&self) -> u64 {
        self.log.lines
    }

    /// Returns how many bytes the reader holds.
    pub(crate) fn retained_bytes(&self) -> usize {
        size_of::<Self>() + self.begun.capacity() + self.adapter.retained_bytes()
    }

    /// Holds the begin of a line, or more of it.
    fn hold(&mut self, bytes: &[u8]) {
        if self.too_long.is_some() {
            return;
        }
        let room = MAX_LINE_BYTES - self.begun.len();
        if bytes.len() <= room {
            self.begun.extend_from_slice(bytes);
            return;
        }
        let begin = Sha256::new_with_prefix(&self.begun).chain_update(&bytes[..=room]);
        let digest: [u8; 32] = begin.finalize().into();
        self.too_long = Some(digest.into());
        self.begun = Vec::new();
    }

    /// Takes the end of a line.
    fn end_line(&mut self, end: &[u8], each: &mut dyn FnMut(StreamEvent<'_>)) {
        if self.begun.is_empty() && self.too_long.is_none() && end.len() <= MAX_LINE_BYTES {
            self.read(end, each);
            return;
        }
        self.hold(end);
        if let Some(digest) = self.too_long.take() {
            let source = self.log_line(digest);
            each(invalid(source, Flaw::TooLong));
            return;
        }
        let mut line = std::mem::take(&mut self.begun);
        self.read(&line, each);
        line.clear();
        line.shrink_to(KEPT_BYTES);
        self.begun = line;
    }

    /// Reads a whole line.
    fn read(&mut self, line: &[u8], each: &mut dyn FnMut(StreamEvent<'_>)) {
        if line.trim_ascii().is_empty() {
            self.log.blank_lines += 1;
            return;
        }
        let source = self.log_line(Sum::of(line));
        let read = object(line, self.shape).and_then(|object| {
            let mut out = |kind: EventKind<'_>| each(StreamEvent { source, kind });
            self.adapter.read(&object, &mut out)
        });
        if let Err(flaw) = read {
            each(invalid(source, flaw));
        }
    }

    /// Writes a line into the log, and returns its place.
    fn log_line(&mut self, sha256: Sum) -> LineSource {
        self.log.lines += 1;
        self.lines.update(sha256.as_bytes());
        LineSource {
            line: self.log.lines + self.log.blank_lines,
            sha256,
        }
    }
}

fn object<'a>(line: &'a [u8], shape: &Shape) -> Result<Object<'a>, Flaw> {
    let text = std::str::from_utf8(line).map_err(|_| Flaw::NotJson)?;
    Object::read(text, shape)
}

fn invalid(source: LineSource, flaw: Flaw) -> StreamEvent<'static> {
    StreamEvent {
        source,
        kind: EventKind::Invalid(flaw),
    }
}
