//! Vectors, faults and slices as a person reads them in a terminal.

use crate::terminal::{plain, table, wrapped};
use premath_conformance::{FaultKind, SliceRow, SuiteFault, SuiteReport, VectorOutcome};
use std::fmt::Write;

/// Returns what failed, and at last what there is.
pub(super) fn report(report: &SuiteReport) -> String {
    let failed = report.outcomes.iter().filter(|outcome| !outcome.passed());
    let mut text: String = failed.map(vector).collect();
    if !text.is_empty() && !report.faults.is_empty() {
        text.push('\n');
    }
    text.extend(report.faults.iter().map(fault));
    if !text.is_empty() {
        text.push('\n');
    }
    let classes = report.covered.len() + report.uncovered.len();
    let _ = writeln!(
        text,
        "{} vectors, {classes} classes, {} uncovered",
        report.outcomes.len(),
        report.uncovered.len()
    );
    text
}

fn vector(outcome: &VectorOutcome) -> String {
    let mut text = format!("FAILED {}\n", plain(&outcome.id));
    text.push_str(&wrapped(&outcome.says, 2));
    for difference in &outcome.differences {
        let _ = writeln!(
            text,
            "  {}\n    expected  {}\n    found     {}",
            plain(&difference.what),
            plain(&difference.expected),
            plain(&difference.found)
        );
    }
    text
}

fn fault(fault: &SuiteFault) -> String {
    format!(
        "{} {}: {}\n",
        heading(fault.kind),
        plain(&fault.at),
        plain(&fault.detail)
    )
}

const fn heading(kind: FaultKind) -> &'static str {
    if kind.is_coverage() { "LACKS" } else { "FAULT" }
}

/// Returns the slices, one a line, with their outcomes.
pub(super) fn slices(rows: &[SliceRow]) -> String {
    let lines: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            [
                row.slice.number.to_string(),
                row.rules.len().to_string(),
                row.classes().len().to_string(),
                row.vectors.len().to_string(),
                row.slice.title.to_owned(),
            ]
        })
        .collect();
    table(["SLICE", "RULES", "CLASSES", "VECTORS", "ABOUT"], &lines)
}
