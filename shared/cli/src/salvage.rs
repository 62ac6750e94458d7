//! The salvage branches that a row of the run log names, as far as they are still there.

use premath_kernel::record::salvage::{is_branch, is_elsewhere, parts};
use premath_worktree::diff::CommitDiff;

/// Returns what a row names without the branches that are gone; `None` where nothing is
/// left.
pub(crate) fn kept(salvage: String, commits: &CommitDiff) -> Option<String> {
    if is_elsewhere(&salvage) {
        return Some(salvage);
    }
    let kept = parts(&salvage).filter(|part| !is_branch(part) || !commits.lacks_branch(part));
    let kept: Vec<&str> = kept.collect();
    (!kept.is_empty()).then(|| kept.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_is_gone_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let commits = CommitDiff::open(folder.path()).unwrap();
        let kept = |salvage: &str| kept(salvage.to_owned(), &commits);
        assert_eq!(kept("harness/salvage/a/1"), None);
        let folder = ".git/premath-salvage/a/1";
        let both = format!("harness/salvage/a/1, {folder}");
        assert_eq!(kept(&both).as_deref(), Some(folder));
        let elsewhere = "harness/salvage/a/1 (in world w)";
        assert_eq!(kept(elsewhere).as_deref(), Some(elsewhere));
    }
}
