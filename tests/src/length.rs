//! The short and the long form of a test, and tests that cannot run.

use std::io::Write;

/// How much of a campaign is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// What every change must pass.
    Quick,
    /// The whole of it: `PREMATH_TESTS=long`, or `mise run test-long`.
    Long,
}

impl Length {
    /// Returns the length that was asked for; says what a quick run leaves out.
    pub fn asked(long_form: &str) -> Self {
        if std::env::var_os("PREMATH_TESTS").is_some_and(|value| value == "long") {
            Self::Long
        } else {
            skipped(long_form, "PREMATH_TESTS is not `long`");
            Self::Quick
        }
    }

    /// Picks by length.
    pub fn pick<T>(self, quick: T, long: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Long => long,
        }
    }
}

/// Says what is not run and why, past the capture of output.
pub fn skipped(what: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {reason}");
}
