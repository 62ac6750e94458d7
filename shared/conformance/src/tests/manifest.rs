//! Tests of the manifest that is made from vectors.

use super::small::{REFUSAL, Small};
use crate::{FaultKind, manifest_of};
use serde_json::{Value, json};

/// Makes the manifest again, and checks that the suite has no fault.
#[track_caller]
fn is_whole_with_made_manifest(mut suite: Small) {
    let text = manifest_of(&suite.files).unwrap();
    let name = "manifest.json".to_owned();
    suite.files.insert(name, text.into_bytes());
    assert_eq!(suite.faults(), []);
}

#[test]
fn the_vectors_give_the_manifest() {
    let mut suite = Small::new();
    let text = manifest_of(&suite.files).unwrap();
    let made: Value = serde_json::from_str(&text).unwrap();
    let there: Value = serde_json::from_slice(&suite.files["manifest.json"]).unwrap();
    assert_eq!(made, there);
    assert!(text.starts_with("{\n  \"schema\": 1,\n  \"manifestKind\": "));
    assert!(text.ends_with("}\n"));

    suite.edit_vector(REFUSAL, |vector| vector["says"] = json!("Another."));
    suite.fault(FaultKind::Manifest, REFUSAL);
    is_whole_with_made_manifest(suite);
}

#[test]
fn ids_are_sorted_although_paths_are_in_another_order() {
    let mut suite = Small::new();
    let vector = suite.files[&format!("{REFUSAL}.json")].clone();
    for name in ["status-b", "status"] {
        let path = format!("refusal/{name}.json");
        suite.files.insert(path, vector.clone());
    }
    is_whole_with_made_manifest(suite);
}

#[test]
fn a_vector_without_a_text_gives_no_manifest() {
    for (says, detail) in [
        (json!(null), "invalid type: null"),
        (json!(" "), "must be a text of one line"),
    ] {
        let mut suite = Small::new();
        suite.edit_vector(REFUSAL, |vector| vector["says"] = says);
        let fault = manifest_of(&suite.files).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreadable);
        assert_eq!(fault.at, format!("{REFUSAL}.json"));
        assert!(fault.detail.contains(detail), "{}", fault.detail);
    }
}
