//! The session: what the next session starts from (HARNESS-RUNTIME 4).

use crate::failure::FailureClass;
use crate::json::document::Document;
use crate::json::field::{FieldError, some_text};
use crate::json::id::{BatchId, IssueId, LeaseId, SessionId, StepId, WorkerName};
use crate::json::read::{or_default, text, unless_blank};
use crate::json::reference::RefSet;
use crate::json::stamp::{Stamp, compact};
use crate::json::token::token;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kind of a session document.
pub(crate) const SESSION_KIND: &str = "premath.harness.session.v1";

/// Whether a session is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// A worker is in it, or died in it.
    Active,
    /// The session was handed off.
    #[default]
    Stopped,
}

impl SessionState {
    /// Returns the text used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stopped => "stopped",
        }
    }
}

/// Where a step started: what crash recovery needs (ours).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStep {
    /// The step's id, `<worker>.<issue>.<generation>`.
    #[serde(deserialize_with = "text")]
    pub step_id: StepId,
    /// The issue that it works on.
    #[serde(deserialize_with = "text")]
    pub issue_id: IssueId,
    /// The lease's generation.
    pub generation: u64,
    /// The lease's id.
    #[serde(deserialize_with = "text")]
    pub lease_id: LeaseId,
    /// The lease's owner.
    #[serde(deserialize_with = "text")]
    pub lease_owner: String,
    /// The commit that the worktree was at.
    #[serde(deserialize_with = "text")]
    pub base_commit: String,
    /// The branch that the worktree was on, `None` where HEAD was detached.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub base_branch: Option<String>,
    /// The other world that it works in, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<StepWorld>,
}

/// The worktree of another world that a step works in (ours); base commit and
/// branch are those there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepWorld {
    /// The name that the issue asked for it by.
    #[serde(deserialize_with = "text")]
    pub name: String,
    /// The worktree there.
    #[serde(deserialize_with = "text")]
    pub worktree: String,
}

/// A session document, `premath.harness.session.v1`.
///
/// Fields that this build does not know are kept, value for value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, schema_with = "crate::json::schema::one")]
    schema: u8,
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, extend("const" = SESSION_KIND))]
    session_kind: &'static str,
    /// The session's id; kept by every update that does not override it.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub session_id: SessionId,
    /// The state of the session.
    pub state: SessionState,
    /// The issue of the session.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub issue_id: Option<IssueId>,
    /// A short summary of the session.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub summary: Option<String>,
    /// The next step of the session.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub next_step: Option<String>,
    /// Instructions that the session acts under.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub instruction_refs: RefSet,
    /// Witnesses of the session.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub witness_refs: RefSet,
    /// The site lineage of the session.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "RefSet::is_empty"
    )]
    pub lineage_refs: RefSet,
    /// The issue store's path.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub issues_path: Option<String>,
    /// The issue store's digest, taken at boot and at a lane's last stop.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub issues_snapshot_ref: Option<String>,
    /// The worker in it (ours).
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub worker_id: Option<WorkerName>,
    /// The batch that it belongs to (ours).
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub batch_id: Option<BatchId>,
    /// The step under way (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<SessionStep>,
    /// When it was first written; no update changes it.
    pub started_at: Stamp,
    /// When it was last written.
    pub updated_at: Stamp,
    /// When it stopped; absent while it is active.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub stopped_at: Option<Stamp>,
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    extra: Map<String, Value>,
}

/// A session document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It does not have the shape of a session; the source names the field.
    #[error("cannot read the session")]
    Shape(#[from] FieldError),
}

impl SessionError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) => FailureClass::ProjectionInvalid,
        }
    }
}

impl Session {
    /// Reads a session document.
    ///
    /// Null and blank optional texts read as absent; `schema`, `sessionKind`,
    /// `sessionId`, `state`, `startedAt` and `updatedAt` are required.
    ///
    /// # Errors
    ///
    /// The first field that does not fit, and what would be right.
    pub fn parse(bytes: &[u8]) -> Result<Self, SessionError> {
        let document = Document::parse(bytes)?.of_kind("sessionKind", SESSION_KIND)?;
        let (session, unknown) = document.read::<Self>()?;
        Ok(Self {
            schema: 1,
            session_kind: SESSION_KIND,
            extra: unknown.take(""),
            ..session
        })
    }
}

/// What a write does to the step of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepWrite {
    /// Leaves it as it is.
    #[default]
    Keep,
    /// Removes the step: none is under way.
    Clear,
    /// Records this step.
    Set(SessionStep),
}

/// What to write over a session (`contracts.md` 6).
///
/// A text that is `None` keeps what was there, a blank one clears it; refs
/// that are given replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionWrite {
    /// Overrides the id; `None` or blank keeps it, or makes one.
    pub session_id: Option<SessionId>,
    /// The new state; the default is stopped.
    pub state: SessionState,
    /// The issue that the session is about.
    pub issue_id: Option<IssueId>,
    /// The summary of the session.
    pub summary: Option<String>,
    /// The next step of the session.
    pub next_step: Option<String>,
    /// The instructions that it acts under.
    pub instruction_refs: Option<RefSet>,
    /// The witnesses that it left.
    pub witness_refs: Option<RefSet>,
    /// The site lineage of the session.
    pub lineage_refs: Option<RefSet>,
    /// The issue store's path.
    pub issues_path: Option<String>,
    /// The issue store's digest; give `Some("")` where it is not taken again,
    /// because an old one would be wrong.
    pub issues_snapshot_ref: Option<String>,
    /// The worker of the session.
    pub worker_id: Option<WorkerName>,
    /// The batch of the session.
    pub batch_id: Option<BatchId>,
    /// The step under way.
    pub step: StepWrite,
}

/// Returns the session after a write: a new one, or the prior one updated in
/// place (HARNESS-RUNTIME 4).
///
/// Id and `startedAt` stay, `updatedAt` is `now`. `stoppedAt` is the time of
/// the write that stopped it, kept by later writes that leave it stopped, and
/// absent while it is active.
pub fn write(prior: Option<Session>, write: SessionWrite, now: Timestamp) -> Session {
    let stamp = Stamp::at(now);
    let issue_id = match &write.issue_id {
        Some(text) => some_text(text).map(IssueId::from),
        None => prior.as_ref().and_then(|p| p.issue_id.clone()),
    };
    let given_id = write.session_id.as_deref().and_then(some_text);
    let given_id = given_id.map(SessionId::from);
    let mut session = match prior {
        Some(prior) => Session {
            session_id: given_id.unwrap_or(prior.session_id),
            ..prior
        },
        None => {
            let id = given_id.unwrap_or_else(|| session_id(issue_id.as_ref(), now));
            begun(id, write.state, stamp.clone())
        }
    };
    session.issue_id = issue_id;
    update(&mut session.summary, write.summary);
    update(&mut session.next_step, write.next_step);
    update(&mut session.issues_path, write.issues_path);
    update(&mut session.issues_snapshot_ref, write.issues_snapshot_ref);
    update(&mut session.worker_id, write.worker_id);
    update(&mut session.batch_id, write.batch_id);
    replace(&mut session.instruction_refs, write.instruction_refs);
    replace(&mut session.witness_refs, write.witness_refs);
    replace(&mut session.lineage_refs, write.lineage_refs);
    match write.step {
        StepWrite::Keep => {}
        StepWrite::Clear => session.step = None,
        StepWrite::Set(step) => session.step = Some(step),
    }
    session.stopped_at = match write.state {
        SessionState::Active => None,
        SessionState::Stopped => {
            let kept = session
                .stopped_at
                .take()
                .filter(|_| session.state == SessionState::Stopped);
            Some(kept.unwrap_or_else(|| stamp.clone()))
        }
    };
    session.state = write.state;
    session.updated_at = stamp;
    session
}

/// Returns a new, empty session.
fn begun(session_id: SessionId, state: SessionState, at: Stamp) -> Session {
    Session {
        schema: 1,
        session_kind: SESSION_KIND,
        session_id,
        state,
        issue_id: None,
        summary: None,
        next_step: None,
        instruction_refs: RefSet::new(),
        witness_refs: RefSet::new(),
        lineage_refs: RefSet::new(),
        issues_path: None,
        issues_snapshot_ref: None,
        worker_id: None,
        batch_id: None,
        step: None,
        started_at: at.clone(),
        updated_at: at,
        stopped_at: None,
        extra: Map::new(),
    }
}

fn update<T: AsRef<str> + From<String>>(field: &mut Option<T>, given: Option<T>) {
    if let Some(text) = given {
        *field = some_text(text.as_ref()).map(T::from);
    }
}

fn replace(field: &mut RefSet, given: Option<RefSet>) {
    if let Some(refs) = given {
        *field = refs;
    }
}

/// Returns `hs1_<UTC yyyymmddThhmmssZ>[_<token(issue)>]` (`contracts.md` 6).
pub fn session_id(issue_id: Option<&IssueId>, now: Timestamp) -> SessionId {
    let time = compact(now);
    SessionId::from(match issue_id.and_then(|issue_id| some_text(issue_id)) {
        Some(issue) => format!("hs1_{time}_{}", token(&issue, "session")),
        None => format!("hs1_{time}"),
    })
}

#[cfg(test)]
mod tests;
