//! How a command is kept to what it may write: by Landlock or by `bwrap`, and
//! the temporary folder that is its own.
//!
//! Reading and running are not restricted, nor is the network.

pub mod bubblewrap;
pub mod landlock;
pub mod scratch;

use premath_kernel::sandbox::SandboxMode;

/// Tries whether a way of confining works here; says what is in its way.
///
/// # Errors
///
/// What is in its way, in a few words.
pub fn works(mode: SandboxMode) -> Result<(), String> {
    match mode {
        SandboxMode::Landlock => landlock::works(),
        SandboxMode::Bubblewrap => bubblewrap::find().map(drop),
        SandboxMode::None => Ok(()),
    }
}
