//! What people and programs see of a batch: pure models made from what it
//! publishes and what its files say, and the renderers of those models.
//!
//! Invariant: values in, values out. Nothing here reads a file, a clock or the
//! environment. Text of issues and agents is escaped by the renderer of lines.

pub mod columns;
pub mod diff;
pub mod figures;
#[cfg(test)]
mod fixture;
mod html;
pub mod live;
pub mod log;
pub mod metrics;
pub mod plan;
pub mod report;
pub mod service;
pub mod status;
pub mod telemetry;
pub mod web;
