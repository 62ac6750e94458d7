//! The branch of a step: where it begins, and how the lane leaves it.

use super::Lane;
use premath_kernel::issue::lease::Claim;
use premath_kernel::policy::landing::is_step_branch;
use premath_kernel::record::session::SessionStep;
use premath_worktree::landing::LandingError;
use premath_worktree::tree::{Base, TreeError};

/// Where a step begins cannot be determined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BranchError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Landing(#[from] LandingError),
}

impl Lane {
    /// Returns where a step begins: at the target's tip on a branch of its
    /// own, or where the lane is.
    pub(crate) fn starting_point(&self, claim: &Claim) -> Result<Base, BranchError> {
        if let Some(away) = &self.away {
            return Ok(away.starting_point(claim)?);
        }
        let landing = &self.batch.landing;
        if !landing.is_on() {
            return Ok(self.tree.base()?);
        }
        landing.refresh();
        // What the issue's own landing left is looked at as it is.
        let commit = match self.batch.landed(&claim.issue_id)? {
            Some(_) => landing.tip()?,
            None => self.batch.landing_start()?,
        };
        Ok(Base {
            commit,
            branch: Some(landing.free_branch(&claim.issue_id, claim.generation)?),
        })
    }

    /// Puts the lane where the step begins.
    pub(crate) fn sync_target(&self, claim: &Claim, base: &Base) -> Result<(), TreeError> {
        if self.away.is_some() || self.batch.landing.is_on() {
            let alone = self.batch.landing.branches();
            self.tree.make_branch(base)?;
            drop(alone);
            self.tree
                .start_at(base, &claim.issue_id, claim.generation)?;
        }
        Ok(())
    }

    /// Detaches the lane from a step's branch, and deletes the branch if the
    /// target or the base contains all of its commits.
    pub(crate) fn leave_branch(&self, step: &SessionStep, closed: bool) {
        if step.world.is_some() {
            self.leave_remote_branch(step);
            return;
        }
        let landing = &self.batch.landing;
        let Some(branch) = &step.base_branch else {
            return;
        };
        let name = branch.trim_start_matches("refs/heads/");
        let is_kept = closed && !landing.merges();
        if !landing.is_on() || is_kept || !is_step_branch(name, &step.issue_id, step.generation) {
            return;
        }
        let tip = landing.tip().unwrap_or_else(|_| step.base_commit.clone());
        let _alone = landing.branches();
        if let Err(error) = self.tree.leave(branch, &[&step.base_commit, &tip]) {
            tracing::warn!(step = %step.step_id, %error, "the step's branch was not left");
        }
    }
}
