//! Figures, and how they are printed.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Names the file that a benchmark writes its table to, in Markdown.
pub(crate) const TABLE: &str = "PREMATH_BENCH_TABLE";

/// What was measured so far, in Markdown.
static PRINTED: Mutex<String> = Mutex::new(String::new());

/// The work itself went wrong, so that its figure means nothing.
#[derive(Debug)]
pub(crate) struct Wrong(String);

impl Wrong {
    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Says what went wrong, and returns the exit code. Writes the table where the
/// caller asked for it.
pub(crate) fn ended(result: Result<(), Wrong>) -> ExitCode {
    let written = result.and_then(|()| match std::env::var_os(TABLE) {
        Some(file) => Ok(std::fs::write(file, table())?),
        None => Ok(()),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("error: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Whether this is an unoptimised build, whose figures mean nothing.
pub(crate) const IS_DEBUG: bool = cfg!(debug_assertions);

/// Refuses to measure an unoptimised build.
pub(crate) fn optimised() -> Result<(), Wrong> {
    match IS_DEBUG {
        true => Err(Wrong::because("debug figures mean nothing: add --release")),
        false => Ok(()),
    }
}

/// Prints the head of the table.
pub(crate) fn head() {
    if !IS_DEBUG {
        print("what", "figure", "baseline", "ratio", "target");
    }
}

/// Begins a section of the table.
pub(crate) fn section(name: &str) {
    if !IS_DEBUG {
        println!("\n{name}");
    }
    let head = "| | figure | baseline | ratio | target |\n|---|---:|---:|---:|---:|";
    append(&format!("\n## {name}\n\n{head}\n"));
}

/// Returns the sections so far, in Markdown.
pub(crate) fn table() -> String {
    PRINTED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn append(text: &str) {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    printed.push_str(text);
}

/// Prints a figure beside its baseline.
pub(crate) fn show(name: &str, figure: &str, baseline: &str, ratio: f64, target: &str) {
    line(name, figure, baseline, &format!("{ratio:.2}"), target);
}

/// Prints a figure that explains another and has no target.
pub(crate) fn note(name: &str, figure: &str) {
    line(name, figure, "", "", "");
}

fn line(name: &str, figure: &str, baseline: &str, ratio: &str, target: &str) {
    let mut row = String::new();
    let goal = target.replace("<=", "≤").replace(">=", "≥");
    for cell in [name, figure, baseline, ratio, &goal] {
        let _ = write!(row, "| {} ", cell.trim().replace('|', "\\|"));
    }
    append(&format!("{row}|\n"));
    match IS_DEBUG {
        true => println!("ran: {name}"),
        false => print(name, figure, baseline, ratio, target),
    }
}

fn print(name: &str, figure: &str, baseline: &str, ratio: &str, target: &str) {
    let text = format!("{name:<64} {figure:>10} {baseline:>10} {ratio:>6}  {target}");
    println!("{}", text.trim_end());
}

/// Runs something and reports how long it took.
pub(crate) fn timed<R>(work: impl FnOnce() -> Result<R, Wrong>) -> Result<(R, Duration), Wrong> {
    let started = Instant::now();
    let result = work()?;
    Ok((result, started.elapsed()))
}

/// Returns the value in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A time for a person.
pub(crate) fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// A size for a person.
pub(crate) fn size(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
