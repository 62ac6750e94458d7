//! A step that works in another repository of this machine (HARNESS-RUNTIME
//! 1.2, 3.2).
//!
//! The lane goes there with all that it works by: a worktree that is made
//! there, its lock, and a supervisor of its own. Session, feature and files of
//! the step stay where they always are, so that a lane that was killed finds
//! its way back. The work is verified when the other world's own gate has
//! admitted its turn, and not before.

use super::site::Site;
use super::{BootError, Lane};
use crate::settings::{Protect, Setup, WorldSettings, worlds_root};
use crate::supervisor::Supervisor;
use premath_kernel::issue::lease::Claim;
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::landing::{LandingMode, LandingRule};
use premath_kernel::record::salvage;
use premath_kernel::record::session::{SessionStep, StepWorld};
use premath_memory::cause::chain;
use premath_memory::roots::{LaneState, lane_name};
use premath_memory::world::LocalWorld;
use premath_memory::{PREDECESSOR_WAIT, StoreError, WorktreeLock};
use premath_worktree::landing::{LandedMark, Landing, LandingError};
use premath_worktree::ownership::is_provisioned;
use premath_worktree::provision::{Provision, Single};
use premath_worktree::tree::{Base, Tree};
use std::ffi::OsString;
use std::mem::swap;
use std::path::{Path, PathBuf};

/// A locked worktree, with what a lane works by in it.
#[derive(Debug)]
struct HeldWorktree {
    worktree: PathBuf,
    tree: Tree,
    site: Site,
    supervisor: Supervisor,
    /// Last, so that it is released after the supervisor.
    lock: WorktreeLock,
}

/// Where a lane is while a step works in another world.
#[derive(Debug)]
pub(crate) struct RemoteSite {
    name: String,
    repository: PathBuf,
    own: WorldSettings,
    /// The commit that the work begins at.
    start: String,
    /// The lane's own worktree.
    home: HeldWorktree,
}

impl RemoteSite {
    /// Returns where a step begins there: on a branch of its own.
    pub(crate) fn starting_point(&self, claim: &Claim) -> Result<Base, LandingError> {
        let rule = LandingRule {
            mode: LandingMode::None,
            target: self.own.target.clone(),
            ..LandingRule::default()
        };
        let there = Landing::begin(rule, self.repository.clone())?;
        Ok(Base {
            commit: self.start.clone(),
            branch: Some(there.free_branch(&claim.issue_id, claim.generation)?),
        })
    }
}

impl Lane {
    pub(crate) fn world_named(&self, name: &str) -> Result<LocalWorld, String> {
        match self.batch.settings.worlds.get(name) {
            Some(folder) => LocalWorld::find(folder),
            None => Err(format!(
                "unknown world `{name}`; add it under [worlds] in harness.toml"
            )),
        }
    }

    /// Returns the world that the lane is in now, where that is another one.
    pub(crate) fn world_it_is_in(&self) -> Option<Result<LocalWorld, String>> {
        let away = self.away.as_ref()?;
        Some(LocalWorld::find(&away.repository))
    }

    /// Goes to a worktree that is made in another repository; says why not.
    pub(crate) fn enter_world(&mut self, name: &str, repository: &Path) -> Result<(), String> {
        let own = WorldSettings::load(repository).map_err(|error| chain(&error))?;
        let provision = Provision {
            repository: repository.to_path_buf(),
            root: worlds_root(repository),
            count: 1,
            spare: Vec::new(),
            target: own.begins_at_target.then(|| own.target.clone()),
        };
        let Single {
            worktree,
            start,
            lock,
        } = provision
            .single(&lane_name(&self.worktree), PREDECESSOR_WAIT)
            .map_err(|error| chain(&error))?;
        let held = self
            .hold(repository, worktree, lock)
            .map_err(|error| chain(&error))?;
        self.move_to_world(held, name, repository, own, start);
        // Leftover work there is saved like a step's.
        if let Err(error) = self.clear() {
            self.leave_world();
            return Err(chain(&error));
        }
        Ok(())
    }

    /// Makes ready to work in a worktree that is locked.
    fn hold(
        &self,
        repository: &Path,
        worktree: PathBuf,
        lock: WorktreeLock,
    ) -> Result<HeldWorktree, BootError> {
        let mut tree = Tree::open_in(repository, &worktree)?;
        if let Some(bytes) = self.batch.settings.resources.disk {
            tree.bound_holes(bytes);
        }
        // What the harness keeps of it stays at home.
        let state = LaneState::at(&self.batch.settings.roots.repository, &worktree);
        let site = Site::prepare(repository, state)?;
        if let Some(filter) = tree.external_filters()? {
            return Err(BootError::Filter { worktree, filter });
        }
        let shared = lock.share().map_err(|source| StoreError::LockIo {
            path: worktree.clone(),
            source,
        })?;
        let supervisor = Supervisor::start(&self.batch.program, shared)?;
        Ok(HeldWorktree {
            worktree,
            tree,
            site,
            supervisor,
            lock,
        })
    }

    fn move_to_world(
        &mut self,
        mut held: HeldWorktree,
        name: &str,
        repository: &Path,
        own: WorldSettings,
        start: String,
    ) {
        self.exchange(&mut held);
        self.away = Some(RemoteSite {
            name: name.to_owned(),
            repository: repository.to_path_buf(),
            own,
            start,
            home: held,
        });
    }

    /// Returns to the worktree in another world where a step that was cut worked;
    /// `false` if the worktree is gone.
    pub(crate) fn return_to_remote(&mut self, world: &StepWorld) -> Result<bool, BootError> {
        let worktree = PathBuf::from(&world.worktree);
        let Ok(there) = self.world_named(&world.name) else {
            return Ok(false);
        };
        let repository = there.roots.repository;
        // Where the repository is gone, or is another one by now, there is nothing
        // to take up; what is left in a worktree that is used again is kept then.
        let tree = match Tree::open_in(&repository, &worktree) {
            Ok(tree) => tree,
            Err(error) => {
                tracing::warn!(world = %world.name, %error, "an interrupted step there is not \
                                                            recovered");
                return Ok(false);
            }
        };
        let lock = WorktreeLock::acquire_in(tree.git_folder(), PREDECESSOR_WAIT)?;
        let held = self.hold(&repository, worktree.clone(), lock)?;
        // A tampered session cannot lead to a foreign worktree.
        if !is_provisioned(held.tree.git_folder()) {
            return Ok(false);
        }
        // Nothing is worked on there now: it is put in order.
        let own = WorldSettings::default();
        self.move_to_world(held, &world.name, &worktree, own, String::new());
        Ok(true)
    }

    /// Comes back from another world, where the lane is in one.
    pub(crate) fn leave_world(&mut self) {
        if let Some(away) = self.away.take() {
            let mut held = away.home;
            self.exchange(&mut held);
        }
    }

    fn exchange(&mut self, held: &mut HeldWorktree) {
        swap(&mut self.worktree, &mut held.worktree);
        swap(&mut self.tree, &mut held.tree);
        swap(&mut self.site, &mut held.site);
        swap(&mut self.supervisor, &mut held.supervisor);
        swap(&mut self.lock, &mut held.lock);
    }

    /// Returns what makes the worktree ready to work in.
    pub(crate) fn setup(&self) -> Option<&Setup> {
        match &self.away {
            Some(away) => away.own.setup.as_ref(),
            None => self.batch.settings.setup.as_ref(),
        }
    }

    /// Returns the verification: another world's own, where it has one.
    pub(crate) fn verify_command(&self) -> String {
        let own = self.away.as_ref().and_then(|away| away.own.verify.clone());
        own.unwrap_or_else(|| self.batch.settings.hooks.verify.clone())
    }

    /// Returns the command that verifies the work on an issue.
    pub(crate) fn verification_of(&self, issue_id: &IssueId) -> String {
        self.batch.with_own_check(self.verify_command(), issue_id)
    }

    /// Returns what the work must not touch.
    pub(crate) fn protect(&self) -> &Protect {
        match &self.away {
            Some(away) => &away.own.protect,
            None => &self.batch.settings.protect,
        }
    }

    /// Returns the variables that describe the world to a command.
    pub(crate) fn world_variable(&self) -> Option<(&'static str, OsString)> {
        let away = self.away.as_ref()?;
        Some(("PREMATH_WORLD", away.name.clone().into()))
    }

    /// Returns whether the work lands before its issue closes; in another world
    /// that is that world's business.
    pub(crate) fn lands(&self) -> bool {
        self.away.is_none() && self.batch.landing.merges()
    }

    /// Returns the landing of an issue's work whose harness died before the
    /// close.
    pub(crate) fn landed(&self, issue_id: &IssueId) -> Result<Option<LandedMark>, LandingError> {
        match &self.away {
            Some(_) => Ok(None),
            None => self.batch.landed(issue_id),
        }
    }

    /// Names where work is kept, with the world that it is kept in.
    pub(crate) fn kept(&self, salvage: String) -> String {
        match &self.away {
            Some(away) => salvage::in_world(&salvage, &away.name),
            None => salvage,
        }
    }

    /// Detaches the lane from a step's branch in another world, and deletes the
    /// branch if the base contains all of its commits.
    pub(crate) fn leave_remote_branch(&self, step: &SessionStep) {
        let Some(branch) = &step.base_branch else {
            return;
        };
        let _alone = self.batch.landing.branches();
        if let Err(error) = self.tree.leave(branch, &[&step.base_commit]) {
            tracing::warn!(step = %step.step_id, %error, "the step's branch was not left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lanes_of_one_name_have_two_worktrees_elsewhere() {
        let [one, other] = ["/a/lane-01", "/b/lane-01"].map(|path| lane_name(Path::new(path)));
        assert_ne!(one, other);
        assert!(one.starts_with("lane-01-"), "{one}");
        assert_eq!(one, lane_name(Path::new("/a/lane-01")));
        let odd = lane_name(Path::new("/a/L\u{e4}ne ../x"));
        assert!(!odd.contains(['/', '.', ' ']), "{odd}");
    }
}
