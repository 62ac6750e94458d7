//! The `premath` binary, run as its callers run it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

#[path = "../answer/mod.rs"]
mod answer;
mod classes;
mod conformance;
mod editing;
mod evidence;
mod filing;
mod importing;
mod issue;
mod policy;
mod projection;
mod scratch;
mod statuses;
mod terminal;
