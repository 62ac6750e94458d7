//! The history of a landing target that a person merged. The target then
//! fast-forwarded to the merge, so that earlier landings are reachable only through its
//! second parent.

use super::{History, HistoryError};
use git2::Oid;
use premath_kernel::record::audit::CommitFacts;
use std::collections::BTreeSet;

/// A chain of first parents, the newest commit first.
struct Chain {
    /// The indexes of the merges on the way from the branch; empty for the branch.
    merged_at: Vec<usize>,
    commits: Vec<CommitFacts>,
}

impl History {
    /// Returns the first-parent history of a branch, and after it those of branches that
    /// were merged into it, as far as they have commits that are wanted; what was merged
    /// last comes first. Where there is no such branch and HEAD has all of them, HEAD
    /// counts as that branch.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn with_merged(
        &self,
        branch: &str,
        wanted: &BTreeSet<String>,
    ) -> Result<Option<Vec<CommitFacts>>, HistoryError> {
        let wanted = wanted.iter().filter_map(|id| Oid::from_str(id).ok());
        let wanted: BTreeSet<Oid> = wanted.collect();
        let read = || -> Result<Option<Vec<CommitFacts>>, git2::Error> {
            let tip = match self.tip(branch)? {
                Some(tip) => tip,
                None => match self.git.head().and_then(|head| head.peel_to_commit()) {
                    Ok(head) if wanted.iter().all(|id| self.has(head.id(), *id)) => head.id(),
                    _ => return Ok(None),
                },
            };
            let mut chains = vec![Chain {
                merged_at: Vec::new(),
                commits: self.chain(tip, |_| false)?,
            }];
            let mut known = BTreeSet::new();
            known.extend(ids(&chains[0].commits));
            for id in wanted {
                if !known.contains(&id) && self.has(tip, id) {
                    self.add_chains(id, &mut chains, &mut known)?;
                }
            }
            chains.sort_by(|one, other| one.merged_at.cmp(&other.merged_at));
            let commits = chains.into_iter().flat_map(|chain| chain.commits);
            Ok(Some(commits.collect()))
        };
        read().map_err(HistoryError::git(format!("read the history of {branch}")))
    }

    /// Adds the chains by which a commit was merged, from the branch on.
    fn add_chains(
        &self,
        id: Oid,
        chains: &mut Vec<Chain>,
        known: &mut BTreeSet<Oid>,
    ) -> Result<(), git2::Error> {
        let mut at = 0;
        while !known.contains(&id) {
            // The commits of a chain that contain `id` are its newest ones. The oldest of
            // these merged it.
            let chain = &chains[at];
            let having = chain
                .commits
                .partition_point(|commit| self.has_in(&commit.id, id));
            let Some(place) = having.checked_sub(1) else {
                return Ok(());
            };
            let others = chain.commits[place].parents.iter().skip(1);
            let mut others = others.filter_map(|other| Oid::from_str(other).ok());
            let Some(other) = others.find(|other| self.has(*other, id)) else {
                return Ok(());
            };
            let mut merged_at = chain.merged_at.clone();
            merged_at.push(place);
            let named = other.to_string();
            let is_of = |chain: &Chain| chain.commits.iter().any(|commit| commit.id == named);
            at = match chains.iter().position(is_of) {
                Some(there) if there != at => there,
                Some(_) => return Ok(()),
                None => {
                    let commits = self.chain(other, |id| known.contains(&id))?;
                    known.extend(ids(&commits));
                    chains.push(Chain { merged_at, commits });
                    chains.len() - 1
                }
            };
        }
        Ok(())
    }

    fn has_in(&self, tip: &str, id: Oid) -> bool {
        Oid::from_str(tip).is_ok_and(|tip| self.has(tip, id))
    }

    /// Returns whether a commit is another, or comes after it.
    fn has(&self, tip: Oid, id: Oid) -> bool {
        tip == id || self.git.graph_descendant_of(tip, id).unwrap_or(false)
    }
}

fn ids(commits: &[CommitFacts]) -> impl Iterator<Item = Oid> {
    let ids = commits.iter().map(|commit| Oid::from_str(&commit.id));
    ids.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Repository, RepositoryInitOptions, Signature};

    /// A repository whose commits are named by their messages.
    struct Commits {
        git: Repository,
    }

    impl Commits {
        fn add(&self, message: &str, parents: &[Oid]) -> Oid {
            let author = Signature::now("t", "t@localhost").unwrap();
            let tree = self.git.treebuilder(None).unwrap().write().unwrap();
            let tree = self.git.find_tree(tree).unwrap();
            let parents: Vec<_> = parents
                .iter()
                .map(|id| self.git.find_commit(*id).unwrap())
                .collect();
            let parents: Vec<_> = parents.iter().collect();
            self.git
                .commit(None, &author, &author, message, &tree, &parents)
                .unwrap()
        }

        fn put(&self, branch: &str, id: Oid) {
            let name = format!("refs/heads/{branch}");
            self.git.reference(&name, id, true, "t").unwrap();
        }
    }

    fn messages(history: &History, branch: &str, wanted: &[Oid]) -> Option<Vec<String>> {
        let wanted = wanted.iter().map(Oid::to_string).collect();
        let commits = history.with_merged(branch, &wanted).unwrap()?;
        Some(commits.into_iter().map(|commit| commit.message).collect())
    }

    #[test]
    fn what_was_merged_twice_is_found_in_the_order_in_which_it_landed() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = RepositoryInitOptions::new();
        let git = Repository::init_opts(folder.path(), options.initial_head("main")).unwrap();
        let all = Commits { git };
        let root = all.add("root", &[]);
        let one = all.add("landed 1", &[root]);
        let two = all.add("landed 2", &[one]);
        let own = all.add("own 1", &[root]);
        let first = all.add("merge 1", &[own, two]);
        let three = all.add("landed 3", &[first]);
        let own = all.add("own 2", &[first]);
        let feature = all.add("feature", &[three]);
        let second = all.add("merge 2", &[own, feature]);
        let four = all.add("landed 4", &[second]);
        all.put("main", second);
        all.put("target", four);
        let history = History::open(folder.path(), None).unwrap();
        let landed = [one, two, three, four];
        let expected = [
            "landed 4", "merge 2", "own 2", "merge 1", "own 1", "root", "feature", "landed 3",
            "landed 2", "landed 1",
        ];
        assert_eq!(messages(&history, "target", &landed).unwrap(), expected);
        // What is wanted and nowhere changes nothing, and costs nothing.
        let lost = all.add("lost", &[root]);
        let found = messages(&history, "target", &[one, lost]).unwrap();
        assert!(!found.contains(&"lost".to_owned()));
        assert!(found.contains(&"landed 1".to_owned()));
        // HEAD counts where it has all, and the branch is gone.
        all.git
            .find_reference("refs/heads/target")
            .unwrap()
            .delete()
            .unwrap();
        assert_eq!(messages(&history, "target", &landed), None);
        let found = messages(&history, "target", &landed[..3]).unwrap();
        assert!(found.contains(&"landed 1".to_owned()) && found[0] == "merge 2");
    }
}
