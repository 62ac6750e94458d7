//! How a command is confined: by namespaces or by Landlock, and the temporary
//! folder that is its own.

mod filter;
pub mod landlock;
pub mod namespaces;
pub mod scratch;

use premath_kernel::policy::sandbox::SandboxMode;

/// Tries whether a way of confining works here; says what is in its way.
///
/// # Errors
///
/// What is in its way, in a few words.
pub fn works(mode: SandboxMode) -> Result<(), String> {
    match mode {
        SandboxMode::Landlock => landlock::works(),
        SandboxMode::Namespaces => namespaces::works(),
        SandboxMode::None => Ok(()),
    }
}
