//! Commits as an audit sees them: the first-parent history of a branch, and
//! who signed.

mod merged;

use crate::signing::{AllowedSigners, CommitSignature, Signed, signature_of};
use git2::{ErrorCode, Oid, Repository};
use jiff::Timestamp;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::audit::{CommitFacts, SignatureState};
use ssh_key::HashAlg;
use std::collections::BTreeSet;
use std::path::Path;

/// The commits of a repository, read only.
pub struct History {
    git: Repository,
    allowed: Option<AllowedSigners>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History")
            .field("repository", &self.git.path())
            .finish_non_exhaustive()
    }
}

/// The history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Git could not read it.
    #[error("cannot {operation}")]
    Git {
        /// The operation that failed.
        operation: String,
        /// The cause.
        source: git2::Error,
    },
}

impl HistoryError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::LandingTargetUnusable
    }

    fn git(operation: impl Into<String>) -> impl FnOnce(git2::Error) -> Self {
        let operation = operation.into();
        move |source| Self::Git { operation, source }
    }
}

/// How large the difference between two commits is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffSize {
    /// Files that differ.
    pub files: u64,
    /// Lines that only the later commit has.
    pub added: u64,
    /// Lines that only the earlier commit has.
    pub deleted: u64,
}

/// A larger file counts as a file without lines.
const COUNTED_MAX: i64 = 1 << 20;

impl History {
    /// Returns how large the change of a commit is, against its first parent; `None`
    /// where there is no such commit.
    pub fn change_of(&self, commit: &str) -> Option<DiffSize> {
        let commit = self.git.find_commit(Oid::from_str(commit).ok()?).ok()?;
        let parent = commit.parent(0).ok().and_then(|parent| parent.tree().ok());
        self.size(parent.as_ref(), &commit.tree().ok()?)
    }

    /// Returns how large the change of a branch is since it left another; `None` where
    /// either is gone.
    pub fn change_since(&self, from: &str, branch: &str) -> Option<DiffSize> {
        let tip = self.tip_of(branch)?;
        let base = self
            .git
            .merge_base(self.tip_of(from)?.id(), tip.id())
            .ok()?;
        let base = self.git.find_commit(base).ok()?.tree().ok()?;
        self.size(Some(&base), &tip.tree().ok()?)
    }

    fn tip_of(&self, branch: &str) -> Option<git2::Commit<'_>> {
        let name = match branch {
            "HEAD" => branch.to_owned(),
            branch => format!("refs/heads/{branch}"),
        };
        self.git.find_reference(&name).ok()?.peel_to_commit().ok()
    }

    fn size(&self, from: Option<&git2::Tree<'_>>, to: &git2::Tree<'_>) -> Option<DiffSize> {
        let mut options = git2::DiffOptions::new();
        options.context_lines(0).max_size(COUNTED_MAX);
        let diff = self
            .git
            .diff_tree_to_tree(from, Some(to), Some(&mut options));
        let stats = diff.ok()?.stats().ok()?;
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Some(DiffSize {
            files: count(stats.files_changed()),
            added: count(stats.insertions()),
            deleted: count(stats.deletions()),
        })
    }

    /// Opens a repository by its main worktree. `allowed` are the keys that
    /// may sign; where they are not known, no key is refused.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn open(repository: &Path, allowed: Option<AllowedSigners>) -> Result<Self, HistoryError> {
        let git = Repository::open(repository).map_err(HistoryError::git("open the repository"))?;
        Ok(Self { git, allowed })
    }

    /// Returns the repository.
    pub const fn repository(&self) -> &Repository {
        &self.git
    }

    /// Returns the full name of the commit that a person names.
    ///
    /// # Errors
    ///
    /// [`HistoryError`], where there is none.
    pub fn resolve(&self, name: &str) -> Result<String, HistoryError> {
        self.git
            .revparse_single(name)
            .and_then(|object| object.peel_to_commit())
            .map(|commit| commit.id().to_string())
            .map_err(HistoryError::git(format!("find the commit `{name}`")))
    }

    /// Returns the first-parent history of a branch, the newest commit first,
    /// without `since` and what came before it; `None` where there is no such
    /// branch.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn first_parents(
        &self,
        branch: &str,
        since: Option<&str>,
    ) -> Result<Option<Vec<CommitFacts>>, HistoryError> {
        let failed = || HistoryError::git(format!("read the history of {branch}"));
        let Some(tip) = self.tip(branch).map_err(failed())? else {
            return Ok(None);
        };
        let is_end = |id: Oid| since.is_some_and(|since| since == id.to_string());
        self.chain(tip, is_end).map(Some).map_err(failed())
    }

    /// Returns the commit of a branch; none where there is no such branch.
    fn tip(&self, branch: &str) -> Result<Option<Oid>, git2::Error> {
        match self.git.find_reference(&format!("refs/heads/{branch}")) {
            Ok(reference) => Ok(Some(reference.peel_to_commit()?.id())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a commit and its first parents, up to one that is not wanted any more.
    fn chain(
        &self,
        tip: Oid,
        is_end: impl Fn(Oid) -> bool,
    ) -> Result<Vec<CommitFacts>, git2::Error> {
        let mut commits = Vec::new();
        let mut next = Some(tip);
        while let Some(id) = next.filter(|id| !is_end(*id)) {
            let commit = self.git.find_commit(id)?;
            next = commit.parent_id(0).ok();
            commits.push(self.facts(&commit)?);
        }
        Ok(commits)
    }

    /// Returns a commit; `None` where the repository has none of that name.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn commit(&self, id: &str) -> Result<Option<CommitFacts>, HistoryError> {
        let failed = || HistoryError::git(format!("read the commit {id}"));
        let Ok(oid) = Oid::from_str(id) else {
            return Ok(None);
        };
        match self.git.find_commit(oid) {
            Ok(commit) => self.facts(&commit).map(Some).map_err(failed()),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(failed()(error)),
        }
    }

    /// Returns the commits of landings whose issue is yet to close, by their marks.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn marked(&self) -> Result<BTreeSet<String>, HistoryError> {
        let marked = crate::landing::mark::marked(&self.git);
        let marked = marked.map_err(HistoryError::git("read the marks of landings"))?;
        Ok(marked.iter().map(Oid::to_string).collect())
    }

    fn facts(&self, commit: &git2::Commit<'_>) -> Result<CommitFacts, git2::Error> {
        Ok(CommitFacts {
            id: commit.id().to_string(),
            tree: commit.tree_id().to_string(),
            parents: commit.parent_ids().map(|id| id.to_string()).collect(),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            signature: self.signature(commit)?,
        })
    }

    fn signature(&self, commit: &git2::Commit<'_>) -> Result<SignatureState, git2::Error> {
        let key = match signature_of(&self.git, commit.id())? {
            CommitSignature::None => return Ok(SignatureState::None),
            CommitSignature::Foreign => return Ok(SignatureState::Foreign),
            CommitSignature::Bad(why) => return Ok(SignatureState::Bad(why)),
            CommitSignature::Good(key) => key,
        };
        let name = key.fingerprint(HashAlg::Sha256).to_string();
        let Some(allowed) = &self.allowed else {
            return Ok(SignatureState::Unjudged(name));
        };
        let seconds = commit.committer().when().seconds();
        let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(match allowed.judge(&key, at) {
            Signed::By(_) => SignatureState::Good,
            Signed::Refused(why) => SignatureState::Refused {
                key: name,
                why: why.to_owned(),
            },
        })
    }
}
