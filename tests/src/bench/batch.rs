//! A whole batch of issues that ask for nothing, beside a shell that starts
//! the same commands.

use crate::Sizes;
use crate::durable;
use crate::figure::{self, Wrong, median, timed};
use crate::namespaces;
use crate::plot::{Curve, Plot};
use crate::programs::{Programs, command, run};
use crate::scratch::{self, Scratch};
use std::path::Path;
use std::process::Command;

pub(crate) const LANES: usize = 4;
const NAMESPACES: &str = "namespaces";
/// What may confine commands.
const MODES: [&str; 3] = ["none", "landlock", NAMESPACES];
/// Files of the repository, in the plain case and in one of a usual size.
const FILES: [usize; 2] = [3, 1_000];

/// How the issues of a batch are worked on.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    landing: &'a str,
    /// What confines the commands; none for the default.
    mode: Option<&'a str>,
    work: &'a str,
}

impl<'a> Way<'a> {
    /// Work that changes nothing.
    const fn idle(landing: &'a str, mode: Option<&'a str>) -> Self {
        Self {
            landing,
            mode,
            work: "true",
        }
    }
}

/// Work that adds a file, which lands.
const ADDS: Way<'_> = Way {
    landing: "merge",
    mode: Some("none"),
    work: "echo done > source/$PREMATH_ISSUE_ID.txt",
};

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let shells = by_modes(sizes, programs, &folder.join("modes"))?;
    let count = sizes.batch;
    let [few, many] = FILES;
    let (mut idle, mut large, mut landing) = (Vec::new(), Vec::new(), Vec::new());
    let (mut adding, mut unconfined) = (Vec::new(), Vec::new());
    let mut steps = Vec::new();
    // The first of each warms up and does not count. Nothing is removed in
    // between: ext4 makes files slowly where many were removed of late.
    for number in 0..=sizes.runs {
        let folder = folder.join(format!("batch-{number}"));
        let run = |name: &str, landing, files, count| {
            let way = Way::idle(landing, None);
            batch(programs, &folder.join(name), way, files, count)
        };
        let lands = run("landing", "merge", few, count)?;
        let way = Way::idle("merge", Some("none"));
        let free = batch(programs, &folder.join("unconfined"), way, few, count)?;
        let nothing = run("idle", "none", few, 0)?;
        let with_files = run("large", "merge", many, count)?;
        let adds = batch(programs, &folder.join("adds"), ADDS, few, count)?;
        let script = durable::shell(&folder.join("script"), few, count)?;
        if number > 0 {
            steps.push(script);
            adding.push(adds);
            unconfined.push(free);
            landing.push(lands);
            idle.push(nothing);
            large.push(with_files);
        }
    }
    let idle = median(idle);
    figure::note(
        "  boot and end of the lanes of such a batch",
        &figure::time(idle),
    );
    figure::note(
        &format!("  each issue of such a batch with landing, {many} files"),
        &figure::time((median(large) - idle) / count as f64),
    );
    let lanes = format!("batch of {count} issues, {LANES} lanes");
    let title = format!("{lanes}, mode `none`, with landing");
    beside_xargs(&title, median(unconfined), shells, "<= 3.0");
    let landing = median(landing);
    beside_xargs(&format!("{lanes}, with landing"), landing, shells, "");
    beside_the_steps(landing, median(steps));
    let title = "the same, mode `none`, each adds a file that lands";
    beside_xargs(title, median(adding), shells, "");
    Ok(())
}

/// Shows a batch beside a shell that starts the same commands.
fn beside_xargs(title: &str, batch: f64, shell: f64, target: &str) {
    figure::show(
        &format!("{title}, against xargs"),
        &figure::time(batch),
        &figure::time(shell),
        batch / shell,
        target,
    );
}

/// Shows a batch beside a script that takes the same durable steps.
fn beside_the_steps(batch: f64, script: f64) {
    figure::show(
        "  against xargs and a script with git and fdatasync",
        &figure::time(batch),
        &figure::time(script),
        batch / script,
        "",
    );
}

/// Measures batches that do not land, by what confines their commands, beside a
/// shell that starts the same commands; returns the seconds of the shell.
fn by_modes(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<f64, Wrong> {
    let count = sizes.batch;
    let [few, _] = FILES;
    let mut all = Vec::new();
    for mode in MODES {
        let folder = folder.join(mode);
        let way = Way::idle("none", Some(mode));
        let run = |name: &str, count| batch(programs, &folder.join(name), way, few, count);
        let Ok(_) = run("works", 0) else {
            figure::note(&format!("mode `{mode}` does not work here"), "");
            continue;
        };
        let (mut batches, mut idle, mut shells) = (Vec::new(), Vec::new(), Vec::new());
        let mut steps = Vec::new();
        // The first of each warms up.
        for number in 0..=sizes.runs {
            let taken = run(&format!("batch-{number}"), count)?;
            let nothing = run(&format!("idle-{number}"), 0)?;
            let shell = shell(count)?;
            let script = durable::shell(&folder.join(format!("script-{number}")), few, count)?;
            if number > 0 {
                steps.push(script);
                batches.push(taken);
                idle.push(nothing);
                shells.push(shell);
            }
        }
        let (batch, idle, shell) = (median(batches), median(idle), median(shells));
        let title = format!("batch of {count} issues, {LANES} lanes, mode `{mode}`");
        beside_xargs(&title, batch, shell, "<= 3.0");
        beside_the_steps(batch, median(steps));
        let each = figure::time((batch - idle) / count as f64);
        figure::note(&format!("  each issue, mode `{mode}`"), &each);
        if mode == NAMESPACES {
            beside_the_kernel(sizes, batch)?;
        }
        all.push(shell);
    }
    Ok(median(all))
}

/// Shows a batch in namespaces beside a shell whose commands have as many.
fn beside_the_kernel(sizes: Sizes, batch: f64) -> Result<(), Wrong> {
    let count = sizes.batch;
    let mut shells = Vec::new();
    for _ in 0..sizes.runs {
        let Some(shell) = namespaces::shell(count)? else {
            figure::note("`unshare` makes no namespaces here", "");
            return Ok(());
        };
        shells.push(shell);
    }
    let shell = median(shells);
    figure::show(
        &format!("  against xargs and unshare, {} mounts", namespaces::MOUNTS),
        &figure::time(batch),
        &figure::time(shell),
        batch / shell,
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
        let run = |name: &str, landing| {
            let way = Way::idle(landing, None);
            batch(programs, &folder.join(name), way, few, count)
        };
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
            .args(["--override-reason", "benchmark"])
            .args(["--startup", "off"]);
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
    way: Way<'_>,
    files: usize,
    count: usize,
) -> Result<f64, Wrong> {
    let scratch = Scratch::set_up(folder, LANES, files, count)?;
    let mut coordinator = programs.command("harness-coordinator");
    coordinator
        .current_dir(&scratch.repository)
        .args(["--work-cmd", way.work, "--verify-cmd", "true"])
        .args(["--on-no-change", "allow", "--startup", "off"])
        .args(["--override-reason", "benchmark", "--landing", way.landing]);
    if let Some(mode) = way.mode {
        coordinator.args(["--sandbox", mode]);
    }
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
