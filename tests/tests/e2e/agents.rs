//! The real agents through the coordinator, against a model server that knows
//! what it called: every call is in the evidence exactly once, what should
//! close closes, and what should not is refused.

use crate::container::{image_of, with_image};
use crate::steps::fast_retries;
use premath_evidence::Agent;
use premath_kernel::json::canonical;
use premath_tests::agents::{Installed, Profile, agents_folder, missing};
use premath_tests::gate_runs::mark_real;
use premath_tests::image::{TestImage, scripted_engine};
use premath_tests::model::{Journal, MadeCall, ModelServer, Played, PlayedTurn, Scripts};
use premath_tests::{NO_STARTUP, PATIENCE, Run, Scratch, binaries, issue, processes_in, skipped};
use serde_json::{Value, json};
use std::fs;

/// An issue that names its script.
fn played(id: &str) -> Value {
    let mut row = issue(id);
    row["title"] = json!(format!("Do what is asked, play:{id}:{id}"));
    row
}

/// Six issues: the first three should close.
fn scripts(agent: Agent) -> Value {
    let write = |id: &str| json!({"write": {"path": format!("src/{id}.txt"), "content": "done\n"}});
    let left = match agent {
        // A command that still runs when the turn ends.
        Agent::Codex => json!([
            {"answer": {"calls": [
                {"named": {"name": "exec_command", "arguments": {"cmd": "sleep 600", "yield_time_ms": 300}}},
                write("left"),
            ]}},
            {"answer": {"text": "Done."}},
        ]),
        // More turns than there are.
        Agent::Gemini => {
            let turn =
                |number: u64| json!({"answer": {"calls": [{"shell": format!("echo {number}")}]}});
            let mut turns = vec![json!({"answer": {"calls": [write("left")]}})];
            turns.extend((0..14).map(turn));
            json!(turns)
        }
        // The model goes no further.
        Agent::Claude => json!([
            {"answer": {"calls": [write("left")]}},
            {"answer": {"text": "I", "stop": "refusal"}},
        ]),
        // A command without an exit code.
        _ => json!([
            {"answer": {"calls": [
                {"named": {"name": "bash", "arguments": {"command": "sleep 600", "description": "Waits", "timeout": 300}}},
                write("left"),
            ]}},
            {"answer": {"text": "Done."}},
        ]),
    };
    json!({
        "edit": [
            {"answer": {"text": "I look.", "calls": [{"shell": "ls src"}]}},
            {"answer": {"calls": [write("edit")]}},
            {"answer": {"calls": [{"shell": "grep three src/edit.txt"}]}},
            {"answer": {"calls": [{"shell": "echo three >> src/edit.txt"}]}},
            {"answer": {"text": "Done."}},
        ],
        "several": [
            {"answer": {"calls": [{"shell": "echo first"}, {"shell": "ls no-such-file"}, write("several")]}},
            {"answer": {"text": "Done."}},
        ],
        "limited": [
            {"answer": {"calls": [{"shell": "echo before"}]}},
            {"fail": {"status": 429, "message": "Rate limit reached.", "retryAfter": 1, "times": 1}},
            {"answer": {"calls": [write("limited")]}},
            {"answer": {"text": "Done."}},
        ],
        // It says that it is done, and did nothing.
        "claim": [{"answer": {"text": "Done."}}],
        // The provider does not take its request.
        "refused": [
            {"answer": {"calls": [write("refused")]}},
            {"fail": {"status": 400, "message": "The request is malformed."}},
        ],
        "left": left,
    })
}

/// Classes that each issue's last step is refused by; none where it closes.
fn refusals(agent: Agent) -> [(&'static str, &'static [&'static str]); 6] {
    let left: &[&str] = match agent {
        Agent::Codex => &["tool.join_incomplete", "tool.result_missing"],
        Agent::Claude | Agent::Gemini => &["work_failed"],
        _ => &["agent_stream_invalid"],
    };
    [
        ("claim", &["check_failed"]),
        ("edit", &[]),
        ("left", left),
        ("limited", &[]),
        ("refused", &["work_failed"]),
        ("several", &[]),
    ]
}

/// A call, as the evidence and the model server both know it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    tool: String,
    /// None for Codex's file changes: they name the lane's folder.
    input_digest: Option<String>,
}

/// Says what the evidence of a call must be.
fn known_call(agent: Agent, shell: &str, call: &MadeCall) -> Known {
    let (tool, input) = match (agent, call.name.as_str()) {
        (Agent::Codex, "apply_patch") => ("file_change", None),
        (Agent::Codex, _) => {
            let command = call.arguments["cmd"].as_str().unwrap();
            let command = json!(format!("{shell} -lc '{command}'"));
            ("command_execution", Some(command))
        }
        (_, name) => (name, Some(call.arguments.clone())),
    };
    Known {
        tool: tool.to_owned(),
        input_digest: input.map(|input| canonical::digest(&input)),
    }
}

/// Reads the witnesses of a kind of an issue's steps.
fn witnesses(scratch: &Scratch, id: &str, kind: &str) -> Vec<Value> {
    let (of_issue, end) = (format!(".{id}."), format!(".{kind}.json"));
    let folder = scratch.root.join("artifacts/ciwitness");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let names = names.filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.contains(&of_issue) && name.ends_with(&end)
    });
    names
        .map(|entry| serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap())
        .collect()
}

/// Returns the agent's calls in the evidence of an issue's steps, sorted.
fn in_evidence(scratch: &Scratch, id: &str) -> Vec<Known> {
    let mut known = Vec::new();
    for turn in witnesses(scratch, id, "turn") {
        let evidence = &turn["input"]["evidence"];
        let step = turn["stepId"].as_str().unwrap();
        let below = format!("{step}/work/");
        for row in evidence["toolRequests"].as_array().unwrap() {
            if !row["toolCallId"].as_str().unwrap().starts_with(&below) {
                continue;
            }
            let tool = row["toolName"].as_str().unwrap().to_owned();
            let digest = row["facts"]["inputDigest"].as_str().unwrap().to_owned();
            known.push(Known {
                input_digest: (tool != "file_change").then_some(digest),
                tool,
            });
        }
    }
    known.sort();
    known
}

#[test]
fn claude_works_through_a_batch() {
    works_through_a_batch(Agent::Claude);
}

#[test]
fn codex_works_through_a_batch() {
    works_through_a_batch(Agent::Codex);
}

#[test]
fn gemini_works_through_a_batch() {
    works_through_a_batch(Agent::Gemini);
}

#[test]
fn opencode_works_through_a_batch() {
    works_through_a_batch(Agent::OpenCode);
}

/// In each mode of confinement that works here.
fn works_through_a_batch(agent: Agent) {
    let Some(installed) = Installed::find(agent) else {
        return skipped("a batch with a real agent", &missing(agent));
    };
    for mode in modes("a batch with a real agent") {
        works_in(mode, agent, &installed, |run, _| run);
    }
    // Made by podman, of the programs that agents and their scripts start.
    let scratch = Scratch::new(0);
    let Some(image) = image_with(&scratch, &installed) else {
        return;
    };
    works_in("container", agent, &installed, |run, scratch| {
        append(
            scratch,
            &format!("[sandbox]\nread = [{:?}]\n", agents_folder()),
        );
        with_image(run, &image, scratch)
    });
}

/// Makes an image in which the agent's name starts the agent that is installed
/// beside the tests; its folder is visible by `[sandbox] read`.
fn image_with(scratch: &Scratch, installed: &Installed) -> Option<TestImage> {
    let name = installed.program.file_name().unwrap().to_str().unwrap();
    let folder = scratch.folder().join("of-the-image");
    let script = format!("exec '{}' \"$@\"", installed.program.display());
    scripted_engine(&folder, name, &script);
    let programs = ["bash", "node", "ps", "sed", "which"];
    image_of(&programs, &[&folder.join(name)], &[&installed.program])
}

/// Returns the modes of confinement that work here.
pub(crate) fn modes(what: &str) -> Vec<&'static str> {
    let scratch = Scratch::new(0);
    let works = |mode: &&str| scratch.confines_by(mode, what);
    ["namespaces", "landlock"]
        .into_iter()
        .filter(works)
        .collect()
}

fn works_in(
    mode: &str,
    agent: Agent,
    installed: &Installed,
    prepared: impl Fn(Run, &Scratch) -> Run,
) {
    let refusals = refusals(agent);
    // The shell of the account, by which Codex runs commands.
    let shell = match mode {
        "container" => "/bin/sh",
        _ => "/bin/bash",
    };
    let scratch = Scratch::with_issues(2, &refusals.map(|(id, _)| played(id)));
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    for (name, turns) in scripts(agent).as_object().unwrap() {
        let script = json!({"about": name, "turns": turns});
        fs::write(folder.join(format!("{name}.json")), script.to_string()).unwrap();
    }
    let scripts = Scripts::of_folder(&folder).unwrap();
    let server = ModelServer::start(scripts, Journal::default(), None).unwrap();
    // Gemini CLI reads its hooks from no folder below one that others may write to.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(installed, home.path(), &server.url());
    let run = batch(&scratch, installed, &profile).args(["--sandbox", mode]);
    let run = prepared(run, &scratch);
    if mode != "landlock" {
        reaches_alone(&scratch, &server);
    }
    let ended = run.start();
    let ended = ended.wait_within(PATIENCE * 3).exits(1);
    let turns = server.turns();
    let events = ended.events();
    for (id, classes) in refusals {
        let last = events
            .iter()
            .rfind(|event| event["event"] == "step.ended" && event["issueId"] == id)
            .unwrap();
        let closed = scratch.issue(id)["status"] == "closed";
        assert_eq!(closed, classes.is_empty(), "{last}\n{}", ended.stderr);
        let found = last["failureClasses"].as_array().unwrap();
        for class in classes {
            assert!(found.contains(&json!(class)), "{id}: {last}");
        }
        let own = || turns.iter().filter(|turn| turn.conversation == id);
        let calls = own().flat_map(|turn| &turn.calls);
        let mut made: Vec<Known> = calls.map(|call| known_call(agent, shell, call)).collect();
        made.sort();
        assert_eq!(in_evidence(&scratch, id), made, "{id}");
        if closed {
            // OpenCode does not report the titles that it asks for.
            let is_counted = |turn: &&_| agent != Agent::OpenCode || !is_aside(turn);
            let spent = own().filter(is_counted);
            let input: u64 = spent
                .filter_map(|turn| turn.spent)
                .map(|spent| spent.input)
                .sum();
            let work = &witnesses(&scratch, id, "work")[0];
            assert_eq!(work["agent"]["tokens"]["input"], input, "{id}");
        }
    }
    assert_eq!(processes_in(&scratch.folder()), [""; 0]);
}

/// Lets steps reach the model server, and nothing else.
pub(crate) fn reaches_alone(scratch: &Scratch, server: &ModelServer) {
    let url = server.url();
    let host = url.trim_start_matches("http://");
    append(
        scratch,
        &format!("[network]\nwork = \"allow\"\nallow = [{host:?}]\n"),
    );
}

/// Adds a table to the settings.
fn append(scratch: &Scratch, table: &str) {
    let settings = scratch.root.join("harness.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    text.push_str(table);
    fs::write(&settings, text).unwrap();
}

fn is_aside(turn: &PlayedTurn) -> bool {
    turn.played == Played::Aside
}

pub(crate) fn batch(scratch: &Scratch, installed: &Installed, profile: &Profile) -> Run {
    let verify = "test -e src/$PREMATH_ISSUE_ID.txt";
    batch_with(scratch, installed, profile, verify)
}

/// Makes a batch whose work is verified by a command.
pub(crate) fn batch_with(
    scratch: &Scratch,
    installed: &Installed,
    profile: &Profile,
    verify: &str,
) -> Run {
    fast_retries(scratch);
    mark_real(&scratch.folder());
    let programs = installed.program.parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut run = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test", "--landing", "none"])
        .args(["--agent", installed.agent.as_str()])
        .args(["--verify-cmd", verify])
        .args(NO_STARTUP)
        .env("PATH", path)
        .without("PREMATH_SANDBOX_WRITE");
    for lane in &scratch.lanes {
        run = run.arg("--worktree").arg(lane);
    }
    for (name, value) in profile.environment() {
        run = run.env(name, value);
    }
    run
}
