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
            // All of them lie in the basic plane.
            spelled.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            spelled.push(c);
        }
    }
    Cow::Owned(spelled)
}

/// Tells whether a character does something to a terminal.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
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
}
