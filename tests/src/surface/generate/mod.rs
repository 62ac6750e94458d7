//! Everything that is derived from the code and committed: `premath-check
//! generate` writes it, `premath-check generated` fails where it is stale.

mod agents;
mod configuration;
mod environment;
mod exit_codes;
mod schemas;
mod suite;

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
/// Where a binary cannot be run, or a vector of the conformance suite cannot be
/// read.
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
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().to_str().expect("its path is UTF-8");
    premath(&["schema", "--dir", path]);
    for kind in &kinds {
        let schema = text_of(folder.path(), &kind.file);
        files.insert(format!("shared/schemas/{}", kind.file), schema);
    }
    files.extend(sources(root));
    files
}

/// Makes the generated files that the binaries are built from.
fn sources(root: &Path) -> Files {
    Files::from([suite::manifest(root)])
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

/// Writes every generated file, and returns the names of those that changed.
///
/// What the binaries are built from is written first, for the other files come
/// from the binaries.
///
/// # Errors
///
/// Where a file cannot be written.
///
/// # Panics
///
/// As [`files`].
pub fn write_all(root: &Path) -> io::Result<Vec<String>> {
    let mut changed = write(root, &sources(root))?;
    changed.extend(write(root, &files(root))?);
    Ok(changed)
}

/// Writes generated files, and returns the names of those that changed.
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
