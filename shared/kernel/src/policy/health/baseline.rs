//! What the run log has about a verification that belongs to no issue.

use jiff::Timestamp;

/// What such a verification looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedSubject {
    /// The base, without any work.
    Base,
    /// The last commit that landed, without build state.
    Tip,
}

/// A verification that belongs to no issue and failed, where the run log has no later
/// one that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRed {
    /// What failed.
    pub subject: RedSubject,
    /// When it was recorded.
    pub at: Timestamp,
}

impl KnownRed {
    /// Says it in a sentence.
    pub(super) fn describe(self) -> String {
        let at = self.at.strftime("%Y-%m-%dT%H:%M:%SZ");
        let what = match self.subject {
            RedSubject::Base => format!("it failed without any work at {at}"),
            RedSubject::Tip => {
                format!("the last commit that landed did not pass it without build state at {at}")
            }
        };
        format!("{what}; the run log has no later pass")
    }
}
