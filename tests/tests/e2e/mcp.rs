//! Issue memory by MCP: for a public client, and beside everything else that
//! changes it.

use premath_tests::{Length, Scratch, Tools, binaries, issue, skipped, workspace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Writes the instruction, with every change claimed.
pub(super) fn with_instruction(scratch: &Scratch) {
    scratch.premath(["init"]).end().exits(0);
    let folder = scratch.root.join("instructions");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut envelope: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        envelope["capabilityClaims"] = json!(["capabilities.change_morphisms.all"]);
        fs::write(&path, envelope.to_string()).unwrap();
    }
}

/// A Python that has the public client, where there is one.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("PREMATH_TESTS_MCP_PYTHON").map(PathBuf::from);
    let path = named.unwrap_or_else(|| workspace().join("target/ci-tools/mcp/bin/python"));
    path.is_file().then_some(path)
}

/// Returns the turn of a batch's step; a session and a row are left too.
fn turn_of_a_batch(scratch: &Scratch) -> Value {
    scratch
        .batch("true", "true")
        .args(["--labels", "none"])
        .end()
        .exits(0);
    scratch
        .worker(0, "w", "true", "true")
        .args(["--max-steps", "1"])
        .end()
        .exits(0);
    scratch
        .premath(["harness-session", "write", "--issue-id", "b"])
        .end()
        .exits(0);
    let turn = fs::read_dir(scratch.root.join("artifacts/ciwitness"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".turn.json"))
        .unwrap();
    serde_json::from_slice(&fs::read(turn).unwrap()).unwrap()
}

/// Returns what the public client lists, and what its calls are answered.
fn answers_to_client(scratch: &Scratch, python: &Path, calls: &[Value]) -> Value {
    let file = scratch.folder().join("calls.json");
    fs::write(&file, json!(calls).to_string()).unwrap();
    scratch
        .run(python)
        .arg(workspace().join("tests/tests/e2e/mcp_client.py"))
        .arg(&file)
        .arg(&binaries().premath)
        .args(["mcp-serve", "--repo-root"])
        .arg(&scratch.root)
        .end()
        .exits(0)
        .json()
}

/// A call of every tool that is accepted, in an order in which each can be.
fn calls(lease: &Value, turn: &Value) -> Vec<(&'static str, Value)> {
    vec![
        ("issue_ready", json!({})),
        ("issue_list", json!({"status": "open"})),
        ("issue_blocked", json!({})),
        ("issue_claim", json!({"id": "b", "assignee": "me"})),
        ("issue_lease_renew", lease.clone()),
        ("issue_lease_projection", json!({})),
        ("issue_lease_release", lease.clone()),
        ("issue_update", json!({"id": "c", "notes": "seen"})),
        ("issue_discover", json!({"parent": "b", "title": "Found"})),
        ("dep_diagnostics", json!({"graphScope": "full"})),
        ("harness_session_read", json!({})),
        ("harness_trajectory_query", json!({"mode": "latest"})),
        ("join_check", turn["input"].clone()),
        ("issue_add", json!({"title": "Another"})),
        ("issue_check", json!({})),
        ("instruction_check", json!({})),
        ("observe_latest", json!({})),
        ("observe_needs_attention", json!({})),
        (
            "observe_instruction",
            json!({"instructionRef": "instruction://none/a"}),
        ),
        ("issue_retry", json!({"issues": ["c"], "note": "again"})),
    ]
}

/// Calls for a batch, where none runs.
fn without_a_batch() -> Vec<(&'static str, Value)> {
    vec![
        ("batch_pause", json!({})),
        ("batch_resume", json!({})),
        ("batch_drain", json!({"reason": "an end"})),
        ("batch_stop", json!({})),
        ("batch_lanes_add", json!({"count": 1})),
        ("batch_lanes_remove", json!({"lane": "worker.1"})),
        ("issue_cancel", json!({"issues": ["c"], "then": "open"})),
        ("issue_say", json!({"issues": ["c"], "text": "look"})),
    ]
}

/// Calls that are refused, with the class.
fn refused(lease: Value) -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("issue_lease_release", lease, "lease_missing"),
        (
            "issue_claim",
            json!({"id": "a", "assignee": "me"}),
            "lease_issue_closed",
        ),
        // No turn of the issue was admitted.
        (
            "dep_add",
            json!({"issueId": "c", "dependsOnId": "b"}),
            "mutation.use_evidence_missing",
        ),
        (
            "dep_remove",
            json!({"issueId": "c", "dependsOnId": "b"}),
            "mutation.use_evidence_missing",
        ),
        (
            "dep_replace",
            json!({"issueId": "c", "dependsOnId": "b", "toType": "related"}),
            "mutation.use_evidence_missing",
        ),
    ]
}

#[test]
fn a_public_client_drives_every_tool() {
    let Some(python) = python() else {
        return skipped(
            "the public MCP client",
            "target/ci-tools/mcp has no Python with the package `mcp`",
        );
    };
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    with_instruction(&scratch);
    let turn = turn_of_a_batch(&scratch);
    let lease = json!({"id": "b", "assignee": "me", "leaseId": "lease1_b_me", "generation": 1});
    let accepted = calls(&lease, &turn);
    let refused = refused(lease);
    let unheard = without_a_batch();
    let calls: Vec<Value> = accepted
        .iter()
        .map(|(tool, arguments)| json!([tool, arguments]))
        .chain(refused.iter().map(|(tool, args, _)| json!([tool, args])))
        .chain(unheard.iter().map(|(tool, args)| json!([tool, args])))
        .collect();
    let said = answers_to_client(&scratch, &python, &calls);
    let mut names: Vec<_> = accepted.iter().map(|(tool, _)| *tool).collect();
    names.extend(refused.iter().map(|(tool, _, _)| *tool));
    names.extend(unheard.iter().map(|(tool, _)| *tool));
    names.sort_unstable();
    names.dedup();
    assert_eq!(said["tools"], json!(names));
    let answers = said["answers"].as_array().unwrap();
    let (right, wrong) = answers.split_at(accepted.len());
    for answer in right {
        assert_eq!(answer["isError"], false, "{answer}");
    }
    assert_eq!(right[12]["answer"]["result"], "accepted");
    assert_eq!(right[11]["answer"]["items"][0]["issueId"], "a");
    for (answer, (tool, _, class)) in wrong.iter().zip(&refused) {
        assert_eq!(answer["isError"], true, "{tool}");
        assert_eq!(answer["answer"]["failureClasses"], json!([class]));
    }
    for (answer, (tool, _)) in wrong[refused.len()..].iter().zip(&unheard) {
        assert_eq!(answer["isError"], true, "{tool}");
        let error = answer["answer"]["error"].as_str().unwrap();
        assert!(error.starts_with("no batch is running"), "{tool}: {error}");
    }
}

/// What was acknowledged: notes by issue, and issues by id with their title.
#[derive(Default)]
struct Acknowledged {
    notes: BTreeMap<String, String>,
    filed: BTreeMap<String, String>,
}

/// How many issues each filer files: a batch closes every one of them.
const FILED_MOST: usize = 12;

/// An MCP client: claims its own issue, changes it under the lease, releases
/// it, and files work for the batches.
fn by_tools(scratch: &Scratch, me: &str, is_running: &dyn Fn() -> bool) -> Acknowledged {
    let mut done = Acknowledged::default();
    let mut tools = Tools::of(scratch);
    let mut round = 0;
    while is_running() {
        round += 1;
        let claim = json!({"id": me, "assignee": me, "leaseTtlSeconds": 600});
        let claimed = tools.call("issue_claim", claim);
        let lease = &claimed["issue"]["lease"];
        let (id, generation) = (&lease["leaseId"], &lease["generation"]);
        assert_eq!(generation, round);
        let key = json!({"leaseId": id, "owner": me, "generation": generation});
        let notes = format!("{me} {round}");
        let edit = json!({"id": me, "notes": notes, "lease": key});
        tools.call("issue_update", edit);
        done.notes.insert(me.to_owned(), notes);
        let key = json!({"id": me, "assignee": me, "leaseId": id, "generation": generation});
        tools.call("issue_lease_release", key);
        if done.filed.len() < FILED_MOST {
            let title = format!("work {round} of {me}");
            let wish = json!({"parent": "base", "title": title});
            let found = tools.call("issue_discover", wish);
            let id = found["issue"]["id"].as_str().unwrap().to_owned();
            assert_eq!(done.filed.insert(id, title), None, "an id was given twice");
        }
    }
    done
}

/// A person's shell: changes its own issue, and files work for the batches.
fn by_command(scratch: &Scratch, me: &str, is_running: &dyn Fn() -> bool) -> Acknowledged {
    let mut done = Acknowledged::default();
    let mut round = 0;
    while is_running() {
        round += 1;
        let notes = format!("{me} {round}");
        scratch
            .premath(["issue", "update", me, "--notes", &notes])
            .end()
            .exits(0);
        done.notes.insert(me.to_owned(), notes);
        if done.filed.len() < FILED_MOST {
            let title = format!("work {round} of {me}");
            let added = scratch.premath(["issue", "add", &title, "--json"]).end();
            let added = added.exits(0).json();
            let id = added["issue"]["id"].as_str().unwrap().to_owned();
            assert_eq!(done.filed.insert(id, title), None, "an id was given twice");
        }
    }
    done
}

/// Checks that all that was acknowledged is there; returns how many issues were
/// filed.
#[track_caller]
fn filed_and_kept(done: &[Acknowledged], issues: &BTreeMap<String, Value>) -> usize {
    let mut filed = 0;
    for acknowledged in done {
        for (id, notes) in &acknowledged.notes {
            assert_eq!(issues[id]["notes"], **notes, "{id}");
            assert_eq!(issues[id]["status"], "open", "{id}");
        }
        for (id, title) in &acknowledged.filed {
            assert_eq!(issues[id]["title"], **title, "{id}");
            assert_eq!(issues[id]["status"], "closed", "{id}");
            assert_eq!(issues[id]["lease_generation"], 1, "{id} was claimed twice");
            filed += 1;
        }
    }
    filed
}

/// An issue that no batch works on.
fn epic(id: &str) -> Value {
    let mut row = issue(id);
    row["issue_type"] = "epic".into();
    row
}

#[test]
fn nothing_that_was_acknowledged_is_lost_between_clients_commands_and_coordinators() {
    const CLIENTS: [&str; 3] = ["m-1", "m-2", "m-3"];
    const SHELLS: [&str; 2] = ["s-1", "s-2"];
    let long = Duration::from_secs(60);
    let length = Length::asked("60 s of clients, commands and coordinators on one memory")
        .pick(Duration::from_secs(4), long);
    let mut rows: Vec<_> = CLIENTS.iter().chain(&SHELLS).map(|id| epic(id)).collect();
    rows.push(epic("base"));
    rows.extend((0..8).map(|n| issue(&format!("t-{n}"))));
    let scratch = Scratch::with_issues(4, &rows);
    with_instruction(&scratch);
    let until = Instant::now() + length;
    let failed = AtomicBool::new(false);
    let is_running = || Instant::now() < until && !failed.load(Ordering::Relaxed);
    let batch = |lanes: std::ops::Range<usize>, prefix: &str| {
        scratch
            .batch_on(&scratch.lanes[lanes], "true", "true")
            .args(["--worker-prefix", prefix])
    };
    let done: Vec<Acknowledged> = std::thread::scope(|threads| {
        let (scratch, is_running, failed, batch) = (&scratch, &is_running, &failed, &batch);
        // One failure ends the others too.
        let guarded = move |work: &dyn Fn() -> Acknowledged| {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let mut workers = Vec::new();
        for me in CLIENTS {
            workers.push(threads.spawn(move || guarded(&|| by_tools(scratch, me, is_running))));
        }
        for me in SHELLS {
            workers.push(threads.spawn(move || guarded(&|| by_command(scratch, me, is_running))));
        }
        for (lanes, prefix) in [(0..2, "a"), (2..4, "b")] {
            workers.push(threads.spawn(move || {
                guarded(&|| {
                    while is_running() {
                        batch(lanes.clone(), prefix).end().exits(0);
                    }
                    Acknowledged::default()
                })
            }));
        }
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    // What was filed last is worked on too.
    batch(0..4, "z").end().exits(0);
    let issues = scratch.issues();
    let filed = filed_and_kept(&done, &issues);
    assert!(filed >= CLIENTS.len() + SHELLS.len(), "{filed} were filed");
    let notes: usize = done.iter().map(|done| done.notes.len()).sum();
    assert_eq!(notes, CLIENTS.len() + SHELLS.len());
    assert_eq!(issues.len(), rows.len() + filed);
    assert_eq!(scratch.steps().len(), filed + 8);
    scratch.no_process_left();
}

#[test]
fn what_an_agent_in_a_lane_asks_for_is_filed_with_step_and_lease() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    with_instruction(&scratch);
    let call = |id: u64, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "agent", "version": "1"},
    });
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        call(
            2,
            "issue_discover",
            json!({"parent": "a", "title": "Found"}),
        ),
        call(3, "issue_update", json!({"id": "b", "title": "Mine"})),
        call(4, "issue_update", json!({"id": "a", "status": "closed"})),
    ];
    let said = scratch.home().join("said.jsonl");
    fs::write(scratch.home().join("asks.jsonl"), lines.join("\n") + "\n").unwrap();
    let work = r#"[ "$PREMATH_ISSUE_ID" != a ] ||
        "$E2E_PREMATH" mcp-serve < "$HOME/asks.jsonl" > "$HOME/said.jsonl""#;
    scratch
        .worker(0, "w", work, "true")
        .args(["--max-steps", "1"])
        .end()
        .exits(0);
    let answers: BTreeMap<u64, Value> = premath_tests::parse_rows(&fs::read(said).unwrap())
        .into_iter()
        .map(|row| (row["id"].as_u64().unwrap(), row["result"].clone()))
        .collect();
    assert_eq!(answers[&2]["structuredContent"]["queued"], true);
    for refused in [3, 4] {
        let classes = &answers[&refused]["structuredContent"]["failureClasses"];
        assert_eq!(classes, &json!(["mutation.use_evidence_missing"]));
    }
    assert_eq!(scratch.issue("b"), issue("b"));
    let issues = scratch.issues();
    let filed = issues.values().find(|row| row["title"] == "Found").unwrap();
    let step = &scratch.steps_of("a")[0]["stepId"];
    let mut by = filed["discovered_by"].clone();
    let right = by.as_object_mut().unwrap().remove("mutation_ref").unwrap();
    let right = right.as_str().unwrap();
    assert!(right.starts_with("mutation-ready://a/discover/"), "{right}");
    assert_eq!(
        by,
        json!({"step_id": step, "lease_id": "lease1_a_w", "generation": 1})
    );
    assert_eq!(filed["dependencies"][0]["depends_on_id"], "a");
}
