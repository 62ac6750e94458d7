//! What an operator asks for with `PREMATH_LOG`, on stderr.
//!
//! Errors and fields may hold text from outside: what acts on a terminal is
//! spelled out before it gets there (`contracts.md` 11).

use premath_kernel::json::plain::plain;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

/// Begins to log: warnings and errors, or what `PREMATH_LOG` says.
pub fn begin() {
    let filter = EnvFilter::try_from_env("PREMATH_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call, as in tests, changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_writer(|| PlainWriter(io::stderr()))
        .with_ansi(false)
        .with_env_filter(filter)
        .with_target(false)
        .try_init();
}

/// Spells out what acts on a terminal; the event's own line end stays.
struct PlainWriter<W>(W);

impl<W: Write> Write for PlainWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        // A log on a full disk must not end a lane: the subscriber would report a
        // failure by `eprintln!`, which panics there.
        let _ = self.0.write_all(plain(line).as_bytes());
        if line.len() < text.len() {
            let _ = self.0.write_all(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_error_for_the_subscriber() {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        assert_eq!(PlainWriter(full).write(b"event\n").unwrap(), 6);
    }

    #[test]
    fn an_escape_in_an_event_is_spelled_out() {
        let mut out = Vec::new();
        PlainWriter(&mut out)
            .write_all(b"issue=\x1b[31mX\x07\n")
            .unwrap();
        assert_eq!(out, b"issue=\\u{1b}[31mX\\u{7}\n");
    }
}
