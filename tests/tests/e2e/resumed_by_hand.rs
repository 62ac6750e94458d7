//! The command by which a person continues the session of an agent.

use crate::agents::{batch, reaches_alone};
use premath_evidence::Agent;
use premath_kernel::json::plain::shell_word;
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{Journal, ModelServer, Scripts};
use premath_tests::{PATIENCE, Scratch, issue, skipped};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What the agent wrote in its first session.
const WORK: &str = "a line that only the first session has";

/// What a person adds to the command, for an agent that answers once.
const ONCE: &str = "-p 'What did you do? play:later:later'";

fn scripts(scratch: &Scratch) -> Scripts {
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    for (name, script) in [
        (
            "first",
            json!({"about": "A file.", "turns": [
                {"answer": {"calls": [{"write": {"path": "src/a.txt", "content": WORK}}]}},
                {"answer": {"text": "Done."}},
            ]}),
        ),
        (
            "later",
            json!({"about": "An answer.", "turns": [{"answer": {"text": "I wrote a file."}}]}),
        ),
    ] {
        fs::write(folder.join(format!("{name}.json")), script.to_string()).unwrap();
    }
    Scripts::of_folder(&folder).unwrap()
}

/// Runs a batch in a sandbox mode; returns the attempt that `issue show` has, and gives
/// what it prints for a person to `then`.
fn attempt(agent: Agent, mode: &str, then: impl Fn(&Scratch, &Profile, &Installed, &str)) -> Value {
    let Some(installed) = Installed::find(agent) else {
        skipped("a session that is resumed by hand", &missing(agent));
        return Value::Null;
    };
    let mut row = issue("a");
    row["title"] = json!("Do what is asked, play:first:first");
    let scratch = Scratch::with_issues(1, &[row]);
    let scripts = scripts(&scratch);
    let received = scratch.folder().join("requests");
    let server = ModelServer::start(scripts, Journal::default(), Some(received)).unwrap();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(&installed, home.path(), &server.url());
    let run = batch(&scratch, &installed, &profile).args(["--sandbox", mode]);
    // Without a sandbox, Claude Code refuses to work as root.
    let run = run.env("IS_SANDBOX", "1");
    if mode != "none" {
        reaches_alone(&scratch, &server);
    }
    let ended = run.start().wait_within(PATIENCE * 3);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let show = |form: &[&str]| {
        let words = ["issue", "show", "a"].iter().chain(form);
        scratch.premath(words.copied()).end().exits(0)
    };
    let attempt = show(&["--json"]).json()["attempts"][0].clone();
    let text = show(&[]).stdout;
    then(&scratch, &profile, &installed, &text);
    attempt
}

/// The command that continues a session in the lane.
fn expected(scratch: &Scratch, agent: Agent, text: &str) -> String {
    let line = text.lines().find(|line| line.contains(" resume  "));
    let command = line.unwrap_or_else(|| panic!("no command: {text}")).trim();
    let command = command.strip_prefix("resume").unwrap().trim();
    let resume = match agent {
        Agent::Codex => "codex resume",
        Agent::OpenCode => "opencode --session",
        Agent::Gemini => "gemini --resume",
        _ => "claude --resume",
    };
    let lane = scratch.lanes[0].canonicalize().unwrap();
    let begin = format!("cd {} && {resume} ", shell_word(lane.to_str().unwrap()));
    assert!(command.starts_with(&begin), "{command} is not {begin}…");
    command.to_owned()
}

fn shows(agent: Agent) {
    attempt(agent, "none", |scratch, _, _, text| {
        expected(scratch, agent, text);
    });
}

#[test]
fn a_session_of_claude_continues_by_the_command_that_is_shown() {
    let agent = Agent::Claude;
    attempt(agent, "none", |scratch, profile, installed, text| {
        let command = format!("{} {ONCE}", expected(scratch, agent, text));
        let programs = installed.program.parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let shell = scratch.run(Path::new("/bin/sh")).args(["-c", &command]);
        let mut shell = shell.env("PATH", path).env("IS_SANDBOX", "1");
        for (name, value) in profile.environment() {
            shell = shell.env(name, value);
        }
        let ended = shell.start().wait_within(PATIENCE * 2).exits(0);
        assert!(ended.stdout.contains("I wrote a file."), "{ended:?}");
        let requests = fs::read_dir(scratch.folder().join("requests")).unwrap();
        let mut bodies =
            requests.map(|request| fs::read_to_string(request.unwrap().path()).unwrap());
        let is_whole = |body: String| body.contains("play:later:later") && body.contains(WORK);
        assert!(bodies.any(is_whole), "the session was not continued");
    });
}

#[test]
fn a_session_of_codex_has_its_command() {
    shows(Agent::Codex);
}

#[test]
fn a_session_of_gemini_has_its_command() {
    shows(Agent::Gemini);
}

#[test]
fn a_session_of_opencode_has_its_command() {
    shows(Agent::OpenCode);
}

#[test]
fn a_session_in_a_private_home_has_no_command() {
    let found = attempt(Agent::Claude, "namespaces", |_, _, _, text| {
        assert!(!text.contains("--resume"), "{text}");
    });
    if !found.is_null() {
        assert!(found["sessionId"].is_string(), "{found}");
        assert_eq!(found["resume"], Value::Null);
    }
}
