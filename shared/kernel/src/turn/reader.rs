//! Reads JSON objects field by field, with the place of every fault.

use super::evidence::Policy;
use super::path::{EvidenceError, Path};
use super::word::Word;
use crate::json::strict::excerpt;
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The fields of one object; a field that is not read is unknown.
pub(super) struct BlockFields<'p> {
    path: &'p Path<'p>,
    map: Map<String, Value>,
    unknown: &'p Unknown,
}

/// The paths of the unread fields, from every depth.
pub(super) type Unknown = RefCell<BTreeSet<String>>;

impl<'p> BlockFields<'p> {
    fn open(value: Value, path: &'p Path<'p>, unknown: &'p Unknown) -> Result<Self, EvidenceError> {
        match value {
            Value::Object(map) => Ok(Self { path, map, unknown }),
            other => Err(path.error(format!("must be an object, not {}", kind(&other)))),
        }
    }

    /// Takes a required string as it is; normalisation inspects it.
    pub(super) fn string(&mut self, name: &str) -> Result<String, EvidenceError> {
        match self.map.remove(name) {
            Some(Value::String(text)) => Ok(text),
            other => Err(self.fault(name, "must be a non-empty string", other)),
        }
    }

    /// Takes an optional string; null reads as absent.
    pub(super) fn optional_string(&mut self, name: &str) -> Result<Option<String>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            other => Err(self.fault(name, "must be a string", other)),
        }
    }

    /// Takes a word of a closed set.
    pub(super) fn word<W: Word>(&mut self, name: &str) -> Result<W, EvidenceError> {
        match self.optional_word(name)? {
            Some(word) => Ok(word),
            None => Err(self.fault(name, &format!("must be one of {}", W::ADMITTED), None)),
        }
    }

    /// Takes an optional word; null and the empty string read as absent.
    pub(super) fn optional_word<W: Word>(
        &mut self,
        name: &str,
    ) -> Result<Option<W>, EvidenceError> {
        let Some(text) = self.optional_string(name)? else {
            return Ok(None);
        };
        let word = text.trim().to_ascii_lowercase();
        if word.is_empty() {
            return Ok(None);
        }
        W::read(&word).map(Some).ok_or_else(|| {
            let expected = format!("must be one of {}, not {}", W::ADMITTED, excerpt(&text));
            self.path.field(name).error(expected)
        })
    }

    /// Takes a boolean that is false where absent; null is a fault.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, EvidenceError> {
        match self.map.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            other => Err(self.fault(name, "must be true or false", other)),
        }
    }

    /// Takes a boolean that must be there.
    pub(super) fn required_flag(&mut self, name: &str) -> Result<bool, EvidenceError> {
        match self.map.remove(name) {
            Some(Value::Bool(flag)) => Ok(flag),
            other => Err(self.fault(name, "must be true or false", other)),
        }
    }

    /// Takes an optional boolean; null reads as absent.
    pub(super) fn optional_flag(&mut self, name: &str) -> Result<Option<bool>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            other => Err(self.fault(name, "must be true or false", other)),
        }
    }

    /// Takes a list that is empty where absent; null is a fault.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, EvidenceError> {
        match self.map.remove(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            other => Err(self.fault(name, "must be a list", other)),
        }
    }

    /// Takes a list of strings as a set.
    pub(super) fn refs(&mut self, name: &str) -> Result<BTreeSet<String>, EvidenceError> {
        let path = self.path.field(name);
        self.list(name)?
            .into_iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => Ok(text),
                other => Err(path
                    .row(index)
                    .error(format!("must be a string, not {}", kind(&other)))),
            })
            .collect()
    }

    /// Takes a list of rows, each read by `row`.
    pub(super) fn rows<T>(
        &mut self,
        name: &str,
        row: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
    ) -> Result<Vec<T>, EvidenceError> {
        let path = self.path.field(name);
        self.list(name)?
            .into_iter()
            .enumerate()
            .map(|(index, item)| read(item, &path.row(index), self.unknown, &row))
            .collect()
    }

    /// Takes a list of rows; rows of one key must agree.
    pub(super) fn keyed_rows<T: PartialEq>(
        &mut self,
        name: &str,
        key: &str,
        key_of: impl Fn(&T) -> &String,
        row: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
    ) -> Result<Vec<T>, EvidenceError> {
        let rows = self.rows(name, row)?;
        let path = self.path.field(name);
        let mut first: BTreeMap<&str, &T> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            if *first.entry(key_of(row)).or_insert(row) != row {
                return Err(path
                    .row(index)
                    .field(key)
                    .error(disagreement(&excerpt(key_of(row)))));
            }
        }
        Ok(rows)
    }

    /// Takes an object that must be there, read by `object`.
    pub(super) fn object<T>(
        &mut self,
        name: &str,
        object: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
    ) -> Result<T, EvidenceError> {
        match self.map.remove(name) {
            Some(value @ Value::Object(_)) => {
                read(value, &self.path.field(name), self.unknown, object)
            }
            other => Err(self.fault(name, "must be an object", other)),
        }
    }

    /// Takes an optional object; null reads as absent.
    pub(super) fn optional_object<T>(
        &mut self,
        name: &str,
        object: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
    ) -> Result<Option<T>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value, &self.path.field(name), self.unknown, object).map(Some),
        }
    }

    /// Takes any value; null reads as absent.
    pub(super) fn payload(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Takes an optional string, trimmed; null and the empty one read as absent.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, EvidenceError> {
        Ok(self.optional_string(name)?.and_then(trimmed))
    }

    /// Takes a required string, trimmed.
    pub(super) fn name(&mut self, name: &str) -> Result<String, EvidenceError> {
        let text = self.string(name)?;
        trimmed(text).ok_or_else(|| self.path.field(name).error("must be a non-empty string"))
    }

    /// Takes a list of strings as a set, trimmed.
    pub(super) fn names(&mut self, name: &str) -> Result<BTreeSet<String>, EvidenceError> {
        Ok(self.refs(name)?.into_iter().filter_map(trimmed).collect())
    }

    /// Takes an optional list of strings as a set, trimmed; null is a fault.
    pub(super) fn optional_names(
        &mut self,
        name: &str,
    ) -> Result<Option<BTreeSet<String>>, EvidenceError> {
        if self.map.contains_key(name) {
            self.names(name).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Takes a list of words as a set.
    pub(super) fn words<W: Word + Ord>(
        &mut self,
        name: &str,
    ) -> Result<BTreeSet<W>, EvidenceError> {
        let path = self.path.field(name);
        self.list(name)?
            .into_iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => {
                    W::read(&text.trim().to_ascii_lowercase()).ok_or_else(|| {
                        path.row(index).error(format!(
                            "must be one of {}, not {}",
                            W::ADMITTED,
                            excerpt(&text)
                        ))
                    })
                }
                other => Err(path.row(index).error(format!(
                    "must be one of {}, not {}",
                    W::ADMITTED,
                    kind(&other)
                ))),
            })
            .collect()
    }

    /// Takes an optional list of words as a set; null is a fault.
    pub(super) fn optional_words<W: Word + Ord>(
        &mut self,
        name: &str,
    ) -> Result<Option<BTreeSet<W>>, EvidenceError> {
        if self.map.contains_key(name) {
            self.words(name).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Takes a whole number that must be there.
    pub(super) fn count(&mut self, name: &str) -> Result<u64, EvidenceError> {
        match self.optional_count(name)? {
            Some(count) => Ok(count),
            None => Err(self.fault(name, WHOLE, None)),
        }
    }

    /// Takes an optional whole number; null reads as absent.
    pub(super) fn optional_count(&mut self, name: &str) -> Result<Option<u64>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => match number.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(self
                    .path
                    .field(name)
                    .error(format!("{WHOLE}, not {number}"))),
            },
            other => Err(self.fault(name, WHOLE, other)),
        }
    }

    /// Takes an optional whole number counted from 1; null reads as absent.
    pub(super) fn optional_ordinal(&mut self, name: &str) -> Result<Option<u64>, EvidenceError> {
        match self.optional_count(name)? {
            Some(0) => Err(self.path.field(name).error("must be 1 or more, not 0")),
            count => Ok(count),
        }
    }

    /// Takes a number that must be there.
    pub(super) fn number(&mut self, name: &str) -> Result<Number, EvidenceError> {
        match self.optional_number(name)? {
            Some(number) => Ok(number),
            None => Err(self.fault(name, "must be a number", None)),
        }
    }

    /// Takes an optional number; null reads as absent.
    pub(super) fn optional_number(&mut self, name: &str) -> Result<Option<Number>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            other => Err(self.fault(name, "must be a number", other)),
        }
    }

    /// Takes an optional number between 0 and 1; null reads as absent.
    pub(super) fn optional_share(&mut self, name: &str) -> Result<Option<Number>, EvidenceError> {
        let share = self.optional_number(name)?;
        match share.as_ref().and_then(Number::as_f64) {
            Some(value) if !(0.0..=1.0).contains(&value) => Err(self
                .path
                .field(name)
                .error(format!("must be between 0 and 1, not {value}"))),
            _ => Ok(share),
        }
    }

    /// Takes a policy: its content as an object, or a reference as a string.
    pub(super) fn policy<T>(
        &mut self,
        name: &str,
        content: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
    ) -> Result<Option<Policy<T>>, EvidenceError> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(reference)) => Ok(Some(Policy::Ref(reference))),
            Some(value @ Value::Object(_)) => {
                read(value, &self.path.field(name), self.unknown, content)
                    .map(|content| Some(Policy::Content(content)))
            }
            other => Err(self.fault(
                name,
                "must be an object, or a string that refers to one",
                other,
            )),
        }
    }

    /// Takes an object whose keys are names, each value read by `value`.
    pub(super) fn map<T>(
        &mut self,
        name: &str,
        value: impl Fn(&mut BlockFields<'_>, &str) -> Result<T, EvidenceError>,
    ) -> Result<BTreeMap<String, T>, EvidenceError> {
        Ok(self.optional_map(name, value)?.unwrap_or_default())
    }

    /// Takes an optional object whose keys are names, trimmed; null reads as
    /// absent.
    pub(super) fn optional_map<T>(
        &mut self,
        name: &str,
        value: impl Fn(&mut BlockFields<'_>, &str) -> Result<T, EvidenceError>,
    ) -> Result<Option<BTreeMap<String, T>>, EvidenceError> {
        let key = |key: &str| trimmed(key.to_owned()).ok_or("must be a non-empty name");
        self.optional_object(name, |fields| fields.entries(key, &value))
    }

    /// Takes an object that must be there, whose keys are words.
    pub(super) fn word_map<W: Word + Ord, T>(
        &mut self,
        name: &str,
        value: impl Fn(&mut BlockFields<'_>, &str) -> Result<T, EvidenceError>,
    ) -> Result<BTreeMap<W, T>, EvidenceError> {
        let expected = format!("must be one of {}", W::ADMITTED);
        let key = |key: &str| W::read(&key.trim().to_ascii_lowercase()).ok_or(expected.as_str());
        self.object(name, |fields| fields.entries(key, &value))
    }

    /// Takes all that is there as entries; no two keys may read alike.
    fn entries<'e, K: Ord, T>(
        &mut self,
        key: impl Fn(&str) -> Result<K, &'e str>,
        value: impl Fn(&mut BlockFields<'_>, &str) -> Result<T, EvidenceError>,
    ) -> Result<BTreeMap<K, T>, EvidenceError> {
        let names: Vec<String> = self.map.keys().cloned().collect();
        let mut entries = BTreeMap::new();
        for name in &names {
            let fault = |expected: &str| self.path.field(name).error(expected);
            let key = key(name).map_err(fault)?;
            let value = value(self, name)?;
            if entries.insert(key, value).is_some() {
                let expected = "duplicates another name after normalisation";
                return Err(self.path.field(name).error(expected));
            }
        }
        Ok(entries)
    }

    fn fault(&self, name: &str, expected: &str, found: Option<Value>) -> EvidenceError {
        let expected = match found {
            None => format!("is missing: {expected}"),
            Some(value) => format!("{expected}, not {}", kind(&value)),
        };
        self.path.field(name).error(expected)
    }
}

const WHOLE: &str = "must be a whole number";

fn trimmed(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Describes a row whose key appeared before with different content.
pub(super) fn disagreement(key: &str) -> String {
    format!("{key} repeats an earlier row with different content")
}

/// Reads one object and notes the fields that were left.
pub(super) fn read<T>(
    value: Value,
    path: &Path<'_>,
    unknown: &Unknown,
    object: impl Fn(&mut BlockFields<'_>) -> Result<T, EvidenceError>,
) -> Result<T, EvidenceError> {
    let mut fields = BlockFields::open(value, path, unknown)?;
    let read = object(&mut fields)?;
    unknown
        .borrow_mut()
        .extend(fields.map.keys().map(|name| path.field(name).any_row()));
    Ok(read)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
