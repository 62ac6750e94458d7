//! Spare worktrees: a lane whose work waits in the landing queue begins its next
//! issue in one. They are made while the batch runs, once they are of use.

use premath_kernel::policy::slots::SlotRule;
use premath_memory::cause::chain;
use premath_memory::lane_record::LaneRecord;
use premath_memory::projection::read_session;
use premath_memory::roots::LaneState;
use premath_worktree::provision::{Provision, ProvisionResult, lane_name};
use std::path::{Path, PathBuf};

/// Where spare worktrees are made.
#[derive(Clone, Debug)]
pub struct SpareSite {
    provision: Provision,
    /// The number of the next one.
    next: usize,
}

impl SpareSite {
    /// Begins after the lanes of a batch, of which some are spare ones already.
    pub fn after(provision: Provision, lanes: usize) -> Self {
        Self {
            provision,
            next: lanes + 1,
        }
    }

    /// Returns a site that makes one worktree after the others.
    pub(crate) fn take(&mut self) -> Self {
        let one = self.clone();
        self.next += 1;
        one
    }

    /// Makes the worktree; the error says why there is none.
    pub(crate) fn make(&self) -> Result<PathBuf, String> {
        let made = self.provision.another(self.next, || true);
        let outcome = made.map_err(|error| chain(&error))?;
        match outcome.result {
            ProvisionResult::Refused(why) => Err(why),
            _ => Ok(outcome.worktree),
        }
    }
}

/// Returns the numbers of the lanes beyond a batch's own that stay: all that
/// slots are set for, and those in which a step was cut.
pub fn kept(repository: &Path, root: &Path, slots: Option<usize>, lanes: usize) -> Vec<usize> {
    let rule = SlotRule::of(slots, lanes);
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    (lanes + 1..=lanes + rule.spare)
        .filter(|number| slots.is_some() || was_cut(repository, &root, *number))
        .collect()
}

/// Returns whether a step was cut in a lane; one whose session cannot be read
/// is looked at by its boot.
fn was_cut(repository: &Path, root: &Path, number: usize) -> bool {
    let Ok(record) = LaneRecord::read(repository, &lane_name(number)) else {
        return false;
    };
    let Some(folder) = record.in_use(root) else {
        return false;
    };
    let state = LaneState::at(repository, &folder.worktree);
    match read_session(&state.session) {
        Ok(session) => session.is_some_and(|session| session.step.is_some()),
        Err(_) => true,
    }
}
