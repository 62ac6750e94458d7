//! The shipped schemas, against real documents; that they are those of the
//! code is a test of the `premath` command.

use boon::{Compiler, SchemaIndex, Schemas};
use premath_kernel::authority::instruction::INSTRUCTION_POLICY_FILE;
use premath_kernel::policy::retry::RetryPolicy;
use premath_kernel::policy::turn::TurnPolicy;
use premath_kernel::record::trajectory::{
    KPI_WINDOW, ProjectionMode, StepRow, project, throughput,
};
use premath_tests::{PATIENCE, Scratch, binaries, issue, until, workspace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The shipped schemas, compiled.
struct Forms {
    schemas: Schemas,
    /// By kind: the schema as it is shipped, and one that admits no property
    /// that it does not describe.
    compiled: BTreeMap<String, [SchemaIndex; 2]>,
    /// The kinds of answers, by action.
    answers: BTreeMap<String, String>,
    /// The kinds that a document was held against.
    seen: BTreeSet<String>,
}

fn folder() -> PathBuf {
    workspace().join("shared/schemas")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Makes a schema refuse every property that it does not describe.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("anyOf")
                && !fields.contains_key("oneOf")
            {
                fields.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

impl Forms {
    fn shipped() -> Self {
        let mut forms = Self {
            schemas: Schemas::new(),
            compiled: BTreeMap::new(),
            answers: BTreeMap::new(),
            seen: BTreeSet::new(),
        };
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        let mut places = Vec::new();
        for entry in fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let kind = name.strip_suffix(".schema.json").unwrap().to_owned();
            let open = read(&path);
            for action in open["properties"]["action"]["enum"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let action = action.as_str().unwrap().to_owned();
                let before = forms.answers.insert(action, kind.clone());
                assert_eq!(before, None, "two kinds of one action");
            }
            let mut closed = open.clone();
            // What the alternatives describe is closed by itself.
            if closed.get("anyOf").is_none() {
                close(&mut closed);
            }
            let both = [("open", open), ("closed", closed)].map(|(form, schema)| {
                let place = format!("file:///{form}/{kind}.schema.json");
                compiler.add_resource(&place, schema).unwrap();
                place
            });
            places.push((kind, both));
        }
        // One may refer to another.
        for (kind, both) in places {
            let both = both.map(|place| {
                compiler
                    .compile(&place, &mut forms.schemas)
                    .unwrap_or_else(|error| panic!("{kind}: {error:#}"))
            });
            forms.compiled.insert(kind, both);
        }
        forms
    }

    fn fault(&self, kind: &str, form: usize, document: &Value) -> Option<String> {
        let compiled = self.compiled.get(kind);
        let compiled = compiled.unwrap_or_else(|| panic!("no schema of {kind}"))[form];
        let fault = self.schemas.validate(document, compiled).err()?;
        Some(format!("{fault:#}"))
    }

    /// Validates a foreign document against a schema.
    #[track_caller]
    fn admit(&mut self, kind: &str, document: &Value) {
        if let Some(fault) = self.fault(kind, 0, document) {
            panic!("{kind}: {fault}\n{document:#}");
        }
        self.seen.insert(kind.to_owned());
    }

    /// Holds a document of ours against a schema, which must describe every
    /// property of it.
    #[track_caller]
    fn admit_ours(&mut self, kind: &str, document: &Value) {
        if let Some(fault) = self.fault(kind, 1, document) {
            panic!("{kind}: {fault}\n{document:#}");
        }
        self.admit(kind, document);
    }

    /// Holds an answer of `premath` against the schema of its action.
    #[track_caller]
    fn admit_answer(&mut self, answer: &Value) {
        if answer.get("error").is_some() {
            return self.admit("answer-refusal", answer);
        }
        let action = answer["action"].as_str().unwrap();
        let kind = self.answers.get(action);
        let kind = kind
            .unwrap_or_else(|| panic!("no schema of {action}"))
            .clone();
        self.admit_ours(&kind, answer);
    }
}

/// What a person runs in the repository, in order.
const COMMANDS: &[&str] = &[
    "init .",
    "issue add One --id o-1 --labels x,y --description d",
    "issue add Two --id o-2",
    "issue update o-1 --notes n --override-reason r",
    "dep add o-2 o-1 --created-by ann",
    "dep add o-1 o-2",
    "dep replace o-2 o-1 --to-type waits-for",
    "issue list",
    "issue ready",
    "issue blocked",
    "issue show o-2",
    "issue show b",
    "issue show nowhere",
    "issue claim o-1 --assignee ann",
    "issue claim o-1 --assignee bob",
    "issue claim-next --assignee ann",
    "issue renew o-1 --owner ann",
    "issue show o-1",
    "issue release o-1",
    "issue discover o-1 Three --id o-3",
    "issue update o-3 --status deferred",
    "issue reopen o-3 o-3",
    "issue defer o-3",
    "issue import tasks.md --dry-run",
    "issue import tasks.md",
    "issue import harness.toml --format beads",
    "issue close o-3 --reason r",
    "issue close --epics",
    "issue delete o-1 --reason r",
    "issue delete o-3 --reason r",
    "issue check",
    "dep diagnostics",
    "dep remove o-2 o-1 --type waits-for",
    "issue compact",
    "harness-trajectory append --step-id s --action a --result-class failed --witness-ref w",
    "harness-trajectory query",
    "doctor --repair-into artifacts/readable.jsonl",
    "doctor",
    "clean --dry-run --salvage --older-than 0s",
    "clean --older-than 0s --disk-budget 1B",
    "uninstall --dry-run",
    "harness-join-check --input nowhere.json",
    "instruction new --intent work --id two",
    "doctrine check",
    "agents check",
    "instruction show nowhere.json",
    "retry decide --class check_failed",
    "policy show",
    "policy show --kind retry",
    "policy explain",
    "policy explain --tool edit --path a",
    "policy check policies/control/harness-turn-policy-v1.json",
    "policy seal policies/control/harness-turn-policy-v1.json",
    "policy diff policies/control/harness-turn-policy-v1.json",
    "policy show --policy nowhere.json",
    "kpi",
    "completions zsh harness-worker",
    "man premath-why",
    "report",
    "status",
    "plan --worktree ../lane-1 --override-reason r --work-cmd true --verify-cmd true",
    "plan --worktree nowhere --override-reason r --work-cmd true --verify-cmd true",
    "service install --user --every-night 22:00",
    "service install --user --forever --dry-run",
    "service show",
    "service uninstall",
    "why o-1",
    "why nowhere",
    "logs a",
    "logs nowhere",
    "diff a",
    "diff nowhere",
    "report --list",
    "report --since 1d",
    "report --batch nowhere",
    "review",
    "trust",
    "trust --yes",
    "sandbox explain",
    "audit",
    "issue accept-changes --all --override-reason r",
    "escalate --class work_failed --override-reason r",
    "escalate --class check_failed --override-reason r",
];

/// What an agent runs in its lane, in order.
const LANE_COMMANDS: &[&str] = &[
    "harness-session write --state active --issue-id o-1 --lineage-ref l",
    "harness-session bootstrap",
    "harness-session write --summary s --next-step n",
    "harness-session read",
    "harness-session bootstrap",
    "harness-feature write --feature-id f --status completed",
    "harness-feature read",
    "harness-feature next",
    "harness-feature check",
    "harness-feature next --path nowhere.json",
    "escalate --class check_failed --override-reason r",
];

/// Runs the commands that a person runs, and returns what they answer.
fn answers(scratch: &Scratch) -> Vec<Value> {
    let lane = &scratch.lanes[0];
    let within = |folder: &Path, line: &str| {
        let words = line.split_whitespace().chain(["--json"]);
        let answer = scratch.premath(words).within(folder).end().json();
        assert!(!line.is_empty() && answer.is_object(), "{line}: {answer}");
        answer
    };
    fs::write(scratch.root.join("tasks.md"), "- [ ] A task\n").unwrap();
    let server = scratch.premath(["serve", "--json"]).start();
    let served = until(PATIENCE, || server.events().into_iter().next());
    let here = COMMANDS.iter().map(|line| within(&scratch.root, line));
    let mut answers: Vec<Value> = here.collect();
    answers.push(served.expect("the server says where it is"));
    answers.extend(LANE_COMMANDS.iter().map(|line| within(lane, line)));
    let new = answers.iter().find(|a| a["action"] == "instruction.new");
    let path = new.unwrap()["path"].as_str().unwrap().to_owned();
    for command in ["check", "show"] {
        let args = ["instruction", command, &path, "--json"];
        answers.push(scratch.premath(args).end().exits(0).json());
    }
    answers
}

/// Holds the turns of the conformance suite against their schemas, and what
/// is answered of some of them.
fn turns(forms: &mut Forms, scratch: &Scratch) {
    let folder = scratch.folder().join("documents");
    let dir = folder.to_str().unwrap();
    let written = ["conformance", "documents", "--json", "--dir", dir];
    let count = scratch.premath(written).end().exits(0).json()["count"].as_u64();
    assert!(count > Some(1_000), "{count:?}");
    for (number, entry) in fs::read_dir(&folder).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("golden.") && !name.starts_with("adversarial.") {
            continue;
        }
        forms.admit("join-check-input", &read(&path));
        if number % 50 == 0 {
            let args = ["harness-join-check", "--explain", "--json", "--input"];
            let answer = scratch.premath(args).arg(&path).end().exits(0).json();
            forms.admit_ours("answer-harness-join-check", &answer);
            forms.admit_ours("turn-normalized", &answer["normalized"]);
        }
    }
}

/// Holds the events of a batch against their schema. One issue passes and finds
/// more, one fails permanently, one is tried again.
fn batch(forms: &mut Forms, scratch: &Scratch) {
    let work = r#"echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt"
case "$PREMATH_ISSUE_ID" in
a) "$E2E_PREMATH" issue discover a found --labels x --json > "$HOME/queued" ;;
c) [ "$PREMATH_LEASE_GENERATION" != 1 ] || exit 75 ;;
esac"#;
    let verify = r#"[ "$PREMATH_ISSUE_ID" != b ]"#;
    let batch = scratch.batch(work, verify).end().exits(1);
    let events = batch.events();
    for event in &events {
        forms.admit_ours("coordinator-event", event);
    }
    let printed: BTreeSet<_> = events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    for event in [
        "batch.started",
        "lane.booted",
        "issue.dispatched",
        "step.ended",
        "batch.ended",
    ] {
        assert!(
            printed.contains(event),
            "{event} was not reported: {printed:?}"
        );
    }
    let queued = read(&scratch.home().join("queued"));
    forms.admit_answer(&queued);
    forms.admit_ours("outbox-request", &queued["request"]);
}

/// Holds the report of a worker alone against its schema, and has one refused.
fn worker(forms: &mut Forms, scratch: &Scratch) {
    scratch.premath(["issue", "add", "last"]).end().exits(0);
    let worker = scratch.worker(0, "alone", "true", "true").end().exits(0);
    forms.admit_ours("worker-report", &worker.json());

    let refused = ["--override-reason", "r", "--support-until", "2020-01"];
    let refused = scratch.run(&binaries().worker).args(refused);
    let refused = refused.args(["--work-cmd", "true", "--verify-cmd", "true"]);
    refused
        .arg("--worktree-root")
        .arg(&scratch.lanes[0])
        .end()
        .exits(3);
}

/// Holds issues, trajectory and what is projected from it against their schemas.
fn memory(forms: &mut Forms, scratch: &Scratch) {
    for row in scratch.issues().values() {
        forms.admit_ours("issue", row);
    }
    let mut rows = Vec::new();
    for row in &scratch.trajectory() {
        forms.admit_ours("trajectory-row", row);
        rows.push(StepRow::parse(row.to_string().as_bytes()).unwrap());
    }
    let found = project(&rows, ProjectionMode::Latest, 20);
    forms.admit_ours("trajectory-projection", &json!(found));
    forms.admit_ours("throughput", &json!(throughput(&rows, KPI_WINDOW)));
}

/// Holds the files of lanes and the witnesses of steps against their schemas.
fn projections(forms: &mut Forms, scratch: &Scratch) {
    for lane in &scratch.lanes {
        let premath = lane.join(".premath");
        forms.admit_ours("session", &read(&premath.join("harness_session.json")));
        let ledger = read(&premath.join("harness_feature_ledger.json"));
        forms.admit_ours("feature-ledger", &ledger);
    }
    for entry in fs::read_dir(scratch.root.join("artifacts/ciwitness")).unwrap() {
        let witness = read(&entry.unwrap().path());
        let kind = witness["witnessKind"].as_str().unwrap();
        let kind = kind.strip_prefix("premath.harness.").unwrap();
        let kind = kind.strip_suffix("_witness.v1").unwrap();
        forms.admit_ours(&format!("witness-{kind}"), &witness);
        if kind == "turn" {
            forms.admit_ours("join-check-input", &witness["input"]);
            forms.admit_ours("turn-normalized", &witness["joinCheck"]["normalized"]);
        }
    }
}

/// Holds what commands answer and write against their schemas.
fn commands(forms: &mut Forms, scratch: &Scratch) {
    for answer in answers(scratch) {
        if answer["action"] == "harness-session.bootstrap" {
            forms.admit("bootstrap", &answer);
        }
        if answer["action"] == "instruction.new" {
            let path = Path::new(answer["path"].as_str().unwrap());
            forms.admit_ours("instruction", &read(path));
        }
        forms.admit_answer(&answer);
    }
    let policy = read(&scratch.root.join(INSTRUCTION_POLICY_FILE));
    forms.admit_ours("instruction-policy", &policy);
    forms.admit_ours("trust", &read(&scratch.root.join(".premath/trust.json")));
    for payload in [r#"{"assignee": "w"}"#, "{}"] {
        let args = [
            "transport-dispatch",
            "--json",
            "--action",
            "issue.claim_next",
        ];
        let run = scratch.premath(args).args(["--payload", payload]);
        forms.admit_ours("answer-transport-dispatch", &run.end().exits(0).json());
    }
}

/// The record of what operators wrote, and of what the batch might run.
fn own_checks(forms: &mut Forms, scratch: &Scratch) {
    let record = scratch.root.join(".premath/issues.jsonl.checks");
    forms.admit_ours("issue-checks", &read(&record));
    let folder = scratch.root.join("artifacts/ciwitness");
    let paths = fs::read_dir(folder).unwrap();
    let mut paths = paths.map(|entry| entry.unwrap().path());
    let authorised = paths.find(|path| path.to_string_lossy().ends_with(".start.checks.json"));
    forms.admit_ours("witness-checks", &read(&authorised.unwrap()));
}

/// The witnesses and events of work that is verified as one.
fn shared(forms: &mut Forms) {
    let scratch = super::batched::seven("");
    let ended = super::batched::batch(&scratch, "none").end().exits(0);
    for event in ended.events() {
        forms.admit_ours("coordinator-event", &event);
    }
    let folder = scratch.root.join("artifacts/ciwitness");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".shared.json") {
            forms.admit_ours("witness-shared", &read(&path));
            count += 1;
        }
    }
    assert_eq!(count, 4, "two runs of three, each with one verification");
    let diff = scratch.premath(["diff", "a", "--json"]).end().exits(0);
    forms.admit_ours("answer-diff", &diff.json());
}

#[test]
fn every_document_of_a_batch_and_every_answer_has_its_form() {
    let mut forms = Forms::shipped();
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b"), issue("c"), issue("d")]);
    super::steps::fast_retries(&scratch);
    let verified = ["issue", "update", "a", "--verification", "true"];
    scratch.premath(verified).end().exits(0);
    batch(&mut forms, &scratch);
    own_checks(&mut forms, &scratch);
    worker(&mut forms, &scratch);
    memory(&mut forms, &scratch);
    projections(&mut forms, &scratch);
    commands(&mut forms, &scratch);
    let worlds = super::worlds::documents();
    for (kind, document) in worlds.into_iter().chain(super::remote::documents()) {
        forms.admit_ours(kind, &document);
    }
    turns(&mut forms, &scratch);
    shared(&mut forms);
    for (kind, document) in super::observe::documents() {
        forms.admit_ours(kind, &document);
    }
    for document in super::notify::documents_of_a_batch() {
        forms.admit_ours("notification", &document);
    }
    for (kind, document) in super::control::documents() {
        forms.admit_ours(kind, &document);
    }
    let policy = "worktrees.example/project/policies/control/harness-retry-policy-v1.json";
    forms.admit_ours("retry-policy", &read(&workspace().join(policy)));
    let embedded = serde_json::from_str(RetryPolicy::embedded_text()).unwrap();
    forms.admit_ours("retry-policy", &embedded);
    let embedded = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    forms.admit_ours("turn-policy", &embedded);
    forms.admit_ours("failure-class", &json!("check_failed"));

    // `[backoff]` has names of a policy's own.
    forms.admit("harness-toml", &settings());

    let kinds: BTreeSet<_> = forms.compiled.keys().cloned().collect();
    assert_eq!(forms.seen, kinds, "a kind was held against no document");
}

/// The template of `premath init` with every commented key in force, the first
/// example of each.
fn settings() -> Value {
    let text = fs::read_to_string(workspace().join("shared/cli/src/init/harness.toml")).unwrap();
    let (mut table, mut seen, mut lines) = (String::new(), BTreeSet::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let line = line.trim_start_matches('#');
        if line.starts_with('[') {
            table = line.to_owned();
            lines.push(line);
        } else if let Some((key, _)) = line.split_once(" = ")
            && seen.insert((table.clone(), key))
        {
            lines.push(line);
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
    toml::from_str(&lines.join("\n")).unwrap()
}

#[test]
fn rows_of_another_tracker_are_admitted() {
    let mut forms = Forms::shipped();
    let text = fs::read_to_string(workspace().join("tests/data/tracker.jsonl")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        forms.admit("issue", &serde_json::from_str(line).unwrap());
    }
    let nulls = json!({"id": "x", "status": null, "labels": null, "lease": {"owner": null},
                       "priority": 1.0, "colour": {"any": ["thing"]}});
    forms.admit("issue", &nulls);
}

fn session() -> Value {
    json!({
        "schema": 1, "sessionKind": "premath.harness.session.v1", "sessionId": "s",
        "state": "stopped", "startedAt": "2026-03-05T10:00:00Z",
        "updatedAt": "2026-03-05T11:00:00+01:00", "mine": true,
    })
}

fn row() -> Value {
    json!({
        "schema": 1, "stepKind": "premath.harness.step.v1", "stepId": "s", "action": "a",
        "resultClass": "ok", "finishedAt": "2026-03-05T10:00:00Z",
    })
}

fn policy() -> Value {
    serde_json::from_str(RetryPolicy::embedded_text()).unwrap()
}

fn changed(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

fn without(document: &Value, field: &str) -> Value {
    let mut document = document.clone();
    document.as_object_mut().unwrap().remove(field).unwrap();
    document
}

fn wrong_issues() -> Vec<Value> {
    let edge = |edge: Value| json!({"id": "a", "dependencies": [edge]});
    vec![
        json!({"title": "no id"}),
        json!({"id": " "}),
        json!({"id": "a", "priority": "high"}),
        json!({"id": "a", "labels": "x"}),
        json!({"id": "a", "created_at": "yesterday"}),
        json!({"id": "a", "lease": {"generation": -1}}),
        edge(json!({"type": "blocks"})),
        edge(json!({"depends_on_id": 7})),
    ]
}

fn wrong_sessions() -> Vec<Value> {
    let session = session();
    vec![
        without(&session, "updatedAt"),
        changed(&session, "/schema", json!(2)),
        changed(&session, "/state", json!("asleep")),
        changed(&session, "/startedAt", json!("2026-13-05T10:00:00Z")),
    ]
}

fn wrong_rows() -> Vec<Value> {
    let row = row();
    vec![
        without(&row, "finishedAt"),
        changed(&row, "/stepKind", json!("x")),
        changed(&row, "/stepId", json!(" ")),
    ]
}

fn wrong_policies() -> Vec<Value> {
    let policy = policy();
    vec![
        without(&policy, "policyDigest"),
        changed(&policy, "/rules/0/maxAttempts", json!(0)),
        changed(&policy, "/rules/1/failureClasses", json!([])),
        changed(&policy, "/defaultRule/escalationAction", json!("shrug")),
    ]
}

fn wrong_events() -> Vec<Value> {
    let event = json!({
        "event": "store.lost", "detail": "x", "schema": 1, "at": "2026-03-05T10:00:00Z",
    });
    vec![
        without(&event, "detail"),
        without(&event, "at"),
        changed(&event, "/schema", json!(2)),
        changed(&event, "/event", json!("store.found")),
    ]
}

fn wrong_turn_policies() -> Vec<Value> {
    let right: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let wrong = |pointer: &str, value: Value| {
        let mut policy = right.clone();
        *policy.pointer_mut(pointer).unwrap() = value;
        policy
    };
    vec![
        wrong("/policyDigest", json!("sha256:0")),
        wrong("/policyKind", json!("ci.harness.retry.policy.v1")),
        wrong("/tools/0/decision", json!("ask")),
        wrong("/tools/1/tool", json!("bash")),
        wrong("/tools/1/programs", json!("git")),
        wrong("/tools/0/ruleId", json!(" ")),
        wrong("/calls/maxCalls", json!(-1)),
        wrong("/stop/repairRounds", json!(8)),
    ]
}

#[test]
fn a_wrong_document_is_refused() {
    let forms = Forms::shipped();
    for (kind, right) in [
        ("session", session()),
        ("trajectory-row", row()),
        ("retry-policy", policy()),
    ] {
        assert_eq!(forms.fault(kind, 0, &right), None);
    }
    let turn = json!({"schema": 1, "witnessKind": "premath.harness.turn_witness.v1"});
    let answer = json!({"action": "issue.list", "issuesPath": "p", "count": 1});
    for (kind, wrong) in [
        ("issue", wrong_issues()),
        ("session", wrong_sessions()),
        ("trajectory-row", wrong_rows()),
        ("retry-policy", wrong_policies()),
        ("turn-policy", wrong_turn_policies()),
        ("feature-ledger", vec![json!({"schema": 1, "features": []})]),
        ("witness-turn", vec![turn]),
        ("coordinator-event", wrong_events()),
        ("outbox-request", vec![json!({"title": " "})]),
        ("failure-class", vec![json!("no_such_class")]),
        ("answer-issues", vec![answer]),
    ] {
        for wrong in wrong {
            assert!(forms.fault(kind, 0, &wrong).is_some(), "{kind}: {wrong}");
        }
    }
}
