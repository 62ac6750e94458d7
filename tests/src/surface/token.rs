//! Splits Rust source into the tokens that imports are read from.

/// A token: an identifier, `::`, or one other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'s> {
    /// The text; that of a literal is empty.
    pub text: &'s str,
    /// The line, from 1.
    pub line: usize,
}

/// Returns the tokens of a source file, without comments.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let (length, kind) = next(rest);
        let text = rest.get(..length).unwrap_or(rest);
        match kind {
            Kind::Skipped => {}
            Kind::Literal => tokens.push(Token { text: "", line }),
            Kind::Plain => tokens.push(Token { text, line }),
        }
        line += text.matches('\n').count();
        at += text.len();
    }
    tokens
}

#[derive(Clone, Copy)]
enum Kind {
    Skipped,
    Literal,
    Plain,
}

/// Returns the length and the kind of the first token of a text.
fn next(rest: &str) -> (usize, Kind) {
    let first = rest.chars().next().unwrap_or_default();
    if first.is_whitespace() {
        return (first.len_utf8(), Kind::Skipped);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Skipped);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Kind::Skipped);
    }
    if let Some(length) = literal(rest) {
        return (length, Kind::Literal);
    }
    if rest.starts_with("::") {
        return (2, Kind::Plain);
    }
    let word = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    (word.max(first.len_utf8()), Kind::Plain)
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of the literal that a text begins with.
fn literal(rest: &str) -> Option<usize> {
    let body = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - body.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw.get(hashes..)?.starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let content = raw.get(hashes + 1..)?;
            let close = content.find(&end)? + end.len();
            return Some(prefix + 1 + hashes + 1 + close);
        }
        return None;
    }
    if body.starts_with('"') {
        return quoted(body, '"').map(|length| prefix + length);
    }
    if !body.starts_with('\'') {
        return None;
    }
    // A lifetime has no quote behind its first character.
    let mut chars = body.chars().skip(1);
    let is_char = chars.next() == Some('\\') || chars.next() == Some('\'');
    match is_char {
        true => quoted(body, '\'').map(|length| prefix + length),
        false => Some(1).filter(|_| prefix == 0),
    }
}

fn quoted(body: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_words() {
        let source = "a::b // crate::x\n/* crate /* ::y */ */ \"crate::\\\" z\" 'a' '\\'' &'s r#\"crate\"# b\"q\" _9";
        let found: Vec<&str> = tokens(source).iter().map(|token| token.text).collect();
        assert_eq!(
            found,
            ["a", "::", "b", "", "", "", "&", "", "s", "", "", "_9"]
        );
    }

    #[test]
    fn lines_are_counted_within_literals_and_comments() {
        let source = "\"x\ny\"\n/*\n*/ last";
        assert_eq!(tokens(source).last().map(|token| token.line), Some(4));
    }
}
