//! A progress event as it is printed: with its time and the version of its form.

use super::ProgressEvent;
use crate::json::schema;
use crate::json::stamp::Stamp;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;

/// A line of `harness-coordinator --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventLine<'a> {
    /// The version of the line's form.
    schema: u8,
    /// When it was reported.
    at: Stamp,
    /// The event.
    #[serde(flatten)]
    event: ProgressEvent<'a>,
}

impl<'a> EventLine<'a> {
    /// Makes the line of an event that is reported at a time.
    pub fn at(at: Timestamp, event: ProgressEvent<'a>) -> Self {
        Self {
            schema: 1,
            at: Stamp::at(at),
            event,
        }
    }
}

/// Each event describes all its properties, as an event alone does.
impl JsonSchema for EventLine<'_> {
    fn schema_name() -> Cow<'static, str> {
        ProgressEvent::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut event = ProgressEvent::json_schema(generator);
        let events = event
            .get_mut("oneOf")
            .and_then(|events| events.as_array_mut());
        for one in events.into_iter().flatten() {
            if let Ok(described) = <&mut Schema>::try_from(&mut *one) {
                schema::require(described, "schema", schema::version());
                schema::require(described, "at", stamp());
            }
        }
        event
    }
}

fn stamp() -> Schema {
    json_schema!({
        "description": "When the event was reported.",
        "type": "string",
        "format": "date-time"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::canonical;

    #[test]
    fn a_line_has_its_time_and_the_version_of_its_form_beside_the_event() {
        let at = "2026-03-05T10:00:00.123456789Z".parse().unwrap();
        let line = EventLine::at(at, ProgressEvent::BatchWarning { detail: "d" });
        assert_eq!(
            canonical(&line),
            r#"{"at":"2026-03-05T10:00:00.123456Z","detail":"d","event":"batch.warning","schema":1}"#
        );
    }

    #[test]
    fn every_event_is_described_with_them() {
        let schema = schemars::schema_for!(EventLine<'_>).to_value();
        let events = schema["oneOf"].as_array().unwrap();
        assert!(!events.is_empty());
        for event in events {
            let required = event["required"].as_array().unwrap();
            for name in ["at", "event", "schema"] {
                assert!(required.contains(&name.into()), "{event}");
            }
        }
    }
}
