//! What the command printed, shown when it is over.

use premath_kernel::json::plain::plain;
use premath_memory::artifact;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Shows what was kept of both streams; a reader that went away is none of our
/// business.
pub(super) fn replay(stdout: &Path, stderr: &Path) {
    let read = |path: &Path| artifact::read(path).ok().flatten().unwrap_or_default();
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let is_terminal = out.is_terminal();
    show(&mut out, &read(stdout), is_terminal);
    let is_terminal = err.is_terminal();
    show(&mut err, &read(stderr), is_terminal);
}

/// Escape sequences never reach a terminal raw (`contracts.md` 11).
fn show(stream: &mut impl Write, bytes: &[u8], is_terminal: bool) {
    if !is_terminal {
        let _ = stream.write_all(bytes);
    } else {
        for line in String::from_utf8_lossy(bytes).lines() {
            let words: Vec<_> = line.split('\t').map(plain).collect();
            let _ = writeln!(stream, "{}", words.join("\t"));
        }
    }
    let _ = stream.flush();
}

#[cfg(test)]
mod tests {
    use super::show;

    #[test]
    fn a_terminal_gets_no_escape_sequence_and_a_file_gets_every_byte() {
        let bytes = b"a\t\x1b[31mred\xff\n";
        let mut raw = Vec::new();
        show(&mut raw, bytes, false);
        assert_eq!(raw, bytes);
        let mut written = Vec::new();
        show(&mut written, bytes, true);
        assert_eq!(written, "a\t\\u{1b}[31mred\u{fffd}\n".as_bytes());
    }
}
