//! The boundary between two worlds (HARNESS-RUNTIME 1.2).
//!
//! ```text
//!  turn witness, row ── WorkContext::compute ──▶ WorkContext    the harness
//!                                                   │ carry(transport, from, to) ──▶ NotCarried
//!                                                Carried        the transport, and its witness
//!                                                   │ judge(gate)
//!                                                Judged         the destination's own gate, and its witness
//!                                                   │
//!                                                Crossing       what the harness records
//! ```
//!
//! Where a step itself works in another world, [`WorldSelection`] is what its issue asks
//! for, [`may_be_placed`] what is looked at before any work is done, and
//! [`WorldRecord`](crate::record::trajectory::WorldRecord) what its row says.
//!
//! Each state has one way in, from the state before it, which is used up. So
//! nothing is judged that was not carried, and nothing is carried whose
//! context was not computed. A transport that fails never comes to a gate: its
//! classes are of the transport, and a verdict's are of the gate.

mod carry;
mod context;
mod judge;
mod profile;
mod selection;
mod transport;

pub use carry::{Carried, NotCarried, TransportOutcome, TransportWitness, may_be_placed};
pub use context::{WorkContext, WorkContextError};
pub use judge::{Crossing, DestinationGate, GateWitness, Judged};
pub use profile::{AcceptedWorld, Demand, WORLD_FILE, WorldError, WorldProfile};
pub use selection::WorldSelection;
pub use transport::{Transport, cross};

#[cfg(test)]
mod tests;
