use super::*;
use git2::{RepositoryInitOptions, Signature};
use premath_kernel::json::id::IssueId;
use std::cell::Cell;
use std::fs;
use std::path::Path;

pub(super) fn repository() -> (tempfile::TempDir, Repository) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = RepositoryInitOptions::new();
    let git = Repository::init_opts(folder.path(), options.initial_head("main")).unwrap();
    commit(&git, "first", &[]);
    (folder, git)
}

/// Makes a commit that no branch is moved for, but for the first.
pub(super) fn commit(git: &Repository, text: &str, parents: &[Oid]) -> Oid {
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

pub(super) fn landing(folder: &Path, target: &str) -> Result<Landing, LandingError> {
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
    // A mark that git packed is removed by a handle of its own.
    landing.mark(&issue, 1, &tip).unwrap();
    let mark = "refs/harness/landing/a/1";
    fs::remove_file(git.path().join(mark)).unwrap();
    let packed = format!("{tip} refs/heads/other\n{tip} {mark}\n");
    fs::write(git.path().join("packed-refs"), packed).unwrap();
    landing.unmark(&issue);
    assert!(is_kept());
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
        landing
            .take_back(std::slice::from_ref(&ours), &"s".into(), None)
            .unwrap(),
        Undone::Reset
    );
    assert_eq!(landing.tip().unwrap(), before);

    landing.advance(&before, &ours, "m").unwrap();
    let theirs = put("theirs", "1", &ours);
    landing.advance(&ours, &theirs, "m").unwrap();
    let Undone::Reverted(revert) = landing
        .take_back(std::slice::from_ref(&ours), &"s".into(), None)
        .unwrap()
    else {
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
    landing.sweep_marks(|_| None, |_| Some(1));
    assert!(git.find_reference("refs/harness/landing/a/1").is_err());
    assert!(git.find_reference("refs/harness/landing/b/1").is_ok());

    let second = put("ours", "2", &revert);
    landing.advance(&revert, &second, "m").unwrap();
    let upon = put("ours", "3", &second);
    landing.advance(&second, &upon, "m").unwrap();
    assert_eq!(
        landing
            .take_back(std::slice::from_ref(&second), &"s".into(), None)
            .unwrap(),
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
    let Undone::Reverted(revert) = landing
        .take_back(std::slice::from_ref(&ours), &"s".into(), None)
        .unwrap()
    else {
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
