//! A lane that a step may have changed.

use super::*;
use std::path::PathBuf;

/// A repository with a lane's linked worktree on the branch `l1`.
pub(super) struct Lane {
    pub(super) folder: tempfile::TempDir,
    pub(super) main: Repository,
    pub(super) tree: Tree,
    pub(super) base: Base,
}

impl Lane {
    /// A lane that the harness made itself.
    pub(super) fn provisioned() -> Self {
        let lane = Self::new();
        let mark = lane.tree.git_folder().join(crate::ownership::MARK);
        fs::write(mark, "").unwrap();
        lane
    }

    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let main = Repository::init(folder.path().join("main")).unwrap();
        let at = folder.path().join("main");
        for (path, text) in [
            ("d/x", "base\n"),
            ("a.txt", "a\n"),
            (".gitignore", "target/\n"),
        ] {
            fs::create_dir_all(at.join(path).parent().unwrap()).unwrap();
            fs::write(at.join(path), text).unwrap();
        }
        fs::create_dir_all(at.join(".premath")).unwrap();
        fs::write(at.join(".premath/issues.jsonl"), "1\n").unwrap();
        let mut index = main.index().unwrap();
        index.add_all(["*"], IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = index.write_tree().unwrap();
        let author = Signature::now("t", "t@localhost").unwrap();
        let content = main.find_tree(tree).unwrap();
        let first = main
            .commit(Some("HEAD"), &author, &author, "first", &content, &[])
            .unwrap();
        drop(content);
        let first = main.find_commit(first).unwrap();
        let branch = main.branch("l1", &first, false).unwrap().into_reference();
        let mut options = git2::WorktreeAddOptions::new();
        options.reference(Some(&branch));
        let lane = folder.path().join("lane");
        main.worktree("lane", &lane, Some(&options)).unwrap();
        drop((branch, first));
        let tree = Tree::open(&lane).unwrap();
        let base = tree.base().unwrap();
        fs::create_dir_all(folder.path().join("precious")).unwrap();
        fs::write(folder.path().join("precious/x"), "mine\n").unwrap();
        fs::write(folder.path().join("precious/new"), "mine\n").unwrap();
        Self {
            folder,
            main,
            tree,
            base,
        }
    }

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join("lane").join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn precious(&self) -> PathBuf {
        self.folder.path().join("precious")
    }

    pub(super) fn left(&self) -> String {
        let left = left(&self.tree, &self.base);
        for name in ["x", "new"] {
            let text = fs::read_to_string(self.precious().join(name)).unwrap();
            assert_eq!(text, "mine\n");
        }
        assert_eq!(fs::read_dir(self.precious()).unwrap().count(), 2);
        assert_eq!(fs::read_to_string(self.at("d/x")).unwrap(), "base\n");
        assert_eq!(fs::read_to_string(self.at("a.txt")).unwrap(), "a\n");
        left
    }

    pub(super) fn commit_on(&self, name: &str, text: &str) -> Oid {
        let repository = &self.tree.repository;
        let author = Signature::now("t", "t@localhost").unwrap();
        let parent = self.tree.head().unwrap();
        let blob = repository.blob(text.as_bytes()).unwrap();
        let mut builder = repository
            .treebuilder(Some(&parent.tree().unwrap()))
            .unwrap();
        builder.insert("made.txt", blob, 0o100_644).unwrap();
        let content = repository.find_tree(builder.write().unwrap()).unwrap();
        repository
            .commit(Some(name), &author, &author, text, &content, &[&parent])
            .unwrap()
    }

    pub(super) fn kept(&self, branch: &str) -> Vec<String> {
        let commit = self
            .tree
            .find_commit(&format!("refs/heads/{branch}"))
            .unwrap();
        let mut index = git2::Index::new().unwrap();
        index.read_tree(&commit.tree().unwrap()).unwrap();
        index
            .iter()
            .map(|entry| String::from_utf8_lossy(&entry.path).into_owned())
            .collect()
    }
}
