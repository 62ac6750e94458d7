//! A report as Markdown, as forges and editors show it.

use super::page::{Fact, Failure, Part, Table, parts, title};
use super::{NextCommand, Reader, ReportView};
use premath_kernel::json::plain::plain;
use std::fmt::Write;

/// Returns a report as a Markdown document.
pub fn markdown(report: &ReportView, reader: &Reader) -> String {
    let mut text = format!("# {}\n", escaped(&title(report)));
    for part in parts(report, reader) {
        match part {
            Part::Heading(heading) => {
                let _ = write!(text, "\n## {}\n", escaped(&heading));
            }
            Part::Line(line) => {
                let _ = write!(text, "\n{}\n", escaped(&line));
            }
            Part::Facts(facts) => facts_of(&facts, &mut text),
            Part::Table(table) => table_of(&table, &mut text),
            Part::Failure(failure) => failure_of(&failure, &mut text),
            Part::Commands(next) => commands(&next, &mut text),
            Part::Timeline => {}
        }
    }
    text
}

fn facts_of(facts: &[Fact], text: &mut String) {
    text.push('\n');
    for (name, value) in facts {
        let _ = match name.is_empty() {
            true => writeln!(text, "- {}", escaped(value)),
            false => writeln!(text, "- **{name}**: {}", escaped(value)),
        };
    }
}

fn failure_of(failure: &Failure, text: &mut String) {
    let (issue, title) = (escaped(&failure.issue), escaped(&failure.title));
    let _ = write!(text, "\n### {issue}: {title}\n");
    facts_of(&failure.facts, text);
    commands(&failure.commands, text);
}

fn table_of(table: &Table, text: &mut String) {
    let heads: Vec<&str> = table.columns.iter().map(|column| column.head).collect();
    let rules: Vec<&str> = table
        .columns
        .iter()
        .map(|column| if column.is_figure { "--:" } else { "---" })
        .collect();
    let heads: Vec<String> = heads.into_iter().map(escaped).collect();
    let _ = write!(
        text,
        "\n| {} |\n| {} |\n",
        heads.join(" | "),
        rules.join(" | ")
    );
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn commands(next: &[NextCommand], text: &mut String) {
    if next.is_empty() {
        return;
    }
    let lines: Vec<String> = next
        .iter()
        .map(|step| format!("{}  # {}", plain(&step.command), plain(&step.purpose)))
        .collect();
    let fence = "`".repeat(longest_run(&lines.join("\n")).max(2) + 1);
    let _ = write!(text, "\n{fence}sh\n{}\n{fence}\n", lines.join("\n"));
}

/// Returns the length of the longest run of backquotes.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// Returns a text as Markdown shows it: one line, with no markup of its own. What a
/// forge would make a mention or a reference of is code.
pub(super) fn escaped(text: &str) -> String {
    let line = plain(text);
    let line = line.trim();
    // Within code nothing else may be escaped.
    let fits_code = !line.contains(['|', '\\', '`']);
    match line.contains(['@', '#']) && fits_code {
        true => format!("`{line}`"),
        false => {
            let mut escaped = String::with_capacity(line.len() + 8);
            for c in line.chars() {
                if needs_escape(c) {
                    escaped.push('\\');
                }
                escaped.push(c);
            }
            escaped
        }
    }
}

/// Returns whether a character may begin markup, a link or an entity.
const fn needs_escape(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, ',' | ';' | '?' | '%' | '\'' | '"' | '/')
}
