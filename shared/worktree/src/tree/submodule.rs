//! Submodules that a command checked out: no commit of a step holds their
//! files, and no git code opens their git folders. What is read of them is
//! text.

use super::beneath::{Beneath, path};
use super::manifest::digest_of;
use super::{Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use crate::mode::mode_of;
use git2::FileMode;
use rustix::fs::{CWD, Mode, openat};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where a git folder has those of submodules.
const MODULES: &str = "modules";
/// The longest file of git's that is read.
const TEXT_MAX: u64 = 8 << 10;

impl Tree {
    /// Returns a submodule that is at another commit than a commit says, by what
    /// the latest look at the files found. `git` holds the git folders of
    /// submodules; a command wrote them, and may have written anything: a
    /// submodule that cannot be read is taken for unchanged.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn moved_submodule(&self, base: &str, git: &Path) -> Result<Option<String>, TreeError> {
        let seen = self.seen.borrow();
        let Some((_, scan)) = seen
            .as_ref()
            .filter(|(_, scan)| !scan.submodules.is_empty())
        else {
            return Ok(None);
        };
        let base = self.find_commit(base)?;
        let base = base.tree().map_err(self.failed("read the tree"))?;
        let lookup = EntryLookup::new(&self.repository, &base);
        let root = self.beneath()?;
        for name in &scan.submodules {
            let entry = lookup.get(name);
            let entry = entry.filter(|entry| mode_of(entry) == i32::from(FileMode::Commit));
            let head = head_of(&root, git, name);
            if let (Some(entry), Some(head)) = (entry, head)
                && entry.id().to_string() != head
            {
                return Ok(Some(String::from_utf8_lossy(name).into_owned()));
            }
        }
        Ok(None)
    }
}

impl Tree {
    /// Returns the commits of the submodules that a commit has, by the paths that its
    /// `.gitmodules` names.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn submodules_of(&self, commit: &str) -> Result<BTreeMap<String, String>, TreeError> {
        let commit = self.find_commit(commit)?;
        let tree = commit.tree().map_err(self.failed("read the tree"))?;
        let lookup = EntryLookup::new(&self.repository, &tree);
        let file = lookup.get(b".gitmodules");
        let blob = file.and_then(|file| self.repository.find_blob(file.id()).ok());
        let text = blob.map(|blob| String::from_utf8_lossy(blob.content()).into_owned());
        let text = text.unwrap_or_default();
        let named = text.lines().filter_map(|line| {
            let (key, path) = line.split_once('=')?;
            (key.trim() == "path").then(|| path.trim().trim_matches('"'))
        });
        let at = |path: &str| {
            let entry = lookup.get(path.as_bytes())?;
            Some((path.to_owned(), entry.id().to_string()))
        };
        Ok(named.filter_map(at).collect())
    }
}

/// Returns the commit that a submodule says it is at.
fn head_of(root: &Beneath, git: &Path, name: &[u8]) -> Option<String> {
    let link = path(name).join(".git");
    let read = |folder: &Beneath, file: &Path| {
        let text = folder.read(file, TEXT_MAX).ok()??;
        Some(String::from_utf8(text).ok()?.trim().to_owned())
    };
    let (folder, at) = match read(root, &link) {
        Some(text) => {
            let text = text.strip_prefix("gitdir: ")?;
            let (_, below) = text.split_once("/modules/")?;
            (&Beneath::open(git).ok()?, Path::new(MODULES).join(below))
        }
        None => (root, link),
    };
    let head = read(folder, &at.join("HEAD"))?;
    match head.strip_prefix("ref: ") {
        Some(reference) => read(folder, &at.join(reference)),
        None => Some(head),
    }
}

/// Returns the digest of what the submodules' git folders in a git folder are,
/// by numbers, sizes and times; `None` where there are none.
///
/// # Errors
///
/// What the system says, and where it is too much.
pub fn modules_digest(git: &Path) -> io::Result<Option<String>> {
    let folder = git.join(MODULES);
    if !fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(None);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        names.push(entry?.file_name().into_encoded_bytes());
    }
    names.sort();
    let root = openat(CWD, &folder, super::beneath::FOLDER, Mode::empty())?;
    digest_of(root, names.iter().map(Vec::as_slice)).map(Some)
}

/// The submodules' git folders of a git folder that is about to be made again.
#[derive(Debug)]
#[must_use = "they are to be put back"]
pub struct KeptModules(Option<PathBuf>);

impl KeptModules {
    /// Takes them out of a git folder where their digest is this one, to a
    /// folder beside its place.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn take(git: &Path, place: &Path, digest: Option<&str>) -> io::Result<Self> {
        let mut aside = place.as_os_str().to_owned();
        aside.push(".modules");
        let aside = PathBuf::from(aside);
        if let (Some(above), Some(name)) = (aside.parent(), aside.file_name()) {
            let above = fs::File::open(above)?;
            crate::removal::remove_entry(std::os::fd::AsFd::as_fd(&above), name)?;
        }
        if digest.is_none() || modules_digest(git).ok().flatten().as_deref() != digest {
            return Ok(Self(None));
        }
        fs::rename(git.join(MODULES), &aside)?;
        Ok(Self(Some(aside)))
    }

    /// Puts them into the git folder that was made.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn put_back(self, git: &Path) -> io::Result<()> {
        match self.0 {
            Some(aside) => fs::rename(aside, git.join(MODULES)),
            None => Ok(()),
        }
    }
}
