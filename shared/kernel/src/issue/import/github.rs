//! What `gh issue list --json …` prints: an array, or one object a line.

use super::{Found, ImportBody, ImportFault, ImportKey, ImportRecord};
use crate::issue::word::parse_priority;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The labels that say what type an issue has.
const TYPES: [(&str, &str); 8] = [
    ("bug", "bug"),
    ("enhancement", "feature"),
    ("feature", "feature"),
    ("epic", "epic"),
    ("chore", "chore"),
    ("type: bug", "bug"),
    ("type: feature", "feature"),
    ("kind/bug", "bug"),
];

/// The fields that have one of their own in a row, word for word.
const MAPPED: [&str; 5] = ["title", "body", "createdAt", "updatedAt", "closedAt"];

pub(super) fn read(text: &str) -> Found {
    let raws: Result<Vec<&RawValue>, serde_json::Error> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text),
        false => serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect(),
    };
    let raws = match raws {
        Ok(raws) => raws,
        Err(error) => {
            let line = error.line().max(1);
            let detail = format!("not JSON of `gh issue list`: {error}");
            return (Vec::new(), vec![ImportFault { line, detail }]);
        }
    };
    let mut records = Vec::new();
    let mut faults = Vec::new();
    for raw in raws {
        let line = line_of(text, raw.get());
        match record(raw.get(), line) {
            Ok(record) => records.push(record),
            Err(detail) => faults.push(ImportFault { line, detail }),
        }
    }
    // The oldest first, so that ids follow the numbers.
    records.sort_by_key(|(number, _)| *number);
    (
        records.into_iter().map(|(_, record)| record).collect(),
        faults,
    )
}

/// Returns the line at which a part of a text begins.
fn line_of(text: &str, part: &str) -> usize {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.as_bytes().get(..start).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn record(raw: &str, line: usize) -> Result<(u64, ImportRecord), String> {
    let fields: Map<String, Value> =
        serde_json::from_str(raw).map_err(|_| "expected an object".to_owned())?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(number) = fields.get("number").and_then(Value::as_u64) else {
        return Err("no `number`; export with `gh issue list --json number,title,…`".to_owned());
    };
    let title = text("title").trim();
    if title.is_empty() {
        return Err(format!("issue #{number}: no `title`"));
    }
    let status = match text("state").to_ascii_uppercase().as_str() {
        "" | "OPEN" => "open",
        "CLOSED" | "MERGED" => "closed",
        other => return Err(format!("issue #{number}: unknown `state` {other}")),
    };
    let labels = names(&fields, "labels", "name");
    let reference = match text("url") {
        "" => format!("gh-{number}"),
        url => url.to_owned(),
    };
    let mut row = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            row.insert(name.to_owned(), value.into());
        }
    };
    put("title", title);
    put("description", text("body"));
    put("status", status);
    put("issue_type", type_of(&labels));
    let assignees = names(&fields, "assignees", "login");
    put("assignee", assignees.first().map_or("", String::as_str));
    put("created_at", text("createdAt"));
    put("updated_at", text("updatedAt"));
    if status == "closed" {
        put("closed_at", text("closedAt"));
    }
    row.insert("priority".to_owned(), priority_of(&labels).into());
    if !labels.is_empty() {
        row.insert("labels".to_owned(), labels.into());
    }
    let rest: Map<String, Value> = fields
        .iter()
        .filter(|(name, value)| !MAPPED.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    row.insert("metadata".to_owned(), json!({ "github": rest }));
    let record = ImportRecord {
        line,
        key: ImportKey::Reference(reference),
        body: ImportBody::Fields(row),
        edges: Vec::new(),
    };
    Ok((number, record))
}

/// Returns a text of each object in a list; a text in it is taken as it is.
fn names(fields: &Map<String, Value>, list: &str, name: &str) -> Vec<String> {
    let list = fields.get(list).and_then(Value::as_array);
    let texts = list
        .into_iter()
        .flatten()
        .filter_map(|item| item.get(name).unwrap_or(item).as_str());
    texts
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect()
}

fn type_of(labels: &[String]) -> &'static str {
    let known = |label: &String| {
        let label = label.to_ascii_lowercase();
        TYPES.into_iter().find(|(word, _)| *word == label)
    };
    labels
        .iter()
        .find_map(known)
        .map_or("task", |(_, kind)| kind)
}

/// Returns the priority that a label says: `P1`, `priority: high`,
/// `priority/high`.
fn priority_of(labels: &[String]) -> i64 {
    let said = |label: &String| {
        let label = label.to_ascii_lowercase();
        let named = label.strip_prefix("priority");
        match named.map(|rest| rest.trim_start_matches([':', '/', '-', ' '])) {
            Some(word) => parse_priority(word).ok(),
            None if label.starts_with('p') => parse_priority(&label).ok(),
            None => None,
        }
    };
    let found = labels.iter().find_map(said);
    found.unwrap_or(crate::issue::DEFAULT_PRIORITY)
}
