//! How a command is confined: by namespaces, with the system of the machine or
//! of an image, or by Landlock; and the temporary folder that is its own.

mod filter;
pub mod image;
pub mod landlock;
pub mod namespaces;
pub mod scratch;

use premath_kernel::policy::sandbox::SandboxMode;
use rustix::process::{Resource, Rlimit, getrlimit};

/// With this bound no core is written, and no handler of the machine's is started
/// for one, which 0 does not keep it from (core(5)); see `do_coredump` of the kernel.
const NO_CORE: u64 = 1;

/// Returns the limits by which a crash leaves no core and starts no handler. The
/// hard limit is not raised.
pub(super) fn no_core() -> Rlimit {
    let most = getrlimit(Resource::Core).maximum;
    let bound = Some(most.map_or(NO_CORE, |most| most.min(NO_CORE)));
    Rlimit {
        current: bound,
        maximum: bound,
    }
}

/// Tries whether a way of confining works here; returns why not.
///
/// # Errors
///
/// The reason, in a few words.
pub fn works(mode: SandboxMode) -> Result<(), String> {
    match mode {
        SandboxMode::Landlock => landlock::works(),
        // Its image is a matter of the settings.
        SandboxMode::Namespaces | SandboxMode::Container => namespaces::works(),
        SandboxMode::None => Ok(()),
    }
}
