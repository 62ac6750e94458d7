//! The table itself.

use super::{Operation, RouteFamily};
use crate::authority::claim::ChangeMorphism;

/// Returns the text of a column; `None` for `-`.
macro_rules! column {
    (-) => {
        None
    };
    ($text:literal) => {
        Some($text)
    };
}

/// Returns whether an operation mutates.
macro_rules! mutates {
    (reads) => {
        false
    };
    (writes) => {
        true
    };
}

/// Returns the claim that an instruction must make, if any.
macro_rules! claim {
    () => {
        None
    };
    ($claim:ident) => {
        Some(ChangeMorphism::$claim)
    };
}

macro_rules! operations {
    ($( $route:ident {
        $( $id:literal $command:tt $tool:tt $action:tt $effect:ident $($claim:ident)?; )+
    } )+) => {
        /// Every operation. One that is new is a line here; a command that has
        /// none fails `premath doctrine check`.
        pub const OPERATIONS: &[Operation] = &[ $( $(
            Operation {
                id: $id,
                command: column!($command),
                tool: column!($tool),
                action: column!($action),
                route: RouteFamily::$route,
                mutates: mutates!($effect),
                claim: claim!($($claim)?),
            },
        )+ )+ ];
    };
}

// By route, one operation a line: id, command, MCP tool, dispatch action, then
// `reads` or `writes` with the claim that an instruction must make for it.
operations! {
    IssueClaimLease {
        "op/mcp.issue_claim"            "issue claim"      "issue_claim"            "issue.claim"         writes IssueClaim;
        "op/transport.issue_claim_next" "issue claim-next" -                        "issue.claim_next"    writes IssueClaim;
        "op/mcp.issue_lease_renew"      "issue renew"      "issue_lease_renew"      "issue.lease_renew"   writes IssueLeaseRenew;
        "op/mcp.issue_lease_release"    "issue release"    "issue_lease_release"    "issue.lease_release" writes IssueLeaseRelease;
        "op/mcp.issue_lease_projection" -                  "issue_lease_projection" "issue.lease.state"   reads;
        "op/mcp.issue_discover"         "issue discover"   "issue_discover"         -                     writes IssueDiscover;
    }
    IssueGraph {
        "op/mcp.issue_add"                "issue add"            "issue_add"       - writes IssueAdd;
        "op/mcp.issue_update"             "issue update"         "issue_update"    - writes IssueUpdate;
        "op/mcp.issue_list"               "issue list"           "issue_list"      - reads;
        "op/mcp.issue_ready"              "issue ready"          "issue_ready"     - reads;
        "op/mcp.issue_blocked"            "issue blocked"        "issue_blocked"   - reads;
        "op/mcp.issue_check"              "issue check"          "issue_check"     - reads;
        "op/premath.issue_show"           "issue show"           -                 - reads;
        "op/premath.issue_edit"           "issue edit"           -                 - writes;
        "op/premath.issue_close"          "issue close"          -                 - writes;
        "op/premath.issue_reopen"         "issue reopen"         -                 - writes;
        "op/premath.issue_defer"          "issue defer"          -                 - writes;
        "op/premath.issue_delete"         "issue delete"         -                 - writes;
        "op/premath.issue_import"         "issue import"         -                 - writes;
        "op/premath.issue_compact"        "issue compact"        -                 - writes;
        "op/premath.issue_accept_changes" "issue accept-changes" -                 - writes;
        "op/mcp.dep_add"                  "dep add"              "dep_add"         - writes DepAdd;
        "op/mcp.dep_remove"               "dep remove"           "dep_remove"      - writes DepRemove;
        "op/mcp.dep_replace"              "dep replace"          "dep_replace"     - writes DepReplace;
        "op/mcp.dep_diagnostics"          "dep diagnostics"      "dep_diagnostics" - reads;
    }
    SessionProjection {
        "op/harness.session_read"      "harness-session read"      "harness_session_read"     - reads;
        "op/harness.session_write"     "harness-session write"     -                          - writes;
        "op/harness.session_bootstrap" "harness-session bootstrap" -                          - reads;
        "op/harness.feature_read"      "harness-feature read"      -                          - reads;
        "op/harness.feature_write"     "harness-feature write"     -                          - writes;
        "op/harness.feature_check"     "harness-feature check"     -                          - reads;
        "op/harness.feature_next"      "harness-feature next"      -                          - reads;
        "op/harness.trajectory_append" "harness-trajectory append" -                          - writes;
        "op/harness.trajectory_query"  "harness-trajectory query"  "harness_trajectory_query" - reads;
        "op/mcp.observe_latest"          "observe latest"          "observe_latest"          - reads;
        "op/mcp.observe_needs_attention" "observe needs_attention" "observe_needs_attention" - reads;
        "op/mcp.observe_instruction"     "observe instruction"     "observe_instruction"     - reads;
    }
    GateExecution {
        "op/harness.join_check"    "harness-join-check"    "join_check" - reads;
        "op/conformance.run"       "conformance run"       -            - reads;
        "op/conformance.slices"    "conformance slices"    -            - reads;
        "op/conformance.documents" "conformance documents" -            - writes;
    }
    InstructionExecution {
        "op/mcp.instruction_check"    "instruction check" "instruction_check" - reads;
        "op/premath.instruction_new"  "instruction new"   -                   - writes;
        "op/premath.instruction_show" "instruction show"  -                   - reads;
    }
    OperatorSurface {
        "op/premath.retry_decide"    "retry decide"    - - reads;
        "op/premath.batch_pause"        "batch pause"        "batch_pause"        - writes IssueClaim;
        "op/premath.batch_resume"       "batch resume"       "batch_resume"       - writes IssueClaim;
        "op/premath.batch_drain"        "batch drain"        "batch_drain"        - writes IssueClaim;
        "op/premath.batch_stop"         "batch stop"         "batch_stop"         - writes IssueClaim;
        "op/premath.batch_lanes_add"    "batch lanes add"    "batch_lanes_add"    - writes IssueClaim;
        "op/premath.batch_lanes_remove" "batch lanes remove" "batch_lanes_remove" - writes IssueClaim;
        "op/premath.cancel"             "cancel"             "issue_cancel"       - writes IssueUpdate;
        "op/premath.say"                "say"                "issue_say"          - writes IssueUpdate;
        "op/premath.retry"              "retry"              "issue_retry"        - writes IssueUpdate;
        "op/premath.escalate"        "escalate"        - - writes IssueUpdate;
        "op/premath.agents_check"    "agents check"    - - reads;
        "op/premath.kpi"             "kpi"             - - reads;
        "op/premath.plan"            "plan"            - - reads;
        "op/premath.status"          "status"          - - reads;
        "op/premath.service_install"   "service install"   - - writes;
        "op/premath.service_uninstall" "service uninstall" - - writes;
        "op/premath.service_show"      "service show"      - - reads;
        "op/premath.serve"           "serve"           - - reads;
        "op/premath.watch"           "watch"           - - writes IssueUpdate;
        "op/premath.why"             "why"             - - reads;
        "op/premath.logs"            "logs"            - - reads;
        "op/premath.diff"            "diff"            - - reads;
        "op/premath.report"          "report"          - - reads;
        "op/premath.review"          "review"          - - writes IssueUpdate;
        "op/premath.sandbox_explain" "sandbox explain" - - reads;
        "op/premath.sandbox_try"     "sandbox try"     - - reads;
        "op/premath.trust"           "trust"           - - writes;
        "op/premath.policy_show"     "policy show"     - - reads;
        "op/premath.policy_explain"  "policy explain"  - - reads;
        "op/premath.policy_seal"     "policy seal"     - - writes;
        "op/premath.policy_check"    "policy check"    - - reads;
        "op/premath.policy_diff"     "policy diff"     - - reads;
        "op/premath.doctor"          "doctor"          - - writes;
        "op/premath.audit"           "audit"           - - reads;
        "op/premath.clean"           "clean"           - - writes;
        "op/premath.uninstall"       "uninstall"       - - writes;
        "op/premath.mcp_serve"       "mcp-serve"       - - writes;
        "op/conformance.doctrine"    "doctrine check"  - - reads;
        "op/premath.init"            "init"            - - writes;
        "op/premath.classes"         "classes"         - - reads;
        "op/premath.schema"          "schema"          - - writes;
        "op/premath.completions"     "completions"     - - reads;
        "op/premath.man"             "man"             - - writes;
    }
    TransportDispatch {
        "op/transport.dispatch"     "transport-dispatch" - - writes;
        "op/transport.world_submit" "world submit"       - - writes;
    }
}
