//! Witness documents: what a command, a turn or a change was
//! (HARNESS-RUNTIME 3.2).
//!
//! They are in `artifacts/ciwitness`, and rows refer to them by their digest.

use super::turn_context::TurnContext;
use crate::authority::StepIdentity;
use crate::authority::instruction::Classification;
use crate::failure::FailureClass;
use crate::json::id::{IssueId, StepId};
use crate::json::stamp::Stamp;
use crate::policy::landing::LandingRecord;
use crate::policy::network::NetworkFacts;
use crate::policy::retry::CommandEnd;
use crate::record::trajectory::TokenCounts;
use crate::turn::{JoinCheck, JoinCheckInput, MutationBinding, MutationWitness};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind of a [`CommandWitness`].
pub(crate) const COMMAND_KIND: &str = "premath.harness.command_witness.v1";
/// The kind of a [`TurnWitness`].
pub(crate) const TURN_KIND: &str = "premath.harness.turn_witness.v1";
/// The kind of a [`CloseWitness`].
pub(crate) const CLOSE_KIND: &str = "premath.harness.mutation_witness.v1";
/// The kind of a [`SharedWitness`].
pub(crate) const SHARED_KIND: &str = "premath.harness.shared_witness.v1";

/// The kind of a [`RefusalWitness`].
pub(crate) const REFUSAL_KIND: &str = "premath.harness.refusal_witness.v1";

/// What HEAD and the working tree were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeFacts {
    /// The commit that HEAD was at.
    pub head: String,
    /// The digest of the tree with everything uncommitted in it.
    pub tree: String,
}

/// What went through one output stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamFacts {
    /// How many bytes the command wrote, kept or not.
    pub bytes: u64,
    /// The SHA-256 of all of them, lower-case hexadecimal.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// How many bytes were cut out of the middle of the file.
    pub cut_bytes: u64,
    /// Why the file is not complete, where writing it failed.
    pub write_error: Option<String>,
    /// The file.
    pub path: String,
}

/// What a command of a step was and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandWitness {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = COMMAND_KIND))]
    witness_kind: &'static str,
    /// The facts of the witness.
    #[serde(flatten)]
    pub facts: CommandFacts,
}

/// The facts of a [`CommandWitness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandFacts {
    /// The step.
    pub step_id: StepId,
    /// The issue; empty where the command belongs to none.
    pub issue_id: IssueId,
    /// The lease's generation.
    pub generation: u64,
    /// What it was run for, as in `work` or `verify`.
    pub phase: String,
    /// The digest of its command line.
    pub command_digest: String,
    /// The folder that it ran in.
    pub workdir: String,
    /// The sandbox profile that it ran under; absent where it was not confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_ref: Option<String>,
    /// The names of the variables that it got; values are never recorded.
    pub environment_names: Vec<String>,
    /// The end of the command.
    pub exit: CommandEnd,
    /// The milliseconds from its start until nothing of it was left.
    pub duration_ms: u64,
    /// How many processes beside the main one had to be killed.
    pub leaked_processes: u32,
    /// How many processes of it could not be ended.
    pub surviving_processes: u32,
    /// Its failure classes, in their order: the kernel's or the policy's
    /// words; none where it passed.
    pub failure_classes: Vec<String>,
    /// The time at which the command was started.
    pub started_at: Stamp,
    /// The time at which the command ended.
    pub finished_at: Stamp,
    /// The worktree before the command.
    pub before: TreeFacts,
    /// The worktree after the command.
    pub after: TreeFacts,
    /// The command's standard output.
    pub stdout: StreamFacts,
    /// The command's standard error.
    pub stderr: StreamFacts,
    /// What its event stream was, where it is an agent that prints one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentFacts>,
    /// What its hooks reported, where it is an agent that they were wired into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<HookFacts>,
    /// What it reached and was refused, where a proxy was between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// What an agent's hooks reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookFacts {
    /// The digest of the turn policy that decided about its calls.
    pub turn_policy_digest: String,
    /// How many events there were.
    pub events: u64,
    /// How many tool calls were announced.
    pub calls: u64,
    /// How many of them were denied.
    pub denials: u64,
    /// The first calls that were denied.
    pub denied: Vec<DeniedCall>,
    /// The first faults of the hooks, and differences from the event stream.
    pub faults: Vec<String>,
    /// The file with every event.
    pub journal_path: String,
    /// The SHA-256 of that file before it was compressed.
    pub journal_sha256: String,
}

/// A tool call that the turn policy denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeniedCall {
    /// The agent's name of the tool.
    pub tool: String,
    /// The rule or the limit that denied it.
    pub rule_id: String,
}

/// What an agent's event stream was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentFacts {
    /// The adapter that read it.
    pub adapter: String,
    /// The model, where the agent said it.
    pub model: Option<String>,
    /// The agent's own session.
    pub session_id: Option<String>,
    /// How many tool calls there were.
    pub calls: u64,
    /// How often the model spoke.
    pub messages: u64,
    /// Events of unknown types, which were skipped.
    pub unknown_events: u64,
    /// How often the agent asked its provider again.
    pub retries: u64,
    /// What makes the stream no evidence; the first faults.
    pub faults: Vec<String>,
    /// How many faults there were.
    pub fault_count: u64,
    /// How the agent ended, in its own word; null if it reported none.
    pub ended: Option<String>,
    /// The digest over the digests of all lines.
    pub log_digest: String,
    /// Tokens, where they were reported.
    pub tokens: Option<TokenCounts>,
    /// Billionths of a dollar, where they were reported.
    pub cost_nano_usd: Option<u64>,
    /// When the limit resets that the provider refuses work by, in seconds
    /// since 1970; null where it refuses none, or does not say.
    pub limit_resets_at: Option<i64>,
}

impl From<CommandFacts> for CommandWitness {
    fn from(facts: CommandFacts) -> Self {
        Self {
            schema: 1,
            witness_kind: COMMAND_KIND,
            facts,
        }
    }
}

/// That work rests on the verification of other work, whose tree contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedWitness {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = SHARED_KIND))]
    witness_kind: &'static str,
    /// The facts of the witness.
    #[serde(flatten)]
    pub facts: SharedFacts,
}

/// The facts of a [`SharedWitness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedFacts {
    /// The step whose work it is.
    pub step_id: StepId,
    /// The issue.
    pub issue_id: IssueId,
    /// The lease's generation.
    pub generation: u64,
    /// The step whose verification passed.
    pub verified_step_id: StepId,
    /// The witness of that verification.
    pub verified_witness_ref: String,
    /// The worktree that passed: the last of those that were verified as one.
    pub verified: TreeFacts,
    /// The tree that the work itself landed as; it was not verified by itself.
    pub own_tree: String,
}

impl From<SharedFacts> for SharedWitness {
    fn from(facts: SharedFacts) -> Self {
        Self {
            schema: 1,
            witness_kind: SHARED_KIND,
            facts,
        }
    }
}

/// How a turn was judged, with all that it was judged by: a step's, or that of
/// an escalation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnWitness<'a> {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = TURN_KIND))]
    witness_kind: &'static str,
    step_id: StepId,
    /// The step that the turn belongs to, and the lease that it ran under.
    step: &'a StepIdentity,
    /// The verification that a close rests on; null where there was none.
    verification_call_id: Option<&'a str>,
    /// The instruction that the turn rests on; null under a person's override.
    instruction_ref: Option<&'a str>,
    /// The changes that the turn admits, sorted.
    admitted: Vec<&'static str>,
    /// What the work command said about policies and constraints in a file of
    /// evidence, where it wrote one: recorded, and never used.
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<Value>,
    /// What the context rows of the evidence are digests of.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a TurnContext>,
    /// The evidence: an input of `premath harness-join-check`.
    input: &'a JoinCheckInput,
    /// The verdict of the gate over the evidence.
    join_check: &'a JoinCheck,
    /// Why the issue may not close; empty if it may.
    close_failure_classes: &'a BTreeSet<FailureClass>,
}

/// How the gate judged a turn.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'a> {
    /// The verdict over the evidence.
    pub report: &'a JoinCheck,
    /// Why the issue may not close; empty if it may.
    pub close: &'a BTreeSet<FailureClass>,
}

impl<'a> TurnWitness<'a> {
    /// Returns the witness of a turn that was held against a binding, and that
    /// admits some changes.
    pub fn new(
        binding: &'a MutationBinding,
        input: &'a JoinCheckInput,
        judged: Judgement<'a>,
        admitted: Vec<&'static str>,
    ) -> Self {
        Self {
            schema: 1,
            witness_kind: TURN_KIND,
            step_id: binding.step.step_id(),
            step: &binding.step,
            verification_call_id: binding.verification.as_deref(),
            instruction_ref: binding.instruction_ref.as_deref(),
            admitted,
            claims: None,
            context: None,
            input,
            join_check: judged.report,
            close_failure_classes: judged.close,
        }
    }

    /// Adds what a file of evidence claims.
    #[must_use]
    pub fn with_claims(self, claims: Option<Value>) -> Self {
        Self { claims, ..self }
    }

    /// Adds what the context rows of the evidence are digests of.
    #[must_use]
    pub fn with_context(self, context: &'a TurnContext) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }
}

/// That a batch was refused before it began, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusalWitness {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = REFUSAL_KIND))]
    witness_kind: &'static str,
    /// The step id of the refusal's trajectory row.
    pub step_id: StepId,
    /// The classes, in the order in which they were found.
    pub failure_classes: Vec<FailureClass>,
    /// Why it was refused, for display.
    pub detail: String,
    /// The instruction that was refused; null where none could be read.
    pub instruction_ref: Option<String>,
    /// How the active policy classifies it; null where none could be read.
    pub classification: Option<Classification>,
    /// The time of the refusal.
    pub refused_at: Stamp,
}

impl RefusalWitness {
    /// Returns the witness of a refusal, of no instruction yet.
    pub fn new(
        step_id: &StepId,
        failure_classes: &[FailureClass],
        detail: String,
        refused_at: Stamp,
    ) -> Self {
        Self {
            schema: 1,
            witness_kind: REFUSAL_KIND,
            step_id: step_id.to_owned(),
            failure_classes: failure_classes.to_vec(),
            detail,
            instruction_ref: None,
            classification: None,
            refused_at,
        }
    }
}

/// What the issue store showed when it was read back after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundIssue {
    /// The status of the issue.
    pub status: String,
    /// Whether it had a lease.
    pub leased: bool,
    /// Whether its row names this step as the one that closed it.
    pub closed_by_this_step: bool,
}

/// That an issue was closed, and on what that rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloseWitness<'a> {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = CLOSE_KIND))]
    witness_kind: &'static str,
    /// The facts of the close.
    #[serde(flatten)]
    pub facts: CloseFacts<'a>,
}

/// The facts of a [`CloseWitness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloseFacts<'a> {
    /// The step.
    pub step_id: &'a StepId,
    /// What the right to close rests on.
    pub mutation: &'a MutationWitness,
    /// What was read back; null where there is no such issue.
    pub found: Option<FoundIssue>,
    /// Whether that is what the step meant to leave.
    pub holds: bool,
    /// The worktree before the step.
    pub before: TreeFacts,
    /// The worktree that was verified.
    pub after: TreeFacts,
    /// The commit that holds the work, where there is one.
    pub commit: Option<&'a str>,
    /// The paths that the work changed, sorted.
    pub changed_paths: &'a [String],
    /// Where the work landed; null where it was not to land.
    pub landing: Option<&'a LandingRecord>,
}

impl<'a> From<CloseFacts<'a>> for CloseWitness<'a> {
    fn from(facts: CloseFacts<'a>) -> Self {
        Self {
            schema: 1,
            witness_kind: CLOSE_KIND,
            facts,
        }
    }
}
