//! The flags that both loops take.

use std::path::PathBuf;

/// Flags of `harness-worker` and `harness-coordinator`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LoopFlags {
    /// A folder of the repository; its main worktree holds issue memory [default: .]
    #[arg(long, value_name = "DIR")]
    pub repo_root: Option<PathBuf>,
    /// Issue memory [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub issues_path: Option<PathBuf>,
    /// The session [default: .premath/harness_session.json of the worktree]
    #[arg(long, value_name = "FILE")]
    pub session_path: Option<PathBuf>,
    /// The feature ledger [default: .premath/harness_feature_ledger.json of the worktree]
    #[arg(long, value_name = "FILE")]
    pub feature_ledger_path: Option<PathBuf>,
    /// The trajectory [default: .premath/harness_trajectory.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub trajectory_path: Option<PathBuf>,
    /// How long a lease lives without a renewal, 30 to 86400 [default: 3600]
    #[arg(long, value_name = "N")]
    pub lease_ttl_seconds: Option<u64>,
    /// The command that works on an issue [default: $PREMATH_WORK_CMD]
    #[arg(long, value_name = "COMMAND")]
    pub work_cmd: Option<String>,
    /// The agents that the lanes take in turn, as in codex,claude: their ready command lines work, unless there is a work command [default: $PREMATH_AGENT]
    #[arg(long, value_name = "AGENTS")]
    pub agent: Option<String>,
    /// How what the work command did becomes evidence: shell, evidence-file, claude, codex, gemini or opencode [default: $PREMATH_ADAPTER, else the agent's, else shell]
    #[arg(long, value_name = "ADAPTER")]
    pub adapter: Option<String>,
    /// The command that verifies the work [default: $PREMATH_VERIFY_CMD]
    #[arg(long, value_name = "COMMAND")]
    pub verify_cmd: Option<String>,
    /// The prefix of work witnesses [default: $PREMATH_WITNESS_REF_PREFIX, else worker://loop]
    #[arg(long, value_name = "PREFIX")]
    pub witness_ref_prefix: Option<String>,
    /// The envelope that changes of issues rest on [default: $PREMATH_INSTRUCTION]
    #[arg(long, value_name = "FILE")]
    pub instruction: Option<PathBuf>,
    /// What changes of issues rest on: instruction-linked (the default) or human-override (the default where a reason is given and no instruction)
    #[arg(long, value_name = "MODE")]
    pub mutation_mode: Option<String>,
    /// Why issues may be changed without an instruction
    #[arg(long, value_name = "TEXT")]
    pub override_reason: Option<String>,
    /// The last month in which the override is good
    #[arg(long, value_name = "YYYY-MM")]
    pub support_until: Option<String>,
    /// How lease recovery is transported: mcp or local-repl [default: $PREMATH_HOST_ACTION_TRANSPORT, else mcp]
    #[arg(long, value_name = "TRANSPORT")]
    pub host_action_transport: Option<String>,
    /// Types to work on: all, or a list [default: all but epic, gate, agent, rig, role, molecule, event, message, merge-request]
    #[arg(long, value_name = "TYPES")]
    pub issue_types: Option<String>,
    /// Work only on issues with one of these labels
    #[arg(long, value_name = "LABELS")]
    pub labels: Option<String>,
    /// Whose issues to take: none (unassigned or this worker's), any, or a name [default: none]
    #[arg(long, value_name = "WHO")]
    pub assignee: Option<String>,
    /// What becomes of closed work: merge (it lands on the target before its issue closes), branch (a branch a step, from the target), none [default: merge; none where a lane is the main worktree itself]
    #[arg(long, value_name = "MODE")]
    pub landing: Option<String>,
    /// The branch that work lands on; made from the main worktree's HEAD where there is none [default: harness/integration]
    #[arg(long, value_name = "BRANCH")]
    pub landing_target: Option<String>,
    /// How commands are confined: namespaces, landlock or none [default: $PREMATH_SANDBOX, else the strongest that works here]
    #[arg(long, value_name = "MODE")]
    pub sandbox: Option<String>,
    /// Which hosts the work may reach: off, allow, registries, public or open [default: $PREMATH_NETWORK_WORK, else public; open where the sandbox cannot enforce it]
    #[arg(long, value_name = "POLICY")]
    pub network_work: Option<String>,
    /// Which hosts the verification may reach: off, allow, registries, public or open [default: $PREMATH_NETWORK_VERIFY, else registries; open where the sandbox cannot enforce it]
    #[arg(long, value_name = "POLICY")]
    pub network_verify: Option<String>,
    /// Begin only with governing files of this digest, and accept them: `premath trust` says it
    #[arg(long, value_name = "DIGEST")]
    pub trust: Option<String>,
    /// Go on after an issue failed (the default)
    #[arg(long, conflicts_with = "stop_on_failure")]
    pub continue_on_failure: bool,
    /// End the batch at the first issue that failed
    #[arg(long)]
    pub stop_on_failure: bool,
    /// Take no new work from then on: the next 07:00 of this machine's clocks, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub stop_at: Option<String>,
    /// Take no new work after so long, as in 9h
    #[arg(long, value_name = "DURATION")]
    pub max_duration: Option<String>,
    /// The configuration file [default: harness.toml of the main worktree, where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
