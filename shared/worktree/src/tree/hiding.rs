//! Ignore rules that a step wrote and that hide files of the repository: the
//! work of later steps would be hidden by them too.

use super::beneath::path;
use super::ignore_rules::parsed;
use super::{Tree, TreeError};
use crate::mode::mode_of;
use git2::{ObjectType, Oid};
use ignore::gitignore::Gitignore;

const NAME: &[u8] = b".gitignore";

impl Tree {
    /// Returns an ignore file that a tree has again, with a file of that tree
    /// which it hides and which was not hidden before; `None` where there is
    /// none.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn hides_files(
        &self,
        base: &str,
        tree: &str,
    ) -> Result<Option<(String, String)>, TreeError> {
        let failed = "read the ignore rules";
        let before = self.find_commit(base)?;
        let before = before.tree().map_err(self.failed(failed))?;
        let tree = Oid::from_str(tree)
            .and_then(|id| self.repository.find_tree(id))
            .map_err(self.failed(failed))?;
        let rules = |tree: &git2::Tree<'_>, name: &[u8]| -> Option<Gitignore> {
            let entry = tree.get_path(path(name)).ok()?;
            let blob = self.repository.find_blob(entry.id()).ok()?;
            parsed(blob.content())
        };
        for changed in self.changed_since(base, &tree.id().to_string())? {
            let name = changed.as_bytes();
            let folder = match name.strip_suffix(NAME) {
                Some([]) => &name[..0],
                Some(folder) if folder.ends_with(b"/") => folder,
                _ => continue,
            };
            let Some(now) = rules(&tree, name) else {
                continue;
            };
            let old = rules(&before, name);
            let is_hidden = |below: &[u8], rules: &Gitignore| {
                rules
                    .matched_path_or_any_parents(path(below), false)
                    .is_ignore()
            };
            let mut found = None;
            self.each_file_of(&tree, |at, _, _| {
                let Some(below) = at.strip_prefix(folder) else {
                    return;
                };
                let was_hidden = || old.as_ref().is_some_and(|old| is_hidden(below, old));
                if found.is_none() && at != name && is_hidden(below, &now) && !was_hidden() {
                    found = Some(String::from_utf8_lossy(at).into_owned());
                }
            })?;
            if let Some(hidden) = found {
                return Ok(Some((changed, hidden)));
            }
        }
        Ok(None)
    }

    /// Visits the files of a tree: path, mode and content.
    pub(super) fn each_file_of(
        &self,
        tree: &git2::Tree<'_>,
        mut visit: impl FnMut(&[u8], i32, Oid),
    ) -> Result<(), TreeError> {
        let mut folders = vec![(Vec::new(), tree.clone())];
        while let Some((at, tree)) = folders.pop() {
            for entry in tree.iter() {
                let mut name: Vec<u8> = at.clone();
                name.extend_from_slice(entry.name_bytes());
                if entry.kind() != Some(ObjectType::Tree) {
                    visit(&name, mode_of(&entry), entry.id());
                    continue;
                }
                let below = self
                    .repository
                    .find_tree(entry.id())
                    .map_err(self.failed("read the tree"))?;
                name.push(b'/');
                folders.push((name, below));
            }
        }
        Ok(())
    }
}
