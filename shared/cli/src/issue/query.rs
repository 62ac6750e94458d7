//! Commands that look at issues.

use super::history::{ATTEMPTS, Past, Window};
use super::view::{
    EdgeItem, HoldItem, IssueView, edge_item, hold_item, holds_text, issue_table, item, lease_text,
};
use crate::answer::Answer;
use crate::error::CliError;
use crate::failure::LastFailure;
use crate::paths;
use crate::terminal::{block, plain, table};
use clap::Args;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::graph::Hold;
use premath_kernel::issue::lease::{self, LeaseRefusal, LeaseState};
use premath_kernel::issue::{EdgeKind, Status, natural};
use premath_memory::{ChangeError, IssueMemory, IssueRow, MemoryView, clock};
use premath_view::report::{PastAttempt, PastTotals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The issues to list.
#[derive(Debug, Default, Args, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListArgs {
    /// List only issues with this status
    #[arg(long)]
    status: Option<String>,
    /// List only issues assigned to this name; "" for unassigned ones
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// List only issues of this type
    #[arg(long = "type", value_name = "TYPE")]
    issue_type: Option<String>,
    /// List only issues with this label
    #[arg(long)]
    label: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How much of a list is wanted.
#[derive(Clone, Copy, Debug, Default, Args, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LimitArgs {
    /// List at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

impl ListArgs {
    pub(crate) fn perform(&self, memory: &IssueMemory, json: bool) -> Result<Answer, CliError> {
        let filters = self.filters();
        let wanted = |row: &&IssueRow| filters.iter().all(|filter| filter.admits(row));
        listed(memory, self.limit, json, |view| {
            let mut rows: Vec<_> = view.rows().filter(wanted).collect();
            rows.sort_by(|a, b| natural::compare(&a.issue.id, &b.issue.id));
            rows
        })
    }

    /// Says why nothing is listed: the first value asked for that no issue has, with
    /// those that issues have.
    pub(super) fn none(&self, memory: &IssueMemory) -> Result<String, CliError> {
        let filters = self.filters();
        let none = memory.view(|view| {
            let unknown = filters
                .iter()
                .find(|filter| !view.rows().any(|row| filter.admits(row)))?;
            let known: BTreeSet<&str> = view.rows().flat_map(unknown.of).collect();
            let known = known.into_iter().filter(|value| !value.is_empty());
            let known: Vec<String> = known.take(SHOWN).map(quoted).collect();
            let asked = format!(
                "no issue has the {} {}",
                unknown.name,
                quoted(&unknown.value)
            );
            Some(match known.is_empty() {
                true => asked,
                false => format!("{asked}; there is {}", known.join(", ")),
            })
        })?;
        let matches = (!filters.is_empty()).then(|| "no issue matches".to_owned());
        Ok(none.or(matches).unwrap_or_else(|| "no issues".to_owned()))
    }

    fn filters(&self) -> Vec<Filter> {
        let status = self.status.as_deref();
        let status = status.map(|word| Status::parse(word).as_str().to_owned());
        let all: [(_, _, Values); 4] = [
            ("status", status, |row| vec![row.issue.status.as_str()]),
            ("assignee", self.assignee.clone(), |row| {
                vec![&row.issue.assignee]
            }),
            ("type", self.issue_type.clone(), |row| {
                vec![&row.issue.issue_type]
            }),
            ("label", self.label.clone(), |row| {
                row.issue.labels.iter().map(|label| &**label).collect()
            }),
        ];
        let given = all.into_iter().filter_map(|(name, value, of)| {
            let value = value?;
            Some(Filter { name, value, of })
        });
        given.collect()
    }
}

/// How many values are named of those that issues have.
const SHOWN: usize = 12;

/// Returns what an issue has of what a filter is about.
type Values = fn(&IssueRow) -> Vec<&str>;

/// A value that the listed issues have.
struct Filter {
    name: &'static str,
    value: String,
    of: Values,
}

impl Filter {
    fn admits(&self, row: &IssueRow) -> bool {
        (self.of)(row).contains(&&*self.value)
    }
}

fn quoted(value: &str) -> String {
    format!("`{}`", plain(value))
}

pub(crate) fn ready(
    memory: &IssueMemory,
    limit: Option<usize>,
    json: bool,
) -> Result<Answer, CliError> {
    listed(memory, limit, json, |view| view.ready().collect())
}

/// Adds what is next to a list: that it is empty, where that would be silence,
/// and that the last line was not read.
pub(super) fn with_notes(
    answer: Answer,
    memory: &IssueMemory,
    json: bool,
    none: impl FnOnce() -> Result<String, CliError>,
) -> Result<Answer, CliError> {
    let answer = if !json && answer.is_silent() {
        answer.note(none()?)
    } else {
        answer
    };
    Ok(with_cut_note(answer, memory))
}

fn with_cut_note(answer: Answer, memory: &IssueMemory) -> Answer {
    match memory.cut_line() {
        Some(line) => answer.note(format!(
            "warning: {}:{line}: the last line is incomplete and was skipped; the next change \
            moves it to a separate file",
            memory.path().display()
        )),
        None => answer,
    }
}

/// Says that nothing is ready, and what there is instead.
pub(super) fn none_ready(memory: &IssueMemory) -> Result<String, CliError> {
    let counts = memory.view(|view| view.counts())?;
    let rest = ["in progress", "waiting", "blocked"].map(|name| (name, counts.get(name)));
    let rest: Vec<String> = rest
        .into_iter()
        .filter_map(|(name, count)| Some(format!("{} {name}", count?)))
        .collect();
    Ok(if rest.is_empty() {
        "no ready issues".to_owned()
    } else {
        format!("no ready issues: {}", rest.join(", "))
    })
}

/// Cuts a list to its limit, and returns how many it had.
fn cut<T>(list: &mut Vec<T>, limit: Option<usize>) -> usize {
    let total = list.len();
    list.truncate(limit.unwrap_or(total));
    total
}

/// Says how much of a list is not shown.
fn with_rest(answer: Answer, shown: usize, total: usize) -> Answer {
    match total - shown {
        0 => answer,
        rest => answer.note(format!(
            "{rest} more of {total} not shown (--limit {shown})"
        )),
    }
}

fn listed(
    memory: &IssueMemory,
    limit: Option<usize>,
    json: bool,
    choose: impl for<'v> FnOnce(&MemoryView<'v>) -> Vec<&'v IssueRow>,
) -> Result<Answer, CliError> {
    Ok(memory.view(|view| {
        let mut rows = choose(&view);
        let total = cut(&mut rows, limit);
        let count = rows.len();
        let document = IssuesAnswer {
            count,
            total,
            // They are written one by one.
            items: Vec::new(),
        };
        if json {
            Answer::new(document, "").items(rows.into_iter().map(item))
        } else {
            with_rest(Answer::new(document, issue_table(rows)), count, total)
        }
    })?)
}

pub(crate) fn blocked(memory: &IssueMemory, limit: Option<usize>) -> Result<Answer, CliError> {
    Ok(memory.view(|view| {
        let mut items = Vec::new();
        let mut lines = Vec::new();
        let mut held: Vec<_> = view
            .rows()
            .filter(|row| !row.issue.status.is_terminal())
            .map(|row| (row, view.graph().holds(&row.issue.id)))
            .filter(|(row, holds)| !holds.is_empty() || row.issue.status == Status::Blocked)
            .collect();
        held.sort_by(|(a, _), (b, _)| natural::compare(&a.issue.id, &b.issue.id));
        let total = cut(&mut held, limit);
        for (row, holds) in held {
            let by_hand = row.issue.status == Status::Blocked;
            lines.push([
                row.issue.id.to_string(),
                format!("p{}", row.issue.priority),
                row.issue.status.as_str().to_owned(),
                row.text_of("title"),
                match holds_text(view.graph(), &row.issue.id) {
                    text if text.is_empty() => "(status blocked)".to_owned(),
                    text => text,
                },
            ]);
            items.push(blocked_item(row, &holds, by_hand, &view));
        }
        let text = if lines.is_empty() {
            String::new()
        } else {
            table(["ID", "PRIO", "STATUS", "TITLE", "BLOCKED BY"], &lines)
        };
        let count = items.len();
        let document = BlockedAnswer {
            count,
            total,
            items,
        };
        with_rest(Answer::new(document, text), count, total)
    })?)
}

/// What `issue list` and `ready` answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IssuesAnswer<'a> {
    /// How many issues are listed.
    count: usize,
    /// How many there are without a limit.
    total: usize,
    /// The issues: a list by id, what is ready by priority, then id.
    items: Vec<IssueView<'a>>,
}

/// The answer of `premath issue blocked`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BlockedAnswer<'a> {
    /// How many issues are listed.
    count: usize,
    /// How many there are without a limit.
    total: usize,
    /// The issues that something holds, by id.
    items: Vec<BlockedItem<'a>>,
}

/// An issue that something holds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BlockedItem<'a> {
    #[serde(flatten)]
    item: IssueView<'a>,
    /// Whether its status sets it aside.
    manual_blocked: bool,
    /// Everything that holds the issue.
    blocked_by: Vec<HoldItem>,
    /// Its own edges that hold it.
    blockers: Vec<Blocker<'a>>,
}

/// An edge that holds an issue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Blocker<'a> {
    #[serde(flatten)]
    edge: EdgeItem<'a>,
    /// Who added it; empty where that is not known.
    created_by: String,
    /// The target's status; null if it does not exist.
    blocker_status: Option<String>,
    /// Whether the target does not exist.
    blocker_missing: bool,
}

/// The answer of `premath issue show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShowAnswer<'a> {
    /// The issue.
    issue: IssueView<'a>,
    /// The state of its lease.
    #[schemars(with = "LeaseState")]
    lease_state: &'static str,
    /// Whether it can be worked on now.
    ready: bool,
    /// Everything that holds the issue.
    blocked_by: Vec<HoldItem>,
    /// Why its last step did not close it; absent where it is over, or where
    /// no step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<LastFailure>,
    /// Its latest attempts over all batches, as many as the limit says, in the order of
    /// the run log; absent where none is listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<PastAttempt>,
    /// How many attempts came before those.
    earlier_attempts: u64,
    /// What all of its attempts took, those that are not listed included.
    attempt_totals: PastTotals,
}

fn blocked_item<'a>(
    row: &'a IssueRow,
    holds: &[Hold],
    by_hand: bool,
    view: &MemoryView<'a>,
) -> BlockedItem<'a> {
    // The issue's own edges that hold it, as rows of others name them.
    let fields = row.value();
    let edges = fields.get("dependencies").and_then(Value::as_array);
    let blockers = edges
        .into_iter()
        .flatten()
        .zip(row.issue.dependencies.iter())
        .filter(|(_, dependency)| matches!(dependency.kind, EdgeKind::Holds(_)))
        .filter_map(|(edge, dependency)| {
            let target = view.issue(&dependency.depends_on);
            if target.is_some_and(|issue| issue.status.is_terminal()) {
                return None;
            }
            Some(Blocker {
                edge: edge_item(
                    &row.issue.id,
                    &dependency.depends_on,
                    dependency.kind.as_str(),
                    None,
                ),
                created_by: edge
                    .get("created_by")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                blocker_status: target.map(|issue| issue.status.as_str().to_owned()),
                blocker_missing: target.is_none(),
            })
        })
        .collect();
    BlockedItem {
        item: item(row),
        manual_blocked: by_hand,
        blocked_by: holds.iter().map(|hold| hold_item(hold, view)).collect(),
        blockers,
    }
}

/// The issue to show.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The issue
    id: String,
    /// Show at most this many attempts, the latest [default: 50]
    #[arg(long, value_name = "N", default_value_t = ATTEMPTS, hide_default_value = true)]
    limit: usize,
}

impl ShowArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let memory = paths::open(path, false)?;
        let window = Window {
            most: self.limit,
            before: None,
        };
        let past = Past::of(&self.id, path, window);
        let answer = memory.view(|view| match view.row(&self.id) {
            Some(row) => Ok(shown(row, &view, past)),
            None => Err(CliError::Change(ChangeError::Refused(no_such(&self.id)))),
        })??;
        Ok(with_cut_note(answer, &memory))
    }
}

/// The refusal of an id that no issue has.
pub(crate) fn no_such(id: &str) -> LeaseRefusal {
    LeaseRefusal {
        class: FailureClass::LeaseNotFound,
        detail: format!("no issue {id}"),
    }
}

/// Returns the longer texts of an issue, each below its name.
fn texts(row: &IssueRow) -> String {
    let mut text = String::new();
    for (name, field) in [
        ("description", "description"),
        ("design", "design"),
        ("acceptance criteria", "acceptance_criteria"),
        ("notes", "notes"),
    ] {
        let value = row.text_of(field);
        if !value.trim().is_empty() {
            let _ = write!(text, "\n{name}\n{}", block(&value));
        }
    }
    text
}

fn shown(row: &IssueRow, view: &MemoryView<'_>, past: Past) -> Answer {
    let issue = &row.issue;
    let attempts = past.text();
    let last_failure = past.failure.filter(|_| !issue.status.is_terminal());
    let state = lease::state(Some(issue), &clock::observe());
    let (graph, id) = (view.graph(), &issue.id);
    let (ready, holds) = (graph.is_ready(id), graph.holds(id));
    let failure = last_failure.as_ref().map(LastFailure::text);
    let document = ShowAnswer {
        last_failure,
        attempts: past.attempts,
        earlier_attempts: past.earlier,
        attempt_totals: past.totals,
        issue: item(row),
        lease_state: state.as_str(),
        ready,
        blocked_by: holds.iter().map(|hold| hold_item(hold, view)).collect(),
    };
    let status = match issue.status.as_str() {
        status if ready => format!("{status} (ready)"),
        status => status.to_owned(),
    };
    let lease = issue.lease.as_ref();
    let lease = lease.map(|lease| format!("{}: {}", state.as_str(), lease_text(lease)));
    let lease = lease.unwrap_or_default();
    let mut text = format!("{}  {}\n", plain(&issue.id), plain(&row.text_of("title")));
    for (name, value) in [
        ("status", status),
        ("priority", issue.priority.to_string()),
        ("type", issue.issue_type.to_string()),
        ("assignee", issue.assignee.to_string()),
        ("owner", row.text_of("owner")),
        ("labels", issue.labels.join(", ")),
        ("lease", lease),
        ("blocked by", holds_text(view.graph(), &issue.id)),
        ("retry at", row.text_of("retry_at")),
        ("closed by", row.text_of("closed_by_step")),
        ("created", row.text_of("created_at")),
        ("updated", row.text_of("updated_at")),
        ("closed", row.text_of("closed_at")),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<11}{}", plain(&value));
        }
    }
    text.push_str(&texts(row));
    if let Some(failure) = failure {
        let _ = write!(text, "\nlast failure\n{}", block(&failure));
    }
    text.push_str(&attempts);
    past.error
        .into_iter()
        .fold(Answer::new(document, text), Answer::note)
}
