//! What an operator asks for with `PREMATH_LOG`, on stderr.
//!
//! Errors and fields may hold text from outside: what acts on a terminal is
//! spelled out before it gets there (`contracts.md` 11), and a value that is not
//! one word is quoted, so that it cannot pass for other fields.

use premath_kernel::json::plain::plain;
use std::fmt;
use std::io::{self, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// Begins to log: warnings and errors, or what `PREMATH_LOG` says.
pub fn begin() {
    let filter = EnvFilter::try_from_env("PREMATH_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call, as in tests, changes nothing.
    let _ = tracing_subscriber::fmt()
        .with_writer(|| PlainWriter(io::stderr()))
        .with_ansi(false)
        .with_env_filter(filter)
        .with_target(false)
        .fmt_fields(QuotedFields)
        .try_init();
}

/// Writes fields as `name=value`, in which a value that is not one word is
/// quoted.
struct QuotedFields;

impl<'writer> FormatFields<'writer> for QuotedFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut line = FieldLine::default();
        fields.record(&mut line);
        writer.write_str(&line.0)
    }
}

/// The fields of an event or a span, as they are recorded.
#[derive(Default)]
struct FieldLine(String);

impl FieldLine {
    fn add(&mut self, field: &Field, text: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        match field.name() {
            "message" => self.0.push_str(text),
            name if is_word(text) => self.0.push_str(&format!("{name}={text}")),
            name => self.0.push_str(&format!("{name}={text:?}")),
        }
    }
}

impl Visit for FieldLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

/// Returns whether a value ends where a reader sees it end.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:%,#@+".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
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
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_full_disk_is_not_an_error_for_the_subscriber() {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        assert_eq!(PlainWriter(full).write(b"event\n").unwrap(), 6);
    }

    /// Takes what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_value_cannot_pass_for_other_fields() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .fmt_fields(QuotedFields)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let id = "a generation=9}: closed step=\"b\"";
            let _step = tracing::error_span!("step", issue = %id, generation = 1_u64).entered();
            let error = io::Error::other("no `x y=1`");
            tracing::warn!(step = %"worker.1.a%20b.1", %error, provider = "codex", "not left");
        });
        let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            said,
            " WARN step{issue=\"a generation=9}: closed step=\\\"b\\\"\" generation=1}: not left \
            step=worker.1.a%20b.1 error=\"no `x y=1`\" provider=codex\n"
        );
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
