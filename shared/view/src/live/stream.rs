//! What an attempt prints, line by line: scrolled, followed, searched.

use super::key::Key;
use super::paint::Painter;
use crate::columns::{steady, width_of};
use ratatui_core::layout::Rect;
use std::collections::VecDeque;
use unicode_width::UnicodeWidthChar;

/// The most lines that are kept.
const LINES_MAX: usize = 5_000;

/// The rows above the log.
const HEAD: usize = 2;

/// The log of an attempt as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    name: String,
    title: String,
    lines: VecDeque<String>,
    /// Whether lines were left out at the begin.
    is_cut: bool,
    runs: bool,
    is_read: bool,
    follows: bool,
    /// The lines as rows of the width.
    rows: Vec<Row>,
    width: usize,
    height: usize,
    top: usize,
    sought: String,
    found: Option<usize>,
}

/// A row: a part of a line.
#[derive(Clone, Debug)]
struct Row {
    line: usize,
    text: String,
}

impl Stream {
    pub(super) fn new(name: &str, title: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            lines: VecDeque::new(),
            is_cut: false,
            runs: true,
            is_read: false,
            follows: true,
            rows: Vec::new(),
            width: 80,
            height: 1,
            top: 0,
            sought: String::new(),
            found: None,
        }
    }

    /// Takes lines that follow.
    pub(super) fn push(&mut self, text: &str, runs: bool) {
        (self.runs, self.is_read) = (runs, true);
        for line in text.lines() {
            self.lines.push_back(steady(line));
            let line = self.lines.len() - 1;
            self.wrap(line);
        }
        let surplus = self.lines.len().saturating_sub(LINES_MAX);
        if surplus > 0 {
            self.is_cut = true;
            self.lines.drain(..surplus);
            let gone = self
                .rows
                .iter()
                .take_while(|row| row.line < surplus)
                .count();
            self.rows.drain(..gone);
            for row in &mut self.rows {
                row.line -= surplus;
            }
            self.top = self.top.saturating_sub(gone);
            self.found = self.found.and_then(|line| line.checked_sub(surplus));
        }
        self.settle();
    }

    /// Adds the rows of a line.
    fn wrap(&mut self, line: usize) {
        let (mut text, mut taken) = (String::new(), 0);
        for c in self.lines[line].chars() {
            let width = c.width().unwrap_or(0);
            if taken + width > self.width && taken > 0 {
                self.rows.push(Row {
                    line,
                    text: std::mem::take(&mut text),
                });
                taken = 0;
            }
            text.push(c);
            taken += width;
        }
        self.rows.push(Row { line, text });
    }

    /// Fits the rows to a size.
    fn resize(&mut self, width: usize, height: usize) {
        self.height = height.max(1);
        if self.width != width.max(1) {
            let line = self.rows.get(self.top).map_or(0, |row| row.line);
            self.width = width.max(1);
            self.rows.clear();
            (0..self.lines.len()).for_each(|line| self.wrap(line));
            self.show(line);
        }
        self.settle();
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    fn settle(&mut self) {
        self.top = match self.follows {
            true => self.last_top(),
            false => self.top.min(self.last_top()),
        };
    }

    /// Puts a line into sight.
    fn show(&mut self, line: usize) {
        let row = self.rows.iter().position(|row| row.line >= line);
        self.top = row.unwrap_or(0).min(self.last_top());
    }

    /// Scrolls; at the end it follows.
    pub(super) fn key(&mut self, key: Key) {
        let (top, page) = (self.top, self.height.saturating_sub(1).max(1));
        let to = match key {
            Key::Up | Key::Char('k') => top.saturating_sub(1),
            Key::Down | Key::Char('j') | Key::Enter => top + 1,
            Key::PageUp => top.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => top + page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => usize::MAX,
            Key::Char('f') => {
                self.follows = !self.follows;
                self.settle();
                return;
            }
            _ => return,
        };
        self.top = to.min(self.last_top());
        self.follows = self.top == self.last_top() && to > top;
    }

    /// Looks for a text from what is in sight on; an empty one ends the search.
    pub(super) fn search(&mut self, text: &str) -> Result<(), String> {
        text.clone_into(&mut self.sought);
        self.found = None;
        match text.is_empty() {
            true => Ok(()),
            false => self.next(true),
        }
    }

    /// Goes to the next place, or to the one before, around the end.
    pub(super) fn next(&mut self, forward: bool) -> Result<(), String> {
        if self.sought.is_empty() {
            return Err("nothing is searched for; / begins a search".to_owned());
        }
        let count = self.lines.len();
        let in_sight = || self.rows.get(self.top).map_or(0, |row| row.line);
        let begin = match (self.found, forward) {
            (Some(line), true) => line + 1,
            (Some(line), false) => line + count.saturating_sub(1),
            (None, true) => in_sight(),
            (None, false) => in_sight() + count.saturating_sub(1),
        };
        let offsets = 0..count;
        let place = |offset: usize| match forward {
            true => (begin + offset) % count,
            false => (begin + count - offset) % count,
        };
        let holds = |line: &usize| !places(&self.lines[*line], &self.sought).is_empty();
        match offsets.map(place).find(holds) {
            Some(line) => {
                self.found = Some(line);
                self.follows = false;
                self.show(line);
                Ok(())
            }
            None => Err(format!("no line has: {}", self.sought)),
        }
    }

    pub(super) fn paint(&mut self, painter: &mut Painter<'_>, body: Rect) {
        let height = usize::from(body.height).saturating_sub(HEAD);
        self.resize(usize::from(body.width), height);
        painter.rule(0, &self.head(), true);
        painter.line(1, &self.title, painter.styles.strong);
        if self.rows.is_empty() {
            let words = match (self.is_read, self.runs) {
                (false, _) => "reading …",
                (true, true) => "nothing is printed yet",
                (true, false) => "the attempt printed nothing, or its output is not kept any more",
            };
            painter.line(HEAD, words, painter.styles.plain);
        }
        let rows = self.rows.iter().enumerate().skip(self.top).take(height);
        for ((_, row), at) in rows.zip(HEAD..) {
            let style = match row.text.starts_with("--- ") {
                true => painter.styles.strong,
                false => painter.styles.plain,
            };
            painter.line(at, &row.text, style);
            if self.sought.is_empty() {
                continue;
            }
            for (column, width) in places(&row.text, &self.sought) {
                painter.mark(at, column, width, painter.styles.found);
            }
        }
    }

    fn head(&self) -> String {
        let state = match (self.runs, self.follows) {
            (true, true) => "following",
            (true, false) => "not following; f follows",
            (false, _) => "the attempt is over",
        };
        let last = (self.top + self.height).min(self.rows.len());
        let from = match self.is_cut {
            true => "; earlier lines are left out",
            false => "",
        };
        let rows = self.rows.len();
        format!("{}, {state}, row {last} of {rows}{from}", self.name)
    }
}

/// Returns where a line has a text, as columns and widths; small letters find
/// capitals too.
fn places(line: &str, sought: &str) -> Vec<(usize, usize)> {
    let is_exact = sought.chars().any(char::is_uppercase);
    let fold = |c: char| match is_exact {
        true => c,
        false => c.to_lowercase().next().unwrap_or(c),
    };
    let sought: Vec<char> = steady(sought).chars().map(fold).collect();
    let all: Vec<char> = line.chars().collect();
    let folded: Vec<char> = all.iter().map(|c| fold(*c)).collect();
    if sought.is_empty() {
        return Vec::new();
    }
    let windows = folded.windows(sought.len()).enumerate();
    let begins = windows.filter(|(_, window)| **window == *sought);
    let width = |part: &[char]| width_of(&part.iter().collect::<String>());
    begins
        .map(|(at, _)| (width(&all[..at]), width(&all[at..at + sought.len()])))
        .collect()
}
