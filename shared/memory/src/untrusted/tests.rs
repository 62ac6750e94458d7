//! Attack 13 and its kin: what a step puts in the place of a file.

use super::*;
use rustix::fs::{CWD, FileType, mknodat};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Scratch {
    root: tempfile::TempDir,
    folder: UntrustedFolder,
}

fn scratch() -> Scratch {
    let root = tempfile::tempdir().unwrap();
    let folder = UntrustedFolder::make(root.path(), Path::new(".premath/step")).unwrap();
    fs::write(root.path().join("kept"), "kept").unwrap();
    Scratch { root, folder }
}

impl Scratch {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Nothing beside the folder was changed.
    fn is_whole(&self) {
        let kept = fs::read_to_string(self.root.path().join("kept")).unwrap();
        assert_eq!(kept, "kept");
        assert!(
            fs::symlink_metadata(self.root.path().join("kept"))
                .unwrap()
                .is_file()
        );
    }
}

/// What replaces a file, made without a file of its own.
fn node(path: &Path, kind: FileType) {
    mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let scratch = scratch();
    let folder = &scratch.folder;
    assert!(folder.read("none", 10).unwrap().is_none());
    node(&scratch.at("pipe"), FileType::Fifo);
    fs::create_dir(scratch.at("folder")).unwrap();
    symlink("/dev/zero", scratch.at("zero")).unwrap();
    symlink("../../kept", scratch.at("link")).unwrap();
    symlink("gone", scratch.at("dangling")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(scratch.at("socket")).unwrap();
    for (name, expected) in [
        ("pipe", "is a pipe"),
        ("folder", "is a folder"),
        ("zero", "is a link"),
        ("link", "is a link"),
        ("dangling", "is a link"),
        ("socket", "is a socket"),
    ] {
        let error = folder.read(name, 10).unwrap_err();
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }
    fs::hard_link(scratch.root.path().join("kept"), scratch.at("hard")).unwrap();
    let error = folder.read("hard", 10).unwrap_err();
    assert!(
        matches!(error, UntrustedError::Linked { links: 2, .. }),
        "{error}"
    );
}

#[test]
fn a_file_is_read_up_to_its_bound_and_no_further() {
    let scratch = scratch();
    fs::write(scratch.at("ten"), "0123456789").unwrap();
    assert_eq!(
        scratch.folder.read("ten", 10).unwrap().unwrap(),
        b"0123456789"
    );
    let error = scratch.folder.read("ten", 9).unwrap_err();
    assert!(matches!(error, UntrustedError::TooLarge { limit: 9, .. }));
    // Terabytes that take no room.
    let sparse = File::create(scratch.at("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let error = scratch.folder.read("sparse", EVIDENCE_MAX).unwrap_err();
    assert!(matches!(error, UntrustedError::TooLarge { .. }));
}

#[test]
fn a_name_leads_nowhere_but_into_the_folder() {
    let scratch = scratch();
    for name in ["../../kept", "..", ".", "", "/etc/passwd", "a/b", "a\0b"] {
        assert!(scratch.folder.read(name, 10).is_err(), "{name:?}");
        assert!(scratch.folder.write(name, b"x", 0o600).is_err(), "{name:?}");
        assert!(scratch.folder.remove(name).is_err(), "{name:?}");
    }
    scratch.is_whole();
}

#[test]
fn a_file_is_written_in_the_place_of_whatever_is_there() {
    for write in [UntrustedFolder::write, UntrustedFolder::write_copy] {
        let scratch = scratch();
        symlink("../../kept", scratch.at("link")).unwrap();
        node(&scratch.at("pipe"), FileType::Fifo);
        fs::create_dir_all(scratch.at("folder/deep")).unwrap();
        fs::write(scratch.at("folder/deep/x"), "x").unwrap();
        fs::hard_link(scratch.root.path().join("kept"), scratch.at("hard")).unwrap();
        fs::write(scratch.at("old"), "longer than ours").unwrap();
        for name in ["new", "link", "pipe", "folder", "hard", "old"] {
            write(&scratch.folder, name, b"ours", 0o640).unwrap();
            let meta = fs::symlink_metadata(scratch.at(name)).unwrap();
            assert!(meta.is_file(), "{name}");
            assert_eq!(meta.permissions().mode() & 0o777, 0o640, "{name}");
            assert_eq!(scratch.folder.read(name, 9).unwrap().unwrap(), b"ours");
        }
        scratch.is_whole();
        assert_eq!(fs::read_dir(scratch.folder.path()).unwrap().count(), 6);
    }
}

#[test]
fn what_is_removed_takes_nothing_outside_with_it() {
    let scratch = scratch();
    let outside = scratch.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "x").unwrap();
    symlink(&outside, scratch.at("link")).unwrap();
    fs::create_dir(scratch.at("folder")).unwrap();
    symlink(&outside, scratch.at("folder/link")).unwrap();
    fs::create_dir(scratch.at("folder/closed")).unwrap();
    fs::write(scratch.at("folder/closed/x"), "x").unwrap();
    fs::set_permissions(
        scratch.at("folder/closed"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    scratch.folder.remove("link").unwrap();
    scratch.folder.remove("none").unwrap();
    scratch.folder.clear().unwrap();
    assert_eq!(fs::read_dir(scratch.folder.path()).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "x");
}

/// Attack 14: folders nested deeper than a path can be long.
#[test]
fn folders_of_any_depth_are_removed() {
    let scratch = scratch();
    let mut at = UntrustedFolder::make(scratch.folder.path(), Path::new("d")).unwrap();
    let name = CString::new("n".repeat(200)).unwrap();
    for _ in 0..300 {
        let folder = make_folder(&at.folder, &name).unwrap();
        at.folder = folder;
    }
    at.write("x", b"x", 0o600).unwrap();
    scratch.folder.remove("d").unwrap();
    assert_eq!(fs::read_dir(scratch.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_link_on_the_way_to_the_folder_is_not_followed() {
    let scratch = scratch();
    let root = scratch.root.path();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("step")).unwrap();
    fs::rename(root.join(".premath"), root.join("moved")).unwrap();
    symlink(outside.path(), root.join(".premath")).unwrap();
    let below = Path::new(".premath/step");
    UntrustedFolder::open(root, below).unwrap_err();
    let made = UntrustedFolder::make(root, below).unwrap();
    made.write("x", b"x", 0o600).unwrap();
    assert!(root.join(".premath/step/x").exists());
    assert_eq!(
        fs::read_dir(outside.path().join("step")).unwrap().count(),
        0
    );
    fs::remove_dir_all(root.join(".premath/step")).unwrap();
    symlink(outside.path(), root.join(".premath/step")).unwrap();
    UntrustedFolder::open(root, below).unwrap_err();
}

#[test]
fn a_file_below_a_root_is_read_through_no_link_on_the_way() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir_all(root.path().join("artifacts/streams")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    for folder in ["artifacts/streams", "elsewhere"] {
        fs::write(root.path().join(folder).join("a"), "text").unwrap();
    }
    let file = root.path().join("artifacts/streams/a");
    assert_eq!(
        read_file(root.path(), &file, 9).as_deref(),
        Some(&b"text"[..])
    );
    assert_eq!(read_end(root.path(), &file, 2).as_deref(), Some(&b"xt"[..]));
    fs::remove_dir_all(root.path().join("artifacts/streams")).unwrap();
    symlink(&elsewhere, root.path().join("artifacts/streams")).unwrap();
    assert!(file.exists());
    assert_eq!(read_file(root.path(), &file, 9), None);
    assert_eq!(read_end(root.path(), &file, 2), None);
}
