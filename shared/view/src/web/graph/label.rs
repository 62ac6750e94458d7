//! Texts that fit a box, whatever the font.

use crate::columns::steady;
use unicode_width::UnicodeWidthChar;

/// Returns how wide a character is at most in the fonts of systems, in hundredths of
/// the size of the font.
fn width(c: char) -> usize {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 35,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '\\' | ' ' | '-' | '`' => 41,
        'c' | 's' | 'z' => 55,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 100,
        'a'..='z' | '0'..='9' | '_' => 63,
        'A'..='Z' => 80,
        ' '..='~' => 84,
        '…' => 100,
        other => match other.width() {
            None | Some(0) => 0,
            Some(1) => 95,
            Some(_) => 135,
        },
    }
}

/// Bold text is wider, in hundredths.
const BOLD: usize = 112;

/// A text that is to fit: how large its font is, and whether it is bold.
#[derive(Clone, Copy)]
pub(super) struct Font {
    pub(super) size: usize,
    pub(super) is_bold: bool,
}

impl Font {
    fn hundredths(self, c: char) -> usize {
        let weight = if self.is_bold { BOLD } else { 100 };
        width(c) * self.size * weight / 100
    }

    /// Returns how much room a text takes at most.
    pub(super) fn room(self, text: &str) -> usize {
        let all: usize = text.chars().map(|c| self.hundredths(c)).sum();
        all.div_ceil(100)
    }

    /// Returns a text as one line that takes no more room; one that is cut ends with a
    /// sign.
    pub(super) fn fitted(self, text: &str, room: usize) -> String {
        let text = steady(text);
        if self.room(&text) <= room {
            return text;
        }
        let end = self.cut(&text, room.saturating_sub(self.room("…")));
        format!("{}…", text[..end].trim_end())
    }

    /// Returns a text as two lines, the first of which ends with a word where it can.
    pub(super) fn on_two_lines(self, text: &str, room: usize) -> [String; 2] {
        let text = steady(text);
        if self.room(&text) <= room {
            return [text, String::new()];
        }
        let most = self.cut(&text, room);
        let at_word = match text[most..].starts_with(' ') {
            true => Some(most),
            false => text[..most].rfind(' ').filter(|end| *end > most / 2),
        };
        let (first, rest) = text.split_at(at_word.unwrap_or(most));
        [
            first.trim_end().to_owned(),
            self.fitted(rest.trim_start(), room),
        ]
    }

    /// Returns the end of as much of a text as there is room for.
    fn cut(self, text: &str, room: usize) -> usize {
        let mut taken = 0;
        let is_over = |(_, c): &(usize, char)| {
            taken += self.hundredths(*c);
            taken > room * 100
        };
        text.char_indices()
            .find(is_over)
            .map_or(text.len(), |(at, _)| at)
    }
}
