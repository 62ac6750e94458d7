//! What a vector expects and what was found.

use premath_kernel::failure::FailureClass;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Something that a vector expects and the gate does not give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The value that was compared.
    pub what: String,
    /// The value that the vector expects.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

/// The most places of two values that are reported one by one.
const PLACES: usize = 5;
/// The longest text of a value that is reported in full, in characters.
const LENGTH: usize = 100;

impl Difference {
    pub(super) fn new(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// Compares two sets of classes.
    pub(super) fn of_classes(
        what: &str,
        expected: &BTreeSet<FailureClass>,
        found: &BTreeSet<FailureClass>,
    ) -> Option<Self> {
        (expected != found).then(|| Self::new(what, listed(expected), listed(found)))
    }

    /// Compares two values, place by place.
    pub(super) fn of_values(what: &str, expected: &Value, found: &Value) -> Vec<Self> {
        let mut places = Vec::new();
        compare(what, expected, found, &mut places);
        places
    }
}

/// Returns classes as a person reads them.
pub(super) fn listed(classes: &BTreeSet<FailureClass>) -> String {
    if classes.is_empty() {
        return "none".to_owned();
    }
    let texts: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    texts.join(", ")
}

fn compare(at: &str, expected: &Value, found: &Value, places: &mut Vec<Difference>) {
    if places.len() == PLACES || expected == found {
        return;
    }
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let at = format!("{at}.{key}");
                side(&at, left.get(key), right.get(key), places);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                let at = format!("{at}[{index}]");
                side(&at, left.get(index), right.get(index), places);
            }
        }
        _ => places.push(Difference::new(at, excerpt(expected), excerpt(found))),
    }
}

fn side(at: &str, left: Option<&Value>, right: Option<&Value>, places: &mut Vec<Difference>) {
    match (left, right) {
        (Some(left), Some(right)) => compare(at, left, right, places),
        _ if places.len() == PLACES => {}
        _ => {
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), excerpt);
            places.push(Difference::new(at, text(left), text(right)));
        }
    }
}

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
