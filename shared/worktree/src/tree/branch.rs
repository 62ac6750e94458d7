//! What of a step's work no commit can hold, and how commits follow another.

use super::beneath::path;
use super::{Tree, TreeError};
use git2::Oid;

impl Tree {
    /// Returns the folder of a git repository that a step made among the files:
    /// a commit would not hold its content.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn nested_repository(&self, base: &str) -> Result<Option<String>, TreeError> {
        let base = self.find_commit(base)?;
        let base = base.tree().map_err(self.failed("read the tree"))?;
        let nested = self.scan(&base)?.nested.pop_first();
        Ok(nested.map(|nested| {
            let folder = path(&nested);
            let folder = match folder.file_name() {
                Some(name) if name == ".git" => folder.parent().unwrap_or(folder),
                _ => folder,
            };
            folder.to_string_lossy().into_owned()
        }))
    }

    /// Returns whether a commit is another, or comes after it.
    pub(super) fn continues_from(&self, commit: Oid, past: Oid) -> Result<bool, TreeError> {
        if commit == past {
            return Ok(true);
        }
        self.history
            .graph_descendant_of(commit, past)
            .map_err(self.failed("compare commits"))
    }
}
