//! Build state that a command left over a checkout of the operator's base, kept
//! as a layer that later checkouts are seen over.
//!
//! Invariants: a layer has no path at which its base's tree has a file, so that
//! it shows nothing of a file that a later tree deletes; it has files, folders
//! and symlinks and nothing else; the files of a checkout win over it.

use super::beneath::{Beneath, kind, path};
use super::descent::{DEPTH_MAX, Descent, too_deep};
use super::manifest::digest_of;
use super::{Tree, TreeError, is_ours};
use crate::diff::may_be;
use crate::mode::LINK;
use git2::ObjectType;
use rustix::fs::{FileType, removexattr};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// How many entries a layer may have.
const ENTRIES_MAX: usize = 2_000_000;

/// What an overlay notes on the folders of its upper layer (overlayfs, kernel
/// documentation). Nothing reads it in a lower layer that is the last.
const NOTES: [&str; 4] = [
    "user.overlay.opaque",
    "user.overlay.redirect",
    "user.overlay.origin",
    "user.overlay.impure",
];

/// The content of a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The outermost paths that its base's tree does not have, sorted.
    pub roots: Vec<String>,
    /// A time after which none of its files changed, in seconds.
    pub newest: i64,
    /// The digest over numbers, sizes and times of all that is in it.
    pub digest: String,
}

impl Tree {
    /// Makes a layer of what a command wrote over this checkout: everything
    /// that HEAD's tree has a file at is deleted in `folder`, and everything
    /// that is neither file, folder nor symlink.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn keep_layer(&self, folder: &Path) -> Result<Layer, TreeError> {
        let base = self.head_tree()?;
        let refused = |error: io::Error| self.error("keep the build state", error.to_string());
        let top = Beneath::open(folder).map_err(refused)?;
        let mut found = Found {
            descent: Descent::new(top.folder().map_err(refused)?),
            top,
            folder,
            roots: Vec::new(),
            newest: i64::MIN,
            left: ENTRIES_MAX,
        };
        self.prune(&mut found, &base, &[])
            .map_err(|error| match error {
                Fault::Io(error) => refused(error),
                Fault::Git(error) => self.failed("read the tree")(error),
            })?;
        found.roots.sort();
        let digest = digest_of_layer(folder, &found.roots).map_err(refused)?;
        Ok(Layer {
            newest: found.newest.max(0),
            roots: found.roots,
            digest,
        })
    }

    fn prune(
        &self,
        found: &mut Found<'_>,
        base: &git2::Tree<'_>,
        above: &[u8],
    ) -> Result<(), Fault> {
        for (name, kind) in found.names(above)? {
            let at = join(above, &name);
            if name == b".git" || is_ours(path(&at)) {
                found.top.delete(path(&at))?;
                continue;
            }
            let entry = base.get_name_bytes(&name);
            match entry {
                None => found.take_root(&at, kind)?,
                Some(entry)
                    if entry.kind() == Some(ObjectType::Tree) && kind == FileType::Directory =>
                {
                    let below = self.repository.find_tree(entry.id())?;
                    found.forget_notes(&at)?;
                    self.prune(found, &below, &at)?;
                    if found.names(&at)?.is_empty() {
                        found.top.delete(path(&at))?;
                    }
                }
                Some(_) => found.top.delete(path(&at))?,
            }
        }
        Ok(())
    }

    /// Returns whether a commit may be verified over a layer of a base: no path
    /// of the commit is also in the layer, the folders around it are there, no
    /// file of attributes differs, by which equal content is written in another
    /// way, and no symlink differs: build tools look at the time of the file
    /// that it leads to, which may be older than the build.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn fits(&self, layer: &Layer, base: &str, commit: &str) -> Result<bool, TreeError> {
        let read = || self.failed("compare the base");
        let find = |id: &str| {
            let commit = self.find_commit(id)?;
            commit.tree().map_err(read())
        };
        let (base, tree) = (find(base)?, find(commit)?);
        let difference = self.difference(&base, &tree)?;
        let mut seen = HashSet::new();
        let is_stale = |(delta, modes): (git2::DiffDelta<'_>, _)| {
            is_felt_elsewhere(&delta, modes) || is_vendored(&delta, [&base, &tree], &mut seen)
        };
        if difference.changes().any(is_stale) {
            return Ok(false);
        }
        let is_folder = |folder: &Path| {
            folder.as_os_str().is_empty()
                || tree
                    .get_path(folder)
                    .is_ok_and(|entry| entry.kind() == Some(ObjectType::Tree))
        };
        Ok(layer.roots.iter().all(|root| {
            let root = Path::new(root);
            let is_free = tree.get_path(root).is_err();
            is_free && root.parent().is_none_or(is_folder)
        }))
    }
}

/// Returns whether a change has an effect on files that it does not touch.
fn is_felt_elsewhere(delta: &git2::DiffDelta<'_>, modes: [Option<u32>; 2]) -> bool {
    let is_attributes = |file: &git2::DiffFile<'_>| {
        let name = file.path().and_then(Path::file_name);
        name.is_some_and(|name| name == ".gitattributes")
    };
    [delta.old_file(), delta.new_file()]
        .iter()
        .any(is_attributes)
        || may_be(modes, LINK)
}

/// Returns whether a change is in a directory source of cargo, which is built again
/// neither by time nor by content. `seen` has the folders that are in none: a step may
/// change many files in deep folders.
fn is_vendored(
    delta: &git2::DiffDelta<'_>,
    trees: [&git2::Tree<'_>; 2],
    seen: &mut HashSet<PathBuf>,
) -> bool {
    let is_source = |folder: &Path| {
        let checksum = folder.join(".cargo-checksum.json");
        trees.iter().any(|tree| tree.get_path(&checksum).is_ok())
    };
    for path in [delta.old_file().path(), delta.new_file().path()] {
        for folder in path.into_iter().flat_map(|path| path.ancestors().skip(1)) {
            if seen.contains(folder) {
                break;
            }
            if is_source(folder) {
                return true;
            }
            seen.insert(folder.to_path_buf());
        }
    }
    false
}

/// Returns whether what is in a folder is what a layer had when it was made. A
/// change moves a file's change time, which no command can set.
pub fn is_untouched(folder: &Path, layer: &Layer) -> bool {
    digest_of_layer(folder, &layer.roots).is_ok_and(|digest| digest == layer.digest)
}

fn digest_of_layer(folder: &Path, roots: &[String]) -> io::Result<String> {
    let names = roots.iter().map(|root| root.as_bytes());
    digest_of(Beneath::open(folder)?.folder()?, names)
}

enum Fault {
    Io(io::Error),
    Git(git2::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<git2::Error> for Fault {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

/// A layer in the making.
struct Found<'a> {
    top: Beneath,
    descent: Descent,
    folder: &'a Path,
    roots: Vec<String>,
    newest: i64,
    left: usize,
}

impl Found<'_> {
    fn names(&mut self, folder: &[u8]) -> io::Result<Vec<(Vec<u8>, FileType)>> {
        let listing = self.descent.list(folder, self.left)?;
        let names = listing.map(|listing| listing.names).unwrap_or_default();
        self.left = self.left.saturating_sub(names.len());
        Ok(names)
    }

    /// Keeps what the base does not have, with all that is in it.
    fn take_root(&mut self, at: &[u8], kind: FileType) -> io::Result<()> {
        let name = std::str::from_utf8(at).ok().filter(|_| is_kept(kind));
        let Some(name) = name else {
            return self.top.delete(path(at));
        };
        self.roots.push(name.to_owned());
        let mut waiting = vec![(at.to_vec(), kind)];
        while let Some((at, kind)) = waiting.pop() {
            if !is_kept(kind) {
                self.top.delete(path(&at))?;
                continue;
            }
            let stat = self.descent.look(&at)?.ok_or(io::ErrorKind::NotFound)?;
            self.newest = self.newest.max(stat.st_mtime.saturating_add(1));
            if kind == FileType::Directory {
                if path(&at).components().count() >= DEPTH_MAX {
                    return Err(too_deep());
                }
                self.forget_notes(&at)?;
                for (name, kind) in self.names(&at)? {
                    waiting.push((join(&at, &name), kind));
                }
            }
        }
        Ok(())
    }

    /// Takes the notes of an overlay off a folder.
    fn forget_notes(&mut self, at: &[u8]) -> io::Result<()> {
        let is_folder = self
            .descent
            .look(at)?
            .is_some_and(|stat| kind(&stat) == FileType::Directory);
        for note in NOTES.iter().filter(|_| is_folder) {
            match removexattr(self.folder.join(path(at)), *note) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

const fn is_kept(kind: FileType) -> bool {
    matches!(
        kind,
        FileType::RegularFile | FileType::Directory | FileType::Symlink
    )
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        return name.to_vec();
    }
    [above, b"/", name].concat()
}
