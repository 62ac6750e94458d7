//! The end of a batch that may change nothing any more, or whose target is broken.

use super::Batch;
use crate::settings::Revocation;
use premath_kernel::record::trajectory::revoked_row;
use premath_memory::clock;

impl Batch {
    /// Ends the batch: a landing that failed its check stays on the target, and other
    /// work would be charged for it. Attempts that run are interrupted.
    pub(crate) fn break_target(&self) {
        self.admission().break_target();
        self.interrupt.kill();
    }

    /// Makes sure that what changes rest on is as it was when the batch began.
    /// From the first time that it is not, the batch drains and changes nothing.
    ///
    /// # Errors
    ///
    /// [`Revocation`].
    pub fn authorised(&self) -> Result<(), Revocation> {
        if let Some(revoked) = self.revoked.get() {
            return Err(revoked.clone());
        }
        let now = clock::now().wall;
        let Err(revoked) = self.settings.authorised(now) else {
            return Ok(());
        };
        // Lanes may find it at once: it is recorded by one.
        if self.revoked.set(revoked.clone()).is_ok() {
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
