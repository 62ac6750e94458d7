//! What the operator's git settings say about files.

use super::Tree;
use git2::{Config, Repository, Signature};
use std::path::PathBuf;
use std::rc::Rc;

/// The settings that a look at files or a write of files needs. libgit2 asks for the
/// times of all files of settings whenever it is asked for one setting.
#[derive(Debug)]
pub(super) struct GitSettings {
    /// `core.fileMode`: whether the files have their rights.
    pub(super) file_mode: bool,
    /// `core.symlinks`: whether links are written as links.
    pub(super) symlinks: bool,
    /// `core.sparseCheckout`: whether some files are left out.
    pub(super) sparse_checkout: bool,
    /// `core.autocrlf`.
    pub(super) line_ends: AutoCrlf,
    /// Whether `core.eol` is `crlf`.
    pub(super) is_eol_crlf: bool,
    /// `core.excludesFile`.
    pub(super) excludes_file: Option<PathBuf>,
    /// `core.attributesFile`.
    pub(super) attributes_file: Option<PathBuf>,
    /// `user.name` and `user.email`.
    person: Option<(String, String)>,
}

/// What `core.autocrlf` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AutoCrlf {
    /// Line ends stay as they are.
    Off,
    /// They are converted when a file is stored.
    Input,
    /// They are converted both ways.
    On,
}

impl GitSettings {
    fn of(repository: &Repository) -> Self {
        let config = repository.config().and_then(|mut live| live.snapshot());
        let config = config.ok();
        let is_set = |name: &str, default: bool| {
            let found = config.as_ref().map(|config| config.get_bool(name));
            found.and_then(Result::ok).unwrap_or(default)
        };
        let path = |name: &str| config.as_ref()?.get_path(name).ok();
        let is_word = |name: &str, word: &str| {
            let has = |config: &Config| {
                let found = config.get_str(name).ok();
                found.is_some_and(|found| found.eq_ignore_ascii_case(word))
            };
            config.as_ref().is_some_and(has)
        };
        Self {
            file_mode: is_set("core.fileMode", true),
            symlinks: is_set("core.symlinks", true),
            sparse_checkout: is_set("core.sparseCheckout", false),
            line_ends: match is_set("core.autocrlf", false) {
                true => AutoCrlf::On,
                false if is_word("core.autocrlf", "input") => AutoCrlf::Input,
                false => AutoCrlf::Off,
            },
            is_eol_crlf: is_word("core.eol", "crlf"),
            excludes_file: path("core.excludesFile"),
            attributes_file: path("core.attributesFile"),
            person: config.as_ref().and_then(|config| {
                let text = |name| config.get_string(name).ok();
                Some((text("user.name")?, text("user.email")?))
            }),
        }
    }
}

impl Tree {
    /// Returns the settings as they were when they were needed first since the last
    /// command, or since the lane was last put elsewhere.
    pub(super) fn settings(&self) -> Rc<GitSettings> {
        let mut settings = self.settings.borrow_mut();
        let read = || Rc::new(GitSettings::of(&self.repository));
        settings.get_or_insert_with(read).clone()
    }

    /// Returns who moves references: the person of git's configuration, where there
    /// is one.
    pub(super) fn person(&self) -> Result<Signature<'static>, git2::Error> {
        let settings = self.settings();
        let person = settings.person.as_ref();
        let person = person.and_then(|(name, email)| Signature::now(name, email).ok());
        person.map_or_else(crate::harness_signature, Ok)
    }
}
