//! Text from outside, made fit for a terminal (`contracts.md` 11).

use std::borrow::Cow;

/// Returns a text as one line that does nothing to a terminal: control
/// characters, line ends and marks that turn the direction of writing are
/// spelled out.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_active) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_active(c) {
            spelled.extend(c.escape_default());
        } else {
            spelled.push(c);
        }
    }
    Cow::Owned(spelled)
}

/// Returns JSON text in which no string holds a character that does something
/// to a terminal: those that JSON lets stand raw are written as `\\u` escapes,
/// so that the document stays the same.
pub fn plain_json(json: &str) -> Cow<'_, str> {
    let acts = |c: char| c != '\n' && is_active(c);
    if !json.chars().any(acts) {
        return Cow::Borrowed(json);
    }
    let mut spelled = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                spelled.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            spelled.push(c);
        }
    }
    Cow::Owned(spelled)
}

/// Returns a text without what a reader does not see: control characters other
/// than line ends and tabs, marks that turn the direction of writing,
/// characters without a width, tags and variation selectors. A text of more
/// than `most` characters is truncated, with a mark.
pub fn visible(text: &str, most: usize) -> String {
    let shown = |c: &char| matches!(c, '\n' | '\t') || !(is_active(*c) || is_selector(*c));
    let mut characters = text.chars().filter(shown);
    let mut kept: String = characters.by_ref().take(most).collect();
    match characters.count() {
        0 => {}
        left_out => kept.push_str(&format!(" [{left_out} more characters are left out]")),
    }
    kept
}

/// Returns a text as [`visible`] does, in one line.
pub fn visible_line(text: &str, most: usize) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    visible(&line.join(" "), most)
}

/// The most bytes of a path or a text of a step's that a message, a row or a
/// witness holds.
pub(crate) const SHOWN: usize = 256;

/// The most paths that a message lists.
const LISTED: usize = 10;

/// Returns the first `SHOWN` bytes of a text of a step's, with an ellipsis
/// where it is longer: a path may have any length.
pub fn cut(text: &str) -> Cow<'_, str> {
    cut_at(text, SHOWN)
}

/// As [`cut`], with another number of bytes.
pub fn cut_at(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Returns whether a text is one that [`cut`] made shorter.
pub fn is_cut(text: &str) -> bool {
    text.len() > SHOWN - 3 && text.ends_with('…')
}

/// Returns a count with its noun, as in `2 rounds`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Returns the first paths of a step's in one line, each cut.
pub fn listed<P: AsRef<str>>(paths: &[P]) -> String {
    let shown = paths.iter().take(LISTED);
    let shown: Vec<Cow<'_, str>> = shown.map(|path| cut(path.as_ref())).collect();
    let line = shown.join(", ");
    match paths.len().saturating_sub(LISTED) {
        0 => line,
        left => format!("{line}, and {left} more"),
    }
}

/// Returns whether a character does something to a terminal, or hides in a
/// text.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a character picks the form of the one before it; a row of
/// them can carry a text of its own.
const fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// Returns a text as one word of a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+@%:".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out() {
        assert_eq!(
            plain("a\u{1b}[31mred\u{7}\nb\u{202e}c"),
            "a\\u{1b}[31mred\\u{7}\\nb\\u{202e}c"
        );
        let json = serde_json::json!({"a": "x\u{9b}31m\u{202e}"});
        let text = json.to_string();
        let shown = plain_json(&text);
        assert_eq!(shown, r#"{"a":"x\u009b31m\u202e"}"#);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            json
        );
        assert!(matches!(plain("caf\u{e9}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert!(matches!(cut("src/a.rs"), Cow::Borrowed("src/a.rs")));
        let whole = "é".repeat(SHOWN / 2);
        assert_eq!(cut(&whole), whole);
        let long = format!("a{whole}");
        assert_eq!(cut(&long), format!("a{}…", "é".repeat(SHOWN / 2 - 1)));
        assert!(is_cut(&cut(&long)) && !is_cut(&whole) && !is_cut("and so on…"));
        assert_eq!(cut_at("abc", 2), "ab…");
    }

    #[test]
    fn a_list_of_paths_is_bounded() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        let many: Vec<String> = (0..500)
            .map(|n| "p".repeat(5_000) + &n.to_string())
            .collect();
        let line = listed(&many);
        assert!(line.len() < 11 * (SHOWN + 5), "{}", line.len());
        assert!(line.ends_with("…, and 490 more"));
    }

    #[test]
    fn what_hides_in_a_text_is_spelled_out_too() {
        // A letter of the tags, which no font shows.
        assert_eq!(plain("a\u{e0041}\u{ad}"), "a\\u{e0041}\\u{ad}");
        let json = serde_json::json!({"a": "\u{e0041}"});
        let text = json.to_string();
        let shown = plain_json(&text);
        assert_eq!(shown, r#"{"a":"\udb40\udc41"}"#);
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, json);
    }

    #[test]
    fn a_visible_text_is_what_a_reader_sees_and_no_longer() {
        let text = "a\u{1b}[0m\u{202e}b\u{200b}\u{e0041}\u{fe0f}\n\tc";
        assert_eq!(visible(text, 100), "a[0mb\n\tc");
        assert_eq!(visible_line(text, 100), "a[0mb c");
        assert_eq!(
            visible("abcdef", 4),
            "abcd [2 more characters are left out]"
        );
        assert_eq!(visible("abcd", 4), "abcd");
    }
}
