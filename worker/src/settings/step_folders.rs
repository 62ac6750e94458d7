//! Folders of a repository that steps write.

use premath_memory::roots::{verifications, worktree_folders};
use std::path::{Path, PathBuf};

/// The worktrees of a repository and its checkouts for verifications, each as it is
/// named and without links on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepFolders(Vec<PathBuf>);

impl StepFolders {
    /// Finds those of the repository that a folder is in; the folder itself where it
    /// is in none.
    pub(crate) fn of(folder: &Path) -> Self {
        let worktrees = worktree_folders(folder);
        let mut folders = worktrees.unwrap_or_else(|_| vec![folder.to_path_buf()]);
        let checkouts = folders.first().map(|main| verifications(main));
        folders.extend(checkouts);
        Self::at(&folders)
    }

    /// Takes some folders.
    pub(crate) fn at(folders: &[PathBuf]) -> Self {
        let both = |folder: &PathBuf| [Some(folder.clone()), std::fs::canonicalize(folder).ok()];
        let mut found: Vec<PathBuf> = folders.iter().flat_map(both).flatten().collect();
        found.dedup();
        Self(found)
    }

    /// Adds those of others.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns whether a path is in one of them, as it is named or where its links lead.
    pub(crate) fn hold(&self, path: &Path) -> bool {
        let is_inside = |path: &Path| self.0.iter().any(|folder| path.starts_with(folder));
        is_inside(path) || std::fs::canonicalize(path).is_ok_and(|real| is_inside(&real))
    }

    /// Returns whether steps can write a part of a folder: it is in one of them, or
    /// around one.
    pub(crate) fn meet(&self, folder: &Path) -> bool {
        let is_around = |path: &Path| self.0.iter().any(|other| other.starts_with(path));
        let real = std::fs::canonicalize(folder);
        self.hold(folder) || is_around(folder) || real.is_ok_and(|real| is_around(&real))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_meets_those_that_are_in_it_and_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["repo/cache", "work/lane", "tools"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink("repo/cache", at("link")).unwrap();
        let folders = StepFolders::at(&[at("repo"), at("work/lane")]);
        for (name, is_held, is_met) in [
            ("repo", true, true),
            ("repo/cache", true, true),
            ("repo/absent", true, true),
            ("link", true, true),
            ("tools/../repo/cache", true, true),
            ("work", false, true),
            ("", false, true),
            ("tools", false, false),
            ("repository", false, false),
        ] {
            assert_eq!(folders.hold(&at(name)), is_held, "{name}");
            assert_eq!(folders.meet(&at(name)), is_met, "{name}");
        }
    }

    #[test]
    fn the_checkouts_for_verifications_are_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("repo");
        let folders = StepFolders::of(&repository);
        assert!(folders.hold(&repository.join("x")));
        assert!(folders.hold(&folder.path().join("repo-verify/warm")));
        assert!(!folders.hold(&folder.path().join("other")));
    }
}
