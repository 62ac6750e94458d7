//! Everything that is derived from the code and committed: `premath-check
//! generate` writes it, `premath-check generated` fails where it is stale.

mod agents;
mod configuration;
mod environment;
mod exit_codes;
mod schemas;

use super::help::Surface;
use super::{Fault, text_of};
use crate::{binaries, command};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The generated files of a checkout, by their path from its root.
pub type Files = BTreeMap<String, String>;

/// Makes every generated file.
///
/// # Panics
///
/// Where a binary cannot be run.
pub fn files(root: &Path) -> Files {
    let premath = |words: &[&str]| {
        let output = command(&binaries().premath).args(words).output();
        let output = output.expect("premath can be started");
        assert!(output.status.success(), "premath {words:?} fails");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut files = Files::new();
    let mut page = |name: &str, text: String| files.insert(format!("docs/reference/{name}"), text);
    page("commands.md", Surface::of_the_binaries().page());
    page("classes.md", premath(&["classes", "--markdown"]));
    page(
        "slices.md",
        premath(&["conformance", "slices", "--markdown"]),
    );
    let template = harness_worker::settings::template();
    page("configuration.md", configuration::page(&template));
    page("agents.md", agents::page());
    page("environment.md", environment::page(root));
    page("exit-codes.md", exit_codes::page(root));
    let kinds = schemas::kinds(&premath(&["schema", "--json"]));
    page("schemas.md", schemas::page(&kinds));
    files.insert(super::docs::TEMPLATE.to_owned(), template);
    for kind in &kinds {
        let name = format!("shared/schemas/{}", kind.file);
        files.insert(name, premath(&["schema", &kind.kind]));
    }
    files
}

/// Finds the generated files of a checkout that are stale.
pub fn faults(root: &Path, files: &Files) -> Vec<Fault> {
    let stale = |(name, text): (&String, &String)| {
        (text_of(root, name) != *text)
            .then(|| Fault::at(name, 0, "stale; `mise run generate` writes it"))
    };
    let mut faults: Vec<Fault> = files.iter().filter_map(stale).collect();
    faults.extend(environment::faults(root));
    faults
}

/// Writes the generated files, and returns the names of those that changed.
///
/// # Errors
///
/// Where a file cannot be written.
pub fn write(root: &Path, files: &Files) -> io::Result<Vec<String>> {
    let mut changed = Vec::new();
    for (name, text) in files {
        if text_of(root, name) != *text {
            std::fs::write(root.join(name), text)?;
            changed.push(name.clone());
        }
    }
    Ok(changed)
}

/// Makes a text a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
