use super::error::Stop;
use super::*;
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

fn open(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).unwrap()
}

/// Puts a folder into a folder, so many times.
fn nest(top: &Path, depth: usize) {
    let mut folder = open(top);
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
}

fn guard(folders: &[&Path]) -> Guard {
    Guard::outside(folders.iter().copied()).unwrap()
}

#[test]
fn folders_nested_deeper_than_paths_and_descriptors_reach_go() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir(&target).unwrap();
    // A hundred thousand take longer to make than a test may.
    nest(&target, 5_000);
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
}

#[test]
fn wide_folders_with_folders_between_files_go() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    for number in 0..1_500 {
        let folder = target.join(format!("folder-{number}"));
        fs::create_dir_all(folder.join("empty")).unwrap();
        fs::write(folder.join("file"), "").unwrap();
        fs::write(target.join(format!("file-{number}")), "").unwrap();
    }
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
}

#[test]
fn links_are_removed_and_never_followed() {
    let (_folder, above) = scratch();
    let outside = above.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o500)).unwrap();
    let target = above.join("lane");
    fs::create_dir_all(target.join("deep")).unwrap();
    symlink(&outside, target.join("deep/folder")).unwrap();
    symlink(outside.join("kept"), target.join("file")).unwrap();
    symlink("..", target.join("up")).unwrap();
    symlink("nowhere", target.join("dangling")).unwrap();
    fs::hard_link(outside.join("kept"), target.join("hard")).unwrap();
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    let mode = fs::metadata(&outside).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o500, "a link's target keeps its mode");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_link_in_the_targets_place_goes_alone() {
    let (_folder, above) = scratch();
    let main = above.join("main");
    fs::create_dir(&main).unwrap();
    fs::write(main.join("kept"), "").unwrap();
    symlink(&main, above.join("lane")).unwrap();
    remove_owned(&above.join("lane"), &guard(&[&main])).unwrap();
    assert!(above.join("lane").symlink_metadata().is_err());
    assert!(main.join("kept").exists());
}

#[test]
fn folders_without_any_rights_go() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir_all(target.join("a/b/c")).unwrap();
    fs::write(target.join("a/b/c/file"), "").unwrap();
    for (path, mode) in [("a/b/c", 0o000), ("a/b", 0o111), ("a", 0o444), (".", 0o000)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(target.join(path), mode).unwrap();
    }
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
}

#[test]
fn pipes_sockets_and_odd_names_go() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir(&target).unwrap();
    let folder = open(&target);
    mknodat(&folder, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(target.join("socket")).unwrap();
    for name in [b"new\nline".to_vec(), vec![0xff, 0xfe], vec![b'x'; 255]] {
        fs::create_dir(target.join(OsString::from_vec(name.clone()))).unwrap();
        fs::write(target.join(OsString::from_vec(name)).join("-rf"), "content").unwrap();
    }
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
}

#[test]
fn the_guarded_folder_what_holds_it_and_what_is_in_it_are_refused() {
    let (_folder, above) = scratch();
    let main = above.join("lanes/repo");
    fs::create_dir_all(main.join("below/deeper")).unwrap();
    let guard = guard(&[&main]);
    for (path, relation) in [
        (main.clone(), "is"),
        (above.join("lanes"), "contains"),
        (main.join("below"), "is in"),
        (main.join("below/deeper"), "is in"),
    ] {
        let error = remove_owned(&path, &guard).unwrap_err();
        let RemovalError::Guarded {
            relation: found, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*found, relation, "{error}");
    }
    assert!(main.join("below/deeper").exists());
    let around = Guard::around([&*main]).unwrap();
    remove_owned(&main.join("below"), &around).unwrap();
    let error = remove_owned(&above.join("lanes"), &around).unwrap_err();
    assert!(matches!(error, RemovalError::Guarded { .. }), "{error}");
    assert!(main.exists());
}

#[test]
fn a_guarded_folder_is_recognised_where_it_was_moved_to() {
    let (_folder, above) = scratch();
    let main = above.join("main");
    fs::create_dir(&main).unwrap();
    fs::write(main.join("kept"), "").unwrap();
    let guard = guard(&[&main]);
    let target = above.join("lane");
    fs::create_dir_all(target.join("deep")).unwrap();
    fs::rename(&main, target.join("deep/main")).unwrap();
    let error = remove_owned(&target, &guard).unwrap_err();
    assert!(error.to_string().contains("contains"), "{error}");
    // The walk by itself stops there too.
    let parent = open(&above);
    let stopped = Walk::new(&guard, RemovalBounds::default())
        .remove(parent.as_fd(), OsStr::new("lane"))
        .unwrap_err();
    assert!(matches!(stopped, Stop::Guarded { .. }), "{stopped:?}");
    assert!(target.join("deep/main/kept").exists());
}

#[test]
fn a_path_is_absolute_plain_and_leads_through_no_link() {
    let (_folder, above) = scratch();
    fs::create_dir_all(above.join("real/lane")).unwrap();
    symlink(above.join("real"), above.join("alias")).unwrap();
    for path in [
        PathBuf::from("lane"),
        PathBuf::from("/"),
        PathBuf::new(),
        above.join("real/../real/lane"),
        above.join("alias/lane"),
    ] {
        let error = remove_owned(&path, &guard(&[])).unwrap_err();
        assert!(matches!(error, RemovalError::Path { .. }), "{error}");
    }
    assert!(above.join("real/lane").exists());
    remove_owned(&above.join("nowhere/lane"), &guard(&[])).unwrap();
    remove_owned(&above.join("real/other"), &guard(&[])).unwrap();
}

#[test]
fn another_mount_is_never_entered() {
    let root = node::root().unwrap();
    let at = node::Node::of(root.as_fd()).unwrap();
    let refused = node::enter(root.as_fd(), &at, OsStr::new("proc")).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::CrossesDevices);
    let refused = guard(&[]).check(Path::new("/proc"), root.as_fd(), OsStr::new("proc"));
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RemovalError::Mount { .. }), "{refused}");
}

#[test]
fn a_removal_ends_at_its_bounds_and_the_next_continues() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir(&target).unwrap();
    for number in 0..300 {
        fs::write(target.join(number.to_string()), "").unwrap();
    }
    let few = RemovalBounds {
        entries: 100,
        ..RemovalBounds::default()
    };
    let error = remove_within(&target, &guard(&[]), few).unwrap_err();
    assert!(
        matches!(error, RemovalError::Endless { removed: 100, .. }),
        "{error}"
    );
    assert_eq!(fs::read_dir(&target).unwrap().count(), 200);
    remove_owned(&target, &guard(&[])).unwrap();
    assert!(!target.exists());
}

#[test]
fn a_folder_that_grows_meanwhile_does_not_hold_it_for_ever() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir(&target).unwrap();
    let is_over = AtomicBool::new(false);
    let short = RemovalBounds {
        entries: 20_000,
        time: Duration::from_millis(300),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                let _ = fs::create_dir_all(target.join(format!("d{}", number % 7)));
                let _ = fs::write(target.join(format!("d{}/{number}", number % 7)), "");
                number += 1;
            }
        });
        // Whether it wins depends on the machine; that it ends does not.
        let outcome = remove_within(&target, &guard(&[]), short);
        is_over.store(true, Ordering::Relaxed);
        if let Err(error) = outcome {
            assert!(matches!(error, RemovalError::Endless { .. }), "{error}");
        }
    });
}

#[test]
fn an_entry_has_a_plain_name_and_may_be_missing() {
    let (_folder, above) = scratch();
    fs::create_dir_all(above.join("a/b")).unwrap();
    let folder = open(&above.join("a"));
    for name in ["", ".", "..", "b/..", "/"] {
        let error = remove_entry(folder.as_fd(), OsStr::new(name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
    }
    remove_entry(folder.as_fd(), OsStr::new("missing")).unwrap();
    remove_entry(folder.as_fd(), OsStr::new("b")).unwrap();
    assert!(!above.join("a/b").exists());
    assert!(above.join("a").exists());
}

#[test]
fn another_folder_in_the_recorded_ones_place_stays() {
    let (_folder, above) = scratch();
    let target = above.join("lane");
    fs::create_dir_all(target.join("below")).unwrap();
    let parent = open(&above);
    let Occupant::Folder(id) = occupant(parent.as_fd(), OsStr::new("lane")).unwrap() else {
        panic!("it is a folder");
    };
    fs::rename(&target, above.join("moved")).unwrap();
    fs::create_dir(&target).unwrap();
    let remove = || remove_exactly(&target, &id, &guard(&[]), RemovalBounds::default());
    let error = remove().unwrap_err();
    assert!(matches!(error, RemovalError::Stranger(_)), "{error}");
    fs::remove_dir(&target).unwrap();
    symlink(above.join("moved"), &target).unwrap();
    assert!(matches!(remove(), Err(RemovalError::Stranger(_))));
    fs::remove_file(&target).unwrap();
    remove().unwrap();
    fs::rename(above.join("moved"), &target).unwrap();
    remove().unwrap();
    assert!(!target.exists());
}
