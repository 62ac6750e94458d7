//! References: what witnesses, sessions and rows name each other by
//! (`contracts.md` 5).
//!
//! An id in a reference is spelled by [`token::encode`](crate::json::token::encode),
//! the digest part is over the ids as they are. A missing text digests as
//! `""`; paths are absolute, which the caller sees to.

use crate::json::canonical::ref_digest;
use crate::json::id::{IssueId, SessionId, StepId, WorkerName};
use crate::json::token::encode;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;

/// The witness prefix where none is configured.
pub const DEFAULT_WITNESS_PREFIX: &str = "worker://loop";

/// What a stop or handoff witness reports about the lease that it found.
///
/// Which id and owner go in is decided by the handoff table
/// (`contracts.md` 5): the claimed ones after success, the row's otherwise,
/// `""` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseHandoff<'a> {
    /// The issue's assignee; closing keeps it.
    pub assignee: &'a str,
    /// The issue.
    pub issue_id: &'a IssueId,
    /// What is done about the lease, as in `issue_lease_renew`.
    pub lease_action: &'a str,
    /// The lease's id.
    pub lease_id: &'a str,
    /// The lease's owner.
    pub lease_owner: &'a str,
    /// The state that issue memory showed, as in `released`.
    pub lease_state: &'a str,
    /// The issue's status.
    pub status: &'a str,
    /// The worker that stops.
    pub worker_id: &'a WorkerName,
}

/// Returns `lease://handoff/<issue>/<lease-state>/<digest>` (HARNESS-RUNTIME 6).
pub fn lease_handoff(handoff: &LeaseHandoff<'_>) -> String {
    format!(
        "lease://handoff/{}/{}/{}",
        encode(handoff.issue_id),
        encode(handoff.lease_state),
        ref_digest(handoff)
    )
}

/// Returns `transport://dispatch/<action>/<semantic digest>`.
pub fn transport_dispatch(action: &str, semantic_digest: &str) -> String {
    format!(
        "transport://dispatch/{}/{}",
        encode(action),
        encode(semantic_digest)
    )
}

/// How a step's work ended, as its witness names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The issue was closed.
    Completed,
    /// The work did not complete.
    Failed,
}

impl WorkOutcome {
    /// Returns the last part of the reference.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// Returns `<witness prefix>/<worker>/<issue>/<completed|failed>`.
///
/// A blank prefix reads as [`DEFAULT_WITNESS_PREFIX`].
pub fn work_witness(
    prefix: &str,
    worker_id: &WorkerName,
    issue_id: &IssueId,
    outcome: WorkOutcome,
) -> String {
    let prefix = match prefix.trim() {
        "" => DEFAULT_WITNESS_PREFIX,
        given => given,
    };
    format!(
        "{prefix}/{}/{}/{}",
        encode(worker_id),
        encode(issue_id),
        outcome.as_str()
    )
}

/// Returns `instruction://<id>/<digest>`: the envelope that changes rest on.
pub(crate) fn instruction(id: &str, digest: &str) -> String {
    format!("instruction://{}/{}", encode(id), encode(digest))
}

/// Returns `session://<id>`: the linkage of a turn to its session.
pub fn session(session_id: &SessionId) -> String {
    format!("session://{}", encode(session_id))
}

/// Returns `trajectory://step/<stepId>`: the linkage of a turn to its row.
pub(crate) fn trajectory_step(step_id: &StepId) -> String {
    format!("trajectory://step/{}", encode(step_id))
}

/// References as a set: trimmed, sorted, without duplicates, none empty
/// (HARNESS-RUNTIME 4).
///
/// Reads and writes as a JSON list of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RefSet(BTreeSet<String>);

impl RefSet {
    /// Returns the empty set.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Adds a reference; returns whether it is new. A blank one is dropped.
    pub fn insert(&mut self, reference: impl AsRef<str>) -> bool {
        let trimmed = reference.as_ref().trim();
        !trimmed.is_empty() && self.0.insert(trimmed.to_owned())
    }

    /// Returns whether the reference, once trimmed, is in the set.
    pub fn contains(&self, reference: &str) -> bool {
        self.0.contains(reference.trim())
    }

    /// Returns whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many references there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the references in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<S: AsRef<str>> Extend<S> for RefSet {
    fn extend<I: IntoIterator<Item = S>>(&mut self, references: I) {
        for reference in references {
            self.insert(reference);
        }
    }
}

impl<S: AsRef<str>> FromIterator<S> for RefSet {
    fn from_iter<I: IntoIterator<Item = S>>(references: I) -> Self {
        let mut set = Self::new();
        set.extend(references);
        set
    }
}

impl<'a> IntoIterator for &'a RefSet {
    type Item = &'a String;
    type IntoIter = std::collections::btree_set::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'de> Deserialize<'de> for RefSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::sha256_hex;
    use proptest::prelude::*;

    #[test]
    fn each_digest_is_over_exactly_the_keys_of_the_contract() {
        let handoff = LeaseHandoff {
            assignee: "worker.1",
            issue_id: &"bd-1".into(),
            lease_action: "release_closed",
            lease_id: "lease1_bd-1_worker_1",
            lease_owner: "worker.1",
            lease_state: "released",
            status: "closed",
            worker_id: &"worker.1".into(),
        };
        let table = [(
            lease_handoff(&handoff),
            "lease://handoff/bd-1/released/",
            r#"{"assignee":"worker.1","issueId":"bd-1","leaseAction":"release_closed","leaseId":"lease1_bd-1_worker_1","leaseOwner":"worker.1","leaseState":"released","status":"closed","workerId":"worker.1"}"#,
        )];
        for (found, prefix, content) in table {
            assert_eq!(found, format!("{prefix}{}", sha256_hex(content.as_bytes())));
        }
    }

    #[test]
    fn plain_references_are_their_parts() {
        let table = [
            (
                work_witness(
                    " ",
                    &"worker.1".into(),
                    &"bd-1".into(),
                    WorkOutcome::Completed,
                ),
                "worker://loop/worker.1/bd-1/completed",
            ),
            (
                work_witness("ci://x", &"w".into(), &"a/b".into(), WorkOutcome::Failed),
                "ci://x/w/a%2Fb/failed",
            ),
            (
                session(&"hs1_20260305T100000Z".into()),
                "session://hs1_20260305T100000Z",
            ),
            (
                trajectory_step(&"w.1.bd-1.2".into()),
                "trajectory://step/w.1.bd-1.2",
            ),
            (
                transport_dispatch("issue.lease_renew", "ts1_ab"),
                "transport://dispatch/issue.lease_renew/ts1_ab",
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }

    proptest! {
        #[test]
        fn order_duplicates_and_white_space_never_matter(
            refs in proptest::collection::vec("[ a-c]{0,3}", 0..8)
        ) {
            let set: RefSet = refs.iter().collect();
            let other: RefSet = refs
                .iter()
                .rev()
                .chain(&refs)
                .map(|r| format!(" {r}\t"))
                .collect();
            prop_assert_eq!(&set, &other);
            let again: RefSet = set.iter().collect();
            prop_assert_eq!(&set, &again);
            let text = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(set, serde_json::from_str::<RefSet>(&text).unwrap());
        }
    }
}
