//! What Claude Code alone has: tasks in the background, calls that were kept
//! from running, and what a resumed session cost before.

use crate::judge::{fold, good, refusal};
use premath_evidence::{Agent, AgentStream, Flaw, FoldedStream, Terminal, Tokens};

const LAUNCH: &str = r#"{"type":"assistant","message":{"id":"m9","content":[{"type":"tool_use","id":"toolu_9","name":"Bash","input":{"command":"make","run_in_background":true}}]},"parent_tool_use_id":null}
{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t1","run_id":"r1","task_type":"local_bash"}]}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9","content":"running","is_error":false}]},"parent_tool_use_id":null}
"#;

const TOLD: &str = r#"{"type":"system","subtype":"task_notification","task_id":"t1","run_id":"r1","tool_use_id":"toolu_9","status":"completed"}
{"type":"system","subtype":"background_tasks_changed","tasks":[]}
"#;

const END: &str = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"stop_reason\":\"end_turn\"}\n";

fn with_task(rest: &str) -> String {
    let (begin, _) = good(Agent::Claude).split_once('\n').unwrap();
    format!("{begin}\n{LAUNCH}{rest}")
}

fn is_over(stream: &str) -> bool {
    let mut read = AgentStream::new(Agent::Claude);
    read.feed(stream.as_bytes());
    read.so_far().is_over()
}

fn is_done(stream: &FoldedStream) -> bool {
    matches!(stream.terminal(), Some(Terminal::Finished { .. }))
}

#[test]
fn an_agent_that_waits_for_a_task_is_not_over() {
    let waits = with_task(END);
    assert!(!is_over(&waits));
    // Nor is it evidence, where it was ended while it waited.
    let flaws: Vec<Flaw> = fold(Agent::Claude, &waits)
        .faults()
        .iter()
        .map(|fault| fault.flaw.clone())
        .collect();
    assert_eq!(flaws, [Flaw::TasksRunning(1)]);
    assert!(!refusal(Agent::Claude, &waits).is_empty());
    // It receives that the task is over, and takes another turn.
    let told = with_task(&format!("{END}{TOLD}"));
    assert!(!is_over(&told));
    assert!(!refusal(Agent::Claude, &told).is_empty());
    let done = with_task(&format!("{END}{TOLD}{END}"));
    assert!(is_over(&done));
    assert!(is_done(&fold(Agent::Claude, &done)));
    assert_eq!(refusal(Agent::Claude, &done), [].into());
    // A task that ends in the middle of a turn needs no other one.
    let within = with_task(&format!("{TOLD}{END}"));
    assert_eq!(refusal(Agent::Claude, &within), [].into());
}

#[test]
fn a_list_of_tasks_that_is_none_is_a_flaw() {
    let odd = with_task(&format!("{TOLD}{END}")).replace("\"tasks\":[]", "\"tasks\":7");
    assert!(!refusal(Agent::Claude, odd).is_empty());
}

#[test]
fn a_call_that_failed_says_how() {
    let ends = [
        ("PreToolUse:Bash hook error: no", true, "call_denied"),
        (
            "<tool_use_error>Error: No such tool available: x</tool_use_error>",
            false,
            "tool_refused",
        ),
        ("Exit code 3\\nout", false, "command_failed"),
        ("File does not exist.", false, "tool_error"),
    ];
    for (said, was_kept, class) in ends {
        let meta = match was_kept {
            true => {
                r#""tool_result_meta":[{"id":"toolu_4","non_execution_kind":"permission-rule"}]"#
            }
            false => r#""tool_result_meta":[{"id":"toolu_4","permission_decision":{}}]"#,
        };
        let end = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_4\"";
        let with_meta = end.replacen('{', &format!("{{{meta},"), 1);
        let stream = good(Agent::Claude)
            .replace("exit 101", said)
            .replace(end, &with_meta);
        let stream = fold(Agent::Claude, stream);
        assert!(stream.faults().is_empty(), "{:?}", stream.faults());
        let failures: Vec<&str> = stream.calls().filter_map(|call| call.failure()).collect();
        assert_eq!(failures, [class]);
    }
}

#[test]
fn a_resumed_session_costs_what_this_run_spent_with_its_sub_agents() {
    let model = r#""model_usage_since_last_result":{"a":{"inputTokens":5,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":1,"costUSD":0.02},"b":{"inputTokens":10,"outputTokens":1,"costUSD":0.01}}"#;
    let one = good(Agent::Claude).replace(
        "\"usage\":{\"input_tokens\":40",
        &format!("{model},\"usage\":{{\"input_tokens\":40"),
    );
    let stream = fold(Agent::Claude, &one);
    let spent = stream.spent();
    assert_eq!(spent.cost_nano_usd, Some(30_000_000));
    let tokens = Tokens {
        input: 19,
        cached: 3,
        output: 3,
    };
    assert_eq!(spent.tokens, Some(tokens));
    let again = one.replace("toolu_", "again_");
    let twice = fold(Agent::Claude, format!("{one}{again}")).spent();
    assert_eq!(twice.cost_nano_usd, Some(60_000_000));
    // Amounts of another form are not evidence.
    let odd = one.replace("\"costUSD\":0.01", "\"costUSD\":\"little\"");
    assert!(!refusal(Agent::Claude, odd).is_empty());
}
