//! The pure core of Premath Harness.
//!
//! Everything that decides is here: issues and their graph, lease rules, the
//! turn chain and its gate, policies, digests, projections.
//!
//! Invariant: no clock, file, process, thread or environment. Time is an
//! argument.

pub mod audit;
pub mod authority;
pub mod bootstrap;
pub mod breaker;
pub mod budget;
pub mod canonical;
pub mod claim;
pub mod conformance;
pub mod deadline;
pub mod dispatch;
pub mod doctrine;
pub mod escalation;
pub mod event;
pub mod failure;
pub mod feature;
pub mod field;
pub mod governing;
pub mod graph;
pub mod handoff;
pub mod instruction;
pub mod inventory;
pub mod issue;
pub mod landing;
pub mod lease;
pub mod network;
pub mod operation;
pub mod outbox;
pub mod outset;
pub mod plain;
pub mod provider;
pub mod reference;
pub mod retry;
pub mod room;
pub mod sandbox;
pub mod sandbox_profile;
pub mod schema;
pub mod session;
pub mod silence;
pub mod size;
pub mod stamp;
mod strict;
pub mod time;
pub mod token;
pub mod trailers;
pub mod trajectory;
pub mod transport;
pub mod trust;
pub mod turn;
pub mod witness;
pub mod world;
