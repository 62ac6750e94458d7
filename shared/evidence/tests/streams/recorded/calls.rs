//! Every call that the model server made is in the fold exactly once, and
//! nothing else is.

use super::{Recording, recorded_agents, recordings};
use crate::judge::{evidence, fold};
use premath_evidence::{Agent, FoldedStream, Tokens};
use premath_kernel::json::canonical;
use serde_json::{Value, json};

/// Calls that an agent's stream does not refer to, by script and call: nothing
/// that reads only the stream can know about them.
const UNREPORTED: [(Agent, &str, &str, &str); 11] = [
    // Codex tells neither what it refuses itself, nor its own small tools.
    (Agent::Codex, "codex-others", "1_0", "view_image"),
    (Agent::Codex, "codex-others", "2_0", "get_goal"),
    (Agent::Codex, "codex-others", "3_0", "exec_command"),
    (Agent::Codex, "plan", "0_0", "update_plan"),
    (Agent::Codex, "plan", "2_0", "update_plan"),
    (Agent::Codex, "plan", "3_0", "update_plan"),
    (Agent::Codex, "wrong-call", "0_0", "no_such_tool"),
    // What a command that is asked again says, its own end tells.
    (Agent::Codex, "codex-stdin", "1_0", "write_stdin"),
    // Gemini CLI stops at the call by which it sees a loop.
    (Agent::Gemini, "loop", "4_0", "run_shell_command"),
    (Agent::Gemini, "loop", "5_0", "run_shell_command"),
    // OpenCode tells calls when they are over.
    (Agent::OpenCode, "opencode-hang", "0_0", "bash"),
];

/// A call, as far as both sides refer to it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadCall {
    /// Codex gives its calls numbers of its own.
    id: Option<String>,
    tool: String,
    input_digest: String,
}

fn is_reported(recording: &Recording, call: &Value) -> bool {
    let id = call["id"].as_str().unwrap();
    !UNREPORTED.iter().any(|(agent, script, suffix, tool)| {
        *agent == recording.agent
            && *script == recording.script
            && call["name"] == *tool
            && id == format!("call_{script}_{suffix}")
    })
}

/// Returns a call as the stream of an agent reports it.
pub(super) fn read_of(agent: Agent, call: &Value) -> ReadCall {
    let (id, name) = (call["id"].as_str().unwrap(), call["name"].as_str().unwrap());
    let arguments = &call["arguments"];
    let (id, tool, input) = match (agent, name) {
        (Agent::Codex, "exec_command") => {
            let command = arguments["cmd"].as_str().unwrap_or_default();
            match patched(command) {
                Some(path) => (None, "file_change", added(path)),
                None => {
                    let command = format!("/bin/bash -lc {}", quoted(command));
                    (None, "command_execution", json!(command))
                }
            }
        }
        (Agent::Codex, "apply_patch") => {
            let path = patched(arguments.as_str().unwrap()).unwrap();
            (None, "file_change", added(path))
        }
        (Agent::Codex, "collaboration.wait_agent") => (None, "collab.wait", Value::Null),
        (Agent::Gemini, _) => (Some(format!("{name}__{id}")), name, arguments.clone()),
        // What has a default is filled in.
        (Agent::Claude, "Edit") => {
            let mut input = arguments.clone();
            input["replace_all"] = json!(false);
            (Some(id.to_owned()), name, input)
        }
        // An unknown tool is reported as a tool that reports this error.
        (Agent::OpenCode, "no_such_tool") => {
            let error = "Model tried to call unavailable tool 'no_such_tool'. Available tools: \
                bash, edit, glob, grep, invalid, read, skill, task, todowrite, webfetch, write.";
            let input = json!({"tool": name, "error": error});
            (Some(id.to_owned()), "invalid", input)
        }
        _ => (Some(id.to_owned()), name, arguments.clone()),
    };
    ReadCall {
        id,
        tool: tool.to_owned(),
        input_digest: canonical::digest(&input),
    }
}

/// Returns the file that a patch adds.
fn patched(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("*** Add File: ")?;
    rest.lines().next()
}

fn added(path: &str) -> Value {
    json!([{"path": format!("/scratch/work/{path}"), "kind": "add"}])
}

fn quoted(command: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    match command.chars().all(plain) {
        true => command.to_owned(),
        false => format!("'{command}'"),
    }
}

/// Returns the calls of a stream, in its order.
pub(super) fn read_in(stream: &FoldedStream) -> Vec<ReadCall> {
    let calls = stream.calls().map(|call| {
        let request = call.request.as_ref().unwrap();
        ReadCall {
            id: (stream.agent() != Agent::Codex).then(|| call.id.to_string()),
            tool: request.tool.to_string(),
            input_digest: request.input_digest.digest(),
        }
    });
    calls.collect()
}

#[test]
fn every_call_of_the_model_is_there_once_and_no_other() {
    for recording in recorded_agents().into_iter().flat_map(recordings) {
        let stream = fold(recording.agent, &recording.stream);
        let made = recording
            .made()
            .filter(|call| is_reported(&recording, call));
        let mut made: Vec<ReadCall> = made.map(|call| read_of(recording.agent, call)).collect();
        made.sort();
        let mut read = read_in(&stream);
        read.sort();
        assert_eq!(read, made, "{:?} {}", recording.agent, recording.script);
        let rows = evidence(&stream).evidence.tool_requests;
        // With work and verification of the harness's own.
        assert_eq!(rows.len(), made.len() + 2);
    }
}

#[test]
fn what_is_not_reported_was_made() {
    let unreported: usize = recorded_agents()
        .into_iter()
        .flat_map(recordings)
        .map(|recording| {
            let unreported = |call: &&Value| !is_reported(&recording, call);
            recording.made().filter(unreported).count()
        })
        .sum();
    assert_eq!(unreported, UNREPORTED.len());
}

#[test]
fn what_was_spent_is_what_the_answers_said() {
    for recording in recorded_agents().into_iter().flat_map(recordings) {
        let stream = fold(recording.agent, &recording.stream);
        let mut sum = Tokens::default();
        let mut nano_usd = 0;
        // The titles that OpenCode asks for, and what sub-agents spend, it
        // reports to no one.
        let own = recording
            .journal
            .iter()
            .filter(|answer| answer["played"] != "aside" && recording.is_of_own(answer));
        // Nor is an answer counted by which Gemini CLI sees a loop, or whose
        // calls did not end.
        let seen = |answer: &&Value| {
            let calls = answer["calls"].as_array().unwrap();
            recording.agent == Agent::Codex
                || calls.iter().all(|call| is_reported(&recording, call))
        };
        let own = own.filter(seen);
        for spent in own
            .map(|answer| &answer["spent"])
            .filter(|one| !one.is_null())
        {
            let count = |name: &str| spent[name].as_u64().unwrap();
            sum.input += count("input");
            sum.cached += count("cached");
            sum.output += count("output");
            // A million of input, of what was in the cache, and of output: four
            // dollars, one fifth of one, and twenty, as Claude knows them of
            // its default model; one, a tenth, and ten in OpenCode's settings.
            let prices = match recording.agent {
                Agent::Claude => [4000, 200, 20_000],
                _ => [1000, 100, 10_000],
            };
            let fresh = count("input") - count("cached");
            let counts = [fresh, count("cached"), count("output")];
            nano_usd += std::iter::zip(prices, counts)
                .map(|(price, count)| price * count)
                .sum::<u64>();
        }
        let spent = stream.spent();
        let place = format!("{:?} {}", recording.agent, recording.script);
        match recording.agent {
            // A turn that failed does not say what it cost.
            Agent::Codex if recording.exit_code != Some(0) => {
                assert_eq!(spent.tokens, None, "{place}");
            }
            _ => assert_eq!(spent.tokens.unwrap_or_default(), sum, "{place}"),
        }
        if matches!(recording.agent, Agent::Claude | Agent::OpenCode) {
            assert_eq!(spent.cost_nano_usd.unwrap_or_default(), nano_usd, "{place}");
        }
    }
}
