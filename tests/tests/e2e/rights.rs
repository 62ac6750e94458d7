//! What changes of issues rest on: the rights of turns, named in rows, and the
//! witnesses of those turns.

use premath_kernel::record::audit::digest_of;
use premath_tests::{Ended, PATIENCE, Running, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Returns the witness of a change that a step's row names, which holds.
fn change_of(scratch: &Scratch, step: &Value, phase: &str) -> Value {
    let id = step["stepId"].as_str().unwrap();
    let file = format!("artifacts/ciwitness/{id}.{phase}.json");
    let text = fs::read(scratch.root.join(file)).unwrap();
    let witness: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(witness["witnessKind"], "premath.harness.change_witness.v1");
    assert_eq!(witness["holds"], true, "{witness:#}");
    let reference = format!("ciwitness://{id}/{phase}/{}", digest_of(&witness));
    let named = step["witnessRefs"].as_array().unwrap();
    assert!(named.contains(&json!(reference)), "{step:#}");
    witness
}

/// Blocking and discovering rest on turns of their own: the rows name the
/// rights, and the escalation's turn has a witness that can be judged again.
#[test]
fn what_blocks_and_what_files_an_issue_names_its_right_and_its_turn() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let premath = binaries().premath.display().to_string();
    let work =
        format!(r#"[ "$PREMATH_ISSUE_ID" = a ] || '{premath}' issue discover b "more to do""#);
    let verify = r#"[ "$PREMATH_ISSUE_ID" != a ]"#;
    scratch.batch(&work, verify).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    let rights = |row: &Value, list: &str, prefix: &str| -> Vec<String> {
        let refs = row[list].as_array().unwrap().iter();
        let texts = refs.filter_map(Value::as_str).map(str::to_owned);
        texts.filter(|text| text.starts_with(prefix)).collect()
    };
    let step = &scratch.steps_of("a")[0];
    let blocked = rights(step, "witnessRefs", "mutation-ready://a/block/");
    assert_eq!(blocked.len(), 1, "{step:#}");
    assert_eq!(scratch.issue("a")["mutation_refs"], json!(blocked));
    let turn = rights(step, "witnessRefs", "ciwitness://worker.1.a.1/escalation/");
    assert_eq!(turn.len(), 1, "{step:#}");
    let file = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.escalation.json");
    let text = fs::read(&file).unwrap();
    let witness: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(witness["witnessKind"], "premath.harness.turn_witness.v1");
    assert_eq!(witness["admitted"], json!(["block", "discover"]));
    assert_eq!(witness["closeFailureClasses"], json!(["check_failed"]));
    let digest = digest_of(&witness);
    assert!(turn[0].ends_with(&digest), "{turn:?} {digest}");
    let check = ["harness-join-check", "--input", &file.display().to_string()];
    let judged = scratch.premath(check).end().exits(0);
    assert!(
        judged.stdout.contains("join      closed"),
        "{}",
        judged.stdout
    );

    let found = change_of(&scratch, step, "blocked");
    assert_eq!(found["issueId"], "a");
    assert_eq!(
        found["found"],
        json!({"status": "blocked", "leased": false, "discoveredFrom": []})
    );

    let step = &scratch.steps_of("b")[0];
    let filed = rights(step, "witnessRefs", "mutation-ready://b/discover/");
    assert_eq!(filed.len(), 1, "{step:#}");
    let shown = change_of(&scratch, step, "filed");
    assert_eq!(shown["found"]["status"], "open");
    assert_eq!(shown["found"]["discoveredFrom"], json!(["b"]));
    let found = scratch.issues();
    let mut found = found.values().filter(|row| row["title"] == "more to do");
    let found = found.next().unwrap();
    assert_eq!(
        found["discovered_by"]["mutation_ref"], filed[0],
        "{found:#}"
    );
}

/// Without a transport for lease actions none is taken: the lease ends by time.
#[test]
fn on_a_local_repl_a_step_that_fails_keeps_its_lease() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = scratch.batch("exit 1", "true");
    let batch = batch.args(["--host-action-transport", "local-repl"]);
    batch.end().exits(1);
    let step = &scratch.steps_of("a")[0];
    let class = "control_plane_host_action_mcp_transport_required";
    assert_eq!(step["resultClass"], class, "{step:#}");
    assert_eq!(step["failureClasses"], json!(["work_failed", class]));
    let row = scratch.issue("a");
    assert_eq!(row["status"], "in_progress");
    assert!(row["lease"].is_object(), "{row:#}");
}

/// Waits until a batch has stopped itself.
fn until_stopped(batch: &Running) {
    let stat = format!("/proc/{}/stat", batch.pid().as_raw_nonzero());
    let stopped = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
    until(PATIENCE, || stopped().then_some(())).expect("the batch stops itself");
}

/// Waits until a batch has stopped itself, changes the issue store, and
/// continues the batch.
fn changed_behind(scratch: &Scratch, at: &str, change: impl FnOnce(&str) -> String) -> Ended {
    let work = r#"[ "$PREMATH_ISSUE_ID" != a ] || echo x > src/a.txt"#;
    let verify = "[ -e src/a.txt ]";
    let batch = scratch.landing_batch(work, verify);
    let batch = batch.env("PREMATH_STOP_AT", at).start();
    until_stopped(&batch);
    let text = String::from_utf8(scratch.issue_bytes()).unwrap();
    scratch.write_issues(change(&text).as_bytes());
    batch.signal(Signal::CONT);
    batch.wait()
}

/// Closing is not done until memory shows it: the landing is taken back.
#[test]
fn a_close_that_reads_back_differently_is_a_failure() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let ended = changed_behind(&scratch, "issue-closed", |text| {
        format!("{text}{}\n", issue("a"))
    });
    let step = &scratch.steps_of("a")[0];
    let class = "mutation_read_back_mismatch";
    assert_eq!(
        step["failureClasses"][0], class,
        "{step:#}\n{}",
        ended.stderr
    );
    assert_ne!(step["resultClass"], "completed");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(scratch.file_on("main", "src/a.txt"), None);
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.mutation.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    assert_eq!(witness["holds"], false);
}

#[test]
fn a_block_that_reads_back_differently_is_a_failure() {
    let scratch = Scratch::with_issues(1, &[issue("b")]);
    let ended = changed_behind(&scratch, "issue-blocked", |text| {
        format!("{text}{}\n", issue("b"))
    });
    let step = &scratch.steps_of("b")[0];
    let classes = step["failureClasses"].as_array().unwrap();
    let class = json!("mutation_read_back_mismatch");
    assert!(classes.contains(&class), "{step:#}\n{}", ended.stderr);
    assert_eq!(scratch.issue("b")["status"], "open");
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.b.1.blocked.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    assert_eq!(witness["holds"], false);
}

/// Asks a server for changes, one after the other; returns what each call was
/// answered.
fn asked(scratch: &Scratch, calls: &[(&str, Value)]) -> Vec<Value> {
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    });
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        let params = json!({"name": tool, "arguments": arguments});
        let id = number + 1;
        lines.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = scratch.folder().join("messages");
    fs::write(&file, text).unwrap();
    let premath = binaries().premath.display();
    let serve = format!("'{premath}' mcp-serve < '{}'", file.display());
    let ended = scratch.run("bash".as_ref()).args(["-c", &serve]).end();
    let answers = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut answers: Vec<Value> = answers.collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers.remove(0);
    let content = |answer: &Value| answer["result"]["structuredContent"].clone();
    answers.iter().map(content).collect()
}

/// A batch whose authority is removed between the turn and the close: the
/// turn of `a` was admitted, and nothing used it.
fn unused_turn(scratch: &Scratch) -> String {
    scratch.premath(["init"]).end().exits(0);
    let folder = scratch.root.join("instructions");
    let path = fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut envelope: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    envelope["capabilityClaims"] = json!(["capabilities.change_morphisms"]);
    fs::write(&path, envelope.to_string()).unwrap();
    let run = scratch.run(&binaries().coordinator).arg("--json");
    let run = run.arg("--worktree").arg(&scratch.lanes[0]);
    let run = run.args(["--work-cmd", "true", "--verify-cmd", "true"]);
    let batch = run.env("PREMATH_STOP_AT", "turn-witnessed").start();
    until_stopped(&batch);
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    batch.signal(Signal::CONT);
    batch.wait().exits(1);
    fs::rename(&aside, &path).unwrap();
    let step = &scratch.steps_of("a")[0];
    let refs = step["witnessRefs"].as_array().unwrap().iter();
    let mut refs = refs.filter_map(Value::as_str);
    let turn = refs.find(|text| text.starts_with("ciwitness://worker.1.a.1/turn/"));
    turn.unwrap().to_owned()
}

#[test]
fn a_client_closes_an_issue_and_changes_edges_only_by_an_admitted_turn_and_once() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    let turn = unused_turn(&scratch);
    let update = |id: &str, status: &str, turn: Option<&str>| {
        (
            "issue_update",
            json!({"id": id, "status": status, "turn": turn}),
        )
    };
    let edge = |id: &str, on: &str, turn: Option<&str>| {
        (
            "dep_add",
            json!({"issueId": id, "dependsOnId": on, "turn": turn}),
        )
    };
    let turn = Some(&*turn);
    let refused = |calls: &[(&str, Value)]| {
        let before = scratch.issue_bytes();
        for answer in asked(&scratch, calls) {
            let classes = &answer["failureClasses"];
            assert_eq!(
                *classes,
                json!(["mutation.use_evidence_missing"]),
                "{answer}"
            );
        }
        assert_eq!(scratch.issue_bytes(), before);
    };
    // No turn, the turn of another issue, a change that it does not admit.
    refused(&[
        update("a", "closed", None),
        edge("a", "b", None),
        update("b", "closed", turn),
        edge("b", "c", turn),
        update("a", "blocked", turn),
        update("a", "tombstone", turn),
    ]);
    let file = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.turn.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace("\"dep_add\"", "\"block\"")).unwrap();
    refused(&[update("a", "blocked", turn), update("a", "closed", turn)]);
    fs::write(&file, whole).unwrap();

    for change in [edge("a", "b", turn), update("a", "closed", turn)] {
        let answer = &asked(&scratch, &[change])[0];
        assert!(answer["failureClasses"].is_null(), "{answer}");
    }
    let row = scratch.issue("a");
    assert_eq!(row["status"], "closed");
    let rights = row["mutation_refs"].as_array().unwrap();
    assert_eq!(rights.len(), 2, "{row:#}");
    assert_eq!(row["instructed_change"]["mutation_ref"], rights[1]);
    let right = rights[1].as_str().unwrap();
    assert!(right.starts_with("mutation-ready://a/close/"), "{right}");

    let reopened = asked(&scratch, &[update("a", "open", None)]);
    assert!(reopened[0]["failureClasses"].is_null(), "{}", reopened[0]);
    refused(&[update("a", "closed", turn), edge("a", "c", turn)]);
}

/// A turn whose work did not land closes nothing.
#[test]
fn a_turn_whose_work_is_on_a_salvage_branch_closes_nothing() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let ended = changed_behind(&scratch, "issue-closed", |text| {
        format!("{text}{}\n", issue("a"))
    });
    let step = &scratch.steps_of("a")[0];
    assert!(step["salvage"].is_string(), "{step:#}\n{}", ended.stderr);
    let refs = step["witnessRefs"].as_array().unwrap().iter();
    let mut refs = refs.filter_map(Value::as_str);
    let turn = refs.find(|text| text.contains("/turn/")).unwrap();
    scratch.premath(["init"]).end().exits(0);
    let close = json!({"id": "a", "status": "closed", "turn": turn});
    let answer = &asked(&scratch, &[("issue_update", close)])[0];
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("did not land"), "{answer}");
    assert_eq!(scratch.issue("a")["status"], "open");
}
