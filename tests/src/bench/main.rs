//! Measures what the harness costs, each figure beside a baseline of the same
//! run, because the machine may be shared.
//!
//! A benchmark is not a test: a ratio over its target is printed and nothing
//! else. It fails only where the work itself went wrong. `--smoke` runs every part
//! once, in a build of any profile, and prints no figure of an unoptimised one.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a person at a terminal"
)]

mod answer;
mod batch;
mod claims;
mod figure;
mod graph;
mod landing;
mod memory;
mod peak;
mod programs;
mod scratch;
mod step;
mod verification;

use figure::{Wrong, ended};
use programs::Programs;
use std::process::ExitCode;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Runs of which the median is taken.
    runs: usize,
    /// Issues of a batch.
    batch: usize,
    /// Issues of the memory whose claims are measured.
    claims: usize,
    /// Issues of the large memory, chain and file.
    large: usize,
}

const FULL: Sizes = Sizes {
    runs: 7,
    batch: 100,
    claims: 10_000,
    large: 100_000,
};

const QUICK: Sizes = Sizes {
    runs: 3,
    batch: 24,
    claims: 1_000,
    large: 10_000,
};

/// Shows that every part still works; a build of any profile will do.
const SMOKE: Sizes = Sizes {
    runs: 1,
    batch: 4,
    claims: 400,
    large: 2_000,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => FULL,
        ["--quick"] => QUICK,
        ["--smoke"] => SMOKE,
        ["--only", part] => return ended(run_part(part)),
        [memory::HOLD, path] => return ended(memory::hold(path)),
        _ => {
            eprintln!("usage: premath-bench [--quick | --smoke | --only step|verification]");
            return ExitCode::from(2);
        }
    };
    let checked = match arguments == ["--smoke"] {
        true => Ok(()),
        false => figure::optimised(),
    };
    ended(checked.and_then(|()| run(sizes)))
}

/// Measures one part in full.
fn run_part(part: &str) -> Result<(), Wrong> {
    figure::optimised()?;
    let programs = Programs::build()?;
    let folder = tempfile::tempdir_in(programs.folder())?;
    figure::head();
    match part {
        "step" => step::measure(FULL, &folder.path().join(part)),
        "verification" => verification::measure(FULL, &programs, &folder.path().join(part)),
        _ => Err(Wrong::because(format!("there is no part `{part}`"))),
    }
}

fn run(sizes: Sizes) -> Result<(), Wrong> {
    let programs = Programs::build()?;
    // Beside the build, which is on a real disk where /tmp may be memory.
    let folder = tempfile::tempdir_in(programs.folder())?;
    figure::head();
    let folder = folder.path();
    batch::measure(sizes, &programs, &folder.join("batch"))?;
    landing::measure(sizes, &folder.join("landing"))?;
    step::measure(sizes, &folder.join("step"))?;
    verification::measure(sizes, &programs, &folder.join("verification"))?;
    claims::measure(sizes, &folder.join("claims"))?;
    graph::measure(sizes, &programs, &folder.join("graph"))?;
    memory::measure(sizes, &programs, &folder.join("memory"))
}
