//! Folders whose content can be made again, marked by a file in them
//! (Cache Directory Tagging Specification): what build tools keep between runs,
//! such as cargo's `target`.

use super::beneath::{Beneath, kind, path};
use super::exclusion::{Exclusion, FolderRules, RULES};
use super::layer::Layer;
use super::{Tree, TreeError};
use rustix::fs::{Dir, FileType, Mode, OFlags, mkdirat, openat};
use std::io;
use std::path::Path;

/// The file that marks such a folder, and how it begins.
const TAG: &str = "CACHEDIR.TAG";
const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
/// A tag with more bytes is none.
const TAG_MAX: u64 = 4 << 10;

impl Layer {
    /// Returns the cache folders at the top of a layer, which is in `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened.
    pub fn caches(&self, folder: &Path) -> io::Result<Vec<String>> {
        let top = Beneath::open(folder)?;
        let is_cache = |root: &&String| {
            let tag = Path::new(root).join(TAG);
            let text = top.read(&tag, TAG_MAX).ok().flatten();
            !root.contains('/') && text.is_some_and(|text| text.starts_with(SIGNATURE))
        };
        Ok(self.roots.iter().filter(is_cache).cloned().collect())
    }
}

impl Tree {
    /// Makes an empty folder at the top of the worktree, for a cache to be mounted
    /// at. Returns `false` where git does not ignore it, because it may then hold
    /// work, and where something is there.
    ///
    /// # Errors
    ///
    /// [`TreeError`] where the folder cannot be made.
    pub fn make_way_for(&self, cache: &str) -> Result<bool, TreeError> {
        self.way_for(cache)
            .map_err(|error| self.error("make a cache folder", format!("{cache}: {error}")))
    }

    fn way_for(&self, cache: &str) -> io::Result<bool> {
        let top = Beneath::open(&self.files)?;
        let mut exclusion = Exclusion::new(&self.outer_ignore_files())?;
        let has = match top.look(path(RULES))? {
            Some(_) => FolderRules::Known,
            None => FolderRules::None,
        };
        let is_read = exclusion.enter(&top, b"", has).is_ok();
        if !is_read || !exclusion.excludes(cache.as_bytes(), true) {
            return Ok(false);
        }
        let folder = top.folder()?;
        match top.look(Path::new(cache))? {
            None => {
                let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
                mkdirat(&folder, cache, mode)?;
                Ok(true)
            }
            Some(stat) if kind(&stat) == FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = openat(&folder, cache, flags, Mode::empty())?;
                let mut names = Dir::new(opened)?.flatten();
                Ok(names.all(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")))
            }
            Some(_) => Ok(false),
        }
    }
}
