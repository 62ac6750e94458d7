//! The place for what is in the lane's way and git cannot hold.

use super::beneath::Beneath;
use super::{Tree, TreeError};
use premath_kernel::json::token;
use std::io;
use std::path::{Path, PathBuf};

/// How many places are tried for one step.
const PLACES: u32 = 1000;

/// A folder for one step, made when something is put there:
/// `premath-salvage/<issue>/<generation>` in the worktree's own git folder, or
/// in `.premath/` where that is on another file system.
pub(super) struct Aside<'t> {
    tree: &'t Tree,
    worktree: Beneath,
    git: Beneath,
    place: PathBuf,
    used: Option<PathBuf>,
}

impl<'t> Aside<'t> {
    pub(super) fn new(tree: &'t Tree, issue_id: &str, generation: u64) -> Result<Self, TreeError> {
        let place = Path::new("premath-salvage")
            .join(token::encode(issue_id))
            .join(generation.to_string());
        let aside = Self {
            tree,
            worktree: tree.beneath()?,
            git: tree.beneath_git()?,
            place,
            used: None,
        };
        for part in aside.place.ancestors() {
            if !part.as_os_str().is_empty() {
                aside
                    .git
                    .unlink_if_link(part)
                    .map_err(tree.refused("make room", part))?;
            }
        }
        Ok(aside)
    }

    /// Returns the folder, where something was put there.
    pub(super) fn used(self) -> Option<PathBuf> {
        self.used
    }

    /// Puts what is at a path of the worktree aside; nothing is lost.
    pub(super) fn take(&mut self, path: &Path) -> Result<(), TreeError> {
        let mut moved = self.moved(path, &self.git, &self.place);
        let mut root = self.tree.git_folder().to_path_buf();
        if let Err(error) = &moved
            && error.kind() == io::ErrorKind::CrossesDevices
        {
            moved = self.moved(
                path,
                &self.worktree,
                &Path::new(".premath").join(&self.place),
            );
            root = self.tree.workdir().to_path_buf();
        }
        match moved {
            Ok(Some(place)) => {
                self.used = Some(root.join(place));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(self.tree.refused("put aside", path)(error)),
        }
    }

    /// Returns the place of the step that took it; `None` where nothing was
    /// there to take.
    fn moved(&self, path: &Path, there: &Beneath, place: &Path) -> io::Result<Option<PathBuf>> {
        if self.worktree.look(path)?.is_none() {
            return Ok(None);
        }
        for number in 1..PLACES {
            let mut place = place.to_path_buf().into_os_string();
            if number > 1 {
                place.push(format!(".{number}"));
            }
            let place = PathBuf::from(place);
            match self.worktree.move_to(path, there, &place.join(path)) {
                Ok(_) => return Ok(Some(place)),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
