//! The rules of leases (`contracts.md` 4, `storage.md`).
//!
//! Every rule is a pure function from a row, a request and an observation of
//! clocks and processes to a change of the row or a refusal with its class.
//! The store calls them inside its transaction.

mod claim;
mod key;
mod projection;
mod state;
mod term;

pub(crate) use claim::default_lease_id;
pub use claim::{AssigneeRule, Claim, ClaimRequest, TakenOverLease, claim, claimable};
pub use key::{LeaseKey, block, close, fence, release, renew, without_claim};
pub use projection::LeaseProjection;
pub use state::{LeaseState, state};
pub use term::{TTL_DEFAULT, TTL_MAX, TTL_MIN, TTL_RANGE, Term};

use crate::failure::FailureClass;
use crate::issue::Holder;
use crate::json::time::Moment;

/// What is known about a holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The process runs.
    Alive,
    /// It ran on this host and does not run any more.
    Dead,
    /// It cannot be seen from here.
    Unknown,
}

/// What the caller sees of clocks and processes; the rules see nothing else.
pub struct Observation<'a> {
    /// The clocks.
    pub moment: Moment,
    /// The id of this host's boot.
    pub boot_id: &'a str,
    /// Returns whether a holder's process runs.
    pub life: &'a dyn Fn(&Holder) -> Life,
}

/// A lease operation that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {detail}")]
pub struct LeaseRefusal {
    /// The failure class.
    pub class: FailureClass,
    /// Why it was refused, for display.
    pub detail: String,
}

fn refuse<T>(class: FailureClass, detail: impl Into<String>) -> Result<T, LeaseRefusal> {
    Err(LeaseRefusal {
        class,
        detail: detail.into(),
    })
}

#[cfg(test)]
mod tests;
