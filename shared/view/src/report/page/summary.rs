//! What a report says first: its batches and its counts.

use super::{Fact, LISTED, at, listed};
use crate::figures::brief_ms;
use crate::report::{AttemptOutcome, Reader, ReportView, Totals};
use premath_kernel::json::plain::counted;

pub(super) fn summary(report: &ReportView, reader: &Reader) -> Vec<Fact> {
    let totals = &report.totals;
    let mut facts = Vec::new();
    for batch in &report.batches {
        let end = match (&batch.ended_at, &batch.result) {
            (Some(end), Some(result)) => format!("ended {} ({result})", at(end.time(), reader)),
            _ => "not ended".to_owned(),
        };
        let resumed = match batch.resumptions {
            0 => String::new(),
            count => format!(", taken up again {}", counted(u64::from(count), "time")),
        };
        facts.push((
            "batch",
            format!(
                "{}, began {}, {end}, {}{resumed}, rows {}-{}",
                batch.batch_id,
                at(batch.started_at.time(), reader),
                brief_ms(batch.duration_ms),
                batch.first_row,
                batch.last_row
            ),
        ));
        facts.extend(batch.notes.clone().map(|notes| ("attention", notes)));
    }
    if let Some(tip) = &report.failed_tip {
        let advice = "find the commit that broke it before you merge";
        facts.push(("attention", format!("{tip}; {advice}")));
    }
    facts.extend(later(report));
    facts.extend(disabled(report));
    facts.push(("issues", issue_counts(totals)));
    facts.push(("attempts", attempt_counts(totals)));
    facts.push(("used", totals.usage.sentence()));
    if totals.usage.is_partial() {
        let text = "a sum with + has no part of the attempts that reported none";
        facts.push(("", text.to_owned()));
    }
    facts.push(("work", work_counts(totals)));
    facts.push(("proof", format!("rows are lines of {}", report.run_log)));
    if !report.unreadable_rows.is_empty() {
        let rows = listed(report.unreadable_rows.iter());
        facts.push(("warning", format!("unreadable rows are left out: {rows}")));
    }
    facts
}

/// Says what came after the batches of the report.
fn later(report: &ReportView) -> Vec<Fact> {
    let mut facts = Vec::new();
    if report.later_empty_batches > 0 {
        let text = match report.later_empty_batches {
            1 => "1 later batch found nothing to do".to_owned(),
            count => format!("{count} later batches found nothing to do"),
        };
        facts.push(("", text));
    }
    for batch in &report.later_batches {
        let how = match batch.result.as_deref() {
            Some("refused") => "was refused before it began".to_owned(),
            Some(result) => format!("ended without an attempt ({result})"),
            None => "has ended no attempt yet".to_owned(),
        };
        let text = format!("{} {how}, row {}", batch.batch_id, batch.last_row);
        facts.push(("later", text));
        let lost = batch.lost_lanes.iter().take(LISTED);
        facts.extend(lost.map(|lane| ("", format!("disabled: {lane}"))));
        facts.extend(batch.notes.clone().map(|notes| ("", notes)));
    }
    facts
}

/// Says which lanes were disabled, and why: the table of events may cut that.
fn disabled(report: &ReportView) -> Vec<Fact> {
    let lanes: Vec<_> = report.lost_lanes().collect();
    let shown = lanes.iter().take(LISTED);
    let mut facts: Vec<Fact> = shown
        .map(|event| ("disabled", format!("{}, row {}", event.text, event.row)))
        .collect();
    if lanes.len() > LISTED {
        let text = format!(
            "and {} more lanes, which are among the events",
            lanes.len() - LISTED
        );
        facts.push(("", text));
    }
    facts
}

fn issue_counts(totals: &Totals) -> String {
    let mut text = format!(
        "{} worked on: {} closed, {} not closed",
        totals.issues, totals.closed, totals.failed
    );
    let outcomes = totals.failed_by_outcome.iter();
    let outcomes: Vec<String> = outcomes
        .map(
            |(word, count)| match word == AttemptOutcome::Stopped.word() {
                true => format!("{count} {}", AttemptOutcome::Stopped.phrase()),
                false => format!("{count} {word}"),
            },
        )
        .collect();
    if !outcomes.is_empty() {
        text.push_str(&format!(" ({})", outcomes.join(", ")));
    }
    text
}

fn attempt_counts(totals: &Totals) -> String {
    let mut text = format!(
        "{} in {} of work; {} closed at first, {} after repair, {} after retry",
        totals.attempts,
        brief_ms(totals.duration_ms),
        totals.closes.first_pass,
        totals.closes.after_repair,
        totals.closes.after_retry
    );
    if totals.cut_attempts > 0 {
        text.push_str(&format!("; {} more cut short", totals.cut_attempts));
    }
    text
}

fn work_counts(totals: &Totals) -> String {
    let parts = [
        (true, format!("{} landed", totals.landed)),
        (
            totals.unchanged > 0,
            format!("{} closed without changes", totals.unchanged),
        ),
        (true, format!("{} salvaged", totals.salvaged)),
        (
            true,
            format!("{} retried", counted(totals.retried, "issue")),
        ),
        (
            true,
            format!(
                "{} repaired in {}",
                counted(totals.repaired, "issue"),
                counted(totals.repair_rounds, "round")
            ),
        ),
        (
            totals.flaky > 0,
            format!("{} with flaky verification", totals.flaky),
        ),
        (true, format!("{} denied", counted(totals.denials, "call"))),
    ];
    let parts = parts.into_iter().filter(|(is_shown, _)| *is_shown);
    let parts: Vec<String> = parts.map(|(_, text)| text).collect();
    parts.join(", ")
}
