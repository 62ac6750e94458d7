//! What each recording amounts to, beside what its script did.

use super::{Recording, recorded_agents, recordings};
use crate::judge::{evidence, fold, gate};
use premath_evidence::Terminal;

/// Agent, script, exit code · the ends of the calls, in the order in which they
/// were reported · the terminal event · the stream's classes, then the gate's.
const AMOUNTS: &str = "\
claude broken 1 · ok · failed api_error · protocol.stop_reason_unhandled
claude claude-background 0 · ok · end_turn ·
claude claude-declined 1 · ok · failed is_error · protocol.stop_reason_unhandled
claude claude-full 1 · ok · failed max_output_tokens · protocol.stop_reason_unhandled
claude claude-others 0 · tool_refused ok ok tool_refused command_failed ok · end_turn ·
claude claude-task 0 · ok ok · end_turn ·
claude claude-tasks 0 · ok ok ok ok · end_turn ·
claude claude-timeout stopped · ok · none · agent_stream_invalid protocol.stop_reason_unhandled
claude cut 0 · ok ok · end_turn ·
claude cut-call 0 · ok ok · end_turn ·
claude cut-off 1 · ok · failed connection_failed · protocol.stop_reason_unhandled
claude exhausted 1 · ok · failed rate_limit_error · usage_limit protocol.stop_reason_unhandled
claude hiccup 0 · ok · end_turn ·
claude limited 0 · ok ok · end_turn ·
claude loop 0 · ok ok ok ok ok ok ok · end_turn ·
claude parallel 0 · ok command_failed ok ok · end_turn ·
claude plain 0 ·  · end_turn ·
claude plan 0 · tool_refused ok tool_refused tool_refused · end_turn ·
claude refused 1 · ok · failed invalid_request_error · protocol.stop_reason_unhandled
claude work 0 · ok ok ok ok · end_turn ·
claude wrong-call 0 · tool_refused tool_error · end_turn ·
codex broken 1 · ok · failed turn_failed · protocol.stop_reason_unhandled
codex codex-abandoned 0 · open · end_turn · tool.join_incomplete tool.result_missing
codex codex-others 0 · ok · end_turn ·
codex codex-stdin 0 · ok · end_turn ·
codex codex-used-up 1 · ok · failed turn_failed · usage_limit protocol.stop_reason_unhandled
codex cut 0 · ok ok · end_turn ·
codex cut-call 0 · ok ok · end_turn ·
codex cut-off 1 · ok · failed turn_failed · protocol.stop_reason_unhandled
codex exhausted 1 · ok · failed turn_failed · usage_limit protocol.stop_reason_unhandled
codex hiccup 0 · ok · end_turn ·
codex limited 0 · ok ok · end_turn ·
codex loop 0 · ok ok ok ok ok ok ok · end_turn ·
codex parallel 0 · ok ok command_failed ok · end_turn ·
codex plain 0 ·  · end_turn ·
codex plan 0 · ok · end_turn ·
codex refused 1 · ok · failed turn_failed · protocol.stop_reason_unhandled
codex work 0 · ok ok command_failed ok · end_turn ·
codex wrong-call 0 · command_failed · end_turn ·
gemini broken 244 · ok · failed result_error · protocol.stop_reason_unhandled
gemini cut 0 · ok · end_turn ·
gemini cut-off 0 · ok · end_turn ·
gemini exhausted 173 · ok · failed result_error · usage_limit protocol.stop_reason_unhandled
gemini gemini-others 0 · ok edit_no_occurrence_found ok command_failed invalid_tool_params · end_turn ·
gemini hiccup 0 · ok · end_turn ·
gemini limited 0 · ok ok · end_turn ·
gemini loop 0 · ok ok ok ok · failed loop_detected · protocol.stop_reason_unhandled
gemini parallel 0 · ok ok ok ok · end_turn ·
gemini plain 0 ·  · end_turn ·
gemini plan 0 · ok ok ok ok · end_turn ·
gemini refused 144 · ok · failed result_error · protocol.stop_reason_unhandled
gemini turn-limit 53 · ok ok ok ok ok ok ok ok ok ok ok ok · failed turn_limit · protocol.stop_reason_unhandled
gemini work 0 · ok ok command_failed ok · end_turn ·
gemini wrong-call 0 · tool_not_registered file_not_found · end_turn ·
opencode broken 1 · ok · failed APIError · protocol.stop_reason_unhandled
opencode cut 0 · ok ok · end_turn ·
opencode cut-call 0 · ok ok · end_turn ·
opencode cut-off 1 · ok · failed APIError · protocol.stop_reason_unhandled
opencode exhausted 1 · ok · failed APIError · usage_limit protocol.stop_reason_unhandled
opencode hiccup 0 · ok · end_turn ·
opencode limited 0 · ok ok · end_turn ·
opencode loop 0 · ok ok ok ok ok ok ok · end_turn ·
opencode opencode-hang stopped ·  · none · agent_stream_invalid protocol.stop_reason_unhandled
opencode opencode-others 0 · tool_error ok tool_error · end_turn ·
opencode opencode-task 0 · ok · end_turn ·
opencode opencode-timeout 0 · open · end_turn · agent_stream_invalid protocol.stop_reason_unhandled tool.join_incomplete tool.result_missing
opencode parallel 0 · ok ok ok command_failed · end_turn ·
opencode plain 0 ·  · end_turn ·
opencode plan 0 · ok ok ok ok · end_turn ·
opencode refused 1 · ok · failed APIError · protocol.stop_reason_unhandled
opencode work 0 · ok ok command_failed ok · end_turn ·
opencode wrong-call 0 · invalid_call tool_error · end_turn ·
";

fn amount(recording: &Recording) -> String {
    let stream = fold(recording.agent, &recording.stream);
    let ends: Vec<&str> = stream
        .calls()
        .map(|call| match &call.result {
            None => "open",
            Some(_) => call.failure().unwrap_or("ok"),
        })
        .collect();
    let terminal = match stream.terminal() {
        None => "none".to_owned(),
        Some(Terminal::Finished { stop_reason }) => stop_reason.clone(),
        Some(Terminal::Failed { reason, .. }) => format!("failed {reason}"),
    };
    let own = stream.classes().into_iter();
    let gate = gate(&evidence(&stream)).into_iter();
    let classes: Vec<String> = own.chain(gate).map(|class| class.to_string()).collect();
    let exit = recording.exit_code;
    format!(
        "{} {} {} · {} · {terminal} · {}",
        recording.agent.as_str(),
        recording.script,
        exit.map_or("stopped".to_owned(), |code| code.to_string()),
        ends.join(" "),
        classes.join(" "),
    )
    .trim_end()
    .to_owned()
}

#[test]
fn every_recording_amounts_to_what_its_script_did() {
    let amounts: String = recorded_agents()
        .into_iter()
        .flat_map(recordings)
        .map(|recording| amount(&recording) + "\n")
        .collect();
    assert!(amounts == AMOUNTS, "it is otherwise:\n{amounts}");
}
