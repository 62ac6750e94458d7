//! Work that changes other paths than the tip does: it goes onto the tip without git's
//! merge, which reads every name of the tree. Folders that no side changes are not read
//! here.

use super::overlay::{Leaf, Overlay};
use super::{Tree, TreeError};
use git2::{Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

const FOLDER: i32 = 0o040_000;
const SUBMODULE: i32 = 0o160_000;

/// What a side changes: paths, with what is there then.
type Changes = BTreeMap<Vec<u8>, Option<Leaf>>;

impl Tree {
    /// Returns the tree of two commits whose changes since their common base touch
    /// other paths, none of them below one of the other side; none where they do not.
    /// Renames need no look: the old path of one is changed too.
    pub(super) fn merged_apart(&self, tip: Oid, work: Oid) -> Result<Option<Oid>, TreeError> {
        let merged = put_together(&self.history, &self.repository, tip, work);
        merged.map_err(self.failed("merge with the landing target"))
    }
}

/// Reads from `history`, which knows where a shallow repository ends, and writes to
/// `store`.
fn put_together(
    history: &Repository,
    store: &Repository,
    tip: Oid,
    work: Oid,
) -> Result<Option<Oid>, git2::Error> {
    // git's merge says what is wrong where there is none.
    let bases = history.merge_bases(tip, work).ok();
    let Some(&[base]) = bases.as_deref() else {
        return Ok(None);
    };
    let tree_of = |commit| history.find_commit(commit).and_then(|commit| commit.tree());
    let (base, tip, work) = (tree_of(base)?, tree_of(tip)?, tree_of(work)?);
    let (mut ours, mut theirs) = (Changes::new(), Changes::new());
    add_changes(history, [Some(&base), Some(&tip)], b"", &mut ours)?;
    add_changes(history, [Some(&base), Some(&work)], b"", &mut theirs)?;
    let odb = store.odb()?;
    let is_there = |(mode, id): &Leaf| *mode == SUBMODULE || odb.exists(*id);
    if !are_apart(&ours, &theirs) || !theirs.values().flatten().all(is_there) {
        return Ok(None);
    }
    let mut overlay = Overlay::default();
    for (path, leaf) in &theirs {
        overlay.put(path, *leaf);
    }
    overlay.digest(store, &tip, true).map(Some)
}

/// Adds what changes from one folder to another; folders that are the same are not
/// read.
fn add_changes(
    git: &Repository,
    folders: [Option<&git2::Tree<'_>>; 2],
    above: &[u8],
    found: &mut Changes,
) -> Result<(), git2::Error> {
    let mut names: BTreeMap<Vec<u8>, [Option<Leaf>; 2]> = BTreeMap::new();
    for (side, folder) in folders.into_iter().enumerate() {
        for entry in folder.into_iter().flat_map(git2::Tree::iter) {
            let sides = names.entry(entry.name_bytes().to_vec()).or_default();
            sides[side] = Some((entry.filemode(), entry.id()));
        }
    }
    for (name, sides) in names {
        let [old, new] = sides;
        if old == new {
            continue;
        }
        let path = [above, &name].concat();
        let is_folder = |leaf: &Leaf| leaf.0 == FOLDER;
        let below = sides.map(|side| side.filter(is_folder));
        if below != [None, None] {
            let read = |side: Option<Leaf>| side.map(|(_, id)| git.find_tree(id)).transpose();
            let trees = [read(below[0])?, read(below[1])?];
            let trees = trees.each_ref().map(Option::as_ref);
            add_changes(git, trees, &[&path[..], b"/"].concat(), found)?;
        }
        let [old, new] = sides.map(|side| side.filter(|leaf| !is_folder(leaf)));
        if old.is_some() || new.is_some() {
            found.insert(path, new);
        }
    }
    Ok(())
}

/// Returns whether no path is one of both, or below one of the other side.
fn are_apart(ours: &Changes, theirs: &Changes) -> bool {
    let paths: BTreeSet<&[u8]> = ours.keys().map(Vec::as_slice).collect();
    theirs.keys().all(|path| {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = ends.map(|(end, _)| &path[..end]).chain([&path[..]]);
        let below = [&path[..], b"/"].concat();
        let range = (Bound::Included(&below[..]), Bound::Unbounded);
        let next = paths.range::<[u8], _>(range).next();
        !above.any(|at| paths.contains(at)) && !next.is_some_and(|next| next.starts_with(&below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Signature, Time};

    /// A sequence of numbers that a seed determines.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) % most
        }
    }

    type Files = BTreeMap<String, (i32, String)>;

    /// Changes some of the files, as work does it: some are moved.
    fn change(files: &mut Files, numbers: &mut Numbers) {
        for _ in 0..=numbers.below(3) {
            let names = ["a", "b", "c", "a/x", "a/y", "b/x", "b/y/z", "d/e/f"];
            let name = names[usize::try_from(numbers.below(8)).unwrap()];
            let is_below = |other: &String| {
                other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
            };
            match numbers.below(5) {
                0 => drop(files.remove(name)),
                1 => {
                    let moved = files.pop_first();
                    files.retain(|other, _| !is_below(other));
                    files.extend(moved.map(|(_, file)| (name.to_owned(), file)));
                }
                kind => {
                    files.retain(|other, _| !is_below(other));
                    let mode =
                        [0o100_644, 0o100_755, 0o120_000][usize::try_from(kind - 2).unwrap()];
                    let text = format!("line\n{}\n", numbers.below(9));
                    files.insert(name.to_owned(), (mode, text));
                }
            }
        }
    }

    fn commit(git: &Repository, files: &Files, parents: &[Oid]) -> Oid {
        let mut overlay = Overlay::default();
        for (name, (mode, text)) in files {
            let id = git.blob(text.as_bytes()).unwrap();
            overlay.put(name.as_bytes(), Some((*mode, id)));
        }
        let empty = git.treebuilder(None).unwrap().write().unwrap();
        let empty = git.find_tree(empty).unwrap();
        let tree = overlay.digest(git, &empty, true).unwrap();
        let tree = git.find_tree(tree).unwrap();
        let author = Signature::new("t", "t@localhost", &Time::new(0, 0)).unwrap();
        let parents: Vec<_> = parents
            .iter()
            .map(|id| git.find_commit(*id).unwrap())
            .collect();
        let parents: Vec<_> = parents.iter().collect();
        git.commit(None, &author, &author, "c", &tree, &parents)
            .unwrap()
    }

    fn remove(git: &Repository, id: Oid) {
        let id = id.to_string();
        let folder = git.commondir().join("objects").join(&id[..2]);
        std::fs::remove_file(folder.join(&id[2..])).unwrap();
    }

    #[test]
    fn the_tree_is_the_one_that_gits_merge_makes() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let (mut apart, mut together) = (0, 0);
        for seed in 0..600 {
            let mut numbers = Numbers(seed);
            let mut files = Files::new();
            (0..4).for_each(|_| change(&mut files, &mut numbers));
            let base = commit(&git, &files, &[]);
            let [tip, work] = [(), ()].map(|()| {
                let mut files = files.clone();
                change(&mut files, &mut numbers);
                commit(&git, &files, &[base])
            });
            let commits = [tip, work].map(|id| git.find_commit(id).unwrap());
            let mut merged = git.merge_commits(&commits[0], &commits[1], None).unwrap();
            match put_together(&git, &git, tip, work).unwrap() {
                Some(tree) => {
                    assert!(!merged.has_conflicts(), "{seed}");
                    assert_eq!(tree, merged.write_tree_to(&git).unwrap(), "{seed}");
                    apart += 1;
                }
                None => together += 1,
            }
        }
        assert!(apart > 100 && together > 100, "{apart} {together}");
    }

    #[test]
    fn where_a_shallow_history_ends_is_known_in_a_linked_worktree_too() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main");
        let git = Repository::init(&main).unwrap();
        let file = |name: &str| (name.to_owned(), (0o100_644, name.to_owned()));
        // Its parent is not in the store, as after `git clone --depth 1`.
        let root = commit(&git, &Files::from([file("root")]), &[]);
        let base = commit(&git, &Files::from([file("a")]), &[root]);
        git.reference("refs/heads/main", base, true, "test")
            .unwrap();
        git.set_head("refs/heads/main").unwrap();
        git.worktree("lane", &folder.path().join("lane"), None)
            .unwrap();
        let [tip, work] =
            ["b", "c"].map(|name| commit(&git, &Files::from([file("a"), file(name)]), &[base]));
        std::fs::write(git.commondir().join("shallow"), format!("{base}\n")).unwrap();
        remove(&git, root);
        let lane = Tree::open(&folder.path().join("lane")).unwrap();
        assert!(lane.merged_apart(tip, work).unwrap().is_some());
        let own = put_together(&lane.repository, &lane.repository, tip, work);
        assert_eq!(own.unwrap(), None);
    }

    #[test]
    fn a_folder_that_no_side_changes_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let file = |name: &str| (name.to_owned(), (0o100_644, name.to_owned()));
        let files = Files::from(["same/deep/x", "same/y", "d/x"].map(file));
        let base = commit(&git, &files, &[]);
        let [tip, work] = ["b", "d/c"].map(|name| {
            let mut files = files.clone();
            files.extend([file(name)]);
            commit(&git, &files, &[base])
        });
        let same = git.find_commit(base).unwrap().tree().unwrap();
        remove(&git, same.get_name("same").unwrap().id());
        let git = Repository::open(folder.path()).unwrap();
        assert!(put_together(&git, &git, tip, work).unwrap().is_some());
    }

    #[test]
    fn commits_without_a_common_base_are_for_gits_merge() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let files = |name: &str| Files::from([(name.to_owned(), (0o100_644, name.to_owned()))]);
        let [one, other] = ["a", "b"].map(|name| commit(&git, &files(name), &[]));
        assert_eq!(put_together(&git, &git, one, other).unwrap(), None);
    }
}
