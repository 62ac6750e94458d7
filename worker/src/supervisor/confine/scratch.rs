//! A temporary folder of a step's own, and its removal whatever is in it.

use premath_platform::process::{Presence, presence};
use premath_worktree::removal::remove_entry;
use rustix::fs::{CWD, IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, openat};
use rustix::process::Pid;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the folders of this process; no name is used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How many names are tried; a process that takes them all is in a loop.
const TRIES: usize = 1_000;

/// A folder in the system's temporary one that no other user may read; it is
/// removed with this value.
#[derive(Debug)]
pub(crate) struct Scratch {
    whole: PathBuf,
    path: PathBuf,
}

impl Scratch {
    /// Makes a fresh folder. Its name is short, for a socket's path may not be
    /// long.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn make() -> io::Result<Self> {
        Self::make_in(&fs::canonicalize(std::env::temp_dir())?)
    }

    /// Makes a fresh folder below folders that no other user may write to, where
    /// the user has such: some programs read settings from no other.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn make_apart() -> io::Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.is_dir());
        let Some(home) = home else {
            return Self::make();
        };
        let above = home.join(".cache/premath");
        match fs::create_dir_all(&above) {
            Ok(()) => {
                remove_left(&above);
                Self::make_in(&above)
            }
            // A home that cannot be written.
            Err(_) => Self::make(),
        }
    }

    fn make_in(above: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for _ in 0..TRIES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("premath-{process}-{number}"));
            match create(&path) {
                Ok(()) => return Self::within(path),
                // Left by a killed process, or not ours.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn within(whole: PathBuf) -> io::Result<Self> {
        let mut scratch = Self {
            path: spread(&whole),
            whole,
        };
        if create(&scratch.path).is_err() {
            scratch.path.clone_from(&scratch.whole);
        }
        Ok(scratch)
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder that is removed.
    pub(crate) fn whole(&self) -> &Path {
        &self.whole
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.whole) {
            let folder = self.whole.display();
            tracing::warn!(%folder, %error, "cannot remove a temporary folder");
        }
    }
}

/// Removes what harnesses that are gone left in a folder.
fn remove_left(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix("premath-"));
        let maker = maker.and_then(|rest| rest.split('-').next()?.parse().ok());
        if maker
            .and_then(Pid::from_raw)
            .is_some_and(|maker| presence(maker) == Presence::Gone)
        {
            // The next one tries again.
            let _ = remove(&entry.path());
        }
    }
}

/// Replaces a folder by an empty one, and returns where in it to make
/// the folder that is needed.
///
/// ext4 does not use the inode of a file again for minutes, and looks at every one
/// that was deleted of late before it makes a file in the same group of inodes:
/// where each command has some hundred files made and deleted, that takes most of
/// the time of a short step. Folders in the folder that this makes are in groups
/// of their own.
///
/// # Errors
///
/// What the system says.
pub(crate) fn renew(folder: &Path) -> io::Result<PathBuf> {
    remove(folder)?;
    create(folder)?;
    Ok(spread(folder))
}

/// Has the file system spread the folders of a folder (`chattr +T`), where it
/// can, and names a new one: the name determines where it is.
fn spread(folder: &Path) -> PathBuf {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(opened) = openat(CWD, folder, flags, Mode::empty())
        && let Ok(set) = ioctl_getflags(&opened)
    {
        // Other file systems have no such flag, and do not need it.
        let _ = ioctl_setflags(&opened, set | IFlags::TOPDIR);
    }
    folder.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}

fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)
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
    remove_any(folder)
}

/// Removes whatever has a path, as [`remove`] does with a folder.
///
/// # Errors
///
/// What the system says; none where it is gone already.
pub(crate) fn remove_any(folder: &Path) -> io::Result<()> {
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
    fn a_folder_that_is_replaced_is_empty_and_names_another_one_each_time() {
        let scratch = Scratch::make().unwrap();
        let folder = scratch.path().join("folder");
        let first = renew(&folder).unwrap();
        fs::create_dir(&first).unwrap();
        let second = renew(&folder).unwrap();
        assert_ne!(first, second);
        assert_eq!(second.parent(), Some(&*folder));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
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
        let whole = one.whole().to_path_buf();
        assert!(one.path().starts_with(&whole));
        drop(one);
        assert!(!whole.exists());
        assert!(outside.exists());
        assert!(remove(&whole).is_ok());
    }
}
