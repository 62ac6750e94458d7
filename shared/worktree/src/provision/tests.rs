mod hostile;

use super::*;
use git2::{RepositoryInitOptions, Signature};
use premath_kernel::policy::program::Absence;
use premath_memory::WorktreeLock;
use premath_memory::roots::LaneState;
use std::os::unix::fs::MetadataExt;

struct Scratch {
    _folder: tempfile::TempDir,
    repository: PathBuf,
    root: PathBuf,
}

impl Scratch {
    fn new() -> (Self, Repository) {
        let folder = tempfile::tempdir().unwrap();
        let above = fs::canonicalize(folder.path()).unwrap();
        let repository = above.join("repo");
        let mut options = RepositoryInitOptions::new();
        let git = Repository::init_opts(&repository, options.initial_head("main")).unwrap();
        fs::write(repository.join("a.txt"), "a\n").unwrap();
        let mut index = git.index().unwrap();
        index.add_path(Path::new("a.txt")).unwrap();
        let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        git.commit(Some("HEAD"), &author, &author, "first", &tree, &[])
            .unwrap();
        drop(tree);
        let root = above.join("repo-lanes");
        let scratch = Self {
            _folder: folder,
            repository,
            root,
        };
        (scratch, git)
    }

    fn provision(&self, count: usize) -> Provision {
        Provision {
            repository: self.repository.clone(),
            root: self.root.clone(),
            count,
            spare: Vec::new(),
            target: Some("harness/integration".to_owned()),
        }
    }

    fn ready(&self, count: usize) -> Vec<ProvisionResult> {
        let outcomes = self.provision(count).ready(|| true).unwrap();
        outcomes.into_iter().map(|outcome| outcome.result).collect()
    }

    fn lane(&self, number: usize) -> PathBuf {
        self.root.join(format!("lane-{number:02}"))
    }

    fn admin(&self, number: usize) -> PathBuf {
        let name = format!(".git/worktrees/premath-lane-{number:02}");
        self.repository.join(name)
    }
}

#[test]
fn a_repository_without_a_commit_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let above = fs::canonicalize(folder.path()).unwrap();
    Repository::init(above.join("repo")).unwrap();
    let provision = Provision {
        repository: above.join("repo"),
        root: above.join("lanes"),
        count: 1,
        spare: Vec::new(),
        target: None,
    };
    let error = provision.ready(|| true).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("create one for attempts to start from"),
        "{error}: {hint}"
    );
}

#[test]
fn lanes_are_made_once_and_are_on_no_branch() {
    let (scratch, git) = Scratch::new();
    assert_eq!(
        scratch.ready(2),
        [ProvisionResult::Made, ProvisionResult::Made]
    );
    assert_eq!(
        scratch.ready(2),
        [ProvisionResult::Kept, ProvisionResult::Kept]
    );
    for number in [1, 2] {
        let lane = Repository::open(scratch.lane(number)).unwrap();
        assert!(lane.head_detached().unwrap());
        assert!(scratch.lane(number).join("a.txt").exists());
    }
    let branches = git.branches(None).unwrap().count();
    assert_eq!(branches, 1, "only main");
}

#[test]
fn a_lane_whose_work_does_not_land_has_a_branch() {
    let (scratch, git) = Scratch::new();
    let provision = Provision {
        target: None,
        ..scratch.provision(1)
    };
    provision.ready(|| true).unwrap();
    let lane = Repository::open(scratch.lane(1)).unwrap();
    let on = "refs/heads/harness-lane/lane-01";
    assert_eq!(lane.head().unwrap().name(), Ok(on));
    // It goes with the change to work that lands, and comes back.
    assert_eq!(scratch.ready(1), [ProvisionResult::Kept]);
    assert!(git.find_reference(on).is_err());
    provision.ready(|| true).unwrap();
    assert_eq!(lane.head().unwrap().name(), Ok(on));
}

/// A lane whose work did not land, with a commit on its branch, which it left.
fn with_work_on_its_branch() -> (Scratch, Repository, Oid) {
    let (scratch, git) = Scratch::new();
    without_landing(&scratch).ready(|| true).unwrap();
    let lane = Repository::open(scratch.lane(1)).unwrap();
    let head = lane.head().unwrap().peel_to_commit().unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let tree = head.tree().unwrap();
    let closed = lane
        .commit(Some("HEAD"), &author, &author, "closed", &tree, &[&head])
        .unwrap();
    // Where work lands the lane is on no branch, and at the target.
    assert_eq!(scratch.ready(1), [ProvisionResult::Kept]);
    lane.set_head_detached(head.id()).unwrap();
    (scratch, git, closed)
}

fn without_landing(scratch: &Scratch) -> Provision {
    Provision {
        target: None,
        ..scratch.provision(1)
    }
}

#[test]
fn the_branch_of_a_lane_outlives_it_where_no_other_branch_has_its_work() {
    let (scratch, git, closed) = with_work_on_its_branch();
    assert_eq!(scratch.ready(0), [ProvisionResult::Removed]);
    assert!(!scratch.lane(1).exists());
    let branch = "refs/heads/harness-lane/lane-01";
    let branch = git.find_reference(branch).unwrap();
    assert_eq!(branch.target(), Some(closed));
}

#[test]
fn what_the_branch_of_a_lane_had_is_kept_when_it_moves() {
    let (scratch, git, closed) = with_work_on_its_branch();
    without_landing(&scratch).ready(|| true).unwrap();
    let branch = git.find_reference("refs/heads/harness-lane/lane-01");
    assert_ne!(branch.unwrap().target(), Some(closed));
    let kept = closed.to_string();
    let kept = format!("refs/heads/harness/salvage/harness-lane/lane-01/{kept:.10}");
    let kept = git.find_reference(&kept).unwrap();
    assert_eq!(kept.target(), Some(closed));
}

#[test]
fn a_lane_begins_at_the_target_where_it_is_there() {
    let (scratch, git) = Scratch::new();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let tree = git.treebuilder(None).unwrap().write().unwrap();
    let tree = git.find_tree(tree).unwrap();
    let target = "refs/heads/harness/integration";
    let tip = git
        .commit(None, &author, &author, "next", &tree, &[&head])
        .unwrap();
    git.reference(target, tip, false, "t").unwrap();
    scratch.ready(1);
    let lane = Repository::open(scratch.lane(1)).unwrap();
    assert_eq!(lane.head().unwrap().target(), Some(tip));
    assert!(!scratch.lane(1).join("a.txt").exists());
}

#[test]
fn what_is_out_of_order_is_distinguished_and_repaired() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(3);
    fs::remove_dir_all(scratch.lane(1)).unwrap();
    fs::remove_file(scratch.lane(2).join(".git")).unwrap();
    fs::write(scratch.admin(3).join("HEAD"), "ref: refs/heads/nowhere\n").unwrap();
    assert_eq!(
        scratch.ready(3),
        [
            ProvisionResult::Repaired("its folder was gone"),
            ProvisionResult::Repaired("its .git file was not that of this repository"),
            ProvisionResult::Repaired("its HEAD was at no commit"),
        ]
    );
    fs::write(scratch.admin(3).join("HEAD"), "rubbish").unwrap();
    fs::write(scratch.lane(2).join(".git"), "gitdir: elsewhere\n").unwrap();
    assert_eq!(
        scratch.ready(3)[1..],
        [
            ProvisionResult::Repaired("its .git file was not that of this repository"),
            ProvisionResult::Repaired("its HEAD was at no commit"),
        ]
    );
    assert_eq!(
        scratch.ready(3),
        [
            ProvisionResult::Kept,
            ProvisionResult::Kept,
            ProvisionResult::Kept
        ]
    );
    for number in 1..=3 {
        let tree = crate::tree::Tree::open(&scratch.lane(number)).unwrap();
        assert_eq!(tree.changes().unwrap(), [""; 0], "{number}");
    }
}

#[test]
fn a_strangers_folder_is_refused_alone_and_a_locked_record_stays() {
    let (scratch, git) = Scratch::new();
    scratch.ready(1);
    git.find_worktree("premath-lane-01")
        .unwrap()
        .lock(Some("on a stick"))
        .unwrap();
    fs::remove_dir_all(scratch.lane(1)).unwrap();
    fs::create_dir_all(scratch.lane(2)).unwrap();
    fs::write(scratch.lane(2).join("mine.txt"), "mine").unwrap();
    fs::create_dir_all(scratch.lane(3)).unwrap();
    let results = scratch.ready(3);
    // The locked record of git's stays; the lane has another one.
    assert_eq!(results[0], ProvisionResult::Repaired("its folder was gone"));
    assert!(scratch.admin(1).join("locked").exists());
    assert!(matches!(&results[1], ProvisionResult::Refused(why) if why.contains("move it away")));
    assert_eq!(results[2], ProvisionResult::Made);
    assert!(scratch.lane(2).join("mine.txt").exists());
}

#[test]
fn what_is_too_many_goes_unless_it_holds_work() {
    let (scratch, git) = Scratch::new();
    // A user's worktree in the same folder is left alone.
    fs::create_dir_all(&scratch.root).unwrap();
    git.worktree("mine", &scratch.root.join("mine"), None)
        .unwrap();
    scratch.ready(5);
    fs::write(scratch.lane(3).join("b.txt"), "b\n").unwrap();
    let lane = Repository::open(scratch.lane(4)).unwrap();
    let head = lane.head().unwrap().peel_to_commit().unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let tree = head.tree().unwrap();
    lane.commit(Some("HEAD"), &author, &author, "own", &tree, &[&head])
        .unwrap();
    let held = WorktreeLock::acquire(&scratch.lane(5), Duration::ZERO).unwrap();
    let results = scratch.ready(1);
    let reason = |result: &ProvisionResult| match result {
        ProvisionResult::Surplus(why) => why.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(results[0], ProvisionResult::Kept);
    assert_eq!(results[1], ProvisionResult::Removed);
    assert_eq!(reason(&results[2]), "it holds changes, such as b.txt");
    assert_eq!(reason(&results[3]), "it holds commits that no branch has");
    assert!(reason(&results[4]).contains("pid"), "{results:?}");
    drop(held);
    assert_eq!(scratch.ready(1).len(), 4);
    assert!(!scratch.lane(2).exists() && !scratch.lane(5).exists());
    assert!(scratch.root.join("mine").exists());
}

#[test]
fn the_checkout_for_verifications_of_a_lane_that_is_too_many_goes_with_it() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(2);
    let states = [1, 2].map(|number| LaneState::at(&scratch.repository, &scratch.lane(number)));
    for state in &states {
        state.prepare().unwrap();
        for folder in [&state.checkout, &state.changes] {
            fs::create_dir_all(folder.join("below")).unwrap();
        }
    }
    assert_eq!(
        scratch.ready(1),
        [ProvisionResult::Kept, ProvisionResult::Removed]
    );
    for (state, stays) in states.iter().zip([true, false]) {
        for folder in [&state.checkout, &state.changes, &state.folder] {
            assert_eq!(folder.exists(), stays, "{}", folder.display());
        }
    }
}

#[test]
fn a_spare_lane_is_made_on_demand_and_stays_as_long_as_it_is_asked_for() {
    let (scratch, _git) = Scratch::new();
    let provision = Provision {
        spare: vec![2, 3],
        ..scratch.provision(1)
    };
    assert_eq!(provision.ready(|| true).unwrap().len(), 1);
    let another = provision.another(2, || true).unwrap();
    assert_eq!(another.result, ProvisionResult::Made);
    assert_eq!(another.worktree, scratch.lane(2));
    let outcomes = provision.ready(|| true).unwrap();
    let results: Vec<_> = outcomes.into_iter().map(|lane| lane.result).collect();
    assert_eq!(results, [ProvisionResult::Kept, ProvisionResult::Kept]);
    assert_eq!(
        scratch.ready(1),
        [ProvisionResult::Kept, ProvisionResult::Removed]
    );
}

#[test]
fn a_file_that_no_commit_has_is_absent_from_lanes() {
    let (scratch, _git) = Scratch::new();
    fs::write(scratch.repository.join(".gitignore"), "built/\n").unwrap();
    for path in ["agent.sh", "tools/agent.sh", "built/agent"] {
        let path = scratch.repository.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    for (path, expected) in [
        ("a.txt", None),
        ("nowhere.sh", None),
        ("agent.sh", Some(Absence::Uncommitted)),
        ("tools/agent.sh", Some(Absence::Uncommitted)),
        ("built/agent", Some(Absence::Ignored)),
    ] {
        let found = scratch.provision(1).absence_of(Path::new(path)).unwrap();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn lanes_inside_the_checkout_are_refused() {
    let (scratch, _git) = Scratch::new();
    let provision = Provision {
        root: scratch.repository.join("lanes"),
        ..scratch.provision(1)
    };
    let error = provision.ready(|| true).unwrap_err();
    assert!(matches!(error, ProvisionError::Inside(_)), "{error}");
    assert!(error.hint().is_some());
    let made = scratch.repository.join("lanes");
    assert!(!made.exists(), "what is refused leaves nothing");
}

#[test]
fn a_worktree_for_others_leaves_the_repository_s_own_lanes_alone_and_has_one_holder() {
    let (scratch, git) = Scratch::new();
    scratch.ready(2);
    let elsewhere = Provision {
        root: scratch.root.with_file_name("repo-worlds"),
        ..scratch.provision(0)
    };
    let single = elsewhere.single("other-01", Duration::ZERO).unwrap();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    assert_eq!(single.start, head.id().to_string());
    assert!(single.worktree.join("a.txt").exists());
    let lane = Repository::open(&single.worktree).unwrap();
    assert!(lane.head_detached().unwrap());
    let busy = elsewhere.single("other-01", Duration::ZERO).unwrap_err();
    assert!(matches!(busy, SingleError::Lock(_)), "{busy}");
    let second = elsewhere.single("other-02", Duration::ZERO).unwrap();
    assert_ne!(second.worktree, single.worktree);
    // What is below another root is not one too many.
    assert_eq!(
        scratch.ready(2),
        [ProvisionResult::Kept, ProvisionResult::Kept]
    );
    let path = single.worktree.clone();
    drop(single);
    fs::remove_file(path.join(".git")).unwrap();
    let again = elsewhere.single("other-01", Duration::ZERO).unwrap();
    assert_eq!(again.worktree, path);
    assert!(path.join(".git").exists());
    drop(again);
    // A link that leads to another worktree is mended, and so is whose lock it is.
    fs::copy(scratch.lane(1).join(".git"), path.join(".git")).unwrap();
    let mended = elsewhere.single("other-01", Duration::ZERO).unwrap();
    WorktreeLock::acquire(&scratch.lane(1), Duration::ZERO).unwrap();
    assert!(WorktreeLock::acquire(&path, Duration::ZERO).is_err());
    drop(mended);
}

#[test]
fn a_git_file_is_written_only_while_no_other_process_works_in_the_lane() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    let lock = WorktreeLock::acquire(&scratch.lane(1), Duration::ZERO).unwrap();
    // As where a step sees a git folder of its own without a mount.
    let own = scratch.root.with_file_name("private.git");
    Repository::init_bare(&own).unwrap();
    let link = scratch.lane(1).join(".git");
    let text = format!("gitdir: {}\n", own.display());
    fs::write(&link, &text).unwrap();
    // It is not given out: what opens it would open what a step wrote.
    let results = scratch.ready(1);
    assert!(
        matches!(&results[..], [ProvisionResult::Refused(why)]
            if why.contains("cannot be put right") && why.contains("pid")),
        "{results:?}"
    );
    assert_eq!(fs::read_to_string(&link).unwrap(), text);
    // A harness that follows one that died waits until its commands have ended.
    let lock_file = scratch.admin(1).join("premath-lane.flock");
    let results = std::thread::scope(|scope| {
        let follower = scope.spawn(|| scratch.ready(1));
        while !is_waited_for(&lock_file) && !follower.is_finished() {
            std::thread::yield_now();
        }
        drop(lock);
        follower.join().unwrap()
    });
    let said = "its .git file was not that of this repository";
    assert_eq!(results, [ProvisionResult::Repaired(said)]);
}

/// Returns whether a thread waits for the lock of a file, as the kernel says.
fn is_waited_for(file: &Path) -> bool {
    let inode = format!(":{}", fs::metadata(file).unwrap().ino());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let mut waits = locks.lines().filter(|line| line.contains("->"));
    waits.any(|line| line.split_whitespace().any(|word| word.ends_with(&inode)))
}

#[test]
fn a_place_that_is_foreign_is_refused() {
    let (scratch, _git) = Scratch::new();
    fs::create_dir_all(scratch.root.join("other-01")).unwrap();
    fs::write(scratch.root.join("other-01/mine.txt"), "mine").unwrap();
    let refused = scratch.provision(0).single("other-01", Duration::ZERO);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("move it away"), "{refused}");
}

#[test]
fn between_two_lanes_it_may_end_and_nothing_is_removed() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(3);
    let asked = std::cell::Cell::new(0);
    let twice = || asked.replace(asked.get() + 1) < 2;
    let error = scratch.provision(5).ready(twice).unwrap_err();
    let said = "only 2 of 5 lanes exist; they are kept for the next batch";
    assert_eq!(error.to_string(), said);
    assert_eq!(
        scratch.ready(5)[2..],
        [
            ProvisionResult::Kept,
            ProvisionResult::Made,
            ProvisionResult::Made
        ]
    );
}
