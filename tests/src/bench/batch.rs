//! A whole batch of issues that ask for nothing, beside a shell that starts
//! the same commands.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::plot::{Curve, Plot};
use crate::programs::{Programs, command, run};
use crate::scratch::{self, Scratch};
use std::path::Path;
use std::process::Command;

const LANES: usize = 4;
/// Files of the repository, in the plain case and in one of a usual size.
const FILES: [usize; 2] = [3, 1_000];

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let count = sizes.batch;
    let [few, many] = FILES;
    let (mut batches, mut shells, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut idle, mut large) = (Vec::new(), Vec::new());
    let (mut landing, mut landing_ratios) = (Vec::new(), Vec::new());
    // The first of each warms up and does not count. Nothing is removed in
    // between: ext4 makes files slowly where many were removed of late.
    for number in 0..=sizes.runs {
        let folder = folder.join(format!("batch-{number}"));
        let run = |name: &str, landing, files, count| {
            batch(programs, &folder.join(name), landing, files, count)
        };
        let batch = run("batch", "none", few, count)?;
        let shell = shell(count)?;
        let lands = run("landing", "merge", few, count)?;
        let nothing = run("idle", "none", few, 0)?;
        let with_files = run("large", "merge", many, count)?;
        if number > 0 {
            batches.push(batch);
            shells.push(shell);
            ratios.push(batch / shell);
            landing.push(lands);
            landing_ratios.push(lands / shell);
            idle.push(nothing);
            large.push(with_files);
        }
    }
    let (batch, idle) = (median(batches), median(idle));
    figure::show(
        &format!("batch of {count} issues, {LANES} lanes, without landing, against xargs"),
        &figure::time(batch),
        &figure::time(median(shells)),
        median(ratios),
        "<= 3.0",
    );
    let per_issue = |whole: f64| figure::time((whole - idle) / count as f64);
    figure::note(
        "  boot and end of the lanes of this batch",
        &figure::time(idle),
    );
    figure::note("  each issue of this batch", &per_issue(batch));
    figure::note(
        &format!("  each issue of such a batch with landing, {many} files"),
        &per_issue(median(large)),
    );
    let shells = landing.iter().zip(&landing_ratios).map(|(l, r)| l / r);
    figure::show(
        &format!("batch of {count} issues, {LANES} lanes, with landing, against xargs"),
        &figure::time(median(landing.clone())),
        &figure::time(median(shells.collect())),
        median(landing_ratios.clone()),
        "",
    );
    Ok(())
}

/// Measures batches by how many issues they have; returns the plot.
pub(crate) fn by_issues(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<Plot, Wrong> {
    let names = ["without landing", "with landing", "xargs"];
    let mut curves = names.map(Curve::new);
    let [few, _] = FILES;
    for &count in sizes.scaling {
        let folder = folder.join(count.to_string());
        let run = |name: &str, landing| batch(programs, &folder.join(name), landing, few, count);
        let times = [run("none", "none")?, run("merge", "merge")?, shell(count)?];
        for (curve, elapsed) in curves.iter_mut().zip(times) {
            curve.add(count as f64, elapsed);
        }
    }
    Ok(Plot {
        file: "issues",
        title: format!("Issues that ask for nothing, in {LANES} lanes"),
        x: "issues",
        y: "seconds of the batch",
        curves: curves.into(),
    })
}

/// Measures batches by how many lanes they have; returns the plot.
pub(crate) fn by_lanes(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<Plot, Wrong> {
    let (count, seconds, lanes) = sizes.lanes;
    let names = ["with landing", "the work alone"];
    let mut curves = names.map(Curve::new);
    for &lanes in lanes {
        let scratch = Scratch::set_up(&folder.join(lanes.to_string()), lanes, 3, count)?;
        let mut coordinator = programs.command("harness-coordinator");
        let work = format!("sleep {seconds}; echo done > source/$PREMATH_ISSUE_ID.txt");
        coordinator
            .current_dir(&scratch.repository)
            .args(["--work-cmd", &work, "--verify-cmd", "true"])
            .args(["--override-reason", "benchmark"]);
        let elapsed = timed_batch(coordinator, &scratch, count)?;
        let work = seconds * count.div_ceil(lanes) as f64;
        for (curve, elapsed) in curves.iter_mut().zip([elapsed, work]) {
            curve.add(lanes as f64, elapsed);
        }
        figure::show(
            &format!("{count} issues of {seconds} s in {lanes} lane(s), against the work alone"),
            &figure::time(elapsed),
            &figure::time(work),
            elapsed / work,
            "",
        );
    }
    Ok(Plot {
        file: "lanes",
        title: format!("{count} issues whose work takes {seconds} s"),
        x: "lanes",
        y: "seconds of the batch",
        curves: curves.into(),
    })
}

/// Runs a batch on a repository of its own; returns its seconds.
fn batch(
    programs: &Programs,
    folder: &Path,
    landing: &str,
    files: usize,
    count: usize,
) -> Result<f64, Wrong> {
    let scratch = Scratch::set_up(folder, LANES, files, count)?;
    let mut coordinator = programs.command("harness-coordinator");
    coordinator
        .current_dir(&scratch.repository)
        .args(["--work-cmd", "true", "--verify-cmd", "true"])
        .args(["--override-reason", "benchmark", "--landing", landing]);
    timed_batch(coordinator, &scratch, count)
}

/// Runs a batch that closes so many issues, in all worktrees.
fn timed_batch(mut coordinator: Command, scratch: &Scratch, count: usize) -> Result<f64, Wrong> {
    for worktree in &scratch.worktrees {
        coordinator.arg("--worktree").arg(worktree);
    }
    let (_, elapsed) = timed(|| run(&mut coordinator))?;
    let closed = scratch::closed(&scratch.issues())?;
    if closed != count {
        return Err(Wrong::because(format!(
            "{closed} of {count} issues are closed after the batch"
        )));
    }
    Ok(elapsed.as_secs_f64())
}

/// Has a shell start as many commands; returns its seconds.
fn shell(count: usize) -> Result<f64, Wrong> {
    let line = format!("seq {count} | xargs -P{LANES} -I{{}} sh -c 'sh -c true; sh -c true'");
    let (_, elapsed) = timed(|| run(command("sh").args(["-c", &line])))?;
    Ok(elapsed.as_secs_f64())
}
