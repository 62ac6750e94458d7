//! Trees and indexes that git does not write stop nothing and hide nothing.

use super::lane::Lane;
use super::*;
use crate::diff::{CommitDiff, Difference};
use crate::mode::{FILE, is_kind};
use crate::tree::index_file;
use crate::tree::scan::index_entry;

/// Modes that no git writes, and a tree can have.
const ODD_MODES: [u32; 7] = [
    0, 0o100_000, 0o100_600, 0o100_777, 0o120_777, 0o160_755, 0o170_000,
];

/// Commits the tree of HEAD with a file of this mode, beside the index.
fn commit_odd(lane: &Lane, mode: u32) -> Oid {
    let repository = &lane.tree.repository;
    let parent = lane.tree.head().unwrap();
    let blob = repository.blob(b"odd\n").unwrap();
    let entry = |mode: u32, name: &str, id: Oid| {
        [format!("{mode:o} {name}\0").as_bytes(), id.as_bytes()].concat()
    };
    let tree = parent.tree().unwrap();
    let mut raw = Vec::new();
    for name in [".gitignore", ".premath", "a.txt", "d"] {
        let kept = tree.get_name(name).unwrap();
        raw.extend(entry(kept.filemode_raw() as u32, name, kept.id()));
    }
    raw.extend(entry(mode, "odd", blob));
    let odb = repository.odb().unwrap();
    let raw = odb.write(git2::ObjectType::Tree, &raw).unwrap();
    let raw = repository.find_tree(raw).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    repository
        .commit(Some("HEAD"), &author, &author, "odd", &raw, &[&parent])
        .unwrap()
}

#[test]
fn a_tree_with_modes_that_git_does_not_write_stops_nothing() {
    for mode in ODD_MODES {
        let lane = Lane::new();
        let odd = commit_odd(&lane, mode);
        assert_eq!(lane.tree.changes().unwrap(), ["odd"], "{mode:o}");
        let diff = CommitDiff::open(&lane.folder.path().join("main")).unwrap();
        let diff = diff.of_commit(&odd.to_string()).unwrap();
        assert_eq!(diff.files.len(), 1, "{mode:o}");
        assert!(!lane.left().is_empty(), "{mode:o}");
    }
}

#[test]
fn work_on_a_file_with_such_a_mode_is_taken_back_and_committed() {
    // An old git wrote the last one.
    let modes = ODD_MODES.into_iter().chain([0o100_664]);
    let regular = modes.filter(|mode| is_kind(*mode, FILE));
    for (mode, modes) in regular.flat_map(|mode| [(mode, true), (mode, false)]) {
        let lane = Lane::new();
        let mut config = lane.main.config().unwrap();
        config.set_bool("core.fileMode", modes).unwrap();
        lane.tree.changes().unwrap();
        commit_odd(&lane, mode);
        let base = lane.tree.base().unwrap();
        left(&lane.tree, &base);
        // Now the index has the mode that git writes, and the tree the other.
        lane.tree.plain.take();
        assert_eq!(lane.tree.changes().unwrap(), [""; 0], "{mode:o}");
        let text = || fs::read_to_string(lane.at("odd")).unwrap();
        assert_eq!(text(), "odd\n", "{mode:o}");
        lane.write("odd", "changed\n");
        left(&lane.tree, &base);
        assert_eq!(text(), "odd\n", "{mode:o}");
        lane.write("odd", "changed\n");
        lane.tree.commit(&TEXT).unwrap().unwrap();
        assert_eq!(lane.tree.changes().unwrap(), [""; 0], "{mode:o}");
    }
}

#[test]
fn a_link_with_rights_is_a_link() {
    let lane = Lane::new();
    commit_odd(&lane, 0o120_777);
    let base = lane.tree.base().unwrap();
    left(&lane.tree, &base);
    assert!(fs::symlink_metadata(lane.at("odd")).unwrap().is_symlink());
}

/// Replaces bytes of the index that lie so far before a name.
fn patch_index(lane: &Lane, name: &str, before: usize, bytes: &[u8]) {
    let file = lane.tree.git_folder().join("index");
    let mut content = fs::read(&file).unwrap();
    let mut found = content.windows(name.len());
    let name = found.position(|found| found == name.as_bytes());
    let at = name.unwrap() - before;
    content[at..at + bytes.len()].copy_from_slice(bytes);
    write_index(lane, content);
}

/// Git does not look at a digest of zeros.
fn write_index(lane: &Lane, mut content: Vec<u8>) {
    let end = content.len();
    content[end - 20..].fill(0);
    fs::write(lane.tree.git_folder().join("index"), content).unwrap();
}

fn hides_nothing(lane: &Lane, case: &str) {
    lane.tree.changes().unwrap();
    lane.write("a.txt", "b");
    let changes = lane.tree.changes().unwrap();
    assert!(changes.contains(&"a.txt".to_owned()), "{case}: {changes:?}");
    assert!(!lane.left().is_empty(), "{case}");
}

#[test]
fn an_index_that_git_does_not_write_hides_nothing() {
    // The fields of an entry are before its name: the mode, and the name's length.
    let odd = ODD_MODES.map(|mode| (62 - 24, mode.to_be_bytes().to_vec()));
    let lengths = [0_u16, 4, 6, 0x0ffe, 0x0fff].map(|length| (2, length.to_be_bytes().to_vec()));
    let names = ["/.txt", "a//xt", "..../"].map(|name| (0, name.as_bytes().to_vec()));
    for (before, bytes) in odd.into_iter().chain(lengths).chain(names) {
        let lane = Lane::new();
        patch_index(&lane, "a.txt", before, &bytes);
        hides_nothing(&lane, &format!("{before} {bytes:?}"));
    }
}

#[test]
fn an_index_hides_no_new_file() {
    let folder = 0o040_000;
    for (mode, stage) in ODD_MODES
        .into_iter()
        .chain([folder])
        .map(|mode| (mode, 0))
        .chain([(0o100_644, 1), (0o100_644, 2)])
    {
        let lane = Lane::new();
        lane.write("new.txt", "new\n");
        let blob = lane.tree.repository.blob(b"new\n").unwrap();
        let id = if stage == 0 { blob } else { Oid::ZERO_SHA1 };
        let stat = rustix::fs::lstat(lane.at("new.txt")).unwrap();
        let mut entry = index_entry(b"new.txt", (0o100_644, id), &stat);
        entry.flags |= stage << 12;
        let file = lane.tree.git_folder().join("index");
        let mut index = git2::Index::open(&file).unwrap();
        index.add(&entry).unwrap();
        index.write().unwrap();
        if stage == 0 {
            patch_index(&lane, "new.txt", 62 - 24, &mode.to_be_bytes());
        }
        let changes = lane.tree.changes().unwrap();
        assert_eq!(changes, ["new.txt"], "{mode:o} {stage}");
    }
}

#[test]
fn an_index_with_too_many_or_too_deep_trees_is_not_read() {
    let deep = [b"\0-1 1\n".repeat(500_000), b"\0-1 0\n".to_vec()].concat();
    let many = b"\0-1 2000000000\n".to_vec();
    // With `-0` libgit2 takes twenty bytes as a digest, and then the deep trees.
    let hidden = [b"\0-0 1\n\0-1 0\n".as_slice(), &[b'x'; 14], &deep].concat();
    for trees in [deep, many, hidden] {
        let lane = Lane::new();
        let mut content = fs::read(lane.tree.git_folder().join("index")).unwrap();
        content.truncate(content.len() - 20);
        let known = content.windows(4).position(|found| found == b"TREE");
        content.truncate(known.unwrap_or(content.len()));
        content.extend(b"TREE");
        content.extend(u32::try_from(trees.len()).unwrap().to_be_bytes());
        content.extend(&trees);
        content.extend([0; 20]);
        write_index(&lane, content);
        let at = lane.tree.git_folder().join("index");
        assert!(index_file::open(&at).is_err(), "{} bytes", trees.len());
        hides_nothing(&lane, &format!("{} bytes", trees.len()));
    }
}

#[test]
fn an_index_whose_names_are_longer_than_the_file_is_not_read() {
    let lane = Lane::new();
    let indexes = [1_000_u32, 100_000].map(|count| {
        // Version 4: each name leaves out five bytes of the last one and adds others.
        let mut content = [b"DIRC".as_slice(), &[0, 0, 0, 4], &count.to_be_bytes()].concat();
        for entry in 0..count {
            content.extend([0; 24]);
            content.extend(0o100_644_u32.to_be_bytes());
            content.extend([0; 32]);
            content.extend(3_000_u16.to_be_bytes());
            match entry {
                0 => content.extend([[0].as_slice(), &b"a".repeat(2_995)].concat()),
                _ => content.push(5),
            }
            content.extend(format!("{entry:05}\0").as_bytes());
        }
        content.extend([0; 20]);
        write_index(&lane, content);
        index_file::open(&lane.tree.git_folder().join("index")).is_ok()
    });
    assert_eq!(indexes, [true, false]);
}

#[test]
fn an_index_that_is_too_large_is_not_read() {
    let lane = Lane::new();
    let at = lane.tree.git_folder().join("index");
    let indexes = [1_u32, 257].map(|mebibytes| {
        let size = mebibytes << 20;
        let mut content = fs::read(&at).unwrap();
        content.truncate(content.len() - 20);
        content.extend([b"XXXX".as_slice(), &size.to_be_bytes()].concat());
        let all = content.len() as u64 + u64::from(size) + 20;
        fs::write(&at, content).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&at).unwrap();
        file.set_len(all).unwrap();
        index_file::open(&at).is_ok()
    });
    assert_eq!(indexes, [true, false]);
}

#[test]
fn a_tree_with_a_name_above_itself_is_compared_with_an_index() {
    let lane = Lane::new();
    let repository = &lane.tree.repository;
    let head = lane.tree.head().unwrap().tree().unwrap();
    let file = head.get_name("a.txt").unwrap().id();
    let odd = [b"100644 ..\0", file.as_bytes()].concat();
    let odb = repository.odb().unwrap();
    let odd = odb.write(git2::ObjectType::Tree, &odd).unwrap();
    let odd = repository.find_tree(odd).unwrap();
    let index = repository.index().unwrap();
    let difference = Difference::of_index(repository, &odd, &index).unwrap();
    assert!(difference.changes().count() > 1);
}
