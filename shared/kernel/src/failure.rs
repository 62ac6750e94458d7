//! Every failure class, once.
//!
//! A class is a stable, machine-readable name of one way to fail. The table
//! below is the only place with a class's text; all other code uses the
//! variant.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

macro_rules! classes {
    ($( $(#[doc = $section:literal])* [$family:ident] $( $variant:ident = $text:literal, $source:literal, $meaning:literal; )+ )+) => {
        /// A stable, machine-readable name of one way to fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FailureClass {
            $( $( #[doc = $meaning] $variant, )+ )+
        }

        impl FailureClass {
            /// Every class, in the order of the table.
            pub const ALL: &'static [Self] = &[ $( $( Self::$variant, )+ )+ ];

            /// Returns the text used in files and answers.
            pub const fn as_str(self) -> &'static str {
                match self { $( $( Self::$variant => $text, )+ )+ }
            }

            /// Returns what the class means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $( $( Self::$variant => $meaning, )+ )+ }
            }

            /// Returns the document and section that the class comes from.
            pub const fn source(self) -> &'static str {
                match self { $( $( Self::$variant => $source, )+ )+ }
            }

            /// Returns the family that the class belongs to.
            pub const fn family(self) -> Family {
                match self { $( $( Self::$variant => Family::$family, )+ )+ }
            }
        }
    };
}

/// What a class refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// The turn: tool calls, protocol, context, mutation, governance.
    Typestate,
    /// Leases and the storage that holds them.
    Lease,
    /// What a command of the step did.
    Execution,
    /// Instruction envelopes and the policy that admits them.
    Instruction,
    /// The loop itself: lanes, worktrees, policy, escalation.
    Loop,
    /// The way of a turn to another world.
    World,
    /// The feature ledger's check.
    Ledger,
    /// The check of the issue store.
    IssueGraph,
}

impl Family {
    /// Every family, in the order of the table.
    pub const ALL: &'static [Self] = &[
        Self::Typestate,
        Self::Lease,
        Self::Execution,
        Self::Instruction,
        Self::Loop,
        Self::World,
        Self::Ledger,
        Self::IssueGraph,
    ];

    /// Returns the text used in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Typestate => "typestate",
            Self::Lease => "lease",
            Self::Execution => "execution",
            Self::Instruction => "instruction",
            Self::Loop => "loop",
            Self::World => "world",
            Self::Ledger => "ledger",
            Self::IssueGraph => "issue_graph",
        }
    }

    /// Returns what the family's classes refer to, as a phrase.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Typestate => {
                "the turn, with its tool calls, protocol, context, mutation and governance"
            }
            Self::Lease => "leases and the storage that holds them",
            Self::Execution => "what a command of the step did",
            Self::Instruction => "instruction envelopes and the policy that admits them",
            Self::Loop => "the loop itself, with its lanes, worktrees, policy and escalation",
            Self::World => "the way of a turn to another world",
            Self::Ledger => "the feature ledger's check",
            Self::IssueGraph => "the check of the issue store",
        }
    }

    /// Returns the family's classes, in the order of the table.
    pub fn classes(self) -> impl Iterator<Item = FailureClass> {
        let classes = FailureClass::ALL.iter().copied();
        classes.filter(move |class| class.family() == self)
    }
}

classes! {
    /// The 42 classes of `HARNESS-TYPESTATE 8` and `TOOL-CALLING-HARNESS-TYPESTATE 7`;
    /// the source is the section whose rule a class says is broken.
    ///
    /// `tool.join_incomplete` may be derived: an open join has it beside the
    /// class that names the cause, which alone says what to mend.
    [Typestate]
    ToolSchemaInvalid = "tool.schema_invalid", "HARNESS-TYPESTATE 3.2", "A tool row lacks its typed shape: a request that does not fit the tool's schema, a call that was read from free text, or an error result without its envelope.";
    ToolUnknownOrDisallowed = "tool.unknown_or_disallowed", "TOOL-CALLING-HARNESS-TYPESTATE 4.1", "A requested tool is unknown, or is not in the allow-list of the tool policy.";
    ToolDiscoveryMismatch = "tool.discovery_mismatch", "TOOL-CALLING-HARNESS-TYPESTATE 4.2", "A dynamically discovered tool is not the one that the tool catalog holds under the identity it was resolved to.";
    ToolDiscoveryUnresolved = "tool.discovery_unresolved", "TOOL-CALLING-HARNESS-TYPESTATE 4.2", "A dynamically discovered tool carries no search reference, or one that resolves to no tool.";
    ToolExampleDigestMismatch = "tool.example_digest_mismatch", "TOOL-CALLING-HARNESS-TYPESTATE 4.1", "The usage examples attached to a tool are not those that the call spec binds by digest.";
    ToolCallerNotAllowed = "tool.caller_not_allowed", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "A tool was called by a caller that its allow-list of callers does not name.";
    ToolResultMissing = "tool.result_missing", "HARNESS-TYPESTATE 5", "A requested tool call has no terminal result.";
    ToolResultOrphan = "tool.result_orphan", "HARNESS-TYPESTATE 5", "A result belongs to no requested tool call.";
    ToolJoinIncomplete = "tool.join_incomplete", "HARNESS-TYPESTATE 5", "Requests, results and uses do not match; where another class names the cause, this one is derived from it.";
    ToolUseMissing = "tool.use_missing", "HARNESS-TYPESTATE 5", "A terminal result has no use disposition.";
    ToolUseUnknownResult = "tool.use_unknown_result", "TOOL-CALLING-HARNESS-TYPESTATE 4.4", "A use disposition names, by digest, a result that its tool call did not end with.";
    ToolUseWithoutResult = "tool.use_without_result", "HARNESS-TYPESTATE 5", "A use disposition represents a tool call that has no terminal result.";
    ToolParallelPolicyViolation = "tool.parallel_policy_violation", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "The number of parallel tool branches is not one that the parallel policy admits.";
    ToolProgrammaticCallerEdgeInvalid = "tool.programmatic_caller_edge_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "A tool call made by executed code has no valid edge from the code execution that made it.";
    ToolResponseTruncationPolicyViolation = "tool.response_truncation_policy_violation", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "A result was cut against the truncation policy: over its budget, or without the marker and metadata that it demands.";
    ProtocolStopReasonUnhandled = "protocol.stop_reason_unhandled", "HARNESS-TYPESTATE 5", "The turn stopped for a reason that the protocol policy does not handle.";
    ProtocolParallelTransportOrderInvalid = "protocol.parallel_transport_order_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "Calls and outputs were not transported in the order that the transport policy demands.";
    RuntimeShellBoundaryViolation = "runtime.shell_boundary_violation", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "The result of a shell command lacks valid evidence of its boundary: working directory, sandbox profile and command digest.";
    RuntimeCompactionStateInvalid = "runtime.compaction_state_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 8", "The context was compacted, but what the compaction policy demands was not carried forward.";
    ContextQueuePolicyViolation = "context.queue_policy_violation", "HARNESS-TYPESTATE 5", "Where the turn continues or consumed a result, no reminder queue was reduced, or a render, queue or state view row is bound to another policy than the call spec's.";
    ContextInjectionPointMissing = "context.injection_point_missing", "HARNESS-TYPESTATE 5", "Where the turn continues or consumed a result, a result has no render row, or there is no state view.";
    ContextScopeViolation = "context.scope_violation", "TOOL-CALLING-HARNESS-TYPESTATE 8", "A role read or wrote outside the context scope that it is allowed.";
    CoordinationDecompositionPolicyViolation = "coordination.decomposition_policy_violation", "HARNESS-TYPESTATE 5", "The turn was split up in a way that the decomposition policy does not admit, or is bound to another such policy.";
    GovernanceClaimIdInvalid = "governance.claim_id_invalid", "HARNESS-TYPESTATE 8", "The governance claim has another id than `profile.doctrine_inf_governance.v0`.";
    GovernancePolicyPackageUnpinned = "governance.policy_package_unpinned", "HARNESS-TYPESTATE 8", "Governance is claimed, but no policy package is pinned by reference, expected digest and bound digest.";
    GovernancePolicyPackageMismatch = "governance.policy_package_mismatch", "HARNESS-TYPESTATE 8", "The bound digest of the pinned policy package is not the expected one.";
    GovernanceGuardrailStageMissing = "governance.guardrail_stage_missing", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "A required guardrail stage (`pre_flight`, `input`, `output`) left no decision.";
    GovernanceGuardrailStageOrderInvalid = "governance.guardrail_stage_order_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "The guardrail stages were not decided in the order `pre_flight`, `input`, `output`.";
    GovernanceEvalGateUnmet = "governance.eval_gate_unmet", "TOOL-CALLING-HARNESS-TYPESTATE 4.6", "A change of governance policy falls short of the evaluation gate's thresholds of precision, recall or F1.";
    GovernanceEvalLineageMissing = "governance.eval_lineage_missing", "TOOL-CALLING-HARNESS-TYPESTATE 7", "An evaluation that a governance gate rests on carries no lineage of what was evaluated.";
    GovernanceSelfEvolutionRetryMissing = "governance.self_evolution_retry_missing", "TOOL-CALLING-HARNESS-TYPESTATE 7", "A self-evolving change declares no retry rule.";
    GovernanceSelfEvolutionEscalationMissing = "governance.self_evolution_escalation_missing", "TOOL-CALLING-HARNESS-TYPESTATE 7", "A self-evolving change declares no escalation rule.";
    GovernanceSelfEvolutionRollbackMissing = "governance.self_evolution_rollback_missing", "TOOL-CALLING-HARNESS-TYPESTATE 7", "A self-evolving change declares no rollback.";
    GovernanceRedteamGateUnmet = "governance.redteam_gate_unmet", "TOOL-CALLING-HARNESS-TYPESTATE 4.6", "A change of governance policy does not pass the adversarial regression gate of the red-team policy.";
    GovernanceTraceModeViolation = "governance.trace_mode_violation", "TOOL-CALLING-HARNESS-TYPESTATE 8", "The run was traced in another way than its observability mode admits.";
    GovernanceRiskTierProfileMissing = "governance.risk_tier_profile_missing", "TOOL-CALLING-HARNESS-TYPESTATE 4.1", "The turn's risk tier is not given, or has no bound control profile.";
    HandoffRequiredArtifactMissing = "handoff.required_artifact_missing", "HARNESS-TYPESTATE 5", "A handoff lacks an artifact that its contract requires.";
    HandoffTargetNotAllowed = "handoff.target_not_allowed", "HARNESS-TYPESTATE 5", "A handoff goes to a target that its contract does not allow.";
    HandoffReturnPathMissing = "handoff.return_path_missing", "HARNESS-TYPESTATE 5", "A handoff lacks the return path that its contract requires.";
    MutationPolicyDigestMismatch = "mutation.policy_digest_mismatch", "HARNESS-TYPESTATE 6", "The turn was bound to another mutation policy than the active one.";
    MutationCapabilityClaimMissing = "mutation.capability_claim_missing", "TOOL-CALLING-HARNESS-TYPESTATE 4.6", "No capability claim covers the change that was asked for.";
    MutationUseEvidenceMissing = "mutation.use_evidence_missing", "HARNESS-TYPESTATE 6", "The change lacks what it must rest on: the reason or provenance of a use, or the linkage to the session and the trajectory row that witness the turn.";

    [Lease]
    LeaseContentionActive = "lease_contention_active", "contracts 4", "The issue is leased, or is not free to claim.";
    IssueNotReady = "issue_not_ready", "contracts 4", "The issue is not ready: something holds it, its status sets it aside, or it waits for its retry.";
    LeaseOwnerMismatch = "lease_owner_mismatch", "contracts 4", "The lease belongs to another owner.";
    LeaseIdMismatch = "lease_id_mismatch", "contracts 4", "The lease has another id.";
    LeaseGenerationMismatch = "lease_generation_mismatch", "contracts 4", "The issue was leased again since: the generation moved on.";
    LeaseStale = "lease_stale", "contracts 4", "The lease has expired.";
    LeaseMissing = "lease_missing", "contracts 4", "The issue has no lease.";
    LeaseNotFound = "lease_not_found", "contracts 4", "There is no such issue.";
    LeaseIssueClosed = "lease_issue_closed", "contracts 4", "The issue is closed.";
    LeaseBindingAmbiguous = "lease_binding_ambiguous", "contracts 4", "The request names its lease in two ways that disagree.";
    LeaseInvalidAssignee = "lease_invalid_assignee", "contracts 4", "The assignee is empty.";
    LeaseInvalidTtl = "lease_invalid_ttl", "contracts 4", "The time to live is not within 30 to 86,400 seconds.";
    LeaseInvalidExpiresAt = "lease_invalid_expires_at", "contracts 4", "The expiry is not a future RFC 3339 time.";
    LeaseInvalidPayload = "lease_invalid_payload", "contracts 4", "The request lacks a field, or one has the wrong type.";
    LeaseMutationLockBusy = "lease_mutation_lock_busy", "contracts 4", "Another process held the lock of the issue store for longer than the wait.";
    LeaseMutationLockIo = "lease_mutation_lock_io", "contracts 4", "The lock of the issue store cannot be used.";
    LeaseMutationStoreIo = "lease_mutation_store_io", "contracts 4", "The issue store cannot be read or written.";
    TransportUnknownAction = "transport_unknown_action", "contracts 4", "There is no such transport action.";
    IssueMemoryCorrupt = "issue_memory_corrupt", "contracts 4", "A line of the issue store is corrupt; nothing is written until it is repaired.";

    [Execution]
    ExecutorUnavailable = "executor_unavailable", "contracts 7", "The command could not be started.";
    GateTimeout = "gate_timeout", "contracts 7", "The command exceeded its time limit and was killed with its process group.";
    NetworkTimeout = "network_timeout", "contracts 7", "The command says that the network timed out.";
    FlakyExecution = "flaky_execution", "contracts 7", "The command failed in a way that a retry may fix.";
    FlakyIo = "flaky_io", "contracts 7", "A file operation failed in a way that a retry may fix.";
    AgentStreamInvalid = "agent_stream_invalid", "HARNESS-RUNTIME 3.2", "The agent's event stream cannot be read as evidence: a line is broken, could be a call of an unknown kind, or the stream does not begin or end as it must.";
    HookChannelInvalid = "hook_channel_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "What reached the socket for hooks is not evidence: it cannot be read, is out of order or too much, or comes from a process that is not the agent's.";
    HookCallMissing = "hook_call_missing", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "The agent reports a tool call that its hooks should have announced and did not: they were disabled, killed or too slow.";
    HookCallUnaccounted = "hook_call_unaccounted", "TOOL-CALLING-HARNESS-TYPESTATE 4.5", "A hook announced a tool call that the agent's stream should have and has not.";
    HookInputChanged = "hook_input_changed", "TOOL-CALLING-HARNESS-TYPESTATE 4.2", "A tool call ran with another input than the one that the turn policy judged.";
    DeniedCallRan = "denied_call_ran", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "A tool call ran that the turn policy had denied.";
    UsageLimit = "usage_limit", "HARNESS-RUNTIME 3.2", "The agent's provider refuses more work until a limit resets.";
    ResourceExceeded = "resource_exceeded", "HARNESS-RUNTIME 3.2", "The command used more memory, processes or disk than it may and was killed with its group.";
    BudgetExceeded = "budget_exceeded", "HARNESS-RUNTIME 3.2", "The budget of tokens, money or time is used up.";
    WorkFailed = "work_failed", "contracts 7", "The work command ended with an error of its own.";
    CheckFailed = "check_failed", "contracts 7", "The verification did not pass.";
    WorkUnproven = "work_unproven", "HARNESS-RUNTIME 3.2", "A commit of the result would differ from what the step left: a submodule moved, a repository is nested, a rule hides a tracked file, or files changed after the work.";
    WorkUnfit = "work_unfit", "HARNESS-RUNTIME 3.2", "The work holds what no commit takes: a link that leads elsewhere, a name that git refuses, a folder that is too deep, or a repository.";
    WorkProtectedPath = "work_protected_path", "HARNESS-RUNTIME 3.2", "The work changed files that the settings protect.";
    WorkNoChange = "work_no_change", "HARNESS-RUNTIME 3.2", "The work changed nothing, and neither a label of the issue nor the settings allow that.";
    StartupCheckFailed = "startup_check_failed", "contracts 7", "The startup verification did not pass; nothing was changed.";
    HookFailed = "hook_failed", "HARNESS-RUNTIME 3", "A boot or stop hook ended with an error.";

    [Instruction]
    InstructionModeUnavailable = "instruction_mode_unavailable", "contracts 8", "Changes require an instruction envelope, and none is given.";
    InstructionEnvelopeUnreadable = "instruction_envelope_unreadable", "contracts 8", "The instruction envelope's file cannot be read.";
    InstructionFilenameInvalid = "instruction_filename_invalid", "contracts 8", "The envelope's file is not named `<timestamp>-<id>.json`.";
    InstructionEnvelopeInvalidJson = "instruction_envelope_invalid_json", "contracts 8", "The envelope is not JSON.";
    InstructionEnvelopeInvalidShape = "instruction_envelope_invalid_shape", "contracts 8", "The envelope is JSON, but not an object.";
    InstructionInvalidSchema = "instruction_invalid_schema", "contracts 8", "The envelope's `schema` is not 1.";
    InstructionInvalidIntent = "instruction_invalid_intent", "contracts 8", "The envelope has no `intent`.";
    InstructionScopeMissing = "instruction_scope_missing", "contracts 8", "The envelope has no `scope`.";
    InstructionScopeInvalid = "instruction_scope_invalid", "contracts 8", "The envelope's `scope` does not name a kind and a target.";
    InstructionTypeInvalid = "instruction_instruction_type_invalid", "contracts 8", "The envelope's `instructionType` is not text.";
    InstructionTypingPolicyInvalid = "instruction_typing_policy_invalid", "contracts 8", "The envelope's `typingPolicy` is not an object whose `allowUnknown` is true or false.";
    InstructionInvalidNormalizer = "instruction_invalid_normalizer", "contracts 8", "The envelope does not name a normaliser in `normalizerId`.";
    InstructionInvalidPolicyDigest = "instruction_invalid_policy_digest", "contracts 8", "The envelope does not name a policy in `policyDigest`.";
    InstructionCapabilityClaimsInvalid = "instruction_capability_claims_invalid", "contracts 8", "The envelope's `capabilityClaims` are not a list of texts, each once.";
    InstructionRequestedChecksInvalid = "instruction_requested_checks_invalid", "contracts 8", "The envelope's `requestedChecks` are not a list of at least one text, each once.";
    InstructionUnknownUnroutable = "instruction_unknown_unroutable", "contracts 8", "The instruction's type is not known under the active policy, and the envelope does not allow that.";
    InstructionCheckNotAllowed = "instruction_check_not_allowed", "contracts 8", "The envelope requests a check that the active policy does not allow.";
    InstructionCheckUnbound = "instruction_check_unbound", "contracts 8", "The envelope requests a check that the batch has no command for.";
    InstructionNormalizerNotAllowed = "instruction_normalizer_not_allowed", "contracts 8", "The active policy does not allow the instruction's normaliser, or the evidence is bound to another one.";
    InstructionOutOfScope = "instruction_out_of_scope", "contracts 8", "The instruction's scope does not cover the issue, or a file that the work changed.";
    InstructionPolicyUnreadable = "instruction_policy_unreadable", "contracts 8", "The instruction policy's file cannot be read.";
    InstructionPolicyInvalidShape = "instruction_policy_invalid_shape", "contracts 8", "The instruction policy does not have the shape of one.";
    InstructionPolicyDigestMismatch = "instruction_policy_digest_mismatch", "contracts 8", "The instruction policy's digest is not that of its content.";

    [Loop]
    WorktreeDirty = "worktree_dirty", "HARNESS-RUNTIME 3.2", "The worktree has uncommitted changes that no step made; the lane is disabled.";
    WorktreeBusy = "worktree_busy", "HARNESS-RUNTIME 7", "Another harness process holds the worktree.";
    WorktreeInvalid = "worktree_invalid", "HARNESS-RUNTIME 7", "The worktree is missing or is not one of the repository's.";
    WorktreeRepository = "worktree_repository", "HARNESS-RUNTIME 3.2", "Git refused an operation in the worktree.";
    WorktreeFilter = "worktree_filter", "HARNESS-RUNTIME 3.2", "A git filter that the operator configured refused a file, or could not be run.";
    LanePanicked = "lane_panicked", "HARNESS-RUNTIME 7", "A lane's thread panicked; its issue is released by the guard.";
    SupervisorLost = "supervisor_lost", "HARNESS-RUNTIME 3.2", "The lane's supervisor process ended while a command ran.";
    SandboxUnavailable = "sandbox_unavailable", "TOOL-CALLING-HARNESS-TYPESTATE 4.3", "The requested sandbox mode does not work here or could not be applied; nothing runs unconfined instead.";
    MemoryChangedOutside = "memory_changed_outside", "HARNESS-RUNTIME 2", "Rows of the issue store were changed by no transaction: by an editor, by git, or by a command that was not confined.";
    MutationReadBackMismatch = "mutation_read_back_mismatch", "contracts 6", "The issue store did not show a change when it was read back after it was written: something else changed the row.";
    StepInterrupted = "step_interrupted", "HARNESS-RUNTIME 3.3", "The step was cut by an interrupt of the batch; it uses up no attempt.";
    VerificationSuperseded = "verification_superseded", "HARNESS-RUNTIME 3.2", "The verification was ended because work ahead of it in the landing queue failed; it is done again without that work, and uses up no attempt.";
    LandingConflict = "landing_conflict", "HARNESS-RUNTIME 3.2", "The work and what landed since the step began change the same lines; the target is as it was.";
    LandingCheckFailed = "landing_check_failed", "HARNESS-RUNTIME 3.2", "The work passed on one state of the target, but not on the one that it would land on, or not the check after the landing; the target is without it.";
    LandingNotTakenBack = "landing_not_taken_back", "HARNESS-RUNTIME 3.2", "A landed commit failed the check after its landing and could not be reverted, because later commits conflict; the target is broken.";
    LandingPushFailed = "landing_push_failed", "HARNESS-RUNTIME 3.2", "The work landed and its issue is closed, but the target could not be pushed to the remote.";
    LandingTargetUnusable = "landing_target_unusable", "HARNESS-RUNTIME 3.2", "The landing target does not exist, is checked out in a worktree, or is moved repeatedly by another process.";
    GoverningFilesUntrusted = "governing_files_untrusted", "HARNESS-RUNTIME 3.2", "Files that govern batches changed by the work of steps, or have another digest than the one given; nothing begins until the operator accepts them.";
    SigningKeyUnusable = "signing_key_unusable", "HARNESS-RUNTIME 3.2", "The key that landing commits are to be signed with cannot be read or cannot sign; nothing begins.";
    TelemetryHeadersUnusable = "telemetry_headers_unusable", "HARNESS-RUNTIME 3.2", "The variable with the headers for the receiver of telemetry is not set, passes to commands, or is not of their form; nothing begins.";
    RoomShort = "room_short", "HARNESS-RUNTIME 7", "The machine had too little free disk or memory for a dispatch, for longer than a batch waits.";
    HarnessDied = "harness_died", "contracts 7", "The harness died during the step; it uses up no attempt.";
    DependencyCycle = "dependency_cycle", "HARNESS-RUNTIME 3.1", "The active issues wait for each other in a cycle.";
    MutationModeInvalid = "mutation_mode_invalid", "contracts 8", "Human override needs a reason, and a month that has not passed (`--support-until`).";
    OutboxInvalid = "outbox_invalid", "contracts 8", "A line of the step's outbox is not a request that can be filed.";
    RetryPolicyInvalid = "retry_policy_invalid", "contracts 7", "The retry policy artifact cannot be read.";
    RetryPolicyDigestMismatch = "retry_policy_digest_mismatch", "contracts 7", "The retry policy's digest is not that of its content.";
    TurnPolicyInvalid = "turn_policy_invalid", "TOOL-CALLING-HARNESS-TYPESTATE 4.1", "The turn policy artifact cannot be read.";
    TurnPolicyDigestMismatch = "turn_policy_digest_mismatch", "TOOL-CALLING-HARNESS-TYPESTATE 4.1", "The turn policy's digest is not that of its content.";
    EscalationIssueContextUnbound = "escalation_issue_context_unbound", "contracts 7", "No source says which issue the escalation is about.";
    EscalationIssueContextAmbiguous = "escalation_issue_context_ambiguous", "contracts 7", "The sources disagree on which issue the escalation is about.";
    EscalationSessionInvalid = "escalation_session_invalid", "contracts 7", "The session that should name the issue is broken.";
    EscalationSessionReadFailed = "escalation_session_read_failed", "contracts 7", "The session that should name the issue cannot be read.";
    HostActionMcpTransportRequired = "control_plane_host_action_mcp_transport_required", "contracts 4", "Renew and release are not available on the local transport.";
    TrajectoryCorrupt = "trajectory_corrupt", "HARNESS-RUNTIME 6", "A line of the trajectory cannot be read; nothing is written until it is repaired.";
    ProjectionStoreIo = "projection_store_io", "HARNESS-RUNTIME 2", "A projection or witness file cannot be read or written.";
    ProjectionInvalid = "projection_invalid", "HARNESS-RUNTIME 4", "A projection file does not have the shape that its kind demands.";

    [World]
    WorldCapabilityMismatch = "world_capability_mismatch", "HARNESS-RUNTIME 1.2", "The world that a turn is carried to does not offer to admit turns.";
    WorldPolicyMismatch = "world_policy_mismatch", "HARNESS-RUNTIME 1.2", "The world that a turn is carried to does not accept turns from this repository or under this policy.";
    TransportContextUnresolved = "transport_context_unresolved", "HARNESS-RUNTIME 1.2", "One of the two worlds, or the context that the turn was made in, cannot be found.";
    TransportWitnessUnverifiable = "transport_witness_unverifiable", "HARNESS-RUNTIME 1.2", "The turn's witness is not the one that its step's row names, or does not say what its turn does.";
    TransportNonComposable = "transport_non_composable", "HARNESS-RUNTIME 1.2", "The crossing leads to where the turn is or came from, so that it is not a map between two worlds.";

    [Ledger]
    LedgerEmpty = "harness_feature_ledger.empty", "contracts 6", "The ledger has no feature.";
    LedgerFeatureIdEmpty = "harness_feature_ledger.feature_id.empty", "contracts 6", "A feature has no id.";
    LedgerFeatureIdDuplicate = "harness_feature_ledger.feature_id.duplicate", "contracts 6", "Two features bear one id.";
    LedgerStatusInvalid = "harness_feature_ledger.status.invalid", "contracts 6", "A feature's status is not pending, in_progress, blocked or completed.";
    LedgerInProgressNonContractible = "harness_feature_ledger.in_progress.non_contractible", "contracts 6", "More than one feature is in progress.";
    LedgerCompletedMissingVerificationRef = "harness_feature_ledger.completed_missing_verification_ref", "contracts 6", "A completed feature names no verification.";
    LedgerInstructionRefEmpty = "harness_feature_ledger.instruction_ref.empty", "contracts 6", "An instruction reference is empty.";
    LedgerVerificationRefEmpty = "harness_feature_ledger.verification_ref.empty", "contracts 6", "A verification reference is empty.";
    LedgerUpdatedAtEmpty = "harness_feature_ledger.updated_at.empty", "contracts 6", "The ledger has no time of change.";
    LedgerFeatureUpdatedAtEmpty = "harness_feature_ledger.feature.updated_at.empty", "contracts 6", "A feature has no time of change.";
    LedgerClosureIncomplete = "harness_feature_ledger.closure_incomplete", "contracts 6", "Closure is required and a feature is not completed.";

    [IssueGraph]
    IssueGraphAcceptanceMissing = "issue_graph.acceptance.missing", "HARNESS-RUNTIME 9", "An active issue does not say when it counts as done.";
    IssueGraphVerificationCommandMissing = "issue_graph.verification_command.missing", "HARNESS-RUNTIME 9", "An active issue names no command that verifies it.";
    IssueGraphEpicMismatch = "issue_graph.issue_type.epic_mismatch", "HARNESS-RUNTIME 9", "An issue is titled as an epic and is of another type.";
    IssueGraphNotesLarge = "issue_graph.notes.large", "contracts 9", "An issue's notes are longer than the threshold.";
    IssueGraphStatusUnknown = "issue_graph.status.unknown", "contracts 3", "An issue has an unknown status; it is kept and is never ready.";
    IssueGraphDependencyDangling = "issue_graph.dependency.dangling", "contracts 3", "An edge that holds an issue points to one that does not exist.";
    IssueGraphDependencySelfLoop = "issue_graph.dependency.self_loop", "contracts 3", "An issue waits for itself.";
}

impl FailureClass {
    /// Returns the classes that it follows from where one of them is there too.
    const fn causes(self) -> &'static [Self] {
        match self {
            Self::ToolJoinIncomplete => &[
                Self::ToolResultMissing,
                Self::ToolResultOrphan,
                Self::ToolUseMissing,
                Self::ToolUseWithoutResult,
            ],
            // An output without a call comes before its call, too.
            Self::ProtocolParallelTransportOrderInvalid => &[Self::ToolResultOrphan],
            _ => &[],
        }
    }
}

/// Puts what follows from another class behind the rest: the first one is what
/// a person reads, and what is decided by.
pub fn causes_first(classes: &BTreeSet<FailureClass>) -> Vec<FailureClass> {
    let follows = |class: &FailureClass| class.causes().iter().any(|one| classes.contains(one));
    let (following, mut first): (Vec<_>, Vec<_>) =
        classes.iter().copied().partition(|one| follows(one));
    first.extend(following);
    first
}

impl Ord for FailureClass {
    /// Orders by text, as every answer lists them.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for FailureClass {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No class bears this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown failure class `{0}`")]
pub struct UnknownClass(pub String);

impl FromStr for FailureClass {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::ALL
            .iter()
            .copied()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| UnknownClass(text.to_owned()))
    }
}

impl Serialize for FailureClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FailureClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FailureClass {
    fn schema_name() -> Cow<'static, str> {
        "FailureClass".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::FailureClass").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let classes: Vec<Value> = Self::ALL
            .iter()
            .map(|class| json!({"const": class.as_str(), "description": class.meaning()}))
            .collect();
        json_schema!({
            "description": "A stable, machine-readable name of one way to fail.",
            "type": "string",
            "oneOf": classes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_class_is_in_its_schema_with_its_meaning() {
        let schema = schemars::schema_for!(FailureClass);
        let classes = schema.get("oneOf").and_then(Value::as_array).unwrap();
        assert_eq!(classes.len(), FailureClass::ALL.len());
        for (class, described) in FailureClass::ALL.iter().zip(classes) {
            assert_eq!(described["const"], class.as_str());
            assert_eq!(described["description"], class.meaning());
        }
    }

    #[test]
    fn every_class_has_one_text_that_reads_back() {
        let texts: BTreeSet<_> = FailureClass::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), FailureClass::ALL.len());
        for class in FailureClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(*class));
        }
    }

    #[test]
    fn what_follows_from_another_class_comes_behind_it() {
        use FailureClass as Class;
        for (classes, first) in [
            (
                &[
                    Class::ToolResultOrphan,
                    Class::ToolJoinIncomplete,
                    Class::ProtocolParallelTransportOrderInvalid,
                ][..],
                Class::ToolResultOrphan,
            ),
            (
                &[Class::ToolJoinIncomplete, Class::ToolResultMissing],
                Class::ToolResultMissing,
            ),
            (
                &[
                    Class::ToolJoinIncomplete,
                    Class::ProtocolParallelTransportOrderInvalid,
                ],
                Class::ProtocolParallelTransportOrderInvalid,
            ),
            (&[Class::ToolJoinIncomplete], Class::ToolJoinIncomplete),
        ] {
            let set: BTreeSet<_> = classes.iter().copied().collect();
            let ordered = causes_first(&set);
            assert_eq!(ordered[0], first, "{classes:?}");
            assert_eq!(ordered.len(), classes.len());
        }
    }

    #[test]
    fn the_typestate_documents_name_42_classes() {
        assert_eq!(Family::Typestate.classes().count(), 42);
    }

    #[test]
    fn the_families_hold_every_class_in_the_order_of_the_table() {
        let classes: Vec<_> = Family::ALL.iter().flat_map(|f| f.classes()).collect();
        assert_eq!(classes, FailureClass::ALL);
    }

    #[test]
    fn a_meaning_is_one_sentence_of_one_line() {
        for class in FailureClass::ALL {
            let meaning = class.meaning();
            assert!(
                meaning.starts_with(char::is_uppercase)
                    && meaning.ends_with('.')
                    && !meaning.contains(". ")
                    && !meaning.contains('\n'),
                "{class}: {meaning}"
            );
        }
    }

    #[test]
    fn a_typestate_class_names_the_section_of_its_rule() {
        for class in Family::Typestate.classes() {
            let section = ["TOOL-CALLING-HARNESS-TYPESTATE ", "HARNESS-TYPESTATE "]
                .iter()
                .find_map(|document| class.source().strip_prefix(document));
            let numbered = section.is_some_and(|s| s.starts_with(|c: char| c.is_ascii_digit()));
            assert!(numbered, "{class}: {}", class.source());
        }
    }
}
