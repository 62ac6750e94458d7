//! A git tree with some of its paths replaced.

use crate::mode::is_kind;
use git2::{ObjectType, Oid, Repository, Tree};
use std::collections::BTreeMap;

/// A file's mode and content.
pub(super) type Leaf = (i32, Oid);

/// The mode of a folder.
pub(super) const FOLDER: i32 = crate::mode::FOLDER as i32;

/// Returns whether a mode is that of a folder. Other tools than git write some with
/// rights in them, and git takes them for folders too.
const fn is_folder(mode: i32) -> bool {
    is_kind(mode as u32, crate::mode::FOLDER)
}

/// The paths of one folder that are replaced.
#[derive(Default)]
pub(super) struct Overlay {
    here: Option<Option<Leaf>>,
    below: BTreeMap<Vec<u8>, Self>,
}

impl Overlay {
    /// Replaces a path; `None` removes it.
    pub(super) fn put(&mut self, path: &[u8], leaf: Option<Leaf>) {
        let mut node = self;
        for part in path.split(|byte| *byte == b'/') {
            node = node.below.entry(part.to_vec()).or_default();
        }
        node.here = Some(leaf);
    }

    /// Returns the tree's digest; the tree is written if `store` is set.
    pub(super) fn digest(
        &self,
        repository: &Repository,
        base: &Tree<'_>,
        store: bool,
    ) -> Result<Oid, git2::Error> {
        let made = self.made(repository, Some(base), store)?;
        made.map_or_else(|| put(repository, &[], store), Ok)
    }

    /// Returns the folder as it is then; `None` where nothing is in it.
    fn made(
        &self,
        repository: &Repository,
        base: Option<&Tree<'_>>,
        store: bool,
    ) -> Result<Option<Oid>, git2::Error> {
        let mut entries: BTreeMap<Vec<u8>, Leaf> = base
            .into_iter()
            .flat_map(Tree::iter)
            .map(|entry| {
                (
                    entry.name_bytes().to_vec(),
                    (entry.filemode_raw(), entry.id()),
                )
            })
            .collect();
        for (name, node) in &self.below {
            let old = entries.remove(name);
            let new = match (node.here, node.below.is_empty()) {
                (Some(Some(leaf)), _) => Some(leaf),
                (Some(None), true) => None,
                (_, _) => {
                    let folder = old.filter(|(mode, _)| is_folder(*mode));
                    let folder = folder.map(|(_, id)| repository.find_tree(id)).transpose()?;
                    node.made(repository, folder.as_ref(), store)?
                        .map(|id| (FOLDER, id))
                }
            };
            if let Some(leaf) = new {
                entries.insert(name.clone(), leaf);
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        // Git sorts a folder as if its name ended in a slash.
        let mut sorted: Vec<(Vec<u8>, &Vec<u8>, Leaf)> = entries
            .iter()
            .map(|(name, leaf)| {
                let mut key = name.clone();
                if is_folder(leaf.0) {
                    key.push(b'/');
                }
                (key, name, *leaf)
            })
            .collect();
        sorted.sort();
        let mut bytes = Vec::new();
        for (_, name, (mode, id)) in sorted {
            bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        put(repository, &bytes, store).map(Some)
    }
}

fn put(repository: &Repository, tree: &[u8], store: bool) -> Result<Oid, git2::Error> {
    if store {
        repository.odb()?.write(ObjectType::Tree, tree)
    } else {
        Oid::hash_object(ObjectType::Tree, tree)
    }
}
