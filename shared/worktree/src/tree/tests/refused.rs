//! What is refused of a step's files: it is named, put aside, and nothing else is touched
//! for it.

use super::lane::Lane;
use super::*;
use crate::mode::SUBMODULE;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

/// A sparse file takes no room, and its content would be written out in each checkout.
#[test]
fn holes_of_all_files_together_are_bounded() {
    let mut lane = Lane::new();
    lane.tree.bound_holes(64 << 20);
    let sparse = |name: &str, size: u64| {
        lane.write(name, name);
        let file = fs::File::options().write(true).open(lane.at(name));
        file.unwrap().set_len(size).unwrap();
    };
    for name in ["s/1", "s/2", "s/3", "a.txt"] {
        sparse(name, 20 << 20);
    }
    let error = lane.tree.keep_content(&lane.base.commit).unwrap_err();
    assert_eq!(error.class(), FailureClass::WorkUnfit);
    assert!(
        error.to_string().contains("s/3: it has more holes"),
        "{error}"
    );
    // As often as one looks.
    lane.tree.keep_content(&lane.base.commit).unwrap_err();
    let left = left(&lane.tree, &lane.base);
    let (branch, folder) = left.split_once(", ").unwrap();
    assert_eq!(
        lane.kept(branch)
            .iter()
            .filter(|name| name.starts_with("s/"))
            .count(),
        2
    );
    assert!(Path::new(folder).join("s/3").exists());
    // Files that are read to be compared count as well.
    fs::File::options()
        .write(true)
        .open(lane.at("a.txt"))
        .unwrap()
        .set_len(65 << 20)
        .unwrap();
    let error = lane.tree.keep_content(&lane.base.commit).unwrap_err();
    assert!(
        error.to_string().contains("a.txt: it has more holes"),
        "{error}"
    );
    // What uses room counts for nothing.
    fs::write(lane.at("a.txt"), vec![b'a'; 65 << 20]).unwrap();
    lane.tree.keep_content(&lane.base.commit).unwrap();
}

/// Where one path is unfit, nothing else is touched for that: no git folder, no other
/// worktree, no ignored file, no file with another name elsewhere.
#[test]
fn only_what_was_refused_is_opened_up() {
    let lane = Lane::new();
    lane.write("target/key.pem", "secret");
    lane.write("d/fit", "fit");
    lane.write("shut", "shut");
    lane.write("linked", "linked");
    fs::hard_link(lane.at("linked"), lane.at("../linked")).unwrap();
    let object = walk(&lane.main.path().join("objects"));
    let files = [
        lane.at("target/key.pem"),
        lane.at("d/fit"),
        lane.at("../linked"),
        object.clone(),
    ];
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    for path in files.iter().chain([&lane.at("shut")]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    }
    symlink("/etc/passwd", lane.at("d/leads-out")).unwrap();
    let salvage = lane
        .tree
        .take_back(&lane.base, 1, &TEXT, None)
        .unwrap()
        .unwrap();
    assert!(fs::symlink_metadata(salvage.folder.unwrap().join("d/leads-out")).is_ok());
    for path in files.iter().filter(|path| path.exists()) {
        assert_eq!(mode(path), 0o400, "{}", path.display());
    }
    assert!(object.exists() && lane.at("target/key.pem").exists());
}

/// Returns a file below a folder.
fn walk(folder: &Path) -> PathBuf {
    let mut at = folder.to_path_buf();
    while at.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(&at)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        entries.sort();
        at = entries.remove(0);
    }
    at
}

/// A file in its place would be the end of the submodule.
#[test]
fn a_file_in_the_place_of_a_submodule_is_refused() {
    let mut lane = Lane::provisioned();
    let head = lane.tree.head().unwrap();
    let mut builder = lane
        .tree
        .repository
        .treebuilder(Some(&head.tree().unwrap()))
        .unwrap();
    builder.insert("sub", head.id(), SUBMODULE as i32).unwrap();
    let content = lane
        .tree
        .repository
        .find_tree(builder.write().unwrap())
        .unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let commit = lane
        .tree
        .repository
        .commit(None, &author, &author, "s", &content, &[&head]);
    let base = Base {
        commit: commit.unwrap().to_string(),
        branch: lane.base.branch.clone(),
    };
    drop((builder, content, head));
    lane.tree.reset(&base, &Ignored::Stay).unwrap();
    lane.base = base;
    for is_link in [false, true] {
        let _ = fs::remove_dir(lane.at("sub"));
        match is_link {
            true => symlink("a.txt", lane.at("sub")).unwrap(),
            false => fs::write(lane.at("sub"), "mine\n").unwrap(),
        }
        let error = lane.tree.keep_content(&lane.base.commit).unwrap_err();
        assert_eq!(error.class(), FailureClass::WorkUnfit);
        assert!(error.to_string().contains("sub"), "{error}");
        let salvage = lane.tree.take_back(&lane.base, 1, &TEXT, None).unwrap();
        assert!(fs::symlink_metadata(salvage.unwrap().folder.unwrap().join("sub")).is_ok());
        assert_eq!(lane.tree.changes().unwrap(), [""; 0]);
    }
}
