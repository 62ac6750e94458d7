//! A move of a lane that a kill cut, at any file.

use super::lane::Lane;
use super::movement::{at, commit};
use super::*;
use crate::tree::relocation::MOVING;

/// The files of the moves: the path, and what is there before and after.
const FILES: [(&str, Option<&str>, Option<&str>); 4] = [
    ("a.txt", Some("a\n"), Some("other\n")),
    ("d/x", Some("base\n"), None),
    ("d/y/z", None, Some("deep\n")),
    ("new", None, Some("new\n")),
];

/// What a file may be when the harness is killed.
const STATES: [&str; 4] = ["before", "absent", "begun", "after"];

/// A lane, and the commit that it was on its way to.
fn cut_lane() -> (Lane, String) {
    let lane = Lane::new();
    let files = FILES.map(|(path, _, after)| (path, after));
    let there = commit(&lane, &files, &lane.base.commit);
    (lane, there)
}

fn record(lane: &Lane, there: &str) {
    let there = Oid::from_str(there).unwrap();
    let repository = &lane.tree.repository;
    repository.reference(MOVING, there, true, "test").unwrap();
}

fn is_on_record(lane: &Lane) -> bool {
    lane.tree.repository.find_reference(MOVING).is_ok()
}

/// Puts the files in the states of a number in base four.
fn put(lane: &Lane, states: usize) -> String {
    let mut told = String::new();
    for (number, (path, before, after)) in FILES.iter().enumerate() {
        let state = STATES[states >> (2 * number) & 3];
        told.push_str(&format!("{path} {state} "));
        let content = match state {
            "before" => before.map(str::to_owned),
            "begun" => after.map(|text| text[..text.len() / 2].to_owned()),
            "after" => after.map(str::to_owned),
            _ => None,
        };
        match content {
            Some(content) => lane.write(path, &content),
            None => drop(fs::remove_file(lane.at(path))),
        }
    }
    told
}

#[test]
fn a_move_that_was_cut_at_any_file_is_taken_back() {
    let (lane, there) = cut_lane();
    for states in 0..STATES.len().pow(4) {
        let told = put(&lane, states);
        record(&lane, &there);
        let fresh = Tree::open(&lane.at(".")).unwrap();
        let was_clean = fresh.changes().unwrap().is_empty();
        assert_eq!(fresh.take_back_move().unwrap(), !was_clean, "{told}");
        let fresh = Tree::open(&lane.at(".")).unwrap();
        assert!(fresh.changes().unwrap().is_empty(), "{told}");
        assert_eq!(fresh.base().unwrap(), lane.base, "{told}");
        assert!(!is_on_record(&lane), "{told}");
    }
}

#[test]
fn a_move_cut_after_its_index_was_written_is_taken_back() {
    let (lane, there) = cut_lane();
    let commit = lane.main.find_commit(Oid::from_str(&there).unwrap());
    let tree = commit.unwrap().tree().unwrap();
    put(&lane, 0xff);
    let mut index = lane.tree.repository.index().unwrap();
    index.read_tree(&tree).unwrap();
    index.write().unwrap();
    record(&lane, &there);
    assert!(lane.tree.take_back_move().unwrap());
    assert!(lane.tree.changes().unwrap().is_empty());
    assert_eq!(lane.tree.base().unwrap(), lane.base);
}

#[test]
fn what_a_person_wrote_after_the_kill_is_left_with_all_else() {
    for (path, content) in [
        ("a.txt", Some("mine\n")),
        ("d/y/z", Some("deeper\n")),
        ("note", Some("mine\n")),
        (".gitignore", None),
    ] {
        let (lane, there) = cut_lane();
        put(&lane, 0xff);
        match content {
            Some(content) => lane.write(path, content),
            None => fs::remove_file(lane.at(path)).unwrap(),
        }
        let before = lane.tree.changes().unwrap();
        record(&lane, &there);
        assert!(!lane.tree.take_back_move().unwrap(), "{path}");
        assert_eq!(lane.tree.changes().unwrap(), before, "{path}");
        let now = fs::read_to_string(lane.at(path)).ok();
        assert_eq!(now.as_deref(), content, "{path}");
        assert!(!is_on_record(&lane), "{path}");
    }
}

#[test]
fn a_move_leaves_a_record_only_while_it_lasts() {
    let (lane, there) = cut_lane();
    lane.tree.relocate(&at(&there, "l1"), "i").unwrap();
    assert_eq!(lane.tree.base().unwrap(), at(&there, "l1"));
    assert!(!is_on_record(&lane));
    // A move that fails leaves none either.
    lane.write("a.txt", "mine\n");
    let failed = lane.tree.relocate(&at(&"0".repeat(40), "l1"), "i");
    failed.unwrap_err();
    assert!(!is_on_record(&lane));
    assert!(!lane.tree.take_back_move().unwrap());
}

#[test]
fn a_lane_goes_home_once() {
    let (lane, there) = cut_lane();
    lane.tree.remember_home().unwrap();
    let away = Base {
        commit: there,
        branch: None,
    };
    lane.tree.relocate(&away, "i").unwrap();
    assert!(lane.tree.return_to_branch().unwrap());
    assert_eq!(lane.tree.base().unwrap(), lane.base);
    // A person detaches it: it is not put on the branch once more.
    lane.tree.relocate(&away, "i").unwrap();
    lane.tree.remember_home().unwrap();
    assert!(!lane.tree.return_to_branch().unwrap());
    assert_eq!(lane.tree.base().unwrap(), away);
}
