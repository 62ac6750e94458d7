//! What a step's turn is bound to: the policy that its changes rest on, and the
//! site lineage of its work (`contracts.md` 5, HARNESS-RUNTIME 6).

use super::MutationMode;
use crate::json::canonical::ref_digest;
use crate::json::id::{IssueId, WorkerName};
use crate::json::reference::RefSet;
use crate::json::token::encode;
use serde_json::json;

/// Returns `policy://worker-lane/<mode>/<digest>`: what a step's changes rest on.
///
/// `step_index` counts from 1 in a run.
pub fn worker_lane_policy(
    mode: &MutationMode,
    worker_id: &WorkerName,
    issue_id: &IssueId,
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
pub(crate) fn issue_context(issue_id: &IssueId, repo_root: &str, issues_path: &str) -> String {
    let digest = ref_digest(&json!({
        "kind": "ctx",
        "issueId": issue_id,
        "repoRoot": repo_root,
        "issuesPath": issues_path,
    }));
    format!("ctx://issue/{}/{digest}", encode(issue_id))
}

/// Returns `cover://worker-loop/<issue>/<digest>`: the pool that covers a context.
pub(crate) fn worker_loop_cover(issue_id: &IssueId, context_ref: &str) -> String {
    let digest = ref_digest(&json!({
        "kind": "cover",
        "ctxRef": context_ref,
        "workerPool": "harness.multithread.v1",
    }));
    format!("cover://worker-loop/{}/{digest}", encode(issue_id))
}

/// Returns `refinement://worker-loop/<issue>/<worker>/<digest>`: one worker's
/// part of a cover.
pub(crate) fn worker_loop_refinement(
    issue_id: &IssueId,
    worker_id: &WorkerName,
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
    issue_id: &IssueId,
    worker_id: &WorkerName,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::sha256_hex;

    fn mode() -> MutationMode {
        let now = "2026-03-05T10:00:00Z".parse().unwrap();
        MutationMode::human_override("night run", None, now).unwrap()
    }

    #[test]
    fn each_digest_is_over_exactly_the_keys_of_the_contract() {
        let table = [
            (
                worker_lane_policy(&mode(), &"worker.1".into(), &"bd-1".into(), 1),
                "policy://worker-lane/human-override/",
                r#"{"activeEpoch":"2026-03","issueId":"bd-1","mode":"human-override","reason":"night run","stepIndex":1,"supportUntil":"","workerId":"worker.1"}"#,
            ),
            (
                issue_context(&"bd-1".into(), "/repo", "/repo/.premath/issues.jsonl"),
                "ctx://issue/bd-1/",
                r#"{"issueId":"bd-1","issuesPath":"/repo/.premath/issues.jsonl","kind":"ctx","repoRoot":"/repo"}"#,
            ),
            (
                worker_loop_cover(&"bd-1".into(), "ctx://x"),
                "cover://worker-loop/bd-1/",
                r#"{"ctxRef":"ctx://x","kind":"cover","workerPool":"harness.multithread.v1"}"#,
            ),
            (
                worker_loop_refinement(
                    &"bd-1".into(),
                    &"worker.1".into(),
                    "cover://x",
                    "/wt",
                    &mode(),
                ),
                "refinement://worker-loop/bd-1/worker.1/",
                r#"{"activeEpoch":"2026-03","coverRef":"cover://x","kind":"refinement","mutationMode":"human-override","supportUntil":"","workerId":"worker.1","worktree":"/wt"}"#,
            ),
        ];
        for (found, prefix, content) in table {
            assert_eq!(found, format!("{prefix}{}", sha256_hex(content.as_bytes())));
        }
    }

    #[test]
    fn lineage_has_one_reference_of_each_kind() {
        let lineage = site_lineage(&"../x".into(), &"w".into(), "/r", "/r/i", "/wt", &mode());
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
}
