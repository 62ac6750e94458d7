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
mod claimer;
mod claims;
mod durable;
mod figure;
mod files;
mod floors;
mod graph;
mod hooks;
mod landing;
mod memory;
mod namespaces;
mod peak;
mod plot;
mod programs;
mod queue;
mod report;
mod scratch;
mod slots;
mod step;
mod turn;
mod verification;

use figure::{Wrong, ended};
use programs::Programs;
use std::path::Path;
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
    /// Issues of the batches that show how their time grows.
    scaling: &'static [usize],
    /// Issues, the seconds of their work, and in how many lanes they are worked on.
    lanes: (usize, f64, &'static [usize]),
    /// Issues, lanes and seconds of verifications, where work waits to land.
    queue: (usize, usize, &'static [f64]),
    /// Files of the repositories in which one issue's CPU is measured.
    files: &'static [usize],
    /// Calls of an agent whose hooks are measured.
    hooked: usize,
    /// Issues of the two batches whose difference that is.
    rounds: (usize, usize),
}

const FULL: Sizes = Sizes {
    runs: 7,
    batch: 100,
    claims: 10_000,
    large: 100_000,
    scaling: &[25, 50, 100, 200, 400],
    lanes: (32, 0.5, &[1, 2, 4, 8, 16]),
    queue: (24, 8, &[0.25, 0.5, 1.0, 2.0]),
    files: &[1_000, 10_000, 100_000, 300_000],
    hooked: 200,
    rounds: (3, 11),
};

const QUICK: Sizes = Sizes {
    runs: 3,
    batch: 24,
    claims: 1_000,
    large: 10_000,
    scaling: &[25, 50, 100],
    lanes: (16, 0.5, &[1, 4, 8]),
    queue: (24, 8, &[0.5, 2.0]),
    files: &[1_000, 10_000],
    hooked: 50,
    rounds: (3, 11),
};

/// Shows that every part still works; a build of any profile will do.
const SMOKE: Sizes = Sizes {
    runs: 1,
    batch: 4,
    claims: 400,
    large: 2_000,
    scaling: &[2, 4],
    lanes: (2, 0.1, &[1, 2]),
    queue: (6, 2, &[0.1]),
    files: &[200],
    hooked: 3,
    rounds: (1, 2),
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (sizes, folder) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (FULL, None),
        ["--quick"] => (QUICK, None),
        ["--smoke"] => (SMOKE, None),
        ["--report", folder] => (FULL, Some(folder)),
        ["--report", folder, "--quick"] => (QUICK, Some(folder)),
        ["--report", folder, "--smoke"] => (SMOKE, Some(folder)),
        ["--only", part] => return ended(run_part(part)),
        ["--files", files] => return ended(run_files(files)),
        [hooks::agent::MODE, ref own @ ..] => return ended(hooks::agent::play(own)),
        [memory::HOLD, path] => return ended(memory::hold(path)),
        [namespaces::MODE] => return ended(namespaces::enter()),
        _ => {
            eprintln!(
                "usage: premath-bench [--report FOLDER] [--quick | --smoke]\n       \
                 premath-bench --only batch|step|verification|queue|slots|files|hooks\n       \
                 premath-bench --files N"
            );
            return ExitCode::from(2);
        }
    };
    let length = arguments.last().map(String::as_str);
    let length = length.filter(|length| ["--quick", "--smoke"].contains(length));
    let checked = match length {
        Some("--smoke") => Ok(()),
        _ => figure::optimised(),
    };
    ended(checked.and_then(|()| run(sizes, length, folder.map(Path::new))))
}

/// Measures one part in full.
fn run_part(part: &str) -> Result<(), Wrong> {
    figure::optimised()?;
    let programs = Programs::build()?;
    let folder = tempfile::tempdir_in(programs.folder())?;
    figure::head();
    figure::section(part);
    match part {
        "batch" => batch::measure(FULL, &programs, &folder.path().join(part)),
        "step" => step::measure(FULL, &folder.path().join(part)),
        "verification" => verification::measure(FULL, &programs, &folder.path().join(part)),
        "files" => files::measure(FULL, &programs, &folder.path().join(part)).map(drop),
        "queue" => queue::measure(FULL, &programs, folder.path()).map(drop),
        "hooks" => hooks::measure(FULL, &programs, folder.path()),
        "slots" => slots::measure(FULL, &programs, folder.path()),
        _ => Err(Wrong::because(format!("there is no part `{part}`"))),
    }
}

/// Measures the CPU of an issue in a repository of so many files.
fn run_files(files: &str) -> Result<(), Wrong> {
    figure::optimised()?;
    let programs = Programs::build()?;
    let folder = tempfile::tempdir_in(programs.folder())?;
    figure::head();
    files::measure_with(FULL, &programs, folder.path(), files.parse()?).map(drop)
}

/// Measures everything; writes the page into a folder where one is named.
fn run(sizes: Sizes, length: Option<&str>, page: Option<&Path>) -> Result<(), Wrong> {
    let programs = Programs::build()?;
    // Beside the build, which is on a real disk where /tmp may be memory.
    let scratch = tempfile::tempdir_in(programs.folder())?;
    figure::head();
    let folder = scratch.path();
    figure::section("The machine");
    floors::measure(sizes, &folder.join("floors"))?;
    figure::section("Batches");
    batch::measure(sizes, &programs, &folder.join("batch"))?;
    let issues = batch::by_issues(sizes, &programs, &folder.join("issues"))?;
    let lanes = batch::by_lanes(sizes, &programs, &folder.join("lanes"))?;
    figure::section("Landing");
    landing::measure(sizes, &folder.join("landing"))?;
    let queue = queue::measure(sizes, &programs, folder)?;
    slots::measure(sizes, &programs, folder)?;
    figure::section("Steps");
    step::measure(sizes, &folder.join("step"))?;
    verification::measure(sizes, &programs, &folder.join("verification"))?;
    figure::section("Tool gate");
    hooks::measure(sizes, &programs, &folder.join("hooks"))?;
    figure::section("Large repositories");
    let files = files::measure(sizes, &programs, &folder.join("files"))?;
    figure::section("Issue store");
    claims::measure(sizes, &folder.join("claims"))?;
    graph::measure(sizes, &programs, &folder.join("graph"))?;
    memory::measure(sizes, &programs, &folder.join("memory"))?;
    match page {
        Some(page) => report::write(page, &programs, length, &[issues, lanes, files, queue]),
        None => Ok(()),
    }
}
