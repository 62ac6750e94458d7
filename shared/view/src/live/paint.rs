//! Lines of text with a style, painted into cells.

use super::Message;
use super::prompt::Prompt;
use crate::columns::{fitted, steady, width_of};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Color, Modifier, Style};

/// How lines look. No meaning is in a colour alone: each has a word beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Styles {
    pub(super) plain: Style,
    pub(super) strong: Style,
    pub(super) quiet: Style,
    pub(super) good: Style,
    pub(super) bad: Style,
    pub(super) warn: Style,
    pub(super) selected: Style,
    pub(super) found: Style,
}

impl Styles {
    pub(super) fn new(colour: bool) -> Self {
        let coloured = |style: Style, colour_of: Color| match colour {
            true => style.fg(colour_of),
            false => style,
        };
        let (plain, bold) = (Style::new(), Style::new().add_modifier(Modifier::BOLD));
        Self {
            plain,
            strong: bold,
            quiet: Style::new().add_modifier(Modifier::DIM),
            good: coloured(plain, Color::Green),
            bad: coloured(plain, Color::Red),
            warn: coloured(bold, Color::Yellow),
            selected: Style::new().add_modifier(Modifier::REVERSED),
            found: Style::new().add_modifier(Modifier::REVERSED),
        }
    }
}

/// Paints lines below each other.
#[derive(Debug)]
pub(super) struct Painter<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    pub(super) styles: Styles,
}

impl<'a> Painter<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, area: Rect, styles: Styles) -> Self {
        let area = area.intersection(buffer.area);
        Self {
            buffer,
            area,
            styles,
        }
    }

    /// Returns how many columns there are.
    pub(super) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Returns the rows above the foot.
    pub(super) fn above(&self, foot: u16) -> Rect {
        Rect {
            height: self.area.height.saturating_sub(foot),
            ..self.area
        }
    }

    /// Writes a line in a row of the area; what is beyond the area is left out.
    pub(super) fn line(&mut self, row: usize, text: &str, style: Style) {
        self.text(row, 0, text, style);
    }

    /// Writes a text from a column on.
    pub(super) fn text(&mut self, row: usize, column: usize, text: &str, style: Style) {
        let (Ok(row), Ok(column)) = (u16::try_from(row), u16::try_from(column)) else {
            return;
        };
        if row >= self.area.height || column >= self.area.width {
            return;
        }
        let left = usize::from(self.area.width - column);
        let text = fitted(&steady(text), left);
        let (x, y) = (self.area.x + column, self.area.y + row);
        self.buffer.set_stringn(x, y, text, left, style);
    }

    /// Gives a part of a row a style.
    pub(super) fn mark(&mut self, row: usize, column: usize, width: usize, style: Style) {
        let part = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        let area = Rect {
            x: self.area.x.saturating_add(part(column)),
            y: self.area.y.saturating_add(part(row)),
            width: part(width),
            height: 1,
        };
        self.buffer.set_style(area.intersection(self.area), style);
    }

    /// Writes a rule with a title.
    pub(super) fn rule(&mut self, row: usize, title: &str, is_strong: bool) {
        let title = fitted(&steady(title), self.width().saturating_sub(6));
        let rest = self.width().saturating_sub(width_of(&title) + 4);
        let style = self.styles.quiet;
        self.line(
            row,
            &format!("──{:w$}{}", "", "─".repeat(rest), w = width_of(&title) + 2),
            style,
        );
        let style = match is_strong {
            true => self.styles.strong,
            false => self.styles.plain,
        };
        self.text(row, 3, &title, style);
    }

    /// Paints the foot: the question or the last answer, and the keys. Returns where
    /// the cursor is.
    pub(super) fn foot(
        &mut self,
        height: u16,
        message: &Message,
        prompt: Option<&Prompt>,
        keys: &str,
    ) -> Option<Position> {
        let last = usize::from(self.area.height.checked_sub(1)?);
        let has_two = height > 1;
        let row = last.saturating_sub(usize::from(has_two));
        let is_free = prompt.is_none() && message.text.is_empty();
        if has_two || is_free {
            self.line(last, keys, self.styles.quiet);
        }
        if let Some(prompt) = prompt {
            return self.question(row, prompt);
        }
        let (mark, style) = match message.is_refusal {
            true => ("refused: ", self.styles.bad),
            false => ("", self.styles.strong),
        };
        if !message.text.is_empty() {
            self.message(row, &format!("{mark}{}", message.text), style);
        }
        None
    }

    /// Writes a line that ends in a row; a long one has the row above too.
    fn message(&mut self, row: usize, text: &str, style: Style) {
        let (text, width) = (steady(text), self.width());
        let Some(above) = row.checked_sub(1).filter(|_| width_of(&text) > width) else {
            return self.line(row, &text, style);
        };
        let (mut first, mut taken) = (String::new(), 0);
        for word in text.split_inclusive(' ') {
            if taken + width_of(word) > width {
                break;
            }
            first.push_str(word);
            taken += width_of(word);
        }
        if first.is_empty() {
            return self.line(row, &text, style);
        }
        let blank = " ".repeat(width);
        self.line(above, &blank, self.styles.plain);
        self.line(above, &first, style);
        self.line(row, &text[first.len()..], style);
    }

    /// Writes a question with the end of its answer.
    fn question(&mut self, row: usize, prompt: &Prompt) -> Option<Position> {
        let question = prompt.question();
        let style = self.styles.strong;
        if !prompt.is_text() {
            self.line(row, &question, style);
            return None;
        }
        let question = fitted(&steady(&question), self.width() / 2);
        let begin = width_of(&question);
        let left = self.width().saturating_sub(begin + 1);
        let typed = steady(&prompt.text);
        let mut shown = typed.as_str();
        while width_of(shown) > left {
            let mut characters = shown.chars();
            characters.next();
            shown = characters.as_str();
        }
        self.line(row, &question, style);
        self.text(row, begin, shown, self.styles.plain);
        let x = u16::try_from(begin + width_of(shown)).ok()?;
        Some(Position {
            x: self.area.x + x.min(self.area.width.saturating_sub(1)),
            y: self.area.y + u16::try_from(row).ok()?,
        })
    }
}
