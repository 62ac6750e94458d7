//! How issues look in answers.

use crate::terminal::{plain, table};
use premath_kernel::issue::Lease;
use premath_kernel::issue::graph::{Hold, IssueGraph};
use premath_memory::{IssueRow, MemoryView};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An issue as it appears in JSON answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "IssueItem")]
pub(crate) struct IssueView<'a> {
    /// The issue's id.
    id: &'a str,
    /// What it is about, in a line.
    title: String,
    /// The status of the issue.
    status: &'a str,
    /// Smaller is sooner.
    priority: i64,
    /// The type of the issue, any word.
    issue_type: &'a str,
    /// The assignee; empty if unassigned.
    assignee: &'a str,
    /// The owner; empty if there is none.
    owner: String,
    /// The labels of the issue.
    labels: &'a [Box<str>],
    /// What is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    /// How it is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    design: String,
    /// When it counts as done.
    #[serde(skip_serializing_if = "String::is_empty")]
    acceptance_criteria: String,
    /// The notes of the issue.
    #[serde(skip_serializing_if = "String::is_empty")]
    notes: String,
    /// When it was filed, as its row says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    created_at: String,
    /// When it was last changed, as its row says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    updated_at: String,
    /// When it was closed, as its row says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    closed_at: String,
    /// When it may be claimed again.
    #[serde(skip_serializing_if = "String::is_empty")]
    retry_at: String,
    /// The step that closed it.
    #[serde(skip_serializing_if = "String::is_empty")]
    closed_by_step: String,
    /// The lease that is in its row, in force or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseItem<'a>>,
    /// The generation of its newest lease; absent where it never had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_generation: Option<u64>,
    /// The dependencies of the issue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<EdgeItem<'a>>,
    /// Who last changed it without a gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator_override: Option<Value>,
    /// The last change of it that was asked for under an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructed_change: Option<InstructedItem>,
    /// The step that filed it, and the lease that the step ran under.
    #[serde(skip_serializing_if = "Option::is_none")]
    discovered_by: Option<DiscoveredItem>,
    /// The rights by which turns changed it, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mutation_refs: Vec<String>,
}

/// A change that was asked for under an instruction.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InstructedItem {
    /// The instruction.
    instruction_ref: String,
    /// The kind of change, as in `issue_update`.
    change: String,
    /// Who asked, as they call themselves.
    asked_by: String,
    /// The time of the change.
    at: String,
    /// The right of the turn that it used up, where it took one.
    #[serde(skip_serializing_if = "Option::is_none")]
    mutation_ref: Option<String>,
}

/// The step that filed an issue.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DiscoveredItem {
    /// The step.
    step_id: String,
    /// The lease that it ran under.
    lease_id: String,
    /// The lease's generation.
    generation: u64,
    /// What filing it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    mutation_ref: Option<String>,
}

/// A lease as it appears in JSON answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LeaseItem<'a> {
    /// The lease's id.
    lease_id: &'a str,
    /// The owner of the lease.
    owner: &'a str,
    /// When it was claimed, as its row says it.
    acquired_at: &'a str,
    /// Until when it is good, as its row says it.
    expires_at: &'a str,
    /// When it was last renewed; null where it never was.
    renewed_at: Option<&'a str>,
    /// The fencing token; 0 in rows of others.
    generation: u64,
    /// The process that holds it; absent where a person does.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<HolderItem<'a>>,
}

/// A process that holds a lease.
#[derive(Debug, Serialize, JsonSchema)]
struct HolderItem<'a> {
    /// The host's name.
    host: &'a str,
    /// The process id.
    pid: u32,
}

/// An edge as it appears in JSON answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EdgeItem<'a> {
    /// The issue that has the edge.
    issue_id: &'a str,
    /// The issue that it points to.
    depends_on_id: &'a str,
    /// What it does, as in `blocks`.
    #[serde(rename = "type")]
    kind: &'a str,
    /// Who added it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
}

/// What holds an issue, as it appears in JSON answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HoldItem {
    /// The issue that holds it.
    id: String,
    /// The relation by which it holds the issue.
    kind: HoldWord,
    /// The status of that issue; absent if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

/// By what an issue holds another.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HoldWord {
    /// The other depends on it.
    Dependency,
    /// The other depends on it, and it does not exist.
    Missing,
    /// It is a child of the other.
    Child,
    /// It holds an ancestor of the other.
    Ancestor,
}

/// Returns an issue as it appears in JSON answers.
pub(crate) fn item(row: &IssueRow) -> IssueView<'_> {
    let issue = &row.issue;
    let fields = row.value();
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let edges = fields.get("dependencies").and_then(Value::as_array);
    IssueView {
        id: &issue.id,
        title: text("title"),
        status: issue.status.as_str(),
        priority: issue.priority,
        issue_type: &issue.issue_type,
        assignee: &issue.assignee,
        owner: text("owner"),
        labels: &issue.labels,
        description: text("description"),
        design: text("design"),
        acceptance_criteria: text("acceptance_criteria"),
        notes: text("notes"),
        created_at: text("created_at"),
        updated_at: text("updated_at"),
        closed_at: text("closed_at"),
        retry_at: text("retry_at"),
        closed_by_step: text("closed_by_step"),
        lease: issue.lease.as_deref().map(lease_item),
        lease_generation: Some(issue.lease_generation).filter(|generation| *generation > 0),
        dependencies: edges
            .into_iter()
            .flatten()
            .zip(issue.dependencies.iter())
            .map(|(edge, dependency)| {
                edge_item(
                    &issue.id,
                    &dependency.depends_on,
                    dependency.kind.as_str(),
                    edge.get("created_by").and_then(Value::as_str),
                )
            })
            .collect(),
        operator_override: fields.get("operator_override").cloned(),
        instructed_change: fields.get("instructed_change").and_then(|record| {
            Some(InstructedItem {
                instruction_ref: part(record, "instruction_ref")?,
                change: part(record, "change")?,
                asked_by: part(record, "asked_by")?,
                at: part(record, "at")?,
                mutation_ref: part(record, "mutation_ref"),
            })
        }),
        discovered_by: fields.get("discovered_by").and_then(discovered_item),
        mutation_refs: fields
            .get("mutation_refs")
            .and_then(|refs| serde_json::from_value(refs.clone()).ok())
            .unwrap_or_default(),
    }
}

fn discovered_item(record: &Value) -> Option<DiscoveredItem> {
    Some(DiscoveredItem {
        step_id: part(record, "step_id")?,
        lease_id: part(record, "lease_id")?,
        generation: record.get("generation")?.as_u64()?,
        mutation_ref: part(record, "mutation_ref"),
    })
}

/// A text of a record in a row.
fn part(record: &Value, name: &str) -> Option<String> {
    Some(record.get(name)?.as_str()?.to_owned())
}

fn lease_item(lease: &Lease) -> LeaseItem<'_> {
    LeaseItem {
        lease_id: &lease.lease_id,
        owner: &lease.owner,
        acquired_at: &lease.acquired_at,
        expires_at: &lease.expires_at,
        renewed_at: lease.renewed_at.as_deref(),
        generation: lease.generation,
        holder: lease.holder.as_ref().map(|holder| HolderItem {
            host: &holder.host,
            pid: holder.pid,
        }),
    }
}

/// Returns an edge as it appears in JSON answers.
pub(crate) fn edge_item<'a>(
    issue_id: &'a str,
    depends_on_id: &'a str,
    kind: &'a str,
    created_by: Option<&str>,
) -> EdgeItem<'a> {
    EdgeItem {
        issue_id,
        depends_on_id,
        kind,
        created_by: created_by.filter(|by| !by.is_empty()).map(str::to_owned),
    }
}

/// Returns what holds an issue, as it appears in JSON answers.
pub(crate) fn hold_item(hold: &Hold, view: &MemoryView<'_>) -> HoldItem {
    let (id, kind) = parts(hold);
    HoldItem {
        id: id.to_owned(),
        kind,
        status: view.issue(id).map(|issue| issue.status.as_str().to_owned()),
    }
}

fn parts(hold: &Hold) -> (&str, HoldWord) {
    match hold {
        Hold::On(id) => (id, HoldWord::Dependency),
        Hold::OnMissing(id) => (id, HoldWord::Missing),
        Hold::Child(id) => (id, HoldWord::Child),
        Hold::Ancestor(id) => (id, HoldWord::Ancestor),
    }
}

/// Returns what holds an issue in a few words, empty where nothing does.
pub(crate) fn holds_text(graph: &IssueGraph, id: &str) -> String {
    let holds: Vec<String> = graph.holds(id).iter().map(Hold::to_string).collect();
    holds.join(", ")
}

/// Returns issues as an aligned table, nothing where there are none.
pub(crate) fn issue_table<'a>(rows: impl IntoIterator<Item = &'a IssueRow>) -> String {
    let rows: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let issue = &row.issue;
            [
                issue.id.to_string(),
                format!("p{}", issue.priority),
                issue.status.as_str().to_owned(),
                issue.issue_type.to_string(),
                if issue.assignee.is_empty() {
                    "-".to_owned()
                } else {
                    issue.assignee.to_string()
                },
                row.text_of("title"),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(["ID", "PRIO", "STATUS", "TYPE", "ASSIGNEE", "TITLE"], &rows)
}

/// Returns `<verb> <id> [<status>] <title>` as a line.
pub(crate) fn line(verb: &str, row: &IssueRow) -> String {
    format!(
        "{verb} {} [{}] {}\n",
        plain(&row.issue.id),
        plain(row.issue.status.as_str()),
        plain(&row.text_of("title"))
    )
}

/// Returns a lease in a few words.
pub(crate) fn lease_text(lease: &Lease) -> String {
    format!(
        "{}, generation {}, held by {} until {}",
        lease.lease_id, lease.generation, lease.owner, lease.expires_at
    )
}
