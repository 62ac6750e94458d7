//! Ignored files and folders whose names say that they hold secrets.

use super::own_files::OwnFiles;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of files that usually hold secrets.
const SECRETS: [&str; 3] = [".netrc", ".npmrc", ".pypirc"];
/// How the others begin, as `.env.local` does.
const ENVIRONMENT: &[u8] = b".env";
/// What a folder that a tool filled holds: a virtual environment, a cache.
const MARKS: [&str; 2] = ["pyvenv.cfg", "CACHEDIR.TAG"];
/// A folder that package managers fill.
const PACKAGES: &str = "node_modules";
/// How many entries of ignored folders are looked at.
const ENTRIES_MAX: usize = 100_000;

/// Finds files and folders with such names, in ignored folders too, and what
/// links with such names lead to. None of them is below another.
pub(super) fn find(own: &OwnFiles, worktree: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = ENTRIES_MAX;
    let mut entries: VecDeque<PathBuf> = own.paths().map(Path::to_path_buf).collect();
    while let Some(entry) = entries.pop_front() {
        let at = worktree.join(&entry);
        let Ok(meta) = fs::symlink_metadata(&at) else {
            continue;
        };
        let is_secret = entry.file_name().is_some_and(is_secret);
        if meta.is_dir() && is_filled_by_a_tool(&at) {
            continue;
        }
        if meta.is_symlink() {
            found.extend(resolved(own, worktree, &at).filter(|_| is_secret));
        } else if is_secret {
            found.insert(entry);
        } else if meta.is_dir() {
            let names = fs::read_dir(&at).into_iter().flatten().flatten();
            let mut names: Vec<PathBuf> = names
                .take(left)
                .map(|inner| entry.join(inner.file_name()))
                .collect();
            left -= names.len();
            names.sort();
            entries.extend(names);
        }
    }
    let is_outermost = |entry: &&PathBuf| !entry.ancestors().skip(1).any(|up| found.contains(up));
    found.iter().filter(is_outermost).cloned().collect()
}

fn is_secret(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ENVIRONMENT) || SECRETS.iter().any(|secret| name == *secret)
}

fn is_filled_by_a_tool(folder: &Path) -> bool {
    let is_marked = MARKS.iter().any(|mark| folder.join(mark).is_file());
    is_marked || folder.file_name().is_some_and(|name| name == PACKAGES)
}

/// Returns the ignored file or folder of this worktree that a link leads to.
fn resolved(own: &OwnFiles, worktree: &Path, link: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(worktree).ok()?;
    let to = fs::canonicalize(link).ok()?;
    let to = to.strip_prefix(root).ok()?;
    let is_own = own.holds(to.as_os_str().as_encoded_bytes());
    is_own.then(|| to.to_path_buf())
}
