//! Files whose content git changes on the way between a commit and a checkout: by
//! commands that the operator configured (Git LFS, git-crypt), to another encoding
//! (`working-tree-encoding`), or by the name of an object (`ident`). libgit2 does not
//! know such an encoding, and never takes the name of an object out again.
//!
//! Nothing is run here: git runs the commands, confined, by the
//! [`FilterRunner`]. It works in a folder that is made for one run, with a git
//! folder that only the harness wrote: it sees neither a step's files nor its
//! git folder. What comes out is read by descriptor, and is content, never a
//! path or a setting.

mod clean;
mod definition;
mod fill;
mod lfs;
mod place;
mod smudge;

pub use definition::{FilterDefinitions, FilterError};

use super::private::set_up;
use crate::index_entry::unknown_entry;
use crate::mode::FILE;
use git2::{AttrValue, Index, Repository};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is run over files.
#[derive(Debug)]
pub struct FilterRun<'a> {
    /// The command line, of the harness.
    pub script: &'a str,
    /// The folder that it may write, which is made for it.
    pub folder: &'a Path,
    /// The folder in it where it runs: a checkout.
    pub files: &'a Path,
    /// The checkout's git folder.
    pub git: &'a Path,
    /// What it may read beside that.
    pub readable: &'a [PathBuf],
}

/// How it ended.
#[derive(Debug)]
pub struct FilterEnd {
    /// Whether it exited with 0.
    pub passed: bool,
    /// Whether it was ended: it took too long, or used too much.
    pub was_ended: bool,
    /// The end of what it wrote to stderr.
    pub said: String,
}

/// Runs git over files, confined.
pub trait FilterRunner: std::fmt::Debug + Send + Sync {
    /// Runs it to its end; nothing of it is left then.
    ///
    /// # Errors
    ///
    /// Why it could not be run.
    fn run(&self, run: &FilterRun<'_>) -> Result<FilterEnd, String>;
}

/// The filters of a lane.
#[derive(Debug)]
pub struct Filters {
    definitions: Arc<FilterDefinitions>,
    runner: Box<dyn FilterRunner>,
    /// The folder of one run.
    folder: PathBuf,
    /// A repository that has the attributes alone, to ask for them.
    attributes: Mutex<Attributes>,
    /// What git said last while it passed.
    warned: Mutex<String>,
}

struct Attributes(Repository);

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attributes")
    }
}

impl Filters {
    /// Makes ready to run filters. `folder` is the lane's alone, and no command
    /// of a step sees it.
    ///
    /// # Errors
    ///
    /// What the system or git says.
    pub fn new(
        definitions: Arc<FilterDefinitions>,
        folder: &Path,
        runner: Box<dyn FilterRunner>,
    ) -> io::Result<Self> {
        let other = |error: git2::Error| io::Error::other(error.message().to_owned());
        let git = folder.join("attributes.git");
        definitions.set_up(&git)?;
        fs::write(git.join("HEAD"), "ref: refs/heads/none\n")?;
        let mut index = Index::open(&git.join("index")).map_err(other)?;
        for (name, id) in &definitions.files {
            let entry = unknown_entry(name, (FILE as i32, *id));
            index.add(&entry).map_err(other)?;
        }
        index.write().map_err(other)?;
        let attributes = Repository::open_bare(&git).map_err(other)?;
        Ok(Self {
            definitions,
            runner,
            folder: folder.join("run"),
            attributes: Mutex::new(Attributes(attributes)),
            warned: Mutex::default(),
        })
    }

    /// Warns of what git says although it passes: the filter of a file failed, and is not
    /// required. Its content is taken as it is then. The same is printed once.
    fn warn(&self, said: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.is_empty() && *warned != said {
            said.clone_into(&mut warned);
            let said = said.replace('\n', "; ");
            tracing::warn!(said, "a git filter that is not required may have failed");
        }
    }

    /// Returns the filter of a file.
    pub(in crate::tree) fn of(&self, name: &[u8]) -> Option<String> {
        if definition::is_of_git(name) {
            return None;
        }
        let attributes = self.attributes.lock();
        let attributes = attributes.unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(filter)) = value_of(&attributes.0, name, "filter")
            && self.definitions.active.contains(&filter)
        {
            return Some(filter);
        }
        self.definitions
            .converts
            .then(|| conversion_of(&attributes.0, name))
            .flatten()
    }
}

/// Returns the value that the index's attributes give a file: the inner one is absent
/// where the attribute is set without a value.
fn value_of(git: &Repository, name: &[u8], attribute: &str) -> Option<Option<String>> {
    let flags = git2::AttrCheckFlags::INDEX_ONLY;
    let found = git.get_attr_bytes(super::beneath::path(name), attribute, flags);
    match AttrValue::from_bytes(found.ok()?) {
        AttrValue::True => Some(None),
        AttrValue::String(value) => Some(Some(value.to_owned())),
        AttrValue::False | AttrValue::Bytes(_) | AttrValue::Unspecified => None,
    }
}

/// Returns the attribute by which git itself changes a file.
fn conversion_of(git: &Repository, name: &[u8]) -> Option<String> {
    let is_set = |attribute: &&str| match *attribute {
        "ident" => value_of(git, name, "ident") == Some(None),
        other => value_of(git, name, other).is_some_and(|value| value.is_some()),
    };
    let found = ["working-tree-encoding", "ident"].into_iter().find(is_set);
    found.map(str::to_owned)
}

impl FilterDefinitions {
    /// Makes a git folder with the filters' settings and the attributes that no
    /// commit has, in the place of what is there.
    fn set_up(&self, git: &Path) -> io::Result<()> {
        set_up(git)?;
        let mut stores = Vec::new();
        for store in &self.objects {
            stores.extend_from_slice(store.as_os_str().as_encoded_bytes());
            stores.push(b'\n');
        }
        fs::write(git.join("objects/info/alternates"), stores)?;
        fs::write(git.join("info/attributes"), &self.local)?;
        let global = git.join("global-attributes");
        fs::write(&global, &self.global)?;
        let at = super::private::quoted(&global.to_string_lossy());
        let own = format!("[core]\n\tattributesFile = {at}\n");
        fs::write(
            git.join("config"),
            [&*self.common, &self.settings, &own].concat(),
        )
    }
}

impl super::Tree {
    /// Has files go through the operator's filters, from now on.
    pub fn use_filters(&mut self, filters: Arc<Filters>) {
        self.filters = Some(filters);
    }

    /// Returns whether a file goes through a filter.
    pub(super) fn is_filtered(&self, name: &[u8]) -> bool {
        if self.looks_only {
            return self.has_filter(name);
        }
        let filters = self.filters.as_ref();
        filters.is_some_and(|filters| filters.of(name).is_some())
    }

    /// Returns whether the operator's checkout has a filter for a file, whatever
    /// it is.
    fn has_filter(&self, name: &[u8]) -> bool {
        value_of(&self.history, name, "filter").is_some()
            || conversion_of(&self.history, name).is_some()
    }

    /// Returns the definitions of the filters in use.
    pub(super) fn filter_definitions(&self) -> Option<&FilterDefinitions> {
        Some(&self.filters.as_ref()?.definitions)
    }
}
