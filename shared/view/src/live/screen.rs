//! The first screen: the batch, its lanes, the attempts that ended last.

use super::paint::Painter;
use super::selection::{Focus, Selection};
use crate::columns::flowed;
use crate::figures::{UNKNOWN, Viewer, brief_ms, money, tokens};
use crate::status::text::{
    TITLE_LEAST, attempts, attention, cost, head, lane_lines, outcome_lines, pace, pauses,
    queue_lines,
};
use crate::status::{BatchView, LaneView, StatusView};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// How wide the mark before a row of a table is.
const MARK: usize = 2;

/// How much of a lane's title is shown before figures are, on a wide terminal.
const TITLE_LEAST_WIDE: usize = 36;

/// The most lines of lanes to look at.
const ATTENTION_MAX: usize = 3;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    pub(super) status: &'a StatusView,
    pub(super) batch: Option<&'a BatchView>,
    pub(super) viewer: &'a Viewer,
}

/// Returns how many rows the foot has.
pub(super) const fn foot_height(height: u16) -> u16 {
    match height {
        0..=7 => 1,
        _ => 2,
    }
}

/// Returns the keys that are shown at the foot.
pub(super) const fn keys(is_stream: bool, is_help: bool, width: u16) -> &'static str {
    match (is_stream, is_help, width) {
        (_, true, _) => "? back  q back",
        (true, ..) => "q back  j/k scroll  f follow  / search  n next  g/G begin/end  ? keys",
        (false, false, 0..=39) => "q quit  ? keys",
        (false, false, 40..=117) => {
            "q quit  Enter stream  p pause  r resume  d drain  c cancel  o reopen  ? keys"
        }
        (false, false, _) => {
            "q quit  j/k select  Tab outcomes  Enter stream  p pause  r resume  d drain  c cancel  \
             +/- priority  o reopen  ? keys"
        }
    }
}

pub(super) fn paint(
    painter: &mut Painter<'_>,
    body: Rect,
    look: &Look<'_>,
    selection: &mut Selection,
) {
    let height = usize::from(body.height);
    let Some(batch) = look.batch else {
        return paint_none(painter, look);
    };
    let top = top_lines(look, batch, painter, height);
    let mut row = 0;
    for (line, style) in &top {
        if row < height {
            painter.line(row, line, *style);
        }
        row += 1;
    }
    let left = height.saturating_sub(row);
    let room = Room::of(batch, left);
    let focus = selection.focus(Some(batch));
    if batch.state.is_running() {
        row = paint_lanes(painter, row, batch, room, (focus, selection));
    } else {
        row = paint_next(painter, row, height, look);
    }
    paint_outcomes(painter, (row, height), look, batch, (focus, selection));
}

/// How many rows each table has, without its rule and its head.
#[derive(Clone, Copy, Debug)]
struct Room {
    lanes: usize,
    detail: usize,
}

impl Room {
    fn of(batch: &BatchView, left: usize) -> Self {
        let detail = match left {
            0..=9 => 0,
            _ => 1,
        };
        // A rule and a head for the lanes, a rule for the outcomes.
        let rows = left.saturating_sub(3 + detail);
        let outcomes = batch.outcomes.len().max(1);
        let least = outcomes.min((rows / 3).max(1));
        Self {
            lanes: batch.lanes.len().min(rows.saturating_sub(least)).max(1),
            detail,
        }
    }
}

/// Returns the lines about the batch as a whole, as many as the height allows.
fn top_lines(
    look: &Look<'_>,
    batch: &BatchView,
    painter: &Painter<'_>,
    height: usize,
) -> Vec<(String, Style)> {
    let (viewer, styles) = (look.viewer, painter.styles);
    let mut lines: Vec<(String, Style)> = Vec::new();
    let mut put = |of: Vec<String>, style: Style| {
        lines.extend(of.into_iter().map(|line| (line, style)));
    };
    put(head(batch, viewer), styles.strong);
    let others = look.status.batches.len();
    if others > 1 {
        let words = format!("          {others} batches run; b shows the next one");
        put(vec![words], styles.warn);
    }
    put(pauses(batch, viewer), styles.warn);
    let mut worries = attention(batch);
    if worries.len() > ATTENTION_MAX {
        let more = worries.len() - ATTENTION_MAX + 1;
        worries.truncate(ATTENTION_MAX - 1);
        worries.push(format!("LOOK      {more} more lanes"));
    }
    put(worries, styles.warn);
    if height >= 8
        && let Some(queue) = batch.queue.as_ref().or(look.status.queue.as_ref())
    {
        put(queue_lines(queue, viewer), styles.plain);
    }
    if height >= 10 {
        put(pace(batch, viewer), styles.plain);
        put(vec![cost(batch)], styles.plain);
    }
    if height >= 20 {
        put(attempts(batch, viewer), styles.plain);
    }
    // Half of the rows are the tables'.
    lines.truncate((height / 2).max(1));
    lines
}

fn paint_none(painter: &mut Painter<'_>, look: &Look<'_>) {
    let styles = painter.styles;
    painter.line(0, "no batch is running, and none ran before", styles.strong);
    let mut lines = Vec::new();
    if let Some(queue) = &look.status.queue {
        lines.extend(queue_lines(queue, look.viewer));
    }
    lines.push(String::new());
    lines.push(START.to_owned());
    for (line, row) in lines.iter().zip(2..) {
        painter.line(row, line, styles.plain);
    }
}

/// How a batch is started.
const START: &str = "start one: harness-coordinator   (see first: premath plan)";

/// Says where no batch runs what to do next.
fn paint_next(painter: &mut Painter<'_>, row: usize, height: usize, look: &Look<'_>) -> usize {
    let words = [
        "no batch is running; this is the last one",
        START,
        "its report: premath report",
    ];
    let styles = painter.styles;
    let mut row = row;
    for (line, style) in words.iter().zip([styles.warn, styles.plain, styles.plain]) {
        let spare = usize::from(look.status.running);
        if row + 2 + spare < height {
            painter.line(row, line, style);
            row += 1;
        }
    }
    row
}

/// Returns the first row of a table that is shown, so that the selected one is in
/// sight.
fn first(selected: usize, count: usize, room: usize) -> usize {
    let last = count.saturating_sub(room);
    selected.saturating_sub(room / 2).min(last)
}

/// Returns which rows are shown, where those are not all.
fn range(first: usize, room: usize, count: usize) -> String {
    match count > room {
        true => format!(", {} to {} are shown", first + 1, (first + room).min(count)),
        false => String::new(),
    }
}

fn paint_lanes(
    painter: &mut Painter<'_>,
    mut row: usize,
    batch: &BatchView,
    room: Room,
    (focus, selection): (Focus, &Selection),
) -> usize {
    let (count, is_focus) = (batch.lanes.len(), focus == Focus::Lanes);
    let selected = selection.lane_at(batch);
    let from = first(selected, count, room.lanes);
    let busy = batch.lanes.iter().filter(|lane| lane.attempt.is_some());
    let title = format!(
        "lanes: {} of {count} at work{}",
        busy.count(),
        range(from, room.lanes, count)
    );
    painter.rule(row, &title, is_focus);
    row += 1;
    if count == 0 {
        painter.line(row, "  the lanes are being made", painter.styles.plain);
        return row + 1;
    }
    let width = painter.width().saturating_sub(MARK);
    let title_least = match width {
        0..100 => TITLE_LEAST,
        _ => TITLE_LEAST_WIDE,
    };
    let table = lane_lines(&batch.lanes, width, title_least);
    let style = painter.styles.quiet;
    painter.line(row, &format!("  {}", table[0]), style);
    row += 1;
    for (index, line) in table.iter().skip(1).enumerate().skip(from).take(room.lanes) {
        let is_selected = is_focus && index == selected;
        put_row(painter, row, line, is_selected, painter.styles.plain);
        row += 1;
    }
    if let Some(lane) = batch.lanes.get(selected).filter(|_| room.detail > 0) {
        let line = detail(lane, painter.width().saturating_sub(MARK));
        painter.line(row, &format!("  {line}"), painter.styles.quiet);
        row += 1;
    }
    row
}

/// Writes a row of a table with its mark.
fn put_row(painter: &mut Painter<'_>, row: usize, line: &str, is_selected: bool, style: Style) {
    match is_selected {
        true => {
            let style = painter.styles.selected;
            painter.line(row, &format!("> {line}"), style);
            painter.mark(row, 0, painter.width(), style);
        }
        false => painter.line(row, &format!("  {line}"), style),
    }
}

/// Returns the figures of a lane that its row may have no room for.
fn detail(lane: &LaneView, width: usize) -> String {
    let Some(attempt) = &lane.attempt else {
        return format!("{}: {}", lane.worker_id, lane.worktree);
    };
    let count = |known: Option<String>, unit: &str| match known {
        Some(known) => format!("{known} {unit}"),
        None => format!("{unit} {UNKNOWN}"),
    };
    let mut parts = vec![
        count(attempt.calls.map(|calls| calls.to_string()), "calls"),
        count(attempt.used.tokens.map(tokens), "tokens"),
        count(attempt.used.cost_nano_usd.map(money), "USD"),
        format!(
            "lease {}/{}",
            brief_ms(attempt.lease_age_ms),
            brief_ms(attempt.lease_ttl_ms)
        ),
        format!("{} in all", brief_ms(attempt.elapsed_ms)),
        format!("attempt {}", attempt.number),
    ];
    if !lane.worktree.is_empty() {
        parts.push(lane.worktree.clone());
    }
    let mark = format!("{}: ", attempt.issue_id);
    let lines = flowed(&mark, &parts, width);
    lines[0].trim_end_matches(',').to_owned()
}

fn paint_outcomes(
    painter: &mut Painter<'_>,
    (mut row, height): (usize, usize),
    look: &Look<'_>,
    batch: &BatchView,
    (focus, selection): (Focus, &Selection),
) {
    if row + 2 > height {
        return;
    }
    let count = batch.outcomes.len();
    let is_focus = focus == Focus::Outcomes;
    let room = height - row - 1;
    let selected = selection.outcome_at(batch);
    let from = match is_focus {
        true => first(selected, count, room),
        false => 0,
    };
    let title = match count {
        0 => "ended last".to_owned(),
        _ => format!("ended last: {count} attempts{}", range(from, room, count)),
    };
    painter.rule(row, &title, is_focus);
    row += 1;
    if count == 0 {
        painter.line(row, "  no attempt has ended yet", painter.styles.plain);
        return;
    }
    let viewer = Viewer {
        width: painter.width().saturating_sub(MARK),
        ..look.viewer.clone()
    };
    let table = outcome_lines(&batch.outcomes, &viewer, count);
    let rows = table.iter().skip(1).zip(&batch.outcomes).enumerate();
    for (index, (line, outcome)) in rows.skip(from).take(room) {
        let style = match outcome.closed {
            true => painter.styles.good,
            false => painter.styles.bad,
        };
        put_row(painter, row, line, is_focus && index == selected, style);
        row += 1;
    }
}
