//! What was found in a repository: facts, and nothing that decides.

use crate::json::id::{BatchId, IssueId, StepId};
use crate::policy::landing::LandingRecord;
use crate::policy::target_sync::Distance;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::name::Role;

/// Everything of the harness that was found in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Branches under the harness's names, and landing targets.
    pub branches: Vec<Branch>,
    /// Landings that were about to come.
    pub marks: Vec<Mark>,
    /// The repository's worktrees, the main one included.
    pub worktrees: Vec<Worktree>,
    /// Who holds the landing lock, if anyone.
    pub landing_holder: Option<String>,
    /// Git's lock files where the harness works.
    pub locks: Vec<GitLockFile>,
    /// Folders with what git could not hold.
    pub salvage: Vec<SalvageFolder>,
    /// Torn lines, temporary files, files of a step.
    pub files: Vec<LeftFile>,
    /// What the commands of steps printed.
    pub outputs: Vec<StepOutput>,
    /// Container images in the user's cache, where they were looked for.
    pub images: Vec<CachedImage>,
    /// Checkouts for verifications that no lane of the repository has.
    pub checkouts: Vec<LeftCheckout>,
    /// Where the commits of closed issues are.
    pub landings: Vec<LandedCommit>,
    /// The distance of each target from the HEAD of the main worktree.
    pub target_states: Vec<TargetState>,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The branch's name, without `refs/heads/`.
    pub name: String,
    /// The role of the branch.
    pub role: Role,
    /// The commit that it is at.
    pub tip: String,
    /// When that commit was made.
    pub at: Timestamp,
    /// The worktree whose HEAD is on it.
    pub checked_out: Option<CheckedOut>,
    /// What else holds all its commits: a landing target or a ref that no
    /// clean-up ever removes.
    pub held_by: Option<String>,
}

/// Where a branch is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOut {
    /// The worktree's name; `None` for the main one.
    pub worktree: Option<String>,
    /// The folder of the worktree.
    pub path: PathBuf,
}

/// A landing's mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The mark's full name.
    pub name: String,
    /// The issue, where the name tells.
    pub issue: Option<IssueId>,
    /// The commit.
    pub tip: String,
    /// What else holds the commit, as for a [`Branch`].
    pub held_by: Option<String>,
}

/// A worktree of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// The name of its registration; `None` for the main one.
    pub name: Option<String>,
    /// The folder of the worktree.
    pub path: PathBuf,
    /// Whether the folder is there.
    pub is_there: bool,
    /// Why it is locked, where it is.
    pub locked: Option<String>,
    /// The state of its HEAD.
    pub head: Head,
    /// The branch that a rebase or bisection there goes back to.
    pub returns_to: Option<String>,
    /// Whether a lane works in it.
    pub lane: LaneLockState,
    /// Whether the harness made it.
    pub is_provisioned: bool,
    /// How many paths differ from HEAD; `None` if not computed.
    pub changes: Option<usize>,
    /// The step that its session says was under way.
    pub step: Option<CutStep>,
    /// Why its session cannot be read.
    pub session_fault: Option<String>,
    /// What would be lost with its registration.
    pub loses: Option<Loss>,
}

impl Worktree {
    /// Returns whether its folder is there and is certainly this worktree's.
    pub const fn is_sound(&self) -> bool {
        self.is_there && !matches!(self.head, Head::Unreadable(_))
    }

    /// Returns whether a step is under way in it, or was cut.
    pub fn is_busy(&self) -> bool {
        self.step.is_some() || matches!(self.lane, LaneLockState::Held(_))
    }
}

/// Where a worktree's HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// On a branch, without `refs/heads/`.
    Branch(String),
    /// At a commit.
    Detached(String),
    /// On a branch that has no commit yet.
    Unborn,
    /// Unknown; with git's error.
    Unreadable(String),
}

/// What a worktree's lane lock says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneLockState {
    /// No lane was ever here.
    Never,
    /// One was, and none is.
    Free,
    /// A living process holds it; with its name.
    Held(String),
}

/// A step that a session says was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutStep {
    /// The step's id.
    pub step_id: StepId,
    /// The issue of the step.
    pub issue: IssueId,
    /// The generation of the step's lease.
    pub generation: u64,
}

/// What is in a worktree's git folder alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Salvage that git could not hold.
    Salvage,
    /// Commits that no branch holds.
    Commits,
}

/// A git lock file; its existence means that a process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitLockFile {
    /// The file.
    pub path: PathBuf,
    /// When it was last touched.
    pub at: Timestamp,
    /// Whether a person's git may hold it as well as the harness's.
    pub is_shared: bool,
}

/// A folder with what git could not hold of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageFolder {
    /// The folder.
    pub path: PathBuf,
    /// When something was last put there.
    pub at: Timestamp,
    /// The size in bytes.
    pub bytes: u64,
}

/// A file, or a folder of them, that something left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// The file or folder.
    pub path: PathBuf,
    /// The kind of the file.
    pub kind: LeftKind,
    /// When it was last written.
    pub at: Timestamp,
    /// The size in bytes.
    pub bytes: u64,
}

/// What a left file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftKind {
    /// A line that was cut off, kept aside.
    Torn,
    /// A file that was to be renamed.
    Temporary {
        /// Whether the process that made it is seen to run.
        maker_lives: bool,
    },
    /// What a step's commands read and leave; whether a step is under way.
    Step {
        /// Whether one is, or was cut.
        under_way: bool,
    },
}

/// What the commands of one step printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    /// The step's id, as it is spelled in file names.
    pub step: String,
    /// The files with output, sorted.
    pub files: Vec<PathBuf>,
    /// When one of them was last written.
    pub at: Timestamp,
    /// The size of the files in bytes.
    pub bytes: u64,
}

/// The unpacked files of a container image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedImage {
    /// The image id.
    pub id: String,
    /// Its folders, sorted: its files, and some that are not whole.
    pub folders: Vec<PathBuf>,
    /// The file of its lock.
    pub lock: PathBuf,
    /// When it was last used.
    pub at: Timestamp,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether a process uses or makes it now.
    pub is_used: bool,
}

/// A checkout for verifications that no lane of the repository has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftCheckout {
    /// The folder of its files.
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// Where the commit of a closed issue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedCommit {
    /// The issue.
    pub issue: IssueId,
    /// The landing record of its row.
    pub record: LandingRecord,
    /// The place of the commit now.
    pub place: LandedPlace,
}

/// Where a commit is, as seen from a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandedPlace {
    /// The commit is on the target.
    Target,
    /// The target is gone, and the main worktree's HEAD holds it.
    Head,
    /// Nowhere there.
    Missing,
}

/// The relation of a target to the main worktree's HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetState {
    /// The target.
    pub target: String,
    /// A branch, or `HEAD`.
    pub from: String,
    /// The commits that each of the two lacks.
    pub distance: Distance,
}

/// What is known beside the repository's git.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFacts {
    /// Every issue that can be read.
    pub issues: BTreeMap<IssueId, IssueFacts>,
    /// Whether that is all of them.
    pub is_whole: bool,
    /// Where work lands, and the commit that each target is at.
    pub targets: BTreeMap<String, Option<String>>,
    /// Open batches.
    pub batches: Vec<UnendedBatch>,
    /// What cannot be read: a place and what is wrong there.
    pub unreadable: Vec<Unreadable>,
    /// Torn last lines, which are not read.
    pub cut: Vec<String>,
    /// Rows that changed outside a transaction and are not accepted.
    pub foreign: Vec<ForeignChange>,
}

/// What is known about an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueFacts {
    /// The status of the issue.
    pub status: String,
    /// Whether the issue is closed.
    pub is_closed: bool,
    /// The lease of the issue.
    pub lease: LeaseLook,
    /// Whether a step closed it.
    pub is_closed_by_step: bool,
    /// The step that closed it, where that step has no row.
    pub unrecorded: Option<String>,
    /// Whether its row says where its work landed.
    pub has_landed: bool,
}

/// The state of an issue's lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaseLook {
    /// The issue has no lease in force.
    #[default]
    None,
    /// It is in force, with its generation.
    Live(u64),
    /// It is over, or its holder is gone; with its owner.
    Over(String),
}

/// A batch that has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnendedBatch {
    /// The id of the batch.
    pub id: BatchId,
    /// Whether its coordinator may run.
    pub lives: bool,
}

/// A row of issue memory that changed outside a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignChange {
    /// The issue; empty where it is unknown which rows changed.
    pub issue: IssueId,
    /// How the row differs, as in `altered: status, title`.
    pub summary: String,
    /// When a transaction first found it.
    pub first_seen: String,
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The place, as in `issues.jsonl:3:17`.
    pub place: String,
    /// The reason why it cannot be read.
    pub detail: String,
    /// Whether it is a line of issue memory, and not of the trajectory.
    pub is_issue: bool,
}

/// The steps that their sessions say were under way, by issue.
pub(super) fn cut_steps(worktrees: &[Worktree]) -> BTreeSet<(IssueId, u64)> {
    worktrees
        .iter()
        .filter_map(|worktree| worktree.step.as_ref())
        .map(|step| (step.issue.clone(), step.generation))
        .collect()
}
