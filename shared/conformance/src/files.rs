//! The files of a suite, and the folder of each kind.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The files of a suite: bytes by path, `/` between the parts of a path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The path of the manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// A page for people, which may be next to the manifest.
pub(super) const PAGE: &str = "README.md";

/// Returns the path of a vector.
pub(super) fn vector_path(id: &str) -> String {
    format!("{id}.json")
}

/// Returns the path of a base.
pub(super) fn base_path(name: &str) -> String {
    format!("bases/{name}.json")
}

/// Returns the bases of a suite, by name.
pub(super) fn bases(files: &Files) -> impl Iterator<Item = (&str, &[u8])> {
    files.iter().filter_map(|(path, bytes)| {
        let name = path.strip_prefix("bases/")?.strip_suffix(".json")?;
        Some((name, bytes.as_slice()))
    })
}

/// Reads a file of the suite; an unknown field is an error.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}
