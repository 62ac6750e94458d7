//! What the harness has in a repository's git: branches, marks, worktrees,
//! locks, salvage.
//!
//! Invariant: looking changes nothing, and what goes was judged removable by
//! the kernel and is still as it was then.

mod checkout;
mod error;
mod holder;
mod lock;
mod own_refs;
mod remove;
mod salvage;
mod worktree;

pub use error::InventoryError;
pub use own_refs::OwnRef;

use crate::landing::MainHead;
use git2::{Oid, Repository};
use holder::Holders;
use jiff::Timestamp;
use premath_kernel::policy::inventory::{
    Branch, CheckedOut, Findings, Head, LandedCommit, LandedPlace, Mark, Role, TargetState,
    Worktree, marked_issue, role,
};
use premath_kernel::policy::landing::{DEFAULT_TARGET, LandingRecord};
use premath_memory::{LockState, landing_lock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where landings leave their marks.
const MARKS: &str = "refs/harness/landing/*";

/// Landing targets by name, with the commit that each is at.
pub(crate) type Targets = BTreeMap<String, Option<String>>;

/// A repository whose things are listed and removed.
pub struct Inventory {
    git: Repository,
}

impl std::fmt::Debug for Inventory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inventory")
            .field("repository", &self.git.path())
            .finish()
    }
}

impl Inventory {
    /// Opens a repository by its main worktree.
    ///
    /// # Errors
    ///
    /// [`InventoryError::Git`] where there is none, or it cannot be read.
    pub fn open(repository: &Path) -> Result<Self, InventoryError> {
        let git =
            Repository::open(repository).map_err(InventoryError::git("open the repository"))?;
        Ok(Self { git })
    }

    /// Returns the git folder that all worktrees share.
    pub fn common_folder(&self) -> &Path {
        self.git.commondir()
    }

    /// Returns the commits that landing targets are at, and the default target
    /// where it is there.
    pub fn targets(&self, named: &BTreeSet<String>) -> Targets {
        let tip = |name: &str| {
            let reference = self.git.find_reference(&format!("refs/heads/{name}"));
            let commit = reference.and_then(|target| target.peel_to_commit()).ok()?;
            Some(commit.id().to_string())
        };
        let mut targets: Targets = named.iter().map(|name| (name.clone(), tip(name))).collect();
        if let Some(commit) = tip(DEFAULT_TARGET) {
            targets.insert(DEFAULT_TARGET.to_owned(), Some(commit));
        }
        targets
    }

    /// Lists everything of the harness in the repository's git. `closed` are
    /// the issues that closed by landing.
    ///
    /// # Errors
    ///
    /// [`InventoryError`] where the repository itself cannot be read; what is
    /// wrong with a single worktree is in the listing.
    pub fn find(
        &self,
        targets: &Targets,
        closed: Vec<(String, LandingRecord)>,
    ) -> Result<Findings, InventoryError> {
        let holders = Holders::of(&self.git, targets)?;
        let worktrees = self.worktrees(&holders)?;
        let landing_holder = match landing_lock(self.common_folder())? {
            LockState::Held(by) => Some(by),
            LockState::Free | LockState::Never => None,
        };
        Ok(Findings {
            branches: self.branches(targets, &holders, &worktrees)?,
            marks: self.marks(&holders)?,
            locks: lock::find(self.common_folder(), targets, &worktrees),
            salvage: salvage::find(self.common_folder(), &worktrees),
            landings: self.landings(targets, closed)?,
            target_states: self.target_states(targets)?,
            checkouts: checkout::find(&self.git, &worktrees),
            worktrees,
            landing_holder,
            ..Findings::default()
        })
    }

    fn branches(
        &self,
        targets: &Targets,
        holders: &Holders,
        worktrees: &[Worktree],
    ) -> Result<Vec<Branch>, InventoryError> {
        let failed = "list the branches";
        let references = self
            .git
            .references_glob("refs/heads/*")
            .map_err(InventoryError::git(failed))?;
        let mut branches = Vec::new();
        for reference in references {
            let reference = reference.map_err(InventoryError::git(failed))?;
            let name = reference.name().ok();
            let Some(name) = name.and_then(|name| name.strip_prefix("refs/heads/")) else {
                continue;
            };
            let (Some(role), Ok(commit)) = (role(name, targets), reference.peel_to_commit()) else {
                continue;
            };
            let held_by = match role {
                Role::Step { .. } => holders.of_commit(&self.git, commit.id())?,
                _ => None,
            };
            let on = |worktree: &&Worktree| {
                worktree.head == Head::Branch(name.to_owned())
                    || worktree.returns_to.as_deref() == Some(name)
            };
            branches.push(Branch {
                name: name.to_owned(),
                role,
                tip: commit.id().to_string(),
                at: Timestamp::from_second(commit.time().seconds()).unwrap_or_default(),
                checked_out: worktrees.iter().find(on).map(|worktree| CheckedOut {
                    worktree: worktree.name.clone(),
                    path: worktree.path.clone(),
                }),
                held_by,
            });
        }
        branches.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(branches)
    }

    fn marks(&self, holders: &Holders) -> Result<Vec<Mark>, InventoryError> {
        let failed = "list the landings that were about to come";
        let references = self
            .git
            .references_glob(MARKS)
            .map_err(InventoryError::git(failed))?;
        let mut marks = Vec::new();
        for reference in references {
            let reference = reference.map_err(InventoryError::git(failed))?;
            let (Ok(name), Some(tip)) = (reference.name(), reference.target()) else {
                continue;
            };
            marks.push(Mark {
                name: name.to_owned(),
                issue: marked_issue(name).map(Into::into),
                tip: tip.to_string(),
                held_by: holders.of_commit(&self.git, tip)?,
            });
        }
        marks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(marks)
    }

    fn landings(
        &self,
        targets: &Targets,
        closed: Vec<(String, LandingRecord)>,
    ) -> Result<Vec<LandedCommit>, InventoryError> {
        let mut wanted: BTreeMap<&str, BTreeSet<Oid>> = BTreeMap::new();
        for (_, record) in &closed {
            if let Ok(commit) = Oid::from_str(&record.commit) {
                wanted.entry(&record.target).or_default().insert(commit);
            }
        }
        let head = self.git.head().and_then(|head| head.peel_to_commit()).ok();
        let mut missing: BTreeMap<String, (LandedPlace, BTreeSet<Oid>)> = BTreeMap::new();
        for (target, mut commits) in wanted {
            let tip = targets.get(target).and_then(Option::as_deref);
            let (from, place) = match tip {
                Some(tip) => (Oid::from_str(tip).ok(), LandedPlace::Target),
                None => (head.as_ref().map(git2::Commit::id), LandedPlace::Head),
            };
            if let Some(from) = from {
                self.strike_out(from, &mut commits)?;
            }
            missing.insert(target.to_owned(), (place, commits));
        }
        let place = |record: &LandingRecord| match (
            missing.get(&record.target),
            Oid::from_str(&record.commit),
        ) {
            (Some((place, missing)), Ok(commit)) if !missing.contains(&commit) => *place,
            _ => LandedPlace::Missing,
        };
        let mut landings: Vec<LandedCommit> = closed
            .into_iter()
            .map(|(issue, record)| LandedCommit {
                place: place(&record),
                issue: issue.into(),
                record,
            })
            .collect();
        landings.sort_by(|a, b| a.issue.cmp(&b.issue));
        Ok(landings)
    }

    /// Returns how far each target is from what the main worktree has checked
    /// out.
    fn target_states(&self, targets: &Targets) -> Result<Vec<TargetState>, InventoryError> {
        let failed = "compare the landing target with the main worktree's HEAD";
        let Some(head) = MainHead::of(&self.git) else {
            return Ok(Vec::new());
        };
        let mut states = Vec::new();
        for (target, tip) in targets {
            let Some(tip) = tip.as_deref().and_then(|tip| Oid::from_str(tip).ok()) else {
                continue;
            };
            let distance = head.from(&self.git, tip);
            states.push(TargetState {
                target: target.clone(),
                from: head.name.clone(),
                distance: distance.map_err(InventoryError::git(failed))?,
            });
        }
        Ok(states)
    }

    /// Takes out of a set what a commit continues from.
    fn strike_out(&self, from: Oid, commits: &mut BTreeSet<Oid>) -> Result<(), InventoryError> {
        let failed = "walk the landing target";
        let mut walk = self.git.revwalk().map_err(InventoryError::git(failed))?;
        walk.push(from).map_err(InventoryError::git(failed))?;
        for commit in walk {
            if commits.is_empty() {
                break;
            }
            commits.remove(&commit.map_err(InventoryError::git(failed))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
