//! A temporary folder of a step's own, and its removal whatever is in it.

use premath_worktree::removal::remove_entry;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the folders of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How many names are tried; a process that takes them all is in a loop.
const TRIES: usize = 1_000;

/// A folder in the system's temporary one that no other user may read; it is
/// removed with this value.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a fresh folder. Its name is short, for a socket's path may not be
    /// long.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn make() -> io::Result<Self> {
        let above = fs::canonicalize(std::env::temp_dir())?;
        let process = std::process::id();
        for _ in 0..TRIES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("premath-{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // Left by a killed process, or not ours.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "cannot remove a temporary folder");
        }
    }
}

/// Removes a folder with all that is in it, also in folders that were made
/// read-only; no link is followed.
///
/// # Errors
///
/// What the system says; none where it is gone already.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    // As a rule nothing is in it.
    if fs::remove_dir(folder).is_ok() {
        return Ok(());
    }
    // Not the standard library's: it holds a descriptor for each level.
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match File::open(above) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => remove_entry(opened?.as_fd(), name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_below_each_other_without_end_are_removed() {
        let scratch = Scratch::make().unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut here = openat(CWD, scratch.path(), flags, Mode::empty()).unwrap();
        for _ in 0..3_000 {
            mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = openat(&here, "d", flags, Mode::empty()).unwrap();
        }
        let path = scratch.path().to_path_buf();
        drop((here, scratch));
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_is_fresh_private_and_gone_with_its_value() {
        let [one, two] = [(); 2].map(|()| Scratch::make().unwrap());
        assert_ne!(one.path(), two.path());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let shut = one.path().join("a/b");
        fs::create_dir_all(&shut).unwrap();
        fs::write(shut.join("file"), "x").unwrap();
        let outside = two.path().join("kept");
        fs::write(&outside, "x").unwrap();
        std::os::unix::fs::symlink(two.path(), one.path().join("link")).unwrap();
        fs::set_permissions(&shut, Permissions::from_mode(0o500)).unwrap();
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists());
        assert!(outside.exists());
        assert!(remove(&path).is_ok());
    }
}
