//! What a setup command made of files that git ignores, so that a later step's
//! change of any of them is seen.

use super::beneath::path;
use super::descent::{DEPTH_MAX, Descent};
use super::{Tree, TreeError};
use crate::file_stamp::FileStamp;
use premath_kernel::json::canonical::sha256_hex;
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

/// How many entries of one folder are compared.
const ENTRIES_MAX: usize = 2_000_000;

/// The ignored files of a worktree: each outermost path with a digest over the
/// numbers, sizes and times of everything below it. A change moves a file's
/// change time, which no step can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest(pub BTreeMap<String, String>);

impl Tree {
    /// Returns the ignored files and the submodules as they are now.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn manifest(&self) -> Result<Manifest, TreeError> {
        let scan = self.scan(&self.head_tree()?)?;
        let made = scan.ignored.iter().chain(&scan.submodules);
        let digests = made.filter_map(|name| {
            let text = std::str::from_utf8(name).ok()?;
            Some((text.to_owned(), self.stamped(name).ok()?))
        });
        Ok(Manifest(digests.collect()))
    }

    /// Returns the paths of a manifest that are as they were.
    pub fn unchanged(&self, manifest: &Manifest) -> BTreeSet<Vec<u8>> {
        let as_before = |(name, digest): &(&String, &String)| {
            self.stamped(name.as_bytes())
                .is_ok_and(|now| now == **digest)
        };
        let kept = manifest.0.iter().filter(as_before);
        kept.map(|(name, _)| name.as_bytes().to_vec()).collect()
    }

    /// Returns the digest of what is at a path.
    fn stamped(&self, name: &[u8]) -> io::Result<String> {
        let root = self
            .beneath()
            .map_err(|error| io::Error::other(error.to_string()))?;
        digest_of(root.folder()?, [name])
    }
}

/// Returns the digest over numbers, sizes and times of what is at paths below a
/// folder.
pub(super) fn digest_of<'a>(
    root: OwnedFd,
    names: impl IntoIterator<Item = &'a [u8]>,
) -> io::Result<String> {
    let mut descent = Descent::new(root);
    let mut text = String::new();
    let mut left = ENTRIES_MAX;
    let mut waiting: Vec<Vec<u8>> = names.into_iter().map(<[u8]>::to_vec).collect();
    while let Some(at) = waiting.pop() {
        let stat = descent.look(&at)?.ok_or(io::ErrorKind::NotFound)?;
        let stamp = FileStamp::of(&stat);
        text.push_str(&format!("{} {stamp:?} {}\n", sha256_hex(&at), stat.st_mode));
        if super::beneath::kind(&stat) != FileType::Directory {
            continue;
        }
        if path(&at).components().count() >= DEPTH_MAX {
            return Err(super::descent::too_deep());
        }
        let names = descent.list(&at, left)?.ok_or(io::ErrorKind::NotFound)?;
        left = left.saturating_sub(names.names.len());
        for (name, _) in names.names {
            waiting.push([&at[..], b"/", &name[..]].concat());
        }
    }
    Ok(sha256_hex(text.as_bytes()))
}
