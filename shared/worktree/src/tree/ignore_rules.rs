//! The rules of an ignore file.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The most texts of an operator whose rules are kept.
const KEPT_MOST: usize = 16;

/// The named classes in a class of a pattern. None begins with `!`, which would negate.
const CLASSES: [(&str, &str); 12] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("blank", " \t"),
    ("cntrl", "\x01-\x1f\x7f"),
    ("digit", "0-9"),
    ("graph", "\"-~!"),
    ("lower", "a-z"),
    ("print", " -~"),
    ("punct", ":-@[-`{-~\"-/!"),
    ("space", " \t-\r"),
    ("upper", "A-Z"),
    ("xdigit", "0-9A-Fa-f"),
];

type Rules = Option<Arc<Gitignore>>;

/// Every scan needs the operator's files, and making their automata costs more than the
/// scan of a small repository.
static KEPT: LazyLock<Mutex<HashMap<Vec<u8>, Rules>>> = LazyLock::new(Mutex::default);

/// Returns the rules of a text of the operator's, which are made once; none where they
/// cannot be made.
pub(super) fn of_operator(text: &[u8]) -> Rules {
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rules) = kept().get(text) {
        return rules.clone();
    }
    let rules = parsed(text).map(Arc::new);
    let mut kept = kept();
    if kept.len() >= KEPT_MOST {
        kept.clear();
    }
    kept.insert(text.to_vec(), rules.clone());
    rules
}

/// Returns the rules of any text. They are not kept: a step may write many texts, whose
/// automata grow with the names that they are asked about.
pub(super) fn parsed(text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in String::from_utf8_lossy(text).lines() {
        // A pattern that is none matches nothing, as in git.
        let _ = builder.add_line(None, &as_in_git(line));
    }
    builder.build().ok()
}

/// Returns a pattern in which braces are literal, and the named classes of a class are
/// ranges of ASCII: as git has them (wildmatch).
fn as_in_git(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let (mut is_escaped, mut is_negated) = (false, false);
    let (mut in_class, mut begins_class) = (false, false);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let is_first = std::mem::take(&mut begins_class);
        if c == '['
            && in_class
            && !is_escaped
            && let Some((ranges, after)) = named_class(rest)
        {
            text.push_str(ranges);
            rest = after;
            continue;
        }
        if matches!(c, '{' | '}') && !is_escaped && !in_class {
            text.push('\\');
        }
        match c {
            '!' | '^' if is_first && !is_negated => (begins_class, is_negated) = (true, true),
            '[' if !is_escaped && !in_class => {
                (in_class, begins_class, is_negated) = (true, true, false);
            }
            // The first one of a class is in it.
            ']' if !is_escaped && !is_first => in_class = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        text.push(c);
    }
    text
}

/// Returns the ranges of a named class behind its bracket, and what follows it.
fn named_class(text: &str) -> Option<(&'static str, &str)> {
    let (name, after) = text.strip_prefix(':')?.split_once(":]")?;
    let found = CLASSES.iter().find(|(known, _)| *known == name);
    found.map(|(_, ranges)| (*ranges, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_own_rules_however_many_there_were() {
        let ignores = |text: &str, path: &str| {
            let rules = of_operator(text.as_bytes()).unwrap();
            rules.matched(path, false).is_ignore()
        };
        for _ in 0..2 {
            for number in 0..=KEPT_MOST {
                let text = format!("*.{number}\n");
                assert!(ignores(&text, &format!("a.{number}")));
                assert!(!ignores(&text, &format!("a.{number}0")));
            }
        }
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.len() <= KEPT_MOST);
    }

    #[test]
    fn braces_are_literal() {
        let rules = parsed(b"{a,b}.txt\n*.{c}\n\\{d\n[{]e\n[]{]f\n[!^]{g}\n[{a,h}\n").unwrap();
        let ignores = |path: &str| rules.matched(path, false).is_ignore();
        for name in ["{a,b}.txt", "x.{c}", "{d", "{e", "{f", "]f", "x{g}"] {
            assert!(ignores(name), "{name}");
        }
        for name in ["a.txt", "b.txt", "x.c", "d", "\\f", "xg", "[h", "[a"] {
            assert!(!ignores(name), "{name}");
        }
    }

    #[test]
    fn named_classes_and_a_mark_of_the_encoding_are_as_in_git() {
        let text = "\u{feff}*.first\n[[:digit:]]d\n[[:space:]]e\n[![:alpha:]_]f\n[[:punct:]x]g\n\
                    [:alpha:]h\n[[:digit:]{]{i}\n";
        let rules = parsed(text.as_bytes()).unwrap();
        let ignores = |path: &str| rules.matched(path, false).is_ignore();
        for name in [
            "a.first", "1d", " e", "1f", "-g", "]g", "[g", "xg", "~g", "ah", ":h", "1{i}", "{{i}",
        ] {
            assert!(ignores(name), "{name}");
        }
        for name in ["ad", "ae", "af", "_f", "ag", ":d", "[d", "bh", "1i"] {
            assert!(!ignores(name), "{name}");
        }
    }

    #[test]
    fn the_rules_of_a_text_are_made_once() {
        let text = b"*.made-once\n";
        let again = || of_operator(text).unwrap();
        // Other tests may take its place in between.
        assert!((0..20).any(|_| Arc::ptr_eq(&again(), &again())));
    }
}
