//! A look at the files of a worktree that a step wrote: by descriptor, bounded,
//! and no link is followed.

use super::beneath::{Beneath, kind, path};
use super::descent::{DEPTH_MAX, Descent};
use super::entry_name::{is_fit_modules, is_modules};
use super::exclusion::{Exclusion, FolderRules, RULES};
use super::known_files::known_files;
use super::line_ends::LineEnds;
use super::private::settings_folder;
use super::scan::{Found, Scan, index_entry};
use super::{Tree, TreeError, is_ours};
use crate::file_stamp::FileStamp;
use crate::mode::{LINK, SUBMODULE, canonical, is_kind};
use git2::{Index, IndexEntry, IndexEntryExtendedFlag, ObjectType, Oid};
use rustix::fs::{FileType, Stat};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::rc::Rc;

/// How many entries of an index are compared at once.
const AT_ONCE: usize = 32 << 10;
/// How many files that git does not know one look lists.
const FILES_MAX: usize = 500_000;
/// The largest file that is taken.
pub(super) const FILE_MAX: u64 = 1 << 30;
/// The largest text whose line ends are converted.
pub(super) const TEXT_MAX: u64 = 64 << 20;

/// What the index knows: its files and submodules by their paths, sorted.
#[derive(Default)]
struct Tracked {
    files: Vec<Vec<u8>>,
    submodules: HashSet<Vec<u8>>,
}

impl Tracked {
    fn has_file(&self, at: &[u8]) -> bool {
        let found = self.files.binary_search_by(|file| file[..].cmp(at));
        found.is_ok()
    }

    /// Returns whether any file or submodule is below a folder.
    fn has_folder(&self, at: &[u8]) -> bool {
        let below = [at, b"/"].concat();
        let next = self.files.partition_point(|file| file[..] < below[..]);
        let is_below = |file: &Vec<u8>| file.starts_with(&below);
        self.files.get(next).is_some_and(is_below) || self.submodules.iter().any(is_below)
    }
}

/// A look at the files that an index has.
struct TrackedLook {
    descent: Descent,
    tracked: Tracked,
    /// Files that go through filters, to be compared all at once.
    filtered: Vec<(IndexEntry, Stat)>,
    changed: Vec<Vec<u8>>,
    /// When the index was modified.
    written: Option<(i64, u64)>,
}

impl Tree {
    /// Compares the files with an index, and lists what the index does not
    /// know.
    pub(super) fn look_at_files(&self, index: &Index, scan: &mut Scan) -> Result<(), TreeError> {
        let root = self.beneath()?;
        let refused = |at: &[u8], error| self.refused("look at", path(at))(error);
        let folder = root.folder().map_err(|error| refused(b".", error))?;
        self.holes.begin();
        let mut look = TrackedLook {
            descent: Descent::new(folder),
            tracked: Tracked::default(),
            filtered: Vec::new(),
            changed: Vec::new(),
            written: self.index_modified(),
        };
        let mut entries = index.iter();
        loop {
            let some: Vec<IndexEntry> = entries.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                break;
            }
            let known = known_files(&root, &some, look.written);
            for (entry, is_known) in some.into_iter().zip(known) {
                self.look_at_tracked(&root, entry, is_known, &mut look, scan);
            }
        }
        let TrackedLook {
            descent,
            mut tracked,
            filtered,
            changed,
            ..
        } = look;
        let is_rules = |path: &&Vec<u8>| path.ends_with(RULES);
        let changed_rules = changed.iter().filter(is_rules).cloned().collect();
        scan.paths.extend(changed);
        self.look_at_filtered(&root, &filtered, scan)?;
        // An index may be in another order, by its settings or by a step's hand.
        tracked.files.sort();
        let mut walk = Walk {
            root: &root,
            tracked: &tracked,
            changed_rules,
            tree: self,
            recorded: self.recorded_worktrees(),
            own: OnceCell::new(),
            exclusion: self.outer_rules()?,
            is_hidden: Default::default(),
            has_ours: !self.is_checkout,
            descent,
            scan,
            left: FILES_MAX,
        };
        walk.folder(Vec::new(), 0);
        Ok(())
    }

    /// Compares a file with its entry in the index.
    fn look_at_tracked(
        &self,
        root: &Beneath,
        mut entry: IndexEntry,
        is_known: bool,
        look: &mut TrackedLook,
        scan: &mut Scan,
    ) {
        if is_kind(entry.mode, SUBMODULE) {
            look.tracked.submodules.insert(entry.path);
            return;
        }
        if is_known || is_left_out(&entry) || self.is_skipped(&entry.path) {
            look.tracked.files.push(entry.path);
            return;
        }
        let found = look.descent.look(&entry.path);
        if let Ok(Some(stat)) = &found
            && stat.st_nlink > 1
            && kind(stat) == FileType::RegularFile
        {
            scan.linked.insert(entry.path.clone());
        }
        match found {
            Ok(Some(stat)) if is_as_known(&entry, &stat, look.written) => {}
            Ok(Some(stat)) if self.is_filtered(&entry.path) => {
                let path = entry.path.clone();
                look.filtered.push((IndexEntry { path, ..entry }, stat));
            }
            Ok(Some(stat)) => match self.same(root, &entry, &stat) {
                Some(same) => scan.same.push(same),
                None => look.changed.push(entry.path.clone()),
            },
            Ok(None) | Err(_) => look.changed.push(entry.path.clone()),
        }
        look.tracked.files.push(std::mem::take(&mut entry.path));
    }

    /// Returns when the index on the disk was modified.
    fn index_modified(&self) -> Option<(i64, u64)> {
        let stat = rustix::fs::stat(self.index_file()).ok()?;
        Some(FileStamp::of(&stat).modified)
    }

    /// Compares the content of files that go through filters, all at once.
    fn look_at_filtered(
        &self,
        root: &Beneath,
        files: &[(IndexEntry, Stat)],
        scan: &mut Scan,
    ) -> Result<(), TreeError> {
        let names: Vec<&[u8]> = files.iter().map(|(entry, _)| &entry.path[..]).collect();
        self.clean(&names)?;
        for (entry, stat) in files {
            match self.same(root, entry, stat) {
                Some(same) => scan.same.push(same),
                None => {
                    scan.paths.insert(entry.path.clone());
                }
            }
        }
        Ok(())
    }

    /// Returns the index entry of a file with other times than known, where its
    /// content is the same.
    fn same(&self, root: &Beneath, entry: &IndexEntry, stat: &Stat) -> Option<IndexEntry> {
        let mode = i32::try_from(entry.mode).ok()?;
        match self.leaf(root, &entry.path, Some((mode, entry.id))).ok()? {
            Found::File(leaf, found)
                if leaf.1 == entry.id && canonical(leaf.0 as u32) == canonical(entry.mode) =>
            {
                debug_assert!(self.looks_only || stat.st_ino == found.st_ino);
                Some(index_entry(&entry.path, leaf, &found))
            }
            _ => None,
        }
    }

    /// Stores a file's content; `None` where no file is there.
    /// `before` is what the commit has there.
    pub(super) fn stored(
        &self,
        root: &Beneath,
        name: &[u8],
        before: Option<Oid>,
    ) -> io::Result<Option<Oid>> {
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        let Some(mut file) = root.open_file(path(name))? else {
            return Ok(None);
        };
        let size = file.metadata()?.len();
        if is_modules(name) {
            let text = root.read(path(name), TEXT_MAX)?.unwrap_or_default();
            if !is_fit_modules(&text) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        if size > FILE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.looks_only {
            let content = self.looked_at(file, name, before)?;
            return Oid::hash_object(ObjectType::Blob, &content)
                .map(Some)
                .map_err(other);
        }
        let odb = self.repository.odb().map_err(other)?;
        let line_ends = self.line_ends(name);
        if size <= TEXT_MAX && line_ends != LineEnds::Kept {
            let mut text = Vec::new();
            Read::by_ref(&mut file)
                .take(TEXT_MAX)
                .read_to_end(&mut text)?;
            let text = line_ends.stored(text, || self.has_others(before));
            return odb.write(ObjectType::Blob, &text).map(Some).map_err(other);
        }
        let length = usize::try_from(size).map_err(io::Error::other)?;
        let mut writer = odb.writer(length, ObjectType::Blob).map_err(other)?;
        if io::copy(&mut file.take(size), &mut writer)? != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        writer.finalize().map(Some).map_err(other)
    }

    /// Reads a file as it would be stored, where nothing is to be stored.
    pub(super) fn looked_at(
        &self,
        file: File,
        name: &[u8],
        before: Option<Oid>,
    ) -> io::Result<Vec<u8>> {
        if file.metadata()?.len() > TEXT_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut content = Vec::new();
        file.take(TEXT_MAX).read_to_end(&mut content)?;
        let line_ends = self.line_ends(name);
        Ok(line_ends.stored(content, || self.has_others(before)))
    }

    fn has_others(&self, before: Option<Oid>) -> bool {
        before.is_some_and(|id| self.has_other_line_ends(id))
    }

    /// Reads the operator's ignore rules.
    fn outer_rules(&self) -> Result<Exclusion, TreeError> {
        let rules = Exclusion::new(&self.outer_ignore_files());
        rules.map_err(|error| self.error("read ignore rules", error.to_string()))
    }

    /// Returns the operator's files of ignore rules, the nearest first.
    pub(super) fn outer_ignore_files(&self) -> Vec<PathBuf> {
        let global = self.settings().excludes_file.clone();
        let mut files = vec![self.common_folder().join("info/exclude")];
        files.extend(global.or_else(|| Some(settings_folder()?.join("git/ignore"))));
        files
    }

    /// Returns whether a path is the harness's own; a checkout has none of these.
    pub(super) fn is_skipped(&self, name: &[u8]) -> bool {
        !self.is_checkout && is_ours(path(name))
    }

    /// Returns the [`own_worktrees`](Self::own_worktrees) that had a `.git` when the
    /// folder of their records last changed, or before: a step may delete it. A record
    /// without a worktree keeps nothing from a step.
    pub(super) fn recorded_worktrees(&self) -> Rc<HashSet<Vec<u8>>> {
        let stamp = FileStamp::at(&self.common_folder().join("worktrees"));
        let stamp = stamp.filter(FileStamp::is_settled);
        let mut recorded = self.recorded.borrow_mut();
        if recorded.stamp.is_none() || recorded.stamp != stamp {
            let mut found = self.own_worktrees();
            found.retain(|at| {
                let link = self.files.join(path(at)).join(".git");
                recorded.found.contains(at) || std::fs::symlink_metadata(link).is_ok()
            });
            *recorded = RecordedWorktrees {
                stamp,
                found: Rc::new(found),
            };
        }
        recorded.found.clone()
    }

    /// Returns the worktrees of this repository that lie among these files, by
    /// their paths from here.
    fn own_worktrees(&self) -> HashSet<Vec<u8>> {
        let mut places = self.places.borrow_mut();
        let mut place = |path: PathBuf| {
            let known = places.get(&path).cloned();
            known.or_else(|| {
                let place = std::fs::canonicalize(&path).ok()?;
                places.insert(path, place.clone());
                Some(place)
            })
        };
        let here = place(self.worktree.clone()).unwrap_or_default();
        let below = self.other_places().into_iter().filter_map(|path| {
            let other = place(path.clone()).unwrap_or(path);
            let below = other.strip_prefix(&here).ok()?;
            let below = below.as_os_str().as_encoded_bytes();
            (!below.is_empty()).then(|| below.to_vec())
        });
        below.collect()
    }
}

/// The worktrees of a repository among the files of a lane.
#[derive(Default)]
pub(super) struct RecordedWorktrees {
    /// The stamp of the folder of their records, where a later change would show.
    stamp: Option<FileStamp>,
    /// Their paths from the lane.
    found: Rc<HashSet<Vec<u8>>>,
}

/// A walk over the files that the index does not know.
struct Walk<'a> {
    root: &'a Beneath,
    tracked: &'a Tracked,
    /// Ignore files of the index with other content.
    changed_rules: HashSet<Vec<u8>>,
    tree: &'a Tree,
    /// The repository's own worktrees here, as its records last said.
    recorded: Rc<HashSet<Vec<u8>>>,
    /// The same as they say now, once one may be met.
    own: OnceCell<HashSet<Vec<u8>>>,
    exclusion: Exclusion,
    /// Whether the folder is ignored that was asked about last.
    is_hidden: (Vec<u8>, bool),
    /// Whether the harness has files of its own among these.
    has_ours: bool,
    descent: Descent,
    scan: &'a mut Scan,
    left: usize,
}

impl Walk<'_> {
    /// Looks at one folder and those below; at most [`DEPTH_MAX`] deep. Returns
    /// whether it holds anything but empty folders.
    fn folder(&mut self, folder: Vec<u8>, depth: usize) -> bool {
        let listing = self.descent.list(&folder, self.left);
        let names = match listing {
            Ok(Some(listing)) if depth < DEPTH_MAX => listing.names,
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) if !folder.is_empty() && self.is_own(&folder) => return true,
            Ok(Some(_)) | Err(_) => {
                self.scan.unfit.insert(folder);
                return true;
            }
        };
        self.left = self.left.saturating_sub(names.len());
        if !folder.is_empty()
            && names.iter().any(|(name, _)| name == b".git")
            && self.is_own(&folder)
        {
            return true;
        }
        if is_like_repository(&names) && !self.has_repository(&folder) {
            self.scan.unfit.insert(joined(&folder, b"HEAD"));
        }
        let before = self.exclusion.mark();
        let rules = joined(&folder, RULES);
        let has = match names.iter().any(|(name, _)| name == RULES) {
            false => FolderRules::None,
            true if self.is_as_known(&rules) => FolderRules::Known,
            true => FolderRules::Changed,
        };
        if self.exclusion.enter(self.root, &folder, has).is_err() {
            self.scan.unfit.insert(rules);
        }
        let mut holds_any = false;
        for (name, kind) in names {
            let at = joined(&folder, &name);
            let is_skipped = self.has_ours && is_ours(path(&at));
            if is_skipped || (folder.is_empty() && name == b".git") {
                holds_any = true;
                continue;
            }
            holds_any |= self.entry(at, &name, kind, depth);
        }
        self.exclusion.leave(before);
        if !folder.is_empty() && (!holds_any || self.descent.is_shut(&folder)) {
            self.scan.leftover.insert(folder);
        }
        holds_any
    }

    /// Looks at what is in a folder; returns whether it is more than empty
    /// folders.
    fn entry(&mut self, at: Vec<u8>, name: &[u8], kind: FileType, depth: usize) -> bool {
        if name == b".git" {
            // A repository made in a folder that holds files of the commit.
            self.scan.nested.insert(at);
        } else if kind != FileType::Directory {
            self.file(at, kind);
        } else if self.tracked.submodules.contains(&at) && !self.is_own(&at) {
            let listing = self.descent.list(&at, self.left);
            if !matches!(listing, Ok(Some(listing)) if listing.names.is_empty()) {
                self.scan.submodules.insert(at);
            }
        } else if self.recorded.contains(&at) {
            // Whatever a step did to its `.git`.
        } else if self.tracked.has_folder(&at) {
            self.folder(at, depth + 1);
            return true;
        } else if self.is_own(&at) {
            // No step's commit holds it.
        } else if self.excludes(&at, true) {
            self.scan.ignored.insert(at);
        } else if self.is_repository(&at) {
            self.scan.nested.insert(at);
        } else {
            return self.folder(at, depth + 1);
        }
        true
    }

    /// A pipe or a device is never skipped: git would open it.
    fn file(&mut self, at: Vec<u8>, kind: FileType) {
        let is_plain = matches!(kind, FileType::RegularFile | FileType::Symlink);
        if is_plain && self.tracked.has_file(&at) {
            return;
        }
        if is_plain && self.excludes(&at, false) {
            self.scan.ignored.insert(at);
        } else {
            self.scan.paths.insert(at);
        }
    }

    /// Returns whether a path is ignored that the index does not have. A folder that it
    /// has may be ignored for all that.
    fn excludes(&mut self, at: &[u8], is_folder: bool) -> bool {
        if self.exclusion.excludes(at, is_folder) {
            return true;
        }
        let Some(end) = at.iter().rposition(|byte| *byte == b'/') else {
            return false;
        };
        let above = &at[..end];
        if self.is_hidden.0 != above {
            let is_hidden = self.exclusion.excludes_folder(above);
            self.is_hidden = (above.to_vec(), is_hidden);
        }
        self.is_hidden.1
    }

    /// Returns whether a file of rules is that of the index, with its content.
    fn is_as_known(&self, at: &[u8]) -> bool {
        self.tracked.has_file(at) && !self.changed_rules.contains(at)
    }

    /// Returns whether the commit itself has a repository in this folder.
    fn has_repository(&self, folder: &[u8]) -> bool {
        let has_folder = |name: &[u8]| self.tracked.has_folder(&joined(folder, name));
        self.tracked.has_file(&joined(folder, b"HEAD"))
            && has_folder(b"objects")
            && has_folder(b"refs")
    }

    /// Returns whether a folder is a worktree of this repository.
    fn is_own(&self, folder: &[u8]) -> bool {
        let own = self.own.get_or_init(|| self.tree.own_worktrees());
        own.contains(folder)
    }

    fn is_repository(&self, folder: &[u8]) -> bool {
        let git = path(folder).join(".git");
        self.root.look(&git).is_ok_and(|found| found.is_some())
    }
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut at = folder.to_vec();
    if !at.is_empty() {
        at.push(b'/');
    }
    at.extend_from_slice(name);
    at
}

/// Returns whether git would take a folder for a repository, whose settings it
/// would obey (gitrepository-layout(5)).
fn is_like_repository(names: &[(Vec<u8>, FileType)]) -> bool {
    let has = |wanted: &[u8]| names.iter().any(|(name, _)| name == wanted);
    has(b"HEAD") && ((has(b"objects") && has(b"refs")) || has(b"commondir"))
}

/// Returns whether a sparse checkout leaves a file out.
pub(super) fn is_left_out(entry: &IndexEntry) -> bool {
    entry.flags_extended & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0
}

/// Returns whether a file's times, number, size and kind are those that an
/// index knows, and were so for certain when the index was written.
pub(super) fn is_as_known(entry: &IndexEntry, stat: &Stat, written: Option<(i64, u64)>) -> bool {
    let is_link = is_kind(entry.mode, LINK);
    let expected = if is_link {
        FileType::Symlink
    } else {
        FileType::RegularFile
    };
    if kind(stat) != expected {
        return false;
    }
    let now = index_entry(b"", (0, entry.id), stat);
    let time = |time: git2::IndexTime| (time.seconds(), time.nanoseconds());
    let is_executable = stat.st_mode & 0o100 != 0;
    let is_settled = written.is_some_and(|written| FileStamp::of(stat).modified < written);
    is_settled
        && time(entry.mtime) == time(now.mtime)
        && time(entry.ctime) == time(now.ctime)
        && (entry.ino, entry.file_size) == (now.ino, now.file_size)
        && (is_link || is_executable == (entry.mode & 0o100 != 0))
}
