//! The unpacked files of an image, and what of them a command sees.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What of an image is not shown: the kernel's folders, those that each command
/// has of its own, homes, and the folder of everything of ours.
const NOT_SHOWN: [&str; 8] = [
    "dev", "home", "premath", "proc", "root", "run", "sys", "tmp",
];

/// The most bytes of a small file that is read.
const TEXT_MAX: u64 = 4 << 20;

/// The files of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFiles {
    folder: PathBuf,
}

/// Something in the root folder of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootEntry {
    /// A file or folder.
    File {
        /// The path in the folder of the image.
        from: PathBuf,
        /// Where a command sees it.
        at: PathBuf,
    },
    /// A link.
    Link {
        /// The target of the link.
        to: PathBuf,
        /// Where a command sees it.
        at: PathBuf,
    },
}

impl RootEntry {
    /// Returns where a command sees it.
    pub(crate) fn at(&self) -> &Path {
        match self {
            Self::File { at, .. } | Self::Link { at, .. } => at,
        }
    }
}

impl ImageFiles {
    pub(super) const fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the folder that they are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns what is in the root folder of the image and is shown, by name.
    pub(crate) fn entries(&self) -> Vec<RootEntry> {
        let found = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut entries: Vec<RootEntry> = found
            .filter(|entry| !NOT_SHOWN.iter().any(|name| entry.file_name() == *name))
            .map(|entry| {
                let from = entry.path();
                let at = Path::new("/").join(entry.file_name());
                match fs::read_link(&from) {
                    Ok(to) => RootEntry::Link { to, at },
                    Err(_) => RootEntry::File { from, at },
                }
            })
            .collect();
        entries.sort_by(|one, other| one.at().cmp(other.at()));
        entries
    }

    /// Returns whether a path of the image is a program; its links lead to
    /// where they do for a command.
    pub(crate) fn has_program(&self, path: &Path) -> bool {
        self.open(path).is_some_and(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
        })
    }

    /// Reads a small text file of the image.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        let file = self.open(path)?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(TEXT_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn open(&self, path: &Path) -> Option<File> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, &self.folder, flags, Mode::empty()).ok()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(root, path, flags, Mode::empty(), inside).ok()?;
        Some(File::from(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_of_an_image_lead_to_files_of_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::create_dir(root.join("proc")).unwrap();
        fs::write(root.join("usr/bin/dash"), "").unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(root.join("usr/bin/dash"), mode).unwrap();
        fs::write(folder.path().join("secret"), "").unwrap();
        symlink("/usr/bin/dash", root.join("usr/bin/sh")).unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        let files = ImageFiles::at(root.clone());
        assert!(files.has_program(Path::new("/bin/sh")));
        assert!(!files.has_program(Path::new("/bin/bash")));
        assert!(!files.has_program(Path::new("/usr")));
        assert_eq!(files.text(Path::new("/out")), None);
        let entries = files.entries();
        let at: Vec<_> = entries.iter().map(|entry| entry.at().to_owned()).collect();
        assert_eq!(at, ["/bin", "/out", "/usr"].map(PathBuf::from));
    }
}
