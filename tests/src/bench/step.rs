//! Preparing and importing a step, and putting the checkout for verifications at
//! its commit, beside `git switch`, `git add` with `git commit`, and `git
//! worktree add`, in trees of several sizes.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{command, run};
use crate::scratch::Scratch;
use git2::Repository;
use premath_worktree::checkout::Checkout;
use premath_worktree::tree::{Base, CommitText, Ignored, Tree};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Files that a step changes, one in each of as many folders.
const CHANGED: usize = 10;

pub(crate) fn measure(sizes: Sizes, folder: &Path) -> Result<(), Wrong> {
    for files in [1_000, sizes.large] {
        measure_with(sizes, &folder.join(files.to_string()), files)?;
    }
    Ok(())
}

#[derive(Default)]
struct Figures {
    prepared: Vec<f64>,
    switched: Vec<f64>,
    imported: Vec<f64>,
    committed: Vec<f64>,
    moved: Vec<f64>,
}

fn measure_with(sizes: Sizes, folder: &Path, files: usize) -> Result<(), Wrong> {
    let scratch = Scratch::lay_out(folder, 2, files, 0)?;
    let git = Repository::open(&scratch.repository)?;
    let (lane, plain) = (&scratch.worktrees[0], &scratch.worktrees[1]);
    let tree = Tree::open(lane)?;
    tree.settle_index();
    run(command("git")
        .current_dir(plain)
        .args(["status", "--short"]))?;
    let first = git.head()?.peel_to_commit()?.id().to_string();
    let at = |name: &str| folder.join(name);
    let gone = Ignored::Go(BTreeSet::new());
    let (checkout, fresh) = timed(|| {
        let checkout = Checkout::prepare(&scratch.repository, &at("verify"), &at("verify.git"))?;
        checkout.put_at(&first, &gone)?;
        checkout.tree().date(&first, 0, &[])?;
        Ok(checkout)
    })?;
    let (_, added) = timed(|| {
        run(command("git")
            .current_dir(&scratch.repository)
            .args(["worktree", "add", "-q", "--detach"])
            .arg(at("added")))
    })?;
    let mut tip = first.clone();
    let mut figures = Figures::default();
    for number in 0..=sizes.runs {
        let (next, took) = step(&tree, lane, &tip, number, &at("step.git"))?;
        let theirs = by_git(plain, &tip, number)?;
        let (_, moved) = timed(|| {
            checkout.put_at(&next, &gone)?;
            checkout.tree().date(&first, 0, &[])?;
            let base = detached(&next);
            Ok(checkout
                .tree()
                .private_git(&at("verification.git"), &base, true)?)
        })?;
        tip = next;
        // The first warms up and does not count.
        if number > 0 {
            figures.prepared.push(took[0]);
            figures.imported.push(took[1]);
            figures.switched.push(theirs[0]);
            figures.committed.push(theirs[1]);
            figures.moved.push(moved.as_secs_f64());
        }
    }
    figures.show(files);
    figure::show(
        &format!("make a checkout, {files} files, against git worktree add"),
        &figure::time(fresh.as_secs_f64()),
        &figure::time(added.as_secs_f64()),
        fresh.as_secs_f64() / added.as_secs_f64(),
        "",
    );
    Ok(())
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
            &format!("prepare a step, {files} files, against git switch"),
            &self.prepared,
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
            "",
        );
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
        if tree.keep_content(tip)? != worked.tree {
            return Err(Wrong::because("the tree changed"));
        }
        Ok(tree.squash(&text, tip, &worked.tree, None)?)
    })?;
    Ok((commit, [prepared, imported].map(|took| took.as_secs_f64())))
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
