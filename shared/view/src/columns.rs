//! Rows of cells as aligned lines that fit a width.

use premath_kernel::json::plain::plain;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The space between two columns.
const GAP: usize = 2;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// Whether it is there at every width. Of the others, as many of the first ones
    /// are shown as there is room for.
    pub is_needed: bool,
    /// Whether its cells are figures, which end at the same place.
    pub is_figure: bool,
}

impl Column {
    /// A column of text that is there at every width.
    pub const fn text(head: &'static str) -> Self {
        Self {
            head,
            is_needed: true,
            is_figure: false,
        }
    }

    /// A column of figures that comes where there is room.
    pub const fn figure(head: &'static str) -> Self {
        Self {
            head,
            is_needed: false,
            is_figure: true,
        }
    }
}

/// How many marks over one character are shown.
const MARKS_MAX: usize = 3;

/// Returns a text as one line that has the same width on every terminal: it is
/// escaped, and without what joins or varies characters, which terminals draw
/// differently.
pub(crate) fn steady(text: &str) -> String {
    let mut marks = 0;
    let escaped = plain(text);
    let kept = escaped.chars().filter(|c| {
        marks = match c.width() {
            Some(0) => marks + 1,
            _ => 0,
        };
        marks <= MARKS_MAX && !is_joining(*c)
    });
    kept.collect()
}

/// Returns whether a character has no shape of its own and changes its neighbours:
/// joiners, variation selectors, tags, tones of skin.
const fn is_joining(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns how many columns a text takes on a terminal: those of East Asian
/// scripts and emoji take two.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// Returns rows as aligned lines of at most `width` columns, each escaped. The
/// last column takes what is left and is cut; it keeps at least `last_least`
/// characters where columns can be left out for it.
pub fn lines(
    columns: &[Column],
    rows: &[Vec<String>],
    width: usize,
    last_least: usize,
) -> Vec<String> {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| steady(cell)).collect())
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let of_row = |row: &Vec<String>| row.get(index).map_or(0, |cell| width_of(cell));
            let widest = cells.iter().map(of_row).max().unwrap_or(0);
            widest.max(width_of(column.head)).min(CELL_MAX)
        })
        .collect();
    let shown = shown(columns, &widths, width, last_least);
    let heads: Vec<String> = columns
        .iter()
        .map(|column| column.head.to_owned())
        .collect();
    let rows = std::iter::once(&heads).chain(&cells);
    rows.map(|row| line(columns, row, &widths, &shown, width))
        .collect()
}

/// Returns the places of the columns that there is room for.
fn shown(columns: &[Column], widths: &[usize], width: usize, last_least: usize) -> Vec<usize> {
    let last = columns.len().saturating_sub(1);
    let needed = |index: usize| index == last || columns[index].is_needed;
    let fixed: usize = (0..last)
        .filter(|index| needed(*index))
        .map(|index| widths[index] + GAP)
        .sum();
    let least = last_least.min(widths.get(last).copied().unwrap_or(0));
    let mut left = width.saturating_sub(fixed + least);
    let mut shown: Vec<usize> = (0..columns.len()).filter(|index| needed(*index)).collect();
    for index in (0..last).filter(|index| !needed(*index)) {
        match left.checked_sub(widths[index] + GAP) {
            Some(rest) => {
                left = rest;
                shown.push(index);
            }
            None => break,
        }
    }
    shown.sort_unstable();
    shown
}

/// The most characters of a cell: a wider one is cut.
const CELL_MAX: usize = 200;

fn line(
    columns: &[Column],
    row: &[String],
    widths: &[usize],
    shown: &[usize],
    width: usize,
) -> String {
    let mut line = String::new();
    for (place, index) in shown.iter().enumerate() {
        let cell = row.get(*index).map_or("", String::as_str);
        let is_last = place + 1 == shown.len();
        if is_last {
            let left = width.saturating_sub(width_of(&line));
            line.push_str(&fitted(cell, left));
        } else {
            let cell = fitted(cell, widths[*index]);
            let space = " ".repeat(widths[*index].saturating_sub(width_of(&cell)));
            let (before, after) = match columns[*index].is_figure {
                true => (space.as_str(), ""),
                false => ("", space.as_str()),
            };
            line.push_str(&format!("{before}{cell}{after}  "));
        }
    }
    let line = line.trim_end();
    fitted(line, width)
}

/// Returns a text of at most so many columns, with a sign where it is cut.
pub(crate) fn fitted(text: &str, most: usize) -> String {
    if width_of(text) <= most {
        return text.to_owned();
    }
    let (mut kept, mut taken) = (String::new(), 0);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken >= most {
            break;
        }
        kept.push(c);
    }
    match most {
        0 => String::new(),
        _ => format!("{}…", kept.trim_end()),
    }
}

/// Returns texts as few lines as they fit on, with a mark before the first one.
pub(crate) fn flowed(mark: &str, parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let indent = width_of(mark);
    for part in parts {
        let part = steady(part);
        let length = width_of(&part);
        match lines.last_mut() {
            // A comma may follow.
            Some(line) if width_of(line) + 2 + length < width => {
                line.push_str(", ");
                line.push_str(&part);
            }
            Some(line) => {
                line.push(',');
                lines.push(format!("{:indent$}{part}", ""));
            }
            None => lines.push(format!("{mark}{part}")),
        }
    }
    lines.iter().map(|line| fitted(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::text("LANE"),
        Column::figure("CALLS"),
        Column::figure("COST"),
        Column::text("TITLE"),
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["worker.1", "7", "0.42", "Write the parser of the log"]),
            row(["worker.10", "120", "12.00", "a\u{1b}[2J"]),
        ]
    }

    #[test]
    fn figures_end_at_the_same_place_and_text_is_escaped() {
        assert_eq!(
            lines(&COLUMNS, &rows(), 80, 10),
            [
                "LANE       CALLS   COST  TITLE",
                "worker.1       7   0.42  Write the parser of the log",
                "worker.10    120  12.00  a\\u{1b}[2J",
            ]
        );
    }

    #[test]
    fn columns_that_have_no_room_are_left_out_and_the_last_one_is_cut() {
        for width in 20..90 {
            for line in lines(&COLUMNS, &rows(), width, 10) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        assert_eq!(
            lines(&COLUMNS, &rows(), 30, 12),
            [
                "LANE       CALLS  TITLE",
                "worker.1       7  Write the p…",
                "worker.10    120  a\\u{1b}[2J"
            ]
        );
        assert_eq!(lines(&COLUMNS, &rows(), 24, 12)[0], "LANE       TITLE");
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!(fitted("日本語の題名", 12), "日本語の題名");
        assert_eq!(fitted("日本語の題名", 11), "日本語の題…");
        assert_eq!(fitted("日本語の題名", 10), "日本語の…");
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["日本", "1", "2", "x"]), row(["abcd", "1", "2", "x"])];
        let lines = lines(&COLUMNS, &rows, 40, 5);
        assert_eq!(lines[1], "日本      1     2  x");
        assert_eq!(lines[2], "abcd      1     2  x");
    }

    #[test]
    fn parts_flow_into_lines_below_the_first_one() {
        let parts = ["one".to_owned(), "two".to_owned(), "three".to_owned()];
        assert_eq!(flowed("x: ", &parts, 12), ["x: one, two,", "   three"]);
    }
}
