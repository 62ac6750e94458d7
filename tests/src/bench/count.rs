//! The instructions of hot paths, counted by valgrind. They do not depend on
//! what else the machine does, so that CI compares them with the recorded ones.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for a person at a terminal, which starts itself"
)]

#[expect(dead_code, reason = "times are measured by the other benchmarks")]
mod claimer;
#[expect(dead_code, reason = "times are measured by the other benchmarks")]
mod figure;
mod results;
#[expect(dead_code, reason = "repositories are made by the other benchmarks")]
mod scratch;
mod turn;

use claimer::Claimer;
use figure::Wrong;
use premath_kernel::issue::Issue;
use premath_kernel::policy::landing_queue::{LandingQueue, QueueBounds, QueueStep};
use premath_tests::agents::playable;
use premath_tests::workspace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The hidden mode in which this program does a path some number of times.
const RUN: &str = "--run";

/// How far a count may be from the recorded one, as a part of it.
const TOLERANCE: f64 = 0.05;

/// The size of a result in a stream, in bytes.
const RESULT: usize = 200;

/// Something that is done often.
struct HotPath {
    name: String,
    /// How often it is done when it is counted: so often, and three times.
    times: usize,
    work: Box<dyn Fn(usize) -> Result<(), Wrong>>,
}

/// The recorded counts.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// Another compiler makes other instructions.
    rustc: String,
    /// The instructions of doing it once, by the path's name.
    instructions: BTreeMap<String, u64>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check(),
        ["--write"] => write(),
        [RUN, name, times] => run(name, times),
        _ => {
            eprintln!("usage: premath-bench-count [--write]");
            return ExitCode::from(2);
        }
    };
    figure::ended(ended)
}

fn paths() -> Vec<HotPath> {
    let mut paths = vec![
        HotPath {
            name: "claim an issue of 1000".to_owned(),
            times: 100,
            work: Box::new(claim),
        },
        HotPath {
            name: "judge a call of 1 KiB".to_owned(),
            times: 200,
            work: Box::new(judge),
        },
        HotPath {
            name: "land through the queue".to_owned(),
            times: 200,
            work: Box::new(land),
        },
        HotPath {
            name: "read an issue row".to_owned(),
            times: 500,
            work: Box::new(read_rows),
        },
    ];
    for agent in playable() {
        let work = move |times| {
            let (stream, _) = results::stream_of(agent, RESULT, |_, calls| calls < times as u32)?;
            results::fold(agent, &stream).map(drop)
        };
        paths.push(HotPath {
            name: format!("read a result of {RESULT} bytes ({})", agent.as_str()),
            times: 300,
            work: Box::new(work),
        });
    }
    paths
}

/// Does a path so often, for the program that counts.
fn run(name: &str, times: &str) -> Result<(), Wrong> {
    let path = paths().into_iter().find(|path| path.name == name);
    let path = path.ok_or_else(|| Wrong::because("no such path"))?;
    (path.work)(times.parse()?)
}

fn write() -> Result<(), Wrong> {
    is_debug()?;
    let recorded = Recorded {
        rustc: rustc()?,
        instructions: counted()?,
    };
    let mut text = serde_json::to_string_pretty(&recorded)?;
    text.push('\n');
    Ok(fs::write(file(), text)?)
}

fn check() -> Result<(), Wrong> {
    is_debug()?;
    let recorded: Recorded = serde_json::from_slice(&fs::read(file())?)?;
    let rustc = rustc()?;
    if rustc != recorded.rustc {
        println!(
            "skipped: instruction counts: they are recorded for {}, this is {rustc}",
            recorded.rustc
        );
        return Ok(());
    }
    let counted = counted()?;
    let mut far = Vec::new();
    for (name, count) in &counted {
        let Some(&expected) = recorded.instructions.get(name) else {
            return Err(Wrong::because(format!(
                "`{name}` has no recorded count; write it by --write"
            )));
        };
        let ratio = *count as f64 / expected as f64;
        println!("{name:<44} {count:>10} {expected:>10} {ratio:>6.3}");
        if (ratio - 1.0).abs() > TOLERANCE {
            far.push(format!("`{name}` {ratio:.3}"));
        }
    }
    if let Some(gone) = recorded
        .instructions
        .keys()
        .find(|name| !counted.contains_key(*name))
    {
        return Err(Wrong::because(format!("`{gone}` is not counted any more")));
    }
    match far.is_empty() {
        true => Ok(()),
        false => Err(Wrong::because(format!(
            "counts that are not within 5 % of {}: {}; if that is meant, write them by --write",
            file().display(),
            far.join(", ")
        ))),
    }
}

/// The tests' own build is counted, so that CI makes no other one.
fn is_debug() -> Result<(), Wrong> {
    match figure::IS_DEBUG {
        true => Ok(()),
        false => Err(Wrong::because(
            "the counts are recorded for a build without --release",
        )),
    }
}

fn file() -> PathBuf {
    workspace().join("tests/instructions.json")
}

fn rustc() -> Result<String, Wrong> {
    let output = Command::new("rustc").arg("-V").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Counts each path: three times as often without once, so that what the process
/// does besides is left out.
fn counted() -> Result<BTreeMap<String, u64>, Wrong> {
    let mut counted = BTreeMap::new();
    for path in paths() {
        let once = instructions(&path.name, path.times)?;
        let thrice = instructions(&path.name, path.times * 3)?;
        let each = thrice.saturating_sub(once) / (path.times as u64 * 2);
        counted.insert(path.name, each);
    }
    Ok(counted)
}

/// Returns the instructions of a process that does a path so often.
fn instructions(name: &str, times: usize) -> Result<u64, Wrong> {
    let ended = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg("--cachegrind-out-file=/dev/null")
        .arg(std::env::current_exe()?)
        .args([RUN, name, &times.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Wrong::because(format!("cannot start valgrind: {error}")))?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let count = said.lines().find_map(|line| {
        let (_, rest) = line.split_once("== I ")?;
        let (_, number) = rest.split_once("refs:")?;
        number.trim().replace(',', "").parse().ok()
    });
    match count {
        Some(count) if ended.status.success() => Ok(count),
        _ => Err(Wrong::because(format!(
            "valgrind counted nothing of `{name}`: {said}"
        ))),
    }
}

/// Claims issues from an issue store, on a disk.
fn claim(times: usize) -> Result<(), Wrong> {
    let folder = tempfile::tempdir()?;
    let claimer = Claimer::on(folder.path(), 1_000)?;
    claimer.claim_some("lane-0", times).map(drop)
}

fn judge(times: usize) -> Result<(), Wrong> {
    let input = turn::turn(times);
    turn::judge(input.evidence, &input.constraints)
}

/// Work of eight lanes joins the queue, is verified, and lands in order.
fn land(times: usize) -> Result<(), Wrong> {
    const LANES: usize = 8;
    let mut queue = LandingQueue::new(QueueBounds {
        speculation: LANES,
        slots: LANES,
        batch: 1,
    });
    for round in 0..times / LANES {
        let joined: Vec<_> = (0..LANES)
            .map(|lane| queue.join(2, &format!("bench-{round}-{lane}").into()))
            .collect();
        for &ticket in &joined {
            let QueueStep::Try(ahead) = queue.next(ticket) else {
                return Err(Wrong::because("work that joined is not verified"));
            };
            if !queue.started(ticket, &ahead) || !queue.passed(ticket) {
                return Err(Wrong::because("a verification was superseded"));
            }
        }
        for &ticket in &joined {
            if queue.next(ticket) != QueueStep::Land {
                return Err(Wrong::because("work that passed does not land"));
            }
            queue.landed(ticket);
        }
    }
    Ok(())
}

/// An open issue, as a line.
fn row(number: usize) -> String {
    format!(
        r#"{{"id":"bench-{number:06}","title":"Issue {number}","description":"{}","status":"open","priority":2,"issue_type":"task","created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}}"#,
        "What is to be done, said at some length. ".repeat(10)
    )
}

fn read_rows(times: usize) -> Result<(), Wrong> {
    for number in 0..times {
        let issue: Issue = serde_json::from_str(&row(number))?;
        std::hint::black_box(issue);
    }
    Ok(())
}
