//! What work uses up, and what it may.

/// What was used, as far as it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Billionths of a dollar.
    pub cost_nano_usd: Option<u64>,
}
