//! The manifest of the conformance suite, from its vectors.

use crate::surface::below;
use premath_conformance::{Files, Suite, manifest_of};
use std::path::Path;

/// The suite's folder.
const SUITE: &str = "tests/conformance/harness-typestate";

/// Returns the path of the manifest and its text.
pub(super) fn manifest(root: &Path) -> (String, String) {
    let folder = root.join(SUITE);
    let mut vectors = Files::new();
    for suite in Suite::ALL {
        for name in below(&folder, suite.as_str().into()) {
            let vector = std::fs::read(folder.join(&name)).expect("a vector can be read");
            vectors.insert(name, vector);
        }
    }
    let text = manifest_of(&vectors);
    let text = text.unwrap_or_else(|fault| panic!("{SUITE}/{}: {}", fault.at, fault.detail));
    (format!("{SUITE}/manifest.json"), text)
}
