//! Every tool, held against its schemas and against its command.

use crate::client::{Project, changes, controls};
use boon::{Compiler, Draft, Schemas};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const READS: [(&str, &[&str]); 11] = [
    ("observe_latest", &["observe", "latest"]),
    ("observe_needs_attention", &["observe", "needs_attention"]),
    ("issue_ready", &["issue", "ready"]),
    ("issue_list", &["issue", "list"]),
    ("issue_blocked", &["issue", "blocked"]),
    ("dep_diagnostics", &["dep", "diagnostics"]),
    ("harness_session_read", &["harness-session", "read"]),
    ("harness_trajectory_query", &["harness-trajectory", "query"]),
    ("issue_check", &[]),
    ("issue_lease_projection", &[]),
    ("instruction_check", &[]),
];

/// The schemas of every tool, by name: what it takes, and what it says.
struct Declared {
    schemas: Schemas,
    by_name: BTreeMap<String, [boon::SchemaIndex; 2]>,
}

impl Declared {
    fn of(tools: &[Value]) -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        let by_name = tools
            .iter()
            .map(|tool| {
                let name = tool["name"].as_str().unwrap();
                let both = ["inputSchema", "outputSchema"].map(|which| {
                    let place = format!("http://tools/{name}/{which}.json");
                    compiler.add_resource(&place, tool[which].clone()).unwrap();
                    compiler.compile(&place, &mut schemas).unwrap()
                });
                (name.to_owned(), both)
            })
            .collect();
        Self { schemas, by_name }
    }

    #[track_caller]
    fn holds(&self, tool: &str, which: usize, document: &Value) {
        let index = self.by_name[tool][which];
        if let Err(error) = self.schemas.validate(document, index) {
            panic!("{tool}: {error:#}\n{document:#}");
        }
    }
}

fn turn() -> Value {
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/conformance/harness-typestate"
    );
    // A base that every vector patches is a turn that passes.
    let mut found = Vec::new();
    collect(std::path::Path::new(vectors), &mut found);
    let turn = found
        .into_iter()
        .find(|document| document["evidence"]["callSpec"].is_object());
    turn.unwrap()
}

fn collect(folder: &std::path::Path, found: &mut Vec<Value>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            found.push(document["base"].clone());
            found.push(document["input"].clone());
            found.push(document);
        }
    }
}

#[test]
fn every_tool_answers_once_as_its_schema_says() {
    let project = Project::claiming(&["all"]);
    git2::Repository::init(&project.root).unwrap();
    project.answer(&["harness-session", "write", "--issue-id", "a"]);
    let mut client = project.serve(&[]);
    let tools = client.tools();
    let declared = Declared::of(&tools);
    let mut called = Vec::new();
    let reads = READS.map(|(tool, _)| (tool, json!({})));
    let judged = [
        ("join_check", turn()),
        (
            "observe_instruction",
            json!({"instructionRef": "instruction://a/b"}),
        ),
        (
            "issue_retry",
            json!({"issues": ["c"], "note": "look at the log"}),
        ),
    ];
    for (tool, arguments) in reads.into_iter().chain(changes()).chain(judged) {
        declared.holds(tool, 0, &arguments);
        // No turn admits the change of an edge here.
        let answer = match tool.starts_with("dep_") && tool != "dep_diagnostics" {
            true => client.refused(tool, arguments, "mutation.use_evidence_missing"),
            false => client.accepted(tool, arguments),
        };
        declared.holds(tool, 1, &answer);
        called.push(tool.to_owned());
    }
    // No batch runs here.
    for (tool, arguments) in controls() {
        declared.holds(tool, 0, &arguments);
        let (answer, is_error) = client.call(tool, arguments);
        let error = answer["error"].as_str().unwrap();
        assert!(
            is_error && error.starts_with("no batch is running"),
            "{tool}: {error}"
        );
        declared.holds(tool, 1, &answer);
        called.push(tool.to_owned());
    }
    called.sort();
    let mut names: Vec<_> = declared.by_name.keys().cloned().collect();
    names.sort();
    assert_eq!(called, names);
    assert_eq!(client.go(), Some(0));
}

#[test]
fn every_tool_refuses_as_its_schema_says() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let declared = Declared::of(&client.tools());
    let names: Vec<_> = declared.by_name.keys().cloned().collect();
    for tool in names {
        let (answer, is_error) = client.call(&tool, json!({"unheard": 1}));
        if tool == "join_check" {
            assert!(answer["error"].as_str().unwrap().contains("evidence"));
        } else {
            let class = json!(["lease_invalid_payload"]);
            assert_eq!(answer["failureClasses"], class, "{tool}");
        }
        assert!(is_error, "{tool}");
        declared.holds(&tool, 1, &answer);
    }
}

#[test]
fn a_tool_that_looks_answers_what_its_command_answers() {
    let project = Project::claiming(&["all"]);
    project.answer(&["harness-session", "write", "--issue-id", "a"]);
    project.answer(&[
        "harness-trajectory",
        "append",
        "--step-id",
        "w.a.1",
        "--action",
        "worker.loop",
        "--result-class",
        "completed",
    ]);
    let mut client = project.serve(&[]);
    for (tool, command) in READS.iter().filter(|(_, command)| !command.is_empty()) {
        assert_eq!(
            client.accepted(tool, json!({})),
            project.answer(command),
            "{tool}"
        );
    }
    let input = project.root.join("turn.json");
    fs::write(&input, turn().to_string()).unwrap();
    let command = ["harness-join-check", "--explain", "--input", "turn.json"];
    let mut asked = turn();
    asked["explain"] = true.into();
    assert_eq!(
        client.accepted("join_check", asked),
        project.answer(&command)
    );
    let listed = client.accepted("issue_list", json!({"label": "ui"}));
    assert_eq!(listed["items"][0]["id"], "b");
    assert_eq!(listed["count"], 1);
}

#[test]
fn annotations_say_which_tools_change_something() {
    let project = Project::claiming(&["all"]);
    let tools = project.serve(&[]).tools();
    assert_eq!(tools.len(), 31);
    let mut changing: Vec<_> = changes().iter().map(|(tool, _)| *tool).collect();
    changing.extend(controls().iter().map(|(tool, _)| *tool));
    changing.push("issue_retry");
    changing.sort_unstable();
    let mut found: Vec<_> = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == false)
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(found, changing);
    for tool in &tools {
        let hints = &tool["annotations"];
        assert_eq!(hints["openWorldHint"], false, "{tool}");
        assert!(hints["destructiveHint"].is_boolean() && hints["idempotentHint"].is_boolean());
    }
}

#[test]
fn what_is_not_a_tool_is_a_fault_of_the_protocol() {
    let project = Project::claiming(&["all"]);
    let mut client = project.serve(&[]);
    let answer = client.request("tools/call", json!({"name": "issue_burn"}));
    assert_eq!(answer["error"]["code"], -32602);
    let answer = client.request("issues/burn", json!({}));
    assert_eq!(answer["error"]["code"], -32601);
    assert_eq!(client.go(), Some(0));
}
