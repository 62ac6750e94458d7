//! What the lanes of a batch did over time, as an SVG in a page.

use super::page::at;
use super::{
    AttemptOutcome, AttemptView, Reader, ReportView, ReportedBatch, ReportedIssue, STEPS_LISTED,
};
use crate::figures::brief_ms;
use crate::html::escaped;
use jiff::Timestamp;
use premath_kernel::issue::natural;
use premath_kernel::json::id::{BatchId, WorkerName};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The width of the drawing, in units of its own.
const WIDTH: u64 = 1_000;
/// Where the bars begin: to the left are the names of lanes.
const LEFT: u64 = 110;
/// The height of a lane.
const LANE: u64 = 22;
/// The height of the axis.
const AXIS: u64 = 24;
/// The parts of the axis.
const TICKS: u64 = 5;
/// The most attempts of a batch that are drawn.
const DRAWN: usize = 4_000;
/// The longest name of a lane that has room.
const NAME: usize = 14;

/// The attempts of lanes, by lane.
type Lanes<'a> = BTreeMap<&'a WorkerName, Vec<(&'a ReportedIssue, &'a AttemptView)>>;

/// Draws the batches of a report, one below the other.
pub(super) fn timeline(report: &ReportView, reader: &Reader) -> String {
    let mut text = String::new();
    let issues = || report.failed.iter().chain(&report.closed);
    let mut by_batch = BTreeMap::<&BatchId, Vec<(&ReportedIssue, &AttemptView)>>::new();
    for (issue, step) in
        issues().flat_map(|issue| issue.steps.iter().map(move |step| (issue, step)))
    {
        if let Some(id) = &step.batch_id {
            by_batch.entry(id).or_default().push((issue, step));
        }
    }
    for batch in &report.batches {
        let of_batch = by_batch.remove(&batch.batch_id).unwrap_or_default();
        let mut lanes = Lanes::new();
        let mut left_out = 0_usize;
        for (count, (issue, step)) in of_batch.into_iter().enumerate() {
            match &step.worker_id {
                Some(worker) if count < DRAWN => {
                    lanes.entry(worker).or_default().push((issue, step));
                }
                Some(_) => left_out += 1,
                None => {}
            }
        }
        if !lanes.is_empty() {
            draw(batch, lanes, reader, &mut text);
        }
        if left_out > 0 {
            let _ = writeln!(text, "<p>{left_out} more attempts are not drawn.</p>");
        }
    }
    let earlier: u64 = issues().map(|issue| issue.earlier_steps).sum();
    if earlier > 0 {
        let _ = writeln!(
            text,
            "<p>Of an issue the latest {STEPS_LISTED} attempts are drawn; {earlier} earlier ones \
            are not.</p>"
        );
    }
    if !text.is_empty() {
        text.push_str(LEGEND);
    }
    text
}

const LEGEND: &str = "<p class=\"legend\"><span><i class=\"k closed\"></i>closed</span>\
<span><i class=\"k retry\"></i>to retry</span><span><i class=\"k failed\"></i>failed</span>\
<span><i class=\"k cut\"></i>cut short</span></p>\n";

/// A span of time on the axis.
struct Axis {
    begin: Timestamp,
    span_ms: u64,
}

impl Axis {
    fn x(&self, time: Timestamp) -> u64 {
        let passed = super::attempt::between_ms(self.begin, time).min(self.span_ms);
        LEFT + passed.saturating_mul(WIDTH - LEFT) / self.span_ms
    }
}

fn draw(batch: &ReportedBatch, lanes: Lanes<'_>, reader: &Reader, text: &mut String) {
    let axis = Axis {
        begin: batch.started_at.time(),
        span_ms: batch.duration_ms.max(1),
    };
    let mut lanes: Vec<_> = lanes.into_iter().collect();
    lanes.sort_by(|(a, _), (b, _)| natural::compare(a, b));
    let count: u64 = lanes.len().try_into().unwrap_or(u64::MAX);
    let height = count.saturating_mul(LANE) + AXIS;
    let name = escaped(&batch.batch_id);
    let _ = writeln!(
        text,
        "<div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"Timeline of batch \
        {name}\"><svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
        aria-label=\"What the lanes of batch {name} did over time\">"
    );
    for ((worker, steps), index) in lanes.iter().zip(0..) {
        lane(worker, steps, &axis, index * LANE, text);
    }
    ticks(&axis, count.saturating_mul(LANE), reader, text);
    text.push_str("</svg></div>\n");
}

fn lane(
    worker: &WorkerName,
    steps: &[(&ReportedIssue, &AttemptView)],
    axis: &Axis,
    top: u64,
    text: &mut String,
) {
    let name = crate::columns::fitted(worker.as_str(), NAME);
    let _ = writeln!(
        text,
        "<text x=\"0\" y=\"{}\">{}</text><line class=\"base\" x1=\"{LEFT}\" x2=\"{WIDTH}\" \
        y1=\"{y}\" y2=\"{y}\"/>",
        top + 15,
        escaped(&name),
        y = top + LANE - 1
    );
    for (issue, step) in steps {
        let end = step.finished_at.time();
        let from = axis.x(step.started_at.as_ref().map_or(end, |start| start.time()));
        let width = axis.x(end).saturating_sub(from).max(2);
        let title = issue.title.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "<rect class=\"{}\" x=\"{from}\" y=\"{}\" width=\"{width}\" height=\"{}\">\
            <title>{}</title></rect>",
            class(step.outcome),
            top + 3,
            LANE - 7,
            escaped(&format!(
                "{} {title}: {}, {}, row {}",
                issue.issue_id,
                step.outcome.phrase(),
                step.duration_ms.map_or_else(String::new, brief_ms),
                step.row
            ))
        );
    }
}

fn ticks(axis: &Axis, top: u64, reader: &Reader, text: &mut String) {
    for tick in 0..=TICKS {
        let passed = axis.span_ms / TICKS * tick;
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let time = jiff::SignedDuration::from_millis(passed);
        let Ok(time) = axis.begin.checked_add(time) else {
            return;
        };
        let x = LEFT + (WIDTH - LEFT) * tick / TICKS;
        let label = match tick {
            0 => at(time, reader),
            _ => time
                .to_zoned(reader.zone.clone())
                .strftime("%H:%M:%S")
                .to_string(),
        };
        let anchor = match tick {
            0 => "start",
            TICKS => "end",
            _ => "middle",
        };
        let _ = writeln!(
            text,
            "<line class=\"tick\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{top}\"/>\
            <text class=\"time\" x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            top + 16,
            escaped(&label)
        );
    }
}

/// Returns the class of a bar, which the style colours.
pub(super) const fn class(outcome: AttemptOutcome) -> &'static str {
    match outcome {
        AttemptOutcome::Closed => "closed",
        AttemptOutcome::Retry => "retry",
        AttemptOutcome::Interrupted | AttemptOutcome::UsageLimit => "cut",
        AttemptOutcome::Blocked
        | AttemptOutcome::FollowUp
        | AttemptOutcome::Stopped
        | AttemptOutcome::Failed => "failed",
    }
}
