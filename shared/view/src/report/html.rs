//! A report as one HTML file: no scripts, no requests, readable on a phone, in the
//! dark and on paper.

use super::page::{Fact, Failure, Part, Table, parts, title};
use super::timeline::timeline;
use super::{NextCommand, Reader, ReportView};
use crate::html::escaped;
use std::fmt::Write;

/// The style of the page.
pub(crate) const STYLE: &str = include_str!("report.css");

/// Returns a report as a page.
pub fn html(report: &ReportView, reader: &Reader) -> String {
    let title = escaped(&title(report));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
        'unsafe-inline'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
        <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    content(report, reader, &mut text);
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

/// Writes the content of the page below its title.
pub(crate) fn content(report: &ReportView, reader: &Reader, text: &mut String) {
    for part in parts(report, reader) {
        match part {
            Part::Heading(heading) => {
                let _ = writeln!(text, "<h2>{}</h2>", escaped(&heading));
            }
            Part::Line(line) => {
                let _ = writeln!(text, "<p>{}</p>", escaped(&line));
            }
            Part::Facts(facts) => facts_of(&facts, text),
            Part::Table(table) => table_of(&table, text),
            Part::Failure(failure) => failure_of(&failure, text),
            Part::Commands(next) => commands(&next, text),
            Part::Timeline => text.push_str(&timeline(report, reader)),
        }
    }
}

fn facts_of(facts: &[Fact], text: &mut String) {
    text.push_str("<dl>\n");
    for (name, value) in facts {
        let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    text.push_str("</dl>\n");
}

fn failure_of(failure: &Failure, text: &mut String) {
    let _ = writeln!(
        text,
        "<article>\n<h3><code>{}</code> {}</h3>",
        escaped(&failure.issue),
        escaped(&failure.title)
    );
    facts_of(&failure.facts, text);
    commands(&failure.commands, text);
    text.push_str("</article>\n");
}

/// On a phone a row is a block, and each cell says its head.
fn table_of(table: &Table, text: &mut String) {
    text.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for column in &table.columns {
        let class = if column.is_figure { " class=\"n\"" } else { "" };
        let head = escaped(column.head);
        let _ = write!(text, "<th scope=\"col\"{class}>{head}</th>");
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (column, cell) in table.columns.iter().zip(row) {
            let class = if column.is_figure { " class=\"n\"" } else { "" };
            let (head, cell) = (escaped(column.head), escaped(cell));
            let _ = write!(text, "<td{class} data-h=\"{head}\">{cell}</td>");
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
}

fn commands(next: &[NextCommand], text: &mut String) {
    if next.is_empty() {
        return;
    }
    text.push_str("<ul class=\"next\">\n");
    for step in next {
        let (command, purpose) = (escaped(&step.command), escaped(&step.purpose));
        let _ = writeln!(
            text,
            "<li><code>{command}</code> <span>{purpose}</span></li>"
        );
    }
    text.push_str("</ul>\n");
}
