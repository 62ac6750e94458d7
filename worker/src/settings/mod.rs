//! What a batch is run with: flags over environment over `harness.toml`
//! (`contracts.md` 9).

mod agent;
mod authority;
mod bounds;
mod crew;
mod document;
mod error;
mod file;
mod flags;
mod gate;
mod governance;
mod hooks;
mod instruction;
mod keys;
mod landing;
mod network;
mod notify;
mod policy;
mod program;
mod protect;
mod resolve;
mod resources;
mod rules;
mod sandbox;
mod scope;
mod signing;
mod step_folders;
mod telemetry;
mod template;
mod values;
mod verify;
mod world;

pub use agent::{Adapter, Work, Workforce};
pub(crate) use authority::AuthoritySources;
pub use authority::Revocation;
pub use bounds::BatchBounds;
pub use crew::CrewFlags;
pub use error::{SettingsError, UnacceptedFilesError};
pub use file::{ConfigError, CoordinatorTable, FileSettings, WorktreesTable};
pub use flags::LoopFlags;
pub(crate) use gate::{GateFlags, GateSettings};
pub use instruction::InstructionError;
pub use network::Network;
pub use notify::{NotifySettings, WebhookSettings};
pub use premath_memory::governance::GovernanceError;
pub use protect::Protect;
pub use resolve::SET_ASIDE_AFTER;
pub use resources::Resources;
pub(crate) use sandbox::outside;
pub use sandbox::trusted_path;
pub use sandbox::{Sandbox, image_cache};
pub(crate) use scope::ScopePaths;
pub use signing::SigningKeyError;
pub(crate) use step_folders::StepFolders;
pub use telemetry::{TelemetryHeadersError, TelemetrySettings};
pub use template::{schema, template};
pub use verify::Provided;
pub(crate) use verify::tracked_at;
pub(crate) use world::{WorldSettings, worlds_root};

pub use crate::environment::EnvironmentRules;
use premath_kernel::authority::MutationMode;
use premath_kernel::issue::Selection;
use premath_kernel::issue::lease::AssigneeRule;
use premath_kernel::json::canonical;
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::landing::{LandingMode, LandingRule};
use premath_kernel::policy::retry::{BackoffTable, RetryPolicy};
use premath_kernel::policy::silence::SilenceLimits;
use premath_kernel::policy::turn::TurnPolicy;
use premath_kernel::record::own_checks::OwnCheckRecord;
use premath_kernel::turn::GovernanceProfile;
use premath_memory::StoreError;
use premath_memory::roots::{self, MemoryRoots};
use premath_worktree::signing::Signer;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The commands of the hooks, as a shell reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// The verification.
    pub verify: String,
    /// Runs once a lane, at the end of `boot`.
    pub boot: Option<String>,
    /// Runs once a step, in `stop`.
    pub stop: Option<String>,
    /// The startup verification: passes before anything is changed.
    pub startup: Option<String>,
}

impl Hooks {
    /// Returns the commands that are set.
    fn commands(&self) -> impl Iterator<Item = &str> {
        let optional = [&self.boot, &self.stop, &self.startup];
        let optional = optional.into_iter().flatten();
        optional.chain([&self.verify]).map(String::as_str)
    }
}

/// The bounds of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// How long the work may run.
    pub step: Duration,
    /// How long any other command may run.
    pub verify: Duration,
    /// From TERM to KILL.
    pub grace: Duration,
    /// Bytes kept of each output stream.
    pub output_cap: u64,
    /// Bytes kept of an agent's event stream; one that is longer is refused.
    pub stream_cap: u64,
    /// How long an agent may be silent.
    pub silence: SilenceLimits,
    /// How long running steps may continue after the first interrupt.
    pub drain_grace: Duration,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            step: Duration::from_secs(45 * 60),
            verify: Duration::from_secs(45 * 60),
            grace: Duration::from_secs(10),
            output_cap: 8 << 20,
            stream_cap: 256 << 20,
            silence: SilenceLimits::default(),
            drain_grace: Duration::from_secs(10 * 60),
        }
    }
}

/// How lease recovery actions of a stop are transported (`contracts.md` 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostActionTransport {
    /// Renew and release are carried out.
    #[default]
    Mcp,
    /// Renew and release fail closed.
    LocalRepl,
}

/// Everything that a loop needs to know before it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where memory, trajectory and artifacts are.
    pub roots: MemoryRoots,
    /// The session's path, where it is not the usual one; a relative one
    /// counts from the lane's worktree.
    pub session_path: Option<PathBuf>,
    /// The ledger's path, relative to the lane's worktree.
    pub ledger_path: Option<PathBuf>,
    /// How long a lease lives without a renewal.
    pub lease_ttl: Duration,
    /// The agents or the command that work.
    pub work: Workforce,
    /// The commands.
    pub hooks: Hooks,
    /// The prefix of work witnesses.
    pub witness_prefix: String,
    /// The mutation mode, with what it rests on.
    pub mode: MutationMode,
    /// How lease recovery is transported.
    pub transport: HostActionTransport,
    /// Where what changes rest on is read from again.
    pub(crate) authority: AuthoritySources,
    /// Which issues are worked on.
    pub selection: Selection,
    /// The files that work may change, where the instruction restricts them.
    pub(crate) scope_paths: Option<ScopePaths>,
    /// The assignees whose issues are taken.
    pub assignees: AssigneeRule,
    /// Whether the batch ends at the first failure.
    pub stop_on_failure: bool,
    /// Whether work that changed nothing is a failure, unless the issue has the
    /// label that allows it.
    pub refuse_no_change: bool,
    /// In how many batches in a row an issue fails before it is set aside; 0 for
    /// never.
    pub set_aside_after: u32,
    /// Bounds of commands.
    pub limits: CommandLimits,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The turn policy.
    pub turn: Arc<TurnPolicy>,
    /// Whether hooks are wired into agents.
    pub hooks_of_agents: bool,
    /// Whether a retry resumes the session of the attempt before it.
    pub(crate) resumes: bool,
    /// How long the policy's backoff classes wait.
    pub backoff: BackoffTable,
    /// The variables that commands inherit.
    pub environment: EnvironmentRules,
    /// The prompt's template, where it is not the built-in one.
    pub prompt_template: Option<String>,
    /// What happens to closed work.
    pub landing: LandingRule,
    /// Whether the landing mode is not set.
    pub landing_is_default: bool,
    /// What makes a worktree ready to work in.
    pub setup: Option<Setup>,
    /// What work must not touch.
    pub protect: Protect,
    /// The governance profile, where the repository claims it.
    pub governance: Option<GovernanceProfile>,
    /// What bounds the batch beside its commands.
    pub bounds: BatchBounds,
    /// The sandbox of the commands.
    pub sandbox: Sandbox,
    /// What a command may use of the machine.
    pub resources: Resources,
    /// Which hosts commands may reach.
    pub network: Network,
    /// What a person is notified of, and how.
    pub notify: Option<NotifySettings>,
    /// Where spans and sums are sent.
    pub telemetry: Option<TelemetrySettings>,
    /// Whether verifications begin with the build state of the base, where the
    /// sandbox has layers.
    pub warm: bool,
    /// How often a verification that fails is repeated on the same tree.
    pub flaky_reruns: usize,
    /// Whether the verify command runs on the base before the first step, where
    /// there is no startup command.
    pub verify_base: bool,
    /// Whether verification commands of issues are run.
    pub issue_checks: bool,
    /// The verification commands of issues that may be run, as they were when the
    /// batch was authorised.
    pub(crate) own_checks: BTreeMap<IssueId, OwnCheckRecord>,
    /// How many verifications run at once, as far as that is set.
    pub verify_slots: Option<usize>,
    /// The key that landing commits are signed with.
    pub signer: Option<Signer>,
    /// Files that every verification has beside the tree.
    pub provided: Vec<Provided>,
    /// Other repositories that steps may work in, by name.
    pub worlds: BTreeMap<String, PathBuf>,
}

/// What makes a worktree ready to work in, such as the install of what a
/// project depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The command.
    pub command: String,
    /// The files whose content says whether it must run again.
    pub inputs: Vec<PathBuf>,
}

impl Settings {
    /// Returns what commands inherit before the rules of `[env]`.
    pub(crate) fn inherited(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        self.sandbox.inherited(&self.environment)
    }

    /// Makes sure that lanes do not share a session or a ledger.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Value`] for an absolute path and more than one lane.
    pub fn refuse_shared_projections(&self, lanes: usize) -> Result<(), SettingsError> {
        let shared = [
            ("--session-path", &self.session_path),
            ("--feature-ledger-path", &self.ledger_path),
        ];
        for (name, path) in shared {
            if lanes > 1 && path.as_ref().is_some_and(|path| path.is_absolute()) {
                return Err(SettingsError::Value {
                    name,
                    detail: "lanes cannot share one file; give a path relative to each worktree"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Returns the digest of what makes a batch the same batch when it is
    /// started again (`contracts.md` 6).
    pub(crate) fn digest(&self, worktrees: &[PathBuf]) -> String {
        canonical::digest(&json!({
            "repository": self.roots.repository,
            "issuesPath": self.roots.issues,
            "trajectoryPath": self.roots.trajectory,
            "worktrees": worktrees,
            "work": self.work,
            "verify": self.hooks.verify,
            "boot": self.hooks.boot,
            "stop": self.hooks.stop,
            "startup": self.hooks.startup,
            "verifyBase": self.verify_base,
            "mode": self.mode.name(),
            "reason": self.mode.reason(),
            "instruction": self.mode.instruction_ref(),
            "refuseNoChange": self.refuse_no_change,
            "issueChecks": self.issue_checks,
            "selection": format!("{:?}", self.selection),
            "assignees": format!("{:?}", self.assignees),
            "retryPolicy": self.retry.policy_digest(),
            "hooks": self.hooks_of_agents,
            "resume": self.resumes,
            "turnPolicy": self.turn.policy_digest(),
            "promptTemplate": self.prompt_template,
            "landing": {
                "mode": self.landing.mode.as_str(),
                "target": self.landing.target,
                "check": self.landing.check,
            },
            "setup": self.setup.as_ref().map(|setup| &setup.command),
            "protect": self.protect.identity(),
            "governance": self.governance,
            "worlds": self.worlds,
        }))
    }

    /// Leaves a person's own checkout on its branch: if the main worktree is a
    /// lane and no landing mode is set, work does not land.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where a worktree cannot be looked at.
    pub(crate) fn settle_landing(&mut self, worktrees: &[PathBuf]) -> Result<(), StoreError> {
        if self.landing_is_default && self.has_main_worktree(worktrees)? {
            self.landing.mode = LandingMode::None;
        }
        Ok(())
    }

    /// Keeps verifications without build state where the main worktree is a
    /// lane: its commit is then a step's, and not the operator's.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where a worktree cannot be looked at.
    pub(crate) fn settle_warmth(&mut self, worktrees: &[PathBuf]) -> Result<(), StoreError> {
        self.warm = self.warm && !self.has_main_worktree(worktrees)?;
        Ok(())
    }

    /// Returns whether the main worktree is among some of the repository.
    fn has_main_worktree(&self, worktrees: &[PathBuf]) -> Result<bool, StoreError> {
        let repository = &self.roots.repository;
        let root = std::fs::canonicalize(repository).ok();
        let is_root = |worktree: &PathBuf| std::fs::canonicalize(worktree).ok() == root;
        let is_among = root.is_some() && worktrees.iter().any(is_root);
        Ok(is_among && roots::main_worktree(repository)? == root)
    }
}

/// Finds memory, trajectory and artifacts by the flags.
pub(crate) fn roots_of(flags: &LoopFlags) -> Result<MemoryRoots, StoreError> {
    let mut roots = match &flags.repo_root {
        Some(root) => {
            let found = MemoryRoots::discover(root)?;
            MemoryRoots::at(&found.repository)
        }
        None => MemoryRoots::discover(Path::new("."))?,
    };
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
    Ok(roots)
}

fn split(list: &str) -> Vec<String> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn variable_of(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    std::env::var(name).ok()
}

pub(crate) fn path_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Makes a path absolute without asking whether it is there.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
