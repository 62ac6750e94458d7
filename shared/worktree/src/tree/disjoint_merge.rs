//! Work that changes other paths than the tip does: it goes onto the tip without git's
//! merge, which reads every name of the tree. Folders that no side changes are not read
//! here.

use super::overlay::{FOLDER, Leaf, Overlay};
use super::{Tree, TreeError};
use crate::mode::mode_of;
use git2::{FileMode, Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a side changes: paths, with what is there then.
type Changes = BTreeMap<Vec<u8>, Option<Leaf>>;

/// What two folders have, by name.
type Sides = BTreeMap<Vec<u8>, [Option<Leaf>; 2]>;

impl Tree {
    /// Returns the tree of a tip and of work, whose changes since the base touch
    /// other paths, none of them below one of the other side; none where they do not.
    /// Renames need no look: the old path of one is changed too.
    pub(super) fn merged_apart(&self, trees: [Oid; 3]) -> Result<Option<Oid>, TreeError> {
        let merged = put_together(&self.repository, trees);
        merged.map_err(self.failed("merge with the landing target"))
    }
}

fn put_together(git: &Repository, [base, tip, work]: [Oid; 3]) -> Result<Option<Oid>, git2::Error> {
    let ours = changes(git, base, tip)?;
    let theirs = changes(git, base, work)?;
    let odb = git.odb()?;
    let submodule = i32::from(FileMode::Commit);
    let is_there = |(mode, id): &Leaf| *mode == submodule || odb.exists(*id);
    if !are_apart(&ours, &theirs) || !theirs.values().flatten().all(is_there) {
        return Ok(None);
    }
    let mut overlay = Overlay::default();
    for (path, leaf) in &theirs {
        overlay.put(path, *leaf);
    }
    overlay.digest(git, &git.find_tree(tip)?, true).map(Some)
}

/// Returns what changes from one tree to another; folders that are the same are not
/// read.
fn changes(git: &Repository, from: Oid, to: Oid) -> Result<Changes, git2::Error> {
    let mut found = Changes::new();
    let mut folders = vec![(Vec::new(), [Some(from), Some(to)])];
    while let Some((above, sides)) = folders.pop() {
        for (name, sides) in entries(git, sides)? {
            let [old, new] = sides;
            if old == new {
                continue;
            }
            let path = [&above[..], &name].concat();
            let below = sides.map(|side| side.filter(is_folder).map(|(_, id)| id));
            if below != [None, None] {
                folders.push(([&path[..], b"/"].concat(), below));
            }
            let [old, new] = sides.map(|side| side.filter(|leaf| !is_folder(leaf)));
            if old.is_some() || new.is_some() {
                found.insert(path, new);
            }
        }
    }
    Ok(found)
}

fn is_folder((mode, _): &Leaf) -> bool {
    *mode == FOLDER
}

/// Returns what two folders have by each name.
fn entries(git: &Repository, folders: [Option<Oid>; 2]) -> Result<Sides, git2::Error> {
    let mut names = Sides::new();
    for (side, folder) in folders.into_iter().enumerate() {
        let folder = folder.map(|id| git.find_tree(id)).transpose()?;
        for entry in folder.iter().flat_map(git2::Tree::iter) {
            let sides = names.entry(entry.name_bytes().to_vec()).or_default();
            sides[side] = Some((mode_of(&entry), entry.id()));
        }
    }
    Ok(names)
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
    use super::super::Merged;
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

    const NAMES: [&str; 8] = ["a", "b", "c", "a/x", "a/y", "b/x", "b/y/z", "d/e/f"];

    /// Changes some of the files, as work does it: some are moved.
    fn change(files: &mut Files, numbers: &mut Numbers) {
        for _ in 0..=numbers.below(3) {
            let name = NAMES[usize::try_from(numbers.below(8)).unwrap()];
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
        let (mut apart, mut together, mut clashing) = (0, 0, 0);
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
            let trees = [base, tip, work].map(|id| tree_of(&git, id));
            match put_together(&git, trees).unwrap() {
                Some(tree) => {
                    assert!(!merged.has_conflicts(), "{seed}");
                    assert_eq!(tree, merged.write_tree_to(&git).unwrap(), "{seed}");
                    apart += 1;
                }
                None => match merged_by(&git, [base, tip, work]) {
                    Merged::Clean(tree) => {
                        assert!(!merged.has_conflicts(), "{seed}");
                        assert_eq!(tree, merged.write_tree_to(&git).unwrap().to_string());
                        assert_kept(&git, trees, Oid::from_str(&tree).unwrap(), seed);
                        together += 1;
                    }
                    Merged::Conflict(_) => clashing += 1,
                },
            }
        }
        let counts = [apart, together, clashing];
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    }

    /// Merges as a lane does.
    fn merged_by(git: &Repository, [base, tip, work]: [Oid; 3]) -> Merged {
        git.reference("refs/heads/main", base, true, "test")
            .unwrap();
        git.set_head("refs/heads/main").unwrap();
        let tree = Tree::open(git.workdir().unwrap()).unwrap();
        let [base, tip, work] = [base, tip, work].map(|id| id.to_string());
        tree.merged(&base, &tip, &work).unwrap()
    }

    fn tree_of(git: &Repository, commit: Oid) -> Oid {
        git.find_commit(commit).unwrap().tree_id()
    }

    /// Asserts that a path is there after a merge as the side has it that changed it.
    fn assert_kept(git: &Repository, [base, ours, theirs]: [Oid; 3], merged: Oid, seed: u64) {
        let leaf = |tree: Oid, path: &str| {
            let tree = git.find_tree(tree).unwrap();
            let entry = tree.get_path(std::path::Path::new(path)).ok()?;
            let leaf = (mode_of(&entry), entry.id());
            (!is_folder(&leaf)).then_some(leaf)
        };
        for path in NAMES {
            let [base, ours, theirs, merged] =
                [base, ours, theirs, merged].map(|tree| leaf(tree, path));
            if ours == base {
                assert_eq!(merged.is_some(), theirs.is_some(), "{seed}: {path}");
            }
            if theirs == base {
                assert_eq!(merged.is_some(), ours.is_some(), "{seed}: {path}");
            }
        }
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_conflicts_with_one_that_is_added_there() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let file = |name: &str, mode: i32| (name.to_owned(), (mode, name.to_owned()));
        let plain = 0o100_644;
        let files = Files::from(["kept", "out/f1", "out/f2"].map(|name| file(name, plain)));
        let base = commit(&git, &files, &[]);
        let mut added = files.clone();
        added.extend([file("out/ga", plain)]);
        let added = commit(&git, &added, &[base]);
        for mode in [plain, 0o120_000] {
            let replaced =
                Files::from([file("kept", plain), file("out", mode), file("out-x", plain)]);
            let replaced = commit(&git, &replaced, &[base]);
            for [tip, work] in [[added, replaced], [replaced, added]] {
                let paths = ["out", "out/ga"].map(str::to_owned);
                let conflict = Merged::Conflict(paths.to_vec());
                assert_eq!(merged_by(&git, [base, tip, work]), conflict);
            }
        }
    }

    #[test]
    fn what_was_taken_off_below_the_base_does_not_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let file = |name: &str, text: &str| (name.to_owned(), (0o100_644, text.to_owned()));
        let files = Files::from([file("a", "1"), file("b", "1")]);
        let first = commit(&git, &files, &[]);
        let with = |others: &[(&str, &str)], parent: Oid| {
            let others = others.iter().map(|(name, text)| file(name, text));
            commit(
                &git,
                &files.clone().into_iter().chain(others).collect(),
                &[parent],
            )
        };
        // Work begins on a landing, which a person takes off with a reset.
        let base = with(&[("landed", "1")], first);
        let merged = |work: Oid| merged_by(&git, [base, first, work]);
        let alone = with(&[("new", "1")], first);
        let clean = Merged::Clean(tree_of(&git, alone).to_string());
        assert_eq!(merged(with(&[("landed", "1"), ("new", "1")], base)), clean);
        // What changes it conflicts.
        let changes = with(&[("landed", "2")], base);
        assert_eq!(merged(changes), Merged::Conflict(vec!["landed".to_owned()]));
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
        let trees = [base, tip, work].map(|id| tree_of(&git, id));
        assert!(put_together(&git, trees).unwrap().is_some());
    }

    #[test]
    fn a_folder_whose_mode_has_rights_keeps_its_files_and_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let blob = git.blob(b"text").unwrap();
        let file = |name: &str| (name.to_owned(), (0o100_644, "text".to_owned()));
        let files = Files::from(["src/kept", "src-x"].map(file));
        let plain = commit(&git, &files, &[]);
        let plain = git.find_commit(plain).unwrap().tree().unwrap();
        // As git orders it: `src-x`, then `src` as if it ended in a slash.
        let entry = |mode: &str, name: &str, id: Oid| {
            [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat()
        };
        let inner = plain.get_name("src").unwrap().id();
        let raw = [entry("100644", "src-x", blob), entry("40755", "src", inner)].concat();
        let raw = git
            .odb()
            .unwrap()
            .write(git2::ObjectType::Tree, &raw)
            .unwrap();
        let raw = git.find_tree(raw).unwrap();
        let author = Signature::new("t", "t@localhost", &Time::new(0, 0)).unwrap();
        let base = git
            .commit(None, &author, &author, "raw", &raw, &[])
            .unwrap();
        let [tip, below, beside] = ["tip", "src/new", "other"].map(|name| {
            let mut overlay = Overlay::default();
            overlay.put(name.as_bytes(), Some((0o100_644, blob)));
            let tree = overlay.digest(&git, &raw, true).unwrap();
            let tree = git.find_tree(tree).unwrap();
            let base = git.find_commit(base).unwrap();
            git.commit(None, &author, &author, "c", &tree, &[&base])
                .unwrap()
        });
        for (work, names, added) in [
            (below, ["src-x", "src", "tip"].as_slice(), "src/new"),
            (beside, &["other", "src-x", "src", "tip"], "other"),
        ] {
            let trees = [base, tip, work].map(|id| tree_of(&git, id));
            let tree = put_together(&git, trees).unwrap().unwrap();
            let tree = git.find_tree(tree).unwrap();
            let found: Vec<_> = tree
                .iter()
                .map(|entry| entry.name_bytes().to_vec())
                .collect();
            let names: Vec<_> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            assert_eq!(found, names);
            for path in ["src/kept", added] {
                tree.get_path(std::path::Path::new(path)).unwrap();
            }
        }
    }
}
