//! A step that works in another repository of this machine (HARNESS-RUNTIME
//! 1.2, 3.2).
//!
//! The lane goes there with all that it works by: a worktree that is made
//! there, its lock, and a supervisor of its own. Session, feature and files of
//! the step stay where they always are, so that a lane that was killed finds
//! its way back. The work is verified when the other world's own gate has
//! admitted its turn, and not before.

use super::boot::PREDECESSOR;
use super::progress::Progress;
use super::site::Site;
use super::step::StepError;
use super::{BootError, Lane};
use crate::cause::chain;
use crate::settings::{Protect, Setup, WorldSettings, worlds_root};
use crate::supervisor::Supervisor;
use premath_kernel::issue::lease::Claim;
use premath_kernel::policy::landing::{LandingMode, LandingRule};
use premath_kernel::record::session::{SessionStep, StepWorld};
use premath_kernel::record::trajectory::WorldRecord;
use premath_kernel::record::world::{WorldSelection, may_be_placed};
use premath_memory::roots::{LaneState, lane_name};
use premath_memory::world::LocalWorld;
use premath_memory::{Claimed, StoreError, WorktreeLock};
use premath_worktree::landing::{LandedMark, Landing};
use premath_worktree::ownership::is_provisioned;
use premath_worktree::provision::{Provision, Single};
use premath_worktree::tree::{Base, Tree};
use std::ffi::OsString;
use std::mem::swap;
use std::path::{Path, PathBuf};

/// What a lane works by in one worktree.
#[derive(Debug)]
struct Place {
    worktree: PathBuf,
    tree: Tree,
    site: Site,
    supervisor: Supervisor,
    /// Last, so that it is released after the supervisor.
    lock: WorktreeLock,
}

/// Where a lane is while a step works in another world.
#[derive(Debug)]
pub(super) struct Away {
    name: String,
    repository: PathBuf,
    own: WorldSettings,
    /// The commit that the work begins at.
    start: String,
    /// The lane's own place.
    home: Place,
}

/// What a step knows about the other world that it works in.
#[derive(Debug)]
pub(super) struct Abroad {
    pub(super) record: WorldRecord,
    pub(super) mapped_context: Option<String>,
    /// The worktree there, once there is one.
    worktree: Option<PathBuf>,
}

impl Abroad {
    /// Returns what the session reports about it.
    pub(super) fn step_world(&self) -> Option<StepWorld> {
        let worktree = self.worktree.as_ref()?;
        Some(StepWorld {
            name: self.record.name.clone(),
            worktree: worktree.to_string_lossy().into_owned(),
        })
    }
}

impl Away {
    /// Returns where a step begins there: on a branch of its own.
    pub(super) fn starting_point(&self, claim: &Claim) -> Result<Base, StepError> {
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
    /// Goes where the issue asks to be worked on; `false` where that cannot be
    /// reached, with the transport's classes in `progress`, and nothing run.
    pub(super) fn depart(
        &mut self,
        claimed: &Claimed,
        progress: &mut Progress,
    ) -> Result<bool, StepError> {
        let labels = claimed.row.issue.labels.iter().map(|label| &**label);
        let (name, found) = match WorldSelection::of(labels) {
            WorldSelection::Here => return Ok(true),
            WorldSelection::There(name) => (name.to_owned(), self.world_named(name)),
            WorldSelection::Unclear { asked, detail } => (asked, Err(detail)),
        };
        progress.abroad = Some(Abroad {
            record: WorldRecord::named(&*name),
            mapped_context: None,
            worktree: None,
        });
        let from = self.own_world();
        let found = match (&from, found) {
            (Ok(from), Ok(to)) if self.may_be_placed(progress, from, &to) => {
                match self.go_there(&name, &to.roots.repository) {
                    Ok(()) => {
                        if let Some(abroad) = &mut progress.abroad {
                            abroad.worktree = Some(self.worktree.clone());
                        }
                        return Ok(true);
                    }
                    Err(detail) => Err(detail),
                }
            }
            (_, found) => found,
        };
        self.not_placed(claimed, progress, &from, &found)?;
        Ok(false)
    }

    fn world_named(&self, name: &str) -> Result<LocalWorld, String> {
        match self.batch.settings.worlds.get(name) {
            Some(folder) => LocalWorld::find(folder),
            None => Err(format!(
                "unknown world `{name}`; add it under [worlds] in harness.toml"
            )),
        }
    }

    /// Returns the world that the lane is in now, where that is another one.
    pub(super) fn world_it_is_in(&self) -> Option<Result<LocalWorld, String>> {
        let away = self.away.as_ref()?;
        Some(LocalWorld::find(&away.repository))
    }

    pub(super) fn own_world(&self) -> Result<LocalWorld, String> {
        LocalWorld::find(&self.batch.settings.roots.repository)
    }

    fn may_be_placed(&self, progress: &Progress, from: &LocalWorld, to: &LocalWorld) -> bool {
        let lineage = self.lineage(&progress.identity.issue_id);
        let policy = from.policy.policy_digest();
        may_be_placed(&lineage, &from.profile, &to.profile, policy)
    }

    /// Goes to a worktree that is made in another repository; says why not.
    fn go_there(&mut self, name: &str, repository: &Path) -> Result<(), String> {
        let own = WorldSettings::load(repository).map_err(|error| chain(&error))?;
        let provision = Provision {
            repository: repository.to_path_buf(),
            root: worlds_root(repository),
            count: 1,
            target: own.begins_at_target.then(|| own.target.clone()),
        };
        let Single {
            worktree,
            start,
            lock,
        } = provision
            .single(&lane_name(&self.worktree), PREDECESSOR)
            .map_err(|error| chain(&error))?;
        let place = self
            .place(repository, worktree, lock)
            .map_err(|error| chain(&error))?;
        self.go_to(place, name, repository, own, start);
        // Leftover work there is saved like a step's.
        if let Err(error) = self.clear() {
            self.come_home();
            return Err(chain(&error));
        }
        Ok(())
    }

    /// Makes ready to work in a worktree that is locked.
    fn place(
        &self,
        repository: &Path,
        worktree: PathBuf,
        lock: WorktreeLock,
    ) -> Result<Place, BootError> {
        let tree = Tree::open_in(repository, &worktree)?;
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
        Ok(Place {
            worktree,
            tree,
            site,
            supervisor,
            lock,
        })
    }

    fn go_to(
        &mut self,
        mut place: Place,
        name: &str,
        repository: &Path,
        own: WorldSettings,
        start: String,
    ) {
        self.exchange(&mut place);
        self.away = Some(Away {
            name: name.to_owned(),
            repository: repository.to_path_buf(),
            own,
            start,
            home: place,
        });
    }

    /// Goes back to where a step that was cut worked; `false` where the
    /// worktree is not there any more.
    pub(super) fn go_back_abroad(&mut self, world: &StepWorld) -> Result<bool, BootError> {
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
        let lock = WorktreeLock::acquire_in(tree.git_folder(), PREDECESSOR)?;
        let place = self.place(&repository, worktree.clone(), lock)?;
        // A tampered session cannot lead to a foreign worktree.
        if !is_provisioned(place.tree.git_folder()) {
            return Ok(false);
        }
        // Nothing is worked on there now: it is put in order.
        let own = WorldSettings::default();
        self.go_to(place, &world.name, &worktree, own, String::new());
        Ok(true)
    }

    /// Comes back from another world, where the lane is in one.
    pub(super) fn come_home(&mut self) {
        if let Some(away) = self.away.take() {
            let mut place = away.home;
            self.exchange(&mut place);
        }
    }

    fn exchange(&mut self, place: &mut Place) {
        swap(&mut self.worktree, &mut place.worktree);
        swap(&mut self.tree, &mut place.tree);
        swap(&mut self.site, &mut place.site);
        swap(&mut self.supervisor, &mut place.supervisor);
        swap(&mut self.lock, &mut place.lock);
    }

    /// Returns what makes the worktree ready to work in.
    pub(super) fn setup(&self) -> Option<&Setup> {
        match &self.away {
            Some(away) => away.own.setup.as_ref(),
            None => self.batch.settings.setup.as_ref(),
        }
    }

    /// Returns the verification: another world's own, where it has one.
    pub(super) fn verify_command(&self) -> String {
        let own = self.away.as_ref().and_then(|away| away.own.verify.clone());
        own.unwrap_or_else(|| self.batch.settings.hooks.verify.clone())
    }

    /// Returns what the work must not touch.
    pub(super) fn protect(&self) -> &Protect {
        match &self.away {
            Some(away) => &away.own.protect,
            None => &self.batch.settings.protect,
        }
    }

    /// Returns the variables that describe the world to a command.
    pub(super) fn world_variable(&self) -> Option<(&'static str, OsString)> {
        let away = self.away.as_ref()?;
        Some(("PREMATH_WORLD", away.name.clone().into()))
    }

    /// Returns whether the work lands before its issue closes; in another world
    /// that is that world's business.
    pub(super) fn lands(&self) -> bool {
        self.away.is_none() && self.batch.landing.merges()
    }

    /// Returns the landing of an issue's work whose harness died before the
    /// close.
    pub(super) fn landed(&self, issue_id: &str) -> Result<Option<LandedMark>, StepError> {
        match &self.away {
            Some(_) => Ok(None),
            None => Ok(self.batch.landing.landed(issue_id)?),
        }
    }

    /// Names where work is kept, with the world that it is kept in.
    pub(super) fn kept(&self, salvage: String) -> String {
        match &self.away {
            Some(away) => format!("{salvage} (in world {})", away.name),
            None => salvage,
        }
    }

    /// Takes the lane off a step's branch in another world, and the branch away
    /// where nothing is on it.
    pub(super) fn leave_branch_abroad(&self, step: &SessionStep) {
        let Some(branch) = &step.base_branch else {
            return;
        };
        let _alone = self.batch.landing.branches();
        if let Err(error) = self.tree.leave(branch, &[&step.base_commit]) {
            tracing::warn!(step = %step.step_id, %error, "the step's branch was not left");
        }
    }

    /// Says where the work of a step in another world is, now that it is over.
    pub(super) fn settle_abroad(&self, progress: &mut Progress, salvage: &mut Option<String>) {
        if let Some(kept) = salvage.take() {
            *salvage = Some(self.kept(kept));
        }
        let branch = progress
            .base
            .as_ref()
            .and_then(|base| base.branch.as_deref());
        let branch = branch.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        let commit = progress.commit.clone().filter(|_| progress.closed);
        if let Some(abroad) = &mut progress.abroad {
            abroad.record.branch = branch.filter(|_| commit.is_some());
            abroad.record.commit = commit;
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
