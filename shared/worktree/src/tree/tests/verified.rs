//! The close: what was verified, and nothing else, on the lane's branch.

use super::hostile::Lane;
use super::*;

#[test]
fn only_the_tree_that_was_verified_is_committed() {
    let lane = Lane::new();
    lane.write("b.txt", "b");
    let verified = lane.tree.state().unwrap();
    lane.write("b.txt", "c");
    let error = lane.tree.commit_exactly(&TEXT, &verified.tree).unwrap_err();
    assert_eq!(error.operation, "commit what was verified");
    lane.write("b.txt", "b");
    let id = lane.tree.commit_exactly(&TEXT, &verified.tree).unwrap();
    let after = lane.tree.state().unwrap();
    assert_eq!((Some(after.head), after.tree), (id, verified.tree.clone()));
    assert_eq!(
        lane.tree.commit_exactly(&TEXT, &verified.tree).unwrap(),
        None
    );
    assert!(lane.tree.commit_exactly(&TEXT, &lane.base.commit).is_err());
    assert!(lane.tree.changes().unwrap().is_empty());
}

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
fn a_step_that_departed_says_how() {
    let lane = Lane::new();
    let departure = || lane.tree.departure(&lane.base).unwrap();
    lane.write("b.txt", "b");
    assert_eq!(departure(), None);
    lane.tree.commit(&TEXT).unwrap();
    assert_eq!(departure(), None);
    let repository = &lane.tree.repository;
    let head = lane.tree.head().unwrap();
    repository.branch("mine", &head, false).unwrap();
    repository.set_head("refs/heads/mine").unwrap();
    let found = Some("refs/heads/mine".to_owned());
    assert_eq!(departure(), Some(Departure::Branch { found }));
    repository.set_head_detached(head.id()).unwrap();
    assert_eq!(departure(), Some(Departure::Branch { found: None }));
    repository.set_head("refs/heads/l1").unwrap();
    let merge = lane.tree.git_folder().join("MERGE_HEAD");
    fs::write(&merge, format!("{}\n", head.id())).unwrap();
    assert_eq!(departure(), Some(Departure::Unfinished("merge")));
    fs::remove_file(merge).unwrap();
    Repository::init(lane.at("in/fixture")).unwrap();
    lane.write("in/fixture/f", "x");
    let nested = Departure::NestedRepository("in/fixture".to_owned());
    assert!(
        nested
            .to_string()
            .starts_with("in/fixture is a git repository")
    );
    assert_eq!(departure(), Some(nested));
    fs::remove_dir_all(lane.at("in")).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let content = head.tree().unwrap();
    let orphan = repository
        .commit(None, &author, &author, "x", &content, &[])
        .unwrap();
    repository
        .reference("refs/heads/l1", orphan, true, "x")
        .unwrap();
    assert_eq!(departure(), Some(Departure::NotDescendant));
}

#[test]
fn a_large_untracked_file_is_stored_once() {
    let lane = Lane::new();
    let large: Vec<u8> = (0..8_000_000_u64).map(|n| ((n * n) >> 7) as u8).collect();
    fs::write(lane.at("large"), large).unwrap();
    let first = lane.tree.state().unwrap();
    // Storing it took longer than the kernel's tick, so its times are final.
    assert_eq!(lane.tree.blobs.borrow().len(), 1);
    assert_eq!(lane.tree.state().unwrap(), first);
}
