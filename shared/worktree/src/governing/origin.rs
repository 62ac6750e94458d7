//! Which changes of governing files came with the work of steps.

use super::{GoverningError, blob_of, content};
use git2::{Commit, Oid, Repository, Revwalk};
use premath_kernel::policy::landing::DEFAULT_TARGET;
use premath_kernel::policy::trust::FileChange;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// How far history is looked at; beyond, every change counts as landed.
const COMMITS_MAX: usize = 50_000;

/// Where branches of the harness are.
const BRANCHES: [&str; 3] = [
    "refs/heads/harness/",
    "refs/heads/harness-step/",
    "refs/harness/",
];

/// Returns the paths of those changes that came with the work of a step since a
/// commit: by a commit that bears a step's trailer, by one that a branch of the
/// harness or the landing target holds, or as a copy of content that such a
/// branch brought in.
///
/// Where the commit is not there any more, every change counts.
///
/// # Errors
///
/// [`GoverningError`].
pub fn landed(
    root: &Path,
    since: Option<&str>,
    target: Option<&str>,
    changes: &[FileChange],
) -> Result<BTreeSet<String>, GoverningError> {
    let failed = GoverningError::git("read the history", root);
    let every = || changes.iter().map(|change| change.path.clone()).collect();
    let git = Repository::open(root).map_err(&failed)?;
    let Some(head) = git.head().ok().and_then(|head| head.peel_to_commit().ok()) else {
        return Ok(BTreeSet::new());
    };
    let since = match since {
        None => None,
        Some(id) => match Oid::from_str(id).and_then(|id| git.find_commit(id)) {
            Ok(commit) => Some(commit),
            Err(_) => return Ok(every()),
        },
    };
    let tips = tips(&git, target).map_err(&failed)?;
    let new = walk(&git, &[head.id()], since.as_ref()).map_err(&failed)?;
    // Before the first commit there was no batch: only trailers tell.
    let of_harness = match &since {
        Some(_) => walk(&git, &tips, since.as_ref()).map_err(&failed)?,
        None => Some(Vec::new()),
    };
    let (Some(new), Some(of_harness)) = (new, of_harness) else {
        return Ok(every());
    };
    let of_harness: HashSet<Oid> = of_harness.into_iter().collect();
    let mut found = BTreeSet::new();
    for id in new {
        let commit = git.find_commit(id).map_err(&failed)?;
        if !of_harness.contains(&id) && !has_step(&commit) {
            continue;
        }
        for change in changes {
            if !found.contains(&change.path) && touches(&commit, &change.path) {
                found.insert(change.path.clone());
            }
        }
    }
    if let Some(since) = since {
        for change in changes {
            if !found.contains(&change.path) && is_copy(&git, root, &since, &tips, &change.path)? {
                found.insert(change.path.clone());
            }
        }
    }
    Ok(found)
}

fn tips(git: &Repository, target: Option<&str>) -> Result<Vec<Oid>, git2::Error> {
    let target = target.unwrap_or(DEFAULT_TARGET);
    let target = format!("refs/heads/{}", target.trim_start_matches("refs/heads/"));
    let mut tips = Vec::new();
    for reference in git.references()? {
        let reference = reference?;
        let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
        if name == target || BRANCHES.iter().any(|start| name.starts_with(start)) {
            tips.extend(reference.peel_to_commit().ok().map(|commit| commit.id()));
        }
    }
    tips.sort();
    tips.dedup();
    Ok(tips)
}

/// Returns the commits that tips have and a commit has not; `None` where there
/// are too many.
fn walk(
    git: &Repository,
    tips: &[Oid],
    since: Option<&Commit<'_>>,
) -> Result<Option<Vec<Oid>>, git2::Error> {
    let mut walk: Revwalk<'_> = git.revwalk()?;
    for tip in tips {
        walk.push(*tip)?;
    }
    if let Some(since) = since {
        walk.hide(since.id())?;
    }
    let found = walk.take(COMMITS_MAX + 1).collect::<Result<Vec<_>, _>>()?;
    Ok((found.len() <= COMMITS_MAX).then_some(found))
}

/// Returns whether a commit's message bears the trailer of a step.
fn has_step(commit: &Commit<'_>) -> bool {
    let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
    message
        .lines()
        .any(|line| line.trim_start().starts_with("Step: "))
}

/// Returns whether a commit changed a path against its first parent.
fn touches(commit: &Commit<'_>, path: &str) -> bool {
    let before = commit.parent(0).ok();
    let before = before.and_then(|parent| entry(&parent, path));
    entry(commit, path) != before
}

fn entry(commit: &Commit<'_>, path: &str) -> Option<Oid> {
    let tree = commit.tree().ok()?;
    tree.get_path(Path::new(path)).ok().map(|entry| entry.id())
}

/// Returns whether the checkout has at a path what a branch of the harness
/// brought in there, as after a squash or a copy.
fn is_copy(
    git: &Repository,
    root: &Path,
    since: &Commit<'_>,
    tips: &[Oid],
    path: &str,
) -> Result<bool, GoverningError> {
    let Some(now) = content(root, path)?.and_then(|content| blob_of(&content)) else {
        return Ok(false);
    };
    Ok(tips.iter().any(|tip| {
        let brought_in = || {
            let commit = git.find_commit(*tip).ok()?;
            if entry(&commit, path) != Some(now) {
                return None;
            }
            let base = git.merge_base(*tip, since.id()).ok();
            let base = base.and_then(|base| git.find_commit(base).ok());
            let before = base.and_then(|base| entry(&base, path));
            Some(before != Some(now))
        };
        brought_in().unwrap_or(false)
    }))
}
