//! What a project asks of git, and whether this git can do it.

use super::beneath::path;
use super::{Tree, TreeError, is_ours};
use git2::{FileMode, ObjectType};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The one file of ours that a project may track.
const LEDGER: &str = ".premath/issues.jsonl";

impl Tree {
    /// Returns whether a path is in HEAD's tree.
    pub fn tracks(&self, path: &Path) -> bool {
        self.head()
            .ok()
            .and_then(|head| head.tree().ok())
            .is_some_and(|tree| tree.get_path(path).is_ok())
    }

    /// Returns whether a commit has a file at a path.
    pub fn holds(&self, commit: &str, path: &str) -> bool {
        self.find_commit(commit)
            .ok()
            .and_then(|commit| commit.tree().ok())
            .and_then(|tree| tree.get_path(Path::new(path)).ok())
            .is_some_and(|entry| entry.kind() == Some(ObjectType::Blob))
    }

    /// Returns the paths under `.premath/` and `artifacts/` that HEAD tracks,
    /// sorted, but for the issue ledger: the harness never commits or resets
    /// them, so a project that works on them cannot be worked on.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn tracked_ours(&self) -> Result<Vec<String>, TreeError> {
        let mut found = Vec::new();
        self.each_file(|at, _, _| {
            if is_ours(path(at)) && at != LEDGER.as_bytes() {
                found.push(String::from_utf8_lossy(at).into_owned());
            }
        })?;
        found.sort();
        Ok(found)
    }

    /// Returns whether HEAD or the index holds a submodule: its working tree is
    /// a repository of its own, which the harness neither commits nor resets.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn submodules(&self) -> Result<bool, TreeError> {
        let head = self.head()?;
        let tree = head.tree().map_err(self.failed("read the tree"))?;
        let link = u32::from(FileMode::Commit);
        let mut found = self
            .index_copy(&tree)?
            .iter()
            .any(|entry| entry.mode == link);
        if !found {
            self.each_file(|_, mode, _| {
                found |= mode == i32::from(FileMode::Commit);
            })?;
        }
        Ok(found)
    }

    /// Returns a filter that git would run on files of this project and this
    /// git does not (LFS, git-crypt): it is configured, and an attribute of
    /// the project names it.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn external_filters(&self) -> Result<Option<String>, TreeError> {
        let configured = self.configured_filters()?;
        if configured.is_empty() {
            return Ok(None);
        }
        let mut named = BTreeSet::new();
        self.each_file(|at, _, id| {
            if path(at)
                .file_name()
                .is_some_and(|name| name == ".gitattributes")
                && let Ok(blob) = self.repository.find_blob(id)
            {
                named.extend(filters(blob.content()));
            }
        })?;
        let local = self.common_folder().join("info/attributes");
        named.extend(filters(&fs::read(local).unwrap_or_default()));
        Ok(named.into_iter().find(|name| configured.contains(name)))
    }

    fn configured_filters(&self) -> Result<BTreeSet<String>, TreeError> {
        let failed = "read the configuration";
        let config = self.repository.config().map_err(self.failed(failed))?;
        let mut names = BTreeSet::new();
        let entries = config.entries(None).map_err(self.failed(failed))?;
        entries
            .for_each(|entry| {
                let name = entry.name_bytes();
                let name = String::from_utf8_lossy(name);
                if let Some((name, kind)) = name
                    .strip_prefix("filter.")
                    .and_then(|rest| rest.rsplit_once('.'))
                    && matches!(kind, "clean" | "smudge" | "process")
                {
                    names.insert(name.to_owned());
                }
            })
            .map_err(self.failed(failed))?;
        Ok(names)
    }

    /// Returns whether any file of HEAD has a content.
    pub(super) fn head_holds(&self, content: git2::Oid) -> bool {
        let mut found = false;
        let visited = self.each_file(|_, _, id| found |= id == content);
        visited.is_ok() && found
    }

    /// Visits HEAD's files: path, mode and content.
    fn each_file(&self, visit: impl FnMut(&[u8], i32, git2::Oid)) -> Result<(), TreeError> {
        let tree = self.head()?.tree().map_err(self.failed("read the tree"))?;
        self.each_file_of(&tree, visit)
    }
}

/// Returns the filters that a file of attributes names.
fn filters(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split_whitespace().skip(1))
        .filter_map(|word| word.strip_prefix("filter="))
        .map(str::to_owned)
        .collect()
}
