//! What an agent did, as spans and sums: calls with the times of their hooks, tokens,
//! cost and denials.

use super::hooks::played_in;
use super::otlp::{exported, nanoseconds, points, spans, sums_are_those_of_status, text};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::Span;
use premath_memory::hook_journals;
use premath_tests::{Posted, Scratch, binaries, receiver};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn figure(attributes: &[KeyValue], key: &str) -> Option<f64> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::IntValue(count) => Some(*count as f64),
        Any::DoubleValue(amount) => Some(*amount),
        Any::BoolValue(flag) => Some(f64::from(*flag)),
        other => panic!("{key}: {other:?}"),
    }
}

/// Reads the journal of an attempt's hooks.
fn journal(scratch: &Scratch, step: &str) -> Vec<Value> {
    let streams = scratch.root.join("artifacts/streams");
    let mut lines = Vec::new();
    let file = streams.join(format!("{step}.work.hooks.jsonl"));
    let is_there = hook_journals::lines_of(&file, |line| {
        lines.push(serde_json::from_slice(line).unwrap());
    });
    assert!(is_there.unwrap(), "{file:?}");
    lines
}

#[test]
fn calls_are_spans_with_the_times_of_their_hooks_and_denials_are_counted() {
    let (url, posted) = receiver(&["200 OK"]);
    let more = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    let scratch = exported(1, &["a"], &url, more);
    // The second call begins and ends beside the first; the third is denied.
    let body = "begin; prompt; send \"$(event PreToolUse c1 ls)\"; ran item_0 \"/bin/sh -c ls\"\n\
        send \"$(event PreToolUse c2 true)\"; ran item_1 \"/bin/sh -c true\"\n\
        sleep 0.2; send \"$(event PostToolUse c2 true)\"; send \"$(event PostToolUse c1 ls)\"\n\
        send \"$(event PreToolUse c3 'git push')\"; end\n";
    assert_eq!(played_in(&scratch, body), [""; 0]);
    let posted: Vec<Posted> = posted.try_iter().collect();
    let spans = spans(&posted);
    let row = &scratch.steps_of("a")[0];
    let is_attempt = |span: &&Span| span.name == "attempt";
    let attempt = spans.iter().find(is_attempt).unwrap();
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "call").collect();
    assert_eq!(calls.len(), 3, "{spans:?}");
    let journal = journal(&scratch, row["stepId"].as_str().unwrap());
    for (number, call) in (1..).zip(&calls) {
        assert_eq!(call.parent_span_id, attempt.span_id);
        assert_eq!(call.trace_id, attempt.trace_id);
        let of_call = |kind: &str| {
            let is_it = |line: &&Value| line["call"] == number && line["kind"] == kind;
            journal.iter().find(is_it)
        };
        let began = nanoseconds(of_call("before").unwrap(), "at");
        let ended = of_call("after").map(|line| nanoseconds(line, "at"));
        assert_eq!(call.start_time_unix_nano, began);
        assert_eq!(call.end_time_unix_nano, ended.unwrap_or(began));
        assert!(nanoseconds(row, "startedAt") <= began);
        assert!(call.end_time_unix_nano <= nanoseconds(row, "finishedAt"));
        let word = |key: &str| text(&call.attributes, key);
        assert_eq!(word("gen_ai.operation.name"), Some("execute_tool"));
        assert_eq!(word("gen_ai.tool.name"), Some("Bash"));
        assert_eq!(word("gen_ai.tool.call.id"), Some(&*format!("c{number}")));
        assert_eq!(word("premath.tool.class"), Some("shell"));
        let denied = (number == 3).then_some("no_push");
        assert_eq!(word("premath.denied_by"), denied);
        let code = call.status.as_ref().unwrap().code;
        assert_eq!(code, if denied.is_some() { 2 } else { 1 });
    }
    // The waits of the program show: what is between the events is the call.
    let length = |span: &Span| span.end_time_unix_nano - span.start_time_unix_nano;
    assert!(length(calls[1]) >= 200_000_000 && length(calls[0]) > length(calls[1]));
    let all = &attempt.attributes;
    assert_eq!(text(all, "gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(text(all, "gen_ai.agent.name"), Some("codex"));
    assert_eq!(text(all, "gen_ai.provider.name"), Some("openai"));
    assert_eq!(figure(all, "gen_ai.usage.input_tokens"), Some(1.0));
    assert_eq!(figure(all, "gen_ai.usage.output_tokens"), Some(1.0));
    assert_eq!(figure(all, "premath.agent.denied_calls"), Some(1.0));
    sums_are_those_of_status(&scratch, &posted);
    assert_eq!(
        points(&posted, "rule")["premath.batch.denied_calls/no_push"],
        1.0
    );
    assert_eq!(points(&posted, "rule")["premath.batch.tokens"], 2.0);
    // What calls are made with is not sent.
    let bodies = posted.iter().map(|(_, body)| String::from_utf8_lossy(body));
    assert!(bodies.into_iter().all(|body| !body.contains("git push")));
}

#[test]
fn cost_and_model_are_those_that_the_agent_reported() {
    let (url, posted) = receiver(&["200 OK"]);
    let scratch = exported(1, &["a"], &url, "[agent]\nhooks = \"off\"\n");
    let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = programs.path().join("claude");
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-\u{1b}x",
            "cwd": "/w", "tools": []}),
        json!({"type": "assistant", "message": {"id": "m1", "content": [
            {"type": "text", "text": "Done."}], "stop_reason": null}, "parent_tool_use_id": null,
            "session_id": "s"}),
        json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
            "total_cost_usd": 0.21, "usage": {"input_tokens": 40, "cache_read_input_tokens": 90,
            "output_tokens": 13}, "permission_denials": [], "session_id": "s"}),
    ];
    let text_of = lines
        .map(|line| format!("printf '%s\\n' '{line}'\n"))
        .concat();
    let script = format!("#!/bin/sh\necho change > change.txt\n{text_of}");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        programs.path().display(),
        std::env::var("PATH").unwrap()
    );
    let run = scratch.run(&binaries().coordinator).env("PATH", path);
    let run = run.args(["--json", "--override-reason", "test", "--landing", "none"]);
    let run = run.args([
        "--agent",
        "claude",
        "--verify-cmd",
        "true",
        "--startup",
        "off",
    ]);
    run.arg("--worktree").arg(&scratch.lanes[0]).end().exits(0);
    let posted: Vec<Posted> = posted.try_iter().collect();
    sums_are_those_of_status(&scratch, &posted);
    let attempts = scratch.steps_of("a").len() as f64;
    let cost = points(&posted, "x")["premath.batch.cost"];
    assert!((cost - 0.21 * attempts).abs() < 1e-9, "{cost}");
    let spans = spans(&posted);
    let attempt = spans.iter().find(|span| span.name == "attempt").unwrap();
    let all = &attempt.attributes;
    assert_eq!(text(all, "gen_ai.provider.name"), Some("anthropic"));
    assert_eq!(text(all, "gen_ai.response.model"), Some("claude-\\u{1b}x"));
    assert_eq!(figure(all, "premath.agent.cost_usd"), Some(0.21));
    let tokens = &scratch.steps_of("a")[0]["agent"]["tokens"];
    for (key, field) in [
        ("gen_ai.usage.input_tokens", "input"),
        ("gen_ai.usage.cache_read.input_tokens", "cached"),
        ("gen_ai.usage.output_tokens", "output"),
    ] {
        assert_eq!(figure(all, key), tokens[field].as_f64(), "{key}: {tokens}");
    }
    // Without hooks no call has a time, so none is a span.
    assert!(spans.iter().all(|span| span.name != "call"));
}
