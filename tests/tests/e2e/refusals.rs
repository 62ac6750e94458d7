//! What is refused before dispatch, and commands that never end.

use premath_kernel::policy::turn::{self, TurnPolicy};
use premath_tests::{Ended, Run, Scratch, binaries, issue, workspace};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn blocked_by(id: &str, blocker: &str) -> Value {
    let mut row = issue(id);
    row["dependencies"] = json!([{"issue_id": id, "depends_on_id": blocker, "type": "blocks"}]);
    row
}

/// Runs what must be refused, and checks that nothing was touched.
#[track_caller]
fn refused(scratch: &Scratch, run: Run, code: i32) -> Ended {
    let before = scratch.issue_bytes();
    let ended = run.end().exits(code);
    assert!(
        before == scratch.issue_bytes(),
        "issue memory was touched:\n{}",
        String::from_utf8_lossy(&scratch.issue_bytes())
    );
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    ended
}

#[test]
fn a_cycle_is_named_and_refuses_the_batch() {
    let rows = [
        blocked_by("c-1", "c-2"),
        blocked_by("c-2", "c-3"),
        blocked_by("c-3", "c-1"),
        issue("free"),
    ];
    let scratch = Scratch::with_issues(1, &rows);
    refused(&scratch, scratch.batch("true", "true"), 3).says("c-1 -> c-2 -> c-3 -> c-1");
    assert!(!scratch.trajectory_path().exists(), "rows were written");
}

#[test]
fn a_cycle_refuses_a_single_worker_too() {
    let rows = [blocked_by("c-1", "c-2"), blocked_by("c-2", "c-1")];
    let scratch = Scratch::with_issues(1, &rows);
    refused(&scratch, scratch.worker(0, "w", "true", "true"), 3).says("c-1 -> c-2 -> c-1");
}

#[test]
fn a_corrupt_line_in_the_middle_is_named_and_the_file_untouched() {
    let scratch = Scratch::new(1);
    let text = format!(
        "{}\n{{\"id\": \"b\", nonsense}}\n{}\n",
        issue("a"),
        issue("c")
    );
    scratch.write_issues(text.as_bytes());
    for run in [
        scratch.batch("true", "true"),
        scratch.worker(0, "w", "true", "true"),
    ] {
        let ended = refused(&scratch, run, 2);
        assert!(
            ended.stderr.contains("issues.jsonl:2:13: "),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_missing_issue_memory_is_an_input_error() {
    let scratch = Scratch::new(1);
    scratch
        .batch("true", "true")
        .end()
        .exits(2)
        .says("issues.jsonl");
    assert!(!scratch.issues_path().exists());
}

#[test]
fn a_missing_work_command_is_a_usage_error() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    refused(&scratch, scratch.batch("", "true"), 2)
        .says("no work command")
        .says("--agent codex (use under [agent] in harness.toml), or give --work-cmd");
}

#[test]
fn a_missing_verify_command_is_a_usage_error() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    refused(&scratch, scratch.batch("true", ""), 2).says("no verify command");
}

#[test]
fn a_command_whose_program_is_not_there_refuses_the_batch_before_it_begins() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    for run in [
        scratch.batch("no-such-agent --go", "true"),
        scratch.worker(0, "w", "no-such-agent --go", "true"),
    ] {
        refused(&scratch, run, 2)
            .says("--work-cmd: program `no-such-agent` of the work command not found on PATH");
    }
    refused(&scratch, scratch.batch("true", "no-such-test"), 2)
        .says("--verify-cmd: program `no-such-test` of the verification command not found on PATH");
    let config = "[batch]\nstartup_cmd = \"true\"\n\n[landing]\ncheck_cmd = \"no-such-check\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    refused(&scratch, scratch.landing_batch("true", "true"), 2)
        .says("harness.toml:5: `check_cmd`: program `no-such-check` of the landing check command not found on PATH");
    assert!(!scratch.trajectory_path().exists(), "rows were written");
}

#[test]
fn a_program_that_the_setup_may_bring_is_not_asked_for() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let config = "[worktrees]\nsetup_cmd = \"true\"\n[backoff]\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    scratch.batch("no-such-agent", "true").end().exits(1);
    let rows = scratch.steps_of("a");
    assert_eq!(rows[0]["failureClasses"], json!(["executor_unavailable"]));
}

#[test]
fn an_agent_that_is_not_installed_refuses_the_batch_with_how_to_get_it() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let folder = scratch.folder().join("bin");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("codex"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let config = "[agent]\nuse = [\"codex\", \"gemini\"]\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let mut run = scratch
        .run(&binaries().coordinator)
        .args(["--override-reason", "test", "--verify-cmd", "true"])
        .env("PATH", &folder);
    for lane in &scratch.lanes {
        run = run.arg("--worktree").arg(lane);
    }
    refused(&scratch, run, 2)
        .says("harness.toml:2: `use`: gemini is not installed: not found on PATH")
        .says("list installed agents with `premath agents check`");
}

#[test]
fn an_unknown_configuration_key_suggests_the_near_one() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    fs::write(
        scratch.root.join("harness.toml"),
        "[batch]\nlaese_ttl = \"1h\"\n",
    )
    .unwrap();
    refused(&scratch, scratch.batch("true", "true"), 2).says("did you mean `lease_ttl`?");
}

#[test]
fn a_lifetime_of_leases_that_is_out_of_range_names_its_source() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let config = scratch.root.join("harness.toml");
    fs::write(config, "[batch]\nlease_ttl = \"1s\"\n").unwrap();
    refused(&scratch, scratch.batch("true", "true"), 2)
        .says("harness.toml:2: `lease_ttl`: 1s is out of range; expected 30s to 24h");
    let run = scratch.batch("true", "true");
    refused(&scratch, run.args(["--lease-ttl-seconds", "1"]), 2)
        .says("--lease-ttl-seconds: 1 s is out of range; expected 30 to 86400 s");
}

#[test]
fn a_file_that_a_key_names_and_that_is_missing_is_an_error_of_the_key() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let config = scratch.root.join("harness.toml");
    for (table, key) in [
        ("batch", "retry_policy"),
        ("batch", "turn_policy"),
        ("prompt", "template"),
    ] {
        fs::write(&config, format!("[{table}]\n{key} = \"nofile\"\n")).unwrap();
        let ended = refused(&scratch, scratch.batch("true", "true"), 2).says(&format!(
            "harness.toml:2: `{key}`: cannot read nofile: no such file"
        ));
        assert!(!ended.stderr.contains("premath init"), "{}", ended.stderr);
    }
}

#[test]
fn a_batch_without_worktrees_is_a_usage_error() {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    refused(&scratch, scratch.batch("true", "true"), 2).says("no worktree");
}

#[test]
fn a_worktree_of_another_repository_is_a_usage_error() {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    let other = Scratch::new(1);
    refused(&scratch, scratch.batch_on(&other.lanes, "true", "true"), 2)
        .says("is not one of the repository");
}

#[test]
fn a_retry_policy_whose_digest_does_not_match_is_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let path = "worktrees.example/project/policies/control/harness-retry-policy-v1.json";
    let text = fs::read_to_string(workspace().join(path)).unwrap();
    let mut policy: Value = serde_json::from_str(&text).unwrap();
    policy["defaultRule"]["maxAttempts"] = 9.into();
    fs::write(scratch.root.join("policy.json"), policy.to_string()).unwrap();
    let config = "[batch]\nretry_policy = \"policy.json\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    refused(&scratch, scratch.batch("true", "true"), 3).says("policy.json");
}

#[test]
fn a_turn_policy_whose_digest_does_not_match_is_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let config = scratch.root.join("harness.toml");
    fs::write(&config, "[batch]\nturn_policy = \"policy.json\"\n").unwrap();
    let policy = scratch.root.join("policy.json");
    let text = TurnPolicy::embedded_text();
    fs::write(
        &policy,
        text.replace("\"maxCalls\": 2000", "\"maxCalls\": 7"),
    )
    .unwrap();
    refused(&scratch, scratch.batch("true", "true"), 3)
        .says("cannot use the turn policy")
        .says("policy.json: wrong policyDigest")
        .says("premath policy seal");
    let classes = &scratch.trajectory()[0]["failureClasses"];
    assert_eq!(*classes, json!(["turn_policy_digest_mismatch"]));

    // The usual place counts without a key.
    fs::remove_file(&config).unwrap();
    let usual = scratch.root.join(turn::POLICY_PLACE);
    fs::create_dir_all(usual.parent().unwrap()).unwrap();
    fs::write(&usual, text.replacen("\"arguments\"", "\"argument\"", 1)).unwrap();
    refused(&scratch, scratch.batch("true", "true"), 2)
        .says("harness-turn-policy-v1.json")
        .says("argument`");
}

#[test]
fn instruction_linked_mode_without_an_instruction_is_refused_in_plain_words() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let run = scratch
        .batch("true", "true")
        .args(["--mutation-mode", "instruction-linked"]);
    refused(&scratch, run, 3)
        .says("no instruction given")
        .says("create one with `premath instruction new`");
}

#[test]
fn an_override_without_a_reason_is_a_usage_error() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let run = scratch
        .batch("true", "true")
        .args(["--override-reason", " "]);
    // The flag is given twice, so clap speaks first; either way it is usage.
    refused(&scratch, run, 2);
}

#[test]
fn a_hung_work_command_is_killed_with_its_group_and_the_batch_continues() {
    let rows = [issue("hung"), issue("well-1"), issue("well-2")];
    let scratch = Scratch::with_issues(1, &rows);
    let config = "[supervision]\nstep_limit = \"300ms\"\ngrace = \"200ms\"\n\
                  [backoff]\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    // It ignores TERM, and so does what it starts, of which one leaves the group.
    let work = r#"[ "$PREMATH_ISSUE_ID" = hung ] || exit 0
trap '' TERM
sleep 1000 &
setsid sleep 1000 &
sleep 1000"#;
    let ended = scratch.batch(work, "true").end().exits(1);
    let rows = scratch.steps_of("hung");
    assert_eq!(rows.len(), 3, "{}", ended.stderr);
    for row in rows {
        assert_eq!(row["failureClasses"], json!(["gate_timeout"]));
    }
    assert_eq!(scratch.issue("hung")["status"], "open");
    for id in ["well-1", "well-2"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
    assert!(ended.took < Duration::from_secs(60));
    scratch.no_process_left();
}
