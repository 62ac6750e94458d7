//! Streams of agents with many results of tools, and the reading of them.

use crate::figure::Wrong;
use premath_evidence::{Agent, AgentStream};
use premath_tests::agents::{StreamLines, stream_lines};

/// How much is read from a pipe at once.
const PIECE: usize = 64 << 10;

/// What is kept of more calls has a bound, and reading on is not work.
const CALLS_MAX: u32 = 30_000;

/// Makes a stream while `goes_on` allows it, by its size and calls so far; returns how
/// many calls it has.
pub(crate) fn stream_of(
    agent: Agent,
    payload: usize,
    may_continue: impl Fn(usize, u32) -> bool,
) -> Result<(Vec<u8>, u32), Wrong> {
    let lines = lines_of(agent)?;
    let mut stream = lines.begin.to_owned();
    let output = output(payload)?;
    let mut calls = 0;
    while calls < CALLS_MAX && may_continue(stream.len(), calls) {
        stream += &(lines.call)(calls, &output);
        calls += 1;
    }
    stream += lines.end;
    Ok((stream.into_bytes(), calls))
}

/// Reads a stream in pieces; returns what was held in the end.
pub(crate) fn fold(agent: Agent, bytes: &[u8]) -> Result<usize, Wrong> {
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

/// What a tool gave: the begin of a file, of so many bytes as they are stored
/// in the line, or a few less. `tests/instructions.json` has counts of results with its
/// first lines: they change with those.
pub(crate) fn output(bytes: usize) -> Result<String, Wrong> {
    let file = include_str!("stream.rs").repeat(bytes / 4_096 + 1);
    let mut output = String::new();
    for line in file.split_inclusive('\n') {
        let json = serde_json::to_string(line)?;
        let text = json.trim_matches('"');
        if output.len() + text.len() > bytes {
            break;
        }
        output += text;
    }
    Ok(output)
}

pub(crate) fn lines_of(agent: Agent) -> Result<StreamLines, Wrong> {
    stream_lines(agent).ok_or_else(|| Wrong::because("no such agent"))
}
