//! What of the harness's own files is amiss, and its repair.

use crate::control;
use crate::error::StoreError;
use crate::ignored::{self, unexcluded};
use crate::live::LiveFolder;
use crate::private::PrivateFolder;
use crate::roots::{MemoryRoots, common_folder};
use crate::untrusted::is_linked;
use premath_kernel::policy::health::{FileTime, OpenPlace};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What is amiss.
#[derive(Clone, Debug, Default)]
pub struct Amiss {
    /// Private places that other users can enter or read.
    pub open_places: Vec<OpenPlace>,
    /// Control sockets of processes that are gone.
    pub dead_sockets: Vec<PathBuf>,
    /// Published states that cannot be read.
    pub broken_live: Vec<PathBuf>,
    /// Whether git status shows what the harness keeps.
    pub shows_files: bool,
}

impl Amiss {
    /// Looks at a repository.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where something is there and cannot be looked at.
    pub fn look(roots: &MemoryRoots) -> Result<Self, StoreError> {
        let Ok(common) = common_folder(&roots.repository) else {
            return Ok(Self::default());
        };
        Ok(Self {
            open_places: open_places(roots, &common),
            dead_sockets: control::dead_sockets(&common)?,
            broken_live: LiveFolder::of(roots).broken()?,
            shows_files: roots.issues.exists() && unexcluded(&common)?,
        })
    }
}

/// Returns the private places that others can use. A link is left out.
fn open_places(roots: &MemoryRoots, common: &Path) -> Vec<OpenPlace> {
    let private = PrivateFolder::of(roots).path().to_path_buf();
    let [live, replaced] = ["live", PrivateFolder::REPLACED].map(|name| private.join(name));
    let mut places = vec![private.clone(), live.clone(), common.join(control::FOLDER)];
    let is_plain = |folder: &&&PathBuf| !is_linked(&roots.repository, folder);
    for folder in [&private, &live, &replaced].iter().filter(is_plain) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        places.extend(entries.map(|entry| entry.path()));
    }
    let mut found = Vec::new();
    places.sort();
    places.dedup();
    for path in places {
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        let above = path.parent().unwrap_or(&path);
        let is_ours = meta.is_dir() || meta.is_file() && meta.nlink() == 1;
        let is_ours = is_ours && !is_linked(&roots.repository, above);
        if is_ours && meta.mode() & 0o077 != 0 {
            found.push(OpenPlace {
                path: path.display().to_string(),
                mode: meta.mode(),
            });
        }
    }
    found
}

/// Closes a private place to other users.
///
/// # Errors
///
/// [`StoreError::Io`], also where it is a link by now.
pub fn close_place(path: &Path) -> Result<(), StoreError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = opened.map_err(|errno| StoreError::io("open", path)(errno.into()))?;
    let file = fs::File::from(file);
    let meta = file.metadata().map_err(StoreError::io("look at", path))?;
    let mode = match (meta.is_dir(), meta.is_file() && meta.nlink() == 1) {
        (true, _) => 0o700,
        (false, true) => 0o600,
        (false, false) => {
            let cause = std::io::Error::other("it is neither a folder nor a file of its own");
            return Err(StoreError::io("use", path)(cause));
        }
    };
    file.set_permissions(Permissions::from_mode(mode))
        .map_err(StoreError::io("restrict", path))
}

/// Removes a published state that cannot be read.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn remove_live(roots: &MemoryRoots, path: &Path) -> Result<(), StoreError> {
    if is_linked(&roots.repository, path.parent().unwrap_or(path)) {
        let cause = std::io::Error::other("its folder is reached by a link");
        return Err(StoreError::io("remove", path)(cause));
    }
    fs::remove_file(path).map_err(StoreError::io("remove", path))
}

/// Removes the socket of a process that is gone, with its token.
///
/// # Errors
///
/// [`StoreError::Io`], also where a process listens by now.
pub fn remove_socket(roots: &MemoryRoots, path: &Path) -> Result<(), StoreError> {
    control::remove_dead(&PrivateFolder::of(roots), path)
}

/// Returns when the files of a repository were changed that order what is done.
pub fn file_times(roots: &MemoryRoots) -> Vec<FileTime> {
    let files = [
        roots.issues.clone(),
        roots.trajectory.clone(),
        roots.repository.join("harness.toml"),
    ];
    let time = |path: &PathBuf| {
        let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
        Some(FileTime {
            path: path.display().to_string(),
            at: modified.try_into().ok()?,
        })
    };
    files.iter().filter_map(time).collect()
}

/// Has git status skip what the harness keeps.
///
/// # Errors
///
/// As [`ignored::exclude_from_status`].
pub fn hide_files(roots: &MemoryRoots) -> Result<(), StoreError> {
    ignored::exclude_from_status(&roots.repository).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_places_are_found_and_closed_and_links_are_left() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let roots = MemoryRoots::at(folder.path());
        let private = PrivateFolder::of(&roots);
        private.secret("token").unwrap();
        let token = private.path().join("token");
        fs::write(folder.path().join("mine"), "").unwrap();
        let link = private.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("mine"), &link).unwrap();
        assert!(Amiss::look(&roots).unwrap().open_places.is_empty());
        fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
        let found = Amiss::look(&roots).unwrap().open_places;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, token.display().to_string());
        close_place(&token).unwrap();
        assert!(Amiss::look(&roots).unwrap().open_places.is_empty());
        close_place(&link).unwrap_err();

        // A folder that is a link leads to files of others.
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        let file = theirs.join("a.json");
        fs::write(&file, "{").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let live = private.path().join("live");
        std::os::unix::fs::symlink(&theirs, &live).unwrap();
        let found = Amiss::look(&roots).unwrap();
        assert!(found.open_places.is_empty(), "{:?}", found.open_places);
        assert!(found.broken_live.is_empty(), "{:?}", found.broken_live);
        remove_live(&roots, &live.join("a.json")).unwrap_err();
        assert!(file.exists());
        let second = private.path().join("second");
        fs::hard_link(&file, &second).unwrap();
        close_place(&second).unwrap_err();
        assert!(Amiss::look(&roots).unwrap().open_places.is_empty());
    }
}
