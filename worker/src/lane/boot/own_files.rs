//! The ignored files of a person's own worktree: they are never part of the
//! work, and steps do not see those that hold secrets.

use super::super::Lane;
use super::BootError;
use premath_kernel::failure::FailureClass;
use premath_memory::artifact;
use premath_worktree::tree::OwnFiles;

/// The most secrets of a worktree: each is a mount in the view of a command, and
/// the kernel bounds the mounts of a namespace. A step may have made them.
const SECRETS_MAX: usize = 1_000;

impl Lane {
    /// Reads which files an earlier batch found: a step that was cut may have
    /// changed the ignore rules since.
    pub(crate) fn remember_own_files(&mut self) -> Result<(), BootError> {
        if let Some(bytes) = artifact::read(&self.home.own_files)? {
            self.tree.keep_out(OwnFiles::from_bytes(&bytes));
        }
        Ok(())
    }

    /// Finds the files again, in a worktree without changes.
    pub(crate) fn find_own_files(&mut self) -> Result<(), BootError> {
        let own = self.tree.ignored_files()?;
        self.tree.keep_out(own);
        let own = self.tree.kept_out().to_bytes();
        artifact::overwrite(&self.home.own_files, &own)?;
        let secrets = self.tree.kept_out().secrets().count();
        if self.confinement.mounts() && secrets > SECRETS_MAX {
            return Err(BootError::Unconfined {
                detail: format!(
                    "{} has {secrets} ignored files that are named like secrets; at most \
                     {SECRETS_MAX} can be hidden; remove those that you did not make",
                    self.worktree.display()
                ),
                class: FailureClass::SandboxUnavailable,
            });
        }
        Ok(())
    }

    /// Refuses a worktree that no step can begin in: one with a user's changes,
    /// or one with an own file that conflicts with the commit to begin at.
    pub(crate) fn refuse_unready(&self) -> Result<(), BootError> {
        self.refuse_dirty()?;
        if self.batch.landing.is_on() && self.tree.kept_out().paths().next().is_some() {
            let start = self.batch.landing_start()?;
            self.tree.must_keep_own_files(&start)?;
        }
        Ok(())
    }
}
