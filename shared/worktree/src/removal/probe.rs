//! Whether a folder tree can be worked with at all.

use super::RemovalBounds;
use super::node::{self, Node};
use premath_platform::file::read_entries;
use rustix::fs::{FileType, Mode, OFlags, openat};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// The most folders in one another that git and other tools cope with: they
/// recurse, and a path has at most 4096 bytes. Work that is deeper is refused: it would
/// cost every lane its folder, at each start.
pub(crate) const DEEPEST: usize = 200;
/// The longest path below the folder, for work too.
pub(crate) const LONGEST: usize = 3_000;

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
                Err(error) if node::is_not_a_folder(&error) => continue,
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
        let mut names = Vec::new();
        loop {
            let mut is_over = false;
            let read = read_entries(folder.as_fd(), |name, kind| {
                is_over |= self.count();
                let may_be_folder = matches!(kind, FileType::Directory | FileType::Unknown);
                if may_be_folder && name != "." && name != ".." {
                    names.push(name.to_os_string());
                }
            });
            let has_more =
                read.map_err(|errno| format!("a folder in it cannot be read: {errno}"))?;
            if is_over {
                return Err("it holds too many files".to_owned());
            }
            if !has_more {
                return Ok(names);
            }
        }
    }

    /// Counts an entry; returns whether a bound is reached.
    fn count(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 || (self.left.is_multiple_of(256) && Instant::now() > self.until)
    }
}
