//! One lane: what is there in its place, and what makes it a worktree.

use super::{Fate, MARK, Provision, refused, why};
use git2::{
    BranchType, Oid, Repository, Worktree, WorktreeAddOptions, WorktreeLockStatus,
    WorktreePruneOptions,
};
use std::fs;
use std::path::{Path, PathBuf};

impl Provision {
    pub(super) fn lane(
        &self,
        git: &Repository,
        name: &str,
        worktree: &Path,
        start: Oid,
    ) -> Result<Fate, String> {
        let Some(registered) = registered_at(git, worktree) else {
            if is_used(worktree) {
                return Err(
                    "something is there that is no worktree of this repository; move it away"
                        .to_owned(),
                );
            }
            self.make(git, name, worktree, start)?;
            return Ok(Fate::Made);
        };
        let folder = folder_of(git, &registered);
        if !worktree.exists() {
            if let Some(reason) = locked(&registered) {
                return Err(format!("its folder is gone, and it is locked{reason}"));
            }
            prune(&registered)?;
            self.make(git, name, worktree, start)?;
            return Ok(Fate::Mended("its folder was gone"));
        }
        let mut fate = Fate::Kept;
        if mend_link(worktree, &folder)? {
            fate = Fate::Mended("its .git file was not that of this repository");
        }
        if mend_head(&folder, start)? {
            fate = Fate::Mended("its HEAD was at no commit");
        }
        let lane = Repository::open(worktree).map_err(why("open it"))?;
        self.settle_branch(&lane, &folder, name)?;
        Ok(fate)
    }

    fn make(
        &self,
        git: &Repository,
        name: &str,
        worktree: &Path,
        start: Oid,
    ) -> Result<(), String> {
        // Git wants no folder there, and an empty one may be.
        let _ = fs::remove_dir(worktree);
        let branch = branch_of(name);
        let commit = git.find_commit(start).map_err(why("find its commit"))?;
        let branch = match git.find_branch(&branch, BranchType::Local) {
            Ok(branch) => branch,
            Err(_) => git
                .branch(&branch, &commit, false)
                .map_err(why("make its branch"))?,
        };
        let mut options = WorktreeAddOptions::new();
        options.reference(Some(branch.get()));
        let made = git
            .worktree(&free_name(git, name), worktree, Some(&options))
            .map_err(why("make it"))?;
        let folder = folder_of(git, &made);
        fs::write(folder.join(MARK), "").map_err(refused("mark it"))?;
        let lane = Repository::open(worktree).map_err(why("open it"))?;
        self.settle_branch(&lane, &folder, name)
    }

    /// A lane whose steps have branches of their own stands on none; any other
    /// has one to commit to.
    fn settle_branch(&self, lane: &Repository, folder: &Path, name: &str) -> Result<(), String> {
        if !super::is_provisioned(folder) {
            return Ok(());
        }
        let head = lane.head().map_err(why("read its HEAD"))?;
        let commit = head.peel_to_commit().map_err(why("read its HEAD"))?;
        let branch = branch_of(name);
        let reference = format!("refs/heads/{branch}");
        if self.target.is_none() {
            if head.is_branch() {
                return Ok(());
            }
            return lane
                .branch(&branch, &commit, true)
                .and_then(|_| lane.set_head(&reference))
                .map_err(why("put it on its branch"));
        }
        if head.name().is_ok_and(|name| name == reference) {
            lane.set_head_detached(commit.id())
                .map_err(why("take it off its branch"))?;
            // What was committed to it while work did not land stays.
            let is_held =
                held_elsewhere(lane, &reference, commit.id()).map_err(why("look at its branch"))?;
            if is_held && let Ok(mut left) = lane.find_reference(&reference) {
                left.delete().map_err(why("remove its branch"))?;
            }
        }
        Ok(())
    }
}

/// Names the branch of a lane.
pub(super) fn branch_of(name: &str) -> String {
    format!("harness-lane/{name}")
}

/// Tells whether another branch than one holds a commit.
pub(super) fn held_elsewhere(
    git: &Repository,
    branch: &str,
    commit: Oid,
) -> Result<bool, git2::Error> {
    for other in git.references_glob("refs/heads/*")? {
        let other = other?;
        if other.name() == Ok(branch) {
            continue;
        }
        let Ok(tip) = other.peel_to_commit() else {
            continue;
        };
        if tip.id() == commit || git.graph_descendant_of(tip.id(), commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the git folder of a registered worktree.
pub(super) fn folder_of(git: &Repository, worktree: &Worktree) -> PathBuf {
    let name = worktree.name().ok().flatten().unwrap_or_default();
    git.commondir().join("worktrees").join(name)
}

/// Returns every registered worktree, in the order of their names.
pub(super) fn registered(git: &Repository) -> Vec<Worktree> {
    let names = git.worktrees();
    let mut names: Vec<String> = names
        .iter()
        .flat_map(|names| names.iter())
        .filter_map(|name| name.ok().flatten().map(str::to_owned))
        .collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| git.find_worktree(name).ok())
        .collect()
}

fn registered_at(git: &Repository, worktree: &Path) -> Option<Worktree> {
    registered(git)
        .into_iter()
        .find(|found| same_place(found.path(), worktree))
}

/// Tells whether two paths are one place, also where nothing is there now.
pub(super) fn same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let above = path.parent().and_then(|above| fs::canonicalize(above).ok());
        above
            .zip(path.file_name())
            .map(|(above, name)| above.join(name))
    };
    place(one).is_some_and(|one| Some(one) == place(other))
}

/// Returns why a worktree is locked, to be put behind a sentence.
pub(super) fn locked(worktree: &Worktree) -> Option<String> {
    match worktree.is_locked() {
        Ok(WorktreeLockStatus::Unlocked) => None,
        Ok(WorktreeLockStatus::Locked(reason)) => {
            let reason = reason.map(|reason| reason.trim().to_owned());
            let reason = reason.filter(|reason| !reason.is_empty());
            Some(reason.map_or_else(String::new, |reason| format!(": {reason}")))
        }
        Err(error) => Some(format!(": {}", error.message())),
    }
}

/// Removes a registration whose folder is gone.
pub(super) fn prune(worktree: &Worktree) -> Result<(), String> {
    let mut options = WorktreePruneOptions::new();
    worktree
        .prune(Some(options.valid(false)))
        .map_err(why("remove its registration"))
}

/// Tells whether something is in a place.
fn is_used(place: &Path) -> bool {
    match fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => fs::symlink_metadata(place).is_ok(),
    }
}

/// Finds a name that no worktree is registered by.
fn free_name(git: &Repository, name: &str) -> String {
    let is_taken = |name: &str| git.commondir().join("worktrees").join(name).exists();
    let mut free = format!("premath-{name}");
    for number in 2_u32.. {
        if !is_taken(&free) {
            break;
        }
        free = format!("premath-{name}-{number}");
    }
    free
}

/// Puts the `.git` file of a worktree back where it is missing or leads
/// elsewhere; tells whether it was.
fn mend_link(worktree: &Path, folder: &Path) -> Result<bool, String> {
    let link = worktree.join(".git");
    let meta = fs::symlink_metadata(&link);
    if meta.as_ref().is_ok_and(|meta| meta.is_dir()) {
        return Err("a repository of its own is there; move it away".to_owned());
    }
    let expected = format!("gitdir: {}\n", folder.display());
    let leads = fs::read_to_string(&link).ok().and_then(|text| {
        let to = text.strip_prefix("gitdir:")?.trim().to_owned();
        fs::canonicalize(worktree.join(to)).ok()
    });
    if leads.is_some() && leads == fs::canonicalize(folder).ok() {
        return Ok(false);
    }
    if meta.is_ok() {
        fs::remove_file(&link).map_err(refused("replace its .git file"))?;
    }
    fs::write(&link, expected).map_err(refused("write its .git file"))?;
    Ok(true)
}

/// Puts HEAD at a commit where it is at none that can be read; tells whether
/// it was.
fn mend_head(folder: &Path, start: Oid) -> Result<bool, String> {
    let is_readable = Repository::open(folder).is_ok_and(|lane| {
        lane.head()
            .and_then(|head| head.peel_to_commit())
            .and_then(|commit| commit.tree())
            .is_ok()
    });
    if is_readable {
        return Ok(false);
    }
    let head = folder.join("HEAD");
    let new = folder.join("HEAD.premath");
    fs::write(&new, format!("{start}\n"))
        .and_then(|()| fs::rename(&new, &head))
        .map_err(refused("mend its HEAD"))?;
    Ok(true)
}
