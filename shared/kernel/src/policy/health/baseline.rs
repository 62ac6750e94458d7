//! What the run log has about a verification without any work.

use jiff::Timestamp;

/// A verification without any work that failed, and none that passed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRed {
    /// When it was recorded.
    pub at: Timestamp,
}

impl KnownRed {
    /// Says it in a sentence.
    pub(super) fn describe(self) -> String {
        let at = self.at.strftime("%Y-%m-%dT%H:%M:%SZ");
        format!("it failed without any work at {at}, and none passed since")
    }
}
