//! Landing a ready branch on a target that has not moved, beside `git
//! update-ref`; and a lane that is made ready for its next issue, beside `git
//! switch` from the same commit to the same commit.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::programs::{command, run};
use crate::scratch::Scratch;
use git2::{IndexEntry, Oid, Repository};
use premath_kernel::policy::landing::LandingRule;
use premath_worktree::landing::{Advance, Landing};
use premath_worktree::tree::{Base, Merged, Tree};
use std::path::Path;

const FILES: usize = 1_000;
/// Files that each landing changes, one in each of as many folders.
const CHANGED: usize = 10;

pub(crate) fn measure(sizes: Sizes, folder: &Path) -> Result<(), Wrong> {
    let scratch = Scratch::set_up(folder, 2, FILES, 0)?;
    let git = Repository::open(&scratch.repository)?;
    let landing = Landing::begin(LandingRule::default(), scratch.repository.clone())?;
    let (lane, plain) = (&scratch.worktrees[0], &scratch.worktrees[1]);
    let tree = Tree::open(lane)?;
    let mut tip = git.head()?.peel_to_commit()?.id();
    let mut figures = Figures::default();
    for number in 0..=sizes.runs.max(5) {
        let next = commit(&git, tip, number)?;
        let (before, after) = (tip.to_string(), next.to_string());
        let ready = |branch: &str, commit: &str| Base {
            commit: commit.to_owned(),
            branch: Some(format!("refs/heads/harness/{branch}/{number}")),
        };
        let switch = |branch: &str, commit: &str| {
            let branch = format!("plain/{branch}/{number}");
            let mut git = command("git");
            let git = git.current_dir(plain);
            timed(|| run(git.args(["switch", "--quiet", "-c", &branch, commit])))
        };
        // Both are at the work's own base, as after the issue before.
        let base = ready("before", &before);
        tree.make_branch(&base)?;
        tree.start_at(&base, "bench", 1)?;
        switch("before", &before)?;
        let base = ready("after", &after);
        let (_, lane_took) = timed(|| {
            tree.make_branch(&base)?;
            Ok(tree.start_at(&base, "bench", 1)?)
        })?;
        let (_, git_took) = switch("after", &after)?;
        let (_, landed) = timed(|| land(&landing, &tree, &before, &after))?;
        let other = format!("refs/heads/plain/target/{number}");
        git.reference(&other, tip, true, "bench")?;
        let mut update = command("git");
        let update = update.current_dir(plain);
        let (_, updated) = timed(|| run(update.args(["update-ref", &other, &after, &before])))?;
        tip = next;
        // The first warms up and does not count.
        if number > 0 {
            figures.landed.push(landed.as_secs_f64());
            figures.updated.push(updated.as_secs_f64());
            figures.lane.push(lane_took.as_secs_f64());
            figures.switched.push(git_took.as_secs_f64());
        }
    }
    figures.show();
    Ok(())
}

#[derive(Default)]
struct Figures {
    landed: Vec<f64>,
    updated: Vec<f64>,
    lane: Vec<f64>,
    switched: Vec<f64>,
}

impl Figures {
    fn show(self) {
        let ratios = |ours: &[f64], theirs: &[f64]| {
            median(ours.iter().zip(theirs).map(|(o, t)| o / t).collect())
        };
        let (landing, lane) = (
            ratios(&self.landed, &self.updated),
            ratios(&self.lane, &self.switched),
        );
        figure::show(
            &format!("land a ready branch, {FILES} files, against git update-ref"),
            &figure::time(median(self.landed)),
            &figure::time(median(self.updated)),
            landing,
            "<= 15 ms",
        );
        figure::show(
            &format!("make a lane ready, {FILES} files, against git switch"),
            &figure::time(median(self.lane)),
            &figure::time(median(self.switched)),
            lane,
            "<= 1.5",
        );
    }
}

/// Everything that a landing does but for the verification and the close.
fn land(landing: &Landing, tree: &Tree, tip: &str, work: &str) -> Result<(), Wrong> {
    let turn = landing.try_lock()?;
    if turn.is_none() || landing.landed(&"bench".into())?.is_some() || landing.tip()? != tip {
        return Err(Wrong::because("the target is not free"));
    }
    let Merged::Clean(merged) = tree.merged(tip, tip, work)? else {
        return Err(Wrong::because("the work conflicts"));
    };
    if merged != tree.clean_state()?.tree {
        return Err(Wrong::because("the work is not what the lane holds"));
    }
    landing.mark(&"bench".into(), 1, work)?;
    if landing.advance(tip, work, "bench")? != Advance::Done {
        return Err(Wrong::because("the target moved"));
    }
    landing.unmark(&"bench".into());
    Ok(())
}

/// Makes a commit that changes some files, without touching a checkout.
fn commit(git: &Repository, parent: Oid, number: usize) -> Result<Oid, Wrong> {
    let parent = git.find_commit(parent)?;
    let mut index = git2::Index::new()?;
    index.read_tree(&parent.tree()?)?;
    let blob = git.blob(format!("changed {number}\n").as_bytes())?;
    for folder in 0..CHANGED {
        let path = format!("source/{folder}/{}.txt", folder * 50 + number % 50);
        let entry = index.get_path(Path::new(&path), 0);
        let entry = entry.ok_or_else(|| Wrong::because(format!("{path} is not there")))?;
        index.add(&IndexEntry { id: blob, ..entry })?;
    }
    let tree = git.find_tree(index.write_tree_to(git)?)?;
    let author = git2::Signature::now("Premath Harness bench", "bench@localhost")?;
    Ok(git.commit(None, &author, &author, "change", &tree, &[&parent])?)
}
