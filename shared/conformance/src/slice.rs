//! The slices of the typestate, and where each is built and tried
//! (`TOOL-CALLING-HARNESS-TYPESTATE 8`).

use super::report::SuiteReport;
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{RuleNote, notes};
use serde::Serialize;
use std::collections::BTreeSet;

/// A slice of the typestate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Its number in the document.
    pub number: u8,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What carries it beside rules of the gate: files and commands.
    pub places: &'static [&'static str],
}

/// All slices.
pub const SLICES: &[Slice] = &[
    slice(
        1,
        "A turn's rows as typed states",
        &[
            "shared/kernel/src/turn/chain.rs",
            "shared/kernel/src/turn/evidence/mod.rs",
            "shared/kernel/src/record/trajectory/row.rs",
            "worker/src/witness.rs",
        ],
    ),
    slice(
        2,
        "The join check as a command",
        &[
            "premath harness-join-check",
            "shared/kernel/src/turn/join_check.rs",
            "shared/cli/src/join_check/mod.rs",
        ],
    ),
    slice(
        3,
        "The gate before a change of issues",
        &[
            "shared/kernel/src/turn/mutation.rs",
            "shared/memory/src/issues/change.rs",
            "worker/src/step/turn.rs",
        ],
    ),
    slice(4, "Closure in each action mode", &[]),
    slice(5, "Tools that are discovered", &[]),
    slice(6, "Calls made by code", &[]),
    slice(7, "Stop policy and checkpoints", &[]),
    slice(8, "Autonomy by measured need", &[]),
    slice(9, "Evaluation on the own workload", &[]),
    slice(10, "Order and truncation in transport", &[]),
    slice(11, "The boundary of shell commands", &[]),
    slice(12, "Continuity by handoff or compaction", &[]),
    slice(13, "Guardrails in stages", &[]),
    slice(14, "Where a policy comes from", &[]),
    slice(15, "Gates before a policy changes", &[]),
    slice(16, "Observability and retention", &[]),
    slice(17, "The contract of a handoff", &[]),
    slice(18, "The scope of a role", &[]),
];

const fn slice(number: u8, title: &'static str, places: &'static [&'static str]) -> Slice {
    Slice {
        number,
        title,
        places,
    }
}

/// A slice with what it is built of and tried by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SliceRow {
    /// The slice.
    #[serde(flatten)]
    pub slice: Slice,
    /// The rules of the gate that belong to it, in the order of the table.
    pub rules: Vec<RuleNote>,
    /// The vectors that belong to it, by id.
    pub vectors: Vec<SliceVector>,
}

impl SliceRow {
    /// Returns the classes of its rules.
    pub fn classes(&self) -> BTreeSet<FailureClass> {
        self.rules.iter().map(|note| note.class).collect()
    }
}

/// A vector as a slice names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceVector {
    /// The vector's id.
    pub id: String,
    /// The description of the vector.
    pub says: String,
    /// The only root class, where it expects one.
    pub root: Option<FailureClass>,
}

/// Returns every slice with its rules and the vectors of a report.
pub fn slices(report: &SuiteReport) -> Vec<SliceRow> {
    let notes = notes();
    SLICES
        .iter()
        .map(|slice| SliceRow {
            slice: *slice,
            rules: notes
                .iter()
                .filter(|note| note.slices.contains(&slice.number))
                .cloned()
                .collect(),
            vectors: report
                .outcomes
                .iter()
                .filter(|outcome| outcome.slices.contains(&slice.number))
                .map(|outcome| SliceVector {
                    id: outcome.id.clone(),
                    says: outcome.says.clone(),
                    root: outcome.root,
                })
                .collect(),
        })
        .collect()
}
