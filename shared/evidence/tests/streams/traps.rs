//! The traps of each format, one by one.

use crate::judge::{evidence, evidence_with, fold, gate, good, own, refusal, step};
use premath_evidence::{
    AGENT_NORMALIZER, Agent, CallEnd, FoldedStream, LimitStatus, Terminal, Tokens,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::Disposition;
use std::collections::BTreeMap;

/// Where each call's result was read: by call id, the line's number.
fn read_at(stream: &FoldedStream) -> BTreeMap<&str, Option<u64>> {
    let calls = stream.calls();
    calls
        .map(|call| {
            let result = call.result.as_ref().unwrap();
            let line = result.read_at.as_ref().map(|source| source.line);
            (&*call.id, line)
        })
        .collect()
}

fn ends(stream: &FoldedStream) -> BTreeMap<&str, &str> {
    let calls = stream.calls();
    calls
        .map(|call| (&*call.id, call.failure().unwrap_or("ok")))
        .collect()
}

fn tools(stream: &FoldedStream) -> Vec<(&str, &str, bool)> {
    let calls = stream.calls();
    calls
        .map(|call| {
            let request = call.request.as_ref().unwrap();
            (&*call.id, &*request.tool, request.synthesized)
        })
        .collect()
}

#[test]
fn blocks_of_one_claude_message_are_calls_of_one_group() {
    let stream = fold(Agent::Claude, good(Agent::Claude));
    assert_eq!(
        tools(&stream),
        [
            ("toolu_1", "Bash", false),
            ("toolu_2", "Task", false),
            ("toolu_3", "Read", false),
            ("toolu_4", "Bash", false),
        ]
    );
    let input = evidence(&stream);
    let groups: Vec<_> = input.evidence.tool_requests[..4]
        .iter()
        .map(|row| row.facts.as_ref().unwrap().call_group.as_deref().unwrap())
        .collect();
    assert_eq!(groups, ["m1", "m1", "n1", "m2"]);
}

#[test]
fn what_is_in_one_claude_message_has_not_read_its_own_results() {
    let lines = [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}}"#,
        r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"b","name":"Bash","input":{}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}"#,
    ];
    let end = r#"{"type":"result","subtype":"success","is_error":false}"#;
    let stream = fold(Agent::Claude, format!("{}\n{end}\n", lines.join("\n")));
    assert_eq!(read_at(&stream), [("a", None), ("b", None)].into());
    let later =
        r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"y"}]}}"#;
    let stream = fold(
        Agent::Claude,
        format!("{}\n{later}\n{end}\n", lines.join("\n")),
    );
    assert_eq!(read_at(&stream), [("a", Some(6)), ("b", Some(6))].into());
}

#[test]
fn a_claude_success_that_is_an_error_is_a_failure() {
    let bad =
        good(Agent::Claude).replace(r#""is_error":false"#, r#""is_error":true,"result":"no""#);
    let stream = fold(Agent::Claude, &bad);
    assert_eq!(
        stream.terminal(),
        Some(&Terminal::Failed {
            reason: "is_error".into(),
            message: "no".into()
        })
    );
    assert!(stream.faults().is_empty());
    // The agent's own word is never one that the gate handles.
    let sly = good(Agent::Claude).replace(r#""subtype":"success""#, r#""subtype":"end_turn""#);
    assert!(refusal(Agent::Claude, sly).contains(&FailureClass::ProtocolStopReasonUnhandled));
}

#[test]
fn a_sub_agents_calls_are_edges_from_the_call_that_it_runs_in() {
    let stream = fold(Agent::Claude, good(Agent::Claude));
    let input = evidence(&stream);
    let work = format!("{}/work", step().step_id());
    let parents: Vec<_> = input.evidence.tool_requests[..4]
        .iter()
        .map(|row| row.facts.as_ref().unwrap().parent_call_id.clone().unwrap())
        .collect();
    assert_eq!(
        parents,
        [
            work.clone(),
            work.clone(),
            format!("{work}/toolu_2"),
            work.clone()
        ]
    );
    // What the sub-agent was given, its own model never spoke after.
    assert_eq!(
        read_at(&stream),
        [
            ("toolu_1", Some(11)),
            ("toolu_2", Some(11)),
            ("toolu_3", None),
            ("toolu_4", Some(13))
        ]
        .into()
    );
}

#[test]
fn a_claude_session_reports_its_cost_so_far_and_a_message_its_tokens_in_every_line() {
    let whole = good(Agent::Claude);
    let stream = fold(Agent::Claude, whole);
    let spent = stream.spent();
    assert_eq!(spent.cost_nano_usd, Some(210_000_000));
    assert_eq!(
        spent.tokens,
        Some(Tokens {
            input: 130,
            cached: 90,
            output: 13
        })
    );
    // A second turn of the session says the sum of both.
    let more = whole.replace("0.21", "0.35").replace("toolu_", "again_");
    let twice = fold(Agent::Claude, format!("{whole}{more}"));
    assert_eq!(twice.spent().cost_nano_usd, Some(350_000_000));
    assert!(twice.faults().is_empty(), "{:?}", twice.faults());
    // Before the turn is over, each message counts once, as its last line says.
    let so_far = whole.rsplit_once("{\"type\":\"result\"").unwrap().0;
    let spent = fold(Agent::Claude, so_far).spent();
    assert_eq!(
        spent.tokens,
        Some(Tokens {
            input: 120,
            cached: 90,
            output: 13
        })
    );
}

#[test]
fn an_allowed_limit_is_routine_and_a_rejected_one_parks_the_provider() {
    let whole = good(Agent::Claude);
    assert!(fold(Agent::Claude, whole).rejected().is_none());
    let rejected = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1783173600}}"#;
    let synthetic = r#"{"type":"assistant","message":{"id":"e","model":"<synthetic>","content":[{"type":"text","text":"limit reached"}]}}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit"}"#;
    let before = whole.rsplit_once("{\"type\":\"result\"").unwrap().0;
    let stream = fold(
        Agent::Claude,
        format!("{before}{rejected}\n{synthetic}\n{end}\n"),
    );
    assert_eq!(stream.classes(), [FailureClass::UsageLimit]);
    let limit = stream.rejected().unwrap();
    assert_eq!(
        (&limit.status, limit.resets_at),
        (&LimitStatus::Rejected, Some(1_783_173_600))
    );
    // Hung up on instead, the limit is still the cause.
    let stream = fold(Agent::Claude, format!("{before}{rejected}\n"));
    assert_eq!(
        stream.classes(),
        [FailureClass::UsageLimit, FailureClass::AgentStreamInvalid]
    );
    // Work that continued after it makes it history.
    let stream = fold(Agent::Claude, whole.replace("\"allowed\"", "\"rejected\""));
    assert_eq!(stream.classes(), []);
    assert!(stream.rejected().is_none());
}

#[test]
fn retries_are_counted_and_are_not_failures() {
    for (agent, retries) in [(Agent::Claude, 1), (Agent::Codex, 1)] {
        let stream = fold(agent, good(agent));
        assert_eq!(stream.queue_reduction()["retries"], retries);
        assert_eq!(gate(&evidence(&stream)), [].into());
    }
}

#[test]
fn codex_calls_of_every_kind_are_there_once() {
    let stream = fold(Agent::Codex, good(Agent::Codex));
    assert_eq!(
        tools(&stream),
        [
            ("item_1.1", "update_plan", true),
            ("item_2", "command_execution", false),
            ("item_1.2", "update_plan", true),
            ("item_3", "mcp.docs.find", false),
            ("item_4", "file_change", true),
            ("item_5", "web_search", false),
            ("item_6", "command_execution", false),
        ]
    );
    assert_eq!(ends(&stream)["item_6"], "command_failed");
    assert_eq!(stream.last_notice(), Some("a model was deprecated"));
    let input = evidence(&stream);
    let marked = input.evidence.tool_requests.iter();
    let marked = marked.filter(|row| row.facts.as_ref().is_some_and(|facts| facts.synthesized));
    assert_eq!(marked.count(), 3);
}

#[test]
fn a_codex_command_that_was_declined_or_failed_has_ended() {
    for (status, code, class) in [
        ("declined", "null", "declined"),
        ("failed", "1", "command_failed"),
        ("failed", "0", "tool_error"),
        ("completed", "3", "command_failed"),
        ("completed", "0", "ok"),
    ] {
        let stream = good(Agent::Codex).replace(
            r#""exit_code":101,"status":"failed""#,
            &format!(r#""exit_code":{code},"status":"{status}""#),
        );
        let stream = fold(Agent::Codex, stream);
        assert_eq!(ends(&stream)["item_6"], class, "{status} {code}");
        assert_eq!(gate(&evidence(&stream)), [].into(), "{status} {code}");
    }
}

#[test]
fn a_codex_file_change_may_begin_begin_late_or_not_at_all() {
    let end = r#"{"type":"item.completed","item":{"id":"item_4","type":"file_change""#;
    let begin = |phase: &str| {
        format!(
            r#"{{"type":"item.{phase}","item":{{"id":"item_4","type":"file_change","changes":[],"status":"in_progress"}}}}
{end}"#
        )
    };
    for (begin, synthesized) in [
        (end.to_owned(), true),
        (begin("started"), false),
        (begin("updated"), false),
    ] {
        let stream = fold(Agent::Codex, good(Agent::Codex).replace(end, &begin));
        let request = stream.calls().nth(4).unwrap().request.as_ref().unwrap();
        assert_eq!(
            (&*stream.calls().nth(4).unwrap().id, request.synthesized),
            ("item_4", synthesized)
        );
        assert_eq!(gate(&evidence(&stream)), [].into());
    }
}

#[test]
fn codex_usage_is_a_running_total() {
    let turn = |tokens: u64| {
        format!(
            r#"{{"type":"turn.started"}}
{{"type":"turn.completed","usage":{{"input_tokens":{tokens},"cached_input_tokens":0,"output_tokens":1}}}}
"#
        )
    };
    let stream = format!("{}{}", good(Agent::Codex), turn(2000));
    let spent = fold(Agent::Codex, stream).spent();
    assert_eq!(
        spent.tokens,
        Some(Tokens {
            input: 2000,
            cached: 0,
            output: 1
        })
    );
}

#[test]
fn a_codex_that_never_launched_printed_nothing() {
    let stream = fold(Agent::Codex, "");
    assert_eq!(stream.log().lines, 0);
    assert_eq!(stream.classes(), [FailureClass::AgentStreamInvalid]);
    assert_eq!(
        stream.faults()[0].to_string(),
        "the stream is empty: the agent did not start"
    );
}

#[test]
fn a_codex_or_gemini_usage_limit_is_reported_in_words() {
    let said = "You've hit your usage limit. Try again later.";
    let codex = good(Agent::Codex)
        .rsplit_once("{\"type\":\"turn.completed")
        .unwrap()
        .0;
    let codex =
        format!("{codex}{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{said}\"}}}}\n");
    assert_eq!(
        fold(Agent::Codex, codex).classes(),
        [FailureClass::UsageLimit]
    );
    let gemini = good(Agent::Gemini).replace(
        r#""status":"success","stats""#,
        r#""status":"error","error":{"type":"x","message":"Quota exceeded"},"stats""#,
    );
    assert_eq!(
        fold(Agent::Gemini, gemini).classes(),
        [FailureClass::UsageLimit]
    );
    let opencode = format!(
        "{}{}\n",
        good(Agent::OpenCode),
        r#"{"type":"error","sessionID":"o-1","error":{"name":"APIError","data":{"message":"no","statusCode":429}}}"#
    );
    assert_eq!(
        fold(Agent::OpenCode, opencode).classes(),
        [FailureClass::UsageLimit]
    );
}

#[test]
fn an_opencode_limit_resets_when_the_provider_says_counted_from_the_line() {
    for (header, resets_at) in [
        (r#""retry-after":"90""#, Some(1_800_000_090)),
        (r#""retry-after":"Fri, 15 Jan 2027 08:01:30 GMT""#, None),
        (r#""content-length":"90""#, None),
    ] {
        let said = format!(
            r#"{{"type":"error","timestamp":1800000000123,"sessionID":"o-1","error":{{"name":"APIError","data":{{"message":"no","statusCode":429,"responseHeaders":{{{header}}}}}}}}}"#
        );
        let stream = fold(
            Agent::OpenCode,
            format!("{}{said}\n", good(Agent::OpenCode)),
        );
        assert_eq!(stream.classes(), [FailureClass::UsageLimit]);
        assert_eq!(stream.rejected().unwrap().resets_at, resets_at, "{header}");
    }
}

#[test]
fn a_cancelled_gemini_call_that_bears_an_error_failed() {
    let stream = good(Agent::Gemini).replace(
        r#""tool_id":"c-3","status":"success""#,
        r#""tool_id":"c-3","status":"success","error":{"type":"","message":"cancelled"}"#,
    );
    let stream = fold(Agent::Gemini, stream);
    assert_eq!(
        ends(&stream),
        [
            ("c-1", "ok"),
            ("c-2", "FILE_NOT_FOUND"),
            ("c-3", "tool_error")
        ]
        .into()
    );
    assert_eq!(gate(&evidence(&stream)), [].into());
}

#[test]
fn a_gemini_command_that_printed_nothing_says_in_words_that_it_failed() {
    for (output, end) in [
        ("Command exited with code: 2", "command_failed"),
        ("Command terminated by signal: 9", "command_failed"),
        ("Command exited with code: 2, said a log", "ok"),
        ("no, Command exited with code: 2", "ok"),
    ] {
        let output = format!(r#""output":"{output}""#);
        let stream = good(Agent::Gemini).replace(r#""output":"a.rs""#, &output);
        let stream = fold(Agent::Gemini, stream);
        assert_eq!(ends(&stream)["c-1"], end, "{output}");
        assert_eq!(gate(&evidence(&stream)), [].into());
    }
    // Only commands speak so.
    let read = good(Agent::Gemini).replace(
        r#""tool_id":"c-3","status":"success""#,
        r#""tool_id":"c-3","status":"success","output":"Command exited with code: 2""#,
    );
    assert_eq!(ends(&fold(Agent::Gemini, read))["c-3"], "ok");
}

#[test]
fn a_gemini_run_that_was_stopped_is_not_a_success() {
    let (before, result) = good(Agent::Gemini)
        .split_once("{\"type\":\"result\"")
        .unwrap();
    for (severity, message, reason) in [
        (
            "warning",
            "Loop detected, stopping execution",
            Some("loop_detected"),
        ),
        ("error", "Maximum session turns exceeded", Some("stopped")),
        ("warning", "Agent execution blocked: no", None),
    ] {
        let said = format!(r#"{{"type":"error","severity":"{severity}","message":"{message}"}}"#);
        let stream = fold(
            Agent::Gemini,
            format!("{before}{said}\n{{\"type\":\"result\"{result}"),
        );
        let failed = match stream.terminal() {
            Some(Terminal::Failed { reason, .. }) => Some(reason.as_str()),
            _ => None,
        };
        assert_eq!(failed, reason, "{message}");
        // An agent that continues was not stopped.
        let stream = fold(Agent::Gemini, format!("{said}\n{}", good(Agent::Gemini)));
        assert_eq!(gate(&evidence(&stream)), [].into(), "{message}");
    }
}

#[test]
fn gemini_says_by_its_exit_code_that_the_turns_are_used_up() {
    let cut = good(Agent::Gemini)
        .rsplit_once("{\"type\":\"result\"")
        .unwrap()
        .0;
    let stream = fold(Agent::Gemini, cut);
    let mut work = own("work");
    work.exit_code = Some(53);
    work.end = Some(CallEnd::Error {
        class: "work_failed".into(),
        retryable: false,
        message: "exit code 53".into(),
    });
    let input = evidence_with(&stream, &[work]);
    assert_eq!(input.evidence.protocol_state.stop_reason, "turn_limit");
    assert!(gate(&input).contains(&FailureClass::ProtocolStopReasonUnhandled));
}

#[test]
fn an_opencode_call_is_made_up_from_its_end_and_marked_so() {
    let stream = fold(Agent::OpenCode, good(Agent::OpenCode));
    assert_eq!(
        tools(&stream),
        [
            ("call_1", "bash", true),
            ("call_2", "read", true),
            ("call_3", "bash", true)
        ]
    );
    assert_eq!(
        ends(&stream),
        [
            ("call_1", "ok"),
            ("call_2", "tool_error"),
            ("call_3", "command_failed")
        ]
        .into()
    );
    // A later step has read what the one before it gave.
    assert_eq!(
        read_at(&stream),
        [
            ("call_1", Some(7)),
            ("call_2", Some(7)),
            ("call_3", Some(10))
        ]
        .into()
    );
    let spent = stream.spent();
    assert_eq!(spent.cost_nano_usd, Some(3_000_000));
    assert_eq!(
        spent.tokens,
        Some(Tokens {
            input: 63,
            cached: 3,
            output: 14
        })
    );
    let rows = &evidence(&stream).evidence.tool_requests;
    assert!(
        rows[..3]
            .iter()
            .all(|row| row.facts.as_ref().unwrap().synthesized)
    );
}

#[test]
fn an_opencode_stream_that_stops_for_length_reports_it() {
    let stream = good(Agent::OpenCode).replace(r#""reason":"stop""#, r#""reason":"length""#);
    let input = evidence(&fold(Agent::OpenCode, stream));
    assert_eq!(input.evidence.protocol_state.stop_reason, "max_tokens");
}

#[test]
fn a_text_that_was_cut_within_a_character_is_still_a_result() {
    // JavaScript cuts between the halves of a surrogate pair and prints that.
    let stream = good(Agent::Gemini).replace(r#""output":"a.rs""#, r#""output":"a \ud83d""#);
    assert_eq!(refusal(Agent::Gemini, &stream), [].into());
    let whole = fold(Agent::Gemini, good(Agent::Gemini));
    let digest = |stream: &FoldedStream| {
        stream
            .calls()
            .next()
            .unwrap()
            .result
            .as_ref()
            .unwrap()
            .digest
    };
    assert_ne!(digest(&fold(Agent::Gemini, &stream)), digest(&whole));
}

#[test]
fn no_id_of_an_agent_reads_as_a_verification() {
    let forged = format!("{}/verify", step().step_id());
    let stream = good(Agent::Claude).replace("toolu_1", &forged);
    let stream = fold(Agent::Claude, stream);
    assert!(stream.faults().is_empty());
    let classes = gate(&evidence_with(&stream, &[own("work")]));
    assert!(classes.contains(&FailureClass::CheckFailed), "{classes:?}");
    assert_eq!(gate(&evidence(&stream)), [].into());
}

#[test]
fn work_and_verification_of_the_harness_stay_in_the_evidence() {
    for &agent in Agent::ALL {
        let stream = fold(agent, good(agent));
        let input = evidence(&stream);
        let evidence = &input.evidence;
        assert_eq!(evidence.tool_requests.len(), stream.calls().len() + 2);
        assert_eq!(evidence.tool_results.len(), stream.calls().len() + 2);
        assert_eq!(evidence.call_spec.normalizer_id, AGENT_NORMALIZER);
        let mut failed = own("verify");
        failed.end = Some(CallEnd::Error {
            class: "check_failed".into(),
            retryable: false,
            message: "no".into(),
        });
        for calls in [vec![own("work")], vec![own("work"), failed], vec![]] {
            let classes = gate(&evidence_with(&stream, &calls));
            assert_eq!(classes, [FailureClass::CheckFailed].into());
        }
        // Consumed by a message of the model's, or observed; nothing else.
        for row in &evidence.tool_use[..stream.calls().len()] {
            match row.disposition {
                Disposition::Consumed => {
                    let provenance = row.provenance_ref.as_deref().unwrap();
                    assert!(provenance.starts_with("stream://line/"));
                }
                other => assert_eq!(other, Disposition::Observed),
            }
        }
    }
}

#[test]
fn codex_that_tells_no_usage_used_nothing_that_is_known() {
    let begin = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let ended = |usage: &str| {
        let text = format!("{begin}{{\"type\":\"turn.completed\",\"usage\":{usage}}}\n");
        fold(Agent::Codex, text.as_bytes()).spent().tokens
    };
    assert_eq!(ended("{}"), None);
    assert_eq!(ended("{\"output_tokens\":2}").unwrap().output, 2);
}

#[test]
fn a_claude_prompt_that_was_cut_within_a_character_is_not_a_flaw() {
    let (begin, rest) = good(Agent::Claude).split_once('\n').unwrap();
    for line in [
        r#"{"type":"user","message":{"role":"user","content":"cut \ud83d"},"parent_tool_use_id":null}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"cut \ud83d"}]}}"#,
        r#"{"type":"stream_event","message":"cut \ud83d"}"#,
    ] {
        let stream = format!("{begin}\n{line}\n{rest}");
        assert_eq!(refusal(Agent::Claude, &stream), [].into(), "{line}");
    }
}

#[test]
fn what_claude_says_in_place_of_its_model_is_a_notice() {
    let (begin, rest) = good(Agent::Claude).split_once('\n').unwrap();
    for content in [
        r#""API Error""#,
        r#"[{"type":"thinking"},{"type":"text","text":"API Error"}]"#,
    ] {
        let line = format!(
            r#"{{"type":"assistant","message":{{"id":"e","model":"<synthetic>","content":{content}}}}}"#
        );
        let stream = fold(Agent::Claude, format!("{begin}\n{line}\n{rest}"));
        assert_eq!(stream.faults(), [], "{content}");
        assert_eq!(stream.last_notice(), Some("API Error"));
    }
}
