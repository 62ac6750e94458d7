//! How the batches are: what the overview consists of, each part as HTML.

use super::{Head, capital, foreign, issue_link, query_value, table};
use crate::figures::{NONE, Viewer, brief_ms, money, tokens};
use crate::html::escaped;
use crate::status::text::{
    age_text, attempt_parts, cost_parts, last_event, pace_parts, pause_texts, queue_parts,
    state_text, state_word, time_of, worries,
};
use crate::status::{BatchState, BatchView, LaneView, StatusView};
use premath_kernel::record::live::{LiveQueue, PauseKind};
use std::fmt::Write;

/// The most ended attempts of a batch that are shown.
const OUTCOMES_SHOWN: usize = 10;

/// Writes a part of the overview.
type Part = fn(&Overview<'_>) -> String;

/// The parts of the overview, in their order on the page.
pub(super) const PARTS: [(&str, Part); 6] = [
    ("counts", counts),
    ("state", state),
    ("attention", attention),
    ("lanes", lanes),
    ("queue", queue),
    ("outcomes", outcomes),
];

/// What the overview is made from.
#[derive(Debug)]
pub(super) struct Overview<'a> {
    pub(super) status: &'a StatusView,
    pub(super) viewer: &'a Viewer,
    /// Whether running batches can be controlled from the page.
    pub(super) controls: bool,
}

/// Writes the content of the overview.
pub fn overview(status: &StatusView, viewer: &Viewer, controls: bool) -> String {
    let overview = Overview {
        status,
        viewer,
        controls,
    };
    let mut text = String::new();
    for (name, part) in PARTS {
        // The counts alone are spoken when they change.
        let spoken = match name {
            "counts" => " role=\"status\" aria-live=\"polite\"",
            _ => "",
        };
        let _ = write!(
            text,
            "<div data-live=\"{name}\"{spoken}>\n{}</div>\n",
            part(&overview)
        );
    }
    text
}

/// The sentence that a screen reader speaks when it changes.
fn counts(overview: &Overview<'_>) -> String {
    let status = overview.status;
    let queue = status.queue.as_ref();
    let issues = queue.map_or_else(
        || "The issues are not counted yet.".to_owned(),
        |queue| format!("{} of {} issues closed.", queue.closed, queue.total),
    );
    let runs = match (status.running, status.batches.first()) {
        (false, _) => "No batch is running.".to_owned(),
        (true, Some(batch)) => {
            let works = batch.lanes.iter().filter(|lane| lane.attempt.is_some());
            format!(
                "{}, {} of {} lanes at work.",
                capital(batch.state.word()),
                works.count(),
                batch.lanes.len()
            )
        }
        (true, None) => String::new(),
    };
    format!("<p class=\"counts\">{} {issues}</p>\n", escaped(&runs))
}

fn state(overview: &Overview<'_>) -> String {
    let mut text = String::new();
    if overview.status.batches.is_empty() {
        text.push_str(
            "<p class=\"empty\">No batch ran in this repository yet. \
             <code>harness-coordinator</code> runs one.</p>\n",
        );
    }
    for batch in &overview.status.batches {
        batch_state(batch, overview, &mut text);
    }
    text
}

fn batch_state(batch: &BatchView, overview: &Overview<'_>, text: &mut String) {
    let viewer = overview.viewer;
    let _ = write!(
        text,
        "<section class=\"card\" aria-label=\"Batch\">\n<h2><span class=\"state {}\">{}</span> Batch \
        <code>{}</code></h2>\n",
        state_class(batch.state),
        escaped(first_word(batch.state)),
        escaped(&batch.batch_id)
    );
    let place = format!("process {} on {}", batch.pid, batch.host);
    let _ = writeln!(
        text,
        "<p class=\"faint\">{}, {}</p>",
        escaped(&state_text(batch, viewer)),
        escaped(&place)
    );
    if let Some(queue) = &batch.queue {
        progress(queue, text);
    }
    let mut facts: Vec<(&str, String)> = vec![
        ("Pace", pace_parts(batch, viewer).join(", ")),
        ("Cost", cost_parts(batch).join(", ")),
        ("Attempts", attempt_parts(batch).join(", ")),
    ];
    if let Some(at) = batch.ends_at.as_ref().filter(|_| batch.state.is_running()) {
        facts.push(("No new work", format!("from {}", viewer.when(at.time()))));
    }
    text.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(
            text,
            "<div><dt>{name}</dt><dd>{}</dd></div>",
            escaped(&value)
        );
    }
    text.push_str("</dl>\n");
    if batch.state == BatchState::Cut {
        text.push_str(
            "<p><code>harness-coordinator</code> with the same settings continues it.</p>\n",
        );
    }
    if overview.controls && batch.state.is_running() {
        buttons(batch, text);
    }
    text.push_str("</section>\n");
}

fn first_word(state: BatchState) -> &'static str {
    match state {
        BatchState::Cut => "cut",
        state => state.word(),
    }
}

const fn state_class(state: BatchState) -> &'static str {
    match state {
        BatchState::Running => "good",
        BatchState::Draining | BatchState::Cancelling => "warn",
        BatchState::Ended => "calm",
        BatchState::Cut => "bad",
    }
}

fn progress(queue: &LiveQueue, text: &mut String) {
    let _ = writeln!(
        text,
        "<p class=\"progress\"><progress max=\"{}\" value=\"{}\" aria-label=\"Closed issues\">\
        </progress> <span><b>{}</b> of {} issues closed</span></p>",
        queue.total.max(1),
        queue.closed,
        queue.closed,
        queue.total
    );
}

/// The links to what can be asked of a batch; each asks for a confirmation.
fn buttons(batch: &BatchView, text: &mut String) {
    let id = query_value(&batch.batch_id);
    text.push_str("<p class=\"buttons\">\n");
    let mut pauses = batch.pauses.iter();
    let is_paused = pauses.any(|pause| pause.kind == PauseKind::Operator);
    let first = match is_paused {
        true => ("resume", "Resume…"),
        false => ("pause", "Pause…"),
    };
    for (name, word) in [first, ("drain", "Drain…"), ("stop", "Stop…")] {
        let _ = writeln!(
            text,
            "<a class=\"button\" id=\"{name}-{id}\" href=\"/control/{name}?batch={id}\">{word}</a>"
        );
    }
    text.push_str("</p>\n");
}

fn attention(overview: &Overview<'_>) -> String {
    let mut text = String::new();
    for batch in &overview.status.batches {
        if let Some(age) = age_text(batch) {
            let _ = writeln!(
                text,
                "<p class=\"notice warn\"><b>Old</b> {}</p>",
                escaped(&age)
            );
        }
        for pause in pause_texts(batch, overview.viewer) {
            let _ = writeln!(
                text,
                "<p class=\"notice warn\"><b>Paused</b> {}</p>",
                escaped(&pause)
            );
        }
        for (lane, worry) in worries(batch) {
            let _ = writeln!(
                text,
                "<p class=\"notice bad\"><b>Look</b> {} {}</p>",
                escaped(lane),
                escaped(&worry)
            );
        }
    }
    text
}

fn lanes(overview: &Overview<'_>) -> String {
    let batches = &overview.status.batches;
    let running = batches.iter().filter(|batch| batch.state.is_running());
    let mut text = "<h2>Lanes</h2>\n".to_owned();
    let mut shown = false;
    for batch in running {
        shown = true;
        match batch.lanes.is_empty() {
            true => text.push_str("<p class=\"empty\">The lanes are being prepared.</p>\n"),
            false => lane_table(batch, overview.controls, &mut text),
        }
    }
    if !shown {
        text.push_str("<p class=\"empty\">No lane works now.</p>\n");
    }
    text
}

fn lane_table(batch: &BatchView, controls: bool, text: &mut String) {
    let mut heads: Vec<Head> = vec![
        ("Lane", false),
        ("Issue", false),
        ("Phase", false),
        ("Time", true),
        ("Last event", false),
        ("Try", true),
        ("Calls", true),
        ("USD", true),
        ("Tokens", true),
        ("Total", true),
    ];
    if controls {
        heads.push(("Control", false));
    }
    let rows: Vec<_> = batch
        .lanes
        .iter()
        .map(|lane| lane_row(lane, controls))
        .collect();
    let caption = format!("Lanes of batch {}", batch.batch_id);
    table(&caption, &heads, &rows, text);
}

fn lane_row(lane: &LaneView, controls: bool) -> Vec<String> {
    let none = || NONE.to_owned();
    let name = format!("<b>{}</b>", escaped(&lane.worker_id));
    let Some(attempt) = &lane.attempt else {
        let reason = lane.reason.as_deref().unwrap_or_default();
        let mut row = vec![name, foreign(reason), phase(state_word(lane.state))];
        row.resize_with(10 + usize::from(controls), none);
        if reason.is_empty() {
            row[1] = none();
        }
        return row;
    };
    let known = |value: Option<String>| escaped(value.as_deref().unwrap_or("?"));
    let mut row = vec![
        name,
        format!(
            "{} {}",
            issue_link(&attempt.issue_id),
            foreign(&attempt.title)
        ),
        phase(attempt.phase.word()),
        escaped(&time_of(attempt)),
        foreign(&last_event(attempt)),
        attempt.number.to_string(),
        known(attempt.calls.map(|calls| calls.to_string())),
        known(attempt.used.cost_nano_usd.map(money)),
        known(attempt.used.tokens.map(tokens)),
        brief_ms(attempt.elapsed_ms),
    ];
    if controls {
        let id = query_value(&attempt.issue_id);
        row.push(format!(
            "<a class=\"button\" id=\"cancel-{id}\" href=\"/control/cancel?issue={id}\" \
            aria-label=\"Cancel the attempt of {}\">Cancel…</a>",
            escaped(&attempt.issue_id)
        ));
    }
    row
}

fn phase(word: &str) -> String {
    format!("<span class=\"phase\">{}</span>", escaped(word))
}

fn queue(overview: &Overview<'_>) -> String {
    let mut text = "<h2>Issues</h2>\n".to_owned();
    let Some(queue) = &overview.status.queue else {
        text.push_str("<p class=\"empty\">The issues are not counted yet.</p>\n");
        return text;
    };
    if queue.total == 0 {
        text.push_str(
            "<p class=\"empty\">The issue store has no issues. <code>premath issue add</code> files \
             one.</p>\n",
        );
        return text;
    }
    text.push_str("<ul class=\"parts\">\n");
    for part in queue_parts(queue, overview.viewer) {
        let _ = writeln!(text, "<li>{}</li>", escaped(&part));
    }
    text.push_str("</ul>\n");
    if !queue.blockers.is_empty() {
        let blockers = queue.blockers.iter();
        let blockers: Vec<String> = blockers
            .map(|blocker| format!("{} holds {}", issue_link(&blocker.issue_id), blocker.holds))
            .collect();
        let _ = writeln!(text, "<p>Held back most: {}</p>", blockers.join(", "));
    }
    text
}

fn outcomes(overview: &Overview<'_>) -> String {
    let mut text = "<h2>Ended last</h2>\n".to_owned();
    let batches = overview.status.batches.iter();
    let outcomes = batches.flat_map(|batch| batch.outcomes.iter().take(OUTCOMES_SHOWN));
    let outcomes: Vec<_> = outcomes.collect();
    if outcomes.is_empty() {
        text.push_str("<p class=\"empty\">No attempt has ended yet.</p>\n");
        return text;
    }
    let heads = [
        ("Ended", false),
        ("Issue", false),
        ("Outcome", false),
        ("Lane", false),
        ("Took", true),
        ("Try", true),
    ];
    let rows: Vec<Vec<String>> = outcomes
        .into_iter()
        .map(|outcome| {
            let word = match outcome.closed {
                true => "<span class=\"state good\">closed</span>",
                false => "<span class=\"state bad\">not closed</span>",
            };
            // It says more than the word where more happened.
            let ending = match outcome.ending.as_str() {
                "closed" => String::new(),
                ending => format!(" {}", foreign(ending)),
            };
            let class = match &outcome.failure_class {
                Some(class) => format!(
                    " <a href=\"/log?class={}\"><code>{}</code></a>",
                    query_value(class),
                    escaped(class)
                ),
                None => String::new(),
            };
            vec![
                escaped(&overview.viewer.clock(outcome.at.time())),
                format!(
                    "{} {}",
                    issue_link(&outcome.issue_id),
                    foreign(&outcome.title)
                ),
                format!("{word}{ending}{class}"),
                escaped(&outcome.worker_id),
                brief_ms(outcome.duration_ms),
                outcome.attempt.to_string(),
            ]
        })
        .collect();
    table("Attempts that ended last", &heads, &rows, &mut text);
    text
}
