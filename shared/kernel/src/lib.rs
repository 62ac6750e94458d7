//! The pure core of Premath Harness.
//!
//! Everything that decides is here: issues and their graph, lease rules, the
//! turn chain and its gate, policies, digests, projections.
//!
//! The modules form layers. A layer imports only layers above it in this list:
//!
//! | layer | content |
//! |---|---|
//! | [`json`] | canonical writer, strict reading, references, timestamps |
//! | [`failure`] | every failure class |
//! | [`issue`] | rows, graph, leases, handoff, dispatch, outbox |
//! | [`authority`] | modes, claims, instructions, operations, transport actions |
//! | [`turn`] | evidence, its normal form, the gate, the chain of types |
//! | [`policy`] | retry, supervision, confinement, landing |
//! | [`record`] | trajectory, session, features, witnesses, worlds, events |
//!
//! `premath-check layers` refuses any other import.
//!
//! Invariant: no clock, file, process, thread or environment. Time is an
//! argument.

#![warn(clippy::too_many_lines)]

pub mod authority;
pub mod failure;
pub mod issue;
pub mod json;
pub mod policy;
pub mod record;
pub mod turn;
