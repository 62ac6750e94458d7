//! The issues snapshot ref (`contracts.md` 1).

use crate::row::IssueRow;
use premath_kernel::issue::DEFAULT_TYPE;
use premath_kernel::json::canonical;
use premath_kernel::json::time;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Where a row names no time: a fixed one, so that the ref stays a function
/// of the file.
const NO_TIME: &str = "1970-01-01T00:00:00Z";

/// Computes the ref over rows that come sorted by id.
pub(crate) fn snapshot_ref<'a>(rows: impl Iterator<Item = &'a IssueRow>) -> String {
    let mut hash = Sha256::new();
    for row in rows {
        hash.update(projected(row).as_bytes());
        hash.update(b"\n");
    }
    format!("iss1_{}", canonical::hex(&hash.finalize()))
}

/// The row as compact JSON with the contract's fields in the contract's order.
fn projected(read: &IssueRow) -> String {
    let row = &read.value();
    let mut parts: Vec<String> = Vec::new();
    let mut put = |name: &str, value: Value| {
        parts.push(format!("\"{name}\":{value}"));
    };
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or("");
    put("id", text("id").into());
    put("title", text("title").into());
    for name in ["description", "design", "acceptance_criteria", "notes"] {
        if !text(name).is_empty() {
            put(name, text(name).into());
        }
    }
    let or =
        |value: &str, default: &str| Value::from(if value.is_empty() { default } else { value });
    put("status", or(text("status"), "open"));
    put("priority", read.issue.priority.into());
    put("issue_type", or(text("issue_type"), DEFAULT_TYPE));
    for name in ["assignee", "owner"] {
        if !text(name).is_empty() {
            put(name, text(name).into());
        }
    }
    if let Some(lease) = row.get("lease").filter(|lease| lease.is_object()) {
        parts.push(format!("\"lease\":{}", lease_text(lease)));
    }
    for name in ["created_at", "updated_at"] {
        parts.push(format!(
            "\"{name}\":{}",
            Value::from(utc(or(text(name), NO_TIME).as_str()))
        ));
    }
    if !text("closed_at").is_empty() {
        parts.push(format!(
            "\"closed_at\":{}",
            Value::from(utc(row["closed_at"].as_str()))
        ));
    }
    put_extras(row, &mut parts);
    format!("{{{}}}", parts.join(","))
}

/// Adds the fields from `ephemeral` on, which stand last.
fn put_extras(row: &Value, parts: &mut Vec<String>) {
    let ephemeral = row
        .get("ephemeral")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    parts.push(format!("\"ephemeral\":{ephemeral}"));
    let mol_type = row.get("mol_type").and_then(Value::as_str).unwrap_or("");
    if !mol_type.is_empty() {
        parts.push(format!("\"mol_type\":{}", Value::from(mol_type)));
    }
    let labels = row.get("labels").and_then(Value::as_array);
    // A reader leaves out a label of another type too.
    let labels: Vec<&Value> = labels
        .into_iter()
        .flatten()
        .filter(|label| label.is_string())
        .collect();
    if !labels.is_empty() {
        parts.push(format!("\"labels\":{}", json!(labels)));
    }
    if let Some(edges) = row
        .get("dependencies")
        .and_then(Value::as_array)
        .filter(|d| !d.is_empty())
    {
        parts.push(format!("\"dependencies\":[{}]", edges_text(edges)));
    }
    match row.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) if map.is_empty() => {}
        Some(Value::Array(list)) if list.is_empty() => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(metadata) => parts.push(format!("\"metadata\":{metadata}")),
    }
}

/// A time in UTC with the fewest digits; one that cannot be read stays as it is.
fn utc(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    time::parse(text).map_or_else(|| text.to_owned(), time::shortest)
}

fn lease_text(lease: &Value) -> String {
    let text = |name: &str| lease.get(name).and_then(Value::as_str).unwrap_or("");
    let mut parts = Vec::new();
    for name in ["lease_id", "owner"] {
        parts.push(format!("\"{name}\":{}", Value::from(text(name))));
    }
    for name in ["acquired_at", "expires_at", "renewed_at"] {
        if name != "renewed_at" || !text(name).is_empty() {
            parts.push(format!("\"{name}\":{}", Value::from(utc(Some(text(name))))));
        }
    }
    format!("{{{}}}", parts.join(","))
}

fn edges_text(edges: &[Value]) -> String {
    let field = |edge: &Value, name: &str| {
        edge.get(name)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let mut rows: Vec<[String; 4]> = edges
        .iter()
        .map(|edge| {
            let kind = [
                field(edge, "type"),
                field(edge, "dep_type"),
                "blocks".to_owned(),
            ];
            let kind = kind
                .into_iter()
                .find(|word| !word.is_empty())
                .unwrap_or_default();
            [
                field(edge, "depends_on_id"),
                kind,
                field(edge, "created_by"),
                field(edge, "issue_id"),
            ]
        })
        .collect();
    rows.sort();
    let texts: Vec<String> = rows
        .into_iter()
        .map(|[depends_on, kind, created_by, issue]| {
            let mut text = format!(
                "{{\"issue_id\":{},\"depends_on_id\":{},\"type\":{}",
                Value::from(issue),
                Value::from(depends_on),
                Value::from(kind)
            );
            if !created_by.is_empty() {
                text.push_str(&format!(",\"created_by\":{}", Value::from(created_by)));
            }
            text.push('}');
            text
        })
        .collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_filled_in_and_empty_values_left_out() {
        let row = r#"{"id":"a","title":"t","notes":"","assignee":null,"unknown":1,"closed_at":"2025-11-03T20:56:22.700641-08:00",
            "dependencies":[{"issue_id":"a","depends_on_id":"c","dep_type":"related"},{"issue_id":"a","depends_on_id":"b","created_by":"x"}],
            "metadata":{"z":1,"b":{}}}"#;
        assert_eq!(
            projected(&IssueRow::parse(row).unwrap()),
            concat!(
                r#"{"id":"a","title":"t","status":"open","priority":2,"issue_type":"task","#,
                r#""created_at":"1970-01-01T00:00:00Z","updated_at":"1970-01-01T00:00:00Z","#,
                r#""closed_at":"2025-11-04T04:56:22.700641Z","ephemeral":false,"#,
                r#""dependencies":[{"issue_id":"a","depends_on_id":"b","type":"blocks","created_by":"x"},"#,
                r#"{"issue_id":"a","depends_on_id":"c","type":"related"}],"metadata":{"b":{},"z":1}}"#
            )
        );
    }

    #[test]
    fn a_row_counts_as_it_is_read() {
        let of = |fields: &str| {
            let row = format!(r#"{{"id":"a","title":"t",{fields}}}"#);
            snapshot_ref([&IssueRow::parse(&row).unwrap()].into_iter())
        };
        assert_eq!(of(r#""priority":4.0"#), of(r#""priority":4"#));
        assert_ne!(of(r#""priority":4.0"#), of(r#""priority":0.0"#));
        assert_eq!(of(r#""labels":["x",null]"#), of(r#""labels":["x"]"#));
        assert_eq!(of(r#""labels":[null]"#), of(r#""labels":[]"#));
    }

    #[test]
    fn the_order_of_fields_in_the_file_does_not_matter() {
        let a = r#"{"id":"a","title":"t","status":"open"}"#;
        let b = r#"{"title":"t","id":"a"}"#;
        let [a, b] = [a, b].map(|row| IssueRow::parse(row).unwrap());
        assert_eq!(
            snapshot_ref([&a].into_iter()),
            snapshot_ref([&b].into_iter())
        );
    }
}
