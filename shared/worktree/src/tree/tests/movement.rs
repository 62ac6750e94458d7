//! What is kept between looks, and files that are moved by what differs.

use super::lane::Lane;
use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

pub(super) fn commit(lane: &Lane, files: &[(&str, Option<&str>)], parent: &str) -> String {
    let parent = lane.main.find_commit(Oid::from_str(parent).unwrap());
    let parent = parent.unwrap();
    let mut index = git2::Index::new().unwrap();
    index.read_tree(&parent.tree().unwrap()).unwrap();
    for (path, _) in files.iter().filter(|(_, text)| text.is_none()) {
        index.remove(Path::new(path), 0).unwrap();
    }
    for (path, text) in files {
        let Some(text) = text else { continue };
        let id = lane.main.blob(text.as_bytes()).unwrap();
        let like = index.get_path(Path::new(".gitignore"), 0).unwrap();
        let path = path.as_bytes().to_vec();
        index.add(&git2::IndexEntry { id, path, ..like }).unwrap();
    }
    let tree = index.write_tree_to(&lane.main).unwrap();
    let tree = lane.main.find_tree(tree).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let made = lane
        .main
        .commit(None, &author, &author, "c", &tree, &[&parent]);
    made.unwrap().to_string()
}

pub(super) fn at(commit: &str, branch: &str) -> Base {
    Base {
        commit: commit.to_owned(),
        branch: Some(format!("refs/heads/{branch}")),
    }
}

/// Looks until the index is known.
fn look(lane: &Lane) {
    assert!(lane.tree.changes().unwrap().is_empty());
    assert!(lane.tree.has_plain());
    lane.tree.before_command();
    assert!(lane.tree.changes().unwrap().is_empty());
}

/// Looks at everything by another handle, which knows nothing.
fn is_clean(lane: &Lane) -> bool {
    let fresh = Tree::open(&lane.at(".")).unwrap();
    fresh.changes().unwrap().is_empty()
}

#[test]
fn a_lane_goes_by_what_differs_and_is_as_after_a_whole_look() {
    let lane = Lane::new();
    let base = lane.base.commit.clone();
    let other = commit(
        &lane,
        &[
            ("d/x", None),
            ("d/y/z", Some("deep\n")),
            ("a.txt", Some("other\n")),
        ],
        &base,
    );
    let turned = commit(
        &lane,
        &[("a.txt", None), ("a.txt/now", Some("a folder\n"))],
        &other,
    );
    look(&lane);
    for round in 0..3 {
        for to in [&other, &base, &turned, &other, &turned, &base] {
            lane.tree.start_at(&at(to, "l1"), "i", 1).unwrap();
            assert!(lane.tree.has_plain(), "{round}");
            assert!(is_clean(&lane), "{round}");
            assert_eq!(lane.tree.base().unwrap(), at(to, "l1"));
        }
    }
}

#[test]
fn what_a_command_changed_after_a_look_is_seen_when_the_lane_starts() {
    let lane = Lane::new();
    look(&lane);
    assert!(lane.tree.settled_changes().unwrap().is_empty());
    lane.tree.before_command();
    lane.write("d/x", "by the command\n");
    lane.tree.start_at(&lane.base, "i", 1).unwrap();
    assert_eq!(fs::read_to_string(lane.at("d/x")).unwrap(), "base\n");
}

#[test]
fn a_file_that_blocks_what_a_commit_brings_is_not_lost() {
    let lane = Lane::new();
    let brings = commit(
        &lane,
        &[("target/new", Some("theirs\n"))],
        &lane.base.commit,
    );
    look(&lane);
    lane.write("target/new", "ignored and mine\n");
    lane.tree.start_at(&at(&brings, "l1"), "i", 1).unwrap();
    assert_eq!(
        fs::read_to_string(lane.at("target/new")).unwrap(),
        "theirs\n"
    );
    let git = lane.tree.git_folder().join("premath-salvage");
    let mut kept = String::new();
    for entry in walk(&git) {
        kept.push_str(&fs::read_to_string(entry).unwrap_or_default());
    }
    assert_eq!(kept, "ignored and mine\n");
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(walk(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn a_reset_by_one_look_leaves_what_a_whole_one_leaves() {
    let lane = Lane::new();
    let base = lane.base.clone();
    let worked = commit(
        &lane,
        &[("d/x", Some("worked\n")), ("new", Some("n\n"))],
        &base.commit,
    );
    let gone = Ignored::Go(BTreeSet::new());
    look(&lane);
    for to in [&worked, &base.commit, &worked] {
        lane.write("d/x", "worked\n");
        lane.write("new", "n\n");
        lane.write("left/over", "x");
        lane.write("target/made", "x");
        fs::remove_file(lane.at("a.txt")).unwrap();
        symlink("/dev/zero", lane.at("a.txt")).unwrap();
        let mode = PermissionsExt::from_mode(0o777);
        fs::set_permissions(lane.at("d/x"), mode).unwrap();
        lane.tree.reset(&at(to, "l1"), &gone).unwrap();
        assert!(lane.tree.has_plain());
        assert!(is_clean(&lane));
        assert!(!lane.at("left").exists() && !lane.at("target").exists());
        let mode = fs::metadata(lane.at("d/x")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0);
    }
}

#[test]
fn rules_that_a_step_wrote_hide_nothing_from_a_reset() {
    let lane = Lane::new();
    look(&lane);
    lane.write(".gitignore", "*\n");
    lane.write("d/.gitignore", "*\n");
    lane.write("d/hidden", "x");
    lane.write("hidden", "x");
    let gone = Ignored::Go(BTreeSet::new());
    lane.tree.reset(&lane.base, &gone).unwrap();
    for name in ["hidden", "d/hidden", "d/.gitignore"] {
        assert!(!lane.at(name).exists(), "{name}");
    }
    assert!(is_clean(&lane));
}

/// Git ignores the link, and not the folder that the commit has in its place.
#[test]
fn an_ignored_link_that_blocks_a_file_of_the_commit_is_not_followed() {
    let rules = "target/\n/k\n!/k/\n";
    for lane in [Lane::new(), Lane::provisioned()] {
        let files = [(".gitignore", Some(rules)), ("k/x", Some("landed\n"))];
        let landed = commit(&lane, &files, &lane.base.commit);
        let made = Ignored::Go(BTreeSet::from([b"k".to_vec()]));
        for (ignored, is_seen) in [
            (&Ignored::Stay, false),
            (&Ignored::Stay, true),
            (&made, false),
            (&made, true),
        ] {
            let gone = Ignored::Go(BTreeSet::new());
            lane.tree.reset(&lane.base, &gone).unwrap();
            look(&lane);
            lane.tree.before_command();
            lane.write(".gitignore", rules);
            symlink(lane.precious(), lane.at("k")).unwrap();
            lane.tree.state_on(&lane.base.commit).unwrap();
            let to = at(&landed, "l1");
            match is_seen {
                true => lane.tree.reset_as_seen(&to, ignored).unwrap(),
                false => lane.tree.reset(&to, ignored).unwrap(),
            }
            let outside = fs::read_to_string(lane.precious().join("x")).unwrap();
            assert_eq!(outside, "mine\n");
            assert_eq!(fs::read_to_string(lane.at("k/x")).unwrap(), "landed\n");
            assert!(is_clean(&lane));
        }
    }
}

#[test]
fn ignore_rules_that_a_step_writes_are_bounded_and_those_of_a_commit_are_not() {
    let lane = Lane::new();
    let large = "# a rule\n".repeat(6 << 10);
    for name in ["a", "b", "c"] {
        lane.write(&format!("{name}/.gitignore"), &large);
    }
    let error = lane.tree.commit(&TEXT).unwrap_err().to_string();
    assert!(error.contains("git cannot take c/.gitignore"), "{error}");
    let gone = Ignored::Go(BTreeSet::new());
    lane.tree.reset(&lane.base, &gone).unwrap();
    assert!(!lane.at("a").exists() && !lane.at("c").exists());
    let names = ["a/.gitignore", "b/.gitignore", "c/.gitignore"];
    let files = names.map(|name| (name, Some(&*large)));
    let landed = commit(&lane, &files, &lane.base.commit);
    lane.tree.reset(&at(&landed, "l1"), &gone).unwrap();
    assert!(is_clean(&lane));
}

#[test]
fn an_index_that_a_command_may_have_changed_unseen_is_read_again() {
    let lane = Lane::new();
    look(&lane);
    lane.write("d/x", "changed\n");
    let gone = Ignored::Go(BTreeSet::new());
    lane.tree.reset(&lane.base, &gone).unwrap();
    assert!(lane.tree.has_plain());
    let is_settled = |lane: &Lane| {
        let stamp = lane.tree.index_stamp();
        stamp.is_some_and(|stamp| stamp.is_settled())
    };
    let was_settled = is_settled(&lane);
    lane.tree.before_command();
    // What was written a moment ago may change without a sign of it.
    assert!(was_settled || !lane.tree.has_plain() || is_settled(&lane));
    while !is_settled(&lane) {
        std::hint::spin_loop();
    }
    look(&lane);
    lane.tree.before_command();
    assert!(lane.tree.has_plain());
}

#[test]
fn a_tree_is_stored_as_it_was_looked_at() {
    let lane = Lane::new();
    lane.write("d/x", "worked\n");
    lane.write("new/file", "new\n");
    let state = lane.tree.state_on(&lane.base.commit).unwrap();
    let tree = Oid::from_str(&state.tree).unwrap();
    assert!(lane.main.find_tree(tree).is_err(), "a look stores no tree");
    lane.write("d/x", "changed after the look\n");
    assert!(lane.tree.keep_state(&lane.base.commit, &state).unwrap());
    let tree = lane.main.find_tree(tree).unwrap();
    let blob = tree.get_path(Path::new("d/x")).unwrap().id();
    assert_eq!(lane.main.find_blob(blob).unwrap().content(), b"worked\n");
    // The look is used once: the files are read again, and differ.
    assert!(!lane.tree.keep_state(&lane.base.commit, &state).unwrap());
}

#[test]
fn a_lane_is_reset_by_what_was_seen_of_the_work() {
    let lane = Lane::provisioned();
    let base = lane.base.clone();
    let landed = commit(
        &lane,
        &[
            ("d/x", Some("worked\n")),
            ("new/file", Some("n\n")),
            ("a.txt", Some("by another lane\n")),
        ],
        &base.commit,
    );
    let gone = Ignored::Go(BTreeSet::new());
    look(&lane);
    for to in [&landed, &base.commit, &landed] {
        let from = lane.tree.base().unwrap().commit;
        lane.tree.before_command();
        lane.write("d/x", "worked\n");
        lane.write("new/file", "n\n");
        lane.write("left/over", "x");
        lane.write("target/made", "x");
        lane.tree.state_on(&from).unwrap();
        lane.tree.reset_as_seen(&at(to, "l1"), &gone).unwrap();
        assert!(lane.tree.is_known_clean());
        assert!(is_clean(&lane));
        assert!(!lane.at("left").exists() && !lane.at("target").exists());
        assert_eq!(lane.tree.base().unwrap(), at(to, "l1"));
    }
}

#[test]
fn what_a_command_did_after_a_look_is_gone_after_the_reset() {
    let lane = Lane::provisioned();
    let gone = Ignored::Go(BTreeSet::new());
    look(&lane);
    lane.write("b.txt", "worked\n");
    lane.tree.state_on(&lane.base.commit).unwrap();
    lane.tree.before_command();
    lane.write("d/x", "by a later command\n");
    lane.write("later", "x");
    lane.tree.reset_as_seen(&lane.base, &gone).unwrap();
    assert!(is_clean(&lane));
    assert!(!lane.at("later").exists());
    lane.tree.before_command();
    assert!(!lane.tree.is_known_clean());
}

#[test]
fn a_persons_worktree_is_looked_at_again_before_it_is_reset() {
    let lane = Lane::new();
    look(&lane);
    lane.write("b.txt", "worked\n");
    lane.tree.state_on(&lane.base.commit).unwrap();
    lane.write("d/x", "in between\n");
    lane.tree.reset_as_seen(&lane.base, &Ignored::Stay).unwrap();
    assert!(is_clean(&lane));
}

#[test]
fn the_ledger_of_a_worktree_is_never_moved() {
    let lane = Lane::new();
    let ledger = ".premath/issues.jsonl";
    let first = commit(&lane, &[(ledger, Some("first\n"))], &lane.base.commit);
    let other = commit(&lane, &[(ledger, Some("other\n"))], &first);
    lane.tree.start_at(&at(&first, "l1"), "i", 1).unwrap();
    std::fs::create_dir_all(lane.at(".premath")).unwrap();
    std::fs::write(lane.at(ledger), "first\nlive\n").unwrap();
    look(&lane);
    for to in [&other, &first] {
        lane.tree.start_at(&at(to, "l1"), "i", 1).unwrap();
        let text = std::fs::read_to_string(lane.at(ledger)).unwrap();
        assert_eq!(text, "first\nlive\n");
    }
}

#[test]
fn a_change_after_a_look_is_seen_where_a_lane_starts() {
    let lane = Lane::new();
    let other = commit(&lane, &[("d/x", Some("other\n"))], &lane.base.commit);
    look(&lane);
    std::fs::write(lane.at("a.txt"), "by a person\n").unwrap();
    lane.tree.start_at(&at(&other, "l1"), "i", 1).unwrap();
    assert!(is_clean(&lane));
}

#[test]
fn a_look_counts_for_a_start_in_a_lane_of_the_harness_alone() {
    for (lane, counts) in [(Lane::provisioned(), true), (Lane::new(), false)] {
        look(&lane);
        assert!(lane.tree.settled_changes().unwrap().is_empty());
        assert_eq!(lane.tree.is_known_clean(), counts);
        let other = commit(&lane, &[("d/x", Some("other\n"))], &lane.base.commit);
        lane.tree.start_at(&at(&other, "l1"), "i", 1).unwrap();
        assert_eq!(lane.tree.is_known_clean(), counts);
        lane.tree.before_command();
        assert!(!lane.tree.is_known_clean());
        lane.write("d/y", "new\n");
        assert_eq!(lane.tree.settled_changes().unwrap(), ["d/y"]);
        assert!(!lane.tree.is_known_clean());
    }
}

#[test]
fn what_was_known_about_a_lane_does_not_count_for_long() {
    let lane = Lane::new();
    look(&lane);
    lane.tree.state_on(&lane.base.commit).unwrap();
    lane.tree
        .reset_as_seen(&at(&lane.base.commit, "l1"), &Ignored::Stay)
        .unwrap();
    assert!(lane.tree.is_known_clean());
    let (commit, seen) = lane.tree.clean.get().unwrap();
    let earlier = seen.checked_sub(crate::tree::CLEAN_FOR).unwrap();
    lane.tree.clean.set(Some((commit, earlier)));
    assert!(!lane.tree.is_known_clean());
}
