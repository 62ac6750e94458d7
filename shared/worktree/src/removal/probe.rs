//! Whether a folder tree can be worked with at all.

use super::RemovalBounds;
use super::node::{self, Node};
use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

/// The most folders in one another that git and other tools cope with: they
/// recurse, and a path has at most 4096 bytes.
const DEEPEST: usize = 120;
/// The longest path below the folder.
const LONGEST: usize = 3_000;
const BATCH: usize = 16 << 10;

/// Looks through a tree without changing it; returns why it cannot be worked
/// with: it is too deep, too large, unreadable, or holds a mount.
pub(crate) fn probe(top: BorrowedFd<'_>, bounds: RemovalBounds) -> Result<(), String> {
    let node = Node::of(top).map_err(|error| error.to_string())?;
    let mut probe = Probe {
        left: bounds.entries,
        until: Instant::now() + bounds.time,
    };
    probe.folder(top, &node, 0, 0)
}

struct Probe {
    left: u64,
    until: Instant,
}

impl Probe {
    fn folder(
        &mut self,
        place: BorrowedFd<'_>,
        node: &Node,
        depth: usize,
        length: usize,
    ) -> Result<(), String> {
        if depth > DEEPEST || length > LONGEST {
            return Err("its folders are nested too deep".to_owned());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(place, ".", flags, Mode::empty())
            .map_err(|errno| format!("a folder in it cannot be read: {errno}"))?;
        for name in self.folders(&folder)? {
            let (below, found) = match node::enter(folder.as_fd(), node, &name) {
                Ok(entered) => entered,
                Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                    return Err(format!("{} in it is a mount", name.display()));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) if node::is_no_folder(&error) => continue,
                Err(error) => {
                    return Err(format!(
                        "{} in it cannot be opened: {error}",
                        name.display()
                    ));
                }
            };
            let length = length + name.len() + 1;
            self.folder(below.as_fd(), &found, depth + 1, length)?;
        }
        Ok(())
    }

    fn folders(&mut self, folder: &OwnedFd) -> Result<Vec<OsString>, String> {
        let mut buffer: Vec<u8> = Vec::with_capacity(BATCH);
        let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|errno| format!("a folder in it cannot be read: {errno}"))?;
            self.left = self.left.saturating_sub(1);
            if self.left == 0 || (self.left.is_multiple_of(256) && Instant::now() > self.until) {
                return Err("it holds too many files".to_owned());
            }
            let name = entry.file_name().to_bytes();
            let may_be_folder =
                matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if may_be_folder && name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        Ok(names)
    }
}
