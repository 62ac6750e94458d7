//! The page of one issue, of its evidence and of what its attempt prints.

use super::pages::Shared;
use super::site::Site;
use crate::diff;
use crate::error::CliError;
use crate::issue::history::{ATTEMPTS, IssueLog, Past, Window};
use crate::issue::query::no_such;
use crate::join_check::verdict_of;
use crate::logs;
use crate::why::WhyAnswer;
use axum::extract::{Query, State};
use axum::response::Response;
use premath_kernel::issue::Issue;
use premath_memory::live::LiveFolder;
use premath_memory::{ChangeError, IssueRow, MemoryView, witness};
use premath_view::log::LogText;
use premath_view::report::PastTotals;
use premath_view::web::{self, IssuePage, IssueText, Need, Place};
use serde::Deserialize;
use serde_json::Value;

/// The last lines of an attempt's output that are shown.
const LINES: usize = 400;
/// The longest evidence that is shown, in bytes.
const SHOWN: usize = 512 << 10;

/// The parts of the text of an issue, each with its heading.
const TEXTS: [(&str, &str); 4] = [
    ("Description", "description"),
    ("Design", "design"),
    ("Acceptance criteria", "acceptance_criteria"),
    ("Notes", "notes"),
];

/// Which issue, and of which row on its attempts are left out.
#[derive(Debug, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    id: String,
    before: Option<u64>,
}

pub(super) async fn issue(State(site): Shared, Query(which): Query<Which>) -> Response {
    let read = site.read(move |site| {
        let page = site.issue(&which.id, which.before)?;
        let content = page.as_ref().map(|page| web::issue(page, &site.viewer()));
        Ok(page.map(|page| page.title).zip(content))
    });
    match read.await {
        Ok(Some((title, content))) => site.page(Place::Elsewhere, &title, &content),
        Ok(None) => site.missing("There is no such issue."),
        Err(error) => site.failed(&error),
    }
}

impl Site {
    /// Reads an issue; `None` where there is none with that id.
    fn issue(&self, id: &str, before: Option<u64>) -> Result<Option<IssuePage>, CliError> {
        let memory = self.memory()?;
        let controls = self.controls;
        let page = memory.view(|view| Some(seen(view.row(id)?, &view, controls)))?;
        let Some(mut page) = page else {
            return Ok(None);
        };
        let window = Window {
            most: ATTEMPTS,
            before,
        };
        let log = IssueLog::read(id, &self.roots, window);
        if page.status != "closed"
            && let Ok(log) = &log
        {
            let why = WhyAnswer::of(id, &self.roots, &memory, log)?;
            let reasons = why.map(WhyAnswer::reasons).unwrap_or_default();
            let reasons = reasons.into_iter();
            page.reasons = reasons.map(|why| (why.text, why.next)).collect();
        }
        let batches = LiveFolder::of(&self.roots).read()?;
        let running = batches
            .iter()
            .filter(|batch| crate::status::is_running(batch));
        let mut steps = running
            .flat_map(|batch| &batch.lanes)
            .filter_map(|lane| lane.step.as_ref());
        page.runs = steps.any(|step| *step.issue_id == *id);
        let past = match &log {
            Ok(log) => Past::seen(log, &self.roots, &self.roots.issues),
            Err(error) => Past::unreadable(error),
        };
        page.attempts = past.attempts;
        page.earlier = past.earlier;
        page.totals = past.totals;
        page.error = past.error;
        if page.runs || page.totals.attempts > 0 {
            page.change = diff::of_issue(id, &self.roots).map_err(|error| error.chain());
        }
        Ok(Some(page))
    }
}

/// Reads what the issue store says about an issue.
fn seen(row: &IssueRow, view: &MemoryView<'_>, controls: bool) -> IssuePage {
    let issue = &row.issue;
    let text = |field: &str| row.text_of(field);
    let facts = vec![
        ("priority", issue.priority.to_string()),
        ("type", issue.issue_type.to_string()),
        ("assignee", issue.assignee.to_string()),
        ("labels", issue.labels.join(", ")),
        ("retry at", text("retry_at")),
        ("closed by", text("closed_by_step")),
        ("created", text("created_at")),
        ("updated", text("updated_at")),
    ];
    let texts = TEXTS.into_iter().map(|(heading, field)| IssueText {
        heading,
        text: text(field),
    });
    let status_of = |id: &str| view.issue(id).map(|issue| issue.status.as_str().to_owned());
    let needs = issue.dependencies.iter().map(|edge| Need {
        id: edge.depends_on.to_string(),
        kind: edge.kind.as_str().to_owned(),
        status: status_of(&edge.depends_on),
    });
    let needed_by = view
        .rows()
        .flat_map(|other| edge_to(&other.issue, &issue.id));
    IssuePage {
        id: issue.id.to_string(),
        title: text("title"),
        status: issue.status.as_str().to_owned(),
        facts,
        texts: texts.filter(|part| !part.text.trim().is_empty()).collect(),
        needs: needs.collect(),
        needed_by: needed_by.take(100).collect(),
        reasons: Vec::new(),
        runs: false,
        attempts: Vec::new(),
        earlier: 0,
        totals: PastTotals::default(),
        change: Err("No attempt changed anything yet.".to_owned()),
        error: None,
        controls,
    }
}

fn edge_to(issue: &Issue, id: &str) -> Option<Need> {
    let mut edges = issue.dependencies.iter();
    let edge = edges.find(|edge| *edge.depends_on == *id)?;
    Some(Need {
        id: issue.id.to_string(),
        kind: edge.kind.as_str().to_owned(),
        status: Some(issue.status.as_str().to_owned()),
    })
}

/// Which issue's output.
#[derive(Debug, Deserialize)]
pub(super) struct Output {
    #[serde(default)]
    issue: String,
}

pub(super) async fn output(State(site): Shared, Query(which): Query<Output>) -> Response {
    let title = format!("Output of {}", which.issue);
    let read = site.read(move |_| logs::of_issue(&which.issue, LINES));
    match read.await {
        Ok(view) => {
            let text = LogText::default().text(&view.lines);
            let left_out = view.skipped_lines > 0 || view.skipped_bytes > 0;
            let mut content = web::message(&[match (view.running, left_out) {
                (true, true) => {
                    "The last lines of the running attempt; what came before is left out."
                }
                (true, false) => "What the running attempt printed so far.",
                (false, true) => {
                    "The last lines of the last attempt; what came before is left out."
                }
                (false, false) => "What the last attempt printed.",
            }]);
            content.push_str(&web::printed(&text));
            site.page(Place::Elsewhere, &title, &content)
        }
        Err(error) => site.failed(&error),
    }
}

/// Which file.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    #[serde(default)]
    file: String,
}

pub(super) async fn evidence(State(site): Shared, Query(which): Query<File>) -> Response {
    let title = format!("Evidence {}", which.file);
    let read = site.read(move |site| Ok(site.evidence(&which.file)));
    match read.await {
        Ok(Some(content)) => site.page(Place::Elsewhere, &title, &content),
        Ok(None) => site.missing("There is no such evidence, or it cannot be read."),
        Err(error) => site.failed(&error),
    }
}

impl Site {
    /// Reads a witness; of a turn also what the gate says about it.
    fn evidence(&self, name: &str) -> Option<String> {
        let is_name = name.ends_with(".json") && !name.starts_with('.') && !name.contains('/');
        if !is_name {
            return None;
        }
        let path = self.roots.witnesses.join(name);
        let witness = witness::read(&self.roots.repository, &path)?;
        let mut content = match verdict_of(witness.clone()) {
            Ok(verdict) => format!("<h2>Verdict of the gate</h2>\n{}", web::verdict(&verdict)),
            Err(_) => String::new(),
        };
        content.push_str("<h2>Document</h2>\n");
        content.push_str(&web::printed(&pretty(&witness)));
        Some(content)
    }

    /// Returns the page of what is not there.
    pub(super) fn missing(&self, sentence: &str) -> Response {
        let mut page = self.page(Place::Elsewhere, "Not found", &web::message(&[sentence]));
        *page.status_mut() = http::StatusCode::NOT_FOUND;
        page
    }
}

fn pretty(document: &Value) -> String {
    let text = format!("{document:#}");
    let shown = premath_kernel::json::plain::cut_at(&text, SHOWN);
    shown.into_owned()
}

/// Returns the refusal of an issue that is not there.
pub(super) fn unknown(id: &str) -> CliError {
    CliError::Change(ChangeError::Refused(no_such(id)))
}
