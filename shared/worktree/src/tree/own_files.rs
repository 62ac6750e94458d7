//! Ignored files that were in a person's own worktree before any step.
//!
//! A step can change the ignore rules, and can stage an ignored file. Neither
//! makes such a file part of its work: it is not committed, not salvaged, and
//! not deleted when the worktree is reset.

use super::beneath::path;
use super::scan::Scan;
use super::{Tree, TreeError};
use std::collections::BTreeSet;

/// Names of files that usually hold secrets.
const SECRETS: [&[u8]; 3] = [b".netrc", b".npmrc", b".pypirc"];
/// How the others begin, as `.env.local` does.
const ENVIRONMENT: &[u8] = b".env";

/// Outermost ignored paths of a worktree, as git names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFiles(BTreeSet<Vec<u8>>);

impl OwnFiles {
    /// Reads the form that [`OwnFiles::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let names = bytes.split(|byte| *byte == 0);
        let names = names.filter(|name| !name.is_empty());
        Self(names.map(<[u8]>::to_vec).collect())
    }

    /// Writes the paths, sorted, each ended by a NUL.
    pub fn to_bytes(&self) -> Vec<u8> {
        let names = self.0.iter();
        names.flat_map(|name| [name, &b"\0"[..]].concat()).collect()
    }

    /// Returns the paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        self.0.iter().map(|name| path(name))
    }

    /// Returns those whose names say that they hold secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &std::path::Path> {
        let is_secret = |name: &&Vec<u8>| {
            let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
            name.starts_with(ENVIRONMENT) || SECRETS.contains(&name)
        };
        self.0.iter().filter(is_secret).map(|name| path(name))
    }

    /// Returns whether a path is one of these or is below one.
    fn holds(&self, name: &[u8]) -> bool {
        let ends = name.iter().enumerate();
        let ends = ends.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        self.0.contains(name) || ends.into_iter().any(|end| self.0.contains(&name[..end]))
    }

    /// Removes them from what differs. What the target tracks stays.
    pub(super) fn leave_out(&self, scan: &mut Scan, target: &git2::Tree<'_>) {
        if self.0.is_empty() {
            return;
        }
        let is_work = |name: &Vec<u8>| !self.holds(name) || target.get_path(path(name)).is_ok();
        scan.paths.retain(is_work);
        scan.nested.retain(is_work);
        scan.unfit.retain(is_work);
        // A repository that a step made around them is its `.git` alone.
        let around = scan.nested.iter().filter(|name| self.lie_below(name));
        let around: Vec<Vec<u8>> = around.cloned().collect();
        for name in around {
            scan.nested.remove(&name);
            scan.nested.insert([&name[..], b"/.git"].concat());
        }
    }

    /// Returns whether any of them is in a folder, which is then not deleted.
    pub(super) fn lie_below(&self, folder: &[u8]) -> bool {
        let below = [folder, b"/"].concat();
        let mut from = self.0.range(below.clone()..);
        from.next().is_some_and(|name| name.starts_with(&below))
    }
}

impl Tree {
    /// Returns the ignored files of the worktree as they are now.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn ignored_files(&self) -> Result<OwnFiles, TreeError> {
        let scan = self.scan(&self.head_tree()?)?;
        Ok(OwnFiles(scan.ignored))
    }

    /// Keeps files out of the work from now on.
    pub fn keep_out(&mut self, own: OwnFiles) {
        self.own = own;
    }

    /// Returns the files that are kept out of the work.
    pub const fn kept_out(&self) -> &OwnFiles {
        &self.own
    }
}
