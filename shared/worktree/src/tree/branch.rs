//! The lane's own branch: whether a step's work is on it, and what else would
//! be lost by taking it as it is.

use super::beneath::path;
use super::{Base, Tree, TreeError};
use git2::{FileMode, Oid, RepositoryState};
use std::fmt;

/// Why a step's work cannot be taken as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// HEAD is not on the branch that the step started on.
    Branch {
        /// The branch that it is on; `None` where detached.
        found: Option<String>,
    },
    /// HEAD does not go on from the step's base.
    NotDescendant,
    /// A merge, rebase or the like is in progress.
    Unfinished(&'static str),
    /// A repository of its own is among the files: a commit would not hold
    /// its content.
    NestedRepository(String),
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch { found: Some(found) } => {
                write!(f, "the step left its branch for {found}")
            }
            Self::Branch { found: None } => {
                f.write_str("the step left its branch: HEAD is detached")
            }
            Self::NotDescendant => {
                f.write_str("the step's commits do not go on from the commit it started at")
            }
            Self::Unfinished(what) => write!(f, "the step left a {what} unfinished"),
            Self::NestedRepository(path) => {
                write!(
                    f,
                    "{path} is a git repository of its own; no commit would hold its files"
                )
            }
        }
    }
}

impl Tree {
    /// Returns why what a step did since its base cannot be committed and
    /// closed upon; `None` where it can.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn departure(&self, base: &Base) -> Result<Option<Departure>, TreeError> {
        let now = self
            .repository
            .find_reference("HEAD")
            .map_err(self.failed("read HEAD"))?;
        let found = now.symbolic_target().ok().flatten().map(str::to_owned);
        if found != base.branch {
            return Ok(Some(Departure::Branch { found }));
        }
        if let Some(name) = unfinished(self.repository.state()) {
            return Ok(Some(Departure::Unfinished(name)));
        }
        let (head, origin) = (self.head()?, self.find_commit(&base.commit)?);
        if !self.goes_on_from(head.id(), origin.id())? {
            return Ok(Some(Departure::NotDescendant));
        }
        let failed = "compare with the base";
        let head = head.tree().map_err(self.failed(failed))?;
        let origin = origin.tree().map_err(self.failed(failed))?;
        let committed = self
            .repository
            .diff_tree_to_tree(Some(&origin), Some(&head), None)
            .map_err(self.failed(failed))?;
        let linked = committed
            .deltas()
            .map(|delta| delta.new_file())
            .filter(|file| file.mode() == FileMode::Commit)
            .find_map(|file| file.path_bytes().map(<[u8]>::to_vec));
        let nested = match linked {
            Some(path) => Some(path),
            None => self.scan(&head)?.nested.pop_first(),
        };
        Ok(nested.map(|nested| {
            let folder = path(&nested);
            let folder = match folder.file_name() {
                Some(name) if name == ".git" => folder.parent().unwrap_or(folder),
                _ => folder,
            };
            Departure::NestedRepository(folder.to_string_lossy().into_owned())
        }))
    }

    /// Makes sure that the step's work goes on from its base, and puts HEAD
    /// back on the base's branch where a command had switched to another or to
    /// none; the working tree is not touched.
    ///
    /// # Errors
    ///
    /// [`TreeError`] where HEAD does not go on from the base: the branch would
    /// lose commits of earlier steps.
    pub fn rejoin(&self, base: &Base) -> Result<(), TreeError> {
        let now = self.base()?;
        let head = self.head()?.id();
        let mut past = vec![self.find_commit(&base.commit)?.id()];
        if let Some(branch) = &base.branch {
            past.extend(self.repository.refname_to_id(branch));
        }
        for commit in past {
            if !self.goes_on_from(head, commit)? {
                let elsewhere = now.branch.as_deref().unwrap_or("a detached HEAD");
                let detail = format!("the work is on {elsewhere}, which does not hold {commit}");
                return Err(TreeError {
                    operation: "put the work on the lane's branch",
                    worktree: self.worktree.clone(),
                    detail,
                });
            }
        }
        if now.branch == base.branch {
            return Ok(());
        }
        let moved = match &base.branch {
            Some(branch) => self
                .repository
                .reference(branch, head, true, "premath: the step's work")
                .and_then(|_| self.repository.set_head(branch)),
            None => self.repository.set_head_detached(head),
        };
        moved.map_err(self.failed("put the work on the lane's branch"))
    }

    /// Tells whether a commit is another, or comes after it.
    pub(super) fn goes_on_from(&self, commit: Oid, past: Oid) -> Result<bool, TreeError> {
        if commit == past {
            return Ok(true);
        }
        self.history
            .graph_descendant_of(commit, past)
            .map_err(self.failed("compare commits"))
    }
}

fn unfinished(state: RepositoryState) -> Option<&'static str> {
    match state {
        RepositoryState::Clean => None,
        RepositoryState::Merge => Some("merge"),
        RepositoryState::Revert | RepositoryState::RevertSequence => Some("revert"),
        RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("cherry-pick"),
        RepositoryState::Bisect => Some("bisect"),
        RepositoryState::Rebase
        | RepositoryState::RebaseInteractive
        | RepositoryState::RebaseMerge => Some("rebase"),
        RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => {
            Some("patch series")
        }
    }
}
