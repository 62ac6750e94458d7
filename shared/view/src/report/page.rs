//! The content of a report in its order, without a medium: what every renderer
//! shows.

mod summary;

use super::{ChangeSize, NextCommand, Reader, ReportView, ReportedIssue, ReviewItem};
use crate::columns::{Column, fitted};
use crate::figures::{NONE, UNKNOWN, brief_ms};
use jiff::Timestamp;
use premath_kernel::json::id::IssueId;
use premath_kernel::json::plain::counted;
use premath_kernel::record::salvage::folders;
use summary::summary;

/// The widest title in a column that is not the last one.
const TITLE_MAX: usize = 40;

/// The most ids and rows that a cell lists.
const LISTED: usize = 8;

/// A part of a report. Its texts are as issues and agents wrote them: each renderer
/// escapes them for its medium.
#[derive(Debug)]
pub(super) enum Part {
    /// The head of a section.
    Heading(String),
    /// A sentence.
    Line(String),
    /// Facts with their names.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// The failure of an issue.
    Failure(Failure),
    /// Commands as they must be typed.
    Commands(Vec<NextCommand>),
    /// What the lanes did over time.
    Timeline,
}

/// A fact with its name.
pub(super) type Fact = (&'static str, String);

/// Rows of cells under heads; the last column takes what is left of a line.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Why an issue did not close.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) issue: String,
    pub(super) title: String,
    pub(super) facts: Vec<Fact>,
    pub(super) commands: Vec<NextCommand>,
}

/// Returns the title of a report.
pub(crate) fn title(report: &ReportView) -> String {
    let about = match report.batches.as_slice() {
        [one] => format!("batch {}", one.batch_id),
        many => {
            counted(many.len().try_into().unwrap_or(u64::MAX), "batch").replace("batchs", "batches")
        }
    };
    match &report.issue_id {
        Some(issue) => format!("Report on {issue}, {about}"),
        None => format!("Report on {about}"),
    }
}

/// Returns the parts of a report, in their order.
pub(super) fn parts(report: &ReportView, reader: &Reader) -> Vec<Part> {
    let mut parts = vec![Part::Facts(summary(report, reader))];
    failed(report, &mut parts);
    clusters(report, &mut parts);
    review(report, &mut parts);
    closed(report, &mut parts);
    agents(report, &mut parts);
    lanes(report, &mut parts);
    salvage(report, &mut parts);
    denials(report, &mut parts);
    events(report, reader, &mut parts);
    if !report.next.is_empty() {
        parts.push(Part::Heading("Next".to_owned()));
        parts.push(Part::Commands(report.next.clone()));
    }
    parts
}

/// Writes a time by the clock of the machine, with the day and the zone.
pub(super) fn at(time: Timestamp, reader: &Reader) -> String {
    let local = time.to_zoned(reader.zone.clone());
    local.strftime("%Y-%m-%d %H:%M %Z").to_string()
}

/// A column of text that comes where there is room.
const fn side(head: &'static str) -> Column {
    Column {
        head,
        is_needed: false,
        is_figure: false,
    }
}

/// A column of figures that is there at every width.
const fn needed_figure(head: &'static str) -> Column {
    Column {
        head,
        is_needed: true,
        is_figure: true,
    }
}

fn section(
    parts: &mut Vec<Part>,
    heading: String,
    none: &str,
    columns: &[Column],
    rows: Vec<Vec<String>>,
) {
    parts.push(Part::Heading(heading));
    parts.push(match rows.is_empty() {
        true => Part::Line(none.to_owned()),
        false => Part::Table(Table {
            columns: columns.to_vec(),
            rows,
        }),
    });
}

fn tries(issue: &ReportedIssue) -> String {
    match issue.attempts_in_all == issue.attempts {
        true => issue.attempts.to_string(),
        false => format!("{} of {}", issue.attempts, issue.attempts_in_all),
    }
}

fn title_of(title: Option<&String>) -> String {
    title.map_or_else(|| "(not in the issue store)".to_owned(), Clone::clone)
}

fn last_row(issue: &ReportedIssue) -> String {
    issue
        .steps
        .last()
        .map_or_else(String::new, |step| step.row.to_string())
}

fn failed(report: &ReportView, parts: &mut Vec<Part>) {
    const COLUMNS: [Column; 9] = [
        Column::text("ISSUE"),
        Column::text("OUTCOME"),
        Column::figure("TRIES"),
        Column::figure("TIME"),
        Column::figure("ROW"),
        Column::figure("TOKENS"),
        Column::figure("USD"),
        side("CLASS"),
        Column::text("TITLE"),
    ];
    let rows = report.failed.iter().map(|issue| {
        vec![
            issue.issue_id.to_string(),
            issue.outcome.phrase().to_owned(),
            tries(issue),
            brief_ms(issue.duration_ms),
            last_row(issue),
            issue.usage.tokens_cell(),
            issue.usage.cost_cell(),
            issue
                .failure_class
                .clone()
                .unwrap_or_else(|| NONE.to_owned()),
            title_of(issue.title.as_ref()),
        ]
    });
    let heading = format!("Failed ({})", report.failed.len());
    section(parts, heading, "No issue failed.", &COLUMNS, rows.collect());
    parts.extend(
        report
            .failed
            .iter()
            .map(|issue| Part::Failure(failure(issue))),
    );
}

fn failure(issue: &ReportedIssue) -> Failure {
    let class = issue.failure_class.as_deref().unwrap_or(UNKNOWN);
    let why = match issue.said.as_deref() {
        Some(said) if said.starts_with(class) => said.to_owned(),
        Some(said) => format!("{class}: {said}"),
        None => class.to_owned(),
    };
    let mut facts = vec![("why", why)];
    let last = issue.steps.last();
    if let Some(output) = last.and_then(|step| step.output.as_ref()) {
        facts.push(("output", output.clone()));
    }
    let rows = listed(issue.steps.iter().map(|step| step.row));
    let noun = if issue.steps.len() == 1 {
        "row"
    } else {
        "rows"
    };
    let earlier = match issue.earlier_steps {
        0 => String::new(),
        count => format!(", and {count} earlier"),
    };
    facts.push(("proof", format!("{noun} {rows}{earlier}")));
    let witnesses = last.iter().flat_map(|step| &step.witnesses);
    facts.extend(witnesses.map(|witness| ("", witness.clone())));
    if !issue.agents.is_empty() {
        let mut agents = issue.agents.join(", ");
        if issue.repair_rounds > 0 {
            agents.push_str(&format!(
                ", {}",
                counted(issue.repair_rounds, "repair round")
            ));
        }
        if issue.denials > 0 {
            agents.push_str(&format!(", {} denied", counted(issue.denials, "call")));
        }
        facts.push(("agent", agents));
    }
    Failure {
        issue: issue.issue_id.to_string(),
        title: title_of(issue.title.as_ref()),
        facts,
        commands: issue.next.clone(),
    }
}

fn clusters(report: &ReportView, parts: &mut Vec<Part>) {
    if report.clusters.is_empty() {
        return;
    }
    const COLUMNS: [Column; 6] = [
        needed_figure("ISSUES"),
        Column::figure("ATTEMPTS"),
        Column::text("CLASS"),
        side("WHICH"),
        side("ROWS"),
        Column::text("FIRST LINE"),
    ];
    let rows = report.clusters.iter().map(|cluster| {
        vec![
            cluster.issue_ids.len().to_string(),
            cluster.attempts.to_string(),
            cluster.failure_class.clone(),
            listed_ids(&cluster.issue_ids),
            listed(cluster.rows.iter()),
            cluster.line.clone(),
        ]
    });
    let heading = "Failed attempts that are alike".to_owned();
    section(parts, heading, "", &COLUMNS, rows.collect());
}

fn review(report: &ReportView, parts: &mut Vec<Part>) {
    const COLUMNS: [Column; 9] = [
        needed_figure("#"),
        needed_figure("SCORE"),
        Column::text("ISSUE"),
        Column::figure("LINES"),
        side("REVISION"),
        Column::figure("ROW"),
        Column::figure("FILES"),
        side("TITLE"),
        Column::text("WHY"),
    ];
    let rows = report.review.iter().map(|item| {
        vec![
            item.place.to_string(),
            item.score.to_string(),
            item.issue_id.to_string(),
            change(item.change, ChangeSize::lines),
            revision(item),
            item.row.to_string(),
            change(item.change, |change| change.files),
            fitted(&title_of(item.title.as_ref()), TITLE_MAX),
            reasons(item),
        ]
    });
    let heading = format!("Review in this order ({})", report.review.len());
    let none = "Nothing landed and nothing was salvaged.";
    section(parts, heading, none, &COLUMNS, rows.collect());
}

fn revision(item: &ReviewItem) -> String {
    match item.closed {
        true => item.revision.chars().take(12).collect(),
        false => item.revision.clone(),
    }
}

fn reasons(item: &ReviewItem) -> String {
    let reasons = item.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|reason| format!("{} (+{})", reason.text, reason.points))
        .collect();
    let reasons = match reasons.is_empty() {
        true => "small, at the first attempt".to_owned(),
        false => reasons.join(", "),
    };
    match &item.reviewed {
        Some(reviewed) => format!("{} (row {}); {reasons}", reviewed.decision, reviewed.row),
        None => reasons,
    }
}

fn change(change: Option<ChangeSize>, of: impl FnOnce(ChangeSize) -> u64) -> String {
    change.map_or_else(|| UNKNOWN.to_owned(), |change| of(change).to_string())
}

fn closed(report: &ReportView, parts: &mut Vec<Part>) {
    const COLUMNS: [Column; 8] = [
        Column::text("ISSUE"),
        Column::figure("TRIES"),
        Column::figure("TIME"),
        side("COMMIT"),
        Column::figure("ROW"),
        Column::figure("TOKENS"),
        Column::figure("USD"),
        Column::text("TITLE"),
    ];
    let rows = report.closed.iter().map(|issue| {
        let commit = issue.commit.as_ref();
        vec![
            issue.issue_id.to_string(),
            tries(issue),
            brief_ms(issue.duration_ms),
            commit.map_or_else(
                || NONE.to_owned(),
                |commit| commit.chars().take(12).collect(),
            ),
            last_row(issue),
            issue.usage.tokens_cell(),
            issue.usage.cost_cell(),
            title_of(issue.title.as_ref()),
        ]
    });
    let heading = format!("Closed ({})", report.closed.len());
    section(
        parts,
        heading,
        "No issue was closed.",
        &COLUMNS,
        rows.collect(),
    );
}

fn agents(report: &ReportView, parts: &mut Vec<Part>) {
    const COLUMNS: [Column; 9] = [
        Column::text("AGENT"),
        needed_figure("ATTEMPTS"),
        needed_figure("CLOSED"),
        needed_figure("TOKENS"),
        needed_figure("USD"),
        Column::figure("CALLS"),
        Column::figure("REPAIRS"),
        Column::figure("DENIED"),
        Column::text("MODEL"),
    ];
    let rows = report.agents.iter().map(|agent| {
        vec![
            agent
                .agent
                .clone()
                .unwrap_or_else(|| "none recorded".to_owned()),
            agent.steps.to_string(),
            agent.closed.to_string(),
            agent.usage.tokens_cell(),
            agent.usage.cost_cell(),
            agent
                .agent
                .as_ref()
                .map_or_else(|| UNKNOWN.to_owned(), |_| agent.calls.to_string()),
            agent.repair_rounds.to_string(),
            agent.denials.to_string(),
            agent.model.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        ]
    });
    section(
        parts,
        "Agents".to_owned(),
        "No agent worked.",
        &COLUMNS,
        rows.collect(),
    );
}

fn lanes(report: &ReportView, parts: &mut Vec<Part>) {
    if report.lanes.is_empty() {
        return;
    }
    const COLUMNS: [Column; 4] = [
        Column::text("LANE"),
        needed_figure("ATTEMPTS"),
        needed_figure("CLOSED"),
        Column::text("BUSY"),
    ];
    let rows = report.lanes.iter().map(|lane| {
        vec![
            lane.worker_id.to_string(),
            lane.steps.to_string(),
            lane.closed.to_string(),
            brief_ms(lane.busy_ms),
        ]
    });
    section(parts, "Lanes".to_owned(), "", &COLUMNS, rows.collect());
    parts.push(Part::Timeline);
}

fn salvage(report: &ReportView, parts: &mut Vec<Part>) {
    if report.salvage.is_empty() {
        return;
    }
    const COLUMNS: [Column; 3] = [
        Column::text("ISSUE"),
        needed_figure("ROW"),
        Column::text("SHOW IT"),
    ];
    let rows = report.salvage.iter().map(|kept| {
        let issue = kept.issue_id.as_ref();
        // A folder has what git could not take; where none is here, all is elsewhere.
        let mut shown = kept.commands.clone();
        match shown.is_empty() {
            true => shown.push(kept.kept_at.clone()),
            false => shown.extend(folders(&kept.kept_at).map(str::to_owned)),
        }
        let shown = shown.join("; ");
        vec![
            issue.map_or_else(|| NONE.to_owned(), |id| id.to_string()),
            kept.row.to_string(),
            shown,
        ]
    });
    let heading = format!("Salvaged ({})", report.salvage.len());
    section(parts, heading, "", &COLUMNS, rows.collect());
}

fn denials(report: &ReportView, parts: &mut Vec<Part>) {
    if report.denials.is_empty() {
        return;
    }
    const COLUMNS: [Column; 4] = [
        Column::text("RULE"),
        needed_figure("CALLS"),
        side("ROWS"),
        Column::text("ISSUES"),
    ];
    let rows = report.denials.iter().map(|denial| {
        vec![
            denial.rule_id.clone(),
            denial.calls.to_string(),
            listed(denial.rows.iter()),
            listed_ids(&denial.issue_ids),
        ]
    });
    section(
        parts,
        "Denied calls".to_owned(),
        "",
        &COLUMNS,
        rows.collect(),
    );
}

fn events(report: &ReportView, reader: &Reader, parts: &mut Vec<Part>) {
    if report.events.is_empty() {
        return;
    }
    const COLUMNS: [Column; 4] = [
        Column::text("WHEN"),
        needed_figure("ROW"),
        Column::text("EVENT"),
        Column::text("WHAT"),
    ];
    let rows = report.events.iter().map(|event| {
        vec![
            at(event.at.time(), reader),
            event.row.to_string(),
            event.action.clone(),
            event.text.clone(),
        ]
    });
    section(parts, "Events".to_owned(), "", &COLUMNS, rows.collect());
}

/// Returns the first of some things in a line, and how many more there are.
fn listed<T: ToString>(items: impl ExactSizeIterator<Item = T>) -> String {
    let more = items.len().saturating_sub(LISTED);
    let shown: Vec<String> = items.take(LISTED).map(|item| item.to_string()).collect();
    let shown = shown.join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn listed_ids(ids: &[IssueId]) -> String {
    listed(ids.iter())
}
