//! What a hostile or clumsy step leaves never costs the lane, nor a file
//! outside the worktree.

use super::super::beneath::Beneath;
use super::lane::Lane;
use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_folder_that_became_a_link_is_not_followed() {
    let lane = Lane::new();
    fs::remove_dir_all(lane.at("d")).unwrap();
    symlink(lane.precious(), lane.at("d")).unwrap();
    // A link that leads out of the checkout enters no commit.
    let left = lane.left();
    assert!(left.starts_with("harness/salvage/bd-1/1, "), "{left}");
    assert!(!fs::symlink_metadata(lane.at("d")).unwrap().is_symlink());
}

/// Git looks at such a link again where its times are not settled, and so does a lane.
#[test]
fn a_link_of_the_commit_may_lead_out_of_the_checkout() {
    let lane = Lane::new();
    let put = |target: &str| {
        let _ = fs::remove_file(lane.at("out"));
        symlink(target, lane.at("out")).unwrap();
    };
    put("/etc/hostname");
    let git = Repository::open(lane.at("")).unwrap();
    let mut index = git.index().unwrap();
    index.add_path(Path::new("out")).unwrap();
    index.write().unwrap();
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    let who = Signature::now("A", "a@b").unwrap();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    git.commit(Some("HEAD"), &who, &who, "link", &tree, &[&head])
        .unwrap();
    let base = lane.tree.base().unwrap();
    put("/etc/hostname");
    assert_eq!(lane.tree.changes().unwrap(), [""; 0]);
    put("/etc/hosts");
    assert_eq!(lane.tree.changes().unwrap(), ["out"]);
    assert!(lane.tree.commit(&TEXT).is_err());
    left(&lane.tree, &base);
    assert_eq!(
        fs::read_link(lane.at("out")).unwrap(),
        Path::new("/etc/hostname")
    );
    assert_eq!(lane.tree.changes().unwrap(), [""; 0]);
}

#[test]
fn a_committed_link_in_the_place_of_a_folder_is_not_followed() {
    let lane = Lane::new();
    fs::remove_dir_all(lane.at("d")).unwrap();
    symlink(lane.precious(), lane.at("d")).unwrap();
    let error = lane.tree.commit(&TEXT).unwrap_err();
    let says = error.to_string();
    assert!(says.contains("d leads elsewhere; only links to"), "{says}");
    fs::remove_file(lane.at("d")).unwrap();
    symlink("a.txt", lane.at("d")).unwrap();
    lane.tree.commit(&TEXT).unwrap().unwrap();
    fs::remove_file(lane.at("d")).unwrap();
    fs::create_dir(lane.at("d")).unwrap();
    symlink(lane.precious(), lane.at("d/inner")).unwrap();
    lane.left();
}

#[test]
fn an_ignored_link_in_the_place_of_a_folder_is_put_aside() {
    let lane = Lane::new();
    fs::remove_dir_all(lane.at("d")).unwrap();
    symlink(lane.precious(), lane.at("d")).unwrap();
    lane.write(".gitignore", "d\n");
    lane.left();
}

#[test]
fn links_that_were_planted_in_the_git_folder_are_not_followed() {
    let lane = Lane::new();
    let git = lane.tree.git_folder().to_path_buf();
    for name in ["rebase-merge", "sequencer", "premath-salvage"] {
        symlink(lane.precious(), git.join(name)).unwrap();
    }
    fs::remove_file(git.join("index")).unwrap();
    symlink(lane.precious().join("x"), git.join("index")).unwrap();
    Repository::init(lane.at("fixture")).unwrap();
    lane.write("fixture/f", "x");
    let left = lane.left();
    assert!(left.ends_with("premath-salvage/bd-1/1"), "{left}");
}

#[test]
fn a_nested_repository_is_moved_aside_whole() {
    let lane = Lane::new();
    let nested = Repository::init(lane.at("deep/fixture")).unwrap();
    fs::write(lane.at("deep/fixture/work.txt"), "work").unwrap();
    lane.write("b.txt", "b");
    drop(nested);
    let before = lane.tree.state().unwrap();
    assert_ne!(before.tree, lane.tree.clean_state().unwrap().tree);
    assert_eq!(lane.tree.changes().unwrap(), ["b.txt", "deep/fixture/"]);
    let left = lane.left();
    let (branch, folder) = left.split_once(", ").unwrap();
    assert!(!lane.at("deep").exists());
    assert!(lane.kept(branch).contains(&"b.txt".to_owned()));
    let text = fs::read_to_string(Path::new(folder).join("deep/fixture/work.txt"));
    assert_eq!(text.unwrap(), "work");
    Repository::open(Path::new(folder).join("deep/fixture")).unwrap();
}

#[test]
fn a_second_nested_repository_of_that_name_is_kept_beside_the_first() {
    let lane = Lane::new();
    for text in ["one", "two"] {
        Repository::init(lane.at("fixture")).unwrap();
        lane.write("fixture/f", text);
        lane.left();
    }
    let kept = lane.tree.git_folder().join("premath-salvage/bd-1/1");
    for (name, text) in [("fixture", "one"), ("fixture.2", "two")] {
        assert_eq!(fs::read_to_string(kept.join(name).join("f")).unwrap(), text);
    }
}

#[test]
fn a_repository_made_in_a_tracked_folder_loses_its_git_alone() {
    let lane = Lane::new();
    Repository::init(lane.at("d")).unwrap();
    let left = lane.left();
    assert!(Path::new(&left).join("d/.git/HEAD").exists(), "{left}");
    assert!(!lane.at("d/.git").exists());
}

#[test]
fn a_nested_repository_that_was_staged_as_a_link_is_moved_aside() {
    let lane = Lane::new();
    let nested = Repository::init(lane.at("fixture")).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let empty = nested.treebuilder(None).unwrap().write().unwrap();
    let content = nested.find_tree(empty).unwrap();
    nested
        .commit(Some("HEAD"), &author, &author, "x", &content, &[])
        .unwrap();
    let mut index = lane.tree.repository.index().unwrap();
    index.add_path(Path::new("fixture")).unwrap();
    index.write().unwrap();
    assert_eq!(
        lane.tree.nested_repository(&lane.base.commit).unwrap(),
        Some("fixture".to_owned())
    );
    assert!(lane.tree.commit(&TEXT).unwrap().is_none());
    lane.left();
    assert!(!lane.at("fixture").exists());
}

#[test]
fn another_worktree_of_the_repository_is_left_alone() {
    let lane = Lane::new();
    let at = lane.at("other");
    lane.main.worktree("other", &at, None).unwrap();
    fs::write(at.join("theirs"), "x").unwrap();
    assert_eq!(lane.left(), "");
    assert!(at.join("theirs").exists());
}

#[test]
fn another_worktree_is_left_alone_where_the_commit_has_files() {
    for has_link in [true, false] {
        let lane = Lane::new();
        let at = lane.at("d");
        fs::remove_dir_all(&at).unwrap();
        lane.main.worktree("other", &at, None).unwrap();
        fs::write(at.join("theirs"), "x").unwrap();
        let mut all = vec!["theirs", "d/x"];
        lane.tree.changes().unwrap();
        // A step may delete it.
        match has_link {
            true => all.push(".git"),
            false => fs::remove_file(at.join(".git")).unwrap(),
        }
        lane.left();
        for theirs in all {
            assert!(at.join(theirs).exists(), "{theirs}, {has_link}");
        }
    }
}

#[test]
fn names_that_are_not_utf8_are_removed_and_restored() {
    let lane = Lane::new();
    let name = |bytes| OsStr::from_bytes(bytes);
    fs::write(lane.at(name(b"k\xff")), "base").unwrap();
    lane.tree.commit(&TEXT).unwrap().unwrap();
    let base = lane.tree.base().unwrap();
    fs::write(lane.at(name(b"k\xff")), "changed").unwrap();
    fs::write(lane.at(name(b"n\xfe")), "new").unwrap();
    assert_eq!(lane.tree.changes().unwrap().len(), 2);
    assert!(!left(&lane.tree, &base).is_empty());
    assert_eq!(fs::read_to_string(lane.at(name(b"k\xff"))).unwrap(), "base");
    assert!(!lane.at(name(b"n\xfe")).exists());
    fs::remove_file(lane.at(name(b"k\xff"))).unwrap();
    left(&lane.tree, &base);
    assert!(lane.at(name(b"k\xff")).exists());
}

/// A step without isolation fills the git folder, so that a listing takes long.
#[test]
fn locks_and_operations_end_in_a_git_folder_with_very_many_files() {
    let lane = Lane::new();
    let git = lane.tree.git_folder().to_path_buf();
    for number in 0..3_000 {
        fs::write(git.join(format!("{number}")), "").unwrap();
    }
    let folder = Beneath::open(&git).unwrap();
    assert!(folder.names_among(&["HEAD"]).is_err());
    let left = ["index.lock", "MERGE_HEAD"].map(|name| git.join(name));
    for file in &left {
        fs::write(file, "").unwrap();
    }
    lane.tree.clear_locks(None, None);
    lane.tree.cleanup();
    assert!(!left.iter().any(|file| file.exists()));
}

#[test]
fn locks_of_a_linked_worktree_are_cleared_whatever_their_age() {
    let lane = Lane::new();
    lane.write("b.txt", "b");
    lane.tree.commit(&TEXT).unwrap();
    let git = lane.tree.git_folder();
    let lock = lane.tree.common_folder().join("refs/heads/l1.lock");
    for file in [git.join("index.lock"), git.join("HEAD.lock"), lock.clone()] {
        fs::write(file, "").unwrap();
    }
    lane.left();
    assert!(!lock.exists());
}

#[test]
fn an_old_lock_of_a_main_worktree_stays_and_no_file_is_touched() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    scratch.write("b.txt", "b");
    tree.commit(&TEXT).unwrap();
    scratch.write("a.txt", "changed");
    let lock = format!("{}.lock", base.branch.clone().unwrap());
    let lock = tree.git_folder().join(lock);
    fs::write(&lock, "").unwrap();
    let later = jiff::Timestamp::now() + std::time::Duration::from_secs(60);
    for since in [None, Some(later)] {
        tree.take_back(&base, 1, &TEXT, since).unwrap_err();
        assert_eq!(scratch.read("a.txt").unwrap(), "changed");
        assert_eq!(scratch.read("b.txt").unwrap(), "b");
    }
    assert!(lock.exists());
    tree.take_back(&base, 1, &TEXT, since(0)).unwrap();
    assert_eq!(scratch.read("b.txt"), None);
}

#[test]
fn commits_on_the_branch_are_kept_where_head_was_detached() {
    let lane = Lane::new();
    lane.commit_on("HEAD", "on the lane");
    let main = lane.main.head().unwrap().target().unwrap();
    lane.tree.repository.set_head_detached(main).unwrap();
    assert_eq!(lane.left(), "harness/salvage/bd-1/1");
    assert!(
        lane.kept("harness/salvage/bd-1/1")
            .contains(&"made.txt".to_owned())
    );
    lane.commit_on("HEAD", "again");
    lane.tree.repository.set_head_detached(main).unwrap();
    lane.write("b.txt", "b");
    assert_eq!(
        lane.left(),
        "harness/salvage/bd-1/1.2, harness/salvage/bd-1/1.3"
    );
}

#[test]
fn a_branch_that_the_step_made_stays_and_another_worktree_on_the_lanes_does_not_block_it() {
    let lane = Lane::new();
    let head = lane.tree.head().unwrap();
    lane.tree.repository.branch("mine", &head, false).unwrap();
    lane.tree.repository.set_head("refs/heads/mine").unwrap();
    let branch = lane.main.find_reference("refs/heads/l1").unwrap();
    let mut options = git2::WorktreeAddOptions::new();
    options.reference(Some(&branch));
    let other = lane.folder.path().join("other");
    lane.main.worktree("other", &other, Some(&options)).unwrap();
    lane.left();
    assert!(lane.main.find_reference("refs/heads/mine").is_ok());
}

#[test]
fn a_head_without_a_commit_and_a_conflicting_branch_block_nothing() {
    let lane = Lane::new();
    let repository = &lane.tree.repository;
    repository
        .set_head_detached(lane.tree.head().unwrap().id())
        .unwrap();
    repository
        .find_reference("refs/heads/l1")
        .unwrap()
        .delete()
        .unwrap();
    let head = lane.tree.head().unwrap();
    repository.branch("l1/fix", &head, false).unwrap();
    repository
        .reference_symbolic("HEAD", "refs/heads/none", true, "x")
        .unwrap();
    lane.write("b.txt", "b");
    assert_eq!(lane.left(), "harness/salvage/bd-1/1");
    assert!(
        lane.main
            .find_reference("refs/heads/harness/moved/l1/fix")
            .is_ok()
    );
}

#[test]
fn a_branch_that_a_step_made_a_name_of_another_one_is_a_branch_again() {
    let lane = Lane::new();
    let main = lane.main.find_reference("refs/heads/main");
    let main = main.or_else(|_| lane.main.find_reference("refs/heads/master"));
    let victim = main.unwrap().name().unwrap().to_owned();
    let tip = lane.main.refname_to_id(&victim).unwrap();
    assert_eq!(tip.to_string(), lane.base.commit);
    let repository = &lane.tree.repository;
    repository
        .reference_symbolic("refs/heads/l1", &victim, true, "x")
        .unwrap();
    repository.set_head_detached(tip).unwrap();
    let ignored = Ignored::Go(BTreeSet::new());
    lane.tree.reset(&lane.base, &ignored).unwrap();
    let branch = lane.main.find_reference("refs/heads/l1").unwrap();
    assert_eq!(branch.target(), Some(tip));
    lane.write("b.txt", "b");
    lane.tree.commit(&TEXT).unwrap().unwrap();
    assert_eq!(lane.main.refname_to_id(&victim).unwrap(), tip);
}

#[test]
fn what_was_staged_of_ours_enters_no_commit_and_is_gone_from_the_index() {
    let lane = Lane::new();
    let stage = || {
        lane.write("artifacts/x", "x");
        lane.write(".premath/issues.jsonl", "2\n");
        let mut index = lane.tree.repository.index().unwrap();
        index.read(true).unwrap();
        for path in ["artifacts/x", ".premath/issues.jsonl"] {
            index.add_path(Path::new(path)).unwrap();
        }
        index.write().unwrap();
    };
    let staged = || {
        let index = git2::Index::open(&lane.tree.git_folder().join("index")).unwrap();
        let ours = index
            .get_path(Path::new(".premath/issues.jsonl"), 0)
            .unwrap();
        let blob = lane.tree.repository.find_blob(ours.id).unwrap();
        let text = String::from_utf8(blob.content().to_vec()).unwrap();
        (index.get_path(Path::new("artifacts/x"), 0).is_some(), text)
    };
    stage();
    assert_eq!(lane.left(), "");
    assert_eq!(staged(), (false, "1\n".to_owned()));
    stage();
    lane.write("b.txt", "b");
    lane.tree.commit(&TEXT).unwrap().unwrap();
    assert_eq!(staged(), (false, "1\n".to_owned()));
    let tree = lane.tree.head().unwrap().tree().unwrap();
    assert!(tree.get_path(Path::new("artifacts")).is_err());
    assert!(tree.get_path(Path::new("b.txt")).is_ok());
    assert_eq!(fs::read_to_string(lane.at("artifacts/x")).unwrap(), "x");
}

#[test]
fn an_index_that_hides_changes_or_cannot_be_read_hides_nothing() {
    let lane = Lane::new();
    let file = lane.tree.git_folder().join("index");
    for (valid, skipped) in [(true, false), (false, true)] {
        let mut index = git2::Index::open(&file).unwrap();
        let mut entry = index.get_path(Path::new("d/x"), 0).unwrap();
        if valid {
            entry.flags |= git2::IndexEntryFlag::VALID.bits();
        }
        if skipped {
            entry.flags |= git2::IndexEntryFlag::EXTENDED.bits();
            entry.flags_extended |= git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        }
        index.add(&entry).unwrap();
        index.write().unwrap();
        lane.write("d/x", "hidden\n");
        assert_eq!(lane.tree.changes().unwrap(), ["d/x"]);
        assert!(!lane.left().is_empty());
        let entry = git2::Index::open(&file).unwrap();
        let entry = entry.get_path(Path::new("d/x"), 0).unwrap();
        assert_eq!(entry.flags & git2::IndexEntryFlag::VALID.bits(), 0);
        assert_eq!(entry.flags_extended, 0);
    }
    fs::write(&file, "garbage").unwrap();
    lane.write("d/x", "changed\n");
    assert!(!lane.left().is_empty());
    fs::remove_file(&file).unwrap();
    assert_eq!(lane.left(), "");
}

#[test]
fn what_the_steps_own_ignore_rules_hid_is_put_aside() {
    let lane = Lane::new();
    lane.write(".gitignore", "*\n");
    lane.write("hidden/file", "work");
    let left = lane.left();
    let folder = left.split_once(", ").unwrap().1;
    let text = fs::read_to_string(Path::new(folder).join("hidden/file"));
    assert_eq!(text.unwrap(), "work");
}

#[test]
fn a_folder_of_ignored_files_in_the_place_of_a_file_is_put_aside() {
    let lane = Lane::new();
    fs::remove_file(lane.at("a.txt")).unwrap();
    lane.write("a.txt/target/cache", "x");
    let left = lane.left();
    let folder = left.split_once(", ").unwrap().1;
    assert!(Path::new(folder).join("a.txt/target/cache").exists());
}

#[test]
fn unreadable_and_unremovable_files_are_taken_back() {
    let lane = Lane::new();
    lane.write("locked/in/b.txt", "b");
    lane.write("d/y", "y");
    let mode = |path: &str, mode| {
        fs::set_permissions(lane.at(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    // It can be listed, and nothing in it can be reached.
    lane.write("listed/new", "new");
    mode("listed", 0o600);
    mode("d/y", 0o000);
    mode("a.txt", 0o000);
    mode("locked/in", 0o000);
    mode("d", 0o555);
    let left = lane.left();
    let (branch, _) = left.split_once(", ").unwrap_or((&left, ""));
    let kept = lane.kept(branch);
    for name in ["listed/new", "locked/in/b.txt", "d/y"] {
        assert!(kept.iter().any(|kept| kept == name), "{name}: {left}");
    }
    assert!(!lane.at("locked").exists());
}

#[test]
fn a_merge_in_progress_is_ended() {
    let lane = Lane::new();
    let git = lane.tree.git_folder().to_path_buf();
    fs::write(git.join("MERGE_HEAD"), format!("{}\n", lane.base.commit)).unwrap();
    fs::create_dir(git.join("rebase-merge")).unwrap();
    fs::write(git.join("rebase-merge/interactive"), "").unwrap();
    let state = || lane.tree.repository.state();
    assert_ne!(state(), git2::RepositoryState::Clean);
    lane.left();
    assert_eq!(state(), git2::RepositoryState::Clean);
    fs::write(git.join("MERGE_HEAD"), format!("{}\n", lane.base.commit)).unwrap();
    lane.write("b.txt", "b");
    lane.tree.commit(&TEXT).unwrap().unwrap();
    assert_eq!(state(), git2::RepositoryState::Clean);
}

#[test]
fn a_reset_leaves_no_folder_right_or_link_of_a_step() {
    use std::os::unix::fs::MetadataExt;
    for (lane, is_ours) in [(Lane::provisioned(), true), (Lane::new(), false)] {
        let at = lane.tree.worktree.clone();
        fs::create_dir_all(at.join("d/empty/deeper")).unwrap();
        fs::create_dir_all(at.join("new")).unwrap();
        fs::remove_file(at.join("a.txt")).unwrap();
        fs::hard_link(at.join("d/x"), at.join("y")).unwrap();
        fs::rename(at.join("y"), lane.folder.path().join("other-name")).unwrap();
        fs::set_permissions(at.join("d"), fs::Permissions::from_mode(0o555)).unwrap();
        lane.tree
            .reset(&lane.base, &Ignored::Go(BTreeSet::new()))
            .unwrap();
        assert_eq!(fs::read(at.join("a.txt")).unwrap(), b"a\n");
        assert_eq!(at.join("new").exists(), !is_ours);
        assert_eq!(at.join("d/empty").exists(), !is_ours);
        let names = fs::metadata(at.join("d/x")).unwrap().nlink();
        assert_eq!(names, if is_ours { 1 } else { 2 });
        let mode = fs::metadata(at.join("d")).unwrap().mode() & 0o777;
        assert_eq!(mode == 0o555, !is_ours);
    }
}

#[test]
fn a_file_in_place_of_a_link_is_a_file_where_modes_are_not_looked_at() {
    let (scratch, tree) = Scratch::new();
    let link = scratch.folder.path().join("link");
    symlink("a.txt", &link).unwrap();
    tree.commit(&TEXT).unwrap().unwrap();
    let mut config = tree.repository.config().unwrap();
    config.set_bool("core.fileMode", false).unwrap();
    tree.before_command();
    fs::remove_file(&link).unwrap();
    fs::write(&link, "/etc/passwd").unwrap();
    let id = tree.commit(&TEXT).unwrap().unwrap();
    let committed = tree.find_commit(&id).unwrap().tree().unwrap();
    let mode = |name| committed.get_name(name).unwrap().filemode_raw();
    assert_eq!(mode("link"), 0o100_644);
    assert_eq!(mode("a.txt"), 0o100_644);
}
