//! The git folder that a step works with: private, disposable, and with
//! nothing of the operator's in it that a step could change.
//!
//! It holds one branch at the step's base, the tags, and settings by an
//! allow-list. The operator's objects are a read-only alternate. What a step
//! writes into it is never used by the harness: a step's result is its files.

use super::made_folder::{MadeFolder, Source, Sources};
use super::sparse::PATTERNS;
use super::{Base, FilterDefinitions, Tree, TreeError};
use crate::removal::remove_entry;
use git2::Config;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// Where the operator's stores of objects are mounted in a view of files of
/// its own, each below a number.
pub const OBJECTS: &str = "/premath/objects";

/// Where Git LFS looks for objects by [`OBJECTS`].
pub const LFS_OBJECTS: &str = "/premath/objects/lfs/objects";

/// How long a chain of alternates may be.
const ALTERNATES_MAX: usize = 16;

/// The settings that a step gets, where the operator has them. None of them
/// names a program, a file or a credential.
const SETTINGS: [&str; 21] = [
    "core.abbrev",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.whitespace",
    "diff.algorithm",
    "diff.renames",
    "init.defaultbranch",
    "merge.conflictstyle",
    "merge.renames",
    "pull.ff",
    "pull.rebase",
    "user.email",
    "user.name",
];

/// A private git folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateGit {
    /// The path of the private git folder.
    pub folder: PathBuf,
    /// The operator's stores of objects that it borrows from, read-only.
    pub objects: Vec<PathBuf>,
    /// The operator's objects of Git LFS, read-only, where files have them.
    pub lfs: Option<PathBuf>,
    /// What the harness put into the folder.
    made: MadeFolder,
}

/// What a private git folder is to hold.
struct PrivateContent {
    files: Sources,
    objects: Vec<PathBuf>,
    lfs: Option<PathBuf>,
}

/// The folders of a repository without any content.
const FOLDERS: [&str; 5] = [
    "info",
    "objects/info",
    "objects/pack",
    "refs/heads",
    "refs/tags",
];

impl Tree {
    /// Makes a private git folder for a step, in the place of what an earlier
    /// step left there. `mounted` says that the stores of objects are seen at
    /// [`OBJECTS`] and not where they are.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn private_git(
        &self,
        folder: &Path,
        base: &Base,
        mounted: bool,
    ) -> Result<PrivateGit, TreeError> {
        let made = self.fill_private(folder, base, mounted);
        made.map_err(self.refused("make the step's git folder", folder))
    }

    /// Makes a private git folder of an earlier step fit for another one, where
    /// nothing but what the harness put there is in it; `None` where something
    /// is: it is then to be made in its place.
    ///
    /// The caller vouches that no command of the earlier step runs.
    pub fn private_git_again(
        &self,
        mut git: PrivateGit,
        base: &Base,
        mounted: bool,
    ) -> Option<PrivateGit> {
        let mut content = self.private_content(base, mounted).ok()?;
        // What cannot be opened or read was changed.
        let is_fit = git.made.refill(&mut content.files).unwrap_or(false);
        git.objects = content.objects;
        git.lfs = content.lfs;
        is_fit.then_some(git)
    }

    fn fill_private(
        &self,
        folder: &Path,
        base: &Base,
        mounted: bool,
    ) -> std::io::Result<PrivateGit> {
        set_up(folder)?;
        let mut content = self.private_content(base, mounted)?;
        Ok(PrivateGit {
            folder: folder.to_path_buf(),
            objects: content.objects,
            lfs: content.lfs,
            made: MadeFolder::fill(folder, &FOLDERS, &mut content.files)?,
        })
    }

    /// Returns what a private git folder is to hold.
    fn private_content(&self, base: &Base, mounted: bool) -> std::io::Result<PrivateContent> {
        let objects = alternates(&self.common_folder().join("objects"))?;
        let seen: String = objects
            .iter()
            .enumerate()
            .map(|(number, store)| match mounted {
                true => format!("{OBJECTS}/{number}\n"),
                false => format!("{}\n", store.display()),
            })
            .collect();
        let mut files = Sources::new();
        let mut put = |path: &str, source: Source| files.insert(PathBuf::from(path), source);
        put("objects/info/alternates", seen.into());
        let filters = self.filter_definitions();
        let mut settings = self.private_settings()?;
        if let Some(filters) = filters {
            settings.push_str(filters.settings());
            put("info/attributes", filters.local().into());
        }
        put("config", settings.into());
        // Packed, so that the next step, on another branch, has the same files.
        put("packed-refs", self.references(base).into());
        let head = match &base.branch {
            Some(branch) => format!("ref: {branch}\n"),
            None => format!("{}\n", base.commit),
        };
        put("HEAD", head.into());
        let (common, own) = (self.common_folder(), self.git_folder());
        for (from, to) in [
            (own.join("index"), "index"),
            (common.join("shallow"), "shallow"),
            (common.join("info/exclude"), "info/exclude"),
            (own.join(PATTERNS), PATTERNS),
        ] {
            if let Some(source) = Source::of_file(&from)? {
                put(to, source);
            }
        }
        Ok(PrivateContent {
            files,
            objects,
            lfs: filters.and_then(FilterDefinitions::lfs_objects),
        })
    }

    /// Writes the settings of a private git folder.
    fn private_settings(&self) -> std::io::Result<String> {
        let other = |error: git2::Error| std::io::Error::other(error.message().to_owned());
        let config = self.repository.config().map_err(other)?;
        settings(config).map_err(other)
    }

    /// Returns the base's branch and the tags as git packs them.
    fn references(&self, base: &Base) -> String {
        let mut lines: Vec<String> = Vec::new();
        if let Some(branch) = &base.branch {
            lines.push(format!("{} {branch}\n", base.commit));
        }
        if let Ok(tags) = self.repository.references_glob("refs/tags/*") {
            for tag in tags.flatten() {
                if let (Ok(name), Some(id)) = (tag.name(), tag.target()) {
                    lines.push(format!("{id} {name}\n"));
                }
            }
        }
        lines.sort_by(|one, other| one.get(41..).cmp(&other.get(41..)));
        lines.concat()
    }
}

/// Makes the folders of a repository without any content, in the place of what
/// was there.
pub(crate) fn set_up(folder: &Path) -> std::io::Result<()> {
    if let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) {
        fs::create_dir_all(above)?;
        remove_entry(fs::File::open(above)?.as_fd(), name)?;
    }
    for part in FOLDERS {
        fs::create_dir_all(folder.join(part))?;
    }
    Ok(())
}

/// Writes the settings that a repository of ours takes over from the
/// operator's.
pub(crate) fn settings(mut config: Config) -> Result<String, git2::Error> {
    let config = config.snapshot()?;
    let mut text = String::from(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogallrefupdates = true\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
    );
    for name in SETTINGS {
        if let Ok(value) = config.get_string(name)
            && let Some((section, key)) = name.split_once('.')
        {
            let _ = writeln!(text, "[{section}]\n\t{key} = {}", quoted(&value));
        }
    }
    Ok(text)
}

/// Returns the folder in which git looks for the user's files.
pub(crate) fn settings_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
    named.map(PathBuf::from).or_else(home)
}

/// Returns a store of objects and those that it borrows from itself.
pub(crate) fn alternates(store: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = vec![fs::canonicalize(store)?];
    let mut next = 0;
    while let Some(store) = found.get(next).cloned() {
        next += 1;
        let text = fs::read_to_string(store.join("info/alternates")).unwrap_or_default();
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let Ok(other) = fs::canonicalize(store.join(line)) else {
                continue;
            };
            if !found.contains(&other) && found.len() < ALTERNATES_MAX {
                found.push(other);
            }
        }
    }
    Ok(found)
}

/// Writes a value as git's configuration has it.
pub(crate) fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars().filter(|c| *c != '\0' && *c != '\r') {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
