//! What a gated command is run with: flags over `harness.toml`.

use super::instruction::ModeSelection;
use super::policy::{policy_in, policy_of_flag};
use super::{
    CommandLimits, EnvironmentRules, FileSettings, LoopFlags, SettingsError, absolute, path_of,
};
use premath_kernel::authority::MutationMode;
use premath_kernel::policy::retry::{BackoffTable, RetryPolicy};
use premath_kernel::turn::GovernanceProfile;
use premath_memory::governance::PolicyPackage;
use premath_memory::roots::MemoryRoots;
use std::path::{Path, PathBuf};

/// Flags of `harness-worker gate` that settings are made of.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GateFlags {
    /// Set the retry policy
    ///
    /// [default: the one in harness.toml, else
    /// policies/control/harness-retry-policy-v1.json if it exists, else the
    /// built-in one]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    pub repo_root: Option<PathBuf>,
    /// Set the issue store file
    ///
    /// [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the main
    /// worktree]
    #[arg(long, value_name = "FILE")]
    pub issues_path: Option<PathBuf>,
    /// Set the trajectory file
    ///
    /// [default: .premath/harness_trajectory.jsonl of the main worktree]
    #[arg(long, value_name = "FILE")]
    pub trajectory_path: Option<PathBuf>,
    /// Give the reason for an escalation
    ///
    /// [default: `override_reason` of harness.toml]
    #[arg(long, value_name = "TEXT")]
    pub override_reason: Option<String>,
    /// Set the configuration file [default: harness.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What a gated command is run with.
#[derive(Debug)]
pub(crate) struct GateSettings {
    /// Where memory, trajectory and artifacts are.
    pub roots: MemoryRoots,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// How long the policy's backoff classes wait.
    pub backoff: BackoffTable,
    /// Bounds of commands.
    pub limits: CommandLimits,
    /// The variables that commands inherit.
    pub environment: EnvironmentRules,
    /// The governance profile, where the repository claims it.
    pub governance: Option<GovernanceProfile>,
    /// What an escalation rests on; looked at when one is due.
    pub mode: Result<MutationMode, SettingsError>,
}

impl GateSettings {
    /// Puts flags, environment and file together, in falling order.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], naming the flag or key.
    pub(crate) fn resolve(flags: &GateFlags, now: jiff::Timestamp) -> Result<Self, SettingsError> {
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
            Some(path) => policy_of_flag(path)?,
            None => {
                let named = batch.retry_policy.as_deref();
                policy_in(&roots.repository, named, &file.places)?
            }
        };
        let named = LoopFlags {
            override_reason: flags.override_reason.clone(),
            ..LoopFlags::default()
        };
        let mode = ModeSelection {
            flags: &named,
            file: &batch,
            repository: &roots.repository,
            has_startup: batch.startup_cmd.is_some() || file.verify.verifies_base(None)?,
            now,
        }
        .mode();
        let mut backoff = file.backoff;
        if let Some(percent) = file.jitter_percent {
            backoff.set_jitter(percent);
        }
        let governance = PolicyPackage::from(&file.governance).profile(&roots.repository)?;
        Ok(Self {
            roots,
            retry,
            backoff,
            governance,
            limits: file.limits,
            environment: file.environment,
            mode,
        })
    }
}
