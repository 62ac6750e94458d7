//! Requests, results and uses (`HARNESS-TYPESTATE 3.2`).
//!
//! The fields of each row are in the byte order of their names on the wire, so
//! that a row is written canonically as it is
//! ([`canonical::digest_ordered`](crate::json::canonical::digest_ordered)).

use super::super::block::block;
use super::super::word::{Disposition, ResultStatus};
use super::detail::{RequestFacts, ResultFacts};
use crate::json::read::unless_blank;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

block! {
    /// A requested tool call.
    #[derive(Default)]
    pub struct RequestRow by tool_call_id {
        /// The caller of the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub caller_id: Option<String>,
        /// What else is known about the request (ours).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub facts: Option<Box<RequestFacts>>,
        /// The digest of the schema that the call was checked against.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub schema_digest: Option<String>,
        /// The search by which the tool was found.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub search_ref_digest: Option<String>,
        /// The call's identity.
        pub tool_call_id: String,
        /// The tool's name.
        pub tool_name: String,
    }
}

impl RequestRow {
    /// Makes a request with no more than its two required fields.
    pub fn new(tool_call_id: impl Into<String>, tool_name: impl Into<String>) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            tool_name: tool_name.into(),
            ..Self::default()
        }
    }
}

/// The end of one tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultRow {
    /// The call's identity.
    pub tool_call_id: String,
    /// How it ended; where absent, error material decides.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub status: Option<ResultStatus>,
    /// The digest of what it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    /// What it gave, digested where no `resultDigest` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Whether another try may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The error's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The error as the provider gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_error: Option<Value>,
    /// What else is known about the result (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<ResultFacts>>,
}

impl ResultRow {
    /// Makes the row of a call that succeeded.
    pub fn ok(tool_call_id: impl Into<String>, result_digest: impl Into<String>) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            status: Some(ResultStatus::Ok),
            result_digest: Some(result_digest.into()),
            ..Self::default()
        }
    }

    /// Makes the row of a call that failed, with a complete envelope.
    pub fn error(
        tool_call_id: impl Into<String>,
        error_code: impl Into<String>,
        retryable: bool,
        error_message: impl Into<String>,
    ) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            status: Some(ResultStatus::Error),
            error_code: Some(error_code.into()),
            retryable: Some(retryable),
            error_message: Some(error_message.into()),
            ..Self::default()
        }
    }
}

block! {
    /// The outcome of one result.
    pub struct UseRow by tool_call_id {
        /// The disposition of the result.
        pub disposition: Disposition,
        /// What was built on it; a consumed result needs one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub provenance_ref: Option<String>,
        /// The digest of the result that was used.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub result_digest: Option<String>,
        /// The call's identity.
        pub tool_call_id: String,
        /// Why; a discarded result needs one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub use_reason: Option<String>,
    }
}

impl UseRow {
    /// Makes the row of a result that something was built on.
    pub fn consumed(tool_call_id: impl Into<String>, provenance_ref: impl Into<String>) -> Self {
        Self {
            provenance_ref: Some(provenance_ref.into()),
            ..Self::of(tool_call_id, Disposition::Consumed)
        }
    }

    /// Makes the row of a result that was looked at.
    pub fn observed(tool_call_id: impl Into<String>) -> Self {
        Self::of(tool_call_id, Disposition::Observed)
    }

    fn of(tool_call_id: impl Into<String>, disposition: Disposition) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            disposition,
            result_digest: None,
            use_reason: None,
            provenance_ref: None,
        }
    }
}
