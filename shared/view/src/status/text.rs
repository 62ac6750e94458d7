//! The status as lines for a person.

use super::{AttemptView, BatchState, BatchView, LaneView, StatusView};
use crate::columns::{self, Column, fitted, flowed};
use crate::figures::{NONE, UNKNOWN, Viewer, brief_ms, money, tokens};
use premath_kernel::json::id::WorkerName;
use premath_kernel::json::plain::{counted, plain};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::live::{
    AgentState, LiveLaneState, LiveOutcome, LiveQueue, PauseKind, StepPhase,
};

/// How many ended attempts are shown.
const OUTCOMES_SHOWN: usize = 6;

/// How much of the words of an outcome is shown, on a narrow and on a wide terminal.
const OUTCOME_WIDTH: usize = 36;
const OUTCOME_WIDTH_WIDE: usize = 50;

/// How much of a lane's title is shown before figures are.
pub(crate) const TITLE_LEAST: usize = 18;

/// Figures older than this are marked as old, in milliseconds.
const OLD_MS: u64 = 15_000;

/// Returns the status as lines of at most the viewer's width.
pub fn lines(status: &StatusView, viewer: &Viewer) -> Vec<String> {
    let mut lines = Vec::new();
    if !status.running {
        lines.push("no batch is running".to_owned());
    }
    for batch in &status.batches {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        // After its end others may have changed the issues.
        let is_old = !batch.state.is_running() && status.queue.is_some();
        lines.extend(batch_lines(batch, viewer, is_old));
    }
    let is_shown = |batch: &BatchView| batch.state.is_running() && batch.queue.is_some();
    if let Some(queue) = &status.queue
        && !status.batches.iter().any(is_shown)
    {
        lines.extend(queue_lines(queue, viewer));
    }
    lines
        .iter()
        .map(|line| fitted(line, viewer.width))
        .collect()
}

fn batch_lines(batch: &BatchView, viewer: &Viewer, is_old: bool) -> Vec<String> {
    let mut lines = head(batch, viewer);
    if let Some(queue) = batch.queue.as_ref().filter(|_| !is_old) {
        lines.extend(queue_lines(queue, viewer));
    }
    lines.extend(pace(batch, viewer));
    lines.extend(attempts(batch, viewer));
    lines.push(cost(batch));
    lines.extend(pauses(batch, viewer));
    lines.extend(attention(batch));
    if batch.state.is_running() && !batch.lanes.is_empty() {
        lines.push(String::new());
        lines.extend(lane_lines(&batch.lanes, viewer.width, TITLE_LEAST));
    }
    if !batch.outcomes.is_empty() {
        lines.push(String::new());
        lines.extend(outcome_lines(&batch.outcomes, viewer, OUTCOMES_SHOWN));
    }
    lines
}

/// Names a line, so that what follows begins at the same place in all of them.
fn named(name: &str) -> String {
    format!("{name:10}")
}

/// Says what a batch does and for how long.
pub(crate) fn state_text(batch: &BatchView, viewer: &Viewer) -> String {
    let since = viewer.clock(batch.started_at.time());
    match (batch.state, &batch.ended_at) {
        (BatchState::Ended, Some(at)) => format!(
            "ended {} after {}, exit code {}",
            viewer.when(at.time()),
            brief_ms(batch.elapsed_ms),
            batch
                .exit_code
                .map_or(UNKNOWN.to_owned(), |code| code.to_string())
        ),
        (BatchState::Cut, _) => format!(
            "{}; it ran for {} from {since}",
            BatchState::Cut.word(),
            brief_ms(batch.elapsed_ms)
        ),
        (state, _) => format!(
            "{} for {} since {since}",
            state.word(),
            brief_ms(batch.elapsed_ms)
        ),
    }
}

pub(crate) fn head(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    let mut lines = vec![format!(
        "{}{}, {}",
        named("batch"),
        plain(&batch.batch_id),
        state_text(batch, viewer)
    )];
    if let Some(at) = batch.ends_at.as_ref().filter(|_| batch.state.is_running()) {
        lines.push(format!(
            "{}no new work from {}",
            named(""),
            viewer.when(at.time())
        ));
    }
    if batch.state == BatchState::Cut {
        let hint = "`harness-coordinator` with the same settings continues it";
        lines.push(format!("{}{hint}", named("")));
    }
    lines.extend(age_text(batch).map(|age| format!("{}{age}", named(""))));
    lines
}

/// Says how old the figures of a running batch are; `None` where they are not old.
pub(crate) fn age_text(batch: &BatchView) -> Option<String> {
    let is_old = batch.state.is_running() && batch.age_ms > OLD_MS;
    is_old.then(|| format!("these figures are {} old", brief_ms(batch.age_ms)))
}

pub(crate) fn queue_lines(queue: &LiveQueue, viewer: &Viewer) -> Vec<String> {
    let parts = queue_parts(queue, viewer);
    let mut lines = flowed(&named("issues"), &parts, viewer.width);
    let blockers: Vec<String> = queue
        .blockers
        .iter()
        .map(|blocker| format!("{} ({})", blocker.issue_id, blocker.holds))
        .collect();
    if !blockers.is_empty() {
        let mark = named("held by");
        lines.extend(flowed(&mark, &blockers, viewer.width));
    }
    lines
}

/// Says how many issues there are of each kind that there is.
pub(crate) fn queue_parts(queue: &LiveQueue, viewer: &Viewer) -> Vec<String> {
    let next = queue.next_retry_at.as_ref();
    let next = next.map_or(String::new(), |at| {
        format!(", next {}", viewer.when(at.time()))
    });
    let stuck = match queue.stuck {
        0 => String::new(),
        stuck => format!(" ({stuck} behind issues that no lane closes)"),
    };
    let parts = [
        (queue.closed, format!("{} closed", queue.closed)),
        (
            queue.in_progress,
            format!("{} in progress", queue.in_progress),
        ),
        (1, format!("{} ready", queue.ready)),
        (queue.retrying, format!("{} to retry{next}", queue.retrying)),
        (
            queue.waiting,
            format!("{} waiting for others{stuck}", queue.waiting),
        ),
        (queue.blocked, format!("{} blocked", queue.blocked)),
        (
            queue.left_out,
            format!("{} not tried again", queue.left_out),
        ),
        (queue.set_aside, format!("{} set aside", queue.set_aside)),
        (
            queue.not_selected,
            format!("{} not selected", queue.not_selected),
        ),
        (
            queue.assigned,
            format!("{} assigned to others", queue.assigned),
        ),
        (1, format!("{} in all", queue.total)),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(_, text)| text).collect()
}

pub(crate) fn pace(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    flowed(&named("pace"), &pace_parts(batch, viewer), viewer.width)
}

/// Says how fast a batch is, and when it will be done.
pub(crate) fn pace_parts(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    let estimate = &batch.estimate;
    let rate = match estimate.closed_per_hour {
        Some(rate) => format!("{rate:.1} closed an hour"),
        None => format!("closed an hour {UNKNOWN}"),
    };
    if !batch.state.is_running() {
        return vec![rate];
    }
    let left = match estimate.remaining {
        Some(left) => format!("{} left", counted(left, "issue")),
        None => format!("issues left {UNKNOWN}"),
    };
    let done = match &estimate.done_at {
        Some(at) => format!("done about {}", viewer.when(at.time())),
        None => format!("end {UNKNOWN}"),
    };
    vec![rate, left, done]
}

pub(crate) fn attempts(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    flowed(&named("attempts"), &attempt_parts(batch), viewer.width)
}

/// Says how the attempts of a batch ended.
pub(crate) fn attempt_parts(batch: &BatchView) -> Vec<String> {
    let (totals, closes) = (&batch.totals, batch.totals.closes);
    let counts = [
        (1, format!("{} ended", totals.attempts)),
        (
            closes.first_pass,
            format!("{} closed at the first pass", closes.first_pass),
        ),
        (
            closes.after_repair,
            format!("{} after repair", closes.after_repair),
        ),
        (
            closes.after_retry,
            format!("{} after retry", closes.after_retry),
        ),
        (
            totals.given_up,
            format!("{} given up", counted(totals.given_up, "issue")),
        ),
        (1, counted(totals.repair_rounds, "repair round")),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(_, text)| text).collect();
    let denied: u64 = totals.denials.values().sum();
    let rules: Vec<String> = totals
        .denials
        .iter()
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
    parts.push(match rules.is_empty() {
        true => "0 calls denied".to_owned(),
        false => format!("{} denied ({})", counted(denied, "call"), rules.join(", ")),
    });
    parts
}

pub(crate) fn cost(batch: &BatchView) -> String {
    format!("{}{}", named("cost"), cost_parts(batch).join(", "))
}

/// Says what a batch cost, in money and in tokens.
pub(crate) fn cost_parts(batch: &BatchView) -> [String; 2] {
    let of = |used: Option<String>, bound: Option<String>, unit: &str| match (used, bound) {
        (Some(used), Some(bound)) => format!("{used} of {bound} {unit}"),
        (Some(used), None) => format!("{used} {unit}"),
        (None, Some(bound)) => format!("{UNKNOWN} of {bound} {unit}"),
        (None, None) => format!("{unit} {UNKNOWN}"),
    };
    let (used, budget) = (batch.used, batch.budget);
    let cost = of(
        used.cost_nano_usd.map(money),
        budget.cost_nano_usd.map(money),
        "USD",
    );
    let count = of(used.tokens.map(tokens), budget.tokens.map(tokens), "tokens");
    [cost, count]
}

pub(crate) fn pauses(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    let texts = pause_texts(batch, viewer).into_iter();
    texts
        .map(|text| format!("{}{text}", named("PAUSED")))
        .collect()
}

/// Says why lanes wait, a line each.
pub(crate) fn pause_texts(batch: &BatchView, viewer: &Viewer) -> Vec<String> {
    let until = |until: &Option<Stamp>| match until {
        Some(at) => format!("until {}", viewer.when(at.time())),
        None => format!("until {UNKNOWN}"),
    };
    let pauses = batch.pauses.iter().map(|pause| {
        let (name, until) = (plain(&pause.name), until(&pause.until));
        match pause.kind {
            PauseKind::Provider => format!("provider {name} is parked {until}"),
            PauseKind::Breaker => format!("issues fail alike ({name}); dispatch pauses {until}"),
            PauseKind::Room => format!("too little free {name}; no new attempts start"),
            PauseKind::Window => {
                let at = until.trim_start_matches("until ");
                format!("outside of {name}; attempts start again at {at}")
            }
            PauseKind::Operator => {
                format!("by {name}; no new attempts start until `premath batch resume`")
            }
        }
    });
    pauses.collect()
}

/// What a person should look at.
pub(crate) fn attention(batch: &BatchView) -> Vec<String> {
    let found = worries(batch).into_iter();
    found
        .map(|(lane, text)| format!("{}{} {}", named("LOOK"), plain(lane), plain(&text)))
        .collect()
}

/// Returns the lanes that a person should look at, each with the reason: those
/// that are lost, silent, late or about to lose their lease.
pub(crate) fn worries(batch: &BatchView) -> Vec<(&WorkerName, String)> {
    if !batch.state.is_running() {
        return Vec::new();
    }
    let lanes = batch.lanes.iter();
    let found = lanes.filter_map(|lane| {
        let text = match (lane.state, &lane.reason, &lane.attempt) {
            (LiveLaneState::Disabled, reason, _) => {
                format!("is disabled: {}", reason.as_deref().unwrap_or(UNKNOWN))
            }
            (_, _, Some(attempt)) => worry(attempt)?,
            _ => return None,
        };
        Some((&lane.worker_id, text))
    });
    found.collect()
}

fn worry(attempt: &AttemptView) -> Option<String> {
    let issue = &attempt.issue_id;
    let over_half = |part: u64, whole: u64| part.saturating_mul(2) > whole;
    if let (Some(silent), Some(limit)) = (attempt.silent_ms, attempt.silence_limit_ms)
        && matches!(attempt.phase, StepPhase::Working | StepPhase::Repairing)
        && over_half(silent, limit)
    {
        let (silent, limit) = (brief_ms(silent), brief_ms(limit));
        return Some(format!(
            "on {issue} is silent for {silent}; it is ended at {limit}"
        ));
    }
    if over_half(attempt.lease_age_ms, attempt.lease_ttl_ms) {
        let (age, ttl) = (
            brief_ms(attempt.lease_age_ms),
            brief_ms(attempt.lease_ttl_ms),
        );
        return Some(format!(
            "on {issue} renewed its lease {age} ago; it lives {ttl}"
        ));
    }
    if let (Some(ran), Some(limit)) = (attempt.command_ms, attempt.limit_ms)
        && ran.saturating_mul(10) > limit.saturating_mul(9)
    {
        let (ran, limit) = (brief_ms(ran), brief_ms(limit));
        return Some(format!("on {issue} is near its limit: {ran} of {limit}"));
    }
    None
}

/// Returns the lanes as a table, of which the first line is its head.
pub(crate) fn lane_lines(lanes: &[LaneView], width: usize, title_least: usize) -> Vec<String> {
    let columns = [
        Column::text("LANE"),
        Column::text("ISSUE"),
        Column::text("PHASE"),
        Column::text("TIME"),
        Column::text("LAST EVENT"),
        Column::figure("TRY"),
        Column::figure("CALLS"),
        Column::figure("USD"),
        Column::figure("TOKENS"),
        Column::figure("LEASE"),
        Column::figure("TOTAL"),
        Column::text("TITLE"),
    ];
    let rows: Vec<Vec<String>> = lanes.iter().map(lane_row).collect();
    columns::lines(&columns, &rows, width, title_least)
}

/// Returns what a lane does in a word.
pub(crate) const fn state_word(state: LiveLaneState) -> &'static str {
    match state {
        LiveLaneState::Booting => "starting",
        LiveLaneState::Idle => "idle",
        LiveLaneState::Working => "working",
        LiveLaneState::Disabled => "disabled",
        LiveLaneState::Done => "done",
    }
}

fn lane_row(lane: &LaneView) -> Vec<String> {
    let none = || NONE.to_owned();
    let Some(attempt) = &lane.attempt else {
        let word = state_word(lane.state).to_owned();
        let mut row = vec![lane.worker_id.to_string(), none(), word];
        row.resize_with(11, none);
        row.push(lane.reason.clone().unwrap_or_default());
        return row;
    };
    let or_unknown = |known: Option<String>| known.unwrap_or_else(|| "?".to_owned());
    vec![
        lane.worker_id.to_string(),
        attempt.issue_id.to_string(),
        attempt.phase.word().to_owned(),
        time_of(attempt),
        last_event(attempt),
        attempt.number.to_string(),
        or_unknown(attempt.calls.map(|calls| calls.to_string())),
        or_unknown(attempt.used.cost_nano_usd.map(money)),
        or_unknown(attempt.used.tokens.map(tokens)),
        format!(
            "{}/{}",
            brief_ms(attempt.lease_age_ms),
            brief_ms(attempt.lease_ttl_ms)
        ),
        brief_ms(attempt.elapsed_ms),
        attempt.title.clone(),
    ]
}

/// How long the command runs against its limit; between commands, how long the
/// phase lasts.
pub(crate) fn time_of(attempt: &AttemptView) -> String {
    match (attempt.command_ms, attempt.limit_ms) {
        (Some(ran), Some(limit)) => format!("{}/{}", brief_ms(ran), brief_ms(limit)),
        _ => brief_ms(attempt.phase_ms),
    }
}

pub(crate) fn last_event(attempt: &AttemptView) -> String {
    let is_work = matches!(attempt.phase, StepPhase::Working | StepPhase::Repairing);
    let Some(state) = attempt.agent.filter(|_| is_work) else {
        return attempt.command.clone().unwrap_or_else(|| NONE.to_owned());
    };
    let tool = match (&attempt.last_tool, state) {
        (Some(tool), AgentState::Calling) => fitted(tool, 12),
        (_, state) => state.word().to_owned(),
    };
    match attempt.silent_ms {
        Some(silent) => format!("{tool} {} ago", brief_ms(silent)),
        None => tool,
    }
}

/// Returns the attempts that ended last, `most` of them, as a table, of which the
/// first line is its head.
pub(crate) fn outcome_lines(outcomes: &[LiveOutcome], viewer: &Viewer, most: usize) -> Vec<String> {
    let columns = [
        Column::text("ENDED"),
        Column::text("ISSUE"),
        Column::text("OUTCOME"),
        Column::text("TOOK"),
        Column::figure("TRY"),
        Column::text("TITLE"),
    ];
    let most_words = match viewer.width {
        0..100 => OUTCOME_WIDTH,
        _ => OUTCOME_WIDTH_WIDE,
    };
    let rows: Vec<Vec<String>> = outcomes
        .iter()
        .take(most)
        .map(|outcome| {
            vec![
                viewer.clock(outcome.at.time()),
                outcome.issue_id.to_string(),
                fitted(&words(outcome, viewer), most_words),
                brief_ms(outcome.duration_ms),
                outcome.attempt.to_string(),
                outcome.title.clone(),
            ]
        })
        .collect();
    columns::lines(&columns, &rows, viewer.width, TITLE_LEAST)
}

/// Returns how an attempt ended, with its class. A time is that of the wall clock.
fn words(outcome: &LiveOutcome, viewer: &Viewer) -> String {
    let again = outcome.ending.strip_prefix("to retry at ");
    let ending = match again.and_then(|at| at.parse().ok()) {
        Some(at) => format!("retry at {}", viewer.clock(at)),
        None => outcome.ending.clone(),
    };
    match &outcome.failure_class {
        Some(class) => format!("{ending}: {class}"),
        None => ending,
    }
}
