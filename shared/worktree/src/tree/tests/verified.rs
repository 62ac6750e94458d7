//! The close: what was verified, and nothing else, on the lane's branch.

use super::lane::Lane;
use super::*;

#[test]
fn the_tree_is_what_git_would_stage() {
    let lane = Lane::new();
    lane.write("d/y", "y");
    lane.write("d.x", "sorts before the folder");
    lane.write("d0", "sorts after it");
    fs::remove_file(lane.at("a.txt")).unwrap();
    lane.write("a.txt/now/a/folder", "x");
    fs::remove_file(lane.at("d/x")).unwrap();
    std::os::unix::fs::symlink("nowhere", lane.at("link")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lane.at("d/y"), mode).unwrap();
    let found = lane.tree.state().unwrap();
    let mut index = lane.tree.repository.index().unwrap();
    index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
    let staged = index.write_tree().unwrap();
    assert_eq!(found.tree, staged.to_string());
}

#[test]
fn a_change_right_after_another_is_seen() {
    let lane = Lane::new();
    let mut seen = std::collections::HashSet::new();
    for number in 10..60 {
        lane.write("b.txt", &number.to_string());
        lane.write("d/x", &number.to_string());
        assert!(seen.insert(lane.tree.state().unwrap().tree), "{number}");
    }
}

#[test]
fn a_large_untracked_file_is_stored_once() {
    let lane = Lane::new();
    let large: Vec<u8> = (0..8_000_000_u64).map(|n| ((n * n) >> 7) as u8).collect();
    fs::write(lane.at("large"), large).unwrap();
    let first = lane.tree.state().unwrap();
    // Storing it took longer than the kernel's tick, so its times are final.
    assert!(lane.tree.blobs.borrow().contains_key(b"large".as_slice()));
    assert_eq!(lane.tree.state().unwrap(), first);
}

#[test]
fn ignore_rules_that_hide_files_of_the_repository_are_named() {
    let lane = Lane::new();
    let found = |text: &str, at: &str| {
        lane.write(at, text);
        let tree = lane.tree.keep_content(&lane.base.commit).unwrap();
        let found = lane.tree.hides_files(&lane.base.commit, &tree).unwrap();
        fs::write(lane.at(".gitignore"), "target/\n").unwrap();
        let _ = fs::remove_file(lane.at("d/.gitignore"));
        found.map(|(rules, _)| rules)
    };
    for text in ["*\n", "a.txt\n", "d/\n", "/d/x\n"] {
        assert_eq!(
            found(text, ".gitignore").as_deref(),
            Some(".gitignore"),
            "{text}"
        );
    }
    // Rules that hide their own file do not land with it.
    assert_eq!(found("*\n", "d/.gitignore"), None);
    for text in ["target/\nnode_modules/\n", "*.log\n", "*\n!*\n"] {
        assert_eq!(found(text, ".gitignore"), None, "{text}");
    }
}
