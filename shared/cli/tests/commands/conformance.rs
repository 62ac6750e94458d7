//! The conformance suite.

use crate::scratch::{Scratch, ids};
use premath_kernel::failure::Family;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The suite of the repository.
const SUITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/conformance/harness-typestate"
);

/// Returns how many classes a suite must cover.
fn classes() -> usize {
    Family::Typestate.classes().count()
}

#[test]
fn the_suite_of_the_repository_passes_as_a_whole() {
    let scratch = Scratch::with("");
    let count = scratch.json(&["conformance", "run"])["count"].clone();
    let answer = scratch.run(&["conformance", "run"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    let expected = format!("{count} vectors, {} classes, 0 uncovered\n", classes());
    assert_eq!(answer.stdout, expected);
}

/// Returns a suite of the repository's base and one golden vector.
fn small_suite(scratch: &Scratch, patch: &Value) -> String {
    let folder = scratch.folder.join("suite");
    fs::create_dir_all(folder.join("bases")).unwrap();
    fs::create_dir_all(folder.join("golden")).unwrap();
    let base = Path::new(SUITE).join("bases/closed.json");
    fs::copy(base, folder.join("bases/closed.json")).unwrap();
    let says = "A turn\u{1b}.";
    let manifest = json!({
        "schema": 1,
        "manifestKind": "premath.conformance.manifest.v1",
        "vectors": [{"id": "golden/a", "says": says}]
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    let vector = json!({
        "schema": 1,
        "says": says,
        "document": {"base": "closed", "patch": patch},
        "expect": {}
    });
    fs::write(folder.join("golden/a.json"), vector.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Returns the last line about the small suite, which covers no class.
fn uncovered() -> String {
    let count = classes();
    format!("1 vectors, {count} classes, {count} uncovered\n")
}

#[test]
fn each_suite_is_run_by_its_name() {
    let scratch = Scratch::with("");
    for suite in ["golden", "adversarial", "invariance", "refusal"] {
        let document = scratch.json(&["conformance", "run", "--suite", suite]);
        assert_eq!(document["action"], "conformance.run");
        assert_eq!(document["source"], "embedded");
        assert_eq!(document["passed"], true);
        assert_eq!(document["classes"], classes());
        for id in ids(&document) {
            assert!(id.starts_with(&format!("{suite}/")), "{id}");
        }
        let own = scratch.json(&["conformance", "run", "--suite", suite, "--vectors", SUITE]);
        assert_eq!(own["items"], document["items"]);
    }
}

#[test]
fn a_vector_that_fails_is_shown_with_what_differs() {
    let scratch = Scratch::with("");
    let patch = json!([{"op": "remove", "path": "/evidence/toolUse/1"}]);
    let suite = small_suite(&scratch, &patch);
    let args = [
        "conformance",
        "run",
        "--vectors",
        &suite,
        "--suite",
        "golden",
    ];
    let answer = scratch.run(&args);
    assert_eq!((answer.code, answer.stderr.as_str()), (1, ""));
    let differing = "\
FAILED golden/a
  A turn\\u{1b}.
  failureClasses
    expected  none
    found     tool.join_incomplete, tool.use_missing

";
    let expected = format!("{differing}{}", uncovered());
    assert_eq!(answer.stdout, expected);
    let document = scratch.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(
        (&document["passed"], &document["failed"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(
        document["items"][0]["differences"][0]["what"],
        "failureClasses"
    );
}

#[test]
fn a_whole_run_asks_for_coverage_and_a_suite_alone_does_not() {
    let scratch = Scratch::with("");
    let suite = small_suite(&scratch, &json!([]));
    let run = ["conformance", "run", "--vectors", &suite];
    let alone = scratch.run(&[&run[..], &["--suite", "golden"]].concat());
    assert_eq!(
        (alone.code, alone.stdout.as_str()),
        (0, uncovered().as_str())
    );
    let whole = scratch.run(&run);
    assert_eq!(whole.code, 1);
    assert!(whole.stdout.contains("\nLACKS tool::result_missing: "));
    assert!(whole.stdout.ends_with(&format!("\n\n{}", uncovered())));
    fs::write(Path::new(&suite).join("golden/b.json"), "{}").unwrap();
    let stray = scratch.run(&[&run[..], &["--suite", "golden"]].concat());
    assert_eq!(stray.code, 1);
    assert!(
        stray.stdout.starts_with("FAULT golden/b.json: "),
        "{}",
        stray.stdout
    );
}

#[test]
fn a_folder_of_vectors_that_cannot_be_read_is_a_usage_error() {
    let scratch = Scratch::with("");
    let args = ["conformance", "run", "--vectors", "nowhere"];
    let answer = scratch.run(&args);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(answer.stderr.starts_with("error: cannot read nowhere: "));
    assert_eq!(
        scratch.run(&["conformance", "run", "--suite", "all"]).code,
        2
    );
}

#[test]
fn the_slices_are_listed_and_make_a_page() {
    let scratch = Scratch::with("");
    let listed = scratch.json(&["conformance", "slices"]);
    assert_eq!(listed["count"], 18);
    assert_eq!(listed["items"][17]["number"], 18);
    let text = scratch.run(&["conformance", "slices"]).stdout;
    assert_eq!(text.lines().count(), 19);
    let page = scratch.run(&["conformance", "slices", "--markdown"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    assert!(page.stdout.starts_with("# Slices of the typestate\n"));
    let document = scratch.json(&["conformance", "slices", "--markdown"]);
    assert_eq!(document["page"], page.stdout);
}
