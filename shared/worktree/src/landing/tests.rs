use super::*;
use git2::{RepositoryInitOptions, Signature};
use premath_kernel::json::id::IssueId;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn repository() -> (tempfile::TempDir, Repository) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = RepositoryInitOptions::new();
    let git = Repository::init_opts(folder.path(), options.initial_head("main")).unwrap();
    commit(&git, "first", &[]);
    (folder, git)
}

/// Makes a commit that no branch is moved for, but for the first.
fn commit(git: &Repository, text: &str, parents: &[Oid]) -> Oid {
    let author = Signature::now("t", "t@localhost").unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let parents: Vec<_> = parents
        .iter()
        .map(|id| git.find_commit(*id).unwrap())
        .collect();
    let parents: Vec<_> = parents.iter().collect();
    let at = parents.is_empty().then_some("HEAD");
    git.commit(at, &author, &author, text, &tree, &parents)
        .unwrap()
}

fn landing(folder: &Path, target: &str) -> Result<Landing, LandingError> {
    landing_with_check(folder, target, None)
}

fn landing_with_check(
    folder: &Path,
    target: &str,
    check: Option<&str>,
) -> Result<Landing, LandingError> {
    let rule = LandingRule {
        mode: LandingMode::Merge,
        target: target.to_owned(),
        check: check.map(str::to_owned),
        ..LandingRule::default()
    };
    Landing::begin(rule, folder.to_path_buf())
}

#[test]
fn without_a_commit_there_is_no_target_and_a_hint_to_make_one() {
    let folder = tempfile::tempdir().unwrap();
    Repository::init(folder.path()).unwrap();
    let error = landing(folder.path(), "t").unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("create one for attempts to start from"),
        "{error}: {hint}"
    );
}

#[test]
fn the_target_is_made_once_from_the_main_worktrees_head() {
    let (folder, git) = repository();
    let head = git.head().unwrap().target().unwrap();
    let first = landing(folder.path(), "harness/integration").unwrap();
    assert_eq!(first.tip().unwrap(), head.to_string());
    let next = commit(&git, "next", &[head]).to_string();
    assert_eq!(
        first.advance(&head.to_string(), &next, "m").unwrap(),
        Advance::Done
    );
    let again = landing(folder.path(), "harness/integration").unwrap();
    assert_eq!(again.tip().unwrap(), next);
}

#[test]
fn a_target_that_is_checked_out_or_no_name_is_refused() {
    let (folder, git) = repository();
    let error = landing(folder.path(), "main").unwrap_err();
    assert!(matches!(error, LandingError::CheckedOut { .. }), "{error}");
    assert!(matches!(
        landing(folder.path(), "a..b"),
        Err(LandingError::Name(_))
    ));
    let lane = folder.path().join("lane");
    git.worktree("lane", &lane, None).unwrap();
    match landing(folder.path(), "lane") {
        Err(LandingError::CheckedOut { worktree, .. }) => {
            assert_eq!(
                worktree.canonicalize().unwrap(),
                lane.canonicalize().unwrap()
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_target_that_was_moved_stays_where_it_is() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let base = landing.tip().unwrap();
    let root = Oid::from_str(&base).unwrap();
    let (ours, theirs) = (
        commit(&git, "ours", &[root]).to_string(),
        commit(&git, "theirs", &[root]).to_string(),
    );
    landing.advance(&base, &theirs, "m").unwrap();
    assert_eq!(landing.advance(&base, &ours, "m").unwrap(), Advance::Moved);
    assert_eq!(landing.tip().unwrap(), theirs);
    assert!(landing.advance(&theirs, &ours, "m").is_err(), "forced");
}

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
    landing.sweep_marks(|issue| issue == "a", |_| Some(1));
    assert!(landing.landed(&"a/b".into()).unwrap().is_some());
    landing.unmark(&"a/b".into());
    assert_eq!(landing.landed(&"a/b".into()).unwrap(), None);
}

#[test]
fn one_step_lands_at_a_time() {
    let (folder, _git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let first = landing.try_lock().unwrap();
    assert!(first.is_some());
    assert!(landing.try_lock().unwrap().is_none());
    drop(first);
    assert!(landing.try_lock().unwrap().is_some());
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
        landing.sweep_marks(|_| false, |_| unleased);
        assert!(is_marked(), "{unleased:?}");
    }
    landing.sweep_marks(|_| false, |_| Some(2));
    assert!(!is_marked());
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
        |issue| issue == "d",
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

#[test]
fn a_handle_is_kept_while_it_sees_all_of_the_repository() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let (tip, issue) = (landing.tip().unwrap(), IssueId::from("a"));
    let kept = Cell::new(landing.open().unwrap());
    let is_kept = || {
        landing.refresh();
        let now = landing.open().unwrap();
        Rc::ptr_eq(&kept.replace(now.clone()), &now)
    };
    landing.mark(&issue, 1, &tip).unwrap();
    landing.unmark(&issue);
    assert!(is_kept());
    for (name, text) in [
        ("objects/info/alternates", "\n".to_owned()),
        ("shallow", format!("{tip}\n")),
    ] {
        fs::write(git.path().join(name), text).unwrap();
        assert!(!is_kept(), "{name}");
        assert!(is_kept(), "{name}");
        fs::remove_file(git.path().join(name)).unwrap();
        assert!(!is_kept(), "{name}");
    }
    // A mark that git packed is removed from the file, which the handle then wrote.
    landing.mark(&issue, 1, &tip).unwrap();
    let mark = "refs/harness/landing/a/1";
    fs::remove_file(git.path().join(mark)).unwrap();
    let packed = format!("{tip} refs/heads/other\n{tip} {mark}\n");
    fs::write(git.path().join("packed-refs"), packed).unwrap();
    landing.unmark(&issue);
    assert!(!is_kept());
    let packed = fs::read_to_string(git.path().join("packed-refs")).unwrap();
    assert!(!packed.contains(mark) && packed.contains("refs/heads/other"));
}

#[test]
fn landed_work_is_taken_back_without_losing_other_work() {
    let (folder, git) = repository();
    let landing = landing_with_check(folder.path(), "t", Some("true")).unwrap();
    let before = landing.tip().unwrap();
    let put = |name: &str, text: &str, parent: &str| {
        let parent = git.find_commit(Oid::from_str(parent).unwrap()).unwrap();
        let mut tree = git.treebuilder(Some(&parent.tree().unwrap())).unwrap();
        let blob = git.blob(text.as_bytes()).unwrap();
        tree.insert(name, blob, 0o100_644).unwrap();
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        git.commit(None, &author, &author, name, &tree, &[&parent])
            .unwrap()
            .to_string()
    };
    let ours = put("ours", "1", &before);
    landing.advance(&before, &ours, "m").unwrap();
    assert_eq!(
        landing.undo(&ours, &"s".into(), None).unwrap(),
        Undone::Reset
    );
    assert_eq!(landing.tip().unwrap(), before);

    landing.advance(&before, &ours, "m").unwrap();
    let theirs = put("theirs", "1", &ours);
    landing.advance(&ours, &theirs, "m").unwrap();
    let Undone::Reverted(revert) = landing.undo(&ours, &"s".into(), None).unwrap() else {
        panic!("not reverted");
    };
    assert_eq!(landing.tip().unwrap(), revert);
    let tree = git
        .find_commit(Oid::from_str(&revert).unwrap())
        .and_then(|commit| commit.tree())
        .unwrap();
    assert!(tree.get_name("ours").is_none());
    assert!(tree.get_name("theirs").is_some());
    // The target holds the commit, and not its work.
    landing.mark(&"a".into(), 1, &ours).unwrap();
    assert_eq!(landing.landed(&"a".into()).unwrap(), None);
    landing.mark(&"b".into(), 1, &theirs).unwrap();
    assert!(landing.landed(&"b".into()).unwrap().is_some());
    landing.sweep_marks(|_| false, |_| Some(1));
    assert!(git.find_reference("refs/harness/landing/a/1").is_err());
    assert!(git.find_reference("refs/harness/landing/b/1").is_ok());

    let second = put("ours", "2", &revert);
    landing.advance(&revert, &second, "m").unwrap();
    let upon = put("ours", "3", &second);
    landing.advance(&second, &upon, "m").unwrap();
    assert_eq!(
        landing.undo(&second, &"s".into(), None).unwrap(),
        Undone::Conflict
    );
    assert_eq!(landing.tip().unwrap(), upon);
}

#[test]
fn what_others_may_have_read_is_reverted_and_the_target_never_goes_back() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let before = landing.tip().unwrap();
    let ours = commit(&git, "ours", &[Oid::from_str(&before).unwrap()]).to_string();
    landing.advance(&before, &ours, "m").unwrap();
    let Undone::Reverted(revert) = landing.undo(&ours, &"s".into(), None).unwrap() else {
        panic!("not reverted");
    };
    assert_eq!(landing.tip().unwrap(), revert);
    let revert = git.find_commit(Oid::from_str(&revert).unwrap()).unwrap();
    assert_eq!(revert.parent_id(0).unwrap().to_string(), ours);
    let before = git.find_commit(Oid::from_str(&before).unwrap()).unwrap();
    assert_eq!(revert.tree_id(), before.tree_id());
}

#[test]
fn an_operators_revert_is_always_a_commit_and_says_why() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let before = landing.tip().unwrap();
    let put = |text: &str, parent: &str| {
        let parent = git.find_commit(Oid::from_str(parent).unwrap()).unwrap();
        let mut tree = git.treebuilder(Some(&parent.tree().unwrap())).unwrap();
        let blob = git.blob(text.as_bytes()).unwrap();
        tree.insert("file", blob, 0o100_644).unwrap();
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        git.commit(None, &author, &author, text, &tree, &[&parent])
            .unwrap()
            .to_string()
    };
    let ours = put("1", &before);
    // What the target does not have is not reverted.
    assert_eq!(landing.revert(&ours, "why", None).unwrap(), Undone::Reset);
    landing.advance(&before, &ours, "m").unwrap();
    let Undone::Reverted(revert) = landing.revert(&ours, "it breaks names", None).unwrap() else {
        panic!("not reverted");
    };
    assert_eq!(landing.tip().unwrap(), revert);
    let commit = git.find_commit(Oid::from_str(&revert).unwrap()).unwrap();
    assert_eq!(commit.parent_id(0).unwrap().to_string(), ours);
    assert!(commit.message().unwrap().contains(", it breaks names."));
    assert!(commit.tree().unwrap().get_name("file").is_none());
    // Later work on the same lines is kept.
    let again = put("2", &revert);
    let later = put("3", &again);
    landing.advance(&revert, &again, "m").unwrap();
    landing.advance(&again, &later, "m").unwrap();
    assert_eq!(
        landing.revert(&again, "why", None).unwrap(),
        Undone::Conflict
    );
    assert_eq!(landing.tip().unwrap(), later);
}

#[test]
fn a_name_that_is_taken_gets_a_number() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "harness/integration").unwrap();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    assert_eq!(
        landing.free_branch(&"a".into(), 1).unwrap(),
        "refs/heads/harness/a/1"
    );
    git.branch("harness/a/1", &head, false).unwrap();
    assert_eq!(
        landing.free_branch(&"a".into(), 1).unwrap(),
        "refs/heads/harness/a/1.2"
    );
    git.branch("harness/b", &head, false).unwrap();
    assert_eq!(
        landing.free_branch(&"b".into(), 1).unwrap(),
        "refs/heads/harness-step/b/1"
    );
}

#[test]
fn a_lock_that_a_killed_harness_left_on_the_target_is_broken() {
    let (folder, git) = repository();
    let landing = landing(folder.path(), "t").unwrap();
    let base = landing.tip().unwrap();
    let next = commit(&git, "next", &[Oid::from_str(&base).unwrap()]).to_string();
    let lock = git.path().join("refs/heads/t.lock");
    let file = std::fs::File::create(&lock).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    file.set_modified(long_ago).unwrap();
    assert_eq!(landing.advance(&base, &next, "m").unwrap(), Advance::Done);
    assert!(!lock.exists());
}

#[test]
fn a_target_never_follows_what_a_step_has_checked_out() {
    let (folder, git) = repository();
    drop(landing(folder.path(), "t").unwrap());
    let changes = || {
        let said = landing(folder.path(), "t").unwrap().sync_target([], false);
        let said = said.unwrap();
        said.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let base = git.head().unwrap().target().unwrap();
    let next = commit(&git, "next", &[base]);
    let next = git.find_commit(next).unwrap();
    git.branch("harness/a/1", &next, false).unwrap();
    git.set_head("refs/heads/harness/a/1").unwrap();
    assert_eq!(changes(), [""; 0]);
    git.set_head_detached(next.id()).unwrap();
    let mut home = git
        .reference_symbolic(crate::tree::HOME, "refs/heads/main", true, "m")
        .unwrap();
    assert_eq!(changes(), [""; 0]);
    home.delete().unwrap();
    // Another step lands now.
    let lock = premath_memory::LandingLock::try_acquire(git.path()).unwrap();
    assert!(changes()[0].starts_with("t lacks 1 commit of HEAD, and is not updated"));
    drop(lock);
    assert!(changes()[0].starts_with("t follows HEAD: 1 commit, now at "));
    assert_eq!(changes(), [""; 0]);
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
    let start = |closed: &[&str]| {
        let is_settled = |issue_id: &IssueId, _: &str| closed.iter().any(|one| **one == **issue_id);
        landing.start(is_settled).unwrap()
    };
    assert_eq!(start(&[]), commits[0]);
    assert_eq!(start(&["a"]), commits[1]);
    assert_eq!(start(&["a", "b", "c"]), commits[3]);
    landing.unmark(&"a".into());
    landing.unmark(&"b".into());
    assert_eq!(start(&[]), commits[2]);
    let (_folder, _git, unchecked, commits) = three_landings(false);
    assert_eq!(unchecked.start(|_, _| false).unwrap(), commits[3]);
}

#[test]
fn a_step_begins_below_what_is_yet_to_be_checked_and_others_built_upon() {
    let (_folder, git, landing, commits) = three_landings(true);
    let last = Oid::from_str(&commits[3]).unwrap();
    let person = commit(&git, "person", &[last]).to_string();
    landing.advance(&commits[3], &person, "m").unwrap();
    let start = |settled: &[&str]| {
        let is_settled = |issue: &IssueId, _: &str| settled.iter().any(|one| **one == **issue);
        landing.start(is_settled).unwrap()
    };
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
fn a_step_does_not_begin_with_what_is_taken_back_while_it_looks() {
    let (_folder, _git, landing, commits) = three_landings(true);
    let taken = std::cell::Cell::new(false);
    let is_settled = |_: &IssueId, _: &str| {
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
    assert_eq!(landing.take_back_unchecked(|_| true).unwrap(), 0);
    let is_closed = |issue_id: &IssueId| **issue_id == *"a";
    assert_eq!(landing.take_back_unchecked(is_closed).unwrap(), 2);
    assert_eq!(landing.tip().unwrap(), commits[1]);
    assert_eq!(landing.take_back_unchecked(|_| false).unwrap(), 1);
    assert_eq!(landing.tip().unwrap(), commits[0]);
    assert_eq!(landing.take_back_unchecked(|_| false).unwrap(), 0);
    let (_folder, _git, unchecked, _) = three_landings(false);
    assert_eq!(unchecked.take_back_unchecked(|_| false).unwrap(), 0);
}

#[test]
fn what_only_a_later_commit_verifies_is_taken_back_whatever_the_settings_are() {
    let (_folder, git, landing, commits) = three_landings(false);
    let message = trailers_of("d", &commits[3]).replace("Verified-Tree", "Verified-In");
    let rides = commit(&git, &message, &[Oid::from_str(&commits[3]).unwrap()]).to_string();
    landing.mark(&"d".into(), 1, &rides).unwrap();
    landing.advance(&commits[3], &rides, "m").unwrap();
    assert_eq!(landing.take_back_unchecked(|_| true).unwrap(), 0);
    let is_closed = |issue_id: &IssueId| **issue_id == *"b";
    assert_eq!(landing.take_back_unchecked(is_closed).unwrap(), 2);
    assert_eq!(landing.tip().unwrap(), commits[2]);
}

#[test]
fn a_step_begins_below_a_batch_that_is_yet_to_close() {
    let (folder, _git, landing, commits) = three_landings(false);
    let rule = LandingRule {
        batch: 2,
        ..landing.rule().clone()
    };
    let landing = Landing::begin(rule, folder.path().to_path_buf()).unwrap();
    assert_eq!(landing.start(|_, _| false).unwrap(), commits[0]);
    let is_settled = |issue_id: &IssueId, _: &str| **issue_id == *"c";
    assert_eq!(landing.start(is_settled).unwrap(), commits[3]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "git changes the repository")]
fn one_thread_follows_two_repositories_whatever_git_does_to_them() {
    let both = [repository(), repository()];
    let landings = both
        .each_ref()
        .map(|(folder, _)| landing(folder.path(), "t").unwrap());
    let run = |folder: &Path, arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.env_clear()
            .envs(std::env::var("PATH").map(|path| ("PATH", path)));
        let done = git.arg("-C").arg(folder).args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let issue = IssueId::from("a");
    for generation in 1..4 {
        for ((folder, git), landing) in both.iter().zip(&landings) {
            let before = landing.tip().unwrap();
            let parent = Oid::from_str(&before).unwrap();
            let next = commit(git, &format!("{generation}"), &[parent]).to_string();
            landing.mark(&issue, generation, &next).unwrap();
            run(folder.path(), &["pack-refs", "--all"]);
            run(folder.path(), &["gc", "--quiet", "--prune=now"]);
            assert_eq!(landing.landed(&issue).unwrap(), None);
            assert_eq!(landing.tip().unwrap(), before);
            let advanced = landing.advance(&before, &next, "m").unwrap();
            assert_eq!(advanced, Advance::Done);
            run(folder.path(), &["repack", "-adq"]);
            run(folder.path(), &["pack-refs", "--all"]);
            assert_eq!(landing.landed(&issue).unwrap().unwrap().commit, next);
            landing.unmark(&issue);
            assert_eq!(landing.landed(&issue).unwrap(), None);
            assert!(
                git.references_glob("refs/harness/*")
                    .unwrap()
                    .next()
                    .is_none()
            );
            assert_eq!(landing.tip().unwrap(), next);
        }
    }
}
