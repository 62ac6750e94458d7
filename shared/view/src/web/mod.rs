//! The web page: models in, HTML out.
//!
//! Invariant: everything that an issue, an agent or a file says is written by
//! `escaped`, so that it is text and nothing else. The page has no inline style
//! and no inline script: its policy allows none.

mod control;
mod diff;
mod frame;
mod graph;
mod issue;
mod live;
mod log;
mod overview;
mod report;
mod verdict;

#[cfg(test)]
mod tests;

pub use control::{Asking, Done, Field, asking, done};
pub use frame::{Page, Place, message, page};
pub use graph::{GraphNode, GraphView, graph};
pub use issue::{IssuePage, IssueText, Need, issue};
pub use live::{Fragment, fragments};
pub use log::{LogFilter, LogPart, log};
pub use overview::overview;
pub use report::{report, report_title};
pub use verdict::{Verdict, verdict};

use crate::figures::NONE;
use crate::html::escaped;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The style of all pages; that of the report comes first.
pub const STYLE: &str = concat!(
    include_str!("../report/report.css"),
    include_str!("page.css")
);

/// The script of all pages.
pub const SCRIPT: &str = include_str!("page.js");

/// What stays as it is in a part of a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Returns a text as a value in a query.
fn query_value(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// Returns the address of an issue's page.
fn issue_address(id: &str) -> String {
    format!("/issue?id={}", query_value(id))
}

/// Links to an issue by its id.
fn issue_link(id: &str) -> String {
    format!(
        "<a href=\"{}\"><code>{}</code></a>",
        issue_address(id),
        escaped(id)
    )
}

/// Writes a text from outside, whose direction of writing does not reach what is
/// around it.
fn foreign(text: &str) -> String {
    format!("<bdi>{}</bdi>", escaped(text))
}

/// Writes a text of several lines as it is.
fn block(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| escaped(&line.replace('\t', "    ")))
        .collect();
    format!(
        "<pre class=\"text\" tabindex=\"0\"><bdi>{}</bdi></pre>\n",
        lines.join("\n")
    )
}

/// Writes facts, each with its name; the values are HTML.
fn facts(facts: &[(&str, String)], text: &mut String) {
    text.push_str("<dl>\n");
    for (name, value) in facts {
        text.push_str(&format!(
            "<dt>{}</dt><dd>{value}</dd>\n",
            escaped(&capital(name))
        ));
    }
    text.push_str("</dl>\n");
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// Writes what a file or a command holds, as text.
pub fn printed(text: &str) -> String {
    match text.trim().is_empty() {
        true => "<p class=\"empty\">Nothing was printed.</p>\n".to_owned(),
        false => block(text),
    }
}

/// A column of a table: its head, and whether it holds figures.
type Head = (&'static str, bool);

/// Writes a table whose cells are HTML. On a phone a row is a block, and each cell
/// says its head.
fn table(caption: &str, heads: &[Head], rows: &[Vec<String>], text: &mut String) {
    text.push_str("<table>\n");
    text.push_str(&format!(
        "<caption class=\"away\">{}</caption>\n<thead><tr>",
        escaped(caption)
    ));
    for (head, is_figure) in heads {
        let class = if *is_figure { " class=\"n\"" } else { "" };
        text.push_str(&format!("<th scope=\"col\"{class}>{head}</th>"));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for ((head, is_figure), cell) in heads.iter().zip(row) {
            // What a column does not say is left out on a phone.
            let class = match (*is_figure, cell == NONE) {
                (true, true) => " class=\"n none\"",
                (true, false) => " class=\"n\"",
                (false, true) => " class=\"none\"",
                (false, false) => "",
            };
            text.push_str(&format!(
                "<td{class} data-h=\"{head}\"><div>{cell}</div></td>"
            ));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n");
}
