//! `boot`: from files to a lane that may take a step (HARNESS-RUNTIME 3.1).

mod baseline;
mod command;
mod error;
mod open;
mod own_files;
mod recovery;
mod warnings;

pub use error::BootError;

use super::handoff::{BOOTED, SessionBefore};
use super::{Lane, LanePlan};
use crate::batch::Batch;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::bootstrap::Bootstrap;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::live::{LiveLaneState, short};
use premath_kernel::record::session::{SessionState, SessionWrite, StepWrite};
use premath_memory::cause::chain;
use premath_worktree::ownership::is_provisioned;
use premath_worktree::tree::Base;
use std::sync::Arc;

/// What a session says while a step that was cut is taken up.
const TAKING_UP: &str = "recover the interrupted step";

/// The findings of a boot.
#[derive(Clone, Debug)]
pub struct BootReport {
    /// The session before, as it is resumed or attached to.
    pub handoff: Option<Bootstrap>,
    /// The summary of the session before, where it had a step.
    pub before: Option<SessionBefore>,
    /// The branch on which a step that was cut, or leftover work in a lane of
    /// the harness, is saved.
    pub salvage: Option<String>,
    /// The issue that a claim would take now.
    pub next_target: Option<String>,
    /// How many witness files there are, and whether an observation is.
    pub witnesses: usize,
    /// Whether `artifacts/observation/latest.json` is there.
    pub observation: bool,
    /// What a person should know about this worktree.
    pub warnings: Vec<String>,
}

impl BootReport {
    /// Returns what the boot read, as the rest of a line: the last session, and
    /// the issue that is next.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        if let Some(before) = &self.before {
            text.push_str(&format!("; last session: {before}"));
        }
        if let Some(issue) = &self.next_target {
            text.push_str(&format!("; next issue: {issue}"));
        }
        text
    }
}

impl Lane {
    /// Boots a lane on a worktree.
    ///
    /// # Errors
    ///
    /// [`BootError`]; nothing was changed but what a step that was cut left.
    pub fn boot(batch: Arc<Batch>, plan: &LanePlan) -> Result<(Self, BootReport), BootError> {
        batch.note_lane(&plan.worker_id, |lane| {
            lane.state = LiveLaneState::Booting;
            lane.worktree = plan.worktree.display().to_string();
        });
        let booted = Self::boot_noted(batch.clone(), plan);
        batch.note_lane(&plan.worker_id, |lane| match &booted {
            Ok(_) => lane.state = LiveLaneState::Idle,
            Err(error) => {
                lane.state = LiveLaneState::Disabled;
                lane.reason = Some(short(&chain(error)));
            }
        });
        booted
    }

    fn boot_noted(batch: Arc<Batch>, plan: &LanePlan) -> Result<(Self, BootReport), BootError> {
        let (mut lane, handoff) = Self::open(batch, plan)?;
        let salvage = lane.settle_leftovers()?;
        lane.to_the_target()?;
        lane.batch.reached(Boundary::LaneAtTarget);
        lane.tree.settle_index();
        let base = lane.tree.base()?;
        lane.make_git(&base)?;
        let next_target = lane.write_booted()?;
        lane.batch.reached(Boundary::LaneBooted);
        if let Err(error) = lane.run_hooks() {
            lane.write_session(SessionWrite {
                state: SessionState::Stopped,
                summary: Some(format!("not booted: {error}")),
                ..SessionWrite::default()
            })?;
            return Err(error);
        }
        lane.push_owed();
        let roots = &lane.batch.settings.roots;
        let report = BootReport {
            handoff,
            before: lane.before.clone(),
            salvage,
            next_target,
            witnesses: std::fs::read_dir(&roots.witnesses).map_or(0, Iterator::count),
            observation: roots.observation.exists(),
            warnings: lane.warnings(),
        };
        Ok((lane, report))
    }

    /// Saves what a step that was cut left, and refuses what a person left;
    /// returns the branch that work was saved on.
    fn settle_leftovers(&mut self) -> Result<Option<String>, BootError> {
        self.remember_own_files()?;
        let mut salvage = self.take_up()?;
        if self.tree.take_back_move()? {
            tracing::info!("a move of the lane that was cut is taken back");
        }
        let is_ours = is_provisioned(self.tree.git_folder());
        if is_ours {
            salvage = salvage.or(self.clear()?);
        }
        self.refuse_dirty()?;
        if !is_ours {
            self.find_own_files()?;
        }
        Ok(salvage)
    }

    /// Writes the session of a booted lane; returns the issue that a claim would
    /// take now.
    fn write_booted(&mut self) -> Result<Option<String>, BootError> {
        let (next_target, snapshot) = self.batch.next_for(&self.worker_id)?;
        let next_step = next_target.as_ref().map_or_else(
            || "no issue is ready".to_owned(),
            |issue| format!("claim {issue}"),
        );
        self.write_session(SessionWrite {
            state: SessionState::Active,
            issue_id: Some(IssueId::default()),
            summary: Some(BOOTED.to_owned()),
            next_step: Some(next_step),
            instruction_refs: Some(self.batch.settings.mode.instruction_refs()),
            issues_path: Some(self.batch.memory.path().to_string_lossy().into_owned()),
            issues_snapshot_ref: Some(snapshot),
            worker_id: Some(self.worker_id.clone()),
            batch_id: Some(self.batch.id().to_owned()),
            step: StepWrite::Clear,
            ..SessionWrite::default()
        })?;
        Ok(next_target)
    }

    /// Runs setup, boot hook and verifications; the tree must be clean then.
    fn run_hooks(&mut self) -> Result<(), BootError> {
        let hooks = &self.batch.settings.hooks;
        let is_as_it_was = !self.batch.landing.is_on()
            && self.setup().is_none()
            && hooks.boot.is_none()
            && hooks.startup.is_none()
            && !self.batch.settings.verify_base;
        self.boot_setup()?;
        self.boot_command()?;
        self.warm_up()?;
        self.verify_at_startup()?;
        match is_as_it_was {
            true => Ok(()),
            false => self.refuse_dirty(),
        }
    }

    /// Puts a lane whose steps begin at the landing target there, so that it
    /// is made ready and verified on what they begin with.
    fn to_the_target(&self) -> Result<(), BootError> {
        let landing = &self.batch.landing;
        if !landing.is_on() {
            return Ok(());
        }
        self.tree.remember_home()?;
        let base = Base {
            commit: self.batch.landing_start()?,
            branch: None,
        };
        self.tree.relocate(&base, &self.worker_id)?;
        Ok(())
    }

    /// Refuses a tree with a user's changes.
    pub(crate) fn refuse_dirty(&self) -> Result<(), BootError> {
        if self.is_worktree_ours() && self.tree.is_known_clean() {
            return Ok(());
        }
        let mut paths = self.tree.changes()?;
        if paths.is_empty() {
            return Ok(());
        }
        paths.truncate(10);
        Err(BootError::Dirty {
            worktree: self.worktree.clone(),
            paths,
        })
    }
}
