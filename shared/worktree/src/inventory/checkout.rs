//! Checkouts for verifications that no lane of the repository has.
//!
//! Their lane is gone, or works in another repository. What a checkout holds is made
//! again where it is needed.

use crate::checkout::NO_REPOSITORY;
use git2::Repository;
use premath_kernel::policy::inventory::{LeftCheckout, Worktree};
use premath_memory::lane_record::LaneRecord;
use premath_memory::roots::{LaneState, is_lane_name, lane_name, verifications, worktree_folders};
use premath_memory::{StoreError, leftover, untrusted};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lists them by path. Returns none if a lane's record cannot be read.
pub(super) fn find(git: &Repository, worktrees: &[Worktree]) -> Vec<LeftCheckout> {
    let main = main_of(git);
    let known = main.map(|main| lanes(&main).map(|lanes| (main, lanes)));
    let Some(Ok((main, mut lanes))) = known else {
        return Vec::new();
    };
    // A registered worktree whose folder is missing may return.
    lanes.extend(worktrees.iter().map(|worktree| lane_name(&worktree.path)));
    // A removal that was cut may have left either of the two.
    let kept = LaneState::named(&main, "").folder;
    let names: BTreeSet<String> = [verifications(&main), kept]
        .iter()
        .flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten())
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_lane_name(name) && !lanes.contains(name))
        .collect();
    let states = names.iter().map(|name| LaneState::named(&main, name));
    let left = states.filter(is_ours).map(|state| LeftCheckout {
        bytes: leftover::size(&state.checkout) + leftover::size(&state.changes),
        path: state.checkout,
    });
    left.collect()
}

/// Returns the main worktree.
pub(super) fn main_of(git: &Repository) -> Option<PathBuf> {
    fs::canonicalize(git.workdir()?).ok()
}

/// Returns the names of the lanes whose worktrees are there.
pub(super) fn lanes(main: &Path) -> Result<BTreeSet<String>, StoreError> {
    let records = LaneRecord::all(main)?.into_iter();
    let made = records.flat_map(|record| record.folders);
    let made = made.map(|folder| folder.worktree);
    let mut names = BTreeSet::new();
    for path in worktree_folders(main)?.into_iter().chain(made) {
        if fs::symlink_metadata(&path).is_ok() {
            names.insert(lane_name(&path));
            names.extend(fs::canonicalize(&path).ok().map(|path| lane_name(&path)));
        }
    }
    Ok(names)
}

/// Returns whether the harness made a checkout: it keeps files of the lane, or the
/// checkout has the harness's own `.git` file.
pub(super) fn is_ours(state: &LaneState) -> bool {
    let is_kept = fs::symlink_metadata(&state.folder).is_ok_and(|found| found.is_dir());
    let link = || {
        let limit = u64::try_from(NO_REPOSITORY.len()).unwrap_or(0);
        untrusted::read_file(&state.checkout, &state.checkout.join(".git"), limit)
    };
    is_kept || link().as_deref() == Some(NO_REPOSITORY.as_bytes())
}
