//! From a commit to a checkout.

use super::super::beneath::path;
use super::super::named_checkout::leaf;
use super::super::{Tree, TreeError};
use super::place::RunFolder;
use crate::entry_lookup::EntryLookup;
use crate::mode::{FILE, is_kind};
use git2::Oid;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest file that a filter may make.
const FILE_MAX: u64 = 64 << 30;

/// Writes the files that are named, each by git's own filters. Names are
/// separated by a zero byte.
const SCRIPT: &str = "exec git checkout-index -f -z --stdin <../names";

impl Tree {
    /// Has those of the files go through their filters that were just written
    /// as the tree has them.
    pub(in crate::tree) fn smudge(
        &self,
        target: &git2::Tree<'_>,
        names: &[&Path],
    ) -> Result<(), TreeError> {
        let Some(filters) = &self.filters else {
            return Ok(());
        };
        let lookup = EntryLookup::new(&self.repository, target);
        let mut files: Vec<(&[u8], (i32, Oid))> = Vec::new();
        for name in names {
            let name = name.as_os_str().as_encoded_bytes();
            if let Some(leaf) = leaf(&lookup, name)
                && is_kind(leaf.0 as u32, FILE)
                && filters.of(name).is_some()
            {
                files.push((name, leaf));
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        let place = RunFolder::make(filters, true);
        let place = place.map_err(self.refused("make a folder for", Path::new("filters")))?;
        for (name, _) in &files {
            let made = place.make_way(&self.repository, name);
            made.map_err(self.refused("filter", path(name)))?;
        }
        let entries = files.iter().map(|(name, (_, id))| (*name, *id));
        place
            .write_index(entries)
            .map_err(self.failed("list the filtered files"))?;
        let list: Vec<&[u8]> = files.iter().flat_map(|(name, _)| [*name, b"\0"]).collect();
        place
            .write("names", &list.concat())
            .map_err(self.refused("list", Path::new("filtered files")))?;
        let end = place.run(SCRIPT);
        let end = end.map_err(|why| self.filter_error("run the git filters", why))?;
        if !end.passed {
            return Err(self.filter_error("check filtered files out", end.said));
        }
        filters.warn(&end.said);
        let root = self.beneath()?;
        let written = place.written();
        let written = written.map_err(self.refused("read", Path::new("filtered files")))?;
        for (name, (mode, _)) in files {
            let from = Path::new("files").join(path(name));
            let copied = written.open_file(&from).and_then(|file| {
                let file = file.ok_or(io::ErrorKind::NotFound)?;
                if file.metadata()?.len() > FILE_MAX {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                root.remove_alone(path(name))?;
                root.create_from(path(name), &mut file.take(FILE_MAX), mode & 0o111 != 0)
            });
            copied.map_err(|error| {
                let name = path(name).display();
                let why = format!("{name}: its filter wrote no file: {error}\n{}", end.said);
                self.filter_error("check filtered files out", why)
            })?;
        }
        Ok(())
    }
}
