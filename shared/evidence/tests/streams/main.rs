//! The agents' streams: what is read of them, and what is refused.
//!
//! The four `.jsonl` files are written by hand, in the form in which each
//! agent prints; every test begins with one of them or says its lines itself.

#![expect(clippy::unwrap_used, reason = "a test fails at its line")]

#[path = "../case/mod.rs"]
mod case;
mod claude;
mod faults;
mod folds;
mod judge;
mod pieces;
mod plant;
mod recorded;
mod rounds;
mod traps;
