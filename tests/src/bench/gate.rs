//! A large turn, normalised, digested and judged, beside the plain digest of
//! its bytes; and what that needs of memory, beside the document.
//!
//! A program of its own, for it has the allocator of `premath`: a turn is many
//! small texts.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for a person at a terminal, which starts itself"
)]

mod figure;
mod peak;
mod turn;

use figure::{Wrong, median, timed};
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::turn::ParsedInput;
use std::process::{Command, ExitCode};
use turn::{judge, turn};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The hidden mode in which this program judges one turn and prints its peak
/// memory.
const JUDGE: &str = "--judge";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => figure::optimised().and_then(|()| measure(10_000, 21)),
        ["--quick"] => figure::optimised().and_then(|()| measure(1_000, 5)),
        ["--smoke"] => measure(50, 1),
        [JUDGE, calls] => judge_once(calls),
        _ => {
            eprintln!("usage: premath-bench-gate [--quick | --smoke]");
            return ExitCode::from(2);
        }
    };
    figure::ended(measured)
}

fn measure(calls: usize, runs: usize) -> Result<(), Wrong> {
    figure::head();
    figure::section("The gate");
    let few = rates(calls, runs)?;
    figure::show(
        &format!("judge a turn of {calls} calls of 1 KiB, rate against SHA-256"),
        &figure::time(few.judged),
        &figure::time(few.plain),
        few.ratio,
        ">= 0.40",
    );
    figure::note(
        &format!("read and judge a turn of {calls} calls of 1 KiB"),
        &figure::time(few.read),
    );
    let many = rates(calls * 10, 3)?;
    figure::show(
        &format!(
            "judge a turn of {} calls, against ten of {calls}",
            calls * 10
        ),
        &figure::time(many.judged),
        &figure::time(few.judged * 10.0),
        many.judged / few.judged / 10.0,
        "about 1 (linear)",
    );
    let document = serde_json::to_vec(&turn(calls * 10))?.len() as u64;
    let peak = peak_of_judging(calls * 10)?;
    figure::show(
        &format!(
            "peak memory of judging {} calls, against the input",
            calls * 10
        ),
        &figure::size(peak),
        &figure::size(document),
        peak as f64 / document as f64,
        "< 4",
    );
    Ok(())
}

/// Judges a turn that an adapter made, and prints this process's peak in bytes.
fn judge_once(calls: &str) -> Result<(), Wrong> {
    let input = turn(calls.parse()?);
    judge(input.evidence, &input.constraints)?;
    println!("{}", peak::of("self")?);
    Ok(())
}

fn peak_of_judging(calls: usize) -> Result<u64, Wrong> {
    let judging = Command::new(std::env::current_exe()?)
        .args([JUDGE, &calls.to_string()])
        .output()?;
    if !judging.status.success() {
        return Err(Wrong::because("the judging process failed"));
    }
    Ok(String::from_utf8_lossy(&judging.stdout).trim().parse()?)
}

/// Times in seconds; the ratio is that of sha256 to judging.
struct Rates {
    judged: f64,
    plain: f64,
    read: f64,
    ratio: f64,
}

fn rates(calls: usize, runs: usize) -> Result<Rates, Wrong> {
    let input = turn(calls);
    let document = serde_json::to_vec(&input)?;
    let (mut judged, mut plain, mut read, mut ratios) = (vec![], vec![], vec![], vec![]);
    for number in 0..=runs {
        let (_, hashed) = timed(|| Ok(std::hint::black_box(sha256_hex(&document))))?;
        let evidence = input.evidence.clone();
        let ((), judging) = timed(|| judge(evidence, &input.constraints))?;
        let (parsed, reading) = timed(|| Ok(ParsedInput::from_slice(&document)?.input))?;
        if parsed != input {
            return Err(Wrong::because(
                "a turn does not read back from its document",
            ));
        }
        if number > 0 {
            judged.push(judging.as_secs_f64());
            plain.push(hashed.as_secs_f64());
            read.push((judging + reading).as_secs_f64());
            ratios.push(hashed.as_secs_f64() / judging.as_secs_f64());
        }
    }
    Ok(Rates {
        judged: median(judged),
        plain: median(plain),
        read: median(read),
        ratio: median(ratios),
    })
}
