//! The rows of a turn's evidence (`contracts.md` 2, `HARNESS-TYPESTATE 3`).
//!
//! Plain data with public fields: an adapter builds an [`Evidence`] by hand,
//! a command reads one from JSON (`ParsedInput::from_slice`). Nothing here is
//! trusted: [`normalize`](super::normal::normalize) trims, checks and sorts,
//! and the gate judges.

use super::word::{ActionMode, Disposition, ExecutionPattern, ResultStatus};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that one turn left behind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What the turn was bound to before it began.
    pub call_spec: CallSpecRow,
    /// The tool calls that the model asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_requests: Vec<RequestRow>,
    /// How they ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<ResultRow>,
    /// What became of the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_use: Vec<UseRow>,
    /// Why the turn stopped.
    pub protocol_state: ProtocolState,
    /// A transfer to somebody else, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffPacket>,
    /// How results were shown to the operator and to the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_render: Vec<RenderRow>,
    /// How reminders were reduced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reminder_queue: Vec<QueueRow>,
    /// The state views that the next turn is rebuilt from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_views: Vec<StateViewRow>,
    /// The sessions that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub session_refs: BTreeSet<String>,
    /// The trajectory rows that witness the turn.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub trajectory_refs: BTreeSet<String>,
}

impl Evidence {
    /// Begins the evidence of a turn that called no tool.
    pub const fn new(call_spec: CallSpecRow, protocol_state: ProtocolState) -> Self {
        Self {
            call_spec,
            tool_requests: Vec::new(),
            tool_results: Vec::new(),
            tool_use: Vec::new(),
            protocol_state,
            handoff: None,
            tool_render: Vec::new(),
            reminder_queue: Vec::new(),
            state_views: Vec::new(),
            session_refs: BTreeSet::new(),
            trajectory_refs: BTreeSet::new(),
        }
    }
}

/// The binding of a turn: eleven required fields, and what else was fixed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallSpecRow {
    /// The turn's identity.
    pub call_id: String,
    /// The model and its version.
    pub model_ref: String,
    /// How the model acts.
    pub action_mode: ActionMode,
    /// How the turn is arranged.
    pub execution_pattern: ExecutionPattern,
    /// The normalisation contract of the output.
    pub normalizer_id: String,
    /// The mutation policy that the turn expects to be active.
    pub mutation_policy_digest: String,
    /// The governance policy package.
    pub governance_policy_digest: String,
    /// How tool outputs are shown.
    pub tool_render_protocol_digest: String,
    /// How reminders are queued.
    pub reminder_queue_policy_digest: String,
    /// Which state views exist.
    pub state_view_policy_digest: String,
    /// When work may be split up.
    pub decomposition_policy_digest: String,
    /// The adapter that makes structured calls of text (ours); without one,
    /// tool calls in text mode are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_adapter_profile: Option<String>,
    /// The further fields of `TOOL-CALLING-HARNESS-TYPESTATE 4.1` that are
    /// present, by name; a name outside [`FURTHER_FIELDS`] is an input error.
    #[serde(flatten)]
    pub further: BTreeMap<String, Value>,
}

/// The optional fields of a call spec (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`).
pub const FURTHER_FIELDS: &[&str] = &[
    "allowedCallersDigest",
    "compactionPolicyDigest",
    "contextScopeDigest",
    "deferPolicyDigest",
    "evalGatePolicyDigest",
    "evalProfileRef",
    "executionBoundaryPolicy",
    "guardrailStagePolicyDigest",
    "handoffContractDigest",
    "observabilityMode",
    "orchestrationRole",
    "parallelPolicy",
    "preContextFilterPolicy",
    "protocolStatePolicy",
    "redTeamPolicyDigest",
    "riskTier",
    "runtimeSandboxRef",
    "stopPolicy",
    "toolCatalogDigest",
    "toolChoice",
    "toolExampleDigest",
    "toolPolicy",
    "toolResponseTruncationPolicy",
    "toolTransportPolicy",
];

/// Those of [`FURTHER_FIELDS`] that hold a word, written in lower case.
pub(super) const FURTHER_WORDS: &[&str] = &[
    "observabilityMode",
    "orchestrationRole",
    "riskTier",
    "toolChoice",
];

/// One requested tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRow {
    /// The call's identity.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The digest of the schema that the call was checked against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_digest: Option<String>,
    /// Who called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    /// The search by which the tool was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_ref_digest: Option<String>,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultRow {
    /// The call's identity.
    pub tool_call_id: String,
    /// How it ended; where absent, error material decides.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// What became of one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UseRow {
    /// The call's identity.
    pub tool_call_id: String,
    /// What became of it.
    pub disposition: Disposition,
    /// The digest of the result that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    /// Why; a discarded result needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_reason: Option<String>,
    /// What was built on it; a consumed result needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance_ref: Option<String>,
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

    /// Makes the row of a result that was thrown away.
    pub fn discarded(tool_call_id: impl Into<String>, use_reason: impl Into<String>) -> Self {
        Self {
            use_reason: Some(use_reason.into()),
            ..Self::of(tool_call_id, Disposition::Discarded)
        }
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

/// Why the turn stopped, and whether it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolState {
    /// The stop reason; which ones are handled is the gate's to say.
    pub stop_reason: String,
    /// Whether another round may follow.
    pub continuation_allowed: bool,
}

impl ProtocolState {
    /// Makes the state of a turn that is over.
    pub fn ended(stop_reason: impl Into<String>) -> Self {
        Self {
            stop_reason: stop_reason.into(),
            continuation_allowed: false,
        }
    }
}

/// A transfer of the work to somebody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandoffPacket {
    /// Who takes over.
    pub target: String,
    /// The artifacts that go with it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required_artifact_refs: BTreeSet<String>,
    /// The way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_path_ref: Option<String>,
}

/// How one result was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RenderRow {
    /// The call's identity.
    pub tool_call_id: String,
    /// The digest of what the operator sees.
    pub operator_payload_digest: String,
    /// The digest of what the model is reminded of.
    pub reminder_render_digest: String,
    /// Where it was injected.
    pub injection_point: String,
    /// The policy that it was shown under.
    pub policy_digest: String,
}

/// How one reminder queue was reduced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    /// The queue's identity.
    pub queue_id: String,
    /// The digest of what was left.
    pub reduced_digest: String,
    /// The policy that it was reduced under.
    pub policy_digest: String,
}

/// One view of the conversation's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateViewRow {
    /// The view's identity.
    pub view_id: String,
    /// The digest of the view.
    pub view_digest: String,
    /// The policy that defines it.
    pub policy_digest: String,
    /// What it was made from.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub source_refs: BTreeSet<String>,
}
