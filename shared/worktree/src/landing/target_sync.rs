//! The target before a batch's first step: one that was merged completely moves
//! to the main worktree's HEAD.

use super::{Advance, Landing, LandingError, holds};
use git2::{Oid, Repository};
use premath_kernel::policy::inventory::{Role, role};
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::policy::target_sync::{Course, Distance, TargetChange, TargetSync};
use premath_memory::LandingLock;
use std::collections::BTreeMap;
use std::path::Path;

/// How often the target is looked at again because another process moved it.
const ROUNDS: u32 = 8;

impl Landing {
    /// Puts the target where a batch begins, and says what there is to report
    /// about it. `closed` are the issues that landed before; where `others`
    /// work on the target it is not moved.
    ///
    /// # Errors
    ///
    /// [`LandingError`].
    pub fn sync_target<'a>(
        &self,
        closed: impl IntoIterator<Item = (&'a str, &'a LandingRecord)>,
        others: bool,
    ) -> Result<Vec<TargetSync>, LandingError> {
        if !self.is_on() {
            return Ok(Vec::new());
        }
        let changes = match &self.made {
            Some(made) => {
                let lost = self.lost(closed)?;
                [Some(made.clone()), lost].into_iter().flatten().collect()
            }
            None => self.follow(others)?.into_iter().collect::<Vec<_>>(),
        };
        let sync = |change| TargetSync {
            target: self.target().to_owned(),
            change,
        };
        Ok(changes.into_iter().map(sync).collect())
    }

    /// Returns the closed issues whose work a target does not have that was
    /// recreated.
    fn lost<'a>(
        &self,
        closed: impl IntoIterator<Item = (&'a str, &'a LandingRecord)>,
    ) -> Result<Option<TargetChange>, LandingError> {
        let git = self.open()?;
        let tip = self.tip_in(&git)?;
        let mut issues: Vec<String> = closed
            .into_iter()
            .filter(|(_, record)| record.target == self.target())
            .filter(|(_, record)| !holds(&git, tip, &record.commit).unwrap_or(false))
            .map(|(issue, _)| issue.to_owned())
            .collect();
        issues.sort();
        Ok((!issues.is_empty()).then_some(TargetChange::Lost { issues }))
    }

    fn follow(&self, others: bool) -> Result<Option<TargetChange>, LandingError> {
        let failed = "compare the landing target with the main worktree's HEAD";
        let git = self.open()?;
        let Some(head) = MainHead::of(&git) else {
            return Ok(None);
        };
        // Who lands now counts on the tip.
        let lock = match others {
            true => None,
            false => LandingLock::try_acquire(git.commondir())?,
        };
        let mut commits = 0;
        for _ in 0..ROUNDS {
            let tip = self.tip_in(&git)?;
            let distance = head.from(&git, tip).map_err(LandingError::git(failed))?;
            commits = distance.lacks;
            match distance.course() {
                Course::Stay => return Ok(None),
                Course::Apart => {
                    let from = head.name;
                    return Ok(Some(TargetChange::Apart { from, commits }));
                }
                Course::Follow if lock.is_none() => break,
                Course::Follow => {}
            }
            self.refuse_checked_out(&git)?;
            let message = format!("premath: follow {}", head.name);
            if self.swap(&git, tip, head.commit, &message)? == Advance::Done {
                return Ok(Some(TargetChange::Followed {
                    from: head.name,
                    commits,
                    tip: head.commit.to_string(),
                }));
            }
        }
        let from = head.name;
        Ok(Some(TargetChange::Held { from, commits }))
    }
}

/// Returns the commit that the steps of a batch which begins now begin at: that of the
/// landing target, or the main worktree's HEAD where the target is to follow it or is
/// yet to be made, as if no other batch ran. `None` where there is no commit. Nothing is
/// changed.
pub fn next_base(repository: &Path, target: Option<&str>) -> Option<String> {
    let git = Repository::open(repository).ok()?;
    next_base_in(&git, target).map(|commit| commit.to_string())
}

/// Does the same for a repository that is open.
pub(crate) fn next_base_in(git: &Repository, target: Option<&str>) -> Option<Oid> {
    let tip = target.and_then(|target| {
        let reference = git.find_reference(&format!("refs/heads/{target}"));
        Some(reference.ok()?.peel_to_commit().ok()?.id())
    });
    let Some(tip) = tip else {
        return Some(git.head().ok()?.peel_to_commit().ok()?.id());
    };
    let follows = |head: &MainHead| {
        let distance = head.from(git, tip);
        distance.is_ok_and(|distance| distance.course() == Course::Follow)
    };
    let head = MainHead::of(git).filter(follows);
    Some(head.map_or(tip, |head| head.commit))
}

/// What a person has checked out in the main worktree.
pub(crate) struct MainHead {
    /// A branch, or `HEAD`.
    pub(crate) name: String,
    commit: Oid,
}

impl MainHead {
    /// Looks; `None` where there is no commit, or a step's is checked out.
    pub(crate) fn of(git: &Repository) -> Option<Self> {
        let head = git.head().ok()?;
        let commit = head.peel_to_commit().ok()?.id();
        let name = if git.head_detached().unwrap_or(true) {
            "HEAD".to_owned()
        } else {
            head.shorthand().ok()?.to_owned()
        };
        let is_of_a_step = matches!(role(&name, &BTreeMap::new()), Some(Role::Step { .. }));
        // A lane that was cut there has not restored it yet.
        let is_lent = git.find_reference(crate::tree::HOME).is_ok();
        (!is_of_a_step && !is_lent).then_some(Self { name, commit })
    }

    /// Counts how far a target is from it.
    pub(crate) fn from(&self, git: &Repository, target: Oid) -> Result<Distance, git2::Error> {
        let (lacks, own) = git.graph_ahead_behind(self.commit, target)?;
        Ok(Distance { lacks, own })
    }
}
