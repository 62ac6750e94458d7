//! The exit codes of `premath` (`contracts.md` 9); clap's own usage error is 2 too.

/// Done; verdicts that are data are also this.
pub(crate) const OK: u8 = 0;
/// An operation or a check was refused or failed.
pub(crate) const REFUSED: u8 = 1;
/// A flag, or input that cannot be read.
pub(crate) const USAGE: u8 = 2;
