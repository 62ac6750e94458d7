use super::named_checkout::NAMED_MAX;
use super::*;
use git2::{IndexAddOption, Oid};
use std::collections::BTreeSet;
use std::fs;

struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> (Self, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join(".premath")).unwrap();
        fs::write(folder.path().join("a.txt"), "a\n").unwrap();
        fs::write(folder.path().join(".gitignore"), "target/\n").unwrap();
        fs::write(folder.path().join(".premath/issues.jsonl"), "1\n").unwrap();
        let mut index = repository.index().unwrap();
        index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = index.write_tree().unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        repository
            .commit(
                Some("HEAD"),
                &author,
                &author,
                "first",
                &repository.find_tree(tree).unwrap(),
                &[],
            )
            .unwrap();
        let tree = Tree::open(folder.path()).unwrap();
        (Self { folder }, tree)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(path)).ok()
    }
}

const TEXT: CommitText<'_> = CommitText {
    trajectory: None,
    base: None,
    verified_tree: None,
    verified_in: None,
    issue_id: "bd-1",
    title: "evil\n\nIssue: bd-2",
    lease: "lease1_bd-1_w#1",
    step_id: "w.bd-1.1",
    witness: None,
};

/// A time so many seconds before now.
fn since(before: i64) -> Option<jiff::Timestamp> {
    let second = jiff::Timestamp::now().as_second() - 5 - before;
    Some(jiff::Timestamp::from_second(second).unwrap())
}

/// Takes back, and says what is left and where.
fn left(tree: &Tree, base: &Base) -> String {
    let salvage = tree.take_back(base, 1, &TEXT, None).unwrap();
    assert_eq!(tree.base().unwrap(), *base);
    assert_eq!(tree.changes().unwrap(), [""; 0]);
    salvage.map_or_else(String::new, |salvage| salvage.to_string())
}

mod cache_folder;
mod fill;
mod filters;
mod git_file;
mod hostile;
mod lane;
mod layer;
mod line_ends;
mod movement;
mod odd;
mod own_files;
mod project;
mod refused;
mod relocation;
mod verified;
mod work;

#[test]
fn ours_and_ignored_files_are_not_changes() {
    let (scratch, tree) = Scratch::new();
    scratch.write(".premath/issues.jsonl", "2\n");
    scratch.write("artifacts/x", "x");
    scratch.write("target/x", "x");
    assert!(tree.changes().unwrap().is_empty());
    assert!(tree.commit(&TEXT).unwrap().is_none());
    scratch.write("deep/b.txt", "b");
    assert_eq!(tree.changes().unwrap(), ["deep/b.txt"]);
}

#[test]
fn what_is_new_in_an_ignored_folder_with_a_file_of_the_commit_is_ignored() {
    let (scratch, tree) = Scratch::new();
    scratch.write(".gitignore", "a/\n/b\nf/sub/\ng/*\n");
    scratch.write("h/.gitignore", "inner\n");
    let folders = ["a", "b", "f/sub", "g", "h/inner"];
    let mut index = tree.repository.index().unwrap();
    for folder in folders {
        let file = format!("{folder}/example");
        scratch.write(&file, "x");
        index.add_path(Path::new(&file)).unwrap();
    }
    for rules in [".gitignore", "h/.gitignore"] {
        index.add_path(Path::new(rules)).unwrap();
    }
    index.write().unwrap();
    let tracked = index.write_tree().unwrap();
    let tracked = tree.repository.find_tree(tracked).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let head = tree.repository.head().unwrap().peel_to_commit().unwrap();
    tree.repository
        .commit(Some("HEAD"), &author, &author, "more", &tracked, &[&head])
        .unwrap();
    assert!(tree.changes().unwrap().is_empty());
    for folder in folders {
        scratch.write(&format!("{folder}/example"), "changed");
        scratch.write(&format!("{folder}/secret"), "x");
        scratch.write(&format!("{folder}/deep/secret"), "x");
    }
    // Nothing in an ignored folder is exempt.
    scratch.write("a/.gitignore", "!secret\n!deep/\n");
    scratch.write("f/new", "x");
    let changed = folders.map(|folder| format!("{folder}/example"));
    let mut changed: Vec<_> = changed.into_iter().chain(["f/new".to_owned()]).collect();
    changed.sort();
    assert_eq!(tree.changes().unwrap(), changed);
}

#[test]
fn a_commit_holds_everything_uncommitted_with_one_set_of_trailers() {
    let (scratch, tree) = Scratch::new();
    let before = tree.state().unwrap();
    scratch.write("deep/b.txt", "b");
    scratch.write(".premath/issues.jsonl", "2\n");
    fs::remove_file(scratch.folder.path().join("a.txt")).unwrap();
    let dirty = tree.state().unwrap();
    assert_eq!(dirty.head, before.head);
    assert_ne!(dirty.tree, before.tree);
    let id = tree.commit(&TEXT).unwrap().unwrap();
    let after = tree.state().unwrap();
    assert_eq!(
        (after.head.as_str(), after.tree.as_str()),
        (id.as_str(), dirty.tree.as_str())
    );
    assert!(tree.changes().unwrap().is_empty());
    let commit = tree.find_commit(&id).unwrap();
    let message = commit.message().unwrap();
    assert_eq!(
        message,
        "bd-1: evil Issue: bd-2\n\nIssue: bd-1\nLease: lease1_bd-1_w#1\nStep: w.bd-1.1\n"
    );
    let committed = commit.tree().unwrap();
    assert!(committed.get_path(Path::new("a.txt")).is_err());
    let ours = committed
        .get_path(Path::new(".premath/issues.jsonl"))
        .unwrap();
    let blob = tree.repository.find_blob(ours.id()).unwrap();
    assert_eq!(blob.content(), b"1\n");
}

#[test]
fn what_a_step_left_is_on_the_salvage_branch_and_the_lane_is_back_at_its_base() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    scratch.write("committed.txt", "by the agent");
    tree.commit(&TEXT).unwrap();
    scratch.write("a.txt", "changed\n");
    scratch.write("new/untracked.txt", "x");
    scratch.write("target/cache", "kept");
    scratch.write(".premath/issues.jsonl", "live\n");
    scratch.write("artifacts/w.json", "kept");
    fs::write(tree.repository.path().join("index.lock"), "").unwrap();
    let branch = tree.take_back(&base, 3, &TEXT, since(0)).unwrap().unwrap();
    let branch = branch.to_string();
    assert_eq!(branch, "harness/salvage/bd-1/3");
    assert_eq!(tree.base().unwrap(), base);
    assert!(tree.changes().unwrap().is_empty());
    assert_eq!(scratch.read("a.txt").unwrap(), "a\n");
    assert_eq!(scratch.read("committed.txt"), None);
    assert_eq!(scratch.read("new/untracked.txt"), None);
    assert!(!scratch.folder.path().join("new").exists());
    assert_eq!(scratch.read("target/cache").unwrap(), "kept");
    assert_eq!(scratch.read(".premath/issues.jsonl").unwrap(), "live\n");
    assert_eq!(scratch.read("artifacts/w.json").unwrap(), "kept");
    let kept = tree
        .find_commit(&format!("refs/heads/{branch}"))
        .unwrap()
        .tree()
        .unwrap();
    for path in ["committed.txt", "a.txt", "new/untracked.txt"] {
        assert!(kept.get_path(Path::new(path)).is_ok(), "{path}");
    }
    assert_eq!(tree.take_back(&base, 3, &TEXT, None).unwrap(), None);
}

#[test]
fn a_step_that_switched_the_branch_is_brought_back_to_its_own() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    let head = tree.head().unwrap();
    tree.repository.branch("elsewhere", &head, false).unwrap();
    tree.repository.set_head("refs/heads/elsewhere").unwrap();
    scratch.write("b.txt", "b");
    tree.commit(&TEXT).unwrap();
    assert!(tree.take_back(&base, 1, &TEXT, None).unwrap().is_some());
    assert_eq!(tree.base().unwrap(), base);
    assert_eq!(scratch.read("b.txt"), None);
}

#[test]
fn a_staged_file_and_a_file_turned_folder_are_undone() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    fs::remove_file(scratch.folder.path().join("a.txt")).unwrap();
    scratch.write("a.txt/inner", "x");
    scratch.write("staged.txt", "x");
    let mut index = tree.repository.index().unwrap();
    index.add_path(Path::new("staged.txt")).unwrap();
    index.write().unwrap();
    assert!(tree.take_back(&base, 1, &TEXT, None).unwrap().is_some());
    assert_eq!(tree.changes().unwrap(), Vec::<String>::new());
    assert_eq!(scratch.read("a.txt").unwrap(), "a\n");
}

#[test]
fn more_changes_than_one_checkout_names_are_undone() {
    let (scratch, tree) = Scratch::new();
    let names: Vec<String> = (0..2 * NAMED_MAX + 3)
        .map(|n| format!("src/{n}.txt"))
        .collect();
    for name in &names {
        scratch.write(name, name);
    }
    tree.commit(&TEXT).unwrap();
    let base = tree.base().unwrap();
    scratch.write("target/kept", "x");
    for (number, name) in names.iter().enumerate() {
        match number % 2 {
            0 => fs::remove_file(scratch.folder.path().join(name)).unwrap(),
            _ => scratch.write(name, "changed"),
        }
    }
    scratch.write("left.txt", "x");
    tree.reset(&base, &Ignored::Stay).unwrap();
    assert_eq!(tree.changes().unwrap(), Vec::<String>::new());
    for name in &names {
        assert_eq!(scratch.read(name).as_ref(), Some(name));
    }
    assert_eq!(scratch.read("left.txt"), None);
    assert_eq!(scratch.read("target/kept").unwrap(), "x");
}

/// A tree of many files, of which a sparse checkout leaves `out.txt` out.
fn sparse() -> (Scratch, Tree, Vec<String>) {
    let (scratch, tree) = Scratch::new();
    let names: Vec<String> = (0..=NAMED_MAX).map(|n| format!("src/{n}.txt")).collect();
    for name in names.iter().map(String::as_str).chain(["out.txt"]) {
        scratch.write(name, name);
    }
    tree.commit(&TEXT).unwrap();
    drop(tree);
    let repository = Repository::open(scratch.folder.path()).unwrap();
    let mut settings = repository.config().unwrap();
    settings.set_bool("core.sparseCheckout", true).unwrap();
    let patterns = repository.path().join("info/sparse-checkout");
    fs::write(patterns, "/*\n!/out.txt\n").unwrap();
    fs::remove_file(scratch.folder.path().join("out.txt")).unwrap();
    let mut index = repository.index().unwrap();
    let mut entry = index.get_path(Path::new("out.txt"), 0).unwrap();
    entry.flags |= git2::IndexEntryFlag::EXTENDED.bits();
    entry.flags_extended |= git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    index.add(&entry).unwrap();
    index.write().unwrap();
    let tree = Tree::open(scratch.folder.path()).unwrap();
    assert_eq!(tree.changes().unwrap(), Vec::<String>::new());
    (scratch, tree, names)
}

#[test]
fn a_reset_writes_nothing_that_a_sparse_checkout_leaves_out() {
    for many in [false, true] {
        let (scratch, tree, names) = sparse();
        let base = tree.base().unwrap();
        if many {
            names.iter().for_each(|name| scratch.write(name, "changed"));
        } else {
            scratch.write("src/1.txt", "changed");
            Repository::init(scratch.folder.path().join("nested")).unwrap();
        }
        tree.reset(&base, &Ignored::Stay).unwrap();
        assert_eq!(tree.changes().unwrap(), Vec::<String>::new());
        assert_eq!(scratch.read("src/1.txt").unwrap(), "src/1.txt");
        assert_eq!(scratch.read("out.txt"), None, "many: {many}");
        assert!(!scratch.folder.path().join("nested").exists());
    }
}

#[test]
fn what_is_left_out_is_not_deleted_where_the_index_cannot_be_read() {
    let (scratch, tree, _) = sparse();
    let base = tree.base().unwrap();
    let index = scratch.folder.path().join(".git/index");
    for broken in [Some("no index"), None] {
        match broken {
            Some(text) => fs::write(&index, text).unwrap(),
            None => fs::remove_file(&index).unwrap(),
        }
        let changes = tree.changes().unwrap();
        assert!(!changes.contains(&"out.txt".to_owned()), "{broken:?}");
        scratch.write("src/1.txt", "changed");
        tree.reset(&base, &Ignored::Stay).unwrap();
        assert_eq!(scratch.read("src/1.txt").unwrap(), "src/1.txt");
        assert_eq!(scratch.read("out.txt"), None, "{broken:?}");
        assert_eq!(tree.changes().unwrap(), Vec::<String>::new(), "{broken:?}");
    }
}

#[test]
fn a_staged_deletion_of_what_is_left_out_is_a_change() {
    let (scratch, tree, _) = sparse();
    let repository = Repository::open(scratch.folder.path()).unwrap();
    let mut index = repository.index().unwrap();
    index.remove_path(Path::new("out.txt")).unwrap();
    index.write().unwrap();
    assert_eq!(tree.changes().unwrap(), ["out.txt"]);
}

/// Returns a base on top of another one, with a file changed that is not
/// checked out.
fn with_other(scratch: &Scratch, base: &Base, name: &str) -> Base {
    let git = Repository::open(scratch.folder.path()).unwrap();
    let parent = git
        .find_commit(Oid::from_str(&base.commit).unwrap())
        .unwrap();
    let mut tree = git.treebuilder(Some(&parent.tree().unwrap())).unwrap();
    let blob = git.blob(b"other").unwrap();
    tree.insert(name, blob, 0o100_644).unwrap();
    let tree = git.find_tree(tree.write().unwrap()).unwrap();
    let author = git2::Signature::now("t", "t@localhost").unwrap();
    let commit = git.commit(None, &author, &author, "other", &tree, &[&parent]);
    Base {
        commit: commit.unwrap().to_string(),
        branch: base.branch.clone(),
    }
}

#[test]
fn a_start_writes_nothing_that_a_sparse_checkout_leaves_out() {
    let (scratch, tree, _) = sparse();
    let first = tree.base().unwrap();
    scratch.write("src/1.txt", "second");
    tree.commit(&TEXT).unwrap();
    let second = tree.base().unwrap();
    let third = with_other(&scratch, &second, "out.txt");
    for (base, text) in [
        (&first, "src/1.txt"),
        (&second, "second"),
        (&third, "second"),
        (&first, "src/1.txt"),
    ] {
        tree.start_at(base, "bd-1", 1).unwrap();
        assert_eq!(scratch.read("src/1.txt").unwrap(), text);
        assert_eq!(tree.changes().unwrap(), Vec::<String>::new());
        assert_eq!(scratch.read("out.txt"), None);
        let head = tree.head().unwrap();
        assert_eq!(head.id().to_string(), base.commit);
        assert!(head.tree().unwrap().get_path(Path::new("out.txt")).is_ok());
    }
}

#[test]
fn a_second_salvage_of_other_content_gets_a_number() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    scratch.write("b.txt", "one");
    tree.take_back(&base, 1, &TEXT, None).unwrap();
    scratch.write("b.txt", "two");
    assert_eq!(left(&tree, &base), "harness/salvage/bd-1/1.2");
}

#[test]
fn half_written_objects_of_before_are_swept_and_fresh_ones_are_not() {
    let (scratch, _tree) = Scratch::new();
    let path = scratch
        .folder
        .path()
        .join(".git/objects/tmp_object_git2_1a");
    fs::write(&path, "").unwrap();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    sweep_shared(scratch.folder.path(), written);
    assert!(path.exists());
    let later = written + std::time::Duration::from_secs(1);
    sweep_shared(scratch.folder.path(), later);
    assert!(!path.exists());
}

#[test]
fn locks_that_a_killed_git_left_do_not_stop_the_way_back() {
    let (scratch, tree) = Scratch::new();
    let base = tree.base().unwrap();
    scratch.write("b.txt", "b\n");
    let git = scratch.folder.path().join(".git");
    let branch = base.branch.clone().unwrap();
    for name in ["index", "HEAD", "AUTO_MERGE", &branch] {
        fs::write(git.join(format!("{name}.lock")), "").unwrap();
    }
    tree.take_back(&base, 1, &TEXT, since(0)).unwrap();
    assert_eq!(tree.changes().unwrap(), [""; 0]);
    scratch.write("c.txt", "c\n");
    let text = CommitText {
        issue_id: "i",
        title: "t",
        lease: "l#1",
        step_id: "s",
        witness: None,
        ..CommitText::default()
    };
    tree.commit(&text).unwrap();
}

#[test]
fn a_lane_that_is_put_elsewhere_loses_nothing_that_git_ignores() {
    let (scratch, tree) = Scratch::new();
    let first = tree.base().unwrap();
    scratch.write("b.txt", "b\n");
    scratch.write("late.log", "tracked\n");
    let second = tree.commit(&TEXT).unwrap().unwrap();
    tree.start_at(&first, "i", 1).unwrap();
    assert_eq!(scratch.read("b.txt"), None);
    // Ignored by now, and conflicting with a file of the commit.
    let exclude = scratch.folder.path().join(".git/info/exclude");
    fs::write(exclude, "*.log\n").unwrap();
    scratch.write("late.log", "mine\n");
    scratch.write("other.log", "mine too\n");
    let at = Base {
        commit: second,
        branch: first.branch.clone(),
    };
    tree.start_at(&at, "i", 1).unwrap();
    assert_eq!(scratch.read("late.log").as_deref(), Some("tracked\n"));
    assert_eq!(scratch.read("other.log").as_deref(), Some("mine too\n"));
    assert_eq!(scratch.read("b.txt").as_deref(), Some("b\n"));
    let aside = scratch
        .read(".git/premath-salvage/i/1/late.log")
        .unwrap_or_default();
    assert_eq!(aside, "mine\n");
}

#[test]
fn an_index_that_changed_after_a_look_is_read_again() {
    let (scratch, tree) = Scratch::new();
    // Until its times tell of every change to come.
    while tree.plain.borrow().is_none() {
        assert!(tree.changes().unwrap().is_empty());
    }
    assert!(tree.changes().unwrap().is_empty());
    let repository = Repository::open(scratch.folder.path()).unwrap();
    let mut index = repository.index().unwrap();
    scratch.write("staged.txt", "s");
    index.add_path(Path::new("staged.txt")).unwrap();
    index.write().unwrap();
    fs::remove_file(scratch.folder.path().join("staged.txt")).unwrap();
    assert_eq!(tree.changes().unwrap(), ["staged.txt"]);
    index.remove_path(Path::new("staged.txt")).unwrap();
    let mut hidden = index.get_path(Path::new("a.txt"), 0).unwrap();
    hidden.flags |= git2::IndexEntryFlag::VALID.bits();
    index.add(&hidden).unwrap();
    index.write().unwrap();
    scratch.write("a.txt", "changed");
    assert_eq!(tree.changes().unwrap(), ["a.txt"]);
    assert!(tree.plain.borrow().is_none());
}
