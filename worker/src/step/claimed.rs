//! A step whose issue is claimed: nothing is prepared for it yet.

use super::attempt::Attempt;
use super::brief::Brief;
use super::error::{StageError, StepError};
use super::failed::Failed;
use super::prepared::Prepared;
use super::work::WorkDone;
use crate::lane::Lane;
use crate::lane::command::Phase;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::feature::FeatureStatus;
use premath_worktree::tree::{Base, TreeState};

/// A step whose issue is claimed.
#[derive(Debug)]
#[must_use = "a step that is claimed is prepared"]
pub(super) struct ClaimedStep<'a> {
    pub(super) attempt: Attempt<'a>,
}

impl<'a> ClaimedStep<'a> {
    /// Goes to where the work is, and makes everything ready for it: session,
    /// branch, git folder, feature, files, setup.
    pub(super) fn prepare(mut self, lane: &mut Lane) -> Result<Prepared<'a>, Box<Failed>> {
        let work = WorkDone::default();
        let base = match lane.begin_at(&mut self.attempt) {
            Ok(base) => base,
            Err(stage_error) => return Err(self.attempt.failed(lane, None, work, stage_error)),
        };
        match lane.make_ready(&mut self.attempt, &base) {
            Ok((brief, clean)) => Ok(Prepared {
                attempt: self.attempt,
                base,
                brief,
                clean,
            }),
            Err(stage_error) => Err(self.attempt.failed(lane, Some(base), work, stage_error)),
        }
    }
}

impl Lane {
    /// Goes to the world of the work; returns the commit and the branch that it
    /// begins at.
    fn begin_at(&mut self, attempt: &mut Attempt<'_>) -> Result<Base, StageError> {
        let issue_id = &attempt.claim().issue_id;
        if let Err(error) = attempt.batch.recover_reopened(issue_id) {
            tracing::warn!(issue = %issue_id, %error, "an earlier close was not recorded");
        }
        self.enter_requested_world(attempt)?;
        // Before the tip is read: what lands afterwards could conflict.
        if self.lands() {
            attempt.reserve_landing()?;
        }
        Ok(self.starting_point(attempt.claim())?)
    }

    /// Makes ready for the work; returns its brief and the tree that it begins
    /// with.
    fn make_ready(
        &mut self,
        attempt: &mut Attempt<'_>,
        base: &Base,
    ) -> Result<(Brief, TreeState), StageError> {
        let batch = attempt.batch;
        let step = &attempt.log.identity;
        // The record of where the step starts comes before its first change.
        self.begin_session(step, attempt.log.session_step(base))?;
        batch.reached(Boundary::SessionBegun);
        self.sync_target(attempt.claim(), base)?;
        batch.reached(Boundary::BranchMade);
        self.make_git(base)?;
        batch.reached(Boundary::GitPrepared);
        let clean = self.tree.clean_state()?;
        self.feature(attempt.claimed, FeatureStatus::InProgress, None)?;
        batch.reached(Boundary::FeatureBegun);
        let brief = self.brief(attempt)?;
        batch.reached(Boundary::FilesWritten);
        // Pre-mutation check: the lease is in force before any work is done.
        attempt.fence()?;
        self.weigh_risk(attempt, &brief.work)?;
        let watch = Some(&mut attempt.watch);
        if let Some(ran) = self.set_up(Phase::Setup, &brief.owner(), watch)? {
            let after = ran.after.clone();
            if let Err(failure) = self.take_in(&mut attempt.log, ran, Phase::Setup) {
                return Err(self.refused(&mut attempt.log, failure));
            }
            if after != clean {
                let detail = "the setup command changed files that git does not ignore";
                return Err(StepError::Unproven(detail.to_owned()).into());
            }
        }
        Ok((brief, clean))
    }
}
