//! The verification surfaces as one program. `premath-check
//! docs|generated|hygiene|layers|licenses|pipeline` checks this checkout, or the one that
//! follows; `premath-check generate` writes everything that is derived;
//! `premath-check commands` prints the page of commands, and `premath-check
//! gate-table FILE` writes the page of what the gate refused, from a file of runs.

use premath_tests::gate_runs::Sighting;
use premath_tests::surface::help::Surface;
use premath_tests::surface::{
    Fault, docs, gate_table, generate, hygiene, layers, licenses, pipeline,
};
use premath_tests::workspace;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let root = std::env::args()
        .nth(2)
        .map_or_else(workspace, PathBuf::from);
    let mut out = std::io::stdout().lock();
    let faults: Vec<Fault> = match asked.as_str() {
        "docs" => docs::faults(&root, &Surface::of_the_binaries()),
        "generated" => generate::faults(&root, &generate::files(&root)),
        "hygiene" => hygiene::faults(&root),
        "layers" => layers::faults(&root),
        "licenses" => licenses::faults(&root, &licenses::metadata(&root)),
        "pipeline" => pipeline::faults(&root),
        "commands" => {
            let _ = out.write_all(Surface::of_the_binaries().page().as_bytes());
            return ExitCode::SUCCESS;
        }
        "gate-table" => return gate_table(&root),
        "generate" => {
            return match generate::write_all(&root) {
                Ok(changed) => {
                    for name in &changed {
                        let _ = writeln!(out, "wrote {name}");
                    }
                    let _ = writeln!(out, "generate: {} file(s) changed", changed.len());
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    let _ = writeln!(std::io::stderr(), "error: {error}");
                    ExitCode::FAILURE
                }
            };
        }
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "usage: premath-check docs|generated|hygiene|layers|licenses|pipeline|generate|commands [ROOT], or gate-table FILE"
            );
            return ExitCode::from(2);
        }
    };
    report(&mut out, &asked, &faults)
}

/// Writes the page of what the runs in a file showed, and deletes the file.
fn gate_table(file: &Path) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    let seen = text.lines().filter_map(Sighting::parse).collect();
    let (page, faults) = gate_table::page(&seen);
    if let Err(error) = std::fs::write(workspace().join(gate_table::PAGE), page) {
        let _ = writeln!(std::io::stderr(), "error: {}: {error}", gate_table::PAGE);
        return ExitCode::FAILURE;
    }
    // Another run begins with a new file.
    if let Err(error) = std::fs::remove_file(file) {
        let _ = writeln!(std::io::stderr(), "error: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    report(&mut out, "gate-table", &faults)
}

fn report(out: &mut impl Write, asked: &str, faults: &[Fault]) -> ExitCode {
    for fault in faults {
        let _ = writeln!(out, "{fault}");
    }
    let _ = writeln!(out, "{asked}: {} fault(s)", faults.len());
    match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
