//! The conformance suite: vectors that the gate is judged by.
//!
//! A suite is a folder of JSON files, here a map from path to bytes
//! ([`Files`]):
//!
//! | path | what it is |
//! |---|---|
//! | `manifest.json` | every vector by its id, sorted, as [`manifest_of`] writes it |
//! | `bases/<name>.json` | an input that is accepted and ready for a change |
//! | `golden/<id>.json` | a turn that must be accepted, with no class at all |
//! | `adversarial/<id>.json` | a turn with exactly one root class |
//! | `invariance/<id>.json` | two spellings of one turn |
//! | `refusal/<id>.json` | an input that cannot be read |
//!
//! A document is a base and a patch (RFC 6902), or the bytes of an input as a
//! text. [`run`] judges every vector and holds the suite itself to account:
//! each class of the typestate has a turn in which it is the only root class
//! and a near miss that is accepted, and each rule of the gate is broken by a
//! vector.

#![warn(clippy::too_many_lines)]

mod coverage;
mod difference;
mod document;
mod fault;
mod files;
mod judge;
mod manifest;
mod report;
mod runner;
mod slice;
mod suite;
mod vector;
mod verdict;

pub use difference::Difference;
pub use fault::{FaultKind, SuiteFault};
pub use files::Files;
pub use manifest::manifest_of;
pub use report::{SuiteReport, VectorOutcome};
pub use runner::{documents, run};
pub use slice::{SLICES, Slice, SliceRow, SliceVector, slices};
pub use suite::Suite;

#[cfg(test)]
mod tests;
