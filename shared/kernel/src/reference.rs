//! References: what witnesses, sessions and rows name each other by
//! (`contracts.md` 5).
//!
//! An id in a reference is spelled by [`token::encode`](crate::token::encode),
//! the digest part is over the ids as they are. A missing text digests as
//! `""`; paths are absolute, which the caller sees to.

use crate::authority::MutationMode;
use crate::canonical::ref_digest;
use crate::token::encode;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

/// The witness prefix where none is configured.
pub const DEFAULT_WITNESS_PREFIX: &str = "worker://loop";

/// What a stop or handoff witness says of the lease that it found.
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
    pub issue_id: &'a str,
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
    pub worker_id: &'a str,
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

/// Returns `policy://worker-lane/<mode>/<digest>`: what a step's changes rest on.
///
/// `step_index` counts from 1 in a run.
pub fn worker_lane_policy(
    mode: &MutationMode,
    worker_id: &str,
    issue_id: &str,
    step_index: u64,
) -> String {
    let digest = ref_digest(&json!({
        "mode": mode.name(),
        "reason": mode.reason(),
        "activeEpoch": mode.active_epoch(),
        "supportUntil": mode.support_until(),
        "workerId": worker_id,
        "issueId": issue_id,
        "stepIndex": step_index,
    }));
    format!("policy://worker-lane/{}/{digest}", mode.name())
}

/// Returns `ctx://issue/<issue>/<digest>`: the context that a step works in.
pub fn issue_context(issue_id: &str, repo_root: &str, issues_path: &str) -> String {
    let digest = ref_digest(&json!({
        "kind": "ctx",
        "issueId": issue_id,
        "repoRoot": repo_root,
        "issuesPath": issues_path,
    }));
    format!("ctx://issue/{}/{digest}", encode(issue_id))
}

/// Returns `cover://worker-loop/<issue>/<digest>`: the pool that covers a context.
pub fn worker_loop_cover(issue_id: &str, context_ref: &str) -> String {
    let digest = ref_digest(&json!({
        "kind": "cover",
        "ctxRef": context_ref,
        "workerPool": "harness.multithread.v1",
    }));
    format!("cover://worker-loop/{}/{digest}", encode(issue_id))
}

/// Returns `refinement://worker-loop/<issue>/<worker>/<digest>`: one worker's
/// part of a cover.
pub fn worker_loop_refinement(
    issue_id: &str,
    worker_id: &str,
    cover_ref: &str,
    worktree: &str,
    mode: &MutationMode,
) -> String {
    let digest = ref_digest(&json!({
        "kind": "refinement",
        "coverRef": cover_ref,
        "workerId": worker_id,
        "worktree": worktree,
        "mutationMode": mode.name(),
        "activeEpoch": mode.active_epoch(),
        "supportUntil": mode.support_until(),
    }));
    format!(
        "refinement://worker-loop/{}/{}/{digest}",
        encode(issue_id),
        encode(worker_id)
    )
}

/// Returns a step's site lineage, context, cover and refinement, as one set
/// (HARNESS-RUNTIME 6).
pub fn site_lineage(
    issue_id: &str,
    worker_id: &str,
    repo_root: &str,
    issues_path: &str,
    worktree: &str,
    mode: &MutationMode,
) -> RefSet {
    let context = issue_context(issue_id, repo_root, issues_path);
    let cover = worker_loop_cover(issue_id, &context);
    let refinement = worker_loop_refinement(issue_id, worker_id, &cover, worktree, mode);
    [context, cover, refinement].into_iter().collect()
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
    /// Anything else.
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
pub fn work_witness(prefix: &str, worker_id: &str, issue_id: &str, outcome: WorkOutcome) -> String {
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
pub fn instruction(id: &str, digest: &str) -> String {
    format!("instruction://{}/{}", encode(id), encode(digest))
}

/// Returns `session://<id>`: the linkage of a turn to its session.
pub fn session(session_id: &str) -> String {
    format!("session://{}", encode(session_id))
}

/// Returns `trajectory://step/<stepId>`: the linkage of a turn to its row.
pub fn trajectory_step(step_id: &str) -> String {
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
    use crate::canonical::sha256_hex;
    use proptest::prelude::*;

    fn mode() -> MutationMode {
        let now = "2026-03-05T10:00:00Z".parse().unwrap();
        MutationMode::human_override("night run", None, now).unwrap()
    }

    #[test]
    fn each_digest_is_over_exactly_the_keys_of_the_contract() {
        let handoff = LeaseHandoff {
            assignee: "worker.1",
            issue_id: "bd-1",
            lease_action: "release_closed",
            lease_id: "lease1_bd-1_worker_1",
            lease_owner: "worker.1",
            lease_state: "released",
            status: "closed",
            worker_id: "worker.1",
        };
        let table = [
            (
                lease_handoff(&handoff),
                "lease://handoff/bd-1/released/",
                r#"{"assignee":"worker.1","issueId":"bd-1","leaseAction":"release_closed","leaseId":"lease1_bd-1_worker_1","leaseOwner":"worker.1","leaseState":"released","status":"closed","workerId":"worker.1"}"#,
            ),
            (
                worker_lane_policy(&mode(), "worker.1", "bd-1", 1),
                "policy://worker-lane/human-override/",
                r#"{"activeEpoch":"2026-03","issueId":"bd-1","mode":"human-override","reason":"night run","stepIndex":1,"supportUntil":"","workerId":"worker.1"}"#,
            ),
            (
                issue_context("bd-1", "/repo", "/repo/.premath/issues.jsonl"),
                "ctx://issue/bd-1/",
                r#"{"issueId":"bd-1","issuesPath":"/repo/.premath/issues.jsonl","kind":"ctx","repoRoot":"/repo"}"#,
            ),
            (
                worker_loop_cover("bd-1", "ctx://x"),
                "cover://worker-loop/bd-1/",
                r#"{"ctxRef":"ctx://x","kind":"cover","workerPool":"harness.multithread.v1"}"#,
            ),
            (
                worker_loop_refinement("bd-1", "worker.1", "cover://x", "/wt", &mode()),
                "refinement://worker-loop/bd-1/worker.1/",
                r#"{"activeEpoch":"2026-03","coverRef":"cover://x","kind":"refinement","mutationMode":"human-override","supportUntil":"","workerId":"worker.1","worktree":"/wt"}"#,
            ),
        ];
        for (found, prefix, content) in table {
            assert_eq!(found, format!("{prefix}{}", sha256_hex(content.as_bytes())));
        }
    }

    #[test]
    fn plain_references_are_their_parts() {
        let table = [
            (
                work_witness(" ", "worker.1", "bd-1", WorkOutcome::Completed),
                "worker://loop/worker.1/bd-1/completed",
            ),
            (
                work_witness("ci://x", "w", "a/b", WorkOutcome::Failed),
                "ci://x/w/a%2Fb/failed",
            ),
            (
                session("hs1_20260305T100000Z"),
                "session://hs1_20260305T100000Z",
            ),
            (
                trajectory_step("w.1.bd-1.2"),
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

    #[test]
    fn lineage_has_one_reference_of_each_kind() {
        let lineage = site_lineage("../x", "w", "/r", "/r/i", "/wt", &mode());
        let found: Vec<_> = lineage
            .iter()
            .map(|r| r.split_once("://").unwrap().0)
            .collect();
        assert_eq!(found, ["cover", "ctx", "refinement"]);
        assert!(
            !lineage
                .iter()
                .any(|r| r.split('/').any(|part| part == ".."))
        );
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
