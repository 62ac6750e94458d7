//! What a running step changed, looked at without a change of anything.

use super::*;
use crate::diff::{CommitDiff, Compared, FileDiff, WorkDiff};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

fn look(scratch: &Scratch) -> WorkDiff {
    let path = scratch.folder.path();
    Tree::open_to_look(path, path).unwrap().work_diff().unwrap()
}

fn file<'a>(diff: &'a WorkDiff, path: &str) -> &'a FileDiff {
    let mut files = diff.files.iter();
    files
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("{path} is not in {diff:?}"))
}

fn lines(file: &FileDiff) -> Vec<&str> {
    let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    lines.map(String::as_str).collect()
}

/// Lists every file below the git folder with its size and time.
fn git_files(scratch: &Scratch) -> BTreeSet<(std::path::PathBuf, u64, std::time::SystemTime)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![scratch.folder.path().join(".git")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            found.insert((entry.path(), meta.len(), meta.modified().unwrap()));
        }
    }
    found
}

#[test]
fn added_changed_and_deleted_files_are_compared_and_git_stays_as_it_is() {
    let (scratch, _) = Scratch::new();
    scratch.write("a.txt", "a\nb\n");
    scratch.write("new/b.txt", "no end");
    scratch.write("target/ignored", "x");
    scratch.write("artifacts/ours", "x");
    fs::remove_file(scratch.folder.path().join(".gitignore")).unwrap();
    scratch.write("bin", "a\0b");
    fs::set_permissions(
        scratch.folder.path().join("new/b.txt"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let before = git_files(&scratch);
    let diff = look(&scratch);
    assert_eq!(git_files(&scratch), before);
    let changed = file(&diff, "a.txt");
    assert_eq!((changed.added, changed.deleted), (Some(1), Some(0)));
    assert_eq!(lines(changed), [" a", "+b"]);
    let added = file(&diff, "new/b.txt");
    assert_eq!((added.old_mode, added.new_mode), (None, Some(0o100_755)));
    assert_eq!(lines(added), ["+no end", "\\ No newline at end of file"]);
    let deleted = file(&diff, ".gitignore");
    assert_eq!((deleted.new_mode, deleted.deleted), (None, Some(1)));
    assert_eq!(file(&diff, "bin").compared, Compared::Binary);
    // It was ignored by the file that is gone.
    assert_eq!(diff.files.len(), 5);
    assert_eq!(file(&diff, "target/ignored").added, Some(1));
}

#[test]
fn what_a_hostile_step_leaves_is_neither_followed_nor_waited_for() {
    let (scratch, _) = Scratch::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret\n").unwrap();
    let at = |name: &str| scratch.folder.path().join(name);
    fs::remove_file(at("a.txt")).unwrap();
    symlink(outside.path().join("secret"), at("a.txt")).unwrap();
    symlink(outside.path(), at("folder")).unwrap();
    let pipe = at("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"evil\x1b[2J\xff\n");
    fs::write(scratch.folder.path().join(name), "x\n").unwrap();
    let large = fs::File::create(at("large")).unwrap();
    large.set_len(super::super::files::TEXT_MAX + 1).unwrap();
    Repository::init(at("nested")).unwrap();
    let diff = look(&scratch);
    assert!(!format!("{diff:?}").contains("+secret"));
    let link = file(&diff, "a.txt");
    assert_eq!(link.new_mode, Some(0o120_000));
    assert_eq!(file(&diff, "folder").new_mode, Some(0o120_000));
    assert_eq!(file(&diff, "pipe").compared, Compared::Unreadable);
    assert_eq!(file(&diff, "large").compared, Compared::TooLarge);
    assert_eq!(
        file(&diff, "evil\u{1b}[2J\u{fffd}\n").compared,
        Compared::Lines
    );
    assert_eq!(diff.set_apart, ["nested"]);
}

#[test]
fn a_diff_is_bounded_in_files_and_in_lines() {
    let (scratch, _) = Scratch::new();
    for number in 0..12 {
        scratch.write(&format!("long/{number:02}"), &"line\n".repeat(180_000));
    }
    for number in 0..2_100 {
        scratch.write(&format!("many/{number:04}"), "x\n");
    }
    let diff = look(&scratch);
    assert_eq!(diff.files.len(), 2_000);
    assert_eq!(diff.files_left_out, 112);
    let of = |compared| {
        let files = diff.files.iter();
        files.filter(|file| file.compared == compared).count()
    };
    assert_eq!(of(Compared::Counted), 5);
    assert_eq!(file(&diff, "long/11").added, Some(180_000));
}

#[test]
fn a_commit_and_a_branch_are_compared_with_where_they_began() {
    let (scratch, tree) = Scratch::new();
    scratch.write("b.txt", "b\n");
    let first = tree.commit(&TEXT).unwrap().unwrap();
    let base = tree.base().unwrap();
    scratch.write("c.txt", "c\n");
    tree.take_back(&base, 7, &TEXT, None).unwrap();
    let commits = CommitDiff::open(scratch.folder.path()).unwrap();
    let paths = |diff: WorkDiff| -> Vec<String> {
        let files = diff.files.into_iter();
        files.map(|file| file.path).collect()
    };
    assert_eq!(paths(commits.of_commit(&first).unwrap()), ["b.txt"]);
    let salvaged = commits.of_branch("harness/salvage/bd-1/7", &["HEAD"]);
    assert_eq!(paths(salvaged.unwrap()), ["c.txt"]);
    assert!(commits.of_branch("nowhere", &["HEAD"]).is_err());
}
