//! Files that are written without git's own checkout.

use super::super::file_writer::FileWriter;
use super::super::overlay::{Leaf, Overlay};
use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

const PLAIN: i32 = 0o100_644;
const EXECUTABLE: i32 = 0o100_755;
const LINK: i32 = 0o120_000;
const SUBMODULE: i32 = 0o160_000;

/// A file of a tree: its path, mode and content.
type File<'a> = (&'a [u8], i32, &'a [u8]);

/// Makes a commit of exactly these files; no branch holds it.
fn committed(tree: &Tree, files: &[File<'_>]) -> String {
    let mut overlay = Overlay::default();
    for (name, mode, content) in files {
        let id = match *mode {
            SUBMODULE => tree.head().unwrap().id(),
            _ => tree.repository.blob(content).unwrap(),
        };
        overlay.put(name, Some((*mode, id)));
    }
    let git = &tree.repository;
    let empty = git.treebuilder(None).unwrap().write().unwrap();
    let empty = git.find_tree(empty).unwrap();
    let id = overlay.digest(git, &empty, true).unwrap();
    let made = git.find_tree(id).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let id = git.commit(None, &author, &author, "files", &made, &[]);
    id.unwrap().to_string()
}

/// Puts an empty worktree of the same repository at a commit, and fills it.
fn filled(tree: &Tree, commit: &str) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("lane");
    let options = &mut git2::WorktreeAddOptions::new();
    let git = &tree.repository;
    git.worktree("lane", &place, Some(options)).unwrap();
    for entry in fs::read_dir(&place).unwrap() {
        let entry = entry.unwrap();
        match entry.file_name() == ".git" {
            true => {}
            false if entry.file_type().unwrap().is_dir() => {
                fs::remove_dir_all(entry.path()).unwrap();
            }
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
    // A lane that is made has none.
    fs::remove_file(git.commondir().join("worktrees/lane/index")).unwrap();
    let lane = Tree::open(&place).unwrap();
    let id = Oid::from_str(commit).unwrap();
    lane.repository.set_head_detached(id).unwrap();
    lane.fill_head().unwrap();
    (folder, lane)
}

fn at(lane: &Tree, name: &[u8]) -> PathBuf {
    lane.files.join(OsStr::from_bytes(name))
}

/// Returns what git itself says about a worktree.
fn status(lane: &Tree) -> Vec<String> {
    let git = Repository::open(&lane.files).unwrap();
    let statuses = git.statuses(None).unwrap();
    let names = statuses
        .iter()
        .map(|entry| format!("{:?} {:?}", entry.status(), entry.path()));
    names.collect()
}

#[test]
fn an_empty_worktree_gets_files_links_modes_and_submodules() {
    let (_scratch, tree) = Scratch::new();
    let long = vec![b'n'; 255];
    let deep = [b"d/".repeat(90), b"file".to_vec()].concat();
    let large = b"0123456789".repeat(200_000);
    let commit = committed(
        &tree,
        &[
            (b"a.b", PLAIN, b"1"),
            (b"a/b", PLAIN, b""),
            (b"a0", EXECUTABLE, b"#!/bin/sh\n"),
            (b"d.txt", LINK, b"a.b"),
            (b"dangling", LINK, b"no/such/file"),
            (&deep, PLAIN, b"deep"),
            (b"large", PLAIN, &large),
            (&long, PLAIN, b"long"),
            (b"not\xffutf8", PLAIN, b"bytes"),
            (b"sub", SUBMODULE, b""),
            (b".premath/tracked", PLAIN, b"ours"),
        ],
    );
    let (_folder, lane) = filled(&tree, &commit);
    assert_eq!(lane.changes().unwrap(), [""; 0]);
    assert_eq!(status(&lane), [""; 0]);
    let mode = |name: &[u8]| fs::metadata(at(&lane, name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(b"a.b") & 0o700, 0o600);
    assert_eq!(mode(b"a0") & 0o700, 0o700);
    assert_eq!(fs::read(at(&lane, b"a/b")).unwrap(), b"");
    assert_eq!(fs::read(at(&lane, &deep)).unwrap(), b"deep");
    assert_eq!(fs::read(at(&lane, b"large")).unwrap(), large);
    assert_eq!(fs::read(at(&lane, b"not\xffutf8")).unwrap(), b"bytes");
    let link = |name| fs::read_link(at(&lane, name)).unwrap();
    assert_eq!(link(b"d.txt"), Path::new("a.b"));
    assert_eq!(link(b"dangling"), Path::new("no/such/file"));
    assert!(at(&lane, b"sub").is_dir());
    assert_eq!(fs::read(at(&lane, b".premath/tracked")).unwrap(), b"ours");
    // Another process reads it all from the index.
    let index = git2::Index::open(&lane.index_file()).unwrap();
    assert_eq!(index.len(), 11);
    assert!(
        index
            .iter()
            .all(|entry| entry.mode == 0o160_000 || entry.ino != 0)
    );
    assert!(lane.has_plain());
}

#[test]
fn files_that_attributes_convert_are_converted_and_others_are_not() {
    let (_scratch, tree) = Scratch::new();
    let commit = committed(
        &tree,
        &[
            (b".gitattributes", PLAIN, b"*.dos text eol=crlf\n"),
            (b"a.dos", PLAIN, b"1\n2\n"),
            (b"a.txt", PLAIN, b"1\n2\n"),
            (b"below/.gitattributes", PLAIN, b"*.txt text eol=crlf\n"),
            (b"below/a.dos", PLAIN, b"1\n"),
            (b"below/a.txt", PLAIN, b"1\n"),
            (b"other/a.txt", PLAIN, b"1\n"),
        ],
    );
    let (_folder, lane) = filled(&tree, &commit);
    let read = |name: &[u8]| fs::read_to_string(at(&lane, name)).unwrap();
    assert_eq!(read(b"a.dos"), "1\r\n2\r\n");
    assert_eq!(read(b"a.txt"), "1\n2\n");
    assert_eq!(read(b"below/a.dos"), "1\r\n");
    assert_eq!(read(b"below/a.txt"), "1\r\n");
    assert_eq!(read(b"other/a.txt"), "1\n");
    assert_eq!(status(&lane), [""; 0]);
}

#[test]
fn a_setting_that_converts_every_text_is_honoured() {
    let (_scratch, tree) = Scratch::new();
    let mut settings = tree.repository.config().unwrap();
    settings.set_str("core.autocrlf", "true").unwrap();
    let files: [File<'_>; 2] = [(b"a.txt", PLAIN, b"1\n2\n"), (b"b/c.txt", PLAIN, b"1\n")];
    let commit = committed(&tree, &files);
    let (_folder, lane) = filled(&tree, &commit);
    let read = |name: &[u8]| fs::read_to_string(at(&lane, name)).unwrap();
    assert_eq!(read(b"a.txt"), "1\r\n2\r\n");
    assert_eq!(read(b"b/c.txt"), "1\r\n");
    assert_eq!(status(&lane), [""; 0]);
}

#[test]
fn a_lane_goes_between_files_folders_links_and_modes() {
    let (_scratch, tree) = Scratch::new();
    let first: [File<'_>; 4] = [
        (b"a", PLAIN, b"a file"),
        (b"b/c", PLAIN, b"in a folder"),
        (b"run", PLAIN, b"#!/bin/sh\n"),
        (b"to", LINK, b"a"),
    ];
    let second: [File<'_>; 4] = [
        (b"a/b/c", PLAIN, b"in a folder"),
        (b"b", LINK, b"a"),
        (b"run", EXECUTABLE, b"#!/bin/sh\n"),
        (b"to", PLAIN, b"a file"),
    ];
    let commits = [&first, &second].map(|files| committed(&tree, files));
    let (_folder, lane) = filled(&tree, &commits[0]);
    for round in [1, 0, 1, 0] {
        let base = Base {
            commit: commits[round].clone(),
            branch: None,
        };
        lane.start_at(&base, "bd-1", 1).unwrap();
        assert_eq!(status(&lane), [""; 0], "{round}");
        let mode = fs::metadata(at(&lane, b"run")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o100 != 0, round == 1);
        assert_eq!(at(&lane, b"a").is_dir(), round == 1);
        assert_eq!(at(&lane, b"to").is_symlink(), round == 0);
    }
}

#[test]
fn what_occupies_a_place_is_neither_followed_nor_replaced() {
    let (scratch, tree) = Scratch::new();
    let outside = tempfile::tempdir().unwrap();
    let root = scratch.folder.path();
    symlink(outside.path(), root.join("link")).unwrap();
    symlink(outside.path().join("new"), root.join("dangling")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), 0o600.into()).unwrap();
    let blob = tree.repository.blob(b"new").unwrap();
    // A name of its own: the folder above has other files of this machine.
    let beside = format!("{}.new", root.display());
    let beside = Path::new(&beside).file_name().unwrap().to_str().unwrap();
    let mut writer = FileWriter::new(&tree, None).unwrap();
    let mut write = |name: &str| {
        let leaf: Leaf = (PLAIN, blob);
        writer.write(name.as_bytes(), leaf).unwrap().is_some()
    };
    for name in [
        "a.txt",
        "a.txt/below",
        "link",
        "link/file",
        "link/deep/file",
        "dangling",
        "folder",
        "pipe",
        "pipe/file",
        ".git/new",
        "sub/.GIT/hooks/new",
        &format!("../{beside}"),
        &format!("d/../../{beside}"),
        "git~1/new",
    ] {
        assert!(!write(name), "{name}");
    }
    assert!(write("folder/file"));
    assert!(write("new/deep/file"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(scratch.read("a.txt").unwrap(), "a\n");
    assert_eq!(scratch.read("folder/file").unwrap(), "new");
    assert_eq!(scratch.read("new/deep/file").unwrap(), "new");
    assert!(!root.join(".git/new").exists());
    assert!(!root.join("sub").exists());
    assert!(!root.parent().unwrap().join(beside).exists());
}

#[test]
fn a_file_that_cannot_be_read_ends_the_checkout() {
    let (_scratch, tree) = Scratch::new();
    let mut writer = FileWriter::new(&tree, None).unwrap();
    let missing = Oid::from_str("1234567890123456789012345678901234567890").unwrap();
    let error = writer.write(b"new", (PLAIN, missing)).unwrap_err();
    assert_eq!(error.operation, "read a file of the base");
    assert!(!tree.files.join("new").exists());
}

#[test]
fn attributes_count_for_the_files_that_are_written_with_them() {
    let (_scratch, tree) = Scratch::new();
    tree.repository
        .config()
        .unwrap()
        .set_str("core.autocrlf", "true")
        .unwrap();
    let rules = b"* text=auto\n*.sh eol=lf\n*.bin binary\nsub/* -text\nz/* eol=lf\n";
    let mut files: Vec<File<'_>> = vec![(b".gitattributes", PLAIN, rules)];
    let texts: [&[u8]; 5] = [b"a.txt", b"d.bin", b"run.sh", b"sub/x", b"z/x"];
    files.extend(texts.map(|name| (name, PLAIN, b"a\nb\n".as_slice())));
    // A tree with a submodule is not written as a whole.
    for others in [&[][..], &[(b"s".as_slice(), SUBMODULE, b"".as_slice())]] {
        let files = [&files[..], others].concat();
        let commit = committed(&tree, &files);
        let (folder, lane) = filled(&tree, &commit);
        for name in texts {
            let wanted: &[u8] = match name {
                b"a.txt" => b"a\r\nb\r\n",
                _ => b"a\nb\n",
            };
            let name_of = String::from_utf8_lossy(name);
            assert_eq!(fs::read(at(&lane, name)).unwrap(), wanted, "{name_of}");
        }
        drop((folder, lane));
        let lane = tree.repository.find_worktree("lane").unwrap();
        lane.prune(None).unwrap();
        let mut branch = tree
            .repository
            .find_branch("lane", git2::BranchType::Local)
            .unwrap();
        branch.delete().unwrap();
    }
}
