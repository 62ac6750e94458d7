//! The entries of a tree by their paths.

use git2::{Repository, Tree, TreeEntry};
use std::cell::RefCell;

/// Looks many paths of a tree up, fastest in their order. The folders of the
/// last path stay open: libgit2 reads and checks a folder of more than about a
/// hundred entries again for each path that is looked up by itself.
pub(crate) struct EntryLookup<'a> {
    repository: &'a Repository,
    /// The root and the folders below it, with their paths.
    open: RefCell<Vec<(Vec<u8>, Tree<'a>)>>,
}

impl<'a> EntryLookup<'a> {
    pub(crate) fn new(repository: &'a Repository, root: &Tree<'a>) -> Self {
        Self {
            repository,
            open: RefCell::new(vec![(Vec::new(), root.clone())]),
        }
    }

    /// Returns the entry at a path, `None` where there is none or it cannot be
    /// read.
    pub(crate) fn get(&self, path: &[u8]) -> Option<TreeEntry<'static>> {
        let mut open = self.open.borrow_mut();
        let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        open.retain(|(at, _)| is_within(folder, at));
        while let Some((at, tree)) = open.last()
            && at.len() < folder.len()
        {
            let start = if at.is_empty() { 0 } else { at.len() + 1 };
            let part = folder[start..].split(|byte| *byte == b'/').next()?;
            let id = tree.get_name_bytes(part)?.id();
            let below = self.repository.find_tree(id).ok()?;
            let at = folder[..start + part.len()].to_vec();
            open.push((at, below));
        }
        let (_, tree) = open.last()?;
        tree.get_name_bytes(name).map(|entry| entry.to_owned())
    }
}

/// Returns whether a folder is another one or is in it.
fn is_within(folder: &[u8], other: &[u8]) -> bool {
    other.is_empty()
        || folder
            .strip_prefix(other)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index_entry::unknown_entry;
    use git2::Index;

    #[test]
    fn entries_are_those_that_git_finds_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        let paths = ["a", "a.b/c", "b/a", "b/b/c/d", "b/b.c", "b.c", "b/bb/d"];
        let mut index = Index::new().unwrap();
        for path in paths {
            let blob = repository.blob(path.as_bytes()).unwrap();
            let entry = unknown_entry(path.as_bytes(), (0o100_644, blob));
            index.add(&entry).unwrap();
        }
        let tree = index.write_tree_to(&repository).unwrap();
        let tree = repository.find_tree(tree).unwrap();
        let absent = [
            "",
            "/",
            "a/",
            "a/b",
            "b/",
            "b/b/c/",
            "//a",
            "b//a",
            "c/d",
            "b/b/c/d/e",
        ];
        let asked = [&paths[..], &["b", "b/b", "b/b/c"], &absent].concat();
        let lookup = EntryLookup::new(&repository, &tree);
        for first in &asked {
            for second in &asked {
                for path in [first, second] {
                    let found = lookup.get(path.as_bytes()).map(|entry| entry.id());
                    let known = tree.get_path(std::path::Path::new(path)).ok();
                    let known = known.map(|entry| entry.id());
                    let is_absent = absent.contains(path);
                    assert_eq!(found, known.filter(|_| !is_absent), "{path}");
                    assert_eq!(found.is_none(), is_absent, "{path}");
                }
            }
        }
    }
}
