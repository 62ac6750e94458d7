//! A report as lines for a terminal.

use super::page::{Fact, Failure, Part, parts, title};
use super::{NextCommand, Reader, ReportView};
use crate::columns::{self, fitted, width_of};
use premath_kernel::json::plain::plain;

/// How much of the last column is shown before optional ones are.
const LAST_LEAST: usize = 24;

/// Where the value of a fact begins.
pub(super) const INDENT: usize = 10;

/// Returns a report as lines. All but paths and commands fit the reader's width.
pub fn lines(report: &ReportView, reader: &Reader) -> Vec<String> {
    let mut lines = vec![fitted(&plain(&title(report)), reader.width), String::new()];
    for part in parts(report, reader) {
        match part {
            Part::Heading(text) => {
                lines.push(String::new());
                lines.push(plain(&text.to_uppercase()).into_owned());
            }
            Part::Line(text) => lines.push(plain(&text).into_owned()),
            Part::Facts(facts) => lines.extend(of_facts(&facts, 0, reader.width)),
            Part::Table(table) => lines.extend(columns::lines(
                &table.columns,
                &table.rows,
                reader.width,
                LAST_LEAST,
            )),
            Part::Failure(failure) => lines.extend(of_failure(&failure, reader.width)),
            Part::Commands(next) => lines.extend(of_commands(&next, 2)),
            Part::Timeline => {}
        }
    }
    lines
}

fn of_failure(failure: &Failure, width: usize) -> Vec<String> {
    let head = format!("{}  {}", plain(&failure.issue), plain(&failure.title));
    let mut lines = vec![String::new(), fitted(&head, width)];
    lines.extend(of_facts(&failure.facts, 2, width));
    lines.extend(of_commands(&failure.commands, 2));
    lines
}

/// Returns facts as lines with their names in front; words that are longer than a
/// line are not cut.
pub(super) fn of_facts(facts: &[Fact], indent: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in facts {
        let mut line = format!("{:indent$}{name:INDENT$}", "");
        let mut is_begun = false;
        for word in plain(value).split_whitespace() {
            if is_begun && width_of(&line) + 1 + width_of(word) > width {
                lines.push(line);
                line = format!("{:1$}", "", indent + INDENT);
                is_begun = false;
            }
            if is_begun {
                line.push(' ');
            }
            line.push_str(word);
            is_begun = true;
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Returns commands as lines, with what they are for; they are never cut.
pub(super) fn of_commands(next: &[NextCommand], indent: usize) -> Vec<String> {
    /// A longer command moves what others are for no further.
    const WIDEST: usize = 60;
    let widths = next.iter().map(|next| width_of(&plain(&next.command)));
    let widest = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let mut lines = Vec::new();
    for step in next {
        let command = plain(&step.command);
        let space = widest.saturating_sub(width_of(&command));
        let purpose = plain(&step.purpose);
        lines.push(format!("{:indent$}{command}{:space$}  # {purpose}", "", ""));
    }
    lines
}
