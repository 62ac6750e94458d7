//! Part of `ci-hygiene-check`: a crate names every dependency that its manifest
//! has.

use super::{Fault, text_of};
use std::path::Path;

/// Checks the manifests among the files of a checkout.
pub(super) fn faults(root: &Path, names: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let manifests = names.iter().filter(|name| name.ends_with("Cargo.toml"));
    for manifest in manifests {
        let folder = manifest.strip_suffix("Cargo.toml").unwrap_or_default();
        let sources: Vec<String> = names
            .iter()
            .filter(|name| name.starts_with(folder) && name.ends_with(".rs"))
            .map(|name| text_of(root, name))
            .collect();
        for (line, name) in dependencies(&text_of(root, manifest)) {
            let word = name.replace('-', "_");
            if !sources.iter().any(|source| has_word(source, &word)) {
                let detail = format!("nothing uses the dependency `{name}`");
                faults.push(Fault::at(manifest, line, detail));
            }
        }
    }
    faults
}

/// Returns the dependencies of a crate with their lines; those that a workspace
/// offers to its crates are none.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_table = false;
    for (number, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            is_table = line.ends_with("dependencies]") && !line.starts_with("[workspace");
        } else if let Some((name, _)) = line.split_once(['.', ' ', '='])
            && is_table
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            found.push((number + 1, name));
        }
    }
    found
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let rest = text.get(at + word.len()..);
        let after = rest.and_then(|rest| rest.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}
