//! The lease of an issue, as its row has it (`contracts.md` 4).

use crate::json::id::LeaseId;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The right to work on one issue until a time, as it is stored in the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// The lease's id.
    #[serde(default, deserialize_with = "text_or_null")]
    #[schemars(with = "Option<Box<str>>")]
    pub lease_id: LeaseId,
    /// The owner of the lease.
    #[serde(default, deserialize_with = "text_or_null")]
    #[schemars(with = "Option<Box<str>>")]
    pub owner: Box<str>,
    /// When it was claimed, RFC 3339.
    #[serde(default, deserialize_with = "text_or_null")]
    #[schemars(schema_with = "crate::json::schema::time_or_null")]
    pub acquired_at: Box<str>,
    /// Until when it is good by the wall clock, RFC 3339.
    #[serde(default, deserialize_with = "text_or_null")]
    #[schemars(schema_with = "crate::json::schema::time_or_null")]
    pub expires_at: Box<str>,
    /// When it was last renewed, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::json::schema::time_or_null")]
    pub renewed_at: Option<Box<str>>,
    /// The fencing token (ours); 0 in rows of others.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "number_or_null"
    )]
    #[schemars(with = "Option<u64>")]
    pub generation: u64,
    /// The process that holds it (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// The assignee to go back to on release (ours).
    #[serde(
        default,
        skip_serializing_if = "str::is_empty",
        deserialize_with = "text_or_null"
    )]
    #[schemars(with = "Option<Box<str>>")]
    pub assignee_before: Box<str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn text_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The process that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// The host's name.
    pub host: Box<str>,
    /// The id of the host's boot.
    pub boot_id: Box<str>,
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot: pids come again.
    pub started: u64,
    /// Until when the lease is good, in milliseconds on CLOCK_BOOTTIME.
    #[serde(default)]
    pub deadline_ms: u64,
    /// The pid namespace that `pid` counts in, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<Box<str>>,
}
