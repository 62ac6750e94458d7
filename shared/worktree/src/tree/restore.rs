//! The way back: branch, index and files as at the base.

use super::aside::Aside;
use super::beneath::{Beneath, RIGHTS, kind, path};
use super::index_file;
use super::made_folder::has_attribute;
use super::scan::Scan;
use super::{Base, Tree, TreeError};
use crate::entry_lookup::EntryLookup;
use crate::mode::canonical;
use crate::reference_deletion::delete_by;
use crate::reference_write::{Target, point};
use git2::{Commit, Index, IndexEntry, IndexEntryExtendedFlag, ObjectType, Oid, Reference};
use jiff::Timestamp;
use rustix::fs::{FileType, Mode, fstat};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The locks of files of a worktree's own that a git command writes.
const LOCKS: [&str; 8] = [
    "index.lock",
    "HEAD.lock",
    "ORIG_HEAD.lock",
    "AUTO_MERGE.lock",
    "MERGE_HEAD.lock",
    "CHERRY_PICK_HEAD.lock",
    "REVERT_HEAD.lock",
    "REBASE_HEAD.lock",
];
/// What `cleanup_state` removes, with the folders' content.
const STATE: [&str; 9] = [
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "REVERT_HEAD",
    "CHERRY_PICK_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];
/// The longest `.git` file that is read.
const LINK_MAX: u64 = 8 << 10;
/// How often the tree is looked at: a step's `.gitignore` hides files until the
/// base's is back, and the files of a folder that was deleted whole are found
/// and written one look later.
pub(super) const ROUNDS: u32 = 4;

impl Tree {
    /// Puts branch and tree back to a base.
    pub(super) fn restore(
        &self,
        base: &Base,
        commit: &Commit<'_>,
        refused: &BTreeSet<Vec<u8>>,
        aside: &mut Aside<'_>,
    ) -> Result<(), TreeError> {
        let target = commit.tree().map_err(self.failed("read the tree"))?;
        self.point_at(base, commit.id())?;
        self.cleanup();
        self.write_link()?;
        for round in 0..ROUNDS {
            let mut scan = self.scan(&target)?;
            if round == 0 {
                scan.nested.extend(refused.iter().cloned());
                scan.nested.extend(self.inner_repositories(&target)?);
                self.settle(&target, &[])?;
            }
            if scan.paths.is_empty() && scan.nested.is_empty() {
                break;
            }
            self.put_back(&target, &scan, round == 0, aside)?;
        }
        Ok(())
    }

    /// Moves a branch and HEAD to a commit; no file is touched.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn move_branch(&self, to: &Base) -> Result<(), TreeError> {
        let commit = self.find_commit(&to.commit)?.id();
        self.clear_locks(to.branch.as_deref(), None);
        self.point_at(to, commit)
    }

    /// Moves the branch to a commit, and HEAD to the branch.
    pub(super) fn point_at(&self, base: &Base, commit: Oid) -> Result<(), TreeError> {
        if self.base().is_ok_and(|now| now == *base) {
            return Ok(());
        }
        let message = "premath: back to the step's base";
        let failed = "put the branch back";
        let own = self.beneath_git()?;
        // `set_head` refuses a branch that another worktree is on; the lane's
        // own is the lane's.
        let target = match &base.branch {
            Some(branch) => {
                if !branch.starts_with("refs/heads/") || !Reference::is_valid_name(branch) {
                    let detail = format!("{branch} is not a branch");
                    return Err(self.error(failed, detail));
                }
                let put = || self.repository.reference(branch, commit, true, message);
                // A symbolic reference has no target: a step may have made one of it.
                let found = self.repository.find_reference(branch);
                let is_there = found.is_ok_and(|found| found.target() == Some(commit));
                if !is_there && put().is_err() {
                    self.free_name(branch);
                    put().map_err(self.failed(failed))?;
                }
                Target::Branch(branch)
            }
            None => Target::Commit(commit),
        };
        let head = Path::new("HEAD");
        own.unlink_if_link(head)
            .map_err(self.refused(failed, head))?;
        self.point_head(target, message)
            .map_err(self.failed(failed))
    }

    /// Points HEAD elsewhere.
    pub(super) fn point_head(&self, target: Target<'_>, message: &str) -> Result<(), git2::Error> {
        let who = self.person()?;
        point(&self.repository, "HEAD", target, &who, message)
    }

    /// Renames branches that leave no room for the name of the lane's: they
    /// were made by the step, since both cannot be there at once.
    fn free_name(&self, branch: &str) {
        let mut in_the_way: Vec<String> = Path::new(branch)
            .ancestors()
            .skip(1)
            .filter_map(Path::to_str)
            .filter(|name| name.starts_with("refs/heads/"))
            .map(str::to_owned)
            .collect();
        if let Ok(mut below) = self.repository.references_glob(&format!("{branch}/*")) {
            in_the_way.extend(below.names().flatten().map(str::to_owned));
        }
        for name in in_the_way {
            let rest = name.trim_start_matches("refs/heads/");
            let new = format!("refs/heads/harness/moved/{rest}");
            let renamed = delete_by(&self.repository, &name, |git| {
                let mut reference = git.find_reference(&name)?;
                reference
                    .rename(&new, true, "premath: out of the lane's way")
                    .map(drop)
            });
            if renamed.is_ok() {
                let _ = self.repository.reflog_delete(&name);
            }
        }
    }

    /// Ends a merge, rebase or the like that is in progress.
    pub(super) fn cleanup(&self) {
        if let Ok(git) = self.beneath_git() {
            let found = git.names_among(&STATE).unwrap_or(STATE.to_vec());
            if found.is_empty() {
                return;
            }
            // Git would empty the folder that a link leads to.
            for name in found {
                let _ = git.unlink_if_link(Path::new(name));
            }
        }
        let _ = self.repository.cleanup_state();
    }

    /// Writes the `.git` file of a linked worktree, in the place of whatever is
    /// there.
    pub(super) fn write_link(&self) -> Result<(), TreeError> {
        match &self.link {
            Some(link) => self.put_link(link),
            None => Ok(()),
        }
    }

    /// Makes the `.git` file of a linked worktree lead to a git folder for the
    /// time that a step's commands run in it.
    ///
    /// # Errors
    ///
    /// [`TreeError`]; always in a main worktree, whose `.git` is the repository.
    pub fn point_git_file_at(&self, git: &Path) -> Result<(), TreeError> {
        if self.link.is_none() {
            let detail = "it is the repository's main worktree".to_owned();
            return Err(self.error("replace the git folder", detail));
        }
        self.put_link(format!("gitdir: {}\n", git.display()).as_bytes())
    }

    /// Makes the `.git` file of a linked worktree what it is while no command
    /// runs.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn restore_git_file(&self) -> Result<(), TreeError> {
        self.write_link()
    }

    /// Returns whether the `.git` file says this; git ends a folder's path with
    /// a slash, or does not.
    fn is_link(root: &Beneath, content: &[u8]) -> bool {
        let plain = |text: &[u8]| {
            let text = text.trim_ascii_end();
            text.strip_suffix(b"/").unwrap_or(text).to_vec()
        };
        let found = root.read(Path::new(".git"), LINK_MAX).ok().flatten();
        found.is_some_and(|found| plain(&found) == plain(content))
    }

    fn put_link(&self, content: &[u8]) -> Result<(), TreeError> {
        let name = Path::new(".git");
        let root = self.beneath()?;
        if Self::is_link(&root, content) || is_written_over(&root, name, content) {
            return Ok(());
        }
        let found = root.look(name).map_err(self.refused("look at", name))?;
        let is_folder = found.is_some_and(|stat| kind(&stat) == FileType::Directory);
        if is_folder && !self.is_disposable() {
            let detail = "a folder `.git` is in the place of the worktree's file".to_owned();
            return Err(self.error("use the worktree", detail));
        }
        root.open_root()
            .and_then(|()| root.delete(name))
            .and_then(|()| root.create(name, content))
            .map_err(self.refused("write", name))
    }

    /// Returns the `.git` of repositories that were made in folders of a tree. In other
    /// worktrees of this repository none is searched.
    fn inner_repositories(&self, target: &git2::Tree<'_>) -> Result<Vec<Vec<u8>>, TreeError> {
        let root = self.beneath()?;
        let recorded = self.recorded_worktrees();
        let mut found = Vec::new();
        let mut folders = vec![(PathBuf::new(), target.clone())];
        while let Some((at, tree)) = folders.pop() {
            for entry in tree.iter() {
                if entry.kind() != Some(git2::ObjectType::Tree) {
                    continue;
                }
                let at = at.join(path(entry.name_bytes()));
                if recorded.contains(at.as_os_str().as_encoded_bytes()) {
                    continue;
                }
                let git = at.join(".git");
                if root.look(&git).ok().flatten().is_some() {
                    found.push(git.into_os_string().into_encoded_bytes());
                }
                let tree = self
                    .repository
                    .find_tree(entry.id())
                    .map_err(self.failed("read the tree"))?;
                folders.push((at, tree));
            }
        }
        Ok(found)
    }

    /// Removes and writes files as a tree has them; what is not `kept`
    /// elsewhere is put aside.
    fn put_back(
        &self,
        target: &git2::Tree<'_>,
        scan: &Scan,
        kept: bool,
        aside: &mut Aside<'_>,
    ) -> Result<(), TreeError> {
        let root = self.beneath()?;
        for nested in &scan.nested {
            aside.take(path(nested))?;
        }
        let mut written = Vec::new();
        let mut gone = Vec::new();
        let entries = EntryLookup::new(&self.repository, target);
        for name in &scan.paths {
            match entries.get(name).and_then(|entry| entry.kind()) {
                Some(ObjectType::Commit) => {}
                Some(ObjectType::Blob) => written.push(path(name)),
                _ => gone.push(path(name)),
            }
        }
        let remove = |at: &Path| root.remove(at).map_err(self.refused("remove", at));
        for at in gone {
            if kept {
                remove(at)?;
            } else {
                aside.take(at)?;
            }
        }
        for at in &written {
            let blocker = || root.blocker(at).map_err(self.refused("reach", at));
            while let Some(blocker) = blocker()? {
                let known = scan.paths.contains(blocker.as_os_str().as_encoded_bytes());
                if kept && known {
                    remove(&blocker)?;
                } else {
                    aside.take(&blocker)?;
                }
            }
            if !kept || remove(at)? {
                aside.take(at)?;
            }
        }
        self.write_files(target, &written, |_| {})
    }

    /// Makes the index on the disk a tree's, whatever was staged; the times of
    /// files that are the same are kept, and those of `entries` taken.
    pub(super) fn settle(
        &self,
        target: &git2::Tree<'_>,
        entries: &[IndexEntry],
    ) -> Result<(), TreeError> {
        if self.settle_plain(target, entries)? {
            return Ok(());
        }
        let failed = "write the index";
        self.repair_index()?;
        let mut index = self.repository.index().map_err(self.failed(failed))?;
        index.read(true).map_err(self.failed(failed))?;
        self.uncover(&mut index)?;
        let left_out = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        let mut left_out: Vec<IndexEntry> = index
            .iter()
            .filter(|entry| entry.flags_extended & left_out != 0)
            .collect();
        left_out.extend(self.newly_left_out(target, &index)?);
        let is_whole = left_out.is_empty() && !self.is_sparse();
        let written = index
            .read_tree(target)
            .and_then(|()| refresh(&mut index, left_out, entries))
            .and_then(|()| index.write());
        match &written {
            Err(_) => self.reread_index(),
            Ok(()) if is_whole => self.keep_plain(target.id()),
            Ok(()) => {}
        }
        written.map_err(self.failed(failed))
    }

    /// Removes an index that is a link or cannot be read: git would write
    /// where the link leads to, and reads it whenever it looks at files.
    pub(super) fn repair_index(&self) -> Result<(), TreeError> {
        if self.has_plain() {
            return Ok(());
        }
        let name = Path::new("index");
        let file = self.git_folder().join(name);
        let git = self.beneath_git()?;
        let mended = git.unlink_if_link(name).and_then(|()| {
            if index_file::open(&file).is_err() {
                git.remove_alone(name)?;
            }
            Ok(())
        });
        mended.map_err(self.refused("repair", name))
    }

    /// Puts the repository's index in memory back to what is on the disk.
    pub(super) fn reread_index(&self) {
        if let Ok(mut index) = self.repository.index() {
            let _ = index.read(true);
        }
    }

    /// Removes lock files that a killed git left. The lane holds the worktree
    /// and nothing of the step runs any more, so no process holds those of a
    /// linked worktree; in a main one only those younger than the step go.
    pub(super) fn clear_locks(&self, branch: Option<&str>, since: Option<Timestamp>) {
        let is_left = |file: &Path| {
            let is_younger = || {
                let touched = fs::symlink_metadata(file).and_then(|meta| meta.modified());
                touched.is_ok_and(|at| {
                    Timestamp::try_from(at).is_ok_and(|at| since.is_some_and(|since| at >= since))
                })
            };
            !self.is_main() || self.is_checkout || is_younger()
        };
        let clear = |folder: &Beneath, at: &Path, name: &str| {
            if is_left(&at.join(name)) {
                let _ = folder.remove_alone(Path::new(name));
            }
        };
        let own = self.git_folder();
        if let Ok(folder) = Beneath::open(own) {
            for lock in folder.names_among(&LOCKS).unwrap_or(LOCKS.to_vec()) {
                clear(&folder, own, lock);
            }
        }
        // A branch belongs to the one worktree that has it checked out.
        let common = self.common_folder();
        if let Some(branch) = branch.filter(|branch| branch.starts_with("refs/heads/"))
            && let Ok(folder) = Beneath::open(common)
        {
            clear(&folder, common, &format!("{branch}.lock"));
        }
    }
}

/// Writes over a file that only its owner can write; returns whether it could. A new
/// file is slow on ext4: the number of a deleted file is not used again for a while.
/// A process that still has the old file open can write the new content too. Where
/// commands run at the worktree's own path, it could do so by that path anyway.
fn is_written_over(root: &Beneath, name: &Path, content: &[u8]) -> bool {
    let Ok(Some(mut file)) = root.open_to_write(name) else {
        return false;
    };
    let is_plain = fstat(&file).is_ok_and(|found| {
        let rights = Mode::from_raw_mode(found.st_mode);
        let is_ours = found.st_uid == geteuid().as_raw() && found.st_nlink == 1;
        is_ours && RIGHTS.contains(rights) && rights.contains(Mode::RUSR | Mode::WUSR)
    });
    let length = content.len() as u64;
    is_plain
        && matches!(has_attribute(&file), Ok(false))
        && file
            .write_all(content)
            .and_then(|()| file.set_len(length))
            .is_ok()
}

/// Puts what is known about files into an index that was read from a tree.
pub(super) fn refresh(
    index: &mut Index,
    left_out: Vec<IndexEntry>,
    entries: &[IndexEntry],
) -> Result<(), git2::Error> {
    for old in left_out {
        if let Some(mut entry) = index.get_path(path(&old.path), 0) {
            entry.flags |= git2::IndexEntryFlag::EXTENDED.bits();
            entry.flags_extended |= IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
            index.add(&entry)?;
        }
    }
    // The times are of files that the tree has; any other was of another tree.
    for entry in entries {
        let known = index.get_path(path(&entry.path), 0);
        if known.is_some_and(|known| (known.id, canonical(known.mode)) == (entry.id, entry.mode)) {
            index.add(entry)?;
        }
    }
    Ok(())
}
