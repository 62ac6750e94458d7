//! Ignored files and folders whose names say that they hold secrets.

use super::beneath::{kind, path};
use super::descent::Descent;
use super::own_files::OwnFiles;
use rustix::fs::FileType;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
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
///
/// A step may have written these folders. What was found before stays found, and
/// a folder that is closed to its owner counts: a step could open it.
pub(super) fn find(own: &OwnFiles, descent: &mut Descent, worktree: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for known in own.secrets().filter(|known| own.holds(bytes(known))) {
        if !matches!(descent.look(bytes(known)), Ok(None)) {
            found.insert(known.to_path_buf());
        }
    }
    let mut left = ENTRIES_MAX;
    let mut entries: VecDeque<PathBuf> = own.paths().map(Path::to_path_buf).collect();
    while let Some(entry) = entries.pop_front() {
        let Ok(Some(stat)) = descent.look(bytes(&entry)) else {
            continue;
        };
        let is_secret = entry.file_name().is_some_and(is_secret);
        let is_folder = kind(&stat) == FileType::Directory;
        if is_folder && is_filled_by_a_tool(descent, &entry) {
            continue;
        }
        if kind(&stat) == FileType::Symlink {
            let link = worktree.join(&entry);
            found.extend(resolved(own, worktree, &link).filter(|_| is_secret));
        } else if is_secret {
            found.insert(entry);
        } else if is_folder {
            match descent.list(bytes(&entry), left) {
                Ok(Some(listing)) => {
                    left -= listing.names.len();
                    let names = listing.names.iter();
                    entries.extend(names.map(|(name, _)| entry.join(path(name))));
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    found.insert(entry);
                }
                Ok(None) | Err(_) => {}
            }
        }
    }
    let is_outermost = |entry: &&PathBuf| !entry.ancestors().skip(1).any(|up| found.contains(up));
    found.iter().filter(is_outermost).cloned().collect()
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn is_secret(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ENVIRONMENT) || SECRETS.iter().any(|secret| name == *secret)
}

fn is_filled_by_a_tool(descent: &mut Descent, folder: &Path) -> bool {
    let is_marked = |mark: &&str| {
        let found = descent.look(bytes(&folder.join(mark)));
        matches!(found, Ok(Some(stat)) if kind(&stat) == FileType::RegularFile)
    };
    MARKS.iter().any(is_marked) || folder.file_name().is_some_and(|name| name == PACKAGES)
}

/// Returns the ignored file or folder of this worktree that a link leads to.
fn resolved(own: &OwnFiles, worktree: &Path, link: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(worktree).ok()?;
    let to = fs::canonicalize(link).ok()?;
    let to = to.strip_prefix(root).ok()?;
    let is_own = own.holds(to.as_os_str().as_encoded_bytes());
    is_own.then(|| to.to_path_buf())
}
