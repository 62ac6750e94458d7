//! What a commit changed.

use super::{CONTENT_MAX, DiffSide, Difference, SideContent, WorkDiff, WorkDiffMaker};
use crate::mode::{SUBMODULE, is_kind};
use git2::{Commit, DiffFile, ErrorCode, ObjectType, Oid, Repository};
use std::path::Path;

/// What a commit changed cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}")]
pub struct DiffError {
    operation: String,
    source: git2::Error,
}

fn failed(operation: impl Into<String>) -> impl FnOnce(git2::Error) -> DiffError {
    let operation = operation.into();
    move |source| DiffError { operation, source }
}

/// A repository whose commits are compared.
pub struct CommitDiff(Repository);

impl std::fmt::Debug for CommitDiff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommitDiff")
    }
}

impl CommitDiff {
    /// Opens a repository by its main worktree.
    ///
    /// # Errors
    ///
    /// [`DiffError`].
    pub fn open(repository: &Path) -> Result<Self, DiffError> {
        let opened = Repository::open(repository).map_err(failed("open the repository"))?;
        Ok(Self(opened))
    }

    /// Compares a commit with the one before it.
    ///
    /// # Errors
    ///
    /// [`DiffError`], also where there is no such commit.
    pub fn of_commit(&self, commit: &str) -> Result<WorkDiff, DiffError> {
        let commit = self.commit(commit)?;
        let parent = commit.parent(0).ok();
        self.between(parent.as_ref(), &commit)
    }

    /// Compares a branch with where it left others: of the commits that it has
    /// in common with one of them, the last.
    ///
    /// # Errors
    ///
    /// [`DiffError`], also where there is no such branch.
    pub fn of_branch(&self, branch: &str, others: &[&str]) -> Result<WorkDiff, DiffError> {
        let tip = self.commit(&format!("refs/heads/{branch}"))?;
        let others = others.iter().filter_map(|other| self.commit(other).ok());
        let bases = others.filter_map(|other| self.0.merge_base(tip.id(), other.id()).ok());
        let last = bases.reduce(|one, other| match self.0.graph_descendant_of(other, one) {
            Ok(true) => other,
            _ => one,
        });
        let base = last.and_then(|id| self.0.find_commit(id).ok());
        let base = base.or_else(|| tip.parent(0).ok());
        self.between(base.as_ref(), &tip)
    }

    /// Returns the message of a commit.
    ///
    /// # Errors
    ///
    /// [`DiffError`], also where there is no such commit.
    pub fn message(&self, commit: &str) -> Result<String, DiffError> {
        let commit = self.commit(commit)?;
        Ok(String::from_utf8_lossy(commit.message_bytes()).into_owned())
    }

    /// Returns whether the repository has no branch of a name.
    pub fn lacks_branch(&self, branch: &str) -> bool {
        let found = self.0.find_reference(&format!("refs/heads/{branch}"));
        found.is_err_and(|error| error.code() == ErrorCode::NotFound)
    }

    /// Returns whether the repository has no commit of a full name.
    pub fn lacks_commit(&self, id: &str) -> bool {
        let found = Oid::from_str(id).and_then(|id| self.0.find_commit(id));
        found.is_err_and(|error| error.code() == ErrorCode::NotFound)
    }

    fn commit(&self, name: &str) -> Result<Commit<'_>, DiffError> {
        self.0
            .revparse_single(name)
            .and_then(|object| object.peel_to_commit())
            .map_err(failed(format!("find `{name}`")))
    }

    fn between(
        &self,
        base: Option<&Commit<'_>>,
        commit: &Commit<'_>,
    ) -> Result<WorkDiff, DiffError> {
        let read = "read a commit";
        let old = base.map(Commit::tree).transpose().map_err(failed(read))?;
        let new = commit.tree().map_err(failed(read))?;
        let difference = Difference::of_trees(&self.0, old.as_ref(), &new);
        let difference = difference.map_err(failed("compare two commits"))?;
        let mut made = WorkDiffMaker::new(base.map_or(Oid::ZERO_SHA1, Commit::id));
        for (delta, [before, after]) in difference.changes() {
            if made.is_full() {
                made.leave_out();
                continue;
            }
            let old = before.map(|mode| self.side(mode, &delta.old_file()));
            let new = after.map(|mode| self.side(mode, &delta.new_file()));
            let file = match &new {
                Some(_) => delta.new_file(),
                None => delta.old_file(),
            };
            made.add(file.path_bytes().unwrap_or_default(), old, new);
        }
        Ok(made.done())
    }

    fn side(&self, mode: u32, file: &DiffFile<'_>) -> DiffSide {
        let content = blob_content(&self.0, mode, file.id());
        DiffSide { mode, content }
    }
}

/// Reads a file of a tree.
pub(crate) fn blob_content(repository: &Repository, mode: u32, id: Oid) -> SideContent {
    if is_kind(mode, SUBMODULE) {
        return SideContent::Bytes(format!("Subproject commit {id}\n").into_bytes());
    }
    let header = repository.odb().and_then(|odb| odb.read_header(id));
    match header {
        Ok((size, ObjectType::Blob)) if size > CONTENT_MAX => SideContent::TooLarge,
        Ok(_) => match repository.find_blob(id) {
            Ok(blob) => SideContent::Bytes(blob.content().to_vec()),
            Err(_) => SideContent::Unreadable,
        },
        Err(_) => SideContent::Unreadable,
    }
}
