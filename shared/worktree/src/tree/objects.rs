//! What killed processes left half-done in a repository's shared git folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How git (`tmp_obj_…`) and libgit2 (`tmp_object_git2_…`) name an object that
/// they are writing.
const TEMPORARY: &str = "tmp_obj";
/// A lock that git holds for an instant, whichever worktree it works in.
const LOCK: &str = "packed-refs.lock";

/// Where the harness's own branches and marks are.
const OURS: [&str; 3] = [
    "refs/harness",
    "refs/heads/harness",
    "refs/heads/harness-step",
];

/// Removes half-written objects and forgotten locks that were not touched since
/// a time; git holds such a file only briefly.
///
/// What cannot be removed stays for `git gc`.
pub fn sweep_shared(repository: &Path, untouched_since: SystemTime) {
    let Ok(repository) = git2::Repository::open(repository) else {
        return;
    };
    let common = repository.commondir();
    let mut candidates = vec![common.join(LOCK)];
    candidates.extend(half_written_in(&common.join("objects")));
    for folder in OURS {
        locks_below(&common.join(folder), &mut candidates);
    }
    for path in candidates {
        let touched = fs::symlink_metadata(&path).and_then(|meta| meta.modified());
        if touched.is_ok_and(|at| at < untouched_since) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes half-written objects of a store that no other process writes.
pub(crate) fn sweep_own(objects: &Path) {
    for path in half_written_in(objects) {
        let _ = fs::remove_file(path);
    }
}

/// Finds half-written objects of a store.
fn half_written_in(objects: &Path) -> Vec<PathBuf> {
    let mut found = half_written(objects);
    for folder in fs::read_dir(objects).into_iter().flatten().flatten() {
        // Two hexadecimal digits; packs are written for long, and stay.
        if folder.file_name().len() == 2 {
            found.extend(half_written(&folder.path()));
        }
    }
    found
}

fn locks_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            locks_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "lock") {
            found.push(path);
        }
    }
}

fn half_written(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
        })
        .map(|entry| entry.path())
        .collect()
}
