//! The form of a stream: which events there are, and which fields they have.

use serde_json::Value;
use std::collections::BTreeSet;

/// Members whose content is user data.
const DATA: [&str; 6] = [
    "parameters",
    "input",
    "arguments",
    "models",
    "items",
    "diagnostics",
];

/// Returns the form of a stream: a line for every field of every kind of event.
pub fn form(stream: &str) -> BTreeSet<String> {
    let mut form = BTreeSet::new();
    for line in stream.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(event) => fields(&kind(&event), "", &event, &mut form),
            Err(_) => {
                form.insert("a line that is not JSON".to_owned());
            }
        }
    }
    form
}

/// Returns what came and what went between two forms, sorted, each with its sign.
pub fn changes(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let gone = before.difference(after).map(|field| format!("- {field}"));
    let come = after.difference(before).map(|field| format!("+ {field}"));
    gone.chain(come).collect()
}

/// An event's kind: its type, and that of what it is about.
fn kind(event: &Value) -> String {
    let own = event["type"].as_str().unwrap_or("?");
    let about = ["item", "part"]
        .iter()
        .find_map(|name| event[*name]["type"].as_str());
    match about {
        Some(about) => format!("{own}/{about}"),
        None => own.to_owned(),
    }
}

fn fields(kind: &str, path: &str, value: &Value, form: &mut BTreeSet<String>) {
    let word = match value {
        Value::Null => "null",
        Value::Bool(_) => "flag",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        form.insert(format!("{kind} {path}: {word}"));
    }
    let name = path.rsplit('.').next().unwrap_or_default();
    if DATA.contains(&name) {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                fields(kind, &path, value, form);
            }
        }
        Value::Array(values) => {
            for value in values {
                fields(kind, &format!("{path}[]"), value, form);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_comes_goes_or_is_of_another_kind_is_reported() {
        let before = form(r#"{"type":"a","item":{"type":"b","x":1,"input":{"q":1}}}"#);
        let after =
            form(r#"{"type":"a","item":{"type":"b","x":"1","input":{"r":1},"y":[{"z":null}]}}"#);
        assert_eq!(
            changes(&before, &after),
            [
                "- a/b item.x: number",
                "+ a/b item.x: text",
                "+ a/b item.y: list",
                "+ a/b item.y[].z: null",
                "+ a/b item.y[]: object",
            ]
        );
    }
}
