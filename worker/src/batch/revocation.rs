//! The end of a batch that may change nothing any more, or whose target is broken.

use super::Batch;
use crate::settings::Revocation;
use premath_kernel::record::trajectory::revoked_row;
use premath_memory::clock;
use std::sync::OnceLock;

/// Why a batch ends that would continue.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Why nothing may be changed any more.
    revoked: OnceLock<Revocation>,
    /// The commit that failed its check and stays on the target.
    broken_by: OnceLock<String>,
}

impl Batch {
    /// Ends the batch: a landing that failed its check stays on the target, and other
    /// work would be charged for it. Attempts that run are interrupted.
    pub(crate) fn break_target(&self, commit: &str) {
        // The first one: what else stays may build on it.
        let _ = self.ends.broken_by.set(commit.to_owned());
        self.admission().break_target();
        self.interrupt.kill();
    }

    /// Returns the commit that failed its check and stays on the target.
    pub fn broken_by(&self) -> Option<&str> {
        self.ends.broken_by.get().map(String::as_str)
    }

    /// Makes sure that what changes rest on is as it was when the batch began.
    /// From the first time that it is not, the batch drains and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Revocation`].
    pub fn authorised(&self) -> Result<(), Revocation> {
        if let Some(revoked) = self.ends.revoked.get() {
            return Err(revoked.clone());
        }
        let now = clock::now().wall;
        let Err(revoked) = self.settings.authorised(now) else {
            return Ok(());
        };
        // Lanes may find it at once: it is recorded by one.
        if self.ends.revoked.set(revoked.clone()).is_ok() {
            tracing::error!(%revoked, "no issue is changed any more");
            let row = revoked_row(&self.id, revoked.class, revoked.detail.clone(), now);
            if let Err(error) = self.record(&row) {
                tracing::error!(%error, "the revocation was not recorded");
            }
            self.admission().revoke();
            self.interrupt.drain();
        }
        Err(revoked)
    }
}
