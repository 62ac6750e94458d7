//! `premath retry decide`, `premath escalate`, `premath issue check` and
//! `premath kpi`, as wrappers call them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

use premath_kernel::json::canonical;
use premath_kernel::policy::retry::RetryPolicy;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const POLICY: &str = "policies/control/harness-retry-policy-v1.json";

struct Scratch {
    _guard: tempfile::TempDir,
    folder: PathBuf,
}

struct Answer {
    code: i32,
    document: Value,
    stderr: String,
}

impl Scratch {
    fn with(rows: &[Value]) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = guard.path().canonicalize().unwrap();
        fs::create_dir(folder.join(".premath")).unwrap();
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(folder.join(".premath/issues.jsonl"), text).unwrap();
        Self {
            _guard: guard,
            folder,
        }
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Answer {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).arg("--json").current_dir(&self.folder);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PREMATH_")) {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        Answer {
            code: output.status.code().unwrap(),
            document: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn escalate(&self, class: &str, variables: &[(&str, &str)]) -> Answer {
        let args = ["escalate", "--class", class, "--override-reason", "test"];
        self.run(&args, variables)
    }

    fn issue(&self, id: &str) -> Value {
        let shown = self.run(&["issue", "show", id], &[]);
        shown.document["issue"].clone()
    }

    fn rows(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join(".premath/harness_trajectory.jsonl"));
        text.unwrap_or_default()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn session(&self, text: &str) {
        fs::write(self.folder.join(".premath/harness_session.json"), text).unwrap();
    }
}

fn issue(id: &str) -> Value {
    json!({"id": id, "title": id, "status": "open"})
}

#[test]
fn a_decision_names_rule_attempt_and_outcome() {
    let scratch = Scratch::with(&[]);
    let decide = |args: &[&str]| scratch.run(&[&["retry", "decide"], args].concat(), &[]);
    let first = decide(&["--class", "work_failed", "gate_timeout"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(first.document["action"], "retry.decide");
    assert_eq!(first.document["policyPath"], Value::Null);
    assert_eq!(
        first.document["retry"],
        json!({"decision": "retry", "attempt": 1, "maxAttempts": 3,
            "backoffClass": "exponential_short", "ruleId": "transient_retry",
            "failureClass": "gate_timeout"})
    );
    let last = decide(&["--class", "gate_timeout", "--attempt", "3"]);
    assert_eq!(last.document["retry"]["action"], "issue_discover");
    let strange = decide(&["--class", "of_my_own"]);
    assert_eq!(strange.document["retry"]["ruleId"], "default");
    assert!(strange.stderr.starts_with("note: "), "{}", strange.stderr);
    for args in [
        &["--class", "nonsense"][..],
        &["--class", "a_b", "--attempt", "0"],
        &["--class", "a_b", "--policy", "none.json"],
        &[],
    ] {
        assert_eq!(decide(args).code, 2, "{args:?}");
    }
}

#[test]
fn the_repositorys_own_policy_decides_and_a_named_one_before_it() {
    let scratch = Scratch::with(&[]);
    let write = |path: &str, attempts: u32| {
        let mut policy = json!({"schema": 1, "policyKind": "ci.harness.retry.policy.v1",
            "policyId": "own", "rules": [], "defaultRule": {"maxAttempts": attempts,
            "backoffClass": "none", "escalationAction": "stop"}});
        policy["policyDigest"] = RetryPolicy::digest(policy.to_string().as_bytes())
            .unwrap()
            .into();
        let path = scratch.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, policy.to_string()).unwrap();
    };
    write(POLICY, 7);
    write("other.json", 9);
    let attempts = |args: &[&str]| {
        let args = [&["retry", "decide", "--class", "check_failed"], args].concat();
        scratch.run(&args, &[]).document["retry"]["maxAttempts"].clone()
    };
    assert_eq!(attempts(&[]), 7);
    assert_eq!(attempts(&["--policy", "other.json"]), 9);
    let config = "[batch]\nretry_policy = \"other.json\"\n";
    fs::write(scratch.folder.join("harness.toml"), config).unwrap();
    assert_eq!(attempts(&[]), 9);
    fs::remove_file(scratch.folder.join("harness.toml")).unwrap();
    let text = fs::read_to_string(scratch.folder.join(POLICY)).unwrap();
    fs::write(scratch.folder.join(POLICY), text.replace(":7", ":8")).unwrap();
    let changed = scratch.run(&["retry", "decide", "--class", "check_failed"], &[]);
    assert_eq!(changed.code, 2);
    assert_eq!(
        changed.document["failureClasses"],
        json!(["retry_policy_digest_mismatch"])
    );
}

#[test]
fn an_escalation_blocks_or_discovers_under_a_lease_that_it_releases() {
    let scratch = Scratch::with(&[issue("a"), issue("b")]);
    let blocked = scratch.escalate("check_failed", &[("PREMATH_ACTIVE_ISSUE_ID", "a")]);
    assert_eq!(blocked.code, 0, "{}", blocked.stderr);
    assert_eq!(
        blocked.document["context"],
        json!({"issueId": "a", "source": "active_env"})
    );
    assert_eq!(blocked.document["changed"], true);
    let row = scratch.issue("a");
    assert_eq!(
        (&row["status"], &row["lease"]),
        (&json!("blocked"), &Value::Null)
    );
    let notes = row["notes"].as_str().unwrap();
    assert!(
        notes.starts_with("Blocked by the harness: check_failed"),
        "{notes}"
    );

    // What is blocked is not ready: only `b` is.
    let discovered = scratch.escalate("gate_timeout", &[]);
    assert_eq!(discovered.code, 0, "{}", discovered.stderr);
    assert_eq!(discovered.document["context"]["source"], "ready_frontier");
    let filed = discovered.document["filedIssueId"].as_str().unwrap();
    let edge = &scratch.issue(filed)["dependencies"][0];
    assert_eq!(edge["type"], "discovered-from");
    let row = scratch.issue("b");
    assert_eq!(
        (&row["status"], &row["lease"]),
        (&json!("open"), &Value::Null)
    );

    let nothing = scratch.escalate("work_failed", &[("PREMATH_ISSUE_ID", "b")]);
    assert_eq!(
        (nothing.code, &nothing.document["changed"]),
        (0, &json!(false))
    );
    let results: Vec<_> = scratch
        .rows()
        .iter()
        .map(|row| (row["action"].clone(), row["resultClass"].clone()))
        .collect();
    let expected = (json!("harness.escalation"), json!("escalated"));
    assert_eq!(results, vec![expected; 3]);
}

#[test]
fn the_issue_is_looked_for_in_the_order_of_the_contract() {
    let rows = ["a", "b", "c", "d"].map(issue);
    let scratch = Scratch::with(&rows);
    let session = |issue: &str| {
        json!({"schema": 1, "sessionKind": "premath.harness.session.v1", "sessionId": "s",
            "state": "active", "startedAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-01T00:00:00Z", "issueId": issue})
        .to_string()
    };
    let refused = |class: &str, variables: &[(&str, &str)]| {
        let before = fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap();
        let answer = scratch.escalate("check_failed", variables);
        assert_eq!(answer.code, 1, "{}", answer.stderr);
        assert_eq!(answer.document["failureClasses"], json!([class]));
        assert_eq!(
            scratch.rows().last().unwrap()["resultClass"],
            "escalation_failed"
        );
        assert_eq!(
            scratch.rows().last().unwrap()["failureClasses"],
            json!([class])
        );
        let after = fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap();
        assert!(before == after);
    };
    refused("escalation_issue_context_ambiguous", &[]);
    let both = [("PREMATH_ACTIVE_ISSUE_ID", "a"), ("PREMATH_ISSUE_ID", "b")];
    refused("escalation_issue_context_ambiguous", &both);
    scratch.session("{}");
    refused("escalation_session_invalid", &[]);
    fs::remove_file(scratch.folder.join(".premath/harness_session.json")).unwrap();
    fs::create_dir(scratch.folder.join(".premath/harness_session.json")).unwrap();
    refused("escalation_session_read_failed", &[]);
    fs::remove_dir(scratch.folder.join(".premath/harness_session.json")).unwrap();
    refused("lease_not_found", &[("PREMATH_ISSUE_ID", "nowhere")]);

    scratch.session(&session("c"));
    let found = scratch.escalate("check_failed", &[]);
    assert_eq!(
        found.document["context"],
        json!({"issueId": "c", "source": "session"})
    );
    let found = scratch.escalate("check_failed", &[("PREMATH_ISSUE_ID", "b")]);
    assert_eq!(
        found.document["context"],
        json!({"issueId": "b", "source": "env"})
    );
    let active = [
        ("PREMATH_ACTIVE_ISSUE_ID", "a"),
        ("PREMATH_ISSUE_ID", " a "),
    ];
    let found = scratch.escalate("check_failed", &active);
    assert_eq!(found.document["context"]["source"], "active_env");
    fs::remove_file(scratch.folder.join(".premath/harness_session.json")).unwrap();
    let found = scratch.escalate("check_failed", &[]);
    assert_eq!(
        found.document["context"],
        json!({"issueId": "d", "source": "ready_frontier"})
    );
    refused("escalation_issue_context_unbound", &[]);
}

#[test]
fn another_owners_lease_is_refused_and_ones_own_is_used_and_kept() {
    let scratch = Scratch::with(&[issue("a")]);
    let claim = ["issue", "claim", "a", "--assignee", "ann"];
    assert_eq!(scratch.run(&claim, &[]).code, 0);
    let issue = [("PREMATH_ISSUE_ID", "a")];
    let refused = scratch.escalate("check_failed", &issue);
    assert_eq!(refused.code, 1);
    assert_eq!(
        refused.document["failureClasses"],
        json!(["lease_contention_active"])
    );
    let args = |class| {
        [
            "escalate",
            "--class",
            class,
            "--override-reason",
            "test",
            "--assignee",
            "ann",
        ]
    };
    assert_eq!(scratch.run(&args("gate_timeout"), &issue).code, 0);
    assert_eq!(scratch.issue("a")["lease"]["owner"], "ann");
    assert_eq!(scratch.run(&args("check_failed"), &issue).code, 0);
    assert_eq!(scratch.issue("a")["status"], "blocked");
}

#[test]
fn what_is_not_due_not_admitted_or_inside_a_step_changes_nothing() {
    let scratch = Scratch::with(&[issue("a")]);
    let before = fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap();
    let early = ["escalate", "--class", "gate_timeout", "--attempt", "2"];
    assert_eq!(scratch.run(&early, &[]).code, 1);
    let unexplained = scratch.run(&["escalate", "--class", "check_failed"], &[]);
    assert_eq!(unexplained.code, 1);
    assert_eq!(
        unexplained.document["failureClasses"],
        json!(["mutation_mode_invalid"])
    );
    let inside = scratch.escalate("check_failed", &[("PREMATH_STEP_ID", "w.a.1")]);
    assert_eq!(inside.code, 1);
    assert_eq!(
        inside.document["failureClasses"],
        json!(["mutation.use_evidence_missing"])
    );
    assert!(before == fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap());
}

#[test]
fn an_active_issue_says_when_it_is_done_and_what_shows_it() {
    let good = json!({"id": "good", "title": "t", "status": "open",
        "description": "Do it.\n\nAcceptance:\n- it works\n\n- `mise run test`"});
    let check = |row: Value| {
        let scratch = Scratch::with(&[good.clone(), row]);
        let answer = scratch.run(&["issue", "check"], &[]);
        let classes = answer.document["failureClasses"].clone();
        assert_eq!(answer.code == 0, classes == json!([]), "{}", answer.stderr);
        classes
    };
    for (row, expected) in [
        (
            json!({"id": "x", "title": "t", "status": "open"}),
            json!([
                "issue_graph.acceptance.missing",
                "issue_graph.verification_command.missing"
            ]),
        ),
        (
            json!({"id": "x", "title": "t", "acceptance_criteria": "it works"}),
            json!(["issue_graph.verification_command.missing"]),
        ),
        (
            json!({"id": "x", "title": "t", "status": "in_progress", "notes": "cargo test"}),
            json!(["issue_graph.acceptance.missing"]),
        ),
        (
            json!({"id": "x", "title": "[EPIC] t", "status": "closed"}),
            json!(["issue_graph.issue_type.epic_mismatch"]),
        ),
        (
            json!({"id": "x", "title": "[EPIC] t", "status": "closed", "issue_type": "epic"}),
            json!([]),
        ),
        (
            json!({"id": "x", "title": "t", "status": "blocked"}),
            json!([]),
        ),
        (
            json!({"id": "x", "title": "t", "ephemeral": true}),
            json!([]),
        ),
    ] {
        assert_eq!(check(row.clone()), expected, "{row}");
    }
}

#[test]
fn the_throughput_is_reported_and_can_be_required() {
    let scratch = Scratch::with(&[]);
    let write = |results: &[&str]| {
        let text: String = results
            .iter()
            .map(|result| {
                let row = json!({"schema": 1, "stepKind": "premath.harness.step.v1",
                    "stepId": "w.a.1", "action": "worker.loop", "resultClass": result,
                    "workerId": "w", "finishedAt": "2026-01-01T00:00:00Z"});
                format!("{row}\n")
            })
            .collect();
        fs::write(
            scratch.folder.join(".premath/harness_trajectory.jsonl"),
            text,
        )
        .unwrap();
    };
    let verdict = |args: &[&str]| {
        let answer = scratch.run(&[&["kpi"], args].concat(), &[]);
        (answer.code, answer.document["decision"].clone())
    };
    assert_eq!(verdict(&[]), (0, json!("insufficient_data")));
    assert_eq!(
        verdict(&["--require", "watch"]),
        (1, json!("insufficient_data"))
    );
    write(&["completed"; 3]);
    assert_eq!(verdict(&["--require", "pass"]), (0, json!("pass")));
    let kind = scratch.run(&["kpi"], &[]).document["kpiKind"].clone();
    assert_eq!(kind, "premath.multithread.throughput.v1");
    write(&["failed"; 3]);
    assert_eq!(verdict(&[]), (0, json!("rollback")));
    assert_eq!(verdict(&["--require", "watch"]), (1, json!("rollback")));
    fs::write(
        scratch.folder.join(".premath/harness_trajectory.jsonl"),
        "{}\n",
    )
    .unwrap();
    assert_eq!(scratch.run(&["kpi"], &[]).code, 2);
}

#[test]
fn an_escalation_changes_nothing_under_a_policy_package_that_is_not_pinned() {
    let scratch = Scratch::with(&[issue("a")]);
    let write = |path: &str, text: &str| {
        let path = scratch.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let claims = json!({"profileOverlayClaims": ["profile.doctrine_inf_governance.v0"]});
    write("draft/CAPABILITY-REGISTRY.json", &claims.to_string());
    write("package.json", "{}\n");
    let escalate = || scratch.escalate("check_failed", &[("PREMATH_ISSUE_ID", "a")]);
    let before = fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap();
    let pinned = |digest: &str| {
        format!("[governance]\npackage = \"package.json\"\nexpected_digest = \"sha256:{digest}\"\n")
    };
    let other = pinned(&"0".repeat(64));
    for (settings, class) in [
        ("", "governance.policy_package_unpinned"),
        (&*other, "governance.policy_package_mismatch"),
    ] {
        write("harness.toml", settings);
        let refused = escalate();
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        let classes = refused.document["failureClasses"].to_string();
        assert!(classes.contains(class), "{}", refused.document);
        let after = fs::read(scratch.folder.join(".premath/issues.jsonl")).unwrap();
        assert_eq!(after, before, "{settings}");
    }
    // The digest of the file that is there.
    write("harness.toml", &pinned(&canonical::sha256_hex(b"{}\n")));
    let escalated = escalate();
    assert_eq!(escalated.code, 0, "{}", escalated.stderr);
    assert_eq!(scratch.issue("a")["status"], "blocked");
}
