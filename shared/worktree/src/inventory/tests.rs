use super::*;
use git2::{RepositoryInitOptions, Signature};
use premath_kernel::policy::inventory::{GitLockFile, LaneLockState, Thing};
use std::fs;

fn repository() -> (tempfile::TempDir, Repository) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = RepositoryInitOptions::new();
    let root = folder.path().join("main");
    let git = Repository::init_opts(root, options.initial_head("main")).unwrap();
    let first = commit(&git, "first", &[]);
    git.reference("refs/heads/main", first, true, "test")
        .unwrap();
    (folder, git)
}

fn commit(git: &Repository, text: &str, parents: &[Oid]) -> Oid {
    let author = Signature::now("t", "t@localhost").unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let parents: Vec<_> = parents
        .iter()
        .map(|id| git.find_commit(*id).unwrap())
        .collect();
    let parents: Vec<_> = parents.iter().collect();
    git.commit(None, &author, &author, text, &tree, &parents)
        .unwrap()
}

fn inventory(git: &Repository) -> Inventory {
    Inventory::open(git.workdir().unwrap()).unwrap()
}

fn find(git: &Repository) -> Findings {
    let inventory = inventory(git);
    let targets = inventory.targets(&BTreeSet::new());
    inventory.find(&targets, Vec::new()).unwrap()
}

fn tip(git: &Repository) -> Oid {
    git.head().unwrap().target().unwrap()
}

#[test]
fn what_holds_a_step_is_the_target_then_any_other_than_a_step() {
    let (_folder, git) = repository();
    let next = commit(&git, "next", &[tip(&git)]);
    let point = |name: &str| {
        git.reference(&format!("refs/{name}"), next, true, "test")
            .unwrap();
    };
    let holder = || {
        let found = find(&git);
        let mut branches = found.branches.into_iter();
        let branch = branches.find(|branch| branch.name == "harness/a/1");
        branch.unwrap().held_by
    };
    point("heads/harness/a/1");
    assert_eq!(holder(), None);
    point("heads/harness/a/1.2");
    point("harness/landing/a/1");
    assert_eq!(holder(), None);
    for (name, expected) in [
        ("heads/harness/salvage/a/1", "harness/salvage/a/1"),
        ("tags/v1", "v1"),
        ("remotes/origin/x", "origin/x"),
        ("heads/a-branch", "a-branch"),
        ("heads/harness/integration", "harness/integration"),
    ] {
        point(name);
        assert_eq!(holder().as_deref(), Some(expected));
    }
}

#[test]
fn a_branch_or_mark_that_moved_stays() {
    let (_folder, git) = repository();
    let (old, new) = (tip(&git), commit(&git, "next", &[tip(&git)]));
    let inventory = inventory(&git);
    let branch = |tip: Oid| Thing::Branch {
        name: "harness/a/1".to_owned(),
        tip: tip.to_string(),
    };
    let mark = |tip: Oid| Thing::Mark {
        name: "refs/harness/landing/a/1".to_owned(),
        tip: tip.to_string(),
    };
    for name in ["refs/heads/harness/a/1", "refs/harness/landing/a/1"] {
        git.reference(name, new, true, "test").unwrap();
    }
    for thing in [branch(old), mark(old)] {
        let error = inventory.remove(&thing).unwrap_err();
        assert!(matches!(error, InventoryError::Changed { .. }), "{error}");
    }
    for thing in [branch(new), mark(new)] {
        inventory.remove(&thing).unwrap();
        // Another process was faster.
        inventory.remove(&thing).unwrap();
    }
    assert!(git.find_reference("refs/heads/harness/a/1").is_err());
    assert!(git.find_reference("refs/harness/landing/a/1").is_err());
}

#[test]
fn a_branch_that_is_checked_out_since_stays() {
    let (folder, git) = repository();
    let lane = folder.path().join("lane");
    git.worktree("lane", &lane, None).unwrap();
    let thing = Thing::Branch {
        name: "lane".to_owned(),
        tip: tip(&git).to_string(),
    };
    assert!(inventory(&git).remove(&thing).is_err());
    assert!(git.find_reference("refs/heads/lane").is_ok());
}

#[test]
fn a_worktree_that_came_back_stays_registered() {
    let (folder, git) = repository();
    let lane = folder.path().join("lane");
    git.worktree("lane", &lane, None).unwrap();
    let thing = Thing::Registration("lane".to_owned());
    assert!(inventory(&git).remove(&thing).is_err());
    fs::remove_dir_all(&lane).unwrap();
    git.find_worktree("lane").unwrap().lock(None).unwrap();
    assert!(inventory(&git).remove(&thing).is_err());
    git.find_worktree("lane").unwrap().unlock().unwrap();
    inventory(&git).remove(&thing).unwrap();
    assert!(git.find_worktree("lane").is_err());
    inventory(&git).remove(&thing).unwrap();
}

#[test]
fn a_lock_that_was_touched_since_stays() {
    let (_folder, git) = repository();
    let path = git.path().join("packed-refs.lock");
    fs::write(&path, "").unwrap();
    let found = find(&git).locks;
    let [lock] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(lock.is_shared && lock.path == path);
    let earlier = GitLockFile {
        at: lock.at - jiff::SignedDuration::from_secs(9),
        ..lock.clone()
    };
    assert!(inventory(&git).remove(&Thing::Lock(earlier)).is_err());
    inventory(&git).remove(&Thing::Lock(lock.clone())).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_registration_without_its_parts_is_listed() {
    let (folder, git) = repository();
    let lane = folder.path().join("lane");
    git.worktree("lane", &lane, None).unwrap();
    let admin = git.path().join("worktrees/lane");
    let lane = fs::canonicalize(lane).unwrap();
    let look = || {
        let mut worktrees = find(&git).worktrees;
        assert_eq!((worktrees.len(), &worktrees[0].name), (2, &None));
        worktrees.remove(1)
    };
    let found = look();
    assert_eq!((&found.path, found.is_there), (&lane, true));
    assert_eq!(found.head, Head::Branch("lane".to_owned()));
    assert_eq!(found.lane, LaneLockState::Never);
    // As newer gits may write it.
    fs::write(admin.join("gitdir"), "../../../../lane/.git\n").unwrap();
    assert_eq!((look().path, look().is_there), (lane, true));
    fs::remove_file(admin.join("HEAD")).unwrap();
    assert!(matches!(look().head, Head::Unreadable(_)));
    fs::remove_file(admin.join("gitdir")).unwrap();
    assert!(matches!(look().head, Head::Unreadable(_)));
}

#[test]
fn the_commits_of_closed_issues_are_looked_for_on_their_targets() {
    let (_folder, git) = repository();
    let first = tip(&git);
    let (next, other) = (
        commit(&git, "next", &[first]),
        commit(&git, "other", &[first]),
    );
    git.reference("refs/heads/t", next, true, "test").unwrap();
    let closed = |issue: &str, target: &str, commit: &str| {
        let record = LandingRecord {
            target: target.to_owned(),
            commit: commit.to_owned(),
        };
        (issue.to_owned(), record)
    };
    let inventory = inventory(&git);
    let targets = inventory.targets(&["t", "gone"].map(str::to_owned).into());
    assert_eq!(targets["gone"], None);
    let found = inventory.find(
        &targets,
        vec![
            closed("f", "t", "nonsense"),
            closed("e", "gone", &next.to_string()),
            closed("d", "gone", &first.to_string()),
            closed("c", "t", &other.to_string()),
            closed("b", "t", &next.to_string()),
            closed("a", "t", &first.to_string()),
        ],
    );
    let landings = found.unwrap().landings;
    let places: Vec<_> = landings
        .iter()
        .map(|landed| (landed.issue.as_str(), landed.place))
        .collect();
    assert_eq!(
        places,
        [
            ("a", LandedPlace::Target),
            ("b", LandedPlace::Target),
            ("c", LandedPlace::Missing),
            ("d", LandedPlace::Head),
            ("e", LandedPlace::Missing),
            ("f", LandedPlace::Missing),
        ]
    );
}

/// Attack 2: a link in the harness's places leads to a person's files.
#[test]
fn links_in_our_places_lead_no_removal_elsewhere() {
    use std::os::unix::fs::symlink;
    let (folder, git) = repository();
    let above = fs::canonicalize(folder.path()).unwrap();
    let mine = above.join("mine");
    fs::create_dir_all(mine.join("project/src")).unwrap();
    fs::write(mine.join("project/src/main.rs"), "mine").unwrap();
    fs::write(mine.join("Cargo.lock"), "mine").unwrap();
    let common = above.join("main/.git");
    symlink(&mine, common.join("premath-salvage")).unwrap();
    symlink(&mine, common.join("refs/harness")).unwrap();
    let found = find(&git);
    assert_eq!(found.salvage, [], "nothing behind a link is listed");
    assert_eq!(found.locks, []);
    // Also where it was a folder when it was listed.
    let lock = common.join("refs/harness/Cargo.lock");
    let at = super::lock::touched(&lock).unwrap();
    let things = [
        Thing::Salvage(common.join("premath-salvage/project/src")),
        Thing::Salvage(mine.join("project/src")),
        Thing::Files(vec![common.join("premath-salvage/project")]),
        Thing::Files(vec![above.join("main")]),
        Thing::Files(vec![common.clone()]),
        Thing::Lock(GitLockFile {
            path: lock,
            at,
            is_shared: false,
        }),
        Thing::Branch {
            name: "main".to_owned(),
            tip: tip(&git).to_string(),
        },
        Thing::Mark {
            name: "refs/heads/main".to_owned(),
            tip: tip(&git).to_string(),
        },
    ];
    let inventory = inventory(&git);
    for thing in things {
        assert!(inventory.remove(&thing).is_err(), "{thing:?}");
    }
    assert_eq!(
        fs::read_to_string(mine.join("project/src/main.rs")).unwrap(),
        "mine"
    );
    assert!(mine.join("Cargo.lock").exists());
    assert!(git.head().is_ok());
}
