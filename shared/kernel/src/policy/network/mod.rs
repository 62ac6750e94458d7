//! The network of commands as a policy: which hosts a command may reach, and
//! why one is refused.
//!
//! A connection is judged in two steps. [`NetworkPolicy::consider`] looks at
//! the host and the port before the name is resolved, so that a host that is
//! not listed causes no DNS query. [`Candidate::judge`] looks at the resolved
//! addresses and returns those that may be connected to. The caller connects to
//! one of these and resolves nothing again: a name that changes its address
//! in between (DNS rebinding) gains nothing.

mod address;
mod choice;
mod environment;
mod host;
mod pattern;
mod policy;
mod record;
mod registries;
#[cfg(test)]
mod tests;
mod word;

pub use address::AddressRange;
pub use choice::{NetworkChoice, NetworkUnenforced, choose, enforces};
pub use environment::variables;
pub use host::{Host, HostError, HostName, Target};
pub use pattern::{HostPattern, HostPatternError};
pub use policy::{
    Candidate, Denial, DenialReason, HostList, ListMissing, NetworkPhase, NetworkPolicy, Ports,
};
pub use record::{NetworkFacts, NetworkLedger, NetworkRecord, RecordId};

pub use word::{NetworkWord, UnknownNetwork};
