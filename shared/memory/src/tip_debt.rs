//! The debt of a verification: work is on a branch whose verification began
//! with build state, and the branch's last commit is yet to be verified without.
//!
//! It outlives the process, for a batch may be killed at any time. It is set
//! before the work lands, and cleared after the row of the verification that
//! makes it up.

use crate::artifact;
use crate::clock;
use crate::error::StoreError;
use crate::roots::WarmRoots;
use premath_kernel::json::canonical::sha256_hex;
use std::path::{Path, PathBuf};

/// The debt of one branch.
#[derive(Clone, Debug)]
pub struct TipDebt {
    path: PathBuf,
}

/// What is owed at a time: work that lands later makes it another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed(Vec<u8>);

impl TipDebt {
    /// Names the debt of a landing target, or of a lane whose own branch keeps
    /// its work.
    pub fn of(repository: &Path, branch: &str) -> Self {
        let digest = sha256_hex(branch.as_bytes());
        let name = format!("tip-{}", &digest[..16]);
        Self {
            path: WarmRoots::at(repository).record.with_file_name(name),
        }
    }

    /// Returns what is owed, where something is.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn owed(&self) -> Result<Option<Owed>, StoreError> {
        Ok(artifact::read(&self.path)?.map(Owed))
    }

    /// Says that a verification is owed; it is on the disk on return.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn owe(&self) -> Result<(), StoreError> {
        let now = clock::now();
        let text = format!("{} {} {}\n", std::process::id(), now.wall, now.boot_ms);
        artifact::write_durably(&self.path, text.as_bytes())
    }

    /// Clears the debt, unless work landed since it was looked at.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn clear(&self, owed: &Owed) -> Result<(), StoreError> {
        if self.owed()?.as_ref() != Some(owed) {
            return Ok(());
        }
        artifact::remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_is_cleared_unless_more_landed_since() {
        let folder = tempfile::tempdir().unwrap();
        let debt = TipDebt::of(folder.path(), "harness/integration");
        assert_eq!(debt.owed().unwrap(), None);
        debt.owe().unwrap();
        let first = debt.owed().unwrap().unwrap();
        let again = TipDebt::of(folder.path(), "harness/integration");
        assert_eq!(again.owed().unwrap(), Some(first.clone()));
        let other = TipDebt::of(folder.path(), "another");
        assert_eq!(other.owed().unwrap(), None);
        let later = Owed(b"later".to_vec());
        artifact::write(&debt.path, &later.0).unwrap();
        debt.clear(&first).unwrap();
        assert_eq!(debt.owed().unwrap(), Some(later.clone()));
        debt.clear(&later).unwrap();
        assert_eq!(debt.owed().unwrap(), None);
    }
}
