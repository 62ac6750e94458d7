//! One issue: its text, why it waits, its attempts, and what the last one changed.

use super::diff::diff;
use super::{block, facts, foreign, issue_link, query_value};
use crate::diff::DiffView;
use crate::figures::Viewer;
use crate::html::escaped;
use crate::report::history::{facts as attempt_facts, numbered};
use crate::report::{AttemptOutcome, AttemptView, PastAttempt, PastTotals};
use jiff::Timestamp;
use std::fmt::Write;

/// An issue as the page shows it.
#[derive(Clone, Debug)]
pub struct IssuePage {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: String,
    /// Further facts, each with its name; empty ones are left out.
    pub facts: Vec<(&'static str, String)>,
    /// What it says, in parts.
    pub texts: Vec<IssueText>,
    /// What it needs.
    pub needs: Vec<Need>,
    /// What needs it.
    pub needed_by: Vec<Need>,
    /// Why it is not worked on now, each with what to do next.
    pub reasons: Vec<(String, Option<String>)>,
    /// Whether an attempt runs.
    pub runs: bool,
    /// Attempts that ended, in the order of the run log.
    pub attempts: Vec<PastAttempt>,
    /// How many attempts came before them.
    pub earlier: u64,
    /// What all of its attempts took.
    pub totals: PastTotals,
    /// What the running or the last attempt changed, or why that is not shown.
    pub change: Result<DiffView, String>,
    /// Why the attempts cannot be read.
    pub error: Option<String>,
    /// Whether it can be cancelled and retried from the page.
    pub controls: bool,
}

/// A part of the text of an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueText {
    /// Its heading.
    pub heading: &'static str,
    /// The text.
    pub text: String,
}

/// Another issue that an issue is joined to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The issue.
    pub id: String,
    /// The kind of the edge.
    pub kind: String,
    /// The status of the issue; `None` where there is no such issue.
    pub status: Option<String>,
}

/// Writes the content of the page of an issue.
pub fn issue(issue: &IssuePage, viewer: &Viewer) -> String {
    let mut text = String::new();
    head(issue, viewer, &mut text);
    for part in &issue.texts {
        let _ = writeln!(text, "<h2>{}</h2>", part.heading);
        text.push_str(&block(&part.text));
    }
    let error = issue.error.iter();
    for line in error {
        let _ = writeln!(text, "<p class=\"notice bad\">{}</p>", escaped(line));
    }
    attempts(issue, viewer, &mut text);
    text.push_str("<h2>Changes</h2>\n");
    match &issue.change {
        Ok(view) => diff(view, &mut text),
        Err(why) => {
            let _ = writeln!(text, "<p class=\"empty\">{}</p>", escaped(why));
        }
    }
    text
}

fn attempts(issue: &IssuePage, viewer: &Viewer, text: &mut String) {
    let (totals, id) = (&issue.totals, query_value(&issue.id));
    let _ = writeln!(text, "<h2>Attempts ({})</h2>", totals.attempts);
    if totals.attempts == 0 {
        text.push_str("<p class=\"empty\">No attempt at this issue has ended yet.</p>\n");
        return;
    }
    let _ = writeln!(
        text,
        "<p class=\"faint\">{}.</p>",
        escaped(&totals.sentence())
    );
    let shown = u64::try_from(issue.attempts.len()).unwrap_or(u64::MAX);
    if issue.earlier.saturating_add(shown) < totals.attempts {
        let _ = writeln!(
            text,
            "<p><a class=\"button\" href=\"/issue?id={id}\">Latest attempts</a></p>"
        );
    }
    for (past, number) in numbered(&issue.attempts, issue.earlier) {
        attempt(number, past, viewer, text);
    }
    let oldest = issue.attempts.first().filter(|_| issue.earlier > 0);
    if let Some(oldest) = oldest {
        let _ = writeln!(
            text,
            "<p><a class=\"button\" href=\"/issue?id={id}&amp;before={}\">Earlier attempts \
            ({})</a></p>",
            oldest.attempt.row, issue.earlier
        );
    }
}

/// Writes a time as a person reads it; any other text as it is.
fn timed(value: &str, viewer: &Viewer) -> String {
    let time: Result<Timestamp, _> = value.parse();
    time.map_or_else(|_| value.to_owned(), |time| viewer.when(time))
}

fn head(issue: &IssuePage, viewer: &Viewer, text: &mut String) {
    text.push_str("<section class=\"card\" aria-label=\"State\">\n");
    let runs = match issue.runs {
        true => " <span class=\"state good\">an attempt runs</span>",
        false => "",
    };
    let _ = writeln!(
        text,
        "<p><span class=\"state {}\">{}</span>{runs} <code>{}</code></p>",
        status_class(&issue.status),
        escaped(&issue.status),
        escaped(&issue.id)
    );
    let mut rows: Vec<(&str, String)> = Vec::new();
    for (name, value) in &issue.facts {
        if !value.is_empty() {
            rows.push((name, foreign(&timed(value, viewer))));
        }
    }
    for (name, needs) in [("needs", &issue.needs), ("needed by", &issue.needed_by)] {
        let links: Vec<String> = needs.iter().map(need).collect();
        if !links.is_empty() {
            rows.push((name, links.join(", ")));
        }
    }
    facts(&rows, text);
    for (reason, next) in &issue.reasons {
        let _ = writeln!(text, "<p class=\"reason\">{}</p>", escaped(reason));
        if let Some(next) = next {
            let _ = writeln!(
                text,
                "<p class=\"faint\">Next: <code>{}</code></p>",
                escaped(next)
            );
        }
    }
    buttons(issue, text);
    text.push_str("</section>\n");
}

fn buttons(issue: &IssuePage, text: &mut String) {
    let id = query_value(&issue.id);
    text.push_str("<p class=\"buttons\">\n");
    let _ = writeln!(
        text,
        "<a class=\"button\" href=\"/log?issue={id}\">Rows of the run log</a>"
    );
    if issue.runs || issue.totals.attempts > 0 {
        let _ = writeln!(
            text,
            "<a class=\"button\" href=\"/output?issue={id}\">Output of the last attempt</a>"
        );
    }
    if issue.controls && issue.runs {
        let _ = writeln!(
            text,
            "<a class=\"button\" href=\"/control/cancel?issue={id}\">Cancel the attempt…</a>"
        );
    }
    if issue.controls && !issue.runs && issue.status != "closed" {
        let _ = writeln!(
            text,
            "<a class=\"button\" href=\"/control/retry?issue={id}\">Retry with a note…</a>"
        );
    }
    text.push_str("</p>\n");
}

fn status_class(status: &str) -> &'static str {
    match status {
        "closed" => "good",
        "blocked" => "bad",
        "in_progress" => "warn",
        _ => "calm",
    }
}

fn need(need: &Need) -> String {
    let status = need.status.as_deref().unwrap_or("missing");
    let kind = match need.kind.as_str() {
        "blocks" => String::new(),
        kind => format!("{}, ", escaped(kind)),
    };
    format!(
        "{} <span class=\"faint\">({kind}{})</span>",
        issue_link(&need.id),
        escaped(status)
    )
}

fn attempt(number: u64, past: &PastAttempt, viewer: &Viewer, text: &mut String) {
    let attempt = &past.attempt;
    let class = match attempt.outcome {
        AttemptOutcome::Closed => "good",
        AttemptOutcome::Retry | AttemptOutcome::Interrupted | AttemptOutcome::UsageLimit => "warn",
        _ => "bad",
    };
    let _ = writeln!(
        text,
        "<article class=\"attempt {class}\">\n<h3>{number}. <span class=\"state {class}\">{}</span> \
        <span class=\"faint\">{}</span></h3>",
        escaped(attempt.outcome.phrase()),
        match &attempt.batch_id {
            Some(id) => format!(
                "<a href=\"/report?batch={}\">batch {}</a>",
                query_value(id),
                escaped(id)
            ),
            None => "no batch".to_owned(),
        }
    );
    let mut rows: Vec<(&str, String)> = Vec::new();
    for (name, value) in attempt_facts(attempt, viewer) {
        match name {
            // The files are linked below.
            "proof" => {}
            _ => rows.push((name, foreign(&value))),
        }
    }
    rows.push(("evidence", evidence(attempt)));
    facts(&rows, text);
    if !past.output_end.is_empty() {
        text.push_str(&block(&past.output_end.join("\n")));
    }
    text.push_str("</article>\n");
}

/// Links to the files that prove an attempt.
fn evidence(attempt: &AttemptView) -> String {
    let mut links = vec![format!("row {} of the run log", attempt.row)];
    for path in &attempt.witnesses {
        let name = path.rsplit('/').next().unwrap_or(path);
        let phase = name.trim_start_matches(attempt.step_id.as_str());
        let phase = phase.trim_matches('.').trim_end_matches(".json");
        let shown = match phase {
            "turn" => "turn, with the verdict of the gate",
            "" => name,
            phase => phase,
        };
        links.push(format!(
            "<a href=\"/evidence?file={}\">{}</a>",
            query_value(name),
            escaped(shown)
        ));
    }
    links.join(", ")
}
