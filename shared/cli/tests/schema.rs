//! `premath schema`, run as its callers run it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn premath(folder: &Path, args: &[&str]) -> Output {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    command.args(args).current_dir(folder).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The file that the others refer to for the list of failure classes.
const FAILURE_CLASS: &str = "failure-class.schema.json";

#[test]
fn the_shipped_schemas_are_those_of_the_code() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas");
    let check = premath(Path::new("."), &["schema", "--check", shipped]);
    let said = String::from_utf8_lossy(&check.stdout);
    assert_eq!(check.status.code(), Some(0), "{said}");
}

#[test]
fn every_kind_that_is_listed_is_shown_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let listed = json(&premath(folder.path(), &["schema", "--json"]));
    assert_eq!(listed["action"], "schema.list");
    let kinds = listed["items"].as_array().unwrap();
    assert_eq!(listed["count"], kinds.len());
    let written = json(&premath(
        folder.path(),
        &["schema", "--dir", "all", "--json"],
    ));
    assert_eq!(written["count"], kinds.len());
    for kind in kinds {
        let [name, file] = ["kind", "file"].map(|field| kind[field].as_str().unwrap());
        let file = fs::read(folder.path().join("all").join(file)).unwrap();
        assert_eq!(file.last(), Some(&b'\n'));
        let written: Value = serde_json::from_slice(&file).unwrap();
        // What is shown is complete in itself; a file may refer to another one.
        let shown: Value =
            serde_json::from_slice(&premath(folder.path(), &["schema", name]).stdout).unwrap();
        let reference = format!("\"$ref\":\"{FAILURE_CLASS}\"");
        assert!(!shown.to_string().contains(&reference), "{name}");
        if !written.to_string().contains(&reference) {
            assert_eq!(shown, written, "{name}");
        }
        let answer = json(&premath(folder.path(), &["schema", name, "--json"]));
        assert_eq!(answer["schema"], shown, "{name}");
        for schema in [&shown, &written] {
            assert_eq!(schema["title"], kind["title"]);
            assert_eq!(
                schema["$schema"],
                "https://json-schema.org/draft/2020-12/schema"
            );
        }
    }
    let unknown = premath(folder.path(), &["schema", "isue"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("'issue'"));
}

#[test]
fn a_check_names_each_file_that_differs_is_missing_or_is_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    premath(dir, &["schema", "--dir", "."]);
    fs::write(dir.join("readme.txt"), "no schema").unwrap();
    let check = || premath(dir, &["schema", "--check", ".", "--json"]);
    assert_eq!(json(&check())["result"], "accepted");
    assert_eq!(check().status.code(), Some(0));

    fs::write(dir.join("issue.schema.json"), "{}\n").unwrap();
    fs::remove_file(dir.join("session.schema.json")).unwrap();
    fs::write(dir.join("older.schema.json"), "{}\n").unwrap();
    let failed = check();
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        json(&failed)["errors"],
        json!([
            {"file": "issue.schema.json", "fault": "differs"},
            {"file": "session.schema.json", "fault": "missing"},
            {"file": "older.schema.json", "fault": "unknown"},
        ])
    );
    let nowhere = premath(dir, &["schema", "--check", "nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2));
}
