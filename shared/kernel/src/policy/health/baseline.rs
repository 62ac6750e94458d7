//! What the run log has about a verification without any work.

use jiff::Timestamp;

/// A verification without any work that failed, where the run log has no later one that
/// passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRed {
    /// When it was recorded.
    pub at: Timestamp,
}

impl KnownRed {
    /// Says it in a sentence.
    pub(super) fn describe(self) -> String {
        let at = self.at.strftime("%Y-%m-%dT%H:%M:%SZ");
        format!("it failed without any work at {at}; the run log has no later pass")
    }
}
