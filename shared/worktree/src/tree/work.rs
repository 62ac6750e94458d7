//! What a step has changed so far, looked at while it runs: nothing is stored,
//! locked or changed, and git of the worktree is not asked.

use super::beneath::{Beneath, kind, path};
use super::{Tree, TreeError};
use crate::diff::{DiffSide, SideContent, WorkDiff, WorkDiffMaker, blob_content};
use crate::entry_lookup::EntryLookup;
use crate::mode::{LINK, SUBMODULE, is_kind};
use git2::Oid;
use rustix::fs::FileType;
use std::io;
use std::path::Path;

impl Tree {
    /// Opens a worktree to look at it while a step may run there, by the record
    /// that its repository has of it.
    ///
    /// # Errors
    ///
    /// As [`Tree::open_in`].
    pub fn open_to_look(repository: &Path, worktree: &Path) -> Result<Self, TreeError> {
        let mut tree = Self::open_in(repository, worktree)?;
        tree.looks_only = true;
        Ok(tree)
    }

    /// Compares the files with HEAD, which a running step began at. Of a
    /// worktree that was opened by [`Tree::open_to_look`].
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn work_diff(&self) -> Result<WorkDiff, TreeError> {
        let head = self.head()?;
        let base = head.tree().map_err(self.failed("read the tree"))?;
        let scan = self.scan(&base)?;
        let root = self.beneath()?;
        let lookup = EntryLookup::new(&self.repository, &base);
        let mut made = WorkDiffMaker::new(head.id());
        for name in &scan.paths {
            if made.is_full() {
                made.leave_out();
                continue;
            }
            let entry = lookup.get(name);
            let before = entry.as_ref().map(|entry| entry.id());
            let old = entry.map(|entry| {
                let mode = entry.filemode_raw().unsigned_abs();
                let content = blob_content(&self.repository, mode, entry.id());
                DiffSide { mode, content }
            });
            let new = self.work_side(&root, name, (old.as_ref(), before));
            made.add(name, old, new);
        }
        made.set_apart(scan.nested.iter().chain(&scan.unfit));
        Ok(made.done())
    }

    /// Returns what a step has at a path; `old` and `before` are what HEAD has there.
    fn work_side(
        &self,
        root: &Beneath,
        name: &[u8],
        (old, before): (Option<&DiffSide>, Option<Oid>),
    ) -> Option<DiffSide> {
        let unreadable = |mode, error: &io::Error| DiffSide {
            mode,
            content: match error.kind() {
                io::ErrorKind::FileTooLarge => SideContent::TooLarge,
                _ => SideContent::Unreadable,
            },
        };
        let stat = match root.look(path(name)) {
            Ok(Some(stat)) => stat,
            Ok(None) => return None,
            Err(error) => return Some(unreadable(0, &error)),
        };
        let is_executable = stat.st_mode & 0o100 != 0;
        let modes = self.settings().file_mode;
        let mode = match kind(&stat) {
            FileType::RegularFile => match old {
                Some(old) if !modes => old.mode,
                _ if is_executable => 0o100_755,
                _ => 0o100_644,
            },
            FileType::Symlink => LINK,
            // A submodule is what the commit says.
            FileType::Directory => {
                return old
                    .filter(|old| is_kind(old.mode, SUBMODULE))
                    .map(|old| DiffSide {
                        mode: old.mode,
                        content: old.content.clone(),
                    });
            }
            _ => return Some(unreadable(0, &io::ErrorKind::Unsupported.into())),
        };
        if kind(&stat) == FileType::RegularFile && self.is_filtered(name) {
            let content = SideContent::Filtered;
            return Some(DiffSide { mode, content });
        }
        let read = match kind(&stat) {
            FileType::Symlink => root.read_link(path(name)).map(Some),
            _ => root.open_file(path(name)).and_then(|file| {
                let read = file.map(|file| self.looked_at(file, name, before));
                read.transpose()
            }),
        };
        match read {
            Ok(Some(content)) => Some(DiffSide {
                mode,
                content: SideContent::of(content),
            }),
            Ok(None) => None,
            Err(error) => Some(unreadable(mode, &error)),
        }
    }
}
