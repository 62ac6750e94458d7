//! The files that the harness keeps in a repository, for an uninstallation.

use crate::error::StoreError;
use crate::ignored::unexclude;
use crate::in_use::IN_USE;
use crate::roots::{MemoryRoots, common_folder};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The names of ours in `.premath/`. One that ends in `*` is the beginning of names.
const OWN: [&str; 16] = [
    ".premath-tmp-*",
    "harness_feature_ledger.json",
    "harness_session.json",
    "harness_trajectory.jsonl",
    "harness_trajectory.jsonl.flock",
    "harness_trajectory.jsonl.torn-*",
    "issues.jsonl.base",
    "issues.jsonl.checks",
    "issues.jsonl.flock",
    "issues.jsonl.foreign",
    "issues.jsonl.seal",
    "issues.jsonl.torn-*",
    "lanes",
    "private",
    "step",
    "trust.json",
];

/// The names of ours in the git folder that all worktrees share.
const OWN_IN_GIT: [&str; 9] = [
    "premath-control",
    "premath-lane.flock",
    "premath-landing-wait.flock",
    "premath-landing.flock",
    "premath-projections.flock",
    IN_USE,
    "premath-warm-build.flock",
    "premath-warm-use.flock",
    "premath-worktrees.flock",
];

/// Returns whether a name in `.premath/` is ours.
fn is_own_file(path: &Path) -> bool {
    let is_there = path
        .parent()
        .is_some_and(|folder| folder.ends_with(".premath"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_name = |own: &&str| match own.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == **own,
    };
    is_there && OWN.iter().any(is_name)
}

/// Returns whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let (one, other) = (fs::canonicalize(one), fs::canonicalize(other));
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

/// What the harness keeps in a repository beside its branches and worktrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// What goes, by path.
    pub removed: Vec<PathBuf>,
    /// The issue store, where it is the harness's own place and git does not track
    /// it. It stays: nothing else has the issues.
    pub issues: Option<PathBuf>,
    /// What git tracks, or has tracked files in it. It stays.
    pub tracked: Vec<PathBuf>,
    /// What the harness did not make. It stays.
    pub foreign: Vec<PathBuf>,
}

impl OwnFiles {
    /// Looks at a repository; nothing is changed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; a folder of ours that is a link is refused.
    pub fn of<E>(
        roots: &MemoryRoots,
        is_tracked: impl Fn(&Path) -> Result<bool, E>,
    ) -> Result<Self, E>
    where
        E: From<StoreError>,
    {
        let mut files = Self::default();
        let usual = MemoryRoots::at(&roots.repository);
        let folders = [
            Some(&*roots.witnesses),
            Some(&*roots.streams),
            Some(&*roots.reports),
            roots.observation.parent(),
        ];
        let premath = entries(&roots.repository.join(".premath"))?;
        let artifacts = entries(&roots.repository.join("artifacts"))?;
        for path in premath.into_iter().chain(artifacts) {
            let is_own = folders.contains(&Some(&*path)) || is_own_file(&path);
            if is_tracked(&path)? {
                files.tracked.push(path);
            } else if path == usual.issues || is_same(&path, &roots.issues) {
                files.issues = Some(path);
            } else if is_own {
                files.removed.push(path);
            } else {
                files.foreign.push(path);
            }
        }
        let common = common_folder(&roots.repository)?;
        let own = OWN_IN_GIT.iter().map(|name| common.join(name));
        files
            .removed
            .extend(own.filter(|path| path.symlink_metadata().is_ok()));
        files.removed.sort();
        Ok(files)
    }

    /// Removes the files, folders that are empty now, and the names of ours in
    /// `info/exclude`. Links are removed, not followed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; what was removed before it is gone.
    pub fn remove(&self, roots: &MemoryRoots) -> Result<(), StoreError> {
        // The lock against a batch that begins goes last: it is held.
        let (lock, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.removed.iter().partition(|path| path.ends_with(IN_USE));
        for path in others {
            remove(path).map_err(StoreError::io("remove", path))?;
        }
        for folder in [".premath", "artifacts"] {
            // One that holds anything else stays.
            let _ = fs::remove_dir(roots.repository.join(folder));
        }
        unexclude(&common_folder(&roots.repository)?)?;
        for path in lock {
            remove(path).map_err(StoreError::io("remove", path))?;
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Lists what is in a folder of ours, by path.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |error| StoreError::io("read", folder)(error);
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.is_dir() => {
            return Err(failed(io::Error::other("it is not a folder")));
        }
        Ok(_) => {}
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn repository() -> (tempfile::TempDir, MemoryRoots) {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let roots = MemoryRoots::at(&fs::canonicalize(folder.path()).unwrap());
        for path in [
            ".premath/issues.jsonl",
            ".premath/harness_trajectory.jsonl",
            ".premath/private/live/x.json",
            ".premath/tracked.json",
            ".premath/mine/a.md",
            ".git/premath-my-notes.txt",
            ".git/premath-landing.flock",
            "artifacts/ciwitness/a.json",
            "artifacts/mine.txt",
        ] {
            let path = roots.repository.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        (folder, roots)
    }

    fn look(roots: &MemoryRoots) -> Result<OwnFiles, StoreError> {
        OwnFiles::of(roots, |path| Ok(path.ends_with("tracked.json")))
    }

    #[test]
    fn what_is_ours_goes_and_issues_tracked_and_foreign_files_stay() {
        let (_folder, roots) = repository();
        crate::ignored::exclude_from_status(&roots.repository).unwrap();
        let exclude = roots.repository.join(".git/info/exclude");
        let own = fs::read_to_string(&exclude).unwrap();
        fs::write(&exclude, format!("/mine/\n{own}/other/\n")).unwrap();
        let files = look(&roots).unwrap();
        assert_eq!(files.issues.as_ref(), Some(&roots.issues));
        // Another store of the operator's does not make this one anybody's.
        let other = MemoryRoots {
            issues: roots.repository.join("elsewhere.jsonl"),
            ..roots.clone()
        };
        assert_eq!(look(&other).unwrap(), files);
        files.remove(&roots).unwrap();
        let left = |folder: &str| entries(&roots.repository.join(folder)).unwrap();
        let expected = ["issues.jsonl", "mine", "tracked.json"].map(|name| {
            let premath = roots.repository.join(".premath");
            premath.join(name)
        });
        assert_eq!(left(".premath"), expected);
        assert_eq!(
            left("artifacts"),
            [roots.repository.join("artifacts/mine.txt")]
        );
        assert!(!roots.repository.join(".git/premath-landing.flock").exists());
        assert!(roots.repository.join(".git/premath-my-notes.txt").exists());
        let rules = fs::read_to_string(&exclude).unwrap();
        assert!(
            rules.contains("/mine/\n") && rules.contains("/other/\n"),
            "{rules}"
        );
        assert!(
            !rules.contains("premath") && !rules.contains("Premath"),
            "{rules}"
        );
    }

    #[test]
    fn nothing_is_deleted_through_a_link() {
        let (_folder, roots) = repository();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("a"), "x").unwrap();
        fs::remove_dir_all(&roots.witnesses).unwrap();
        symlink(elsewhere.path(), &roots.witnesses).unwrap();
        look(&roots).unwrap().remove(&roots).unwrap();
        assert!(fs::symlink_metadata(&roots.witnesses).is_err());
        assert!(elsewhere.path().join("a").exists());
        symlink(
            elsewhere.path(),
            roots.repository.join("artifacts/ciwitness"),
        )
        .unwrap();
        fs::remove_dir_all(roots.repository.join("artifacts")).unwrap();
        symlink(elsewhere.path(), roots.repository.join("artifacts")).unwrap();
        let refused = look(&roots).unwrap_err().to_string();
        assert!(refused.contains("artifacts"), "{refused}");
        assert!(elsewhere.path().join("a").exists());
    }
}
