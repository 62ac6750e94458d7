//! What `premath doctor` looks for: what keeps a batch from beginning or from
//! running well, and what an earlier one left.
//!
//! The shell looks, [`examine`] and [`of_item`] judge. A check is a line of the
//! table; its id stays as it is.

mod baseline;
mod examine;
mod facts;
mod git_version;
#[cfg(test)]
mod tests;

pub use baseline::{KnownRed, RedSubject};
pub use examine::{examine, of_item};
pub use facts::{
    AgentFacts, BaselineFacts, FileTime, GitFacts, GitProgram, HealthFacts, IssueFault,
    MachineFacts, OpenPlace, PushFacts, RemoteState, SettingsFault,
};

use schemars::JsonSchema;
use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A batch is refused or goes wrong, or something is left over.
    Error,
    /// A batch can run.
    Warning,
}

impl Severity {
    /// Returns its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Its name, which stays as it is.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Whether `premath doctor --fix` repairs it.
    pub is_fixable: bool,
    /// What is wrong, in a sentence.
    pub about: &'static str,
}

macro_rules! fixable {
    (fix) => {
        true
    };
    (ask) => {
        false
    };
}

macro_rules! checks {
    ($( $name:ident $id:literal $severity:ident $fix:ident $about:literal; )+) => {
        $(
            #[doc = $about]
            pub const $name: HealthCheck = HealthCheck {
                id: $id,
                severity: Severity::$severity,
                is_fixable: fixable!($fix),
                about: $about,
            };
        )+

        /// Every check, in the order in which findings are listed.
        pub const CHECKS: &[HealthCheck] = &[$($name,)+];
    };
}

checks! {
    SETTINGS_MISSING "settings-missing" Warning ask "The repository has no `harness.toml`.";
    SETTINGS_INVALID "settings-invalid" Error ask "`harness.toml` cannot be read, or a value in it does not fit.";
    LANDING_TARGET_UNUSABLE "landing-target-unusable" Error ask "The landing target is checked out, or cannot be made: a batch is refused.";
    WORK_COMMAND_MISSING "work-command-missing" Warning ask "Neither an agent nor a work command is set.";
    VERIFY_COMMAND_MISSING "verify-command-missing" Warning ask "No verify command is set.";
    PROGRAM_MISSING "program-missing" Error ask "The program of a command is not on `PATH`.";
    AGENT_MISSING "agent-missing" Error ask "An agent that is used is not installed.";
    AGENT_NOT_SIGNED_IN "agent-not-signed-in" Warning ask "An agent that is used has no sign-in files, and no variable has its key.";
    INSTRUCTION_MISSING "instruction-missing" Error ask "The instruction that authorises a batch is not there.";
    INSTRUCTION_REFUSED "instruction-refused" Error ask "The instruction does not authorise a batch under the active policy.";
    INSTRUCTION_OTHER_EVIDENCE "instruction-other-evidence" Error ask "The instruction does not admit the evidence of the agent that is set.";
    OVERRIDE_NOT_ADMITTED "override-not-admitted" Warning ask "The operator override lacks a reason, or its time has passed.";
    TURN_POLICY_UNSEALED "turn-policy-unsealed" Error ask "The turn policy does not match its seal.";
    RETRY_POLICY_UNSEALED "retry-policy-unsealed" Error ask "The retry policy does not match its seal.";
    POLICY_INVALID "policy-invalid" Error ask "A policy cannot be used.";
    GOVERNANCE_REFUSED "governance-refused" Error ask "The governance profile does not hold.";
    NETWORK_UNENFORCED "network-unenforced" Error ask "The sandbox cannot enforce the network policy.";
    SIGNING_KEY_UNUSABLE "signing-key-unusable" Error ask "The key that landing commits are signed with cannot be used.";
    SANDBOX_UNAVAILABLE "sandbox-unavailable" Error ask "No sandbox mode works here.";
    GOVERNING_FILES_UNACCEPTED "governing-files-unaccepted" Warning ask "Governing files changed since the operator accepted them.";
    NO_COMMIT "no-commit" Warning ask "The repository has no commit; lanes need one.";
    AUTHOR_MISSING "author-missing" Warning ask "Git has no `user.name` or no `user.email`: commits are made in the harness's name.";
    GIT_SETTING_UNUSUAL "git-setting-unusual" Warning ask "A setting of git makes lanes differ from what is committed.";
    GIT_MISSING "git-missing" Warning ask "There is no `git` on `PATH`.";
    GIT_OLD "git-old" Error ask "Git is older than 2.32, or does not say its version.";
    PUSH_GIT_MISSING "push-git-missing" Error ask "Pushes are set, and there is no `git` on `PATH` to make them.";
    PUSH_REMOTE_MISSING "push-remote-missing" Error ask "The remote that the landing target is pushed to is not configured.";
    PUSH_REMOTE_UNREACHABLE "push-remote-unreachable" Error ask "The remote that the landing target is pushed to does not answer, or is a folder without a repository.";
    PUSH_REFUSED "push-refused" Error ask "The remote has commits that the landing target does not have: a push is refused.";
    BASELINE_RED "baseline-red" Error ask "The verification fails without any work (`--verify` runs it).";
    BASELINE_UNVERIFIED "baseline-unverified" Error ask "The verification that `--verify` asks for could not be run.";
    BASELINE_WAS_RED "baseline-was-red" Warning ask "The verification failed without any work, or on the last commit that landed, by the run log.";
    DISK_LOW "disk-low" Warning ask "Less than 2 GiB of disk are free.";
    MEMORY_LOW "memory-low" Warning ask "Less than 512 MiB of memory are available.";
    NETWORK_FILE_SYSTEM "network-file-system" Error ask "The repository is on a network file system, whose locks cannot be relied on.";
    CLOCK_WRONG "clock-wrong" Error ask "The clock shows a year that cannot be.";
    FILE_TIME_IN_FUTURE "file-time-in-future" Warning ask "A file of the harness was changed in the future, by the clock.";
    ISSUE_LINE_UNREADABLE "issue-line-unreadable" Error ask "A line of the issue store cannot be read.";
    RUN_LOG_LINE_UNREADABLE "run-log-line-unreadable" Error ask "A line of the run log cannot be read.";
    ISSUES_CHANGED_OUTSIDE "issues-changed-outside" Error ask "Issues changed outside a transaction.";
    DEPENDENCY_CYCLE "dependency-cycle" Error ask "Issues depend on each other: none is ever ready.";
    DEPENDENCY_MISSING "dependency-missing" Error ask "An issue depends on one that does not exist.";
    STATUS_UNKNOWN "status-unknown" Warning ask "An issue has an unknown status: it is never ready.";
    IN_PROGRESS_WITHOUT_LEASE "in-progress-without-lease" Warning ask "An issue is in progress without a lease: no batch takes it.";
    LEASE_STALE "lease-stale" Error ask "The lease of an issue expired, and no batch takes it up.";
    CLOSE_UNACCOUNTED "close-unaccounted" Error ask "A closed issue has no row in the run log, or its commit is not on the target.";
    LANDING_TARGET_GONE "landing-target-gone" Error ask "The branch that work landed on is gone.";
    WORKTREE_UNUSABLE "worktree-unusable" Error ask "A worktree needs a look before a lane can use it.";
    WORKTREE_GONE "worktree-gone" Error fix "A worktree is registered, and its folder is gone.";
    STEP_BRANCH_LEFT "step-branch-left" Error fix "The branch of a step is left, and nothing needs it.";
    SALVAGE_LEFT "salvage-left" Error ask "A salvage branch needs a look.";
    BRANCH_LEFT "branch-left" Error fix "A branch of the harness is left, and nothing needs it.";
    MARK_LEFT "mark-left" Error fix "The mark of a landing is left, and nothing needs it.";
    GIT_LOCK_STALE "git-lock-stale" Error fix "A lock file of git is left, and no process holds it.";
    SALVAGE_FOLDER_LEFT "salvage-folder-left" Error fix "A salvage folder is left, and nothing needs it.";
    TORN_LINE "torn-line" Error ask "The last line of a file is incomplete.";
    TORN_FILE_LEFT "torn-file-left" Error fix "An incomplete line was put aside, and nothing needs it.";
    TEMPORARY_FILE_LEFT "temporary-file-left" Error fix "A temporary file is left, and its writer is gone.";
    OTHER_LEFT "other-left" Error ask "Something else needs a look.";
    PRIVATE_PLACE_OPEN "private-place-open" Error fix "Other users can read a private file or folder of the harness.";
    CONTROL_SOCKET_LEFT "control-socket-left" Warning fix "A batch that was killed left its control socket.";
    LIVE_FILE_INVALID "live-file-invalid" Warning fix "A published state of a batch cannot be read.";
    FILES_NOT_IGNORED "files-not-ignored" Warning fix "Git status shows what the harness keeps, such as `artifacts/streams/`.";
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthFinding {
    /// The check's name, which stays as it is.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: a file, an issue, a branch, a setting.
    pub subject: String,
    /// What is wrong.
    pub problem: String,
    /// What to type or to do.
    pub next: String,
    /// Whether `premath doctor --fix` repairs it.
    pub fixable: bool,
}

impl HealthFinding {
    /// Makes the finding of a check.
    pub fn of(
        check: &HealthCheck,
        subject: impl Into<String>,
        problem: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            id: check.id.to_owned(),
            severity: check.severity,
            subject: subject.into(),
            problem: problem.into(),
            next: match check.is_fixable {
                true => "premath doctor --fix".to_owned(),
                false => next.into(),
            },
            fixable: check.is_fixable,
        }
    }

    /// Returns where it is listed: in the order of the table.
    pub fn place(&self) -> usize {
        let found = CHECKS.iter().position(|check| check.id == self.id);
        found.unwrap_or(CHECKS.len())
    }
}
