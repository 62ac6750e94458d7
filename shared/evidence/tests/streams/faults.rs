//! Faults planted in whole streams: each is refused, by the right class.

use crate::judge::{fold, good, refusal};
use crate::plant::Plant::{self, Before, Cut, Drop, End, Move, Replace, Swap, Twice};
use premath_evidence::Agent;
use premath_kernel::failure::FailureClass::{self, *};

/// What is wrong, how it is planted, and the class that refuses it.
type PlantedFault = (&'static str, Plant, FailureClass);

fn refused(agent: Agent, table: &[PlantedFault]) {
    assert_eq!(refusal(agent, good(agent)), [].into(), "as it is");
    assert!(table.len() >= 10);
    for (name, plant, class) in table {
        let stream = plant.into(good(agent));
        let classes = refusal(agent, &stream);
        assert!(
            classes.contains(class),
            "{name}: {classes:?}, faults {:?}",
            fold(agent, &stream).faults()
        );
    }
}

const CLAUDE: &[PlantedFault] = &[
    (
        "a request is lost",
        Drop(r#""id":"toolu_4""#),
        ToolResultOrphan,
    ),
    (
        "a result is lost",
        Drop(r#""tool_use_id":"toolu_4""#),
        ToolResultMissing,
    ),
    (
        "the begin is lost",
        Drop(r#""subtype":"init""#),
        AgentStreamInvalid,
    ),
    (
        "the terminal event is lost",
        End(r#""type":"result""#),
        AgentStreamInvalid,
    ),
    (
        "the results of two calls are swapped",
        Swap(r#""tool_use_id":"toolu_1""#, r#""tool_use_id":"toolu_4""#),
        ProtocolParallelTransportOrderInvalid,
    ),
    (
        "a result goes to a sub-agent that did not ask",
        Swap(r#""tool_use_id":"toolu_1""#, r#""tool_use_id":"toolu_3""#),
        ToolProgrammaticCallerEdgeInvalid,
    ),
    (
        "a result is invented",
        Before(
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_9","content":"all passed"}]}}"#,
            r#""id":"m3""#,
        ),
        ToolResultOrphan,
    ),
    (
        "a result comes twice",
        Twice(r#""tool_use_id":"toolu_4""#),
        AgentStreamInvalid,
    ),
    (
        "a request comes twice",
        Twice(r#""id":"toolu_4""#),
        AgentStreamInvalid,
    ),
    (
        "a result comes before its request",
        Move(r#""tool_use_id":"toolu_4""#, r#""id":"toolu_4""#),
        ProtocolParallelTransportOrderInvalid,
    ),
    (
        "a line is garbage",
        Before("npm WARN deprecated", r#""id":"m2""#),
        AgentStreamInvalid,
    ),
    ("the last line is cut", Cut(20), AgentStreamInvalid),
    (
        "an unknown type bears an id",
        Before(
            r#"{"type":"tool_batch","calls":[{"id":"toolu_7"}]}"#,
            r#""id":"m2""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "an unknown type bears a status",
        Before(
            r#"{"type":"system","subtype":"new","status":"done"}"#,
            r#""id":"m2""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "an unknown block bears an id",
        Replace(
            r#"{"type":"text","text":"I look."}"#,
            r#"{"type":"computer_use","id":"c"}"#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a call has no id",
        Replace(r#""id":"toolu_4","#, ""),
        AgentStreamInvalid,
    ),
    (
        "an id appears twice in a result",
        Replace(
            r#""tool_use_id":"toolu_4","#,
            r#""tool_use_id":"toolu_4","tool_use_id":"toolu_1","#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a sub-agent has no caller that was called",
        Drop(r#""id":"toolu_2","name":"Task""#),
        ToolProgrammaticCallerEdgeInvalid,
    ),
    (
        "the agent continues after its terminal event",
        Move(r#""type":"result""#, r#""id":"m3""#),
        AgentStreamInvalid,
    ),
    (
        "the agent says that it failed",
        Replace(r#""is_error":false"#, r#""is_error":true"#),
        ProtocolStopReasonUnhandled,
    ),
    (
        "the turns are used up",
        Replace(r#""subtype":"success""#, r#""subtype":"error_max_turns""#),
        ProtocolStopReasonUnhandled,
    ),
];

#[test]
fn of_claude() {
    refused(Agent::Claude, CLAUDE);
}

const CODEX: &[PlantedFault] = &[
    (
        "the begin of a command is lost",
        Drop(r#""id":"item_2""#),
        ToolResultOrphan,
    ),
    (
        "the begin of a tool call is lost",
        Drop(r#""id":"item_3""#),
        ToolResultOrphan,
    ),
    (
        "the begin of a plan is lost",
        Drop(r#""id":"item_1""#),
        AgentStreamInvalid,
    ),
    (
        "the end of a command is lost",
        Drop(r#""aggregated_output":"a.rs\n""#),
        ToolResultMissing,
    ),
    (
        "the end of a search is lost",
        Drop(r#""query":"rust""#),
        ToolResultMissing,
    ),
    (
        "the begin is lost",
        Drop("thread.started"),
        AgentStreamInvalid,
    ),
    (
        "the begin of the turn is lost",
        Drop("turn.started"),
        AgentStreamInvalid,
    ),
    (
        "the terminal event is lost",
        End("turn.completed"),
        AgentStreamInvalid,
    ),
    (
        "the ends of two commands are swapped",
        Swap(
            r#"completed","item":{"id":"item_2""#,
            r#"completed","item":{"id":"item_6""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a result is invented",
        Before(
            r#"{"type":"item.completed","item":{"id":"item_9","type":"command_execution","command":"true","aggregated_output":"","exit_code":0,"status":"completed"}}"#,
            "turn.completed",
        ),
        ToolResultOrphan,
    ),
    (
        "a result comes twice",
        Twice(r#""exit_code":101"#),
        AgentStreamInvalid,
    ),
    (
        "a change of files comes twice",
        Twice("file_change"),
        AgentStreamInvalid,
    ),
    (
        "an exit code is null",
        Replace(r#""exit_code":101"#, r#""exit_code":null"#),
        ToolResultMissing,
    ),
    (
        "an abandoned command is reported to be completed",
        Replace(
            r#""exit_code":0,"status":"completed""#,
            r#""exit_code":null,"status":"completed""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a command ends in progress",
        Replace(
            r#""exit_code":101,"status":"failed""#,
            r#""exit_code":101,"status":"in_progress""#,
        ),
        ToolResultMissing,
    ),
    (
        "a tool call ends in progress",
        Replace(
            r#""error":null,"status":"completed""#,
            r#""error":null,"status":"in_progress""#,
        ),
        ToolResultMissing,
    ),
    (
        "a line is garbage",
        Before("Reading prompt from stdin...", "turn.started"),
        AgentStreamInvalid,
    ),
    ("the last line is cut", Cut(3), AgentStreamInvalid),
    (
        "an item is of an unknown type",
        Replace("web_search", "image_view"),
        AgentStreamInvalid,
    ),
    (
        "an unknown event bears a status",
        Before(r#"{"type":"exec.ended","status":"ok"}"#, "turn.completed"),
        AgentStreamInvalid,
    ),
    (
        "the agent continues after its terminal event",
        Move("turn.completed", r#""id":"item_8""#),
        AgentStreamInvalid,
    ),
    (
        "the turn failed",
        Replace(
            r#""turn.completed","usage":{"#,
            r#""turn.failed","error":{"message":"no","#,
        ),
        ProtocolStopReasonUnhandled,
    ),
];

#[test]
fn of_codex() {
    refused(Agent::Codex, CODEX);
}

const GEMINI: &[PlantedFault] = &[
    (
        "a request is lost",
        Drop(r#""tool_name":"write_file""#),
        ToolResultOrphan,
    ),
    (
        "a result is lost",
        Drop(r#""output":"a.rs""#),
        ToolResultMissing,
    ),
    (
        "the begin is lost",
        Drop(r#""type":"init""#),
        AgentStreamInvalid,
    ),
    (
        "the terminal event is lost",
        End(r#""type":"result""#),
        AgentStreamInvalid,
    ),
    (
        "two ids are swapped",
        Swap(r#""tool_id":"c-2","status""#, r#""tool_id":"c-3","status""#),
        ProtocolParallelTransportOrderInvalid,
    ),
    (
        "a result is invented",
        Before(
            r#"{"type":"tool_result","tool_id":"c-9","status":"success"}"#,
            r#""Done.""#,
        ),
        ToolResultOrphan,
    ),
    (
        "a result comes twice",
        Twice(r#""output":"a.rs""#),
        AgentStreamInvalid,
    ),
    (
        "a request comes twice",
        Twice("write_file"),
        AgentStreamInvalid,
    ),
    (
        "a result comes before its request",
        Move(r#""tool_id":"c-3","status""#, "write_file"),
        ProtocolParallelTransportOrderInvalid,
    ),
    (
        "a result has no status",
        Replace(r#""status":"success","output""#, r#""output""#),
        AgentStreamInvalid,
    ),
    (
        "a result has another status",
        Replace(
            r#""status":"success","output""#,
            r#""status":"running","output""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a line is garbage",
        Before("Loaded cached credentials.", r#""type":"init""#),
        AgentStreamInvalid,
    ),
    ("the last line is cut", Cut(2), AgentStreamInvalid),
    (
        "an unknown type bears an id",
        Before(r#"{"type":"tool_update","tool_id":"c-1"}"#, r#""Done.""#),
        AgentStreamInvalid,
    ),
    (
        "the agent continues after its terminal event",
        Move(r#""type":"result""#, r#""Done.""#),
        AgentStreamInvalid,
    ),
    (
        "the agent says that it failed",
        Replace(
            r#""status":"success","stats""#,
            r#""status":"error","stats""#,
        ),
        ProtocolStopReasonUnhandled,
    ),
];

#[test]
fn of_gemini() {
    refused(Agent::Gemini, GEMINI);
}

const OPENCODE: &[PlantedFault] = &[
    (
        "the only call of a step is lost",
        Drop("call_3"),
        AgentStreamInvalid,
    ),
    (
        "the begin of a step is lost",
        Drop(r#""id":"p6""#),
        AgentStreamInvalid,
    ),
    (
        "the terminal event is lost",
        End(r#""id":"p11""#),
        AgentStreamInvalid,
    ),
    (
        "two calls have one id",
        Replace("call_3", "call_1"),
        AgentStreamInvalid,
    ),
    ("a call comes twice", Twice("call_1"), AgentStreamInvalid),
    (
        "an exit code is null",
        Replace(r#""exit":101"#, r#""exit":null"#),
        ToolResultMissing,
    ),
    (
        "a call is still running",
        Replace(r#""status":"completed""#, r#""status":"running""#),
        ToolResultMissing,
    ),
    (
        "a call has no id",
        Replace(r#""callID":"call_1","#, ""),
        AgentStreamInvalid,
    ),
    (
        "a call has no state",
        Replace(r#""state":{"status":"error""#, r#""was":{"status":"error""#),
        AgentStreamInvalid,
    ),
    (
        "a call is another session's",
        Replace(
            r#""timestamp":7,"sessionID":"o-1""#,
            r#""timestamp":7,"sessionID":"o-2""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a line is garbage",
        Before("Bun v1.2", r#""id":"p6""#),
        AgentStreamInvalid,
    ),
    ("the last line is cut", Cut(2), AgentStreamInvalid),
    (
        "an unknown type bears an id",
        Before(
            r#"{"type":"patch","sessionID":"o-1","part":{"id":"p"}}"#,
            r#""id":"p6""#,
        ),
        AgentStreamInvalid,
    ),
    (
        "the agent continues after its terminal event",
        Before(
            r#"{"type":"step_finish","sessionID":"o-1","part":{"reason":"stop"}}"#,
            r#""timestamp":2,"#,
        ),
        AgentStreamInvalid,
    ),
    (
        "a step ends in an unknown way",
        Replace(r#""reason":"stop""#, r#""reason":"content-filter""#),
        ProtocolStopReasonUnhandled,
    ),
    (
        "the session fails at its end",
        Replace(
            r#""type":"step_finish","timestamp":11"#,
            r#""type":"error","error":{"name":"APIError"},"timestamp":11"#,
        ),
        ProtocolStopReasonUnhandled,
    ),
];

#[test]
fn of_opencode() {
    refused(Agent::OpenCode, OPENCODE);
}

#[test]
fn what_no_agent_prints_is_refused_in_every_format() {
    for &agent in Agent::ALL {
        for stream in [
            "",
            "\n\n",
            "null\n",
            "[]\n",
            "\"x\"\n",
            "{}\n",
            "{\"type\":1}\n",
            "\u{feff}{}\n",
        ] {
            let classes = refusal(agent, stream);
            assert!(
                classes.contains(&AgentStreamInvalid),
                "{agent:?} {stream:?}"
            );
        }
        let mut broken = good(agent).as_bytes().to_vec();
        broken[40] = 0xff;
        assert!(refusal(agent, broken).contains(&AgentStreamInvalid));
        // A type that is not a call is skipped and counted.
        let grown = format!("{{\"type\":\"news\",\"text\":\"x\"}}\n{}", good(agent));
        let stream = fold(agent, &grown);
        assert_eq!(stream.unknown_events(), 1);
        assert_eq!(refusal(agent, &grown), [].into());
    }
}
