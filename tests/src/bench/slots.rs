//! A batch whose work takes as long as its verification: with verification
//! slots of their own, against attempts that are verified in their lanes.

use crate::Sizes;
use crate::figure::{self, Wrong, timed};
use crate::programs::{Programs, exits};
use crate::scratch::{self, Scratch};
use std::fs;
use std::path::Path;

/// How many lanes work.
const LANES: usize = 4;
/// How many issues each of them gets.
const EACH: usize = 4;

/// Measures both, one after the other.
pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let longest = sizes.queue.2.iter().copied().fold(0.0, f64::max);
    let seconds = longest.min(1.0);
    let take = |slots| take(programs, folder, slots, seconds);
    let (in_lanes, beside) = (take(0)?, take(LANES)?);
    figure::show(
        &format!(
            "{} issues, {LANES} lanes, work and verification of {seconds} s: with slots, against \
             slots = 0",
            LANES * EACH
        ),
        &figure::time(beside),
        &figure::time(in_lanes),
        beside / in_lanes,
        "<= 0.8",
    );
    Ok(())
}

/// Runs a batch to its end; returns its seconds.
fn take(programs: &Programs, folder: &Path, slots: usize, seconds: f64) -> Result<f64, Wrong> {
    let folder = tempfile::tempdir_in(folder)?;
    let issues = LANES * EACH;
    let scratch = Scratch::set_up(&folder.path().join("batch"), 0, 3, issues)?;
    let settings = format!("[verify]\nslots = {slots}\n");
    fs::write(scratch.repository.join("harness.toml"), settings)?;
    let work = format!("sleep {seconds}; echo done > source/$PREMATH_ISSUE_ID.txt");
    let mut coordinator = programs.command("harness-coordinator");
    coordinator
        .current_dir(&scratch.repository)
        .args(["--work-cmd", &work, "--override-reason", "benchmark"])
        .args(["--verify-cmd", &format!("sleep {seconds}")])
        .args(["--lanes", &LANES.to_string()])
        .args(["--startup", "off"]);
    let (_, elapsed) = timed(|| exits(&mut coordinator, 0))?;
    let closed = scratch::closed(&scratch.issues())?;
    match closed == issues {
        true => Ok(elapsed.as_secs_f64()),
        false => Err(Wrong::because(format!(
            "{closed} of {issues} issues were closed"
        ))),
    }
}
