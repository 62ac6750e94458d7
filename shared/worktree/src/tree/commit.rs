//! Commits of the harness.

use super::beneath::{Beneath, kind};
use super::files::FILE_MAX;
use super::holes::{TOO_SPARSE, holes_of};
use super::overlay::Overlay;
use super::scan::Content;
use super::{Tree, TreeError, TreeFault, TreeState};
use crate::reference_deletion::delete;
use crate::signing::{Signer, SigningError, write_commit};
use git2::Oid;
use premath_kernel::json::plain::cut;
use premath_kernel::record::trailers::LandingTrailers;
use premath_kernel::record::trajectory::ChainHead;
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::path::Path;

/// Where references of lanes hold commits that are verified.
const HELD: &str = "refs/harness/held";

/// What a look at a step's work found. The files' content is stored; the trees
/// are not.
pub(super) struct Look {
    /// The tree that it was looked at from.
    pub(super) base: Oid,
    /// The tree that the files make.
    pub(super) tree: Oid,
    /// The difference between the two trees.
    pub(super) overlay: Overlay,
}

/// The trailers of a commit of ours.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitText<'a> {
    /// The issue.
    pub issue_id: &'a str,
    /// The title of the issue.
    pub title: &'a str,
    /// The lease, with its generation.
    pub lease: &'a str,
    /// The step.
    pub step_id: &'a str,
    /// The witness of the verification that the tree passed.
    pub witness: Option<&'a str>,
    /// The end of the trajectory's hash chain when the work lands.
    pub trajectory: Option<ChainHead>,
    /// The commit that the step began at.
    pub base: Option<&'a str>,
    /// The tree that was verified.
    pub verified_tree: Option<&'a str>,
    /// The tree of a later commit, which was verified and contains the work.
    pub verified_in: Option<&'a str>,
}

impl Tree {
    /// Commits what is uncommitted onto HEAD; `None` where nothing is.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn commit(&self, text: &CommitText<'_>) -> Result<Option<String>, TreeError> {
        let branch = self.base()?.branch;
        self.clear_locks(branch.as_deref(), None);
        let parent = self.head()?;
        let base = parent.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        let content = self.content(&base, &scan, true)?;
        self.must_take(&content)?;
        if content.tree == base.id() {
            return Ok(None);
        }
        let tree = self
            .repository
            .find_tree(content.tree)
            .map_err(self.failed("read the tree"))?;
        let id = self.commit_tree(text, &parent, &tree)?;
        self.settle(&tree, &content.entries)?;
        self.cleanup();
        Ok(Some(id))
    }

    /// Writes the files as they are to the object store, looked at from a
    /// commit, and returns the digest of their tree.
    ///
    /// # Errors
    ///
    /// [`TreeError`], where git cannot take a file, too.
    pub fn keep_content(&self, commit: &str) -> Result<String, TreeError> {
        let base = self.find_commit(commit)?;
        let base = base.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        let content = self.content(&base, &scan, true)?;
        self.must_take(&content)?;
        Ok(content.tree.to_string())
    }

    /// Writes a tree to the object store that [`Tree::state_on`] found from this
    /// commit. Returns `false` where the files have to be read again for it, and
    /// are others by now.
    ///
    /// # Errors
    ///
    /// As [`Tree::keep_content`].
    pub fn keep_state(&self, commit: &str, state: &TreeState) -> Result<bool, TreeError> {
        let base = self.find_commit(commit)?;
        let base = base.tree().map_err(self.failed("read the tree"))?;
        let look = self.look.take().filter(|look| look.base == base.id());
        let kept = match look.filter(|look| look.tree.to_string() == state.tree) {
            Some(look) => look
                .overlay
                .digest(&self.repository, &base, true)
                .map_err(self.failed("write the tree"))?
                .to_string(),
            None => self.keep_content(commit)?,
        };
        Ok(kept == state.tree)
    }

    /// Writes a commit of a tree with one parent, signed where there is a
    /// signer; no branch holds it yet. The author is who runs the harness,
    /// whatever a step's own commits say.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn squash(
        &self,
        text: &CommitText<'_>,
        parent: &str,
        tree: &str,
        signer: Option<&Signer>,
    ) -> Result<String, TreeError> {
        let parent = self.find_commit(parent)?;
        let tree = Oid::from_str(tree)
            .and_then(|id| self.repository.find_tree(id))
            .map_err(self.failed("read the tree"))?;
        let author = self.signature()?;
        let message = message(text);
        write_commit(
            &self.repository,
            signer,
            &author,
            &message,
            &tree,
            &[&parent],
        )
        .map(|id| id.to_string())
        .map_err(|error| match error {
            SigningError::Git(error) => self.error("commit", error.message().to_owned()),
            error => self.error("commit", error.to_string()),
        })
    }

    /// Holds a commit by a reference of the lane's, so that git does not clean
    /// it up while a verification looks at it.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn hold(&self, lane: &str, commit: &str) -> Result<(), TreeError> {
        let failed = "hold a commit";
        let commit = Oid::from_str(commit).map_err(self.failed(failed))?;
        let name = format!("{HELD}/{lane}");
        // The reference is the lane's alone: a lock was left by a killed harness.
        if let Ok(common) = Beneath::open(self.common_folder()) {
            let _ = common.remove_alone(Path::new(&format!("{name}.lock")));
        }
        self.repository
            .reference(&name, commit, true, "premath: verified now")
            .map(drop)
            .map_err(self.failed(failed))
    }

    /// Removes the reference of [`Tree::hold`].
    pub fn release_held(&self, lane: &str) {
        if let Ok(held) = self.repository.find_reference(&format!("{HELD}/{lane}")) {
            let _ = delete(&self.repository, held);
        }
    }

    fn commit_tree(
        &self,
        text: &CommitText<'_>,
        parent: &git2::Commit<'_>,
        tree: &git2::Tree<'_>,
    ) -> Result<String, TreeError> {
        let author = self.signature()?;
        let message = message(text);
        self.repository
            .commit(Some("HEAD"), &author, &author, &message, tree, &[parent])
            .map(|id| id.to_string())
            .map_err(self.failed("commit"))
    }

    /// Returns the paths in which a tree differs from a commit, sorted; a name
    /// that is not UTF-8 is shown with replacement characters.
    ///
    /// # Errors
    ///
    /// [`TreeError`], where the tree is not in the object store, too.
    pub fn changed_since(&self, commit: &str, tree: &str) -> Result<Vec<String>, TreeError> {
        let failed = "compare with the base";
        let base = self.find_commit(commit)?;
        let base = base.tree().map_err(self.failed(failed))?;
        let tree = Oid::from_str(tree)
            .and_then(|id| self.repository.find_tree(id))
            .map_err(self.failed(failed))?;
        let diff = self
            .repository
            .diff_tree_to_tree(Some(&base), Some(&tree), None)
            .map_err(self.failed(failed))?;
        let paths: BTreeSet<String> = diff
            .deltas()
            .flat_map(|delta| {
                let name = |file: git2::DiffFile<'_>| {
                    let path = file.path_bytes()?;
                    Some(String::from_utf8_lossy(path).into_owned())
                };
                [name(delta.old_file()), name(delta.new_file())]
            })
            .flatten()
            .collect();
        Ok(paths.into_iter().collect())
    }

    fn has_symlink(&self, name: &str) -> bool {
        let root = self.beneath().ok();
        let found = root.and_then(|root| root.look(Path::new(name)).ok().flatten());
        found.is_some_and(|stat| kind(&stat) == FileType::Symlink)
    }

    /// Returns why a file that was refused is too much to be read.
    fn size_refusal(&self, name: &str) -> Option<&'static str> {
        let root = self.beneath().ok()?;
        let stat = root.look(Path::new(name)).ok()??;
        if kind(&stat) != FileType::RegularFile {
            return None;
        }
        if u64::try_from(stat.st_size).is_ok_and(|size| size > FILE_MAX) {
            return Some("it is larger than 1 GiB");
        }
        (holes_of(&stat) > 0).then_some(TOO_SPARSE)
    }

    /// Refuses a tree with files that git cannot take.
    pub(super) fn must_take(&self, content: &Content) -> Result<(), TreeError> {
        let Some(path) = content.refused.first() else {
            return Ok(());
        };
        if let Some((name, why)) = content.unstored() {
            let name = String::from_utf8_lossy(name);
            return Err(self.error("store the changes", format!("{}: {why}", cut(&name))));
        }
        let why = self.filter_refusal(path);
        let path = String::from_utf8_lossy(path);
        let operation = "stage the changes";
        let detail = match why {
            Some(why) => {
                return Err(self.filter_error(operation, format!("{}: {why}", cut(&path))));
            }
            None if self.has_symlink(&path) => {
                let rule = "only links to other files of the worktree are taken";
                format!("{} leads elsewhere; {rule}", cut(&path))
            }
            None => match self.size_refusal(&path) {
                Some(why) => format!("{}: {why}", cut(&path)),
                None => format!("git cannot take {}", cut(&path)),
            },
        };
        Err(TreeError {
            fault: TreeFault::Content,
            ..self.error(operation, detail)
        })
    }
}

/// The subject line and the trailers.
pub(super) fn message(text: &CommitText<'_>) -> String {
    let trailers = LandingTrailers {
        issue: text.issue_id.into(),
        lease: text.lease.to_owned(),
        step: text.step_id.into(),
        witness: text.witness.map(str::to_owned),
        trajectory: text.trajectory,
        base: text.base.map(str::to_owned),
        verified_tree: text.verified_tree.map(str::to_owned),
        verified_in: text.verified_in.map(str::to_owned),
    };
    trailers.message(text.title, None)
}
