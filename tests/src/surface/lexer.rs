//! The texts of a Rust file and of a page that are written for readers.

/// A text: one comment with all of its lines, one string literal, or a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The line that it begins in, from 1.
    pub(super) line: usize,
    /// The text, with the line ends of the file.
    pub(super) text: String,
    /// Whether it is a comment.
    pub(super) is_comment: bool,
}

impl Piece {
    /// Returns a page without its blocks of code. A blank line ends a sentence.
    pub(super) fn page(text: &str) -> Self {
        Self {
            line: 1,
            text: prose(text.lines()),
            is_comment: false,
        }
    }
}

/// Joins lines of Markdown. Lines of code blocks are left empty, and a blank
/// line holds a mark so that no phrase reaches over it.
fn prose<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut block = false;
    let mut text = String::new();
    for line in lines {
        let fence = line.trim_start().starts_with("```");
        if fence {
            block = !block;
        }
        match line.trim() {
            _ if fence || block => text.push('.'),
            "" => text.push('.'),
            line => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// Returns the comments and string literals of a Rust file. Comment lines that
/// follow each other are one piece.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut rest = source;
    let mut line = 1;
    // Whether only white space was read since the last comment line.
    let mut joins = false;
    while let Some(first) = rest.chars().next() {
        let (len, piece) = match first {
            '/' if rest.starts_with("//") => {
                let len = rest.find('\n').unwrap_or(rest.len());
                (len, Some((rest.get(..len).unwrap_or_default(), true)))
            }
            '/' if rest.starts_with("/*") => {
                let len = rest.find("*/").map_or(rest.len(), |end| end + 2);
                (len, Some((rest.get(..len).unwrap_or_default(), true)))
            }
            '"' => {
                let len = string_len(rest);
                (len, Some((rest.get(1..len - 1).unwrap_or_default(), false)))
            }
            'r' if raw_len(rest).is_some() => {
                let len = raw_len(rest).unwrap_or(1);
                (len, Some((rest.get(2..len - 1).unwrap_or_default(), false)))
            }
            '\'' => (char_len(rest), None),
            // The raw string itself follows.
            'b' if rest.starts_with("br\"") || rest.starts_with("br#") => (1, None),
            c if c.is_alphanumeric() || c == '_' => (word_len(rest), None),
            c => (c.len_utf8(), None),
        };
        match piece {
            Some((text, true)) => add_comment(&mut found, line, text, joins),
            Some((text, false)) => found.push(Piece {
                line,
                text: unescaped(text),
                is_comment: false,
            }),
            None => {}
        }
        joins = matches!(piece, Some((_, true))) || (joins && first.is_whitespace());
        let read = rest.get(..len).unwrap_or_default();
        line += read.matches('\n').count();
        rest = rest.get(len..).unwrap_or_default();
    }
    for piece in found.iter_mut().filter(|piece| piece.is_comment) {
        piece.text = prose(piece.text.lines());
    }
    found
}

/// Adds a comment line, to the comment before where they touch.
fn add_comment(found: &mut Vec<Piece>, line: usize, text: &str, joins: bool) {
    let text = text.trim_start_matches(['/', '!', '*']);
    let next = |piece: &&mut Piece| {
        piece.is_comment && joins && piece.line + piece.text.matches('\n').count() + 1 == line
    };
    match found.last_mut().filter(next) {
        Some(piece) => {
            piece.text.push('\n');
            piece.text.push_str(text);
        }
        None => found.push(Piece {
            line,
            text: text.to_owned(),
            is_comment: true,
        }),
    }
}

/// Returns the length of the string literal that a text begins with.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len().max(2)
}

/// Returns the length of the raw string that a text begins with, if any.
fn raw_len(text: &str) -> Option<usize> {
    let body = text.strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let body = body.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let at = body.find(&end)?;
    Some(2 + hashes + at + end.len())
}

/// Returns the length of a character literal, or of the tick of a lifetime.
fn char_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            let end = chars.skip(1).find(|(_, c)| *c == '\'');
            end.map_or(1, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

/// Returns the length of the identifier or number that a text begins with.
fn word_len(text: &str) -> usize {
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    text.find(end).unwrap_or(text.len())
}

/// Returns a literal's text: a continued line is joined, an escape is a mark,
/// and so is a placeholder.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'\n') => {}
            '\\' => {
                chars.next();
                out.push('.');
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(usize, String, bool)> {
        let piece = |piece: Piece| (piece.line, piece.text, piece.is_comment);
        pieces(source).into_iter().map(piece).collect()
    }

    #[test]
    fn comments_that_touch_are_one_text_and_code_is_none() {
        let source = "/// One\n/// two.\nfn a() {} // three\n\n// four\n";
        let one = |line, text: &str| (line, text.to_owned(), true);
        assert_eq!(
            texts(source),
            [one(1, "One\ntwo.\n"), one(3, "three\n"), one(5, "four\n")]
        );
    }

    #[test]
    fn literals_of_every_kind_are_read() {
        let source = "let a = (\"a \\\n  b\", r#\"c \"d\" e\"#, '\"', 'x', '\\'', b\"f g\");\nfn f<'a>() {}\n\"h\"";
        let found: Vec<String> = texts(source).into_iter().map(|(_, text, _)| text).collect();
        assert_eq!(found, ["a \n  b", "\"c \"d\" e\"", "f g", "h"]);
    }
}
