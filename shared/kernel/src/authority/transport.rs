//! Lease actions that another program dispatches: names, digests, and the
//! payload as a request (`contracts.md` 9).

mod payload;

pub use payload::{DispatchRequest, Payload, PayloadError};

use crate::authority::operation;
use crate::json::canonical::sha256_hex;
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;

/// The kind of a dispatch's answer.
pub const DISPATCH_KIND: &str = "premath.transport_dispatch.v1";

/// The profile that the actions belong to.
pub const PROFILE_ID: &str = "transport.issue_lease.v1";

/// The row of morphisms that changes of leases are bound to.
pub(crate) const LEASE_MORPHISM_ROW: &str = "wm.control.lease.mutation";

/// The id of an action that there is not.
pub const UNKNOWN_ACTION_ID: &str = "transport.action.unknown";

/// An action that can be dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransportAction {
    /// Leases an issue.
    IssueClaim,
    /// Leases the next ready issue.
    IssueClaimNext,
    /// Moves a lease's expiry.
    IssueLeaseRenew,
    /// Releases a lease.
    IssueLeaseRelease,
    /// Reports the leases, and an issue where one is named.
    IssueLeaseState,
}

impl TransportAction {
    /// All actions.
    pub(crate) const ALL: &'static [Self] = &[
        Self::IssueClaim,
        Self::IssueClaimNext,
        Self::IssueLeaseRenew,
        Self::IssueLeaseRelease,
        Self::IssueLeaseState,
    ];

    /// Returns the action's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IssueClaim => "issue.claim",
            Self::IssueClaimNext => "issue.claim_next",
            Self::IssueLeaseRenew => "issue.lease_renew",
            Self::IssueLeaseRelease => "issue.lease_release",
            Self::IssueLeaseState => "issue.lease.state",
        }
    }

    /// Returns the action's id.
    pub const fn id(self) -> &'static str {
        match self {
            Self::IssueClaim => "transport.action.issue_claim",
            Self::IssueClaimNext => "transport.action.issue_claim_next",
            Self::IssueLeaseRenew => "transport.action.issue_lease_renew",
            Self::IssueLeaseRelease => "transport.action.issue_lease_release",
            Self::IssueLeaseState => "transport.action.issue_lease_state",
        }
    }

    /// Returns whether the action needs the MCP transport (`contracts.md` 4).
    pub const fn needs_mcp(self) -> bool {
        matches!(self, Self::IssueLeaseRenew | Self::IssueLeaseRelease)
    }

    /// Returns the operation that the action performs, with its route and world.
    pub fn world_binding(self) -> Option<WorldBinding> {
        let operation = operation::by_action(self.as_str())?;
        Some(WorldBinding {
            operation_id: operation.id,
            route_family_id: operation.route.id(),
            world_id: operation.world(),
            morphism_row_id: LEASE_MORPHISM_ROW,
        })
    }
}

/// The outcome of a lease action that went through dispatch, as it ends a
/// step's result class (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transported {
    /// The action was performed.
    Dispatched,
    /// Refused by the rules of issue memory.
    Rejected,
    /// Issue memory could not be used.
    Error,
}

impl Transported {
    /// Returns a result class with the outcome of the action.
    pub fn ends(self, result_class: &str) -> String {
        let end = match self {
            Self::Dispatched => "dispatched",
            Self::Rejected => "rejected",
            Self::Error => "error",
        };
        format!("{result_class}_transport_{end}")
    }
}

/// No action bears this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown action `{0}`; expected issue.claim, issue.claim_next, issue.lease_renew, \
    issue.lease_release or issue.lease.state"
)]
pub struct UnknownTransportAction(pub String);

impl FromStr for TransportAction {
    type Err = UnknownTransportAction;

    fn from_str(text: &str) -> Result<Self, UnknownTransportAction> {
        let found = Self::ALL.iter().copied().find(|a| a.as_str() == text);
        found.ok_or_else(|| UnknownTransportAction(text.to_owned()))
    }
}

/// What an action is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorldBinding {
    /// The operation.
    pub operation_id: &'static str,
    /// The family of routes of the operation.
    pub route_family_id: &'static str,
    /// The world that this is in.
    pub world_id: &'static str,
    /// The row of morphisms.
    pub morphism_row_id: &'static str,
}

/// Returns `ts1_` and the digest over profile, kind, action and action id,
/// each followed by a NUL byte.
pub fn semantic_digest(action: &str, action_id: &str) -> String {
    let parts = [PROFILE_ID, DISPATCH_KIND, action, action_id];
    let text: String = parts.iter().flat_map(|part| [*part, "\0"]).collect();
    format!("ts1_{}", sha256_hex(text.as_bytes()))
}

/// Returns the digest of a known action.
pub fn digest_of(action: TransportAction) -> String {
    semantic_digest(action.as_str(), action.id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn a_result_class_ends_in_the_outcome_of_its_action() {
        for (transported, expected) in [
            (Transported::Dispatched, "c_transport_dispatched"),
            (Transported::Rejected, "c_transport_rejected"),
            (Transported::Error, "c_transport_error"),
        ] {
            assert_eq!(transported.ends("c"), expected);
        }
    }

    #[test]
    fn the_digest_is_over_four_texts_with_a_nul_behind_each() {
        for action in TransportAction::ALL {
            let mut hash = Sha256::new();
            hash.update(b"transport.issue_lease.v1\0premath.transport_dispatch.v1\0");
            hash.update(action.as_str());
            hash.update(b"\0transport.action.");
            hash.update(action.as_str().replace('.', "_"));
            hash.update(b"\0");
            let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(digest_of(*action), format!("ts1_{hex}"));
        }
    }

    #[test]
    fn each_action_is_bound_to_its_operation_in_the_world_of_leases() {
        let operations = TransportAction::ALL.iter().map(|action| {
            let binding = action.world_binding().unwrap();
            assert_eq!(binding.route_family_id, "route.issue_claim_lease");
            assert_eq!(binding.world_id, "world.lease.v1");
            assert_eq!(binding.morphism_row_id, "wm.control.lease.mutation");
            assert_eq!(action.as_str().parse(), Ok(*action));
            binding.operation_id
        });
        assert_eq!(
            operations.collect::<Vec<_>>(),
            [
                "op/mcp.issue_claim",
                "op/transport.issue_claim_next",
                "op/mcp.issue_lease_renew",
                "op/mcp.issue_lease_release",
                "op/mcp.issue_lease_projection"
            ]
        );
        assert!("issue.close".parse::<TransportAction>().is_err());
    }
}
