//! What a step may have left: records that lead elsewhere, and lanes that
//! cannot be worked in.

use super::*;
use premath_memory::lane_record::LaneRecord;
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, symlink};

/// Every path below a folder, with the content of files.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(content(&path));
            found.insert(path, Vec::new());
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            found.insert(path, bytes);
        }
    }
    found
}

/// The paths at which two contents differ.
fn differing<'a>(
    before: &'a BTreeMap<PathBuf, Vec<u8>>,
    after: &'a BTreeMap<PathBuf, Vec<u8>>,
) -> BTreeSet<&'a PathBuf> {
    let paths = before.keys().chain(after.keys());
    paths
        .filter(|path| before.get(*path) != after.get(*path))
        .collect()
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

fn nest(top: &Path, depth: usize) {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
    let mut folder = rustix::fs::openat(CWD, top, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn folders_as_deep_as_work_may_be_keep_a_lane() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    // The root of the lane counts, too.
    nest(&scratch.lane(1), crate::removal::DEEPEST - 1);
    assert_eq!(scratch.ready(1), [ProvisionResult::Kept]);
}

/// Attack 1: git's record of a lane names another place, and fewer lanes are
/// wanted.
#[test]
fn a_record_of_gits_that_leads_elsewhere_removes_nothing() {
    for victim in ["repo/.git", "repo/.git/hooks", "home", "repo-lanes/mine"] {
        for is_recorded in [true, false] {
            let (scratch, git) = Scratch::new();
            let above = scratch.repository.parent().unwrap().to_path_buf();
            fs::create_dir_all(above.join("home/kept")).unwrap();
            fs::create_dir_all(&scratch.root).unwrap();
            git.worktree("mine", &scratch.root.join("mine"), None)
                .unwrap();
            scratch.ready(2);
            let place = match victim {
                "repo/.git" => above.join(victim),
                _ => above.join(victim).join(".git"),
            };
            fs::write(
                scratch.admin(2).join("gitdir"),
                format!("{}\n", place.display()),
            )
            .unwrap();
            if !is_recorded {
                fs::remove_dir_all(scratch.repository.join(".premath")).unwrap();
            }
            let before = [
                content(&scratch.repository.join(".git")),
                content(&above.join("home")),
                content(&scratch.root),
            ];
            let outcomes = scratch.provision(1).ready(|| true).unwrap();
            assert!(outcomes[0].is_lane(), "{victim}: {outcomes:?}");
            let removed = |outcome: &&LaneOutcome| outcome.result == ProvisionResult::Removed;
            assert_eq!(outcomes.iter().find(removed), None, "{victim}");
            assert!(scratch.repository.join("a.txt").exists(), "{victim}");
            let after = [
                content(&scratch.repository.join(".git")),
                content(&above.join("home")),
                content(&scratch.root),
            ];
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(differing(before, after), BTreeSet::new(), "{victim}");
            }
        }
    }
}

type Attack = (&'static str, fn(&Scratch));

/// Attack 14, and what else keeps a lane from being used.
const ATTACKS: &[Attack] = &[
    ("nested folders", |s| nest(&s.lane(1), 3_000)),
    ("its .git a folder", |s| {
        fs::remove_file(s.lane(1).join(".git")).unwrap();
        fs::create_dir_all(s.lane(1).join(".git/objects")).unwrap();
    }),
    ("its .git a link", |s| {
        fs::remove_file(s.lane(1).join(".git")).unwrap();
        symlink(s.repository.join(".git"), s.lane(1).join(".git")).unwrap();
    }),
    ("its .git a pipe", |s| pipe(&s.lane(1).join(".git"))),
    ("a pipe as HEAD", |s| pipe(&s.admin(1).join("HEAD"))),
    ("a pipe as index", |s| pipe(&s.admin(1).join("index"))),
    ("a pipe as lock", |s| {
        pipe(&s.admin(1).join("premath-lane.flock"))
    }),
    ("an endless HEAD", |s| {
        fs::remove_file(s.admin(1).join("HEAD")).unwrap();
        symlink("/dev/zero", s.admin(1).join("HEAD")).unwrap();
    }),
    ("an index of rubbish", |s| {
        fs::write(s.admin(1).join("index"), [7; 4096]).unwrap();
    }),
    ("another commondir", |s| {
        fs::write(s.admin(1).join("commondir"), "/tmp/other.git\n").unwrap();
    }),
    ("no record of git's", |s| {
        fs::remove_dir_all(s.admin(1)).unwrap()
    }),
    ("a record of git's that is a link", |s| {
        fs::remove_dir_all(s.admin(1)).unwrap();
        symlink(s.repository.join(".git"), s.admin(1)).unwrap();
    }),
    ("a link to the main worktree as its folder", |s| {
        fs::remove_dir_all(s.lane(1)).unwrap();
        symlink(&s.repository, s.lane(1)).unwrap();
    }),
    ("a file as its folder", |s| {
        fs::remove_dir_all(s.lane(1)).unwrap();
        fs::write(s.lane(1), "").unwrap();
    }),
];

fn is_usable(lane: &Path) {
    let tree = crate::tree::Tree::open(lane).unwrap();
    assert_eq!(tree.changes().unwrap(), [""; 0]);
    assert!(lane.join("a.txt").exists());
}

#[test]
fn a_lane_that_cannot_be_used_is_made_again_and_nothing_else_changes() {
    for (name, attack) in ATTACKS {
        let (scratch, git) = Scratch::new();
        scratch.ready(2);
        attack(&scratch);
        let results = scratch.ready(2);
        assert!(
            matches!(results[0], ProvisionResult::Remade(_)),
            "{name}: {results:?}"
        );
        assert_eq!(results[1..], [ProvisionResult::Kept], "{name}");
        is_usable(&scratch.lane(1));
        assert!(scratch.repository.join("a.txt").exists(), "{name}");
        assert!(git.head().is_ok(), "{name}");
        assert_eq!(
            scratch.ready(2),
            [ProvisionResult::Kept, ProvisionResult::Kept],
            "{name}"
        );
        let entries = fs::read_dir(&scratch.root).unwrap().count();
        assert_eq!(entries, 2, "{name}: what was discarded is gone");
    }
}

#[test]
fn folders_without_rights_in_a_lane_cost_the_lane_only() {
    // Root reads them all the same.
    if rustix::process::geteuid().is_root() {
        return;
    }
    for closed in [".", "closed"] {
        let (scratch, _git) = Scratch::new();
        scratch.ready(1);
        let closed = scratch.lane(1).join(closed);
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let results = scratch.ready(1);
        assert!(
            matches!(results[..], [ProvisionResult::Remade(_)]),
            "{results:?}"
        );
        is_usable(&scratch.lane(1));
        assert_eq!(fs::read_dir(&scratch.root).unwrap().count(), 1);
    }
}

#[test]
fn a_folder_of_another_process_in_a_lanes_place_stays_and_the_lane_gets_another_name() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    fs::rename(scratch.lane(1), scratch.root.join("moved")).unwrap();
    fs::create_dir(scratch.lane(1)).unwrap();
    fs::write(scratch.lane(1).join("mine.txt"), "mine").unwrap();
    let outcomes = scratch.provision(1).ready(|| true).unwrap();
    assert!(
        matches!(outcomes[0].result, ProvisionResult::Remade(_)),
        "{outcomes:?}"
    );
    let other = scratch.root.join("lane-01-2");
    assert_eq!(outcomes[0].worktree, other);
    is_usable(&other);
    assert!(scratch.lane(1).join("mine.txt").exists());
    assert!(scratch.root.join("moved/a.txt").exists());
    // Its record names it from now on, and no lane but it is removed.
    let outcomes = scratch.provision(0).ready(|| true).unwrap();
    assert!(
        outcomes
            .iter()
            .any(|o| o.worktree == other && o.result == ProvisionResult::Removed)
    );
    assert!(scratch.lane(1).join("mine.txt").exists());
    assert!(scratch.root.join("moved/a.txt").exists());
}

#[test]
fn what_a_lane_kept_for_a_person_outlives_the_lane() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    nest(&scratch.lane(1), 400);
    let salvage = scratch.admin(1).join("premath-salvage/issue/1");
    fs::create_dir_all(&salvage).unwrap();
    fs::write(salvage.join("kept"), "work").unwrap();
    fs::write(
        scratch.admin(1).join("HEAD"),
        "neither a branch nor a commit",
    )
    .unwrap();
    let results = scratch.ready(1);
    assert!(
        matches!(results[..], [ProvisionResult::Remade(_)]),
        "{results:?}"
    );
    is_usable(&scratch.lane(1));
    let kept = "premath-salvage/premath-lane-01-1/issue/1/kept";
    assert!(scratch.repository.join(".git").join(kept).exists());
}

#[test]
fn a_discarded_folder_that_a_killed_harness_left_goes_with_the_next_batch() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    let mut record = LaneRecord::read(&scratch.repository, "lane-01").unwrap();
    record.folders[0].state = premath_memory::lane_record::FolderState::Discarded;
    record.folders[0].moved_to = Some(scratch.root.join(".discarded-lane-01-1"));
    record.write(&scratch.repository).unwrap();
    fs::write(scratch.lane(1).join("left.txt"), "").unwrap();
    assert_eq!(scratch.ready(1), [ProvisionResult::Made]);
    assert!(!scratch.lane(1).join("left.txt").exists());
    is_usable(&scratch.lane(1));
}

#[test]
fn a_lane_in_use_is_neither_removed_nor_made_again() {
    let (scratch, _git) = Scratch::new();
    scratch.ready(1);
    let _held = WorktreeLock::acquire(&scratch.lane(1), Duration::ZERO).unwrap();
    nest(&scratch.lane(1), 400);
    let results = scratch.ready(1);
    assert!(
        matches!(&results[..], [ProvisionResult::Refused(why)] if why.contains("pid")),
        "{results:?}"
    );
    assert!(scratch.lane(1).join("d/d").exists());
}
