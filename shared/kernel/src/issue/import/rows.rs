//! Rows as beads and the harness write them: one a line, the last of an id wins.

use super::{Found, ImportBody, ImportFault, ImportKey, ImportRecord};
use crate::issue::Issue;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn read(text: &str) -> Found {
    let mut records: Vec<ImportRecord> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let row = line.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        match record(row, number) {
            Err(detail) => faults.push(ImportFault {
                line: number,
                detail,
            }),
            Ok((id, record)) => match known.get(&id) {
                Some(at) => records[*at] = record,
                None => {
                    known.insert(id, records.len());
                    records.push(record);
                }
            },
        }
    }
    (records, faults)
}

fn record(row: &str, line: usize) -> Result<(String, ImportRecord), String> {
    if !row.starts_with('{') {
        return Err("not an issue row: expected an object".to_owned());
    }
    let said = |error: serde_json::Error| {
        let text = error.to_string();
        // serde_json counts lines of its own input, which is one line.
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        format!("not an issue row: {text} (column {})", error.column())
    };
    let issue: Issue = serde_json::from_str(row).map_err(said)?;
    let fields: Value = serde_json::from_str(row).map_err(said)?;
    match fields.get("title").and_then(Value::as_str).map(str::trim) {
        None | Some("") => return Err(format!("issue {}: no title", issue.id)),
        Some(_) => {}
    }
    let id = issue.id.to_string();
    let record = ImportRecord {
        line,
        key: ImportKey::Id(id.clone()),
        body: ImportBody::Row(row.to_owned()),
        edges: Vec::new(),
    };
    Ok((id, record))
}
