//! The folder of one run: a checkout of the files that it is over, and what it
//! writes.

use super::super::beneath::{Beneath, path};
use super::{FilterEnd, FilterRun, Filters, lfs};
use crate::index_entry::unknown_entry;
use crate::mode::FILE;
use git2::{Index, Oid, Repository};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// The folder of one run; it is deleted with this value.
pub(super) struct RunFolder<'a> {
    filters: &'a Filters,
    files: PathBuf,
    git: PathBuf,
}

impl<'a> RunFolder<'a> {
    /// Makes the folder. `reads_lfs` says that Git LFS finds the user's objects
    /// there; otherwise it finds none, and what it writes is new.
    pub(super) fn make(filters: &'a Filters, reads_lfs: bool) -> io::Result<Self> {
        let place = Self {
            filters,
            files: filters.folder.join("files"),
            git: filters.folder.join("git"),
        };
        place.delete()?;
        fs::create_dir_all(&place.files)?;
        let definitions = &filters.definitions;
        definitions.set_up(&place.git)?;
        fs::write(place.git.join("HEAD"), "ref: refs/heads/none\n")?;
        if let Some(keys) = &definitions.keys {
            let name = keys.file_name().unwrap_or_default();
            symlink(keys, place.git.join(name))?;
        }
        if definitions.active.contains(lfs::FILTER) {
            fs::create_dir(place.git.join("lfs"))?;
            let objects = place.git.join("lfs/objects");
            match definitions.lfs_objects() {
                Some(store) if reads_lfs => symlink(store, objects)?,
                _ => fs::create_dir(objects)?,
            }
        }
        Ok(place)
    }

    fn delete(&self) -> io::Result<()> {
        let folder = &self.filters.folder;
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Ok(());
        };
        fs::create_dir_all(above)?;
        let above = File::open(above)?;
        crate::removal::remove_entry(std::os::fd::AsFd::as_fd(&above), name)
    }

    /// Puts the attributes there that count for a path, and makes its folder.
    pub(super) fn make_way(&self, repository: &Repository, name: &[u8]) -> io::Result<()> {
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        for (file, id) in self.filters.definitions.files_for(name) {
            let at = self.files.join(path(file));
            if fs::symlink_metadata(&at).is_ok() {
                continue;
            }
            fs::create_dir_all(at.parent().unwrap_or(&self.files))?;
            let blob = repository.find_blob(id).map_err(other)?;
            fs::write(&at, blob.content())?;
        }
        let at = self.files.join(path(name));
        fs::create_dir_all(at.parent().unwrap_or(&self.files))
    }

    /// Makes a file of the checkout; it must not be there yet.
    pub(super) fn create(&self, name: &[u8]) -> io::Result<File> {
        File::create_new(self.files.join(path(name)))
    }

    /// Writes a file beside the checkout, which the command reads.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        File::create_new(self.filters.folder.join(name))?.write_all(content)
    }

    /// Writes the checkout's index.
    pub(super) fn write_index<'b>(
        &self,
        files: impl Iterator<Item = (&'b [u8], Oid)>,
    ) -> Result<(), git2::Error> {
        let mut index = Index::open(&self.git.join("index"))?;
        for (name, id) in files {
            index.add(&unknown_entry(name, (FILE as i32, id)))?;
        }
        index.write()
    }

    /// Runs a command line of the harness there.
    pub(super) fn run(&self, script: &str) -> Result<FilterEnd, String> {
        let definitions = &self.filters.definitions;
        let mut readable = definitions.objects.clone();
        readable.extend(definitions.lfs_objects());
        readable.extend(definitions.keys.clone());
        self.filters.runner.run(&FilterRun {
            script,
            folder: &self.filters.folder,
            files: &self.files,
            git: &self.git,
            readable: &readable,
        })
    }

    /// Opens the folder to read what the command wrote.
    pub(super) fn written(&self) -> io::Result<Beneath> {
        Beneath::open(&self.filters.folder)
    }
}

impl Drop for RunFolder<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.delete() {
            tracing::warn!(%error, "what a filter wrote is left");
        }
    }
}
