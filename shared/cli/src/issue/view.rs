//! How issues look in answers.

use crate::terminal::{plain, table};
use premath_kernel::graph::{Hold, IssueGraph};
use premath_kernel::lease::Lease;
use premath_memory::{IssueRow, View};
use serde_json::{Map, Value, json};

/// Text fields of a row and their names in answers, left out where empty.
const OPTIONAL_TEXTS: [(&str, &str); 9] = [
    ("description", "description"),
    ("design", "design"),
    ("acceptance_criteria", "acceptanceCriteria"),
    ("notes", "notes"),
    ("created_at", "createdAt"),
    ("updated_at", "updatedAt"),
    ("closed_at", "closedAt"),
    ("retry_at", "retryAt"),
    ("closed_by_step", "closedByStep"),
];

/// Returns an issue as it stands in JSON answers.
pub(crate) fn item(row: &IssueRow) -> Value {
    let issue = &row.issue;
    let fields = row.value();
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("");
    let mut item = Map::new();
    let mut put = |name: &str, value: Value| drop(item.insert(name.into(), value));
    put("id", (*issue.id).into());
    put("title", text("title").into());
    put("status", issue.status.as_str().into());
    put("priority", issue.priority.into());
    put("issueType", (*issue.issue_type).into());
    put("assignee", (*issue.assignee).into());
    put("owner", text("owner").into());
    put("labels", json!(issue.labels));
    for (field, name) in OPTIONAL_TEXTS {
        if !text(field).is_empty() {
            put(name, text(field).into());
        }
    }
    if let Some(lease) = &issue.lease {
        put("lease", lease_item(lease));
    }
    if issue.lease_generation > 0 {
        put("leaseGeneration", issue.lease_generation.into());
    }
    if let Some(edges) = fields.get("dependencies").and_then(Value::as_array)
        && !edges.is_empty()
    {
        let edges = edges.iter().zip(issue.dependencies.iter());
        put(
            "dependencies",
            edges
                .map(|(edge, dependency)| {
                    edge_item(
                        &issue.id,
                        &dependency.depends_on,
                        dependency.kind.as_str(),
                        edge.get("created_by").and_then(Value::as_str),
                    )
                })
                .collect(),
        );
    }
    if let Some(record) = fields.get("operator_override") {
        put("operatorOverride", record.clone());
    }
    Value::Object(item)
}

fn lease_item(lease: &Lease) -> Value {
    let mut item = json!({
        "leaseId": lease.lease_id,
        "owner": lease.owner,
        "acquiredAt": lease.acquired_at,
        "expiresAt": lease.expires_at,
        "renewedAt": lease.renewed_at,
        "generation": lease.generation,
    });
    if let Some(holder) = &lease.holder {
        item["holder"] = json!({"host": holder.host, "pid": holder.pid});
    }
    item
}

/// Returns an edge as it stands in JSON answers.
pub(crate) fn edge_item(
    issue_id: &str,
    depends_on: &str,
    kind: &str,
    created_by: Option<&str>,
) -> Value {
    let mut item = json!({"issueId": issue_id, "dependsOnId": depends_on, "type": kind});
    if let Some(by) = created_by.filter(|by| !by.is_empty()) {
        item["createdBy"] = by.into();
    }
    item
}

/// Returns what holds an issue, as it stands in JSON answers.
pub(crate) fn hold_item(hold: &Hold, view: &View<'_>) -> Value {
    let (id, kind) = parts(hold);
    let mut item = json!({"id": id, "kind": kind});
    if let Some(issue) = view.issue(id) {
        item["status"] = issue.status.as_str().into();
    }
    item
}

fn parts(hold: &Hold) -> (&str, &'static str) {
    match hold {
        Hold::On(id) => (id, "dependency"),
        Hold::OnMissing(id) => (id, "missing"),
        Hold::Child(id) => (id, "child"),
        Hold::Ancestor(id) => (id, "ancestor"),
    }
}

/// Returns what holds an issue in a few words, empty where nothing does.
pub(crate) fn holds_text(graph: &IssueGraph, id: &str) -> String {
    let words = graph.holds(id).into_iter().map(|hold| match &hold {
        Hold::On(id) => id.to_string(),
        other => {
            let (id, kind) = parts(other);
            format!("{id} ({kind})")
        }
    });
    words.collect::<Vec<_>>().join(", ")
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
