use super::*;
use crate::tree::is_untouched;
use git2::{Oid, Signature};
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

struct Scratch {
    folder: tempfile::TempDir,
    git: Repository,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path().join("repo")).unwrap();
        let scratch = Self { folder, git };
        let first = scratch.commit(&[("src/base", "base\n"), (".gitignore", "made/\n")], None);
        let first = scratch.git.find_commit(first).unwrap();
        scratch
            .git
            .reference("refs/heads/main", first.id(), true, "t")
            .unwrap();
        scratch.git.set_head("refs/heads/main").unwrap();
        drop(first);
        scratch
    }

    /// Makes a commit of a parent's files with some of them changed.
    fn commit(&self, files: &[(&str, &str)], parent: Option<Oid>) -> Oid {
        let parent = parent.map(|id| self.git.find_commit(id).unwrap());
        let mut index = git2::Index::new().unwrap();
        if let Some(parent) = &parent {
            index.read_tree(&parent.tree().unwrap()).unwrap();
        }
        let mut update = git2::build::TreeUpdateBuilder::new();
        for (path, text) in files {
            let blob = self.git.blob(text.as_bytes()).unwrap();
            update.upsert(*path, blob, git2::FileMode::Blob);
        }
        let empty = self.git.treebuilder(None).unwrap().write().unwrap();
        let before = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => self.git.find_tree(empty).unwrap(),
        };
        let tree = update.create_updated(&self.git, &before).unwrap();
        let tree = self.git.find_tree(tree).unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        self.git
            .commit(None, &author, &author, "c", &tree, &parents)
            .unwrap()
    }

    fn head(&self) -> Oid {
        self.git.head().unwrap().peel_to_commit().unwrap().id()
    }

    fn checkout(&self) -> Checkout {
        let at = |name: &str| self.folder.path().join(name);
        Checkout::prepare(&at("repo"), &at("verify/one"), &at("state/one.git")).unwrap()
    }
}

fn go(checkout: &Checkout, commit: Oid) {
    let ignored = Ignored::Go(BTreeSet::new());
    checkout.put_at(&commit.to_string(), &ignored).unwrap();
}

fn read(checkout: &Checkout, name: &str) -> Option<String> {
    fs::read_to_string(checkout.folder().join(name)).ok()
}

#[test]
fn it_goes_from_any_commit_to_any_other() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let added = scratch.commit(&[("src/needs", "more\n")], Some(first));
    let other = scratch.commit(&[("src/other", "x\n"), ("src/base", "2\n")], Some(added));
    let checkout = scratch.checkout();
    for round in 0..3 {
        for commit in [first, added, first, other, added, other, first] {
            go(&checkout, commit);
            let has = |name: &str| read(&checkout, name).is_some();
            assert_eq!(has("src/needs"), commit != first, "{round}");
            assert_eq!(has("src/other"), commit == other, "{round}");
        }
    }
}

#[test]
fn it_moves_by_what_differs_until_a_command_may_have_written_it() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let added = scratch.commit(&[("src/needs", "more\n")], Some(first));
    let other = scratch.commit(&[("src/other", "x\n"), ("src/base", "2\n")], Some(added));
    let rules = scratch.commit(&[(".gitattributes", "* text\n")], Some(first));
    let checkout = scratch.checkout();
    let moves = |commit: Oid| checkout.move_to(&commit.to_string()).unwrap();
    assert!(!moves(first), "nothing is known yet");
    go(&checkout, first);
    for commit in [added, other, first, other, added, first] {
        assert!(moves(commit));
        assert_eq!(read(&checkout, "src/needs").is_some(), commit != first);
        assert_eq!(read(&checkout, "src/other").is_some(), commit == other);
        let changed = commit == other;
        let base = read(&checkout, "src/base").unwrap();
        assert_eq!(base == "2\n", changed);
        let fresh = scratch.checkout();
        fresh.tree().must_be_clean().unwrap();
        assert_eq!(fresh.tree().base().unwrap().commit, commit.to_string());
    }
    assert!(!moves(rules), "its rules are about other files");
    go(&checkout, first);
    checkout.forget();
    assert!(!moves(other));
}

#[test]
fn whatever_a_command_left_in_it_is_gone() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let checkout = scratch.checkout();
    go(&checkout, first);
    let at = |name: &str| checkout.folder().join(name);
    let outside = scratch.folder.path().join("precious");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("base"), "mine\n").unwrap();
    fs::create_dir_all(at("made/deep")).unwrap();
    fs::write(at("made/deep/x"), "x").unwrap();
    fs::remove_dir_all(at("src")).unwrap();
    symlink(&outside, at("src")).unwrap();
    fs::remove_file(at(".git")).unwrap();
    Repository::init(checkout.folder()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("new"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::remove_file(at(".gitignore")).unwrap();
    symlink("/dev/zero", at(".gitignore")).unwrap();
    let mut deep = at("deep");
    for _ in 0..300 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    go(&checkout, first);
    assert_eq!(read(&checkout, "src/base").as_deref(), Some("base\n"));
    assert_eq!(read(&checkout, ".git").as_deref(), Some(NO_REPOSITORY));
    for gone in ["made", "new", "deep"] {
        assert!(fs::symlink_metadata(at(gone)).is_err(), "{gone}");
    }
    assert_eq!(fs::read_to_string(outside.join("base")).unwrap(), "mine\n");
}

#[test]
fn what_a_setup_made_stays_while_it_is_as_it_was() {
    let scratch = Scratch::new();
    let checkout = scratch.checkout();
    go(&checkout, scratch.head());
    let at = |name: &str| checkout.folder().join(name);
    fs::create_dir_all(at("made")).unwrap();
    fs::write(at("made/check"), "exit 1\n").unwrap();
    let manifest = checkout.tree().manifest().unwrap();
    assert_eq!(checkout.tree().unchanged(&manifest).len(), 1);
    // The same size, the same time of change: the change time tells.
    let before = fs::metadata(at("made/check")).unwrap().modified().unwrap();
    fs::write(at("made/check"), "exit 0\n").unwrap();
    let file = fs::File::options()
        .write(true)
        .open(at("made/check"))
        .unwrap();
    file.set_modified(before).unwrap();
    assert_eq!(checkout.tree().unchanged(&manifest).len(), 0);
}

#[test]
fn a_git_folder_that_was_cut_short_is_made_again() {
    let scratch = Scratch::new();
    drop(scratch.checkout());
    let git = scratch.folder.path().join("state/one.git");
    fs::write(git.join("HEAD"), "rubbish").unwrap();
    fs::write(git.join("index"), "rubbish").unwrap();
    go(&scratch.checkout(), scratch.head());
    for lock in ["index.lock", "HEAD.lock"] {
        fs::write(git.join(lock), "").unwrap();
    }
    go(&scratch.checkout(), scratch.head());
}

fn made(checkout: &Checkout, path: &str, text: &str) {
    let at = checkout.folder().join(path);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
}

/// What a command wrote over a checkout, as the upper layer of an overlay has it.
fn upper(scratch: &Scratch, files: &[(&str, &str)]) -> PathBuf {
    let upper = scratch.folder.path().join("upper");
    for (path, text) in files {
        let at = upper.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }
    upper
}

#[test]
fn a_layer_has_nothing_in_the_place_of_a_file_of_its_base() {
    let scratch = Scratch::new();
    let checkout = scratch.checkout();
    go(&checkout, scratch.head());
    let upper = upper(
        &scratch,
        &[
            ("made/out", "x"),
            ("made/deep/out", "x"),
            ("src/base", "changed by the command\n"),
            ("src/cache/out", "x"),
            (".git", "gitdir: elsewhere\n"),
            (".premath/x", "x"),
        ],
    );
    symlink("out", upper.join("made/link")).unwrap();
    for (path, kind, device) in [
        ("made/pipe", rustix::fs::FileType::Fifo, 0),
        // What an overlay writes for a file that was deleted.
        (".gitignore", rustix::fs::FileType::CharacterDevice, 0),
        ("made/gone", rustix::fs::FileType::CharacterDevice, 0),
    ] {
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, upper.join(path), kind, mode, device).unwrap();
    }
    let note = "user.overlay.opaque";
    let flags = rustix::fs::XattrFlags::empty();
    let noted = rustix::fs::setxattr(upper.join("made/deep"), note, b"y", flags);
    let layer = checkout.tree().keep_layer(&upper).unwrap();
    assert_eq!(layer.roots, ["made", "src/cache"]);
    let is_there = |path: &str| fs::symlink_metadata(upper.join(path)).is_ok();
    for path in ["made/out", "made/deep/out", "made/link", "src/cache/out"] {
        assert!(is_there(path), "{path}");
    }
    for path in [
        "src/base",
        ".git",
        ".premath",
        ".gitignore",
        "made/pipe",
        "made/gone",
    ] {
        assert!(!is_there(path), "{path}");
    }
    if noted.is_ok() {
        let mut value = [0; 8];
        let read = rustix::fs::getxattr(upper.join("made/deep"), note, &mut value);
        assert_eq!(read, Err(rustix::io::Errno::NODATA));
    }
    assert!(is_untouched(&upper, &layer));
}

#[test]
fn any_change_of_a_layer_shows() {
    let scratch = Scratch::new();
    let checkout = scratch.checkout();
    go(&checkout, scratch.head());
    let upper = upper(&scratch, &[("made/out", "x"), ("made/deep/other", "x")]);
    let layer = checkout.tree().keep_layer(&upper).unwrap();
    let moved = scratch.folder.path().join("moved");
    fs::rename(&upper, &moved).unwrap();
    assert!(is_untouched(&moved, &layer));
    let out = moved.join("made/out");
    let before = fs::metadata(&out).unwrap().modified().unwrap();
    fs::write(&out, "y").unwrap();
    let file = fs::File::options().write(true).open(&out).unwrap();
    file.set_modified(before).unwrap();
    assert!(!is_untouched(&moved, &layer));
    assert!(!is_untouched(&scratch.folder.path().join("none"), &layer));
}

#[test]
fn a_tree_that_collides_with_a_layer_does_not_fit_it() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let checkout = scratch.checkout();
    go(&checkout, first);
    let upper = upper(&scratch, &[("made/out", "x"), ("src/cache/out", "x")]);
    let layer = checkout.tree().keep_layer(&upper).unwrap();
    let fits = |commit: Oid| {
        let (base, commit) = (first.to_string(), commit.to_string());
        checkout.tree().fits(&layer, &base, &commit).unwrap()
    };
    let with = |path: &str| scratch.commit(&[(path, "x\n")], Some(first));
    assert!(fits(first));
    for path in ["src/other", "src/base", "new/folder/x", "made.txt"] {
        assert!(fits(with(path)), "{path}");
    }
    for path in [
        "made/out",
        "made/other",
        "src/cache/out",
        ".gitattributes",
        "new/.gitattributes",
    ] {
        assert!(!fits(with(path)), "{path}");
    }
    // A file in the place of the folder, and no folder at all.
    assert!(!fits(scratch.commit(&[("src", "x\n")], None)));
    assert!(!fits(scratch.commit(&[("other", "x\n")], None)));
}

#[test]
fn the_times_of_files_follow_from_their_content() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let more = scratch.commit(&[("src/more", "1\n"), ("other/x", "1\n")], Some(first));
    let base = scratch.commit(&[("other/y", "1\n")], Some(more));
    let changed = scratch.commit(&[("src/base", "2\n"), ("src/new", "1\n")], Some(base));
    let checkout = scratch.checkout();
    let modified = |path: &str| {
        let meta = fs::symlink_metadata(checkout.folder().join(path)).unwrap();
        std::os::unix::fs::MetadataExt::mtime(&meta)
    };
    let date = |newest: i64| {
        checkout
            .tree()
            .date(&base.to_string(), newest, &[])
            .unwrap()
    };
    // The changed file is older than the layer.
    go(&checkout, changed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let newest = i64::try_from(now.unwrap().as_secs()).unwrap() + 1_000;
    assert!(modified("src/base") < newest);
    date(newest);
    for path in ["src/base", "src/new", "src", "."] {
        assert!(modified(path) > newest, "{path}");
    }
    let settled = modified("src/more");
    assert!(settled < newest - 10_000_000);
    for path in ["other", "other/x", "other/y", ".gitignore"] {
        assert_eq!(modified(path), settled, "{path}");
    }
    // As in the base again: as old as everything else.
    go(&checkout, base);
    date(newest);
    for path in ["src/base", "src", "."] {
        assert_eq!(modified(path), settled, "{path}");
    }
    // A file that is gone makes its folder younger.
    go(&checkout, more);
    date(newest);
    assert!(modified("other") > newest);
    assert_eq!(modified("other/x"), settled);
    checkout.tree().must_be_clean().unwrap();
    // Whatever a command left there, such as a time in the future.
    made(&checkout, "src/base", "base\n");
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(1 << 30);
    let file = fs::File::options()
        .write(true)
        .open(checkout.folder().join("src/base"))
        .unwrap();
    file.set_modified(future).unwrap();
    go(&checkout, more);
    date(newest);
    assert_eq!(modified("src/base"), settled);
}

/// Returns which files and folders of a checkout have the time of the base's.
fn settled(checkout: &Checkout) -> Vec<(PathBuf, bool)> {
    let mut found = Vec::new();
    let mut folders = vec![checkout.folder().to_path_buf()];
    while let Some(folder) = folders.pop() {
        let time = |path: &Path| {
            let meta = fs::symlink_metadata(path).unwrap();
            std::os::unix::fs::MetadataExt::mtime(&meta) == 1_000_000_000
        };
        found.push((folder.clone(), time(&folder)));
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false if entry.file_name() == ".git" => {}
                false => found.push((entry.path(), time(&entry.path()))),
            }
        }
    }
    found.sort();
    let root = checkout.folder().to_path_buf();
    let below = |(path, is): (PathBuf, bool)| (path.strip_prefix(&root).unwrap().into(), is);
    found.into_iter().map(below).collect()
}

#[test]
fn a_checkout_that_moves_has_the_times_that_a_look_at_all_files_gives() {
    let scratch = Scratch::new();
    let first = scratch.head();
    let base = scratch.commit(
        &[("a/b/c", "1\n"), ("a/d", "1\n"), ("e/f", "1\n")],
        Some(first),
    );
    let one = scratch.commit(&[("a/b/c", "2\n"), ("e/g", "1\n")], Some(base));
    let two = scratch.commit(&[("a/d", "2\n"), ("h/i/j", "1\n")], Some(one));
    let date = |checkout: &Checkout| {
        let tree = checkout.tree();
        tree.date(&base.to_string(), 1_500_000_000, &[]).unwrap();
        tree.must_be_clean().unwrap();
        settled(checkout)
    };
    let at = |name: &str| scratch.folder.path().join(name);
    let moving = scratch.checkout();
    go(&moving, base);
    date(&moving);
    for (number, to) in [one, base, two, one, two, base, first, two]
        .into_iter()
        .enumerate()
    {
        // It is not dated after each move.
        assert!(moving.move_to(&to.to_string()).unwrap(), "{number}");
        if number == 3 {
            continue;
        }
        let times = date(&moving);
        let fresh = at(&format!("verify/{number}"));
        let git = at(&format!("state/{number}.git"));
        let fresh = Checkout::prepare(&at("repo"), &fresh, &git).unwrap();
        go(&fresh, to);
        assert_eq!(times, date(&fresh), "{number}");
    }
}

/// No other process writes there, so the object belongs to no running process.
#[test]
fn an_object_that_a_killed_harness_left_half_written_is_removed() {
    let scratch = Scratch::new();
    drop(scratch.checkout());
    let objects = scratch.folder.path().join("state/one.git/objects");
    fs::create_dir_all(objects.join("ab")).unwrap();
    let left = [
        objects.join("tmp_object_git2_1a"),
        objects.join("ab/tmp_obj_1a"),
    ];
    for path in &left {
        fs::write(path, "").unwrap();
    }
    drop(scratch.checkout());
    assert_eq!(left.map(|path| path.exists()), [false; 2]);
}

#[test]
fn tracked_files_of_the_harness_are_those_of_the_commit() {
    let scratch = Scratch::new();
    let files = |text: &'static str| [("artifacts/case", text), (".premath/issues.jsonl", text)];
    let first = scratch.commit(&files("1"), Some(scratch.head()));
    let other = scratch.commit(&files("2"), Some(first));
    let bare = scratch.commit(&files("3"), None);
    for commit in [first, other, first, bare] {
        // Another process, which knows nothing.
        let checkout = scratch.checkout();
        go(&checkout, commit);
        for (path, text) in files(match commit {
            _ if commit == first => "1",
            _ if commit == other => "2",
            _ => "3",
        }) {
            assert_eq!(read(&checkout, path).as_deref(), Some(text), "{path}");
        }
    }
    let moving = scratch.checkout();
    go(&moving, first);
    assert!(moving.move_to(&other.to_string()).unwrap());
    assert_eq!(read(&moving, "artifacts/case").as_deref(), Some("2"));
}
