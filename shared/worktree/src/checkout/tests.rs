use super::*;
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
fn a_git_folder_that_was_cut_short_is_made_anew() {
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
