//! Folders that are never removed.

use super::error::{RemovalError, Stop};
use super::node::{self, Node};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// More folders than this are never above one another.
const DEEPEST: usize = 5_000;

/// What must never be removed: the root of the file system, the home, and the
/// folders that it is made with. They are held open, so that they are
/// recognised wherever they are moved to and by whichever path they are
/// reached.
#[derive(Debug)]
pub struct Guard {
    folders: Vec<Guarded>,
}

#[derive(Debug)]
struct Guarded {
    path: PathBuf,
    place: OwnedFd,
    node: Node,
    /// Whether what is in it is guarded too.
    with_content: bool,
}

impl Guard {
    /// Guards folders with all that is in them, as the main worktree and the
    /// common git folder are against the removal of a lane.
    ///
    /// # Errors
    ///
    /// Where one of them, the home or the root cannot be opened.
    pub fn outside<'a>(folders: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        Self::of(folders, true)
    }

    /// Guards folders, but not what is in them.
    ///
    /// # Errors
    ///
    /// As [`Guard::outside`].
    pub(crate) fn around<'a>(folders: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        Self::of(folders, false)
    }

    fn of<'a>(folders: impl IntoIterator<Item = &'a Path>, with_content: bool) -> io::Result<Self> {
        let mut guard = Self::none();
        guard.add(Path::new("/"), false)?;
        // A system account may have none.
        if let Some(home) = std::env::home_dir().filter(|home| home.is_absolute())
            && let Err(error) = guard.add(&home, false)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        for folder in folders {
            guard.add(folder, with_content)?;
        }
        Ok(guard)
    }

    /// Guards nothing.
    pub(super) const fn none() -> Self {
        Self {
            folders: Vec::new(),
        }
    }

    fn add(&mut self, path: &Path, with_content: bool) -> io::Result<()> {
        // By canonical path, so that the folder and not a link to it is opened.
        let path = std::fs::canonicalize(path)?;
        let place = node::step(rustix::fs::CWD, path.as_os_str())?;
        let node = Node::of(place.as_fd())?;
        self.folders.push(Guarded {
            path,
            place,
            node,
            with_content,
        });
        Ok(())
    }

    /// Refuses an entry that is, contains or is in a guarded folder, or is a
    /// mount point.
    pub(super) fn check(
        &self,
        path: &Path,
        parent: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<(), RemovalError> {
        let io = |source| RemovalError::Io {
            path: path.to_path_buf(),
            source,
        };
        let refused = |guarded: &Guarded, relation| RemovalError::Guarded {
            path: path.to_path_buf(),
            guarded: guarded.path.clone(),
            relation,
        };
        let lies_in = ancestors(parent).map_err(io)?;
        for guarded in self.folders.iter().filter(|guarded| guarded.with_content) {
            if lies_in.iter().any(|above| above.is(&guarded.node)) {
                return Err(refused(guarded, "is in"));
            }
        }
        let found = match node::look(parent, name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io(error)),
        };
        if !node::is_folder(&found) {
            return Ok(());
        }
        let target = Node::from(found);
        for guarded in &self.folders {
            if target.is(&guarded.node) {
                return Err(refused(guarded, "is"));
            }
            let above = ancestors(guarded.place.as_fd()).map_err(io)?;
            if above.iter().any(|above| above.is(&target)) {
                return Err(refused(guarded, "contains"));
            }
        }
        if !target.is_beside(&Node::of(parent).map_err(io)?) {
            return Err(RemovalError::Mount {
                path: path.to_path_buf(),
                at: name.to_string_lossy().into_owned(),
            });
        }
        Ok(())
    }

    /// Refuses a guarded folder that a walk reaches.
    pub(super) fn pass(&self, node: &Node, name: &OsStr) -> Result<(), Stop> {
        let guarded = self.folders.iter().find(|guarded| guarded.node.is(node));
        guarded.map_or(Ok(()), |guarded| {
            Err(Stop::Guarded {
                at: name.to_string_lossy().into_owned(),
                guarded: guarded.path.clone(),
            })
        })
    }
}

/// Returns a folder and all that it is in, up to the root.
fn ancestors(folder: BorrowedFd<'_>) -> io::Result<Vec<Node>> {
    let mut nodes = vec![Node::of(folder)?];
    let mut above = node::above(folder)?;
    loop {
        let node = Node::of(above.as_fd())?;
        if nodes.last() == Some(&node) {
            return Ok(nodes);
        }
        if nodes.len() > DEEPEST {
            return Err(io::Error::other("it is nested too deep"));
        }
        nodes.push(node);
        above = node::above(above.as_fd())?;
    }
}
