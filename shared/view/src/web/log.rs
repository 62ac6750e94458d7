//! The run log: its last rows first, with filters.

use super::{Head, foreign, issue_link, query_value, table};
use crate::figures::{NONE, Viewer, brief_ms};
use crate::html::escaped;
use premath_kernel::json::plain::counted;
use premath_kernel::record::trajectory::StepRow;
use serde::Deserialize;
use std::fmt::Write;
use std::time::Duration;

/// The rows that are shown. An empty text filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogFilter {
    /// The issue.
    pub issue: String,
    /// The lane's worker.
    pub lane: String,
    /// A failure class, or what it begins with.
    pub class: String,
    /// The action.
    pub action: String,
    /// Where the lines before these rows end; empty for the end of the log.
    pub before: String,
}

/// A part of the run log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPart {
    /// The rows, the last one first.
    pub rows: Vec<StepRow>,
    /// How many lines cannot be read as rows.
    pub unreadable: u64,
    /// Where the lines before these end; `None` where there are none.
    pub before: Option<u64>,
}

impl LogFilter {
    /// Returns whether a row is shown.
    pub fn takes(&self, row: &StepRow) -> bool {
        let is = |wanted: &str, value: Option<&str>| wanted.is_empty() || value == Some(wanted);
        is(&self.issue, row.issue_id.as_deref())
            && is(&self.lane, row.worker_id.as_deref())
            && is(&self.action, Some(&row.action))
            && (self.class.is_empty()
                || row
                    .failure_classes
                    .iter()
                    .any(|class| class.starts_with(&self.class)))
    }

    /// Returns the whole texts that a row has which is shown.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let all = [&self.issue, &self.lane, &self.action].into_iter();
        all.map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Returns where the lines before the rows end.
    pub fn end(&self) -> Option<u64> {
        self.before.parse().ok()
    }

    fn is_empty(&self) -> bool {
        self.texts().next().is_none() && self.class.is_empty()
    }

    /// Returns the address of a part of the log with the same filters.
    fn address(&self, before: Option<u64>) -> String {
        let before = before.map(|before| before.to_string()).unwrap_or_default();
        let fields = [
            ("issue", &self.issue),
            ("lane", &self.lane),
            ("class", &self.class),
            ("action", &self.action),
            ("before", &before),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> = fields
            .map(|(name, value)| format!("{name}={}", query_value(value)))
            .collect();
        match fields.is_empty() {
            true => "/log".to_owned(),
            false => format!("/log?{}", fields.join("&amp;")),
        }
    }
}

/// Writes the content of the page of the run log.
pub fn log(part: &LogPart, filter: &LogFilter, viewer: &Viewer) -> String {
    let mut text = form(filter);
    if part.rows.is_empty() {
        let words = match (filter.is_empty(), part.before) {
            (true, _) => "The run log has no rows yet. A batch writes one for each attempt.",
            (false, None) => "No row fits these filters.",
            (false, Some(_)) => "No row fits these filters in the part that was searched.",
        };
        let _ = writeln!(text, "<p class=\"empty\">{words}</p>");
    } else {
        rows(&part.rows, viewer, &mut text);
    }
    if part.unreadable > 0 {
        let _ = writeln!(
            text,
            "<p class=\"notice warn\">{} of this part cannot be read; \
            <code>premath audit</code> names them.</p>",
            counted(part.unreadable, "line")
        );
    }
    text.push_str("<nav aria-label=\"Parts of the run log\" class=\"buttons\">\n");
    if filter.end().is_some() {
        let _ = writeln!(
            text,
            "<a class=\"button\" href=\"{}\">Latest rows</a>",
            filter.address(None)
        );
    }
    match part.before {
        Some(before) => {
            let _ = writeln!(
                text,
                "<a class=\"button\" rel=\"next\" href=\"{}\">Earlier rows</a>",
                filter.address(Some(before))
            );
        }
        None if !part.rows.is_empty() => {
            text.push_str("<span class=\"faint\">The run log begins here.</span>\n");
        }
        None => {}
    }
    text.push_str("</nav>\n");
    text
}

fn form(filter: &LogFilter) -> String {
    let fields = [
        ("issue", "Issue", &filter.issue),
        ("lane", "Lane", &filter.lane),
        ("class", "Class", &filter.class),
        ("action", "Action", &filter.action),
    ];
    let mut text = "<form class=\"filters\" action=\"/log\" role=\"search\">\n".to_owned();
    for (name, label, value) in fields {
        let _ = writeln!(
            text,
            "<label>{label} <input name=\"{name}\" value=\"{}\" autocomplete=\"off\" \
            autocapitalize=\"none\" spellcheck=\"false\"></label>",
            escaped(value)
        );
    }
    text.push_str("<button>Filter</button>\n");
    if !filter.is_empty() {
        text.push_str("<a class=\"button\" href=\"/log\">All rows</a>\n");
    }
    text.push_str("</form>\n");
    text
}

fn rows(rows: &[StepRow], viewer: &Viewer, text: &mut String) {
    const HEADS: [Head; 6] = [
        ("Time", false),
        ("Action", false),
        ("Issue", false),
        ("Lane", false),
        ("Result", false),
        ("Took", true),
    ];
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row, viewer)).collect();
    table(
        "Rows of the run log, the last one first",
        &HEADS,
        &rows,
        text,
    );
}

fn cells(row: &StepRow, viewer: &Viewer) -> Vec<String> {
    let none = || NONE.to_owned();
    let mut result = foreign(&row.result_class);
    for class in &row.failure_classes {
        let _ = write!(
            result,
            " <a href=\"/log?class={}\"><code>{}</code></a>",
            query_value(class),
            escaped(class)
        );
    }
    let took = row.started_at.as_ref().map(|started| {
        let took = row.finished_at.time().duration_since(started.time());
        let took = Duration::try_from(took).unwrap_or_default();
        brief_ms(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    });
    let local = row.finished_at.time().to_zoned(viewer.zone.clone());
    vec![
        format!(
            "<span class=\"time\">{}</span>",
            local.strftime("%Y-%m-%d %H:%M:%S")
        ),
        format!(
            "<a href=\"/log?action={}\">{}</a>",
            query_value(&row.action),
            escaped(&row.action)
        ),
        row.issue_id.as_ref().map_or_else(none, |id| issue_link(id)),
        row.worker_id.as_ref().map_or_else(none, |lane| {
            format!(
                "<a href=\"/log?lane={}\">{}</a>",
                query_value(lane),
                escaped(lane)
            )
        }),
        result,
        took.unwrap_or_else(none),
    ]
}
