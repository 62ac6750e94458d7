//! Text from outside, made fit for a terminal (`contracts.md` 11).

use std::borrow::Cow;
use std::fmt::Write;
use std::io::{self, BufRead, IsTerminal, Read, Write as _};

pub(crate) use premath_kernel::json::plain::plain;

/// Returns text of several lines, each one plain and indented.
pub(crate) fn block(text: &str) -> String {
    text.lines().fold(String::new(), |mut block, line| {
        let line = format!("  {}", plain(&line.replace('\t', "    ")));
        let _ = writeln!(block, "{}", line.trim_end());
        block
    })
}

/// Returns how many columns a line has where a person reads it: those of the
/// terminal, or as many as fit a log.
pub(crate) fn columns(asked: Option<u16>) -> usize {
    const WITHOUT_TERMINAL: u16 = 120;
    const LEAST: u16 = 40;
    let of_terminal = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(size.ws_col)
    };
    let columns = asked.or_else(of_terminal).unwrap_or(WITHOUT_TERMINAL);
    usize::from(columns.max(LEAST))
}

/// How long a line of [`wrapped`] may be.
pub(crate) const WIDTH: usize = 92;

/// Returns text as indented lines of no more than [`WIDTH`] characters; a word
/// that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in plain(text).split_whitespace() {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length <= WIDTH {
            lines.push(' ');
            length += 1 + word_length;
        } else {
            if length > 0 {
                lines.push('\n');
            }
            let _ = write!(lines, "{:indent$}", "");
            length = indent + word_length;
        }
        lines.push_str(word);
    }
    lines.push('\n');
    lines
}

/// The widest column that cells are aligned in.
const CELL_MAX: usize = 1_000;

/// Returns rows as lines with aligned columns; the last one is not padded.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[Cow<'_, str>; N]> = std::iter::once(head.map(Cow::Borrowed))
        .chain(
            rows.iter()
                .map(|row| row.each_ref().map(|cell| plain(cell))),
        )
        .collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // A wider cell than a format can have stays as it is.
            let width = width.min(CELL_MAX);
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Shows a text and asks a question of a person; `None` where there is no
/// terminal to answer on.
pub(crate) fn ask(shown: &str, question: &str) -> Option<bool> {
    let (mut error, input) = (io::stderr(), io::stdin());
    if !error.is_terminal() || !input.is_terminal() {
        return None;
    }
    let asked = write!(error, "{shown}{question} [y/N] ").and_then(|()| error.flush());
    let mut answer = String::new();
    let heard = asked.and_then(|()| input.lock().take(64).read_line(&mut answer));
    Some(heard.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_lines_and_escapes_within_them() {
        assert_eq!(block("a\n\n\tb\u{1b}"), "  a\n\n      b\\u{1b}\n");
    }

    #[test]
    fn wrapped_lines_keep_their_words_their_indent_and_the_width() {
        let long = "x".repeat(WIDTH + 1);
        let text = format!("{}{long} y\u{1b} z", "word ".repeat(40));
        let lines = wrapped(&text, 4);
        assert!(lines.lines().all(|line| line.starts_with("    ")));
        assert!(
            lines
                .lines()
                .all(|line| line.chars().count() <= WIDTH || line.trim() == long)
        );
        let words: Vec<_> = lines.split_whitespace().collect();
        let given = plain(&text);
        assert_eq!(words, given.split_whitespace().collect::<Vec<_>>());
        assert_eq!(wrapped("", 4), "\n");
    }

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [
            ["a".to_owned(), "x".to_owned()],
            ["\u{e9}\u{e9}\u{e9}".to_owned(), String::new()],
        ];
        assert_eq!(
            table(["ID", "T"], &rows),
            "ID   T\na    x\n\u{e9}\u{e9}\u{e9}\n"
        );
    }
}
