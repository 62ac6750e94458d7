//! One output stream: from the command's pipe into a bounded file.

use super::message::StreamReport;
use premath_kernel::json::canonical::hex;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeWriter, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What one read takes at most: the capacity of a pipe.
pub(super) const CHUNK: usize = 64 << 10;

/// How many reads one turn of the poll loop gives a stream, so that a command
/// that prints without end cannot keep the loop from its deadlines.
const TURN: usize = 16;

/// How much a last look may read. No pipe holds more unless root raised the
/// limit, and a writer that cannot be killed could continue for ever.
const LAST_LOOK: usize = (16 << 20) / CHUNK;

/// Which bytes of a stream that is longer than its cap are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The first and the last half of the cap, with a marker between them.
    Ends(u64),
    /// The first bytes. Nothing of them is held in memory.
    Head(u64),
}

/// The reading end of one of a command's output pipes, and where it goes.
#[derive(Debug)]
pub(super) struct Stream {
    /// None once every writer has closed it.
    pipe: Option<OwnedFd>,
    sink: Sink,
}

impl Stream {
    /// Creates a stream into `file`, which must be empty, and the end of its
    /// pipe that the command writes to.
    pub(super) fn open(file: File, keep: Keep) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        // The writers' end is another file description and stays as it is.
        rustix::io::ioctl_fionbio(&reader, true)?;
        let stream = Self {
            pipe: Some(reader.into()),
            sink: Sink::new(file, keep),
        };
        Ok((stream, writer))
    }

    /// Returns the descriptor to poll, as long as something may still come.
    pub(super) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is in the pipe, but only so much that others get their turn.
    pub(super) fn pump(&mut self, buffer: &mut [u8]) {
        self.read(buffer, TURN);
    }

    /// Takes what is left in the pipe, waits for nothing, and completes the
    /// file.
    pub(super) fn finish(mut self, buffer: &mut [u8]) -> StreamReport {
        self.read(buffer, LAST_LOOK);
        self.sink.finish()
    }

    fn read(&mut self, buffer: &mut [u8], times: usize) {
        for _ in 0..times {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut *buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => self.sink.take(&buffer[..n]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // A pipe has no other error to give; without it there is
                // nothing more to read.
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// A file that keeps a stream up to its cap.
///
/// The file can be followed while the command runs: it grows like the stream
/// until the cap is reached. Only at the end is a longer stream's file cut back
/// to its first half, and the marker and the last half put behind it.
#[derive(Debug)]
struct Sink {
    file: File,
    cap: u64,
    head: u64,
    /// Whether what is cut leaves a marker.
    is_marked: bool,
    /// The last bytes from `head` on, up to `tail_cap`.
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
    digest: Sha256,
    write_error: Option<String>,
}

impl Sink {
    fn new(file: File, keep: Keep) -> Self {
        let (cap, head, is_marked) = match keep {
            Keep::Ends(cap) => (cap, cap / 2, true),
            Keep::Head(cap) => (cap, cap, false),
        };
        Self {
            file,
            cap,
            head,
            is_marked,
            tail: VecDeque::new(),
            tail_cap: usize::try_from(cap - head).unwrap_or(usize::MAX),
            total: 0,
            digest: Sha256::new(),
            write_error: None,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        let before = self.total;
        self.total += bytes.len() as u64;
        let to_file = clamp(self.cap.saturating_sub(before), bytes.len());
        if to_file > 0 {
            self.attempt(|file| file.write_all(&bytes[..to_file]));
        }
        let in_head = clamp(self.head.saturating_sub(before), bytes.len());
        self.keep(&bytes[in_head..]);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.tail_cap)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..excess);
        self.tail.extend(bytes);
    }

    fn finish(mut self) -> StreamReport {
        let cut_bytes = self.total.saturating_sub(self.cap);
        if cut_bytes > 0 && self.is_marked {
            let head = self.head;
            let tail = std::mem::take(&mut self.tail);
            self.attempt(|file| {
                file.set_len(head)?;
                file.seek(SeekFrom::Start(head))?;
                write!(file, "\n[premath: {cut_bytes} bytes cut here]\n")?;
                let (first, second) = tail.as_slices();
                file.write_all(first)?;
                file.write_all(second)
            });
        }
        StreamReport {
            bytes: self.total,
            sha256: hex(&self.digest.finalize()),
            cut_bytes,
            write_error: self.write_error,
        }
    }

    /// Writes, unless a write has failed before: what follows a gap must not
    /// look as if it belonged there.
    fn attempt(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) {
        if self.write_error.is_none()
            && let Err(error) = write(&mut self.file)
        {
            self.write_error = Some(error.to_string());
        }
    }
}

/// Returns the smaller of a count of bytes and a length.
fn clamp(count: u64, length: usize) -> usize {
    usize::try_from(count).map_or(length, |count| count.min(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::json::canonical::sha256_hex;
    use std::io::Read;

    fn through(input: &[u8], cap: u64, chunk: usize) -> (Vec<u8>, StreamReport) {
        let mut file = tempfile::tempfile().unwrap();
        let mut sink = Sink::new(file.try_clone().unwrap(), Keep::Ends(cap));
        for part in input.chunks(chunk) {
            sink.take(part);
        }
        let report = sink.finish();
        let mut kept = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut kept).unwrap();
        (kept, report)
    }

    #[test]
    fn a_stream_up_to_its_cap_is_kept_whole() {
        for length in [0, 1, 9, 10] {
            let input = &b"0123456789"[..length];
            for chunk in [1, 3, 64] {
                let (kept, report) = through(input, 10, chunk);
                assert_eq!(kept, input);
                assert_eq!(report.bytes, length as u64);
                assert_eq!(report.sha256, sha256_hex(input));
                assert!(!report.truncated());
            }
        }
    }

    #[test]
    fn a_longer_stream_keeps_its_head_and_its_tail() {
        let input: Vec<u8> = (0..100).map(|n| b'a' + n % 26).collect();
        for cap in [0, 1, 2, 7, 10, 99] {
            for chunk in [1, 3, 7, 64, 100] {
                let (kept, report) = through(&input, cap, chunk);
                let head = cap as usize / 2;
                let tail = 100 - (cap as usize - head);
                let mut expected = input[..head].to_vec();
                expected.extend(format!("\n[premath: {} bytes cut here]\n", 100 - cap).bytes());
                expected.extend(&input[tail..]);
                assert_eq!(kept, expected, "cap {cap}, chunk {chunk}");
                assert_eq!(report.cut_bytes, 100 - cap);
                assert_eq!(report.sha256, sha256_hex(&input));
            }
        }
    }

    #[test]
    fn of_a_stream_of_events_the_first_bytes_are_kept() {
        let mut file = tempfile::tempfile().unwrap();
        let mut sink = Sink::new(file.try_clone().unwrap(), Keep::Head(5));
        for part in [&b"abc"[..], b"def", b"ghi"] {
            sink.take(part);
        }
        assert_eq!(sink.tail.len(), 0);
        let report = sink.finish();
        let mut kept = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut kept).unwrap();
        assert_eq!(kept, b"abcde");
        assert_eq!((report.bytes, report.cut_bytes), (9, 4));
        assert_eq!(report.sha256, sha256_hex(b"abcdefghi"));
    }

    #[test]
    fn a_full_disk_is_remembered_and_the_digest_continues() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut sink = Sink::new(full, Keep::Ends(1024));
        sink.take(b"abc");
        sink.take(b"def");
        let report = sink.finish();
        assert!(report.write_error.is_some());
        assert_eq!(report.bytes, 6);
        assert_eq!(report.sha256, sha256_hex(b"abcdef"));
    }
}
