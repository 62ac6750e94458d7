//! `premath say`: a text of the operator reaches a running agent by its hooks.

use crate::agents::{batch, reaches_alone};
use crate::hooks::HEAD;
use flate2::read::MultiGzDecoder;
use premath_evidence::Agent;
use premath_kernel::json::canonical;
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{Journal, ModelServer, Scripts};
use premath_tests::{PATIENCE, Run, Running, Scratch, binaries, issue, skipped, until};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const TEXT: &str = "keep the old parser; \"it\" is used\n\tby the importer";

fn streams(scratch: &Scratch, end: &str) -> Vec<PathBuf> {
    let folder = scratch.root.join("artifacts/streams");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(end));
    files.sort();
    files
}

/// Waits until the journal of the work's hooks has a row.
#[track_caller]
fn hooked(scratch: &Scratch, batch: &Running, kind: &str) {
    let text = format!("\"kind\":\"{kind}\"");
    let has_row = || {
        let mut files = streams(scratch, "work.hooks.jsonl").into_iter();
        let is_there =
            |file: PathBuf| fs::read_to_string(file).is_ok_and(|all| all.contains(&text));
        files.any(is_there).then_some(())
    };
    until(PATIENCE * 2, has_row)
        .unwrap_or_else(|| panic!("no hook of kind {kind}: {}", batch.stderr()));
}

/// The texts that the agent was given, as the journal has them.
fn told(scratch: &Scratch) -> Vec<String> {
    let files = streams(scratch, "work.hooks.jsonl.gz");
    assert!(!files.is_empty(), "no journal");
    let texts = files.iter().map(|file| {
        let mut text = String::new();
        let packed = fs::File::open(file).unwrap();
        MultiGzDecoder::new(packed)
            .read_to_string(&mut text)
            .unwrap();
        text
    });
    let lines: Vec<Value> = texts
        .flat_map(|text| {
            let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
            rows.collect::<Vec<Value>>()
        })
        .collect();
    let told = lines.iter().filter_map(|row| row["told"].as_str());
    told.map(str::to_owned).collect()
}

/// The requests that the trajectory has.
fn requests(scratch: &Scratch) -> Vec<Value> {
    let mut rows = scratch.trajectory();
    rows.retain(|row| row["action"] == "operator.control");
    rows
}

fn reaches(agent: Agent) {
    let Some(installed) = Installed::find(agent) else {
        return skipped("a text for a real agent", &missing(agent));
    };
    let mut row = issue("told");
    row["title"] = json!("Do what is asked, play:told:told");
    let scratch = Scratch::with_issues(1, &[row]);
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    let script = json!({"about": "A call that lasts until the operator has spoken.", "turns": [
        {"answer": {"calls": [{"shell": "until [ -e go ]; do sleep 0.1; done; rm go"}]}},
        {"answer": {"calls": [{"write": {"path": "src/told.txt", "content": "done\n"}}]}},
        {"answer": {"text": "Done."}},
    ]});
    fs::write(folder.join("told.json"), script.to_string()).unwrap();
    let scripts = Scripts::of_folder(&folder).unwrap();
    let received = scratch.folder().join("requests");
    let server = ModelServer::start(scripts, Journal::default(), Some(received.clone())).unwrap();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(&installed, home.path(), &server.url());
    let run = batch(&scratch, &installed, &profile).args(["--sandbox", "namespaces"]);
    reaches_alone(&scratch, &server);
    let running = run.start();
    hooked(&scratch, &running, "before");
    let said = scratch.premath(["say", "told", TEXT, "--no-wait", "--json"]);
    let answer = said.end().exits(0).json();
    assert_eq!(answer["issues"][0]["result"], "done", "{answer}");
    fs::write(scratch.lanes[0].join("go"), "").unwrap();
    let ended = running.wait_within(PATIENCE * 3).exits(0);
    assert_eq!(
        scratch.issue("told")["status"],
        "closed",
        "{}",
        ended.stderr
    );
    let texts = told(&scratch);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].ends_with(TEXT), "{texts:?}");
    let turn = scratch
        .root
        .join("artifacts/ciwitness/worker.1.told.1.turn.json");
    let turn: Value = serde_json::from_slice(&fs::read(turn).unwrap()).unwrap();
    let digest = canonical::digest(&json!(texts[0]));
    assert_eq!(turn["context"]["queues"]["queue/operator"], json!([digest]));
    let files = fs::read_dir(received).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let in_json = json!(TEXT).to_string();
    let has_text = |file: &PathBuf| {
        let body = fs::read_to_string(file).unwrap();
        // It may be quoted once more, in the text of a result.
        let again = json!(in_json.trim_matches('"')).to_string();
        body.contains(in_json.trim_matches('"')) || body.contains(again.trim_matches('"'))
    };
    assert!(!has_text(&files[0]), "the prompt has it");
    assert!(files.iter().any(has_text), "the model has not read it");
    let asked = &requests(&scratch)[0];
    assert_eq!(asked["control"]["operation"]["text"], TEXT);
    scratch.no_process_left();
}

#[test]
fn a_text_reaches_claude() {
    reaches(Agent::Claude);
}

#[test]
fn a_text_reaches_codex() {
    reaches(Agent::Codex);
}

#[test]
fn a_text_reaches_gemini() {
    reaches(Agent::Gemini);
}

#[test]
fn a_text_reaches_opencode() {
    reaches(Agent::OpenCode);
}

/// Starts a batch whose agent is a program that plays Codex.
fn played(scratch: &Scratch, programs: &tempfile::TempDir, body: &str) -> Running {
    let program = programs.path().join("codex");
    fs::write(&program, format!("{HEAD}{body}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let run: Run = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test", "--landing", "none"])
        .args(["--agent", "codex", "--verify-cmd", "true"])
        .args(["--startup", "off", "--worktree"])
        .arg(&scratch.lanes[0])
        .env("PATH", format!("{}:{path}", programs.path().display()));
    run.start()
}

fn programs() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn the_command_waits_until_the_agent_has_the_text() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let programs = programs();
    // Calls until one of them is answered with a text.
    let running = played(
        &scratch,
        &programs,
        "begin; prompt; n=0; said=\n\
         while [ -z \"$said\" ]; do n=$((n+1))\n\
         send \"$(event PreToolUse c$n ls)\"; ran item_$n \"/bin/sh -c ls\"\n\
         said=$(printf '%s' \"$(event PostToolUse c$n ls)\" | eval \"$hook\"); sleep 0.02; done\n\
         printf '%s' \"$said\" > said.txt; end\n",
    );
    hooked(&scratch, &running, "after");
    let answer = scratch.premath(["say", "a", "one more thing", "--json"]);
    let answer = answer.end().exits(0).json();
    assert_eq!(
        answer["issues"][0]["detail"],
        "its agent was given the text"
    );
    running.wait_within(PATIENCE).exits(0);
    let printed = fs::read_to_string(scratch.lanes[0].join("said.txt")).unwrap();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let text = &printed["hookSpecificOutput"]["additionalContext"];
    assert!(
        text.as_str().unwrap().ends_with("one more thing"),
        "{printed}"
    );
    assert_eq!(told(&scratch).len(), 1);
}

#[test]
fn a_text_that_no_agent_was_given_is_reported() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let programs = programs();
    let running = played(
        &scratch,
        &programs,
        "begin; prompt; until [ -e \"$HOME/go\" ]; do sleep 0.05; done; end\n",
    );
    hooked(&scratch, &running, "prompt");
    let said = scratch.premath(["say", "a", "too late", "--no-wait", "--json"]);
    said.end().exits(0);
    for (words, why) in [
        (["say", "b", "x"], "no attempt is running"),
        (["say", "a", " "], "the text is empty"),
        (["say", "a", "\u{1b}[2J"], "control character U+001B"),
    ] {
        let refused = scratch.premath(words).end();
        assert!(refused.code != Some(0), "{words:?}");
        let printed = format!("{}{}", refused.stdout, refused.stderr);
        assert!(printed.contains(why), "{printed}");
    }
    fs::write(scratch.home().join("go"), "").unwrap();
    let ended = running.wait_within(PATIENCE).exits(0);
    let warned = ended.events().into_iter().any(|event| {
        let detail = event["detail"].as_str().unwrap_or_default();
        detail.contains("the operator's text for a was not given")
    });
    assert!(warned, "{}", ended.stdout);
    assert_eq!(told(&scratch), [""; 0]);
}

#[test]
fn an_agent_without_hooks_is_given_no_text() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work =
        "touch \"$HOME/started\"; until [ -e \"$HOME/go\" ]; do sleep 0.05; done; echo x > a.txt";
    let running = scratch.batch(work, "true").start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work does not run");
    let refused = scratch.premath(["say", "a", "hello"]).end();
    assert!(refused.code != Some(0));
    assert!(
        refused.stdout.contains("no agent with hooks"),
        "{}",
        refused.stdout
    );
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait_within(PATIENCE).exits(0);
}
