//! Commits of the harness.

use super::scan::Content;
use super::{Tree, TreeError};
use git2::Oid;
use std::collections::BTreeSet;

/// The trailers of a commit of ours.
#[derive(Clone, Debug)]
pub struct CommitText<'a> {
    /// The issue.
    pub issue_id: &'a str,
    /// Its title.
    pub title: &'a str,
    /// The lease, with its generation.
    pub lease: &'a str,
    /// The step.
    pub step_id: &'a str,
    /// The witness of the verification that the tree passed.
    pub witness: Option<&'a str>,
}

impl Tree {
    /// Commits what is uncommitted onto HEAD; `None` where nothing is.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn commit(&self, text: &CommitText<'_>) -> Result<Option<String>, TreeError> {
        self.commit_if(text, None)
    }

    /// Commits what is uncommitted onto HEAD, if it is what was verified;
    /// `None` where nothing is uncommitted.
    ///
    /// # Errors
    ///
    /// [`TreeError`], where the tree is another than `expected_tree`, too.
    pub fn commit_exactly(
        &self,
        text: &CommitText<'_>,
        expected_tree: &str,
    ) -> Result<Option<String>, TreeError> {
        self.commit_if(text, Some(expected_tree))
    }

    /// Writes the tree as it stands to the object store and returns its digest,
    /// so that it can be committed whatever comes after.
    ///
    /// # Errors
    ///
    /// [`TreeError`], where git cannot take a file, too.
    pub fn keep_content(&self) -> Result<String, TreeError> {
        let head = self.head()?;
        let base = head.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        let content = self.content(&base, &scan, true)?;
        self.must_take(&content)?;
        Ok(content.tree.to_string())
    }

    /// Commits a tree that [`Tree::keep_content`] kept onto HEAD, whatever the
    /// files hold by now; `None` where it is HEAD's own.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn commit_kept(
        &self,
        text: &CommitText<'_>,
        tree: &str,
    ) -> Result<Option<String>, TreeError> {
        let branch = self.base()?.branch;
        self.clear_locks(branch.as_deref(), None);
        let parent = self.head()?;
        let tree = Oid::from_str(tree)
            .and_then(|id| self.repository.find_tree(id))
            .map_err(self.failed("read the tree"))?;
        if tree.id() == parent.tree_id() {
            return Ok(None);
        }
        let id = self.commit_tree(text, &parent, &tree)?;
        self.settle(&tree, &[])?;
        self.cleanup();
        Ok(Some(id))
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

    fn commit_if(
        &self,
        text: &CommitText<'_>,
        expected: Option<&str>,
    ) -> Result<Option<String>, TreeError> {
        let branch = self.base()?.branch;
        self.clear_locks(branch.as_deref(), None);
        let parent = self.head()?;
        let base = parent.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        let content = self.content(&base, &scan, true)?;
        self.must_take(&content)?;
        if expected.is_some_and(|expected| expected != content.tree.to_string()) {
            let detail = "the tree changed after its verification".to_owned();
            return Err(self.error("commit what was verified", detail));
        }
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

    /// Refuses a tree with files that git cannot take.
    pub(super) fn must_take(&self, content: &Content) -> Result<(), TreeError> {
        let Some(path) = content.refused.first() else {
            return Ok(());
        };
        let path = String::from_utf8_lossy(path);
        Err(self.error("stage the changes", format!("git cannot take {path}")))
    }
}

/// The subject line and the trailers; titles come from outside and are one
/// line without control characters here.
pub(super) fn message(text: &CommitText<'_>) -> String {
    let line = |text: &str| -> String {
        let clean: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        clean.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut message = format!(
        "{}: {}\n\nIssue: {}\nLease: {}\nStep: {}\n",
        line(text.issue_id),
        line(text.title),
        line(text.issue_id),
        line(text.lease),
        line(text.step_id)
    );
    if let Some(witness) = text.witness {
        message.push_str(&format!("Witness: {}\n", line(witness)));
    }
    message
}
