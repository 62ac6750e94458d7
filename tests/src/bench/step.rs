//! Preparing and importing a step and going back after it, and putting the checkout
//! for verifications at its commit, beside `git switch`, `git add` with `git commit`, and `git
//! worktree add`, in trees of several sizes.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{command, run};
use crate::scratch::Scratch;
use git2::Repository;
use premath_worktree::checkout::Checkout;
use premath_worktree::provision::Provision;
use premath_worktree::tree::{Base, CommitText, Ignored, Tree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files that a step changes, one in each of as many folders.
const CHANGED: usize = 10;
/// Longer than a look at all files counts in a worktree in which nothing ran.
const PAUSE: Duration = Duration::from_millis(2_500);

pub(crate) fn measure(sizes: Sizes, folder: &Path) -> Result<(), Wrong> {
    for files in [1_000, sizes.large] {
        measure_with(sizes, &folder.join(files.to_string()), files)?;
    }
    Ok(())
}

#[derive(Default)]
struct Figures {
    prepared: Vec<f64>,
    rested: Vec<f64>,
    switched: Vec<f64>,
    imported: Vec<f64>,
    committed: Vec<f64>,
    moved: Vec<f64>,
    put: Vec<f64>,
}

fn measure_with(sizes: Sizes, folder: &Path, files: usize) -> Result<(), Wrong> {
    let scratch = Scratch::set_up(folder, 1, files, 0)?;
    let git = Repository::open(&scratch.repository)?;
    let plain = &scratch.worktrees[0];
    let at = |name: &str| folder.join(name);
    written_out()?;
    let (lane, made) = timed(|| lane(&scratch.repository, &at("lanes")))?;
    let tree = Tree::open(&lane)?;
    tree.settled_changes()?;
    run(command("git")
        .current_dir(plain)
        .args(["status", "--short"]))?;
    let first = git.head()?.peel_to_commit()?.id().to_string();
    let gone = Ignored::Go(BTreeSet::new());
    written_out()?;
    let (checkout, fresh) = timed(|| {
        let checkout = Checkout::prepare(&scratch.repository, &at("verify"), &at("verify.git"))?;
        checkout.put_at(&first, &gone)?;
        checkout.tree().date(&first, 0, &[])?;
        Ok(checkout)
    })?;
    written_out()?;
    let added = worktree_add(&scratch.repository, &at("added"))?;
    let mut tip = first.clone();
    let mut figures = Figures::default();
    for number in 0..=sizes.runs {
        let rested = after_pause(|| step(&tree, &lane, &tip, number, &at("step.git")))?;
        let after = sizes.runs + 1 + number;
        let (next, took) = step(&tree, &lane, &tip, after, &at("step.git"))?;
        let theirs = by_git(plain, &tip, number)?;
        let put = |is_ours: bool| {
            if !(is_ours && checkout.move_to(&next)?) {
                checkout.put_at(&next, &gone)?;
            }
            checkout.tree().date(&first, 0, &[])?;
            let base = detached(&next);
            Ok(checkout
                .tree()
                .private_git(&at("verification.git"), &base, true)?)
        };
        let (_, moved) = timed(|| put(true))?;
        checkout.move_to(&tip)?;
        let (_, looked_at) = timed(|| put(false))?;
        tip = next;
        // The first warms up and does not count.
        if number > 0 {
            figures.prepared.push(took[0]);
            figures.rested.push(rested);
            figures.imported.push(took[1]);
            figures.switched.push(theirs[0]);
            figures.committed.push(theirs[1]);
            figures.moved.push(moved.as_secs_f64());
            figures.put.push(looked_at.as_secs_f64());
        }
    }
    figures.show(files);
    show_made(
        [("checkout", fresh), ("lane's worktree", made)],
        added,
        files,
    );
    Ok(())
}

fn show_made(made: [(&str, Duration); 2], added: Duration, files: usize) {
    for (what, took) in made {
        figure::show(
            &format!("make a {what}, {files} files, against git worktree add"),
            &figure::time(took.as_secs_f64()),
            &figure::time(added.as_secs_f64()),
            took.as_secs_f64() / added.as_secs_f64(),
            "<= 1.1",
        );
    }
}

impl Figures {
    fn show(self, files: usize) {
        let show = |name: &str, ours: &[f64], theirs: &[f64], target: &str| {
            let ratio = median(ours.iter().zip(theirs).map(|(o, t)| o / t).collect());
            figure::show(
                name,
                &figure::time(median(ours.to_vec())),
                &figure::time(median(theirs.to_vec())),
                ratio,
                target,
            );
        };
        show(
            &format!("prepare a step after another, {files} files, against git switch"),
            &self.prepared,
            &self.switched,
            "<= 1.5",
        );
        show(
            &format!("the same after a pause, {files} files, against git switch"),
            &self.rested,
            &self.switched,
            "",
        );
        show(
            &format!("import {CHANGED} changes, {files} files, against git add and commit"),
            &self.imported,
            &self.committed,
            "",
        );
        show(
            &format!("put a checkout at a commit, {files} files, against git switch"),
            &self.moved,
            &self.switched,
            "<= 1.5",
        );
        show(
            &format!("the same with a look at all files, {files} files, against git switch"),
            &self.put,
            &self.switched,
            "",
        );
    }
}

/// Has the system write out what was written before, which is not what is measured next.
fn written_out() -> Result<(), Wrong> {
    run(&mut command("sync")).map(drop)
}

/// Returns how long git takes to add a worktree.
fn worktree_add(repository: &Path, at: &Path) -> Result<Duration, Wrong> {
    let add = || {
        run(command("git")
            .current_dir(repository)
            .args(["worktree", "add", "-q", "--detach"])
            .arg(at))
    };
    Ok(timed(add)?.1)
}

/// Makes a lane as a batch does; returns its worktree.
fn lane(repository: &Path, root: &Path) -> Result<PathBuf, Wrong> {
    let provision = Provision {
        repository: repository.to_path_buf(),
        root: root.to_path_buf(),
        count: 1,
        spare: Vec::new(),
        target: Some("main".to_owned()),
    };
    let mut made = provision.ready(|| true)?;
    match made.pop() {
        Some(lane) if lane.is_lane() => Ok(lane.worktree),
        other => Err(Wrong::because(format!("no lane was made: {other:?}"))),
    }
}

fn detached(commit: &str) -> Base {
    Base {
        commit: commit.to_owned(),
        branch: None,
    }
}

fn edit(folder: &Path, number: usize) -> Result<(), Wrong> {
    for part in 0..CHANGED {
        let path = format!("source/{part}/{}.txt", part * 50 + number % 50);
        fs::write(folder.join(path), format!("changed {number}\n"))?;
    }
    Ok(())
}

/// Prepares a step, and imports what it changed; returns its commit.
fn step(
    tree: &Tree,
    lane: &Path,
    tip: &str,
    number: usize,
    git: &Path,
) -> Result<(String, [f64; 2]), Wrong> {
    let base = Base {
        commit: tip.to_owned(),
        branch: Some(format!("refs/heads/harness/step/{number}")),
    };
    let (_, prepared) = timed(|| {
        tree.make_branch(&base)?;
        tree.start_at(&base, "bench", 1)?;
        tree.private_git(git, &base, true)?;
        Ok(tree.clean_state()?)
    })?;
    tree.before_command();
    edit(lane, number)?;
    let text = CommitText {
        issue_id: "bench",
        title: "bench",
        lease: "bench",
        step_id: "bench",
        ..CommitText::default()
    };
    let (commit, imported) = timed(|| {
        let worked = tree.state_on(tip)?;
        if !tree.keep_state(tip, &worked)? {
            return Err(Wrong::because("the tree changed"));
        }
        Ok(tree.squash(&text, tip, &worked.tree, None)?)
    })?;
    // A lane goes back to where its step began.
    let gone = Ignored::Go(BTreeSet::new());
    let (_, back) = timed(|| Ok(tree.reset_as_seen(&detached(tip), &gone)?))?;
    let prepared = prepared + back;
    Ok((commit, [prepared, imported].map(|took| took.as_secs_f64())))
}

/// Returns how long a step took to be prepared when a look at all files counts no longer.
fn after_pause(step: impl FnOnce() -> Result<(String, [f64; 2]), Wrong>) -> Result<f64, Wrong> {
    std::thread::sleep(PAUSE);
    Ok(step()?.1[0])
}

/// Does the same with git.
fn by_git(plain: &Path, tip: &str, number: usize) -> Result<[f64; 2], Wrong> {
    let branch = format!("plain/step/{number}");
    let git = |arguments: &[&str]| {
        let mut git = command("git");
        git.current_dir(plain).args(arguments);
        git
    };
    let (_, switched) = timed(|| run(&mut git(&["switch", "--quiet", "-c", &branch, tip])))?;
    edit(plain, number)?;
    let (_, committed) = timed(|| {
        run(&mut git(&["add", "-A"]))?;
        run(git(&["commit", "-qm", "bench"])
            .env("GIT_AUTHOR_NAME", "bench")
            .env("GIT_AUTHOR_EMAIL", "bench@localhost")
            .env("GIT_COMMITTER_NAME", "bench")
            .env("GIT_COMMITTER_EMAIL", "bench@localhost"))
    })?;
    Ok([switched, committed].map(|took| took.as_secs_f64()))
}
