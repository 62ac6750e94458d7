//! Folders with what git could not hold of a step.

use jiff::Timestamp;
use premath_kernel::policy::inventory::{SalvageFolder, Worktree};
use premath_memory::leftover;
use std::fs;
use std::path::{Path, PathBuf};

/// Its name in a git folder, and in `.premath/` where that is on another file
/// system.
pub(super) const FOLDER: &str = "premath-salvage";

pub(super) fn find(common: &Path, worktrees: &[Worktree]) -> Vec<SalvageFolder> {
    let mut folders = vec![common.join(FOLDER)];
    for worktree in worktrees {
        if let Some(name) = &worktree.name {
            folders.push(common.join("worktrees").join(name).join(FOLDER));
        }
        if worktree.is_sound() {
            folders.push(worktree.path.join(".premath").join(FOLDER));
        }
    }
    let mut found: Vec<SalvageFolder> = folders
        .iter()
        .flat_map(|folder| places(folder))
        .filter_map(|path| {
            let modified = fs::symlink_metadata(&path).ok()?.modified().ok()?;
            Some(SalvageFolder {
                at: Timestamp::try_from(modified).ok()?,
                bytes: leftover::size(&path),
                path,
            })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Lists `<issue>/<generation>` below a salvage folder; none where the folder or
/// the one above it is a link.
pub(super) fn places(folder: &Path) -> Vec<PathBuf> {
    let is_real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_real(folder) || !folder.parent().is_some_and(is_real) {
        return Vec::new();
    }
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect()
    };
    let issues = folders(folder);
    issues.iter().flat_map(|issue| folders(issue)).collect()
}
