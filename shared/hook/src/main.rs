//! The binary `premath-hook`.

use std::process::ExitCode;

fn main() -> ExitCode {
    premath_hook::main(std::env::args_os().skip(1))
}
