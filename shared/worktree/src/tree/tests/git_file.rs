//! The `.git` file of a linked worktree, whatever a step puts in its place.

use super::lane::Lane;
use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn a_link_to_the_git_folder_that_was_lost_is_put_back() {
    let lane = Lane::new();
    let link = fs::read(lane.at(".git")).unwrap();
    fs::remove_file(lane.at(".git")).unwrap();
    assert_eq!(lane.left(), "");
    fs::remove_file(lane.at(".git")).unwrap();
    // In a worktree of the operator's own a folder is not deleted.
    Repository::init(lane.at("")).unwrap();
    let error = lane.tree.take_back(&lane.base, 1, &TEXT, None).unwrap_err();
    assert!(error.to_string().contains("a folder `.git`"), "{error}");
    assert!(lane.at(".git/HEAD").exists());
    fs::write(lane.tree.git_folder().join("premath-provisioned"), "").unwrap();
    assert_eq!(lane.left(), "");
    let now = fs::read(lane.at(".git")).unwrap();
    assert_eq!(now.strip_suffix(b"\n"), link.strip_suffix(b"/\n"));
}

#[test]
fn only_a_plain_link_to_the_git_folder_is_written_over() {
    type Change = fn(&Path, &Path);
    let changes: [(&str, bool, Change); 8] = [
        ("nothing", true, |_, _| {}),
        ("a second name", false, |at, precious| {
            fs::remove_file(at).unwrap();
            fs::hard_link(precious, at).unwrap();
        }),
        ("a link", false, |at, precious| {
            fs::remove_file(at).unwrap();
            symlink(precious, at).unwrap();
        }),
        ("rights", false, |at, _| {
            fs::set_permissions(at, fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("a pipe", false, |at, _| {
            fs::remove_file(at).unwrap();
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mkfifoat(rustix::fs::CWD, at, mode).unwrap();
        }),
        ("an attribute", false, |at, _| {
            let flags = rustix::fs::XattrFlags::empty();
            match rustix::fs::setxattr(at, "user.left", b"x", flags) {
                Err(rustix::io::Errno::NOTSUP) => {}
                set => set.unwrap(),
            }
        }),
        ("more than a link", true, |at, _| {
            fs::write(at, vec![b'x'; 1 << 20]).unwrap();
        }),
        ("nothing there", false, |at, _| {
            fs::remove_file(at).unwrap();
        }),
    ];
    for (name, is_same, change) in changes {
        let lane = Lane::new();
        let at = lane.at(".git");
        // libgit2 wrote it with a slash at its end.
        lane.tree.point_git_file_at(Path::new("/x")).unwrap();
        lane.tree.restore_git_file().unwrap();
        let link = fs::read(&at).unwrap();
        let longer = lane.at("x".repeat(link.len()));
        lane.tree.point_git_file_at(&longer).unwrap();
        let before = fs::metadata(&at).unwrap();
        change(&at, &lane.precious().join("x"));
        lane.tree.restore_git_file().unwrap();
        let after = fs::symlink_metadata(&at).unwrap();
        assert_eq!(after.mode(), before.mode(), "{name}");
        assert_eq!(after.nlink(), 1, "{name}");
        // A number may be that of a deleted file.
        assert!(!is_same || after.ino() == before.ino(), "{name}");
        assert_eq!(fs::read(&at).unwrap(), link, "{name}");
        let mut names = [0_u8; 256];
        let names = rustix::fs::listxattr(&at, &mut names)
            .map_or("", |length| std::str::from_utf8(&names[..length]).unwrap());
        assert!(!names.contains("user.left"), "{name}");
        let precious = fs::read_to_string(lane.precious().join("x")).unwrap();
        assert_eq!(precious, "mine\n", "{name}");
    }
}
