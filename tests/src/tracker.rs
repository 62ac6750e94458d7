//! Rows of issue memory.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows by id.
pub type Rows = BTreeMap<String, Value>;

/// Makes an open task.
pub fn issue(id: &str) -> Value {
    json!({
        "id": id,
        "title": format!("issue {id}"),
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    })
}

/// Reads every whole line; what is after the last newline is torn, or not yet
/// written.
pub fn parse_rows(text: &[u8]) -> Vec<Value> {
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    text[..whole]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            serde_json::from_slice(line).unwrap_or_else(|error| {
                panic!("{error} in line {:?}", String::from_utf8_lossy(line))
            })
        })
        .collect()
}

/// Keeps the last row of each id.
pub fn last_rows(rows: Vec<Value>) -> Rows {
    rows.into_iter()
        .map(|row| {
            let id = row["id"].as_str().expect("a row has an id").to_owned();
            (id, row)
        })
        .collect()
}
