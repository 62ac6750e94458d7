//! The `premath` binary.

use std::process::ExitCode;

/// Rows are many small texts; what the system's allocator takes for them is a
/// third of the time of a command on a large memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    premath_cli::main()
}
