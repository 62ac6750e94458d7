//! The shipped suite: the gate judged by its vectors.

use crate::{Files, SuiteFault, SuiteReport, VectorOutcome, run};
use include_dir::{Dir, include_dir};
use std::fmt::Write;

static SUITE: Dir<'_> =
    include_dir!("$CARGO_MANIFEST_DIR/../../tests/conformance/harness-typestate");

fn gather(dir: &Dir<'_>, files: &mut Files) {
    for file in dir.files() {
        let path = file.path().to_str().unwrap().to_owned();
        files.insert(path, file.contents().to_vec());
    }
    dir.dirs().for_each(|dir| gather(dir, files));
}

fn shipped() -> SuiteReport {
    let mut files = Files::new();
    gather(&SUITE, &mut files);
    run(&files)
}

fn describe<'a>(
    outcomes: &[VectorOutcome],
    faults: impl Iterator<Item = &'a SuiteFault>,
) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        for difference in &outcome.differences {
            let _ = writeln!(text, "{}: {difference:?}", outcome.id);
        }
    }
    for fault in faults {
        let _ = writeln!(text, "{}: {}", fault.at, fault.detail);
    }
    text
}

#[test]
fn every_shipped_vector_passes() {
    let report = shipped();
    let faults = report.faults.iter().filter(|f| !f.kind.is_coverage());
    let text = describe(&report.outcomes, faults);
    assert!(text.is_empty(), "\n{text}");
    assert!(!report.outcomes.is_empty());
}

#[test]
fn the_shipped_suite_covers_every_class_rule_and_slice() {
    let report = shipped();
    let faults = report.faults.iter().filter(|f| f.kind.is_coverage());
    let text = describe(&[], faults);
    assert!(text.is_empty(), "\n{text}");
    assert!(report.uncovered.is_empty());
}
