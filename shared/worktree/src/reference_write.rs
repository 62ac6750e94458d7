//! References that are pointed elsewhere, whatever they were.

use git2::{Error, Oid, Repository, Signature};

/// Where a reference leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A commit.
    Commit(Oid),
    /// A branch.
    Branch(&'a str),
}

/// Points a reference elsewhere, under its lock. `who` is written to its reflog, where
/// it has one.
///
/// [`Repository::reference`] does the same, and reads the settings, the reference and
/// the packed ones before it takes the lock. The caller vouches that the name is valid,
/// and that no other reference has it as a folder.
///
/// # Errors
///
/// [`Error`] of git, also where another process has the lock.
pub(crate) fn point(
    git: &Repository,
    name: &str,
    target: Target<'_>,
    who: &Signature<'_>,
    message: &str,
) -> Result<(), Error> {
    let mut transaction = git.transaction()?;
    transaction.lock_ref(name)?;
    match target {
        Target::Commit(commit) => transaction.set_target(name, commit, Some(who), message)?,
        Target::Branch(branch) => {
            transaction.set_symbolic_target(name, branch, Some(who), message)?;
        }
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::ErrorCode;
    use std::fs;

    #[test]
    fn a_reference_is_pointed_elsewhere_and_its_reflog_says_by_whom() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let who = Signature::now("A", "a@b").unwrap();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let tree = git.find_tree(tree).unwrap();
        let commit = |text| git.commit(None, &who, &who, text, &tree, &[]).unwrap();
        let (one, two) = (commit("one"), commit("two"));
        let branch = "refs/heads/branch";
        git.reference(branch, one, false, "made").unwrap();

        // It was packed, or is not there.
        let packed = format!("{one} refs/harness/landing/a/1\n");
        fs::write(git.path().join("packed-refs"), packed).unwrap();
        for name in ["refs/harness/landing/a/1", "refs/harness/landing/b/1"] {
            point(&git, name, Target::Commit(two), &who, "x").unwrap();
            assert_eq!(git.refname_to_id(name).unwrap(), two);
        }

        point(&git, "HEAD", Target::Branch(branch), &who, "on").unwrap();
        let head = || git.find_reference("HEAD").unwrap();
        assert_eq!(head().symbolic_target().unwrap(), Some(branch));
        point(&git, "HEAD", Target::Commit(two), &who, "off").unwrap();
        // HEAD itself, not the branch that it led to.
        assert_eq!(head().target(), Some(two));
        assert_eq!(git.refname_to_id(branch).unwrap(), one);
        let reflog = git.reflog("HEAD").unwrap();
        let last = reflog.get(0).unwrap();
        assert_eq!((last.id_old(), last.id_new()), (one, two));
        assert_eq!(last.committer().name(), Ok("A"));
        assert_eq!(last.message(), Ok(Some("off")));

        fs::write(git.path().join("HEAD.lock"), "").unwrap();
        let held = point(&git, "HEAD", Target::Branch(branch), &who, "x").unwrap_err();
        assert_eq!(held.code(), ErrorCode::Locked);
        assert_eq!(head().target(), Some(two));
    }
}
