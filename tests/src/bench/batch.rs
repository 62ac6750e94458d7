//! A whole batch of issues that ask for nothing, beside a shell that starts
//! the same commands.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{Programs, command, run};
use crate::scratch::Scratch;
use std::fs;
use std::path::Path;

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
        &format!("batch of {count} issues, {LANES} lanes, no landing, against xargs"),
        &figure::time(batch),
        &figure::time(median(shells)),
        median(ratios),
        "<= 3.0",
    );
    let per_issue = |whole: f64| figure::time((whole - idle) / count as f64);
    figure::note("  of it boot and end of the lanes", &figure::time(idle));
    figure::note("  of it each issue", &per_issue(batch));
    figure::note(
        &format!("  each issue where work lands, in a tree of {many} files"),
        &per_issue(median(large)),
    );
    let shells = landing.iter().zip(&landing_ratios).map(|(l, r)| l / r);
    figure::show(
        "the same where work lands",
        &figure::time(median(landing.clone())),
        &figure::time(median(shells.collect())),
        median(landing_ratios.clone()),
        "",
    );
    Ok(())
}

/// Runs a batch on a repository of its own; returns its seconds.
fn batch(
    programs: &Programs,
    folder: &Path,
    landing: &str,
    files: usize,
    count: usize,
) -> Result<f64, Wrong> {
    let scratch = Scratch::lay_out(folder, LANES, files, count)?;
    let mut coordinator = programs.command("harness-coordinator");
    coordinator
        .current_dir(&scratch.repository)
        .args(["--work-cmd", "true", "--verify-cmd", "true"])
        .args(["--override-reason", "benchmark", "--landing", landing]);
    for worktree in &scratch.worktrees {
        coordinator.arg("--worktree").arg(worktree);
    }
    let (_, elapsed) = timed(|| run(&mut coordinator))?;
    let text = fs::read_to_string(scratch.issues())?;
    let mut closed = 0;
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        closed += usize::from(row["status"] == "closed");
    }
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
