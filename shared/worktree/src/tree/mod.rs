//! The lane's git worktree: clean or not, what a step left, and the way back.
//!
//! Invariant: status, commit, reset and clean never touch `.premath/` or
//! `artifacts/`.

mod aside;
mod beneath;
mod branch;
mod cache_folder;
mod changes;
mod commit;
mod conversion;
mod dating;
mod descent;
mod disjoint_merge;
mod entry_name;
mod exclusion;
mod file_writer;
mod files;
mod fill;
mod filter;
mod git_settings;
mod hiding;
mod holes;
mod home;
mod ignore_rules;
pub(crate) mod index_file;
mod known_files;
mod layer;
mod line_ends;
mod made_folder;
mod manifest;
mod merge;
mod movement;
mod named_checkout;
mod objects;
mod others;
mod overlay;
mod own_files;
mod own_identity;
mod own_place;
mod own_secrets;
mod plain;
pub(crate) mod private;
mod project;
mod relocation;
mod reset;
mod restore;
mod salvage;
mod scan;
pub(crate) mod sparse;
mod submodule;
mod tree_files;
mod work;
mod worktrees;

pub use commit::CommitText;
pub use filter::{FilterDefinitions, FilterEnd, FilterError, FilterRun, FilterRunner, Filters};
pub(crate) use home::HOME;
pub use layer::{Layer, is_untouched};
pub use manifest::Manifest;
pub use merge::Merged;
pub(crate) use objects::sweep_own;
pub use objects::sweep_shared;
pub use own_files::OwnFiles;
pub use private::{LFS_OBJECTS, OBJECTS, PrivateGit};
pub use reset::Ignored;
pub use salvage::Salvage;
pub use submodule::{KeptModules, modules_digest};
pub use worktrees::Worktrees;

use beneath::{Beneath, open_folder};
use git_settings::GitSettings;
use git2::{Commit, ObjectType, Oid, Repository, Signature};
use holes::Holes;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::plain::{cut, cut_at};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

/// The most bytes of what an error reports about a worktree: it may hold names
/// that a step chose.
const DETAIL: usize = 4_096;

/// Git refused something in a worktree.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} in {worktree}: {detail}")]
pub struct TreeError {
    /// The operation that failed.
    pub operation: &'static str,
    /// The worktree of the operation.
    pub worktree: PathBuf,
    /// The message of git.
    pub detail: String,
    /// The cause.
    pub fault: TreeFault,
}

/// What stops work with a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeFault {
    /// Git or the system refused an operation.
    Git,
    /// A filter of the operator's refused a file.
    Filter,
    /// No commit takes what is there.
    Content,
}

impl TreeError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self.fault {
            TreeFault::Git => FailureClass::WorktreeRepository,
            TreeFault::Filter => FailureClass::WorktreeFilter,
            TreeFault::Content => FailureClass::WorkUnfit,
        }
    }
}

/// Where a step starts from, and what it goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The commit that HEAD is at.
    pub commit: String,
    /// The full name of the branch that HEAD is on; `None` where detached.
    pub branch: Option<String>,
}

/// What HEAD and the working tree are, for a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState {
    /// The commit that HEAD is at.
    pub head: String,
    /// The digest of the tree with everything uncommitted in it.
    pub tree: String,
    /// Whether repositories of their own, which no digest holds, are in it.
    pub nested: bool,
}

/// How long it counts that nothing differed in a lane.
const CLEAN_FOR: Duration = Duration::from_secs(1);

/// A lane's worktree.
pub struct Tree {
    repository: Repository,
    /// The repository as its main worktree sees it: a linked one does not know
    /// where the history of a shallow clone ends.
    history: Repository,
    worktree: PathBuf,
    /// Where the files are, as git says it.
    files: PathBuf,
    /// Where worktrees of the repository are, by the paths that it has.
    places: RefCell<HashMap<PathBuf, PathBuf>>,
    /// Those of them that are among these files, as a look found them.
    recorded: RefCell<files::RecordedWorktrees>,
    /// The `.git` file of a linked worktree.
    link: Option<Vec<u8>>,
    /// Whether it is a checkout for verifications.
    is_checkout: bool,
    /// Whether it is only looked at: a step may run in it, and nothing is
    /// stored, made or opened up.
    looks_only: bool,
    /// What was stored of changed files, so that a large one is read once.
    blobs: RefCell<HashMap<Vec<u8>, scan::StoredContent>>,
    /// The index on the disk, where it is known which tree it has.
    plain: RefCell<Option<plain::PlainIndex>>,
    /// The tree that the files were reset to, and when, until a command runs or
    /// the lane is put elsewhere.
    clean: Cell<Option<(Oid, Instant)>>,
    /// What differed from a tree when the work was looked at, until a command runs
    /// or the lane is put elsewhere.
    seen: RefCell<Option<(Oid, scan::Scan)>>,
    /// What the last look at a step's work found, until it is stored.
    look: RefCell<Option<commit::Look>>,
    /// The operator's git settings, until a command runs or the lane is put elsewhere.
    settings: RefCell<Option<Rc<GitSettings>>>,
    /// By which rule the files have their times, while only the harness writes
    /// them.
    dated: RefCell<Option<dating::Dated>>,
    /// Files of the operator's, which are never part of the work.
    own: OwnFiles,
    /// What the operator's filters do, where there are any.
    filters: Option<Arc<Filters>>,
    /// What came out of them in the latest look.
    cleaned: RefCell<HashMap<Vec<u8>, scan::StoredContent>>,
    /// What they refused in the latest look, and why.
    unfiltered: RefCell<HashMap<Vec<u8>, String>>,
    /// Files whose filters were ended, as they were then, and why.
    ended: RefCell<HashMap<Vec<u8>, (crate::file_stamp::FileStamp, String)>>,
    /// How much of the files may be holes.
    holes: Holes,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("worktree", &self.worktree)
            .finish()
    }
}

impl Tree {
    /// Opens a worktree whose `.git` no step can have written.
    ///
    /// # Errors
    ///
    /// [`TreeError`] where it is none, or has no commit yet.
    pub fn open(worktree: &Path) -> Result<Self, TreeError> {
        Self::of(Repository::open(worktree), worktree)
    }

    /// Opens a worktree by the record that its repository has of it. The
    /// worktree's own `.git` is not read: a step may have written it.
    ///
    /// # Errors
    ///
    /// [`TreeError`] where the repository has no such worktree, or no commit.
    pub fn open_in(repository: &Path, worktree: &Path) -> Result<Self, TreeError> {
        let opened = Worktrees::of(repository).and_then(|own| own.open(worktree));
        Self::of(opened, worktree)
    }

    pub(crate) fn of(
        opened: Result<Repository, git2::Error>,
        worktree: &Path,
    ) -> Result<Self, TreeError> {
        let failed = |error: git2::Error| TreeError {
            operation: "open the repository",
            worktree: worktree.to_path_buf(),
            detail: error.message().to_owned(),
            fault: TreeFault::Git,
        };
        let repository = opened.map_err(failed)?;
        // A configured `core.worktree` would put the files elsewhere.
        let files = repository.workdir().unwrap_or(worktree).to_path_buf();
        let is_here = fs::canonicalize(&files).ok() == fs::canonicalize(worktree).ok();
        if !is_here || repository.is_bare() {
            return Err(failed(git2::Error::from_str(
                "its files are in another folder",
            )));
        }
        let link = repository.is_worktree().then(|| {
            let record = repository.path().as_os_str().as_encoded_bytes();
            let record = record.strip_suffix(b"/").unwrap_or(record);
            [b"gitdir: ", record, b"\n"].concat()
        });
        let history = Repository::open(repository.commondir()).map_err(failed)?;
        let tree = Self {
            repository,
            history,
            worktree: worktree.to_path_buf(),
            files,
            places: RefCell::default(),
            recorded: RefCell::default(),
            link,
            is_checkout: false,
            looks_only: false,
            blobs: RefCell::default(),
            plain: RefCell::default(),
            clean: Cell::default(),
            seen: RefCell::default(),
            look: RefCell::default(),
            settings: RefCell::default(),
            dated: RefCell::default(),
            own: OwnFiles::default(),
            filters: None,
            cleaned: RefCell::default(),
            unfiltered: RefCell::default(),
            ended: RefCell::default(),
            holes: Holes::default(),
        };
        tree.head()?;
        Ok(tree)
    }

    /// Returns the repository's common git folder: what its worktrees share.
    pub fn common_folder(&self) -> &Path {
        self.repository.commondir()
    }

    /// Returns this worktree's own git folder, which no other worktree has.
    pub fn git_folder(&self) -> &Path {
        self.repository.path()
    }

    /// Returns whether this is the repository's main worktree, where a person's
    /// git may run, and not a linked one.
    pub fn is_main(&self) -> bool {
        !self.repository.is_worktree()
    }

    /// Makes it a checkout of the harness's own, which no repository has a
    /// record of; says what its `.git` file says while no command runs.
    pub(crate) fn set_link(&mut self, link: &str, main: Repository) {
        self.link = Some(link.as_bytes().to_vec());
        self.history = main;
        self.is_checkout = true;
    }

    /// Returns whether the harness made the folder with all that is in it.
    fn is_disposable(&self) -> bool {
        self.is_checkout || crate::ownership::is_provisioned(self.git_folder())
    }

    fn workdir(&self) -> &Path {
        &self.files
    }

    fn beneath(&self) -> Result<Beneath, TreeError> {
        let open = || Beneath::open(&self.files);
        let opened = open().or_else(|error| match error.kind() {
            // A step may have taken its owner's rights to it.
            ErrorKind::PermissionDenied if !self.looks_only => {
                open_folder(&self.files, self.is_disposable()).and_then(|()| open())
            }
            _ => Err(error),
        });
        opened.map_err(self.refused("open", Path::new("the worktree")))
    }

    fn beneath_git(&self) -> Result<Beneath, TreeError> {
        Beneath::open(self.git_folder()).map_err(self.refused("open", Path::new("the git folder")))
    }

    fn error(&self, operation: &'static str, detail: String) -> TreeError {
        TreeError {
            operation,
            worktree: self.worktree.clone(),
            detail: cut_at(&detail, DETAIL).into_owned(),
            fault: TreeFault::Git,
        }
    }

    fn filter_error(&self, operation: &'static str, detail: String) -> TreeError {
        TreeError {
            fault: TreeFault::Filter,
            ..self.error(operation, detail)
        }
    }

    fn failed(&self, operation: &'static str) -> impl FnOnce(git2::Error) -> TreeError {
        move |error| self.error(operation, error.message().to_owned())
    }

    fn refused<'a>(
        &'a self,
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> TreeError + 'a {
        move |error| {
            let path = path.to_string_lossy();
            self.error(operation, format!("{}: {error}", cut(&path)))
        }
    }

    fn head(&self) -> Result<Commit<'_>, TreeError> {
        self.repository
            .head()
            .and_then(|head| head.peel_to_commit())
            .map_err(self.failed("read HEAD"))
    }

    /// Returns where HEAD is.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn base(&self) -> Result<Base, TreeError> {
        let head = self
            .repository
            .find_reference("HEAD")
            .map_err(self.failed("read HEAD"))?;
        let branch = head.symbolic_target().ok().flatten().map(str::to_owned);
        let commit = head
            .peel_to_commit()
            .map_err(self.failed("read HEAD"))?
            .id()
            .to_string();
        Ok(Base { commit, branch })
    }

    /// Returns the time of the last work here, as far as that is in the past:
    /// HEAD's commit where it is not the base, the last entry of HEAD's reflog
    /// that is not the harness's own, the newest of the files that differ.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn last_touched(
        &self,
        base: &str,
        now: jiff::Timestamp,
    ) -> Result<jiff::Timestamp, TreeError> {
        let second = |seconds| jiff::Timestamp::from_second(seconds).unwrap_or_default();
        let mut times = Vec::new();
        let head = self.head()?;
        if head.id().to_string() != base {
            times.push(second(head.time().seconds()));
        }
        if let Ok(reflog) = self.repository.reflog("HEAD") {
            let theirs = reflog.iter().find(|entry| {
                !entry
                    .message_bytes()
                    .is_some_and(|message| message.starts_with(b"premath:"))
            });
            times.extend(theirs.map(|entry| second(entry.committer().when().seconds())));
        }
        for path in self.changes()? {
            let modified = std::fs::symlink_metadata(self.worktree.join(path))
                .and_then(|meta| meta.modified());
            times.extend(
                modified
                    .ok()
                    .and_then(|at| jiff::Timestamp::try_from(at).ok()),
            );
        }
        Ok(times
            .into_iter()
            .filter(|at| *at <= now)
            .max()
            .unwrap_or_default())
    }

    /// Returns the state of a tree that is known to be clean.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn clean_state(&self) -> Result<TreeState, TreeError> {
        let head = self.head()?;
        Ok(TreeState {
            head: head.id().to_string(),
            tree: head.tree_id().to_string(),
            nested: false,
        })
    }

    /// Returns HEAD and the digest of the tree as it is, uncommitted changes
    /// included; nothing is staged. Nested repositories are not in it.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn state(&self) -> Result<TreeState, TreeError> {
        self.state_from(&self.head()?)
    }

    /// Returns the digest of the files as they are, looked at from a commit,
    /// wherever HEAD is.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn state_on(&self, commit: &str) -> Result<TreeState, TreeError> {
        self.state_from(&self.find_commit(commit)?)
    }

    fn state_from(&self, head: &Commit<'_>) -> Result<TreeState, TreeError> {
        let base = head.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        self.look.take();
        let tree = if scan.paths.is_empty() && scan.unfit.is_empty() {
            base.id()
        } else {
            let content = self.content(&base, &scan, false)?;
            self.must_take(&content)?;
            let tree = content.tree;
            self.look.replace(Some(content.into_look(base.id())));
            tree
        };
        let nested = !scan.nested.is_empty();
        self.seen.replace(Some((base.id(), scan)));
        Ok(TreeState {
            head: head.id().to_string(),
            tree: tree.to_string(),
            nested,
        })
    }

    fn head_tree(&self) -> Result<git2::Tree<'_>, TreeError> {
        self.head()?.tree().map_err(self.failed("read the tree"))
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn tree_of(&self, commit: &str) -> Result<String, TreeError> {
        Ok(self.find_commit(commit)?.tree_id().to_string())
    }

    fn signature(&self) -> Result<Signature<'static>, TreeError> {
        crate::signature(&self.repository).map_err(self.failed("name the author"))
    }

    fn find_commit(&self, id: &str) -> Result<Commit<'_>, TreeError> {
        self.repository
            .revparse_single(id)
            .and_then(|object| object.peel(ObjectType::Commit))
            .and_then(|object| object.peel_to_commit())
            .map_err(self.failed("find a commit"))
    }
}

/// Returns whether a path in the worktree is the harness's own.
fn is_ours(path: &Path) -> bool {
    path.starts_with(".premath") || path.starts_with("artifacts")
}

#[cfg(test)]
mod tests;
