//! The stream of each agent, read and folded, beside the plain digest of its
//! bytes; and what is held of it at the end.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a person at a terminal"
)]

mod figure;

use figure::{Wrong, median, timed};
use premath_evidence::{Agent, AgentStream};
use premath_kernel::canonical::sha256_hex;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much is read from a pipe at once.
const PIECE: usize = 64 << 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(256 << 20, 5),
        ["--quick"] => measure(16 << 20, 3),
        _ => {
            eprintln!("usage: premath-bench-stream [--quick]");
            return ExitCode::from(2);
        }
    };
    figure::ended(measured)
}

fn measure(bytes: usize, runs: usize) -> Result<(), Wrong> {
    figure::head();
    for payload in [200, 8 << 10] {
        for &agent in Agent::ALL {
            let stream = stream(agent, bytes, payload);
            let (mut read, mut plain, mut held) = (vec![], vec![], 0);
            for _ in 0..runs {
                let (_, hashing) = timed(|| Ok(std::hint::black_box(sha256_hex(&stream))))?;
                let (size, reading) = timed(|| fold(agent, &stream))?;
                held = size;
                plain.push(hashing.as_secs_f64());
                read.push(reading.as_secs_f64());
            }
            let (read, plain) = (median(read), median(plain));
            let rate = |seconds: f64| format!("{:.0} MB/s", stream.len() as f64 / seconds / 1e6);
            figure::show(
                &format!(
                    "{} stream of {}, results of {payload} bytes",
                    agent.as_str(),
                    figure::size(stream.len() as u64)
                ),
                &rate(read),
                &rate(plain),
                plain / read,
                ">= 200 MB/s",
            );
            figure::note("  held at its end", &figure::size(held as u64));
            figure::note("  a MB in", &figure::time(read * 1e6 / stream.len() as f64));
        }
    }
    Ok(())
}

/// Reads a stream in pieces; returns what was held in the end.
fn fold(agent: Agent, bytes: &[u8]) -> Result<usize, Wrong> {
    let mut stream = AgentStream::new(agent);
    for piece in bytes.chunks(PIECE) {
        stream.feed(piece);
    }
    let held = stream.retained_bytes();
    let folded = stream.finish();
    match folded.faults().first() {
        None => Ok(held),
        Some(fault) => Err(Wrong::because(format!("{}: {fault}", agent.as_str()))),
    }
}

/// A stream of calls, each with a result of so many bytes.
fn stream(agent: Agent, bytes: usize, payload: usize) -> Vec<u8> {
    let output: String = "fn main() {\\n    let x = 1;\\n}\\n"
        .chars()
        .cycle()
        .take(payload / 31 * 31)
        .collect();
    let (begin, end) = match agent {
        Agent::Claude => (
            r#"{"type":"system","subtype":"init","session_id":"s"}"#,
            r#"{"type":"result","subtype":"success","is_error":false}"#,
        ),
        Agent::Codex => (
            "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}",
            r#"{"type":"turn.completed","usage":{}}"#,
        ),
        Agent::Gemini => (
            r#"{"type":"init","session_id":"g"}"#,
            r#"{"type":"result","status":"success"}"#,
        ),
        Agent::OpenCode => (
            r#"{"type":"step_start","sessionID":"o"}"#,
            r#"{"type":"step_finish","sessionID":"o","part":{"reason":"stop"}}"#,
        ),
    };
    let mut stream = format!("{begin}\n");
    for number in 0.. {
        if stream.len() > bytes {
            break;
        }
        stream += &match agent {
            Agent::Claude => format!(
                r#"{{"type":"assistant","message":{{"id":"m{number}","content":[{{"type":"tool_use","id":"toolu_{number}","name":"Bash","input":{{"command":"cat {number}"}}}}]}},"parent_tool_use_id":null,"session_id":"s"}}
{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"toolu_{number}","content":"{output}"}}]}},"parent_tool_use_id":null,"session_id":"s"}}
"#
            ),
            Agent::Codex => format!(
                r#"{{"type":"item.started","item":{{"id":"item_{number}","type":"command_execution","command":"cat {number}","aggregated_output":"","exit_code":null,"status":"in_progress"}}}}
{{"type":"item.completed","item":{{"id":"item_{number}","type":"command_execution","command":"cat {number}","aggregated_output":"{output}","exit_code":0,"status":"completed"}}}}
"#
            ),
            Agent::Gemini => format!(
                r#"{{"type":"tool_use","tool_name":"shell","tool_id":"c{number}","parameters":{{"command":"cat {number}"}}}}
{{"type":"tool_result","tool_id":"c{number}","status":"success","output":"{output}"}}
"#
            ),
            Agent::OpenCode => format!(
                r#"{{"type":"tool_use","timestamp":{number},"sessionID":"o","part":{{"type":"tool","callID":"c{number}","tool":"bash","state":{{"status":"completed","input":{{"command":"cat {number}"}},"output":"{output}","metadata":{{"exit":0}}}}}}}}
"#
            ),
        };
    }
    stream += end;
    stream.push('\n');
    stream.into_bytes()
}
