//! The providers of the agents' models: which of them a lane works with.

use jiff::Timestamp;

/// A provider refused more work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageLimit {
    /// When the limit resets, where that is said.
    pub resets_at: Option<Timestamp>,
}
