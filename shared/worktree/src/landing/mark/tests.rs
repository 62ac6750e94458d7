use super::super::tests::{commit, landing, repository};
use super::super::{Advance, Undone};
use super::*;
use premath_kernel::policy::landing::{LandingMode, LandingRule};
use std::fs;

#[test]
fn only_a_mark_that_the_target_holds_is_landed_work() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let base = landing.tip().unwrap();
    let next = commit(&git, "next", &[Oid::from_str(&base).unwrap()]).to_string();
    landing.mark(&"a/b".into(), 1, &next).unwrap();
    assert_eq!(landing.landed(&"a/b".into()).unwrap(), None);
    landing.advance(&base, &next, "m").unwrap();
    let landed = landing.landed(&"a/b".into()).unwrap().unwrap();
    assert_eq!(landed.commit, next);
    assert_eq!(landing.landed(&"a".into()).unwrap(), None);
    landing.sweep_marks(|issue| (issue == "a").then_some(1), |_| Some(1));
    assert!(landing.landed(&"a/b".into()).unwrap().is_some());
    landing.unmark(&"a/b".into());
    assert_eq!(landing.landed(&"a/b".into()).unwrap(), None);
}

#[test]
fn the_mark_of_a_landing_that_did_not_happen_is_removed_with_its_lease() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let base = landing.tip().unwrap();
    let next = commit(&git, "next", &[Oid::from_str(&base).unwrap()]).to_string();
    landing.mark(&"a".into(), 2, &next).unwrap();
    let is_marked = || git.find_reference("refs/harness/landing/a/2").is_ok();
    // Leased, or leased before the mark was written.
    for unleased in [None, Some(1)] {
        landing.sweep_marks(|_| None, |_| unleased);
        assert!(is_marked(), "{unleased:?}");
    }
    landing.sweep_marks(|_| None, |_| Some(2));
    assert!(!is_marked());
}

#[test]
fn a_mark_up_to_the_close_of_an_issue_is_removed_and_one_of_a_later_lease_stays() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let tip = landing.tip().unwrap();
    for generation in 1..=3 {
        landing.mark(&"a".into(), generation, &tip).unwrap();
    }
    landing.sweep_marks(|_| Some(2), |_| None);
    let is_marked = |generation: u64| {
        let name = format!("refs/harness/landing/a/{generation}");
        git.find_reference(&name).is_ok()
    };
    assert_eq!([1, 2, 3].map(is_marked), [false, false, true]);
}

#[test]
fn no_folder_of_marks_is_left_without_a_mark_but_that_of_a_lease() {
    let (folder, _git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let tip = landing.tip().unwrap();
    let marks = folder.path().join(".git/refs/harness/landing");
    let left = || {
        let names = fs::read_dir(&marks).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    for (issue, generation) in [("a", 1), ("a", 2), ("b/c", 1), ("d", 1)] {
        landing.mark(&issue.into(), generation, &tip).unwrap();
    }
    assert_eq!(left().len(), 3);
    landing.unmark(&"a".into());
    assert_eq!(left().len(), 2, "{:?}", left());
    // Such as earlier versions left, one of an issue with a lease among them.
    for issue in ["old", "leased"] {
        fs::create_dir(marks.join(issue)).unwrap();
    }
    // What a link leads to is not removed.
    let aside = folder.path().join("aside");
    fs::create_dir(&aside).unwrap();
    std::os::unix::fs::symlink(&aside, marks.join("link")).unwrap();
    landing.sweep_marks(
        |issue| (issue == "d").then_some(u64::MAX),
        |issue| (issue != "leased").then_some(0),
    );
    let kept = left();
    assert!(
        kept.contains("leased") && !kept.contains("old") && !kept.contains("d"),
        "{kept:?}"
    );
    assert!(aside.exists());
    let is_marked = landing.landed(&"b/c".into()).unwrap().is_some();
    assert!(is_marked);
}

#[test]
fn a_mark_is_found_while_the_folders_of_others_come_and_go() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let tip = landing.tip().unwrap();
    landing.mark(&"stays".into(), 1, &tip).unwrap();
    let issues = ["a", "b", "z"].map(IssueId::from);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            for issue in issues.iter().cycle().take(600) {
                landing.mark(issue, 1, &tip).unwrap();
                landing.unmark(issue);
            }
        });
        while !others.is_finished() {
            let marks = git.references_glob("refs/harness/landing/*").unwrap();
            let mut marks = marks.flatten();
            assert!(marks.any(|mark| mark.name() == Ok("refs/harness/landing/stays/1")));
        }
        others.join().unwrap();
    });
}

/// Says that the work of some issues passed, and no other.
fn settled(passed: &[&str]) -> impl Fn(&IssueId, u64) -> bool {
    move |issue, _| passed.iter().any(|one| **one == **issue)
}

/// Takes back what is unchecked; returns how many landings were taken off the target.
fn taken_back(landing: &Landing, is_settled: impl Fn(&IssueId, u64) -> bool) -> usize {
    let taken = landing.take_back_unchecked(is_settled, None).unwrap();
    let is_off = |(_, undone): &&(String, Undone)| *undone != Undone::Conflict;
    taken.iter().filter(is_off).count()
}

/// Makes a target with three landings on top of each other, each marked.
fn three_landings(checked: bool) -> (tempfile::TempDir, Repository, Landing, Vec<String>) {
    let (folder, git) = repository();
    let rule = LandingRule {
        mode: LandingMode::Merge,
        target: "t".to_owned(),
        check: checked.then(|| "true".to_owned()),
        ..LandingRule::default()
    };
    let landing = Landing::begin(rule, folder.path().to_path_buf()).unwrap();
    let mut commits = vec![landing.tip().unwrap()];
    for issue in ["a", "b", "c"] {
        let before = commits.last().unwrap().clone();
        let message = trailers_of(issue, &before);
        let next = commit(&git, &message, &[Oid::from_str(&before).unwrap()]).to_string();
        landing.mark(&issue.into(), 1, &next).unwrap();
        assert_eq!(landing.advance(&before, &next, "m").unwrap(), Advance::Done);
        commits.push(next);
    }
    (folder, git, landing, commits)
}

fn trailers_of(issue: &str, base: &str) -> String {
    let digest = "0".repeat(64);
    format!(
        "{issue}: x\n\nIssue: {issue}\nLease: lease1_{issue}_w_1#1\nStep: w.{issue}.1\n\
         Witness: ciwitness://w.{issue}.1/verify/{digest}\nTrajectory: sha256:{digest}\n\
         Base: {base}\nVerified-Tree: {base}\n"
    )
}

#[test]
fn a_step_begins_below_all_that_is_yet_to_be_checked() {
    let (_folder, _git, landing, commits) = three_landings(true);
    let start = |passed: &[&str]| landing.start(settled(passed)).unwrap();
    assert_eq!(start(&[]), commits[0]);
    assert_eq!(start(&["a"]), commits[1]);
    assert_eq!(start(&["a", "b", "c"]), commits[3]);
    landing.unmark(&"a".into());
    landing.unmark(&"b".into());
    assert_eq!(start(&[]), commits[2]);
    let (_folder, _git, unchecked, commits) = three_landings(false);
    assert_eq!(unchecked.start(settled(&[])).unwrap(), commits[3]);
}

#[test]
fn a_step_begins_below_what_is_yet_to_be_checked_and_others_built_upon() {
    let (_folder, git, landing, commits) = three_landings(true);
    let last = Oid::from_str(&commits[3]).unwrap();
    let person = commit(&git, "person", &[last]).to_string();
    landing.advance(&commits[3], &person, "m").unwrap();
    let start = |passed: &[&str]| landing.start(settled(passed)).unwrap();
    assert_eq!(start(&[]), commits[0]);
    assert_eq!(start(&["a"]), commits[1]);
    // What passed its check on top of others contains them.
    assert_eq!(start(&["c"]), person);
    // One on top that was reverted settles nothing.
    let taken_back = landing.take_back(&commits[3..], &"s".into(), None).unwrap();
    assert!(matches!(taken_back, Undone::Reverted(_)), "{taken_back:?}");
    landing.unmark(&"c".into());
    assert_eq!(start(&["c"]), commits[0]);
    // What a revert took back is not there.
    let taken_back = landing
        .take_back(&commits[1..3], &"s".into(), None)
        .unwrap();
    assert!(matches!(taken_back, Undone::Reverted(_)), "{taken_back:?}");
    assert_eq!(start(&[]), landing.tip().unwrap());
}

#[test]
fn a_revert_that_holds_counts_and_no_text_of_a_landing() {
    let (_folder, git) = repository();
    let first = git.head().unwrap().target().unwrap();
    let landed = commit(&git, "a: one", &[first]);
    let by_git = format!("Revert \"a: one\"\n\nThis reverts commit {landed}.\n");
    let by_us = format!("Revert \"a: one\"\n\nReverts {landed}, which was left unchecked.\n");
    let of_merge =
        format!("Revert\n\nThis reverts commit {landed}, reversing\nchanges made to {first}.\n");
    let in_subject = format!("Reverts {landed}, x: an issue's id and title\n");
    let of_another = format!("Revert\n\nThis reverts commit {first}.\n");
    let unfinished = format!("Revert\n\nReverts {landed}\n");
    let in_landing = format!("{by_git}\n{}", trailers_of("b", &landed.to_string()));
    for (message, expected) in [
        (&by_git, true),
        (&by_us, true),
        (&of_merge, true),
        (&in_subject, false),
        (&of_another, false),
        (&unfinished, false),
        (&in_landing, false),
    ] {
        let tip = commit(&git, message, &[landed]);
        let found = is_reverted(&git, tip, landed).unwrap();
        assert_eq!(found, expected, "{message}");
    }
    let revert = commit(&git, &by_git, &[landed]);
    let again = format!("Reapply \"a: one\"\n\nThis reverts commit {revert}.\n");
    let again = commit(&git, &again, &[revert]);
    assert!(!is_reverted(&git, again, landed).unwrap());
}

#[test]
fn a_step_does_not_begin_with_what_is_taken_back_while_it_looks() {
    let (_folder, _git, landing, commits) = three_landings(true);
    let taken = std::cell::Cell::new(false);
    let is_settled = |_: &IssueId, _: u64| {
        if !taken.replace(true) {
            landing.take_back(&commits[2..], &"s".into(), None).unwrap();
            landing.unmark(&"b".into());
            landing.unmark(&"c".into());
        }
        true
    };
    assert_eq!(landing.start(is_settled).unwrap(), commits[1]);
}

#[test]
fn landings_are_taken_back_with_those_on_top() {
    let (_folder, git, landing, commits) = three_landings(true);
    let take_back = |commits: &[String]| landing.take_back(commits, &"s".into(), None).unwrap();
    assert_eq!(take_back(&commits[2..]), Undone::Reset);
    assert_eq!(landing.tip().unwrap(), commits[1]);
    // What was taken back is not there any more.
    assert_eq!(take_back(&commits[3..]), Undone::Reset);
    assert_eq!(landing.tip().unwrap(), commits[1]);
    // A person's commit between them stays.
    let first = Oid::from_str(&commits[1]).unwrap();
    let person = commit(&git, "person", &[first]);
    let last = commit(&git, "last", &[person]).to_string();
    landing.advance(&commits[1], &last, "m").unwrap();
    take_back(&[commits[1].clone(), last]);
    let tip = Oid::from_str(&landing.tip().unwrap()).unwrap();
    assert!(git.graph_descendant_of(tip, person).unwrap());
}

#[test]
fn landings_that_a_death_left_unchecked_are_taken_back() {
    let (_folder, _git, landing, commits) = three_landings(true);
    let back = |passed: &[&str]| taken_back(&landing, settled(passed));
    assert_eq!(back(&["a", "b", "c"]), 0);
    assert_eq!(back(&["a"]), 2);
    assert_eq!(landing.tip().unwrap(), commits[1]);
    assert_eq!(back(&[]), 1);
    assert_eq!(landing.tip().unwrap(), commits[0]);
    assert_eq!(back(&[]), 0);
    let (_folder, _git, unchecked, _) = three_landings(false);
    assert_eq!(taken_back(&unchecked, settled(&[])), 0);
}

#[test]
fn unchecked_landings_below_a_persons_commit_are_reverted() {
    let (_folder, git, landing, commits) = three_landings(true);
    let last = Oid::from_str(&commits[3]).unwrap();
    let person = commit(&git, "person", &[last]);
    landing
        .advance(&commits[3], &person.to_string(), "m")
        .unwrap();
    assert_eq!(taken_back(&landing, settled(&["a"])), 2);
    let tip = Oid::from_str(&landing.tip().unwrap()).unwrap();
    assert!(git.graph_descendant_of(tip, person).unwrap());
    for (issue, is_there) in [("a", true), ("b", false), ("c", false)] {
        let landed = landing.landed(&issue.into()).unwrap();
        assert_eq!(landed.is_some(), is_there, "{issue}");
    }
    assert_eq!(taken_back(&landing, settled(&["a"])), 0);
    assert_eq!(landing.start(settled(&["a"])).unwrap(), tip.to_string());
}

#[test]
fn what_only_a_later_commit_verifies_is_taken_back_whatever_the_settings_are() {
    let (_folder, git, landing, commits) = three_landings(false);
    let message = trailers_of("d", &commits[3]).replace("Verified-Tree", "Verified-In");
    let rides = commit(&git, &message, &[Oid::from_str(&commits[3]).unwrap()]).to_string();
    landing.mark(&"d".into(), 1, &rides).unwrap();
    landing.advance(&commits[3], &rides, "m").unwrap();
    assert_eq!(taken_back(&landing, settled(&["a", "b", "c", "d"])), 0);
    assert_eq!(taken_back(&landing, settled(&["b"])), 2);
    assert_eq!(landing.tip().unwrap(), commits[2]);
}

#[test]
fn nothing_is_for_others_before_its_issue_closes_whatever_the_settings_are() {
    let (_folder, _git, landing, commits) = three_landings(false);
    let tip = |passed: &[&str]| landing.settled_tip(settled(passed)).unwrap();
    assert_eq!(tip(&["a", "b"]), commits[2]);
    assert_eq!(tip(&["a", "b", "c"]), commits[3]);
}

#[test]
fn a_step_begins_below_a_batch_that_is_yet_to_close() {
    let (folder, _git, landing, commits) = three_landings(false);
    let rule = LandingRule {
        batch: 2,
        ..landing.rule().clone()
    };
    let landing = Landing::begin(rule, folder.path().to_path_buf()).unwrap();
    assert_eq!(landing.start(settled(&[])).unwrap(), commits[0]);
    assert_eq!(landing.start(settled(&["c"])).unwrap(), commits[3]);
}
