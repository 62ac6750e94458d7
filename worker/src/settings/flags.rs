//! The flags that both loops take.

use super::agent::adapter_names;
use std::path::PathBuf;

/// Flags of `harness-worker` and `harness-coordinator`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LoopFlags {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    pub repo_root: Option<PathBuf>,
    /// Set the issue store file
    ///
    /// [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the main
    /// worktree]
    #[arg(long, value_name = "FILE")]
    pub issues_path: Option<PathBuf>,
    /// Set the session file [default: .premath/harness_session.json]
    #[arg(long, value_name = "FILE")]
    pub session_path: Option<PathBuf>,
    /// Set the feature ledger file
    ///
    /// [default: .premath/harness_feature_ledger.json of the worktree]
    #[arg(long, value_name = "FILE")]
    pub feature_ledger_path: Option<PathBuf>,
    /// Set the trajectory file
    ///
    /// [default: .premath/harness_trajectory.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub trajectory_path: Option<PathBuf>,
    /// Set the lifetime of a lease, 30 to 86400 seconds [default: 3600]
    #[arg(long, value_name = "N")]
    pub lease_ttl_seconds: Option<u64>,
    /// Set the command that works on an issue [default: $PREMATH_WORK_CMD]
    #[arg(long, value_name = "COMMAND")]
    pub work_cmd: Option<String>,
    /// Distribute these agents over the lanes, for example codex,claude
    ///
    /// A work command replaces their built-in command lines. [default:
    /// $PREMATH_AGENT]
    #[arg(long, value_name = "AGENTS")]
    pub agent: Option<String>,
    /// Set the evidence adapter of the work command
    #[arg(long, value_name = "ADAPTER", long_help = adapter_help())]
    pub adapter: Option<String>,
    /// Set the verification command [default: $PREMATH_VERIFY_CMD]
    #[arg(long, value_name = "COMMAND")]
    pub verify_cmd: Option<String>,
    /// Run the verify command on the base first, or not: run or off
    ///
    /// A base that fails refuses the batch. [default: run, if there is no
    /// startup command]
    #[arg(long, value_name = "RULE")]
    pub startup: Option<String>,
    /// Set the prefix of work witnesses
    ///
    /// [default: $PREMATH_WITNESS_REF_PREFIX, else worker://loop]
    #[arg(long, value_name = "PREFIX")]
    pub witness_ref_prefix: Option<String>,
    /// Set the instruction of the batch [default: $PREMATH_INSTRUCTION]
    #[arg(long, value_name = "FILE")]
    pub instruction: Option<PathBuf>,
    /// Authorise changes by instruction-linked or human-override
    ///
    /// [default: instruction-linked; human-override if a reason and no
    /// instruction is given]
    #[arg(long, value_name = "MODE")]
    pub mutation_mode: Option<String>,
    /// Give the reason for a human override
    #[arg(long, value_name = "TEXT")]
    pub override_reason: Option<String>,
    /// Set the last month in which the override is valid, YYYY-MM
    #[arg(long, value_name = "YYYY-MM")]
    pub support_until: Option<String>,
    /// Set the transport of lease recovery: mcp or local-repl
    ///
    /// [default: $PREMATH_HOST_ACTION_TRANSPORT, else mcp]
    #[arg(long, value_name = "TRANSPORT")]
    pub host_action_transport: Option<String>,
    /// Work only on these issue types: all, or a list
    ///
    /// [default: all but epic, gate, agent, rig, role, molecule, event,
    /// message, merge-request]
    #[arg(long, value_name = "TYPES")]
    pub issue_types: Option<String>,
    /// Work only on issues with one of these labels
    #[arg(long, value_name = "LABELS")]
    pub labels: Option<String>,
    /// Filter by assignee: none, any, or a name [default: none]
    ///
    /// `none` means unassigned or assigned to this worker.
    #[arg(long, value_name = "WHO")]
    pub assignee: Option<String>,
    /// Set what happens to closed work: merge, branch or none
    ///
    /// `merge` lands it on the target before its issue closes. `branch` keeps
    /// it on a branch from the target. `none` commits it on the lane's branch.
    /// [default: merge; none if a lane is the main worktree]
    #[arg(long, value_name = "MODE")]
    pub landing: Option<String>,
    /// Set the landing target [default: harness/integration]
    ///
    /// A missing branch is created from the main worktree's HEAD.
    #[arg(long, value_name = "BRANCH")]
    pub landing_target: Option<String>,
    /// Confine commands by namespaces, container, landlock or none
    ///
    /// [default: $PREMATH_SANDBOX, else container if an image is set, else the
    /// strongest mode that works]
    #[arg(long, value_name = "MODE")]
    pub sandbox: Option<String>,
    /// Set the image of the sandbox mode container
    ///
    /// Podman or docker provides its files. [default: $PREMATH_SANDBOX_IMAGE]
    #[arg(long, value_name = "IMAGE")]
    pub sandbox_image: Option<String>,
    /// Set the network policy of the work command
    ///
    /// One of off, allow, registries, public or open. [default:
    /// $PREMATH_NETWORK_WORK, else public; open if the sandbox cannot enforce
    /// it]
    #[arg(long, value_name = "POLICY")]
    pub network_work: Option<String>,
    /// Set the network policy of the verification
    ///
    /// One of off, allow, registries, public or open. [default:
    /// $PREMATH_NETWORK_VERIFY, else registries; open if the sandbox cannot
    /// enforce it]
    #[arg(long, value_name = "POLICY")]
    pub network_verify: Option<String>,
    /// Accept the governing files if they have this digest
    ///
    /// Otherwise the batch is refused. `premath trust` prints the digest.
    #[arg(long, value_name = "DIGEST")]
    pub trust: Option<String>,
    /// Continue with other issues after a failure (the default)
    #[arg(long, conflicts_with = "stop_on_failure")]
    pub continue_on_failure: bool,
    /// End the batch at the first failed issue
    #[arg(long)]
    pub stop_on_failure: bool,
    /// Refuse or allow closing an issue without a change [default: refuse]
    ///
    /// The verification alone then closes it. An issue with the label
    /// `no-change` always may close so.
    #[arg(long, value_name = "RULE")]
    pub on_no_change: Option<String>,
    /// Drain the batch at this time: local, as 07:00, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub stop_at: Option<String>,
    /// Drain the batch after this duration, for example 9h
    #[arg(long, value_name = "DURATION")]
    pub max_duration: Option<String>,
    /// Set the configuration file [default: harness.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The help of `--adapter`, which lists them.
fn adapter_help() -> String {
    let mut names: Vec<&str> = adapter_names().collect();
    let last = names.pop().unwrap_or_default();
    format!(
        "Set the evidence adapter of the work command\n\nOne of {} or {last}. [default: \
         $PREMATH_ADAPTER, else the agent's, else shell]",
        names.join(", ")
    )
}
