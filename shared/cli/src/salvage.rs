//! The salvage branches that a row of the run log names, as far as they are still there.

use premath_worktree::diff::CommitDiff;

/// What a row has after the branches of another repository.
const ELSEWHERE: &str = " (in world ";

fn is_branch(name: &str) -> bool {
    name.starts_with("harness/") || name.starts_with("harness-")
}

/// Returns the branches of this repository that a row names; it may name a folder, and
/// branches of another repository, beside them.
pub(crate) fn branches(salvage: &str) -> impl Iterator<Item = &str> {
    let here = Some(salvage).filter(|salvage| !salvage.contains(ELSEWHERE));
    let parts = here.into_iter().flat_map(|salvage| salvage.split(", "));
    parts.filter(|part| is_branch(part))
}

/// Returns what a row names without the branches that are gone; `None` where nothing is
/// left.
pub(crate) fn kept(salvage: String, commits: &CommitDiff) -> Option<String> {
    if salvage.contains(ELSEWHERE) {
        return Some(salvage);
    }
    let parts = salvage.split(", ");
    let parts = parts.filter(|part| !is_branch(part) || !commits.lacks_branch(part));
    let parts: Vec<&str> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_branches_of_another_repository_are_left_out() {
        let named = |salvage| branches(salvage).collect::<Vec<_>>();
        assert_eq!(
            named("harness/salvage/a/1, .git/premath-salvage/a/1, harness-salvage/a/1"),
            ["harness/salvage/a/1", "harness-salvage/a/1"]
        );
        assert_eq!(named("harness/salvage/a/1 (in world w)"), [""; 0]);
    }

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
