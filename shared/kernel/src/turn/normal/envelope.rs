//! Error envelopes of tool results (`contracts.md` 2).
//!
//! The same row is read twice. The normal form fills what is missing, so that
//! every row has a digest; the gate asks what is really there.

use super::super::evidence::ResultRow;
use super::super::word::ResultStatus;
use crate::json::canonical;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

const CODE: [&str; 2] = ["errorCode", "code"];
const RETRYABLE: &str = "retryable";
const MESSAGE: [&str; 2] = ["errorMessage", "message"];

/// A failed call's envelope in normal form, with missing parts filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEnvelope {
    /// The code, `unknown_error` where none is usable.
    pub error_code: String,
    /// The digest of the message's text, of the empty text where there is none.
    pub error_message_digest: String,
    /// Whether a retry may help; false if not reported.
    pub retryable: bool,
}

/// Returns a row's status and, for an error, its envelope in normal form.
pub(super) fn normal(row: &ResultRow) -> (ResultStatus, Option<ErrorEnvelope>) {
    let raw = row.raw_error.as_ref();
    let code = usable(row.error_code.as_deref()).or_else(|| first_present(raw, CODE));
    let retryable = row.retryable.or_else(|| raw_flag(raw));
    let message = usable(row.error_message.as_deref()).or_else(|| first_present(raw, MESSAGE));
    let material = code.is_some() || retryable.is_some() || message.is_some();
    let status = row.status.unwrap_or(if material {
        ResultStatus::Error
    } else {
        ResultStatus::Ok
    });
    let envelope = (status == ResultStatus::Error).then(|| ErrorEnvelope {
        error_code: code.unwrap_or("unknown_error").to_owned(),
        retryable: retryable.unwrap_or(false),
        error_message_digest: format!(
            "sha256:{}",
            canonical::sha256_hex(message.unwrap_or("").as_bytes())
        ),
    });
    (status, envelope)
}

/// Returns whether a row that is an error, or may be one, lacks a part of its
/// envelope (`HARNESS-TYPESTATE 3.2`).
pub(super) fn is_incomplete(row: &ResultRow) -> bool {
    let raw = row.raw_error.as_ref();
    let own_code = usable(row.error_code.as_deref());
    let own_message = usable(row.error_message.as_deref());
    let is_error = match row.status {
        Some(status) => status == ResultStatus::Error,
        // Any raw error makes the row suspect, also an empty one.
        None => {
            own_code.is_some()
                || row.retryable.is_some()
                || own_message.is_some()
                || raw.is_some_and(|raw| !raw.is_null())
        }
    };
    let complete = own_code.or_else(|| first_usable(raw, CODE)).is_some()
        && row.retryable.or_else(|| raw_flag(raw)).is_some()
        && own_message.or_else(|| first_usable(raw, MESSAGE)).is_some();
    is_error && !complete
}

fn usable(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn raw_flag(raw: Option<&Value>) -> Option<bool> {
    raw?.get(RETRYABLE)?.as_bool()
}

/// The normal form takes the first key that is there, whatever it holds.
fn first_present<'a>(raw: Option<&'a Value>, keys: [&str; 2]) -> Option<&'a str> {
    let raw = raw?;
    usable(keys.iter().find_map(|key| raw.get(key))?.as_str())
}

/// The gate takes the first key that holds something usable.
fn first_usable<'a>(raw: Option<&'a Value>, keys: [&str; 2]) -> Option<&'a str> {
    let raw = raw?;
    keys.iter().find_map(|key| usable(raw.get(key)?.as_str()))
}
