//! What a gated command is run with: flags over `harness.toml`.

use super::policy::{policy_in, policy_of};
use super::{EnvironmentRules, FileSettings, Limits, SettingsError, absolute, path_of};
use premath_kernel::authority::MutationMode;
use premath_kernel::retry::{BackoffTable, RetryPolicy};
use premath_memory::roots::MemoryRoots;
use std::path::{Path, PathBuf};

/// Flags of `harness-worker gate` that settings are made of.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GateFlags {
    /// The retry policy [default: the one that harness.toml names, else policies/control/harness-retry-policy-v1.json where it is there, else the built-in one]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// A folder of the repository; its main worktree holds issue memory [default: .]
    #[arg(long, value_name = "DIR")]
    pub repo_root: Option<PathBuf>,
    /// Issue memory [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub issues_path: Option<PathBuf>,
    /// The trajectory [default: .premath/harness_trajectory.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub trajectory_path: Option<PathBuf>,
    /// Why an escalation may change an issue [default: `override_reason` of harness.toml]
    #[arg(long, value_name = "TEXT")]
    pub override_reason: Option<String>,
    /// The configuration file [default: harness.toml of the main worktree, where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What a gated command is run with.
#[derive(Debug)]
pub struct GateSettings {
    /// Where memory, trajectory and artifacts are.
    pub roots: MemoryRoots,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// How long the policy's backoff classes wait.
    pub backoff: BackoffTable,
    /// Bounds of commands.
    pub limits: Limits,
    /// What commands inherit.
    pub environment: EnvironmentRules,
    /// What an escalation rests on; looked at when one is due.
    pub mode: Result<MutationMode, SettingsError>,
}

impl GateSettings {
    /// Puts flags, environment and file together, in falling order.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], naming the flag or key.
    pub fn resolve(flags: &GateFlags, now: jiff::Timestamp) -> Result<Self, SettingsError> {
        let folder = flags.repo_root.as_deref().unwrap_or(Path::new("."));
        let mut roots = MemoryRoots::discover(folder)?;
        let issues = flags
            .issues_path
            .clone()
            .or_else(|| path_of("PREMATH_ISSUES_PATH"));
        if let Some(path) = issues {
            roots.issues = absolute(&path);
        }
        if let Some(path) = &flags.trajectory_path {
            roots.trajectory = absolute(path);
        }
        let file = FileSettings::load(flags.config.as_deref(), &roots.repository)?;
        let batch = file.batch;
        let retry = match &flags.policy {
            Some(path) => policy_of(path)?,
            None => policy_in(&roots.repository, batch.retry_policy.as_deref())?,
        };
        let mode = match (&flags.override_reason, batch.mutation_mode.as_deref()) {
            (None, Some(mode)) if mode != "human-override" => Err(SettingsError::Value {
                name: "--override-reason",
                detail: format!(
                    "a gate cannot escalate in mutation mode `{mode}`, which harness.toml asks for"
                ),
            }),
            (reason, _) => MutationMode::human_override(
                reason
                    .as_deref()
                    .or(batch.override_reason.as_deref())
                    .unwrap_or(""),
                batch.support_until.as_deref(),
                now,
            )
            .map_err(SettingsError::from),
        };
        Ok(Self {
            roots,
            retry,
            backoff: file.backoff,
            limits: file.limits,
            environment: file.environment,
            mode,
        })
    }
}
