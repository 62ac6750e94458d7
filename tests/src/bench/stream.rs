//! The stream of each agent, read and folded, beside the plain digest of its
//! bytes; what is held of it at the end, and what a process that reads a long
//! one needs of memory.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a person at a terminal"
)]

mod figure;
mod peak;
mod results;

use figure::{Wrong, median, timed};
use premath_evidence::{Agent, AgentStream, Flaw};
use premath_kernel::json::canonical::sha256_hex;
use premath_tests::agents::playable;
use results::{fold, lines_of, output, stream_of};
use std::process::{Command, ExitCode};

/// The hidden mode in which this program reads a stream that it generates, and
/// prints its peak memory.
const READ: &str = "--read";

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    runs: usize,
    /// Bytes of the streams whose speed is measured.
    speed: usize,
    /// Bytes of those whose memory is.
    memory: usize,
}

const FULL: Sizes = Sizes {
    runs: 5,
    speed: 64 << 20,
    memory: 1_000_000_000,
};

const QUICK: Sizes = Sizes {
    runs: 3,
    speed: 8 << 20,
    memory: 64 << 20,
};

const SMOKE: Sizes = Sizes {
    runs: 1,
    speed: 64 << 10,
    memory: 1 << 20,
};

/// Measures with the allocator of the system, as the programs that read streams have it.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    figure::ended(
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => figure::optimised().and_then(|()| measure(FULL)),
            ["--quick"] => figure::optimised().and_then(|()| measure(QUICK)),
            ["--smoke"] => measure(SMOKE),
            [READ, agent, bytes, payload] => read(agent, bytes, payload),
            _ => {
                eprintln!("usage: premath-bench-stream [--quick | --smoke]");
                return ExitCode::from(2);
            }
        },
    )
}

fn measure(sizes: Sizes) -> Result<(), Wrong> {
    figure::head();
    figure::section("Readers of agents' streams");
    for payload in [200, 2 << 10, 8 << 10] {
        for agent in playable() {
            speed(sizes, agent, payload)?;
        }
    }
    for payload in [200, 32 << 10] {
        for agent in playable() {
            memory(sizes, agent, payload)?;
        }
    }
    Ok(())
}

fn speed(sizes: Sizes, agent: Agent, payload: usize) -> Result<(), Wrong> {
    let (stream, calls) = stream_of(agent, payload, |size, _| size < sizes.speed)?;
    let (mut read, mut plain, mut held) = (vec![], vec![], 0);
    for _ in 0..sizes.runs {
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
            "{}, {calls} results of {payload} bytes, against SHA-256",
            agent.as_str()
        ),
        &rate(read),
        &rate(plain),
        plain / read,
        ">= 200 MB/s",
    );
    figure::note("  time per call", &figure::time(read / f64::from(calls)));
    let each = held as f64 / f64::from(calls);
    figure::note("  memory per call at the end", &format!("{each:.0} B"));
    Ok(())
}

/// Has a process of its own read a long stream; prints its peak.
fn memory(sizes: Sizes, agent: Agent, payload: usize) -> Result<(), Wrong> {
    #[expect(
        clippy::disallowed_methods,
        reason = "its peak is the answer, so the reader is a process"
    )]
    let mut reader = Command::new(std::env::current_exe()?);
    reader.args([READ, agent.as_str()]);
    reader.args([sizes.memory.to_string(), payload.to_string()]);
    let output = reader.output()?;
    if !output.status.success() {
        return Err(Wrong::because(String::from_utf8_lossy(&output.stderr)));
    }
    let peak: u64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    figure::show(
        &format!(
            "peak of a process, {} stream, results of {payload} bytes",
            agent.as_str()
        ),
        &figure::size(peak),
        &figure::size(sizes.memory as u64),
        peak as f64 / sizes.memory as f64,
        "< 32 MB",
    );
    Ok(())
}

/// Reads a stream that is never there as a whole, and prints this process's peak.
fn read(agent: &str, bytes: &str, payload: &str) -> Result<(), Wrong> {
    let agent = Agent::named(agent).ok_or_else(|| Wrong::because("no such agent"))?;
    let (bytes, output) = (bytes.parse::<usize>()?, output(payload.parse()?)?);
    let lines = lines_of(agent)?;
    let mut stream = AgentStream::new(agent);
    stream.feed(lines.begin.as_bytes());
    let (mut fed, mut calls) = (0, 0);
    while fed < bytes {
        let call = (lines.call)(calls, &output);
        stream.feed(call.as_bytes());
        fed += call.len();
        calls += 1;
    }
    stream.feed(lines.end.as_bytes());
    let folded = stream.finish();
    let read = folded.calls().len();
    let whole = match folded.faults().first() {
        None => read == calls as usize,
        // More than is kept: refused, and every call that is kept is there.
        Some(fault) => fault.flaw == Flaw::TooManyCalls && read > 0,
    };
    if !whole {
        return Err(Wrong::because(format!("{read} of {calls} calls were read")));
    }
    println!("{}", peak::of("self")?);
    Ok(())
}
