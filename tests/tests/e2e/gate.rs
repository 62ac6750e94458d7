//! `harness-worker gate`: scripted commands end as the retry table says, over
//! restarts too (`contracts.md` 7).

use premath_tests::{PATIENCE, Run, Running, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const QUICK: &str = r#"[batch]
override_reason = "test"

[backoff]
fixed_short = "10ms"
exponential_short = { base = "10ms", cap = "20ms" }

[supervision]
grace = "100ms"
"#;

fn scratch(config: &str) -> Scratch {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    scratch
}

/// Gates a shell's line, which counts its runs in `count`.
fn gate(scratch: &Scratch, options: &[&str], line: &str) -> Run {
    let line = format!("echo run >> \"$HOME/count\"; {line}");
    scratch
        .run(&binaries().worker)
        .arg("gate")
        .args(options)
        .args(["--", "sh", "-c", &line])
}

fn runs(scratch: &Scratch) -> usize {
    let text = fs::read_to_string(scratch.home().join("count"));
    text.map_or(0, |text| text.lines().count())
}

fn rows(scratch: &Scratch, action: &str) -> Vec<Value> {
    let mut rows = scratch.trajectory();
    rows.retain(|row| row["action"] == action);
    rows
}

#[test]
fn each_rule_of_the_table_ends_as_it_says() {
    for (class, rule, attempts, status, filed) in [
        ("network_timeout", "transient_retry", 3, "open", true),
        ("hook_failed", "operational_retry", 2, "open", true),
        (
            "governance.eval_gate_unmet",
            "governance_no_retry",
            1,
            "blocked",
            false,
        ),
        ("check_failed", "semantic_no_retry", 1, "blocked", false),
        ("landing_conflict", "landing_retry", 2, "blocked", false),
        ("work_failed", "default", 1, "open", false),
    ] {
        let scratch = scratch(QUICK);
        let line = format!("echo '{class}: told' >&2; exit 1");
        gate(&scratch, &["--issue", "a"], &line).end().exits(1);
        assert_eq!(runs(&scratch), attempts, "{class}");
        let tried = rows(&scratch, "gate.attempt");
        assert_eq!(tried.len(), attempts, "{class}");
        let last = tried.last().unwrap();
        assert_eq!(last["retry"]["ruleId"], rule, "{class}");
        assert_eq!(last["retry"]["decision"], "escalate", "{class}");
        assert_eq!(last["failureClasses"], json!([class]));
        for row in &tried {
            let step = row["stepId"].as_str().unwrap();
            let witness = scratch
                .root
                .join(format!("artifacts/ciwitness/{step}.gate.json"));
            let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
            assert_eq!(witness["failureClasses"], json!([class]));
        }
        let row = scratch.issue("a");
        assert_eq!(row["status"], status, "{class}");
        assert!(row.get("lease").is_none(), "{row}");
        assert_eq!(scratch.issues().len() == 2, filed, "{class}");
        let escalated = &rows(&scratch, "harness.escalation")[0];
        assert_eq!(escalated["resultClass"], "escalated");
        // What the issue shows after the change has its witness.
        let named = escalated["witnessRefs"].to_string();
        assert_eq!(named.contains("/blocked/"), status == "blocked", "{named}");
        assert_eq!(named.contains("/follow-up/"), filed, "{named}");
        scratch.no_process_left();
    }
}

#[test]
fn what_passes_is_passed_on_and_a_failure_before_it_is_forgotten() {
    let scratch = scratch(QUICK);
    let line = "echo out; echo err >&2; [ -e \"$HOME/ok\" ] || { touch \"$HOME/ok\"; exit 75; }";
    let ended = gate(&scratch, &[], line).end().exits(0);
    assert_eq!(ended.stdout, "out\nout\n");
    assert!(
        ended.stderr.contains("flaky_execution: attempt 1 of 3"),
        "{}",
        ended.stderr
    );
    assert_eq!(scratch.issue("a"), issue("a"));
    gate(&scratch, &[], line).end().exits(0);
    let results: Vec<_> = rows(&scratch, "gate.attempt")
        .iter()
        .map(|row| row["resultClass"].clone())
        .collect();
    assert_eq!(results, ["retry_needed", "completed", "completed"]);
}

#[test]
fn the_end_of_a_command_has_its_class() {
    for (line, class) in [
        ("exit 3", "check_failed"),
        ("exit 75", "flaky_execution"),
        ("exit 127", "executor_unavailable"),
        ("kill -SEGV $$", "flaky_execution"),
        ("sleep 60", "gate_timeout"),
        (r#"echo '{"failureClass": "flaky_io"}'; exit 1"#, "flaky_io"),
    ] {
        let config = format!("{QUICK}verify_limit = \"1s\"\n");
        let scratch = scratch(&config);
        gate(&scratch, &["--max-attempts", "1", "--issue", "a"], line)
            .end()
            .exits(1);
        assert_eq!(
            rows(&scratch, "gate.attempt")[0]["failureClasses"][0],
            class,
            "{line}"
        );
        assert_eq!(runs(&scratch), 1);
    }
    let scratch = scratch(QUICK);
    let missing = ["gate", "--max-attempts", "1", "--", "no-such-program"];
    let ended = scratch.run(&binaries().worker).args(missing).end().exits(1);
    assert!(
        ended.stderr.contains("cannot start `no-such-program`"),
        "{}",
        ended.stderr
    );
    let row = &rows(&scratch, "gate.attempt")[0];
    assert_eq!(row["failureClasses"], json!(["executor_unavailable"]));
}

/// A config whose waits are long.
fn slow() -> String {
    QUICK.replace(
        "base = \"10ms\", cap = \"20ms\"",
        "base = \"1h\", cap = \"1h\"",
    )
}

/// Starts a gate and waits until it waits.
fn waiting(scratch: &Scratch, line: &str) -> Running {
    let gate = gate(scratch, &["--issue", "a"], line).start();
    let waits = || gate.stderr().contains("attempt 2 starts in").then_some(());
    until(PATIENCE, waits).expect("it waits");
    gate
}

#[test]
fn a_kill_between_attempts_continues_counting() {
    let scratch = scratch(&slow());
    let line = "exit 75";
    let killed = waiting(&scratch, line);
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait().signal, Some(9));
    // The next run waits for the rest, and an interrupt ends the wait.
    let again = waiting(&scratch, line);
    again.signal(Signal::INT);
    again.wait().exits(1).says("interrupted");
    assert_eq!(runs(&scratch), 1);
    fs::write(scratch.root.join("harness.toml"), QUICK).unwrap();
    gate(&scratch, &["--issue", "a"], line).end().exits(1);
    assert_eq!(runs(&scratch), 3, "never more than the budget");
    assert_eq!(rows(&scratch, "gate.attempt").len(), 3);
    assert_eq!(scratch.issues().len(), 2, "a follow-up was filed");
    scratch.no_process_left();
}

#[test]
fn a_kill_in_an_attempt_ends_the_command_and_uses_up_nothing() {
    let scratch = scratch(QUICK);
    let line = "[ -e \"$HOME/ok\" ] || { touch \"$HOME/up\"; sleep 600; }; exit 75";
    let killed = gate(&scratch, &["--issue", "a"], line).start();
    let up = scratch.home().join("up");
    until(PATIENCE, || up.exists().then_some(())).expect("the command starts");
    killed.signal(Signal::KILL);
    killed.wait();
    scratch.no_process_within(PATIENCE);
    fs::write(scratch.home().join("ok"), "").unwrap();
    let ended = gate(&scratch, &["--issue", "a"], line).end().exits(1);
    assert!(
        ended.stderr.contains("was interrupted: its harness died"),
        "{}",
        ended.stderr
    );
    assert_eq!(rows(&scratch, "gate.take_over").len(), 1);
    assert_eq!(rows(&scratch, "gate.attempt").len(), 3);
    assert_eq!(runs(&scratch), 4);
}

#[test]
fn a_kill_before_the_escalation_leaves_it_to_the_next_run() {
    let scratch = scratch(QUICK);
    let before = scratch.issue_bytes();
    let line = "exit 1";
    gate(&scratch, &["--issue", "a"], line).end().exits(1);
    let text = fs::read_to_string(scratch.trajectory_path()).unwrap();
    let rows_before: String = text
        .lines()
        .filter(|row| !row.contains("harness.escalation"))
        .map(|row| format!("{row}\n"))
        .collect();
    fs::write(scratch.trajectory_path(), rows_before).unwrap();
    scratch.write_issues(&before);
    assert_eq!(rows(&scratch, "gate.attempt").len(), 1);
    gate(&scratch, &["--issue", "a"], line).end().exits(1);
    assert_eq!(runs(&scratch), 1, "the attempts were used up");
    assert_eq!(scratch.issue("a")["status"], "blocked");
}

#[test]
fn an_interrupt_ends_the_command_and_uses_up_nothing() {
    let scratch = scratch(QUICK);
    let line = "touch \"$HOME/up\"; sleep 600";
    let running = gate(&scratch, &["--issue", "a"], line).start();
    let up = scratch.home().join("up");
    until(PATIENCE, || up.exists().then_some(())).expect("the command starts");
    running.signal(Signal::INT);
    running.wait().exits(1).says("the attempt does not count");
    let row = &rows(&scratch, "gate.attempt")[0];
    assert_eq!(row["failureClasses"][0], "step_interrupted");
    assert_eq!(scratch.issue("a"), issue("a"));
    scratch.no_process_left();
}

#[test]
fn a_budget_of_ones_own_gives_fewer_attempts_and_never_more() {
    for (budget, attempts) in [("2", 2), ("9", 3)] {
        let scratch = scratch(QUICK);
        gate(
            &scratch,
            &["--max-attempts", budget, "--issue", "a"],
            "exit 75",
        )
        .end()
        .exits(1);
        assert_eq!(runs(&scratch), attempts);
    }
}

#[test]
fn an_escalation_that_fails_never_reads_as_success() {
    let scratch = Scratch::with_issues(0, &[issue("a"), issue("b")]);
    fs::write(scratch.root.join("harness.toml"), QUICK).unwrap();
    let before = scratch.issue_bytes();
    gate(&scratch, &[], "exit 1")
        .end()
        .exits(1)
        .says("escalation_issue_context_ambiguous");
    let row = &rows(&scratch, "harness.escalation")[0];
    assert_eq!(row["resultClass"], "escalation_failed");
    assert!(before == scratch.issue_bytes());
    // An environment that names the issue is enough.
    gate(&scratch, &[], "exit 1")
        .env("PREMATH_ACTIVE_ISSUE_ID", "b")
        .end()
        .exits(1);
    assert_eq!(scratch.issue("b")["status"], "blocked");
    fs::write(scratch.root.join("harness.toml"), "").unwrap();
    gate(&scratch, &["--issue", "a"], "exit 2")
        .end()
        .exits(1)
        .says("mutation_mode_invalid");
    assert_eq!(scratch.issue("a"), issue("a"));
}

#[test]
fn what_cannot_be_used_is_named_and_runs_nothing() {
    let scratch = scratch(QUICK);
    let policy = scratch
        .root
        .join("policies/control/harness-retry-policy-v1.json");
    fs::create_dir_all(policy.parent().unwrap()).unwrap();
    fs::write(&policy, "{}").unwrap();
    gate(&scratch, &[], "exit 0")
        .end()
        .exits(2)
        .says("harness-retry-policy-v1.json");
    fs::remove_file(&policy).unwrap();
    for options in [&["--policy", "none.json"][..], &["--max-attempts", "0"]] {
        gate(&scratch, options, "exit 0").end().exits(2);
    }
    let worker = &binaries().worker;
    scratch.run(worker).args(["gate"]).end().exits(2);
    gate(&scratch, &[], "exit 0")
        .env("PREMATH_STEP_ID", "w.a.1")
        .end()
        .exits(2);
    assert_eq!(runs(&scratch), 0);
    assert!(!scratch.trajectory_path().exists());
}

#[test]
fn a_repositorys_own_policy_rules_gates_and_batches_without_being_named() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    fs::write(scratch.root.join("harness.toml"), QUICK).unwrap();
    let mut policy: Value = serde_json::from_slice(include_bytes!(
        "../../../shared/kernel/src/policy/retry_policy_default.json"
    ))
    .unwrap();
    policy["policyId"] = json!("own");
    let rules = policy["rules"].as_array_mut().unwrap();
    rules.retain(|rule| rule["ruleId"] != "semantic_no_retry");
    rules.push(
        json!({"ruleId": "own", "failureClasses": ["check_failed"], "maxAttempts": 2,
        "backoffClass": "none", "escalationAction": "stop"}),
    );
    let digest = premath_kernel::policy::retry::RetryPolicy::digest(policy.to_string().as_bytes());
    policy["policyDigest"] = digest.unwrap().into();
    let path = scratch
        .root
        .join("policies/control/harness-retry-policy-v1.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, policy.to_string()).unwrap();
    gate(&scratch, &["--issue", "a"], "exit 1").end().exits(1);
    assert_eq!(runs(&scratch), 2);
    assert_eq!(scratch.issue("a"), issue("a"));
    scratch.batch("touch src/x.txt", "false").end().exits(1);
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[1]["retry"]["ruleId"], "own");
}

#[test]
fn a_command_that_takes_its_supervisor_along_has_failed() {
    let scratch = scratch(QUICK);
    gate(&scratch, &["--issue", "a"], "kill -KILL $PPID; sleep 600")
        .end()
        .exits(1);
    let tried = rows(&scratch, "gate.attempt");
    assert_eq!(tried.len(), 2, "{tried:?}");
    assert_eq!(tried[1]["failureClasses"], json!(["supervisor_lost"]));
    assert_eq!(tried[1]["retry"]["ruleId"], "operational_retry");
    scratch.no_process_left();
}

#[test]
fn a_folder_without_a_repository_is_gated_too() {
    let scratch = scratch(QUICK);
    let folder = scratch.folder().join("bare");
    fs::create_dir(&folder).unwrap();
    gate(&scratch, &[], "true").within(&folder).end().exits(0);
    assert!(folder.join(".premath/harness_trajectory.jsonl").exists());
}

#[test]
fn one_command_is_gated_by_one_process_at_a_time() {
    let scratch = scratch(QUICK);
    let line = "touch \"$HOME/up\"; until [ -e \"$HOME/go\" ]; do sleep 0.05; done";
    let first = gate(&scratch, &[], line).start();
    let up = scratch.home().join("up");
    until(PATIENCE, || up.exists().then_some(())).expect("the command starts");
    gate(&scratch, &[], line).end().exits(1).says("was held by");
    // Another command is not business of its.
    gate(&scratch, &[], "true").end().exits(0);
    fs::write(scratch.home().join("go"), "").unwrap();
    first.wait().exits(0);
    assert_eq!(rows(&scratch, "gate.attempt").len(), 2);
}

#[test]
fn a_gate_hands_up_under_the_instruction_that_the_batch_has() {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    scratch.premath(["init"]).end().exits(0);
    let line = "echo 'check_failed: told' >&2; exit 1";
    gate(&scratch, &["--issue", "a"], line).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");

    // One that may not update issues blocks none, and that is reported.
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    scratch.premath(["init"]).end().exits(0);
    for entry in fs::read_dir(scratch.root.join("instructions")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("issue_update"), "{text}");
        fs::write(&path, text.replace("issue_update", "dep_add")).unwrap();
    }
    gate(&scratch, &["--issue", "a"], line)
        .end()
        .exits(1)
        .says("not escalated");
    assert_eq!(scratch.issue("a"), issue("a"));
}
