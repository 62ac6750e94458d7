//! Tools that hold and release leases. Such a lease ends by time
//! (`contracts.md` 4); what is asked reads as a dispatched action's payload.

use super::ToolArguments;
use crate::answer::Answer;
use crate::error::CliError;
use crate::issue;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::authority::transport::{DispatchRequest, Payload, TransportAction};
use premath_memory::IssueMemory;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The issue to claim.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClaimInput {
    /// The issue
    id: String,
    /// Who claims: the lease's owner, and the issue's assignee from then on
    assignee: String,
    /// The lease's id; by default made of issue and owner
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_id: Option<String>,
    #[serde(flatten)]
    term: TermInput,
}

/// The lease to renew.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RenewInput {
    /// The issue
    id: String,
    /// The lease's owner
    assignee: String,
    /// The lease's id
    lease_id: String,
    /// The lease must have this generation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(flatten)]
    term: TermInput,
}

/// The lease to release.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReleaseInput {
    /// The issue
    id: String,
    /// The lease's owner
    assignee: String,
    /// The lease's id
    lease_id: String,
    /// The lease must have this generation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

/// How long a lease lives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TermInput {
    /// How long the lease lives, 30 to 86400; 3600 where neither is given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ttl_seconds: Option<u64>,
    /// Until when it lives, RFC 3339
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<String>,
}

/// Reads the arguments by their schema, and then as the action's payload.
fn request<T: Serialize + DeserializeOwned>(
    action: TransportAction,
    arguments: ToolArguments,
) -> Result<DispatchRequest, CliError> {
    let tool = arguments.tool();
    let input: T = arguments.read()?;
    let payload = serde_json::to_value(input).map_err(|error| CliError::Arguments {
        tool,
        detail: error.to_string(),
    })?;
    Ok(Payload::read(action, payload)?.request)
}

pub(super) fn claim(
    memory: &IssueMemory,
    authority: &LeaseAuthority,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    match request::<ClaimInput>(TransportAction::IssueClaim, arguments)? {
        DispatchRequest::Claim { issue_id, request } => {
            Ok(issue::taken(&memory.claim(authority, &issue_id, request)?))
        }
        other => Err(unasked(&other)),
    }
}

pub(super) fn renew(
    memory: &IssueMemory,
    authority: &LeaseAuthority,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    match request::<RenewInput>(TransportAction::IssueLeaseRenew, arguments)? {
        DispatchRequest::Renew {
            issue_id,
            key,
            term,
        } => Ok(issue::renewed(
            &memory.renew(authority, &issue_id, key, term)?,
        )),
        other => Err(unasked(&other)),
    }
}

pub(super) fn release(
    memory: &IssueMemory,
    authority: &LeaseAuthority,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    match request::<ReleaseInput>(TransportAction::IssueLeaseRelease, arguments)? {
        DispatchRequest::Release { issue_id, key, .. } => Ok(issue::released(
            &memory.release(authority, &issue_id, key, None)?,
        )),
        other => Err(unasked(&other)),
    }
}

fn unasked(request: &DispatchRequest) -> CliError {
    CliError::Usage(format!("the payload reads as another request: {request:?}"))
}
