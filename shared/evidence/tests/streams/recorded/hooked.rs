//! The runs that were recorded with hooks: what each channel reports of each
//! call, and that both agree.

use super::calls::{ReadCall, read_in, read_of};
use super::{Recording, hooked_recordings, recorded_agents};
use crate::judge::fold;
use premath_evidence::{Agent, HookJournal, reconcile};
use premath_kernel::policy::turn::TurnPolicy;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What was made of the calls of a tool that ended alike.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    agent: &'static str,
    tool: String,
    /// How it ended, as the stream reports it.
    end: String,
    is_denied: bool,
    of_child: bool,
    channels: [bool; 3],
}

/// An event of a hook about a call.
struct HookedCall {
    is_begin: bool,
    id: Option<String>,
    tool: String,
    input: Value,
}

/// The policy that the recordings were made by: the embedded one, and a rule.
fn policy() -> Arc<TurnPolicy> {
    let mut document: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rule = json!({
        "ruleId": "no_forbidden",
        "tool": "shell",
        "arguments": ["*forbidden*"],
        "decision": "deny",
        "reason": "this file is not to be made",
    });
    document["tools"].as_array_mut().unwrap().insert(0, rule);
    let digest = TurnPolicy::digest(document.to_string().as_bytes()).unwrap();
    document["policyDigest"] = digest.into();
    Arc::new(TurnPolicy::parse(document.to_string().as_bytes()).unwrap())
}

fn hooked_calls(recording: &Recording) -> Vec<HookedCall> {
    let events = recording.hooks.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |names: [&str; 2]| {
            let found = names.into_iter().find_map(|name| event[name].as_str());
            found.map(str::to_owned)
        };
        let is_begin = match text(["hook_event_name", "kind"])?.as_str() {
            "PreToolUse" | "BeforeTool" | "before" => true,
            "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "after" | "failed" => false,
            _ => return None,
        };
        Some(HookedCall {
            is_begin,
            id: text(["tool_use_id", "call"]),
            tool: text(["tool_name", "tool"])?,
            input: event
                .get("tool_input")
                .or(event.get("args"))
                .cloned()
                .unwrap_or_default(),
        })
    });
    events.flatten().collect()
}

/// Takes the event of a call out of those that are left.
fn took(events: &mut Vec<HookedCall>, is_begin: bool, call: &Value) -> bool {
    let place = events.iter().position(|event| {
        let is_it = match &event.id {
            Some(id) => call["id"] == **id,
            None => call["name"] == *event.tool && call["arguments"] == event.input,
        };
        event.is_begin == is_begin && is_it
    });
    place.map(|place| events.remove(place)).is_some()
}

/// What is reported of every call that the model of a run made.
fn rows(recording: &Recording) -> Vec<Row> {
    let stream = fold(recording.agent, &recording.stream);
    let ends = stream.calls().map(|call| match &call.result {
        None => "open".to_owned(),
        Some(_) => call.failure().unwrap_or("ok").to_owned(),
    });
    let mut streamed: Vec<(ReadCall, String)> = read_in(&stream).into_iter().zip(ends).collect();
    let mut events = hooked_calls(recording);
    let made = recording.journal.iter().flat_map(|answer| {
        let of_child = answer["conversation"] != *recording.script;
        let calls = answer["calls"].as_array().unwrap();
        calls.iter().map(move |call| (of_child, call))
    });
    let rows = made.map(|(of_child, call)| {
        let read = read_of(recording.agent, call);
        let place = streamed.iter().position(|(one, _)| *one == read);
        let end = place.map(|place| streamed.remove(place).1);
        let channels = [
            end.is_some(),
            took(&mut events, true, call),
            took(&mut events, false, call),
        ];
        Row {
            agent: recording.agent.as_str(),
            tool: call["name"].as_str().unwrap().to_owned(),
            is_denied: channels[1] && call["arguments"].to_string().contains("forbidden"),
            end: end.unwrap_or_default(),
            of_child,
            channels,
        }
    });
    let rows: Vec<Row> = rows.collect();
    let place = format!("{} {}", recording.agent.as_str(), recording.script);
    assert!(streamed.is_empty(), "{place}: {streamed:?}");
    let left: Vec<&str> = events.iter().map(|event| event.tool.as_str()).collect();
    // Codex joins the names of a group and of a tool.
    assert!(left.is_empty(), "{place}: {left:?}");
    rows
}

fn table() -> String {
    let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
    let recordings = recorded_agents().into_iter().flat_map(hooked_recordings);
    for row in recordings.flat_map(|recording| rows(&recording)) {
        *counts.entry(row).or_default() += 1;
    }
    let mut text = String::from(
        "# What each channel reports\n\nGenerated from the runs in `*/hooked`. \
         A call of a sub-agent is marked; an end is what the stream reports.\n\n\
         | agent | tool | end | stream | hook before | hook after | calls |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (row, count) in counts {
        let end = match (row.is_denied, row.end.as_str()) {
            (true, "") => "denied",
            (true, _) => "denied, reported as failed",
            (false, "") => "not reported",
            (false, end) => end,
        };
        let child = if row.of_child { " (sub-agent)" } else { "" };
        let channels = row.channels.map(|is| if is { "yes" } else { "no" });
        text.push_str(&format!(
            "| {} | `{}`{child} | {end} | {} | {count} |\n",
            row.agent,
            row.tool,
            channels.join(" | "),
        ));
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the table is a file")]
fn the_table_of_channels_is_that_of_the_recordings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/channels.md");
    let table = table();
    let stored = fs::read_to_string(path).unwrap_or_default();
    assert!(stored == table, "it is otherwise:\n{table}");
}

/// Agent, script · events of hooks, denied calls · the classes of the stream and
/// of the join of both channels.
const JOINS: &str = "\
claude claude-background · 6 0 ·
claude claude-others · 10 0 ·
claude claude-task · 8 0 ·
claude claude-tasks · 17 0 ·
claude denied · 7 1 ·
claude loop · 16 0 ·
claude parallel · 10 0 ·
claude plan · 4 0 ·
claude same · 6 0 ·
claude work · 10 0 ·
claude wrong-call · 4 0 ·
codex codex-abandoned · 3 0 ·
codex codex-others · 6 0 ·
codex codex-stdin · 4 0 ·
codex codex-task · 10 0 ·
codex denied · 7 1 ·
codex loop · 16 0 ·
codex parallel · 10 0 ·
codex plan · 4 0 ·
codex same · 6 0 ·
codex work · 10 0 ·
codex wrong-call · 4 0 ·
gemini denied · 7 1 ·
gemini gemini-others · 10 0 ·
gemini gemini-task · 8 0 ·
gemini loop · 9 0 ·
gemini parallel · 10 0 ·
gemini plan · 10 0 ·
gemini same · 6 0 ·
gemini work · 10 0 ·
gemini wrong-call · 4 0 ·
opencode denied · 8 1 ·
opencode loop · 16 0 ·
opencode opencode-others · 8 1 ·
opencode opencode-task · 15 0 ·
opencode opencode-timeout · 4 0 · agent_stream_invalid
opencode parallel · 10 0 ·
opencode plan · 10 0 ·
opencode same · 6 0 ·
opencode work · 10 0 ·
opencode wrong-call · 6 0 ·
";

#[test]
fn the_channels_of_every_run_agree() {
    let joins: String = recorded_agents()
        .into_iter()
        .flat_map(hooked_recordings)
        .map(|recording| join(&recording) + "\n")
        .collect();
    assert!(joins == JOINS, "it is otherwise:\n{joins}");
}

fn join(recording: &Recording) -> String {
    let mut journal = HookJournal::new(recording.agent, policy(), "/scratch/work");
    let events = recording.hooks.lines();
    let answers = events.map(|event| journal.take(event.as_bytes()).1);
    let denied = answers.filter(|answer| !answer.is_empty()).count();
    let stream = fold(recording.agent, &recording.stream);
    let own = stream.classes().into_iter();
    let joined = reconcile(&stream, &journal).into_iter();
    let classes = own.chain(joined.map(|fault| fault.class));
    let classes: Vec<String> = classes.map(|class| class.to_string()).collect();
    format!(
        "{} {} · {} {denied} · {}",
        recording.agent.as_str(),
        recording.script,
        recording.hooks.lines().count(),
        classes.join(" "),
    )
    .trim_end()
    .to_owned()
}

#[test]
fn a_denied_call_did_not_run_and_the_agent_continued() {
    for agent in recorded_agents() {
        let mut recordings = hooked_recordings(agent);
        recordings.retain(|recording| recording.script == "denied");
        let [recording] = &recordings[..] else {
            panic!("{agent:?} was not recorded")
        };
        let calls: Vec<Row> = rows(recording);
        assert_eq!(calls.iter().filter(|row| row.is_denied).count(), 1);
        let continued = calls.iter().filter(|row| row.end == "ok").count();
        assert_eq!(continued, 2, "{agent:?}");
        assert_eq!(recording.exit_code, Some(0));
        // The model saw the reason: another answer came.
        assert_eq!(recording.journal.len() - asides(recording), 3);
        let is_codex = agent == Agent::Codex;
        let reason = "this file is not to be made";
        assert_eq!(recording.stream.contains(reason), !is_codex, "{agent:?}");
    }
}

fn asides(recording: &Recording) -> usize {
    let asides = recording.journal.iter();
    asides.filter(|answer| answer["played"] == "aside").count()
}
