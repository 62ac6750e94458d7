//! What the harness has in a repository: what each thing is for, and what may
//! be removed (HARNESS-RUNTIME 3.2).
//!
//! The shell finds things, [`account`] explains why each is there. `premath
//! doctor` shows that, `premath clean` removes the removable.
//!
//! Invariant: nothing that a live lane, batch or step may use is removable,
//! nor commits that nothing else holds, unless salvage was asked for.

mod branch;
mod file;
mod found;
mod memory;
mod name;
mod worktree;

pub use found::{
    Branch, CachedImage, CheckedOut, CutStep, Findings, ForeignChange, GitLockFile, Head,
    IssueFacts, KnownFacts, LandedCommit, LandedPlace, LaneLockState, LeaseLook, LeftCheckout,
    LeftFile, LeftKind, Loss, Mark, SalvageFolder, StepOutput, TargetState, UnendedBatch,
    Unreadable, Worktree,
};
pub use name::{Role, marked_issue, role};

use crate::failure::FailureClass;
use crate::json::id::IssueId;
use crate::json::size::Size;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// How old a left thing must be where nothing else is reported.
pub const AGE_DEFAULT: Duration = Duration::from_secs(14 * 86_400);

/// What a clean-up may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Now, by the wall clock.
    pub now: Timestamp,
    /// How old a left thing must be.
    pub older_than: Duration,
    /// Whether salvage may go.
    pub salvage: bool,
    /// Whether free lanes that the harness made may go.
    pub lanes: bool,
    /// How many bytes of step output must go, the oldest first; `None` for
    /// all that is old enough.
    pub excess: Option<u64>,
}

impl Terms {
    /// Returns what a clean-up goes by where nothing else is reported.
    pub const fn at(now: Timestamp) -> Self {
        Self {
            now,
            older_than: AGE_DEFAULT,
            salvage: false,
            lanes: false,
            excess: None,
        }
    }

    fn age(&self, at: Timestamp) -> Duration {
        Duration::try_from(self.now.duration_since(at)).unwrap_or_default()
    }

    fn is_old(&self, at: Timestamp) -> bool {
        self.age(at) >= self.older_than
    }

    /// Returns an age in whole days, so that it reads the same all day.
    fn days(&self, at: Timestamp) -> String {
        match self.age(at).as_secs() / 86_400 {
            0 => "less than a day old".to_owned(),
            1 => "1 day old".to_owned(),
            days => format!("{days} days old"),
        }
    }
}

/// What an item is, in the order in which items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A line of the issue store or of the trajectory.
    Memory,
    /// An issue.
    Issue,
    /// A batch.
    Batch,
    /// A branch that work lands on.
    Target,
    /// A worktree of the repository.
    Worktree,
    /// A checkout for verifications that no lane of the repository has.
    Checkout,
    /// A step's branch.
    StepBranch,
    /// A branch that keeps what a step left, or a branch that blocked a lane.
    SalvageBranch,
    /// A branch with a name like the harness gives, which it did not create.
    Branch,
    /// A landing that was about to come.
    Mark,
    /// A lock.
    Lock,
    /// A folder with what git could not hold.
    SalvageFolder,
    /// A line that was cut off.
    Torn,
    /// A temporary file, or the files of a step.
    Temporary,
    /// What the commands of one step printed.
    StepOutput,
    /// The unpacked files of a container image, of all repositories of the user.
    Image,
}

/// The standing of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The thing is as it should be.
    InOrder,
    /// Something that lives uses it.
    InUse,
    /// It is there on purpose.
    Kept,
    /// Nothing needs it; a clean-up removes it.
    Removable,
    /// A person must look.
    Finding,
}

/// A thing that a clean-up removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A branch, if it still is at that commit.
    Branch {
        /// The branch's name, without `refs/heads/`.
        name: String,
        /// The commit.
        tip: String,
    },
    /// A mark, if it still is at that commit.
    Mark {
        /// The mark's full name.
        name: String,
        /// The commit.
        tip: String,
    },
    /// The registration of a worktree whose folder is gone.
    Registration(String),
    /// A lane that the harness made, if no other process uses it and it holds
    /// nothing of its own.
    Lane(PathBuf),
    /// A checkout for verifications, if still no lane of the repository has it.
    Checkout(PathBuf),
    /// A git lock file, if it was not touched since.
    Lock(GitLockFile),
    /// A salvage folder.
    Salvage(PathBuf),
    /// Files of the harness's own.
    Files(Vec<PathBuf>),
    /// The files of a container image, unless a process uses them by now.
    Image {
        /// The folders of the image.
        folders: Vec<PathBuf>,
        /// The file of its lock.
        lock: PathBuf,
    },
}

/// One thing that the harness has in a repository, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryItem {
    /// The kind of the item.
    pub kind: Kind,
    /// Its name: a branch, a path, an issue's id.
    pub name: String,
    /// The standing of the item.
    pub standing: Standing,
    /// The reason for the standing.
    pub reason: String,
    /// What a person can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Its failure class, where one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<FailureClass>,
    /// Its size in bytes, where it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The thing that a clean-up removes; `None` if it removes nothing.
    #[serde(skip)]
    pub thing: Option<Thing>,
}

impl InventoryItem {
    fn new(
        kind: Kind,
        name: impl Into<String>,
        standing: Standing,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            standing,
            reason: reason.into(),
            advice: None,
            failure_class: None,
            bytes: None,
            thing: None,
        }
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn class(mut self, class: FailureClass) -> Self {
        self.failure_class = Some(class);
        self
    }

    /// Names what goes where the item is removable.
    fn thing(mut self, thing: Thing) -> Self {
        self.thing = (self.standing == Standing::Removable).then_some(thing);
        self
    }

    fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Returns whether the repository is out of order because of it: what steps
    /// printed and images only grow old.
    pub fn is_finding(&self) -> bool {
        match self.standing {
            Standing::Finding => true,
            Standing::Removable => !matches!(self.kind, Kind::StepOutput | Kind::Image),
            Standing::InOrder | Standing::InUse | Standing::Kept => false,
        }
    }

    /// Returns the size as people read it.
    pub fn size(&self) -> Option<Size> {
        self.bytes.map(Size)
    }
}

/// Explains why each thing that was found is there, sorted.
pub fn account(found: &Findings, known: &KnownFacts, terms: &Terms) -> Vec<InventoryItem> {
    let scene = Scene {
        found,
        known,
        terms,
        live: live(found, known),
        cut: found::cut_steps(&found.worktrees),
    };
    let mut items = memory::items(&scene);
    let worktrees = worktree::items(&scene);
    items.extend(branch::items(&scene, &worktrees));
    items.extend(worktrees);
    items.extend(file::items(&scene));
    items.sort_by(|a, b| (a.kind, &a.name, &a.reason).cmp(&(b.kind, &b.name, &b.reason)));
    items
}

/// Returns how many bytes of step output are too many: what is used above a
/// budget, when everything else that is removable is gone.
pub fn excess(used: u64, budget: u64, items: &[InventoryItem]) -> u64 {
    let going: u64 = items
        .iter()
        .filter(|item| item.standing == Standing::Removable && item.kind == Kind::SalvageFolder)
        .filter_map(|item| item.bytes)
        .sum();
    used.saturating_sub(going).saturating_sub(budget)
}

/// What the rules look at.
struct Scene<'a> {
    found: &'a Findings,
    known: &'a KnownFacts,
    terms: &'a Terms,
    /// What lives in the repository now, in words.
    live: Vec<String>,
    cut: std::collections::BTreeSet<(IssueId, u64)>,
}

impl Scene<'_> {
    /// Returns what lives, where something does: git's names are left alone
    /// then, for a step may take any of them in the next instant.
    fn live(&self) -> Option<&str> {
        self.live.first().map(String::as_str)
    }

    /// Returns the standing of salvage of that age.
    fn salvage(&self, at: Timestamp) -> Standing {
        if self.terms.salvage && self.terms.is_old(at) && self.live().is_none() {
            Standing::Removable
        } else {
            Standing::Kept
        }
    }
}

fn live(found: &Findings, known: &KnownFacts) -> Vec<String> {
    let batches = known.batches.iter().filter(|batch| batch.lives);
    let mut live: Vec<String> = batches
        .map(|batch| format!("batch {} runs", batch.id))
        .collect();
    for worktree in &found.worktrees {
        if let LaneLockState::Held(by) = &worktree.lane {
            live.push(format!(
                "a lane works in {} ({by})",
                worktree.path.display()
            ));
        }
    }
    let landing = found.landing_holder.as_ref();
    live.extend(landing.map(|by| format!("a step lands ({by})")));
    live
}

#[cfg(test)]
mod tests;
