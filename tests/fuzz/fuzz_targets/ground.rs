//! A repository with a lane's worktree, beside files that are none of a step's.

use git2::{Repository, Signature};
use premath_worktree::tree::{Base, Tree};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the file outside holds.
const SECRET: &[u8] = b"a file outside of the worktree\n";

/// A fresh repository, its lane, and a file outside of both.
pub struct Ground {
    folder: TempDir,
    pub lane: Tree,
    base: Base,
}

impl Ground {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let main = folder.path().join("main");
        let git = Repository::init(&main).expect("a repository can be made");
        let mut top = git.treebuilder(None).expect("a tree can be built");
        let mut below = git.treebuilder(None).expect("a tree can be built");
        let blob = git.blob(b"base\n").expect("a blob can be written");
        below.insert("x", blob, 0o100_644).expect("a fit name");
        let below = below.write().expect("a tree can be written");
        top.insert("d", below, 0o040_000).expect("a fit name");
        top.insert("a", blob, 0o100_644).expect("a fit name");
        let top = top.write().expect("a tree can be written");
        let top = git.find_tree(top).expect("it was written");
        let author = Signature::now("f", "f@localhost").expect("a fit name");
        git.commit(Some("HEAD"), &author, &author, "base", &top, &[])
            .expect("a commit can be written");
        let lane = folder.path().join("lane");
        git.worktree("lane", &lane, None)
            .expect("a worktree can be made");
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).expect("a folder can be made");
        fs::write(outside.join("secret"), SECRET).expect("a file can be written");
        let lane = Tree::open(&lane).expect("a fresh worktree opens");
        let base = lane.base().expect("it has a commit");
        Self { folder, lane, base }
    }

    pub fn worktree(&self) -> PathBuf {
        self.folder.path().join("lane")
    }

    pub fn base(&self) -> Base {
        self.base.clone()
    }

    pub fn repository(&self) -> Repository {
        Repository::open(self.folder.path().join("main")).expect("the repository is whole")
    }

    /// Nothing outside of the worktree was read into the repository, changed or
    /// removed.
    pub fn outside_is_untouched(&self) {
        let outside = self.folder.path().join("outside");
        let names = |folder: &Path| fs::read_dir(folder).expect("already exists").count();
        assert_eq!(names(&outside), 1, "the folder outside was changed");
        let secret = fs::read(outside.join("secret")).expect("the file outside is there");
        assert_eq!(secret, SECRET, "the file outside was changed");
        let id = git2::Oid::hash_object(git2::ObjectType::Blob, SECRET).expect("a hash");
        let odb = self.repository();
        let odb = odb.odb().expect("the objects can be read");
        assert!(!odb.exists(id), "a link was followed out of the worktree");
        assert_eq!(names(self.folder.path()), 3, "something was put beside");
    }
}
