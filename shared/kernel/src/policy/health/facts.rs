//! What the shell saw.

use super::HealthCheck;
use super::baseline::KnownRed;
use jiff::Timestamp;

/// What was seen of a repository and its machine.
#[derive(Clone, Debug, Default)]
pub struct HealthFacts {
    /// Whether there is a `harness.toml`.
    pub has_settings: bool,
    /// Why a batch that starts now would be refused, as far as its settings tell.
    pub settings: Vec<SettingsFault>,
    /// The agents that are set.
    pub agents: Vec<AgentFacts>,
    /// Git.
    pub git: GitFacts,
    /// The program `git`; `None` where it was not looked for.
    pub git_program: Option<GitProgram>,
    /// Whether the verification passes without any work.
    pub baseline: BaselineFacts,
    /// Where the landing target is pushed to, where that is asked for.
    pub push: Option<PushFacts>,
    /// The machine.
    pub machine: MachineFacts,
    /// When files of the harness were changed.
    pub files: Vec<FileTime>,
    /// How many governing files changed since they were accepted.
    pub unaccepted: usize,
    /// What is wrong with issues.
    pub issues: Vec<IssueFault>,
    /// Private places that other users can enter or read.
    pub open_places: Vec<OpenPlace>,
    /// Control sockets of processes that are gone.
    pub dead_sockets: Vec<String>,
    /// Published states that cannot be read.
    pub broken_live: Vec<String>,
    /// Whether git status shows what the harness keeps.
    pub shows_files: bool,
    /// Why no sandbox mode works; `None` where one does.
    pub no_sandbox: Option<String>,
}

/// Why the settings of a batch are refused.
#[derive(Clone, Debug)]
pub struct SettingsFault {
    /// The check that it is a finding of.
    pub check: &'static HealthCheck,
    /// The error.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// An agent that is set.
#[derive(Clone, Debug)]
pub struct AgentFacts {
    /// Its name in the settings.
    pub name: String,
    /// Whether files or variables are there that it signs in with.
    pub is_signed_in: bool,
    /// Whether its program is there.
    pub is_installed: bool,
}

/// What git is set to.
#[derive(Clone, Debug)]
pub struct GitFacts {
    /// Whether there is a commit.
    pub has_commit: bool,
    /// Whether a name and an address are set.
    pub has_author: bool,
    /// Settings that make lanes differ from what is committed, as `name = value`.
    pub unusual: Vec<String>,
}

impl Default for GitFacts {
    fn default() -> Self {
        Self {
            has_commit: true,
            has_author: true,
            unusual: Vec::new(),
        }
    }
}

/// The program `git`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitProgram {
    /// It is not on `PATH`.
    Missing,
    /// What it prints about its version, or why it prints none.
    Said(String),
}

/// Whether the verification passes where a batch that begins now begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BaselineFacts {
    /// It was not run.
    #[default]
    NotRun,
    /// It was not run, and the run log has a failure as the last outcome.
    KnownRed(KnownRed),
    /// It passed.
    Passed,
    /// It did not pass.
    Red(String),
    /// It was to be run, and could not be.
    Unrun(String),
}

/// Where the landing target is pushed to.
#[derive(Clone, Debug)]
pub struct PushFacts {
    /// The remote.
    pub remote: String,
    /// The landing target.
    pub target: String,
    /// What is known about it.
    pub state: RemoteState,
}

/// What is known about a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteState {
    /// It is not configured.
    Missing,
    /// It is a folder in which there is no repository.
    NoRepository,
    /// It is on another machine, and gives no answer, with the reason.
    NoAnswer(String),
    /// It takes a push of the landing target, as far as its branch tells.
    Usable,
    /// Its branch has commits that the landing target does not have; how many, where
    /// they are known here.
    Diverged(Option<usize>),
}

/// What there is of the machine; `None` where it is not known.
#[derive(Clone, Debug, Default)]
pub struct MachineFacts {
    /// How many bytes of the repository's disk are free.
    pub disk: Option<u64>,
    /// How many bytes of memory are available.
    pub memory: Option<u64>,
    /// The kind of network file system that the repository is on.
    pub network: Option<String>,
    /// Now, by the wall clock.
    pub now: Timestamp,
}

/// When a file was changed.
#[derive(Clone, Debug)]
pub struct FileTime {
    /// The file.
    pub path: String,
    /// The time.
    pub at: Timestamp,
}

/// What is wrong with an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueFault {
    /// Issues that depend on each other.
    Cycle(Vec<String>),
    /// An issue that depends on one that does not exist.
    Missing {
        /// The issue.
        issue: String,
        /// What it depends on.
        depends_on: String,
    },
    /// An issue with an unknown status.
    Status {
        /// The issue.
        issue: String,
        /// The status.
        status: String,
    },
    /// An issue that is in progress without a lease.
    Unleased(String),
}

/// A private place that others can use.
#[derive(Clone, Debug)]
pub struct OpenPlace {
    /// Its path.
    pub path: String,
    /// Its mode.
    pub mode: u32,
}
