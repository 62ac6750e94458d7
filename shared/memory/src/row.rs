//! A row's text, changed field by field: what is not changed keeps its place
//! and its value, to the last digit.

use premath_kernel::issue::{Issue, RowChange};
use premath_kernel::json::time;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// How many bytes a change adds to a row, as a rule.
const NEWS: usize = 512;

/// An issue with the text of its row.
#[derive(Clone, Debug)]
pub struct IssueRow {
    /// What the rules look at.
    pub issue: Issue,
    /// The row as it is stored in the file, without its newline.
    pub text: Box<str>,
}

impl IssueRow {
    /// Reads a row.
    ///
    /// # Errors
    ///
    /// What `serde_json` says is wrong, with its column.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let text = text.trim();
        // A derived struct would read an array as its fields in order.
        if !text.starts_with('{') {
            return Err(serde::de::Error::custom("expected an object"));
        }
        let issue: Issue = serde_json::from_str(text)?;
        Ok(Self {
            issue,
            text: text.into(),
        })
    }

    /// Returns one text field of the row, empty where there is none.
    ///
    /// A text that JSON readers refuse, such as half a surrogate pair, comes as
    /// it is stored in the row.
    pub fn text_of(&self, field: &str) -> String {
        match self.field(field) {
            Ok(Some(Value::String(text))) => text,
            Ok(_) => String::new(),
            Err(raw) => raw,
        }
    }

    /// Returns whether a field of the row is `true`.
    pub fn is_set(&self, field: &str) -> bool {
        matches!(self.field(field), Ok(Some(Value::Bool(true))))
    }

    /// Returns when an operator last changed the row, where one did.
    pub fn operator_changed_at(&self) -> Option<jiff::Timestamp> {
        let record = self.field("operator_override").ok()??;
        time::parse(record["at"].as_str()?)
    }

    /// Returns one field of the row; `Err` with its text where it cannot be read.
    pub(crate) fn field(&self, name: &str) -> Result<Option<Value>, String> {
        let fields = self.fields();
        let Some((_, Text::Old(raw))) = fields.0.iter().rfind(|(field, _)| field == name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|_| raw.get().to_owned())
    }

    /// Returns the whole row as JSON, a field that cannot be read as its text.
    pub fn value(&self) -> Value {
        let fields = self.fields();
        let read = |text: &Text<'_>| match text {
            Text::Old(raw) => serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into()),
            Text::New(text) => text.as_str().into(),
        };
        Value::Object(
            fields
                .0
                .iter()
                .map(|(name, text)| (name.clone(), read(text)))
                .collect(),
        )
    }

    fn fields(&self) -> RowFields<'_> {
        // The row was read as an object before; its fields can be
        // distinguished.
        serde_json::from_str(&self.text).unwrap_or(RowFields(Vec::new()))
    }

    /// Returns the row with a change made.
    pub(crate) fn with(&self, change: &RowChange) -> Result<Self, serde_json::Error> {
        let mut fields: RowFields<'_> = serde_json::from_str(&self.text)?;
        for (name, value) in change.fields() {
            // Readers take the last of a field that appears twice: one stays.
            let at = fields.0.iter().position(|(field, _)| field == name);
            fields.0.retain(|(field, _)| field != name);
            if let Some(value) = value {
                let at = at.unwrap_or(fields.0.len()).min(fields.0.len());
                fields
                    .0
                    .insert(at, (name.to_owned(), Text::New(value.to_string())));
            }
        }
        Self::parse(&fields.written(self.text.len() + NEWS)?)
    }
}

enum Text<'a> {
    Old(&'a RawValue),
    New(String),
}

/// The fields of an object in the order in which they appear.
struct RowFields<'a>(Vec<(String, Text<'a>)>);

impl<'de> Deserialize<'de> for RowFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = RowFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RowFields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((name, Text::Old(value)));
                }
                Ok(RowFields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl RowFields<'_> {
    /// Writes the object, which takes about `length` bytes.
    fn written(&self, length: usize) -> Result<String, serde_json::Error> {
        let mut text = String::with_capacity(length);
        text.push('{');
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(name)?);
            text.push(':');
            text.push_str(match value {
                Text::Old(raw) => raw.get(),
                Text::New(text) => text,
            });
        }
        text.push('}');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_json_readers_refuse_costs_itself_alone() {
        let row = IssueRow::parse(
            r#"{"id":"a","title":"bad \ud83d","notes":"n","huge":1e999,"dependencies":[{"depends_on_id":"b"}]}"#,
        )
        .unwrap();
        assert_eq!(row.text_of("title"), r#""bad \ud83d""#);
        assert_eq!(row.text_of("notes"), "n");
        assert_eq!(row.value()["id"], "a");
        assert!(row.field("huge").is_err());
        assert!(row.field("dependencies").unwrap().unwrap().is_array());
        let mut change = RowChange::new();
        change.set("status", "closed");
        let text = row.with(&change).unwrap().text;
        assert!(text.contains(r#""title":"bad \ud83d""#) && text.contains(r#""huge":1e999"#));
    }

    #[test]
    fn a_field_that_appears_twice_appears_once_after_its_change() {
        let row = IssueRow::parse(r#"{"id":"a","notes":"1","x":1,"notes":"2"}"#).unwrap();
        assert_eq!(row.text_of("notes"), "2");
        let mut change = RowChange::new();
        change.set("notes", "3");
        assert_eq!(
            &*row.with(&change).unwrap().text,
            r#"{"id":"a","notes":"3","x":1}"#
        );
    }

    #[test]
    fn what_is_not_changed_keeps_its_place_and_its_every_digit() {
        let row = IssueRow::parse(
            r#"  {"odd":1.000000000000000000001, "id":"a","big":123456789012345678901234567890,"status":"open","n":null,"s":"\u00e9\/"}"#,
        )
        .unwrap();
        let mut change = RowChange::new();
        change
            .set("status", "closed")
            .set("assignee", "w")
            .remove("n");
        let row = row.with(&change).unwrap();
        assert_eq!(
            &*row.text,
            r#"{"odd":1.000000000000000000001,"id":"a","big":123456789012345678901234567890,"status":"closed","s":"\u00e9\/","assignee":"w"}"#
        );
    }
}
