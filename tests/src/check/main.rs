//! The verification surfaces as one program: `premath-check
//! docs|hygiene|layers|pipeline` judges this checkout, or the one that follows; `premath-check commands` prints the page of commands.

use premath_tests::surface::help::Surface;
use premath_tests::surface::{Fault, docs, hygiene, layers, pipeline};
use premath_tests::workspace;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let root = std::env::args()
        .nth(2)
        .map_or_else(workspace, PathBuf::from);
    let mut out = std::io::stdout().lock();
    let faults: Vec<Fault> = match asked.as_str() {
        "docs" => docs::faults(&root, &Surface::of_the_binaries()),
        "hygiene" => hygiene::faults(&root),
        "layers" => layers::faults(&root),
        "pipeline" => pipeline::faults(&root),
        "commands" => {
            let _ = out.write_all(Surface::of_the_binaries().page().as_bytes());
            return ExitCode::SUCCESS;
        }
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "usage: premath-check docs|hygiene|layers|pipeline [ROOT] | commands"
            );
            return ExitCode::from(2);
        }
    };
    for fault in &faults {
        let _ = writeln!(out, "{fault}");
    }
    let _ = writeln!(out, "{asked}: {} fault(s)", faults.len());
    match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
