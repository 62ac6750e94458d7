//! The checkout in which a tree is verified before it lands.
//!
//! Only the harness writes it: its index and its git folder lie where no step
//! sees them. A command that runs in it may change its files; they are put back
//! before the next use, and nothing is ever read from it.

use crate::tree::private::{alternates, quoted, set_up, settings};
use crate::tree::{Base, Filters, Ignored, Tree, TreeError, TreeFault, sweep_own};
use git2::Repository;
use premath_platform::file::read_regular;
use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the `.git` file of a checkout says while no command runs in it: a git
/// that is started there by hand finds no repository.
pub(crate) const NO_REPOSITORY: &str = "gitdir: /nonexistent/premath-verification\n";

/// A checkout for verifications.
#[derive(Debug)]
pub struct Checkout {
    tree: Tree,
    folder: PathBuf,
    /// The commit that it was put at, while only the harness has written it since.
    at: RefCell<Option<String>>,
}

impl Checkout {
    /// Makes sure of a checkout of a repository. `folder` is where its files
    /// are, `git` its git folder.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn prepare(repository: &Path, folder: &Path, git: &Path) -> Result<Self, TreeError> {
        let failed = |detail: String| TreeError {
            operation: "prepare the checkout",
            worktree: folder.to_path_buf(),
            detail,
            fault: TreeFault::Git,
        };
        let of_git = |error: git2::Error| failed(error.message().to_owned());
        let of_io = |error: io::Error| failed(error.to_string());
        let main = Repository::open(repository).map_err(of_git)?;
        fs::create_dir_all(folder).map_err(of_io)?;
        let folder = fs::canonicalize(folder).map_err(of_io)?;
        let head = main.head().and_then(|head| head.peel_to_commit());
        let head = head.map_err(of_git)?.id();
        // One that a killed harness left half-written is recreated.
        let is_whole = Repository::open(git)
            .is_ok_and(|git| git.head().is_ok_and(|head| head.peel_to_commit().is_ok()));
        if !is_whole {
            set_up(git).map_err(of_io)?;
            fs::write(git.join("HEAD"), format!("{head}\n")).map_err(of_io)?;
        }
        sweep_own(&git.join("objects"));
        let stores = alternates(&main.commondir().join("objects")).map_err(of_io)?;
        let stores: String = stores
            .iter()
            .map(|store| format!("{}\n", store.display()))
            .collect();
        fs::write(git.join("objects/info/alternates"), stores).map_err(of_io)?;
        let mut config = settings(main.config().map_err(of_git)?).map_err(of_git)?;
        let at = folder.to_string_lossy();
        config.push_str(&format!("[core]\n\tworktree = {}\n", quoted(&at)));
        fs::write(git.join("config"), config).map_err(of_io)?;
        let shallow = read_regular(&main.commondir().join("shallow")).map_err(of_io)?;
        if let Some(shallow) = shallow {
            fs::write(git.join("shallow"), shallow).map_err(of_io)?;
        }
        let mut tree = Tree::of(Repository::open(git), &folder)?;
        tree.set_link(NO_REPOSITORY, main);
        tree.restore_git_file()?;
        Ok(Self {
            tree,
            folder,
            at: RefCell::default(),
        })
    }

    /// Has its files go through the operator's filters, from now on.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn use_filters(&mut self, filters: Arc<Filters>) -> Result<(), TreeError> {
        self.tree.use_filters(filters);
        self.tree.fill_filtered()
    }

    /// Returns the folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns it as a worktree.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Checks a commit out, replacing what is there.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn put_at(&self, commit: &str, ignored: &Ignored) -> Result<(), TreeError> {
        self.at.take();
        self.tree.reset(&detached(commit), ignored)?;
        self.at.replace(Some(commit.to_owned()));
        Ok(())
    }

    /// Moves it from the commit that it was put at to another one, by what
    /// differs between them. Returns `false` where that is not known, or takes
    /// more: it is then to be put there.
    ///
    /// The caller vouches that no command could write it since, but for one that
    /// [`Checkout::forget`] was called for.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn move_to(&self, commit: &str) -> Result<bool, TreeError> {
        let Some(at) = self.at.take() else {
            return Ok(false);
        };
        let moved = self.tree.moved_on(&at, &detached(commit))?;
        if moved {
            self.at.replace(Some(commit.to_owned()));
        }
        Ok(moved)
    }

    /// Makes the next use look at all files: a command may write them.
    pub fn forget(&self) {
        self.at.take();
        self.tree.forget_dates();
    }
}

fn detached(commit: &str) -> Base {
    Base {
        commit: commit.to_owned(),
        branch: None,
    }
}

#[cfg(test)]
mod tests;
