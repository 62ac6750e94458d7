//! Ignored files that were in a person's own worktree before any step.
//!
//! A step can change the ignore rules, can stage an ignored file, and can move
//! one. None of this makes such a file part of its work: it is not committed,
//! not salvaged, and not deleted when the worktree is reset.

use super::beneath::path;
use super::descent::{DEPTH_MAX, Descent};
use super::own_identity::{Identity, read, written};
use super::own_secrets;
use super::scan::Scan;
use super::{Tree, TreeError};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// How many entries of a folder are looked at before it is deleted.
const ENTRIES_MAX: usize = 500_000;

/// Before the path of a secret in the written form; git's paths do not begin so.
const SECRET: &[u8] = b"secret//";

/// Outermost ignored paths of a worktree, as git names them, with what
/// identifies each wherever it is moved to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFiles {
    files: BTreeMap<Vec<u8>, Option<Identity>>,
    secrets: Vec<PathBuf>,
}

impl OwnFiles {
    /// Reads the form that [`OwnFiles::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut own = Self::default();
        let entries = bytes.split(|byte| *byte == 0);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            if let Some(secret) = entry.strip_prefix(SECRET) {
                own.secrets.push(path(secret).to_path_buf());
                continue;
            }
            let (identity, name) = read(entry);
            own.files.insert(name.to_vec(), identity);
        }
        own
    }

    /// Writes the paths with their identities and those of secrets, sorted, each
    /// ended by a NUL.
    pub fn to_bytes(&self) -> Vec<u8> {
        let files = self.files.iter();
        let files = files.map(|(name, identity)| written(*identity, name));
        let secrets = self.secrets.iter();
        let secrets = secrets.map(|path| [SECRET, path.as_os_str().as_encoded_bytes()].concat());
        let entries = files.chain(secrets);
        entries
            .flat_map(|entry| [entry, vec![0]].concat())
            .collect()
    }

    /// Returns the paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(|name| path(name))
    }

    /// Returns the files and folders in them whose names say that they hold
    /// secrets, as they were when the files were kept out.
    pub fn secrets(&self) -> impl Iterator<Item = &Path> {
        self.secrets.iter().map(PathBuf::as_path)
    }

    /// Returns whether a path is one of these or is below one.
    pub(super) fn holds(&self, name: &[u8]) -> bool {
        with_above(name).any(|name| self.files.contains_key(name))
    }

    /// Removes them from what differs. What the target tracks at their place
    /// stays.
    pub(super) fn leave_out(&self, scan: &mut Scan, target: &git2::Tree<'_>, worktree: &Path) {
        if self.files.is_empty() {
            return;
        }
        scan.moved = self.moved(scan, worktree);
        let moved = &scan.moved;
        let is_work = |name: &Vec<u8>| {
            let is_moved = with_above(name).any(|name| moved.contains(name));
            !is_moved && (!self.holds(name) || target.get_path(path(name)).is_ok())
        };
        scan.paths.retain(is_work);
        scan.nested.retain(is_work);
        scan.unfit.retain(is_work);
        // A repository that a step made around them is its `.git` alone.
        let around = scan.nested.iter().filter(|name| self.are_below(name));
        let around: Vec<Vec<u8>> = around.cloned().collect();
        for name in around {
            scan.nested.remove(&name);
            scan.nested.insert([&name[..], b"/.git"].concat());
        }
    }

    /// Finds those of them that a step moved among what differs.
    fn moved(&self, scan: &Scan, worktree: &Path) -> BTreeSet<Vec<u8>> {
        let identities = self.identities();
        let mut moved = BTreeSet::new();
        if identities.is_empty() {
            return moved;
        }
        let mut seen: HashSet<&[u8]> = HashSet::new();
        let found = [&scan.paths, &scan.nested, &scan.unfit];
        for name in found.into_iter().flatten().filter(|name| !self.holds(name)) {
            for name in with_above(name).filter(|name| seen.insert(name)) {
                let identity = Identity::of(&worktree.join(path(name)));
                if identity.is_some_and(|identity| identities.contains(&identity)) {
                    moved.insert(name.to_vec());
                }
            }
        }
        moved
    }

    /// Returns the path of an own file that a step moved, and whether it is still
    /// there too: what was moved is then a second name of it.
    fn origin(&self, moved: &[u8], worktree: &Path) -> Option<(&[u8], bool)> {
        let identity = Identity::of(&worktree.join(path(moved)))?;
        let mut files = self.files.iter();
        let (origin, _) = files.find(|(_, own)| **own == Some(identity))?;
        let is_there = Identity::of(&worktree.join(path(origin))) == Some(identity);
        Some((origin, is_there))
    }

    fn identities(&self) -> HashSet<Identity> {
        self.files.values().flatten().copied().collect()
    }

    /// Returns whether any of them is in a folder, which is then not deleted.
    pub(super) fn are_below(&self, folder: &[u8]) -> bool {
        let below = [folder, b"/"].concat();
        let mut from = self.files.range(below.clone()..);
        from.next()
            .is_some_and(|(name, _)| name.starts_with(&below))
    }

    /// Returns whether a step moved any of them into a folder. A folder that
    /// cannot be looked at whole counts.
    fn were_moved_into(&self, folder: &[u8], descent: &mut Descent, worktree: &Path) -> bool {
        let identities = self.identities();
        let mut left = ENTRIES_MAX;
        let mut folders = match identities.is_empty() {
            true => Vec::new(),
            false => vec![(folder.to_vec(), 0)],
        };
        while let Some((folder, depth)) = folders.pop() {
            let names = match descent.list(&folder, left) {
                Ok(Some(listing)) if depth < DEPTH_MAX => listing.names,
                Ok(None) => continue,
                Ok(Some(_)) | Err(_) => return true,
            };
            left = left.saturating_sub(names.len());
            for (name, kind) in names {
                let at = [&folder[..], b"/", &name].concat();
                let identity = Identity::of(&worktree.join(path(&at)));
                if identity.is_some_and(|identity| identities.contains(&identity)) {
                    return true;
                }
                if kind == FileType::Directory {
                    folders.push((at, depth + 1));
                }
            }
        }
        false
    }
}

/// Returns a path and the folders above it.
fn with_above(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = name.iter().enumerate();
    let ends = ends.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([name.len()]).map(|end| &name[..end])
}

impl Tree {
    /// Returns the ignored files of the worktree as they are now, with those own
    /// files that a step moved to where git does not ignore them.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn ignored_files(&self) -> Result<OwnFiles, TreeError> {
        let scan = self.scan(&self.head_tree()?)?;
        let files = scan.ignored.into_iter().chain(scan.moved);
        let files = files.map(|name| {
            let identity = Identity::of(&self.worktree.join(path(&name)));
            (name, identity)
        });
        Ok(OwnFiles {
            files: files.collect(),
            secrets: self.own.secrets.clone(),
        })
    }

    /// Keeps files out of the work from now on. What was known as a secret stays
    /// one as long as it is there: a step can hide it from the search.
    pub fn keep_out(&mut self, own: OwnFiles) {
        self.own = own;
        let open = self.beneath().ok().and_then(|root| root.folder().ok());
        if let Some(open) = open {
            let mut descent = Descent::new(open);
            self.own.secrets = own_secrets::find(&self.own, &mut descent, &self.worktree);
        }
    }

    /// Frees what a step took with own files: a second name of one is left to be
    /// deleted, and one in the place of tracked files goes back to where it was,
    /// or beside. Returns whether there were any.
    pub(super) fn take_back_own(
        &self,
        scan: &mut Scan,
        target: &git2::Tree<'_>,
    ) -> Result<bool, TreeError> {
        let root = self.beneath()?;
        let before = scan.paths.len();
        for moved in &scan.moved {
            let Some((origin, is_there)) = self.own.origin(moved, &self.worktree) else {
                continue;
            };
            if !is_there {
                if target.get_path(path(moved)).is_err() {
                    continue;
                }
                root.move_to(path(moved), &root, path(origin))
                    .map_err(self.refused("move back", path(moved)))?;
            }
            scan.paths.insert(moved.clone());
        }
        Ok(scan.paths.len() > before)
    }

    /// Returns the files that are kept out of the work.
    pub const fn kept_out(&self) -> &OwnFiles {
        &self.own
    }

    /// Returns whether a path is one of the files that are kept out of the work.
    pub(super) fn is_own(&self, name: &[u8]) -> bool {
        self.own.files.contains_key(name)
    }

    /// Returns whether a folder holds files that are kept out of the work.
    pub(super) fn has_own_in(&self, folder: &[u8]) -> bool {
        if self.own.files.is_empty() {
            return false;
        }
        let moved_into = || {
            let open = self.beneath().ok().and_then(|root| root.folder().ok());
            open.is_none_or(|open| {
                let mut descent = Descent::new(open);
                self.own
                    .were_moved_into(folder, &mut descent, &self.worktree)
            })
        };
        self.own.are_below(folder) || moved_into()
    }
}
