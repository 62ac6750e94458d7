//! `premath transport-dispatch` (`contracts.md` 9).
//!
//! A rejected action is an answer like any other: the verdict is data.

use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::issue::view::{IssueView, item};
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::authority::transport::{
    DISPATCH_KIND, DispatchRequest, PROFILE_ID, Payload, TransportAction, UNKNOWN_ACTION_ID,
    WorldBinding, semantic_digest,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseProjection;
use premath_memory::cause::chain;
use premath_memory::dispatch::{dispatch, row_of};
use premath_memory::{ChangeError, IssueMemory, IssueRow, clock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Arguments of `premath transport-dispatch`.
#[derive(Debug, Args)]
pub(crate) struct TransportDispatchArgs {
    /// Perform this action: issue.claim, issue.claim_next, issue.lease_renew,
    /// issue.lease_release or issue.lease.state
    #[arg(long, value_name = "ACTION")]
    action: String,
    /// Set the payload, a JSON object: id, assignee, leaseId, leaseTtlSeconds or leaseExpiresAt,
    /// generation, issuesPath
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        hide_default_value = true
    )]
    payload: String,
    /// Set the transport: mcp or local-repl [default:
    /// $PREMATH_HOST_ACTION_TRANSPORT, else mcp]
    #[arg(long, value_name = "TRANSPORT")]
    host_action_transport: Option<String>,
}

/// The answer of a dispatch.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DispatchAnswer<'a> {
    #[schemars(extend("const" = 1))]
    schema: u8,
    #[schemars(extend("const" = DISPATCH_KIND))]
    dispatch_kind: &'static str,
    /// The action as it was asked for.
    action: &'a str,
    /// The action's id.
    action_id: &'static str,
    #[schemars(extend("const" = PROFILE_ID))]
    profile_id: &'static str,
    /// The verdict.
    result: CheckVerdict,
    /// The classes for which the action was rejected.
    failure_classes: Vec<FailureClass>,
    /// Why it was rejected, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostic: Option<String>,
    /// Whether the issue store was changed; absent if the action was not
    /// performed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    /// `ts1_` and the digest over profile, kind, action and action id.
    #[schemars(regex(pattern = r"^ts1_[0-9a-f]{64}$"))]
    semantic_digest: String,
    /// The issue as it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<IssueView<'a>>,
    /// The leases that need attention now.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_projection: Option<LeaseProjection>,
    /// What the action is bound to; null where there is no such action.
    world_binding: Option<WorldBinding>,
}

/// Why an action was not carried out.
struct Rejection {
    class: FailureClass,
    diagnostic: String,
}

impl Rejection {
    fn of(class: FailureClass, error: &dyn std::error::Error) -> Self {
        Self {
            class,
            diagnostic: chain(error),
        }
    }
}

/// The outcome of an action.
struct Done {
    row: Option<IssueRow>,
    changed: bool,
    projection: LeaseProjection,
}

impl TransportDispatchArgs {
    pub(crate) fn run(self) -> Finished {
        const ACTION: &str = "transport.dispatch";
        let payload = match serde_json::from_str::<Value>(&self.payload) {
            Ok(payload) => payload,
            Err(error) => {
                let detail = format!("--payload is not JSON: {error}");
                return Finished::new(ACTION, Err(CliError::Usage(detail)));
            }
        };
        let given = Payload::issues_path_of(&payload).map(PathBuf::from);
        Finished::on(ACTION, "issuesPath", paths::issues(given), |path| {
            let is_local = self.is_local()?;
            let action = self.action.trim().parse::<TransportAction>();
            let done = match &action {
                Ok(action) => carry_out(*action, payload, path, is_local),
                Err(error) => Err(Rejection::of(FailureClass::TransportUnknownAction, error)),
            };
            Ok(answer(self.action.trim(), action.ok(), done))
        })
    }

    fn is_local(&self) -> Result<bool, CliError> {
        const VARIABLE: &str = "PREMATH_HOST_ACTION_TRANSPORT";
        let variable = paths::variable(VARIABLE).map(|v| v.to_string_lossy().into_owned());
        let named = self.host_action_transport.clone().or(variable);
        match named.as_deref().map(str::trim) {
            None | Some("mcp") => Ok(false),
            Some("local-repl") => Ok(true),
            Some(other) => Err(CliError::Usage(format!(
                "unknown host action transport `{other}`; expected `mcp` or `local-repl`"
            ))),
        }
    }
}

fn carry_out(
    action: TransportAction,
    payload: Value,
    path: &Path,
    is_local: bool,
) -> Result<Done, Rejection> {
    if is_local && action.needs_mcp() {
        return Err(Rejection {
            class: FailureClass::HostActionMcpTransportRequired,
            diagnostic: format!("{} is not available on local-repl", action.as_str()),
        });
    }
    let cli = |error: CliError| {
        let class = error.class().unwrap_or(FailureClass::LeaseMutationStoreIo);
        Rejection::of(class, &error)
    };
    let payload =
        Payload::read(action, payload).map_err(|error| Rejection::of(error.class(), &error))?;
    let authority = Reason::default().authority().map_err(cli)?;
    let memory = paths::open(path, false).map_err(cli)?;
    let (row, changed) = perform(&memory, &authority.lease_authority(), payload.request)
        .map_err(|error| Rejection::of(error.class(), &error))?;
    let seen = clock::observe();
    let projection = memory
        .view(|view| LeaseProjection::of(view.rows().map(|row| &row.issue), &seen))
        .map_err(|error| Rejection::of(error.class(), &error))?;
    Ok(Done {
        row,
        changed,
        projection,
    })
}

/// Carries a request out; returns the row that it is about, and whether that
/// was changed. A lease that is released already need not be released again:
/// the answer of an earlier request may have been lost.
fn perform(
    memory: &IssueMemory,
    authority: &LeaseAuthority,
    request: DispatchRequest,
) -> Result<(Option<IssueRow>, bool), ChangeError> {
    let released = match &request {
        DispatchRequest::Release { issue_id, .. } => Some(issue_id.clone()),
        _ => None,
    };
    let looks = matches!(request, DispatchRequest::State { .. });
    match (dispatch(memory, authority, request), released) {
        (Err(error), Some(issue_id)) if error.class() == FailureClass::LeaseMissing => {
            Ok((Some(row_of(memory, &issue_id)?), false))
        }
        (Ok(row), _) => {
            let changed = row.is_some() && !looks;
            Ok((row, changed))
        }
        (Err(error), _) => Err(error),
    }
}

fn answer(action: &str, known: Option<TransportAction>, done: Result<Done, Rejection>) -> Answer {
    let action_id = known.map_or(UNKNOWN_ACTION_ID, TransportAction::id);
    let mut document = DispatchAnswer {
        schema: 1,
        dispatch_kind: DISPATCH_KIND,
        action,
        action_id,
        profile_id: PROFILE_ID,
        result: CheckVerdict::of(done.is_ok()),
        failure_classes: Vec::new(),
        diagnostic: None,
        changed: None,
        semantic_digest: semantic_digest(action, action_id),
        issue: None,
        lease_projection: None,
        world_binding: known.and_then(TransportAction::world_binding),
    };
    let (row, text) = match done {
        Ok(done) => {
            document.changed = Some(done.changed);
            let about = match &done.row {
                Some(row) => format!("{} [{}]", row.issue.id, row.issue.status.as_str()),
                None if known == Some(TransportAction::IssueLeaseState) => {
                    let leases = &done.projection;
                    format!(
                        "{} stale, {} contended",
                        leases.stale_count, leases.contended_count
                    )
                }
                None => "nothing to claim".to_owned(),
            };
            document.lease_projection = Some(done.projection);
            (done.row, format!("accepted {action}: {about}"))
        }
        Err(rejection) => {
            let text = format!("rejected {action}: {}", rejection.diagnostic);
            document.failure_classes = vec![rejection.class];
            document.diagnostic = Some(rejection.diagnostic);
            document.changed = known.map(|_| false);
            (None, text)
        }
    };
    document.issue = row.as_ref().map(item);
    Answer::new(&document, format!("{}\n", plain(&text)))
}
