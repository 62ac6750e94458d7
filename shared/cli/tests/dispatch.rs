//! `premath transport-dispatch` and `premath doctrine check`, run as their
//! callers run them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder with two open issues and a closed one.
struct Memory {
    _guard: tempfile::TempDir,
    path: PathBuf,
}

const ROWS: &str = r#"{"id":"a","title":"First","status":"open","priority":1}
{"id":"b","title":"Second","status":"open"}
{"id":"c","title":"Done","status":"closed"}
{"id":"d","title":"Set aside","status":"blocked"}
{"id":"e","title":"Waits","status":"open","dependencies":[{"issue_id":"e","depends_on_id":"a","type":"blocks"}]}
"#;

impl Memory {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let path = guard.path().canonicalize().unwrap().join("issues.jsonl");
        fs::write(&path, ROWS).unwrap();
        Self {
            _guard: guard,
            path,
        }
    }

    fn command(&self, action: &str, payload: &str) -> Command {
        let mut command = self.bare(action);
        command.args(["--payload", payload]);
        command
    }

    fn bare(&self, action: &str) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the program that dispatches"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command
            .args(["transport-dispatch", "--json", "--action", action])
            .current_dir(self.path.parent().unwrap());
        for name in [
            "PREMATH_STEP_ID",
            "PREMATH_ISSUES_PATH",
            "PREMATH_HOST_ACTION_TRANSPORT",
        ] {
            command.env_remove(name);
        }
        command
    }

    #[track_caller]
    fn dispatch(&self, action: &str, mut payload: Value) -> Value {
        if let Some(fields) = payload.as_object_mut() {
            fields.insert("issuesPath".into(), self.path.to_str().unwrap().into());
        }
        let output = self.command(action, &payload.to_string()).output().unwrap();
        answer(&output, 0)
    }

    /// Dispatches what must be rejected with a class, and changes nothing.
    #[track_caller]
    fn rejected(&self, action: &str, payload: Value, class: &str) -> Value {
        let before = fs::read(&self.path).unwrap();
        let answer = self.dispatch(action, payload.clone());
        assert_eq!(answer["result"], "rejected", "{action} {payload}");
        assert_eq!(
            answer["failureClasses"],
            json!([class]),
            "{action} {payload}"
        );
        assert!(!answer["diagnostic"].as_str().unwrap().is_empty());
        assert_eq!(answer.get("issue"), None);
        assert_eq!(before, fs::read(&self.path).unwrap(), "{action} {payload}");
        answer
    }
}

#[track_caller]
fn answer(output: &Output, code: i32) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `sha256` of the four texts, each with a NUL behind it, taken by hand.
const DIGESTS: [(&str, &str, &str, &str); 5] = [
    (
        "issue.claim",
        "transport.action.issue_claim",
        "op/mcp.issue_claim",
        "7012515c8279a81947b481e6e7acee0dbdde1662ac880ebadae8b5831f78e862",
    ),
    (
        "issue.claim_next",
        "transport.action.issue_claim_next",
        "op/transport.issue_claim_next",
        "1e0f2e186f996a09ea04959436b6cdc9b40836de657f38c03c9ca27a138044fd",
    ),
    (
        "issue.lease_renew",
        "transport.action.issue_lease_renew",
        "op/mcp.issue_lease_renew",
        "600bd17cab2fa723f590da173041757ccea9299516d81db48baa99fb5754e1bf",
    ),
    (
        "issue.lease_release",
        "transport.action.issue_lease_release",
        "op/mcp.issue_lease_release",
        "68980a02cfd05df500fe9e8d3c03aadaf4b16000e29f0d3dcc1a5e135524f0f2",
    ),
    (
        "issue.lease.state",
        "transport.action.issue_lease_state",
        "op/mcp.issue_lease_projection",
        "efccc21ece46844d658668d6f33a334d3354a668752d44a7403950577edb4b9d",
    ),
];

#[test]
fn a_lease_is_claimed_renewed_and_released() {
    let memory = Memory::new();
    let claim = json!({"id": "b", "assignee": "w", "leaseTtlSeconds": 60});
    let claimed = memory.dispatch("issue.claim", claim);
    assert_eq!(claimed["result"], "accepted");
    assert_eq!(claimed["failureClasses"], json!([]));
    assert_eq!(claimed["changed"], true);
    assert_eq!(claimed["schema"], 1);
    assert_eq!(claimed["dispatchKind"], "premath.transport_dispatch.v1");
    assert_eq!(claimed["profileId"], "transport.issue_lease.v1");
    assert_eq!(claimed["issuesPath"], memory.path.to_str().unwrap());
    let lease = &claimed["issue"]["lease"];
    assert_eq!(lease["leaseId"], "lease1_b_w");
    assert_eq!(lease["generation"], 1);
    assert_eq!(lease.get("holder"), None);
    assert_eq!(claimed["leaseProjection"]["staleCount"], 0);
    assert_eq!(claimed["leaseProjection"]["contendedIssueIds"], json!([]));

    let next = memory.dispatch(
        "issue.claim_next",
        json!({"assignee": "v", "leaseId": "mine"}),
    );
    assert_eq!(next["issue"]["id"], "a");
    assert_eq!(next["issue"]["lease"]["leaseId"], "mine");
    let none = memory.dispatch("issue.claim_next", json!({"assignee": "v"}));
    assert_eq!(none["result"], "accepted");
    assert_eq!(none["changed"], false);
    assert_eq!(none.get("issue"), None);

    let until = "2999-01-01T00:00:00Z";
    let key = json!({"id": "b", "assignee": "w", "leaseId": "lease1_b_w", "generation": 1,
                     "leaseTtlSeconds": 3600});
    let renewed = memory.dispatch("issue.lease_renew", key.clone());
    assert_eq!(renewed["result"], "accepted");
    assert!(renewed["issue"]["lease"]["renewedAt"].is_string());
    let mut far = key.clone();
    far.as_object_mut().unwrap().remove("leaseTtlSeconds");
    far["leaseExpiresAt"] = until.into();
    memory.rejected("issue.lease_renew", far, "lease_invalid_expires_at");

    let released = memory.dispatch("issue.lease_release", key.clone());
    assert_eq!(released["result"], "accepted");
    assert_eq!(released["changed"], true);
    assert_eq!(released["issue"]["status"], "open");
    assert_eq!(released["issue"].get("lease"), None);
    // The answer of the first one may have been lost.
    let before = fs::read(&memory.path).unwrap();
    let again = memory.dispatch("issue.lease_release", key);
    assert_eq!(again["result"], "accepted");
    assert_eq!(again["changed"], false);
    assert_eq!(again["issue"]["id"], "b");
    assert_eq!(before, fs::read(&memory.path).unwrap());
}

#[test]
fn the_state_of_leases_is_dispatched_without_a_change() {
    let memory = Memory::new();
    memory.dispatch("issue.claim", json!({"id": "a", "assignee": "w"}));
    let before = fs::read(&memory.path).unwrap();
    let one = memory.dispatch("issue.lease.state", json!({"id": "a"}));
    assert_eq!(one["result"], "accepted");
    assert_eq!(one["changed"], false);
    assert_eq!(one["issue"]["lease"]["leaseId"], "lease1_a_w");
    assert_eq!(one["leaseProjection"]["staleCount"], 0);
    memory.rejected("issue.lease.state", json!({"id": "z"}), "lease_not_found");
    // Without a payload it is about all leases of the usual issue store.
    let mut command = memory.bare("issue.lease.state");
    command.env("PREMATH_ISSUES_PATH", &memory.path);
    let all = answer(&command.output().unwrap(), 0);
    assert_eq!(all["result"], "accepted");
    assert_eq!(all.get("issue"), None);
    assert_eq!(before, fs::read(&memory.path).unwrap());
}

/// What a transport asks for, and the class that refuses it.
type Rejection = (&'static str, Value, &'static str);

fn rejected_claims() -> Vec<Rejection> {
    vec![
        (
            "issue.claim",
            json!({"id": "a", "assignee": "v"}),
            "lease_contention_active",
        ),
        (
            "issue.claim",
            json!({"id": "a", "assignee": "w"}),
            "lease_contention_active",
        ),
        (
            "issue.claim",
            json!({"id": "c", "assignee": "w"}),
            "lease_issue_closed",
        ),
        (
            "issue.claim",
            json!({"id": "z", "assignee": "w"}),
            "lease_not_found",
        ),
        (
            "issue.claim",
            json!({"id": "d", "assignee": "w"}),
            "issue_not_ready",
        ),
        (
            "issue.claim",
            json!({"id": "e", "assignee": "w"}),
            "issue_not_ready",
        ),
        ("issue.claim", json!({"id": "b"}), "lease_invalid_assignee"),
        (
            "issue.claim",
            json!({"assignee": "w"}),
            "lease_invalid_payload",
        ),
        ("issue.claim", json!([]), "lease_invalid_payload"),
        (
            "issue.claim_next",
            json!({"assignee": "w", "leaseTtlSeconds": 29}),
            "lease_invalid_ttl",
        ),
        (
            "issue.claim_next",
            json!({"assignee": "w", "leaseExpiresAt": "2020-01-01T00:00:00Z"}),
            "lease_invalid_expires_at",
        ),
        (
            "issue.claim_next",
            json!({"assignee": "w", "leaseTtlSeconds": 60, "leaseExpiresAt": "2999-01-01T00:00:00Z"}),
            "lease_binding_ambiguous",
        ),
    ]
}

fn rejected_leases() -> Vec<Rejection> {
    let key = |edit: Value| {
        let mut key = json!({"id": "a", "assignee": "w", "leaseId": "lease1_a_w", "generation": 1});
        for (name, value) in edit.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    };
    vec![
        (
            "issue.lease_renew",
            key(json!({"assignee": "v"})),
            "lease_owner_mismatch",
        ),
        (
            "issue.lease_renew",
            key(json!({"leaseId": "x"})),
            "lease_id_mismatch",
        ),
        (
            "issue.lease_renew",
            key(json!({"generation": 2})),
            "lease_generation_mismatch",
        ),
        (
            "issue.lease_renew",
            key(json!({"id": "b"})),
            "lease_missing",
        ),
        (
            "issue.lease_release",
            key(json!({"leaseId": "x"})),
            "lease_id_mismatch",
        ),
        (
            "issue.lease_release",
            key(json!({"id": "c"})),
            "lease_issue_closed",
        ),
    ]
}

#[test]
fn every_rejection_is_data_and_has_its_class() {
    let memory = Memory::new();
    memory.dispatch("issue.claim", json!({"id": "a", "assignee": "w"}));
    for (action, payload, class) in rejected_claims().into_iter().chain(rejected_leases()) {
        // Only an object can name issue memory; else the usual one is meant.
        if payload.is_array() {
            let output = memory.command(action, "[]").output().unwrap();
            assert_eq!(answer(&output, 0)["failureClasses"], json!([class]));
            continue;
        }
        let rejected = memory.rejected(action, payload, class);
        assert_eq!(rejected["changed"], false);
        assert_eq!(rejected["action"], action);
    }
    let unknown = memory.rejected("issue.burn", json!({}), "transport_unknown_action");
    assert_eq!(unknown["actionId"], "transport.action.unknown");
    assert_eq!(unknown["worldBinding"], Value::Null);
    let broken = memory.command("issue.claim", "{").output().unwrap();
    let said = answer(&broken, 2);
    assert!(said["error"].as_str().unwrap().contains("not JSON"));
}

#[test]
fn what_refuses_issue_memory_is_a_rejection_too() {
    let memory = Memory::new();
    fs::write(&memory.path, "{\"id\": \n").unwrap();
    memory.rejected(
        "issue.claim",
        json!({"id": "a", "assignee": "w"}),
        "issue_memory_corrupt",
    );
    fs::remove_file(&memory.path).unwrap();
    let answer = memory.dispatch("issue.claim_next", json!({"assignee": "w"}));
    assert_eq!(answer["failureClasses"], json!(["lease_mutation_store_io"]));
    assert!(!memory.path.exists());
}

#[test]
fn on_the_local_transport_renew_and_release_fail_closed() {
    let memory = Memory::new();
    let path = memory.path.to_str().unwrap();
    let claim = json!({"id": "a", "assignee": "w", "issuesPath": path}).to_string();
    let run = |action: &str, payload: &str| {
        let mut command = memory.command(action, payload);
        command.env("PREMATH_HOST_ACTION_TRANSPORT", "local-repl");
        answer(&command.output().unwrap(), 0)
    };
    assert_eq!(run("issue.claim", &claim)["result"], "accepted");
    let before = fs::read(&memory.path).unwrap();
    let key = json!({"id": "a", "assignee": "w", "leaseId": "lease1_a_w", "issuesPath": path});
    for action in ["issue.lease_renew", "issue.lease_release"] {
        let answer = run(action, &key.to_string());
        assert_eq!(
            answer["failureClasses"],
            json!(["control_plane_host_action_mcp_transport_required"])
        );
    }
    assert_eq!(before, fs::read(&memory.path).unwrap());
    let mut command = memory.command("issue.claim", "{}");
    command.env("PREMATH_HOST_ACTION_TRANSPORT", "pigeon");
    answer(&command.output().unwrap(), 2);
}

#[test]
fn inside_a_step_nothing_is_dispatched() {
    let memory = Memory::new();
    let payload = json!({"id": "a", "assignee": "w", "issuesPath": memory.path.to_str().unwrap()});
    let mut command = memory.command("issue.claim", &payload.to_string());
    command.env("PREMATH_STEP_ID", "w.a.1");
    let answer = answer(&command.output().unwrap(), 0);
    assert_eq!(answer["result"], "rejected");
    assert_eq!(
        answer["failureClasses"],
        json!(["mutation.use_evidence_missing"])
    );
    assert_eq!(fs::read_to_string(&memory.path).unwrap(), ROWS);
}

#[test]
fn the_known_digests_and_bindings_are_those_of_the_contract() {
    let memory = Memory::new();
    for (action, action_id, operation, digest) in DIGESTS {
        let answer = memory.dispatch(action, json!({}));
        assert_eq!(answer["action"], action);
        assert_eq!(answer["actionId"], action_id);
        assert_eq!(answer["semanticDigest"], format!("ts1_{digest}"));
        assert_eq!(
            answer["worldBinding"],
            json!({
                "operationId": operation,
                "routeFamilyId": "route.issue_claim_lease",
                "worldId": "world.lease.v1",
                "morphismRowId": "wm.control.lease.mutation",
            })
        );
    }
}

#[test]
fn the_table_of_operations_holds() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test plays the shell that runs premath"
    )]
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    let output = command
        .args(["doctrine", "check", "--json"])
        .output()
        .unwrap();
    let answer = answer(&output, 0);
    assert_eq!(answer["result"], "accepted");
    assert_eq!(answer["errors"], json!([]));
    assert!(answer["operationCount"].as_u64() >= answer["commandCount"].as_u64());
}
