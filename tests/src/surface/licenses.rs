//! `licenses-check`: every dependency may be used under a licence that
//! `deny.toml` allows.
//!
//! cargo-deny checks the same list, and more; it takes minutes to compile, so CI
//! has this.

use super::{Fault, text_of};
use crate::cargo;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::collections::BTreeSet;
use std::path::Path;

/// Where the allowed licences are listed.
const RULES: &str = "deny.toml";

/// Lists the packages of a checkout, those of other platforms left out.
///
/// # Panics
///
/// Where cargo does not list them.
pub fn metadata(root: &Path) -> Value {
    let listed = cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .expect("cargo starts");
    let stderr = String::from_utf8_lossy(&listed.stderr);
    serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("cargo metadata: {stderr}"))
}

/// Checks the dependencies of a checkout, as `cargo metadata` lists them.
pub fn faults(root: &Path, metadata: &Value) -> Vec<Fault> {
    let allowed = match allowed(&text_of(root, RULES)) {
        Ok(allowed) => allowed,
        Err(why) => return vec![Fault::at(RULES, 0, why)],
    };
    let packages = metadata["packages"].as_array();
    let Some(packages) = packages.filter(|packages| !packages.is_empty()) else {
        return vec![Fault::at("Cargo.toml", 0, "cargo lists no packages")];
    };
    let faults = packages.iter().filter_map(|package| {
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        let detail = refusal(text(package, "license"), &allowed)?;
        Some(Fault::at("Cargo.lock", 0, format!("{name}: {detail}")))
    });
    faults.collect()
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// Returns why a licence expression is refused.
fn refusal(license: &str, allowed: &BTreeSet<String>) -> Option<String> {
    let parsed = match Expression::parse_mode(license, ParseMode::LAX) {
        Ok(parsed) => parsed,
        Err(error) => return Some(format!("invalid licence `{license}`: {}", error.reason)),
    };
    let passes = parsed.evaluate(|requirement| {
        let id = requirement.license.id();
        id.is_some_and(|id| allowed.contains(id.name))
    });
    (!passes).then(|| format!("the licence `{license}` is not allowed in {RULES}"))
}

fn allowed(rules: &str) -> Result<BTreeSet<String>, String> {
    let rules: toml::Table = rules.parse().map_err(|error| format!("{error}"))?;
    let allow = rules.get("licenses").and_then(|table| table.get("allow"));
    let words = allow.and_then(toml::Value::as_array).into_iter().flatten();
    let words: BTreeSet<String> = words
        .filter_map(|w| w.as_str().map(str::to_owned))
        .collect();
    if words.is_empty() {
        return Err("`licenses.allow` lists no licence".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_licence_that_is_not_allowed_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let rules = "[licenses]\nallow = [\"MIT\", \"Unicode-3.0\"]\n";
        std::fs::write(folder.path().join(RULES), rules).unwrap();
        for (license, refused) in [
            ("MIT", false),
            ("MIT/Apache-2.0", false),
            ("GPL-3.0-only OR MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("MIT AND GPL-3.0-only", true),
            ("GPL-3.0-only", true),
            ("Nothing-1", true),
            ("", true),
        ] {
            let package = json!({"name": "x", "version": "1.0.0", "license": license});
            let metadata = json!({"packages": [package]});
            let found = faults(folder.path(), &metadata);
            assert_eq!(!found.is_empty(), refused, "{license}: {found:?}");
        }
        assert!(!faults(folder.path(), &json!({})).is_empty());
        std::fs::write(folder.path().join(RULES), "[licenses]\n").unwrap();
        assert_eq!(faults(folder.path(), &json!({})).len(), 1);
    }
}
