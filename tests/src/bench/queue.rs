//! A batch whose verification takes long: with landing, against the same batch
//! without.

use crate::Sizes;
use crate::figure::{self, Wrong, timed};
use crate::plot::{Curve, Plot};
use crate::programs::{Programs, exits};
use crate::scratch::{self, Scratch};
use std::fs;
use std::path::Path;

/// What a batch does with its work.
#[derive(Clone, Copy)]
enum Landing {
    None,
    Speculative,
    Serial,
}

/// Which of its issues fail their verification.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Red {
    None,
    /// Those whose number ends with 5.
    Tenth,
}

impl Red {
    /// Returns how many of so many issues fail.
    fn of(self, issues: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Tenth => (issues + 4) / 10,
        }
    }
}

/// What the batches of one plot have in common.
struct Batches<'a> {
    programs: &'a Programs,
    folder: &'a Path,
    issues: usize,
    lanes: usize,
}

/// Measures batches by the time of their verification; returns the plot.
pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<Plot, Wrong> {
    let (issues, lanes, times) = sizes.queue;
    let batches = Batches {
        programs,
        folder,
        issues,
        lanes,
    };
    let names = ["without landing", "with landing", "one by one"];
    let mut curves = names.map(Curve::new);
    for &seconds in times {
        let take = |landing| batches.take(landing, seconds, Red::None);
        let without = take(Landing::None)?;
        let with = take(Landing::Speculative)?;
        let serial = take(Landing::Serial)?;
        let what = format!("{issues} issues, {lanes} lanes, verification of {seconds} s");
        show(
            &format!("{what}: with landing, against without landing"),
            with,
            without,
            "<= 1.3",
        );
        let one = format!("  {what}: with speculation = 0, against without landing");
        show(&one, serial, without, "");
        for (curve, elapsed) in curves.iter_mut().zip([without, with, serial]) {
            curve.add(seconds, elapsed);
        }
    }
    if let Some(&seconds) = times.last() {
        let without = batches.take(Landing::None, seconds, Red::None)?;
        let with = batches.take(Landing::Speculative, seconds, Red::Tenth)?;
        let red = Red::Tenth.of(issues);
        let what = format!("verification of {seconds} s, {red} of {issues} issues fail");
        show(
            &format!("{what}: with landing, against no failure and no landing"),
            with,
            without,
            "<= 1.9",
        );
    }
    Ok(Plot {
        file: "verification",
        title: format!("{issues} issues in {lanes} lanes, by the time of a verification"),
        x: "seconds of a verification",
        y: "seconds of the batch",
        curves: curves.into(),
    })
}

fn show(what: &str, figure: f64, baseline: f64, target: &str) {
    let times = (figure::time(figure), figure::time(baseline));
    figure::show(what, &times.0, &times.1, figure / baseline, target);
}

impl Batches<'_> {
    /// Runs a batch to its end; returns its seconds.
    fn take(&self, landing: Landing, seconds: f64, red: Red) -> Result<f64, Wrong> {
        let folder = tempfile::tempdir_in(self.folder)?;
        let scratch = Scratch::set_up(&folder.path().join("batch"), self.lanes, 3, self.issues)?;
        let (mode, settings) = match landing {
            Landing::None => ("none", ""),
            Landing::Speculative => ("merge", ""),
            Landing::Serial => ("merge", "[landing]\nspeculation = 0\n"),
        };
        fs::write(scratch.repository.join("harness.toml"), settings)?;
        let mut coordinator = self.programs.command("harness-coordinator");
        coordinator
            .current_dir(&scratch.repository)
            .args(["--work-cmd", "echo done > source/$PREMATH_ISSUE_ID.txt"])
            .args(["--override-reason", "benchmark", "--landing", mode])
            .args(["--startup", "off"]);
        let verify = match red {
            Red::None => format!("sleep {seconds}"),
            Red::Tenth => format!("sleep {seconds}; ! ls source/bench-*5.txt"),
        };
        coordinator.args(["--verify-cmd", &verify]);
        for worktree in &scratch.worktrees {
            coordinator.arg("--worktree").arg(worktree);
        }
        let code = i32::from(red != Red::None);
        let (_, elapsed) = timed(|| exits(&mut coordinator, code))?;
        let closed = scratch::closed(&scratch.issues())?;
        let expected = self.issues - red.of(self.issues);
        match closed == expected {
            true => Ok(elapsed.as_secs_f64()),
            false => Err(Wrong::because(format!(
                "{closed} of {expected} issues were closed"
            ))),
        }
    }
}
