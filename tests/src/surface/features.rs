//! Features of `serde_json` that no dependency may enable: each changes how
//! every document is read, and two of them its digest.

use super::Fault;
use std::process::Output;

/// The features.
const REFUSED: [&str; 3] = ["preserve_order", "arbitrary_precision", "float_roundtrip"];

/// Checks what `cargo tree -e features -i serde_json --prefix none` prints.
pub fn faults(tree: &str) -> Vec<Fault> {
    let enabled = |feature: &&str| {
        let line = format!("serde_json feature \"{feature}\"");
        tree.lines().any(|found| found.starts_with(&line))
    };
    let detail = |feature| format!("a dependency enables the feature `{feature}` of serde_json");
    let refused = REFUSED.into_iter().filter(enabled);
    refused
        .map(|name| Fault::at("Cargo.lock", 0, detail(name)))
        .collect()
}

/// Returns the features of `serde_json` that the workspace builds with.
///
/// # Panics
///
/// Where cargo does not start.
pub fn tree() -> Output {
    crate::cargo()
        .args(["tree", "--workspace", "--offline", "--locked"])
        .args(["-e", "features", "-i", "serde_json", "--prefix", "none"])
        .current_dir(crate::workspace())
        .output()
        .expect("cargo starts")
}
