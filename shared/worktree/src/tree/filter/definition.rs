//! Which filters the operator configured, and which files they are for, as of
//! the operator's checkout when a batch begins.

use super::super::beneath::path;
use super::super::entry_name::is_modules;
use super::super::index_file;
use super::super::private::{alternates, quoted, settings, settings_folder};
use git2::{Config, FileMode, ObjectType, Oid, Repository};
use premath_kernel::json::canonical::sha256_hex;
use premath_platform::file::read_regular;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The file of attributes in a folder.
const ATTRIBUTES: &[u8] = b".gitattributes";
/// The settings of Git LFS that decide which objects it writes, and how. None of
/// them names a server or a credential.
const LFS_SETTINGS: [&str; 3] = [
    "lfs.fetchexclude",
    "lfs.fetchinclude",
    "lfs.skipdownloaderrors",
];
/// The settings of Git LFS that a project may track.
const LFS_CONFIG: &[u8] = b".lfsconfig";
/// How a line begins that defines a macro.
const MACRO: &str = "[attr]";
/// The attributes that decide how git changes a file (gitattributes(5)).
const CONVERTING: [&str; 7] = [
    "binary",
    "crlf",
    "eol",
    "filter",
    "ident",
    "text",
    "working-tree-encoding",
];
/// Where git-crypt keeps its keys in a git folder.
const CRYPT: &str = "git-crypt";

/// The filters of a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// An attribute names a filter that git has no setting for.
    #[error("an attribute names the git filter `{0}`, which is not configured on this machine")]
    Unconfigured(String),
    /// A pattern that only git itself can read decides how files are changed.
    #[error(
        "{file}:{line}: a pattern in quotes that sets `{attribute}` is not supported: write it \
         without quotes, and each space in it as `[[:space:]]`"
    )]
    Quoted {
        /// The file of attributes.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The attribute.
        attribute: String,
    },
    /// The repository cannot be read.
    #[error("cannot read the git filters of {repository}: {detail}")]
    Unread {
        /// The repository.
        repository: PathBuf,
        /// The cause.
        detail: String,
    },
}

/// The filters of a repository and the files that they are for.
#[derive(Debug)]
pub struct FilterDefinitions {
    /// Those that have a command.
    pub(super) active: BTreeSet<String>,
    /// Whether git itself changes files: their encoding, or names of objects in them.
    pub(super) converts: bool,
    /// Their settings, as a configuration of git has them.
    pub(super) settings: String,
    /// The settings that a repository of ours has in any case.
    pub(super) common: String,
    /// The files of attributes, and what Git LFS reads beside them.
    pub(super) files: BTreeMap<Vec<u8>, Oid>,
    /// The attributes of the repository that no commit has.
    pub(super) local: Vec<u8>,
    /// The attributes of the user.
    pub(super) global: Vec<u8>,
    /// The stores of git objects.
    pub(super) objects: Vec<PathBuf>,
    /// The folder of Git LFS.
    pub(super) lfs: PathBuf,
    /// The folder with the keys of git-crypt.
    pub(super) keys: Option<PathBuf>,
    /// Changes with everything that decides on the content of files.
    pub(super) digest: String,
}

impl FilterDefinitions {
    /// Finds the filters that attributes of a repository's main checkout name;
    /// `None` where there are none.
    ///
    /// # Errors
    ///
    /// [`FilterError`].
    pub fn find(repository: &Path) -> Result<Option<Self>, FilterError> {
        let unread = |detail: String| FilterError::Unread {
            repository: repository.to_path_buf(),
            detail,
        };
        let of_git = |error: git2::Error| unread(error.message().to_owned());
        let main = Repository::open(repository).map_err(of_git)?;
        let main = Repository::open(main.commondir()).map_err(of_git)?;
        let files = attribute_files(&main).map_err(of_git)?;
        let local_file = main.commondir().join("info/attributes");
        let local = read_small(&local_file).map_err(|error| unread(error.to_string()))?;
        let mut config = main.config().map_err(of_git)?;
        let config = config.snapshot().map_err(of_git)?;
        let global_file = global_attributes(&config);
        let global = read_small(&global_file).map_err(|error| unread(error.to_string()))?;
        let mut texts = attribute_texts(&main, &files).map_err(of_git)?;
        texts.push((local_file.display().to_string(), local.clone()));
        let mut named: BTreeSet<String> = texts.iter().flat_map(|(_, of)| filters(of)).collect();
        texts.push((global_file.display().to_string(), global.clone()));
        let line_ends = config.get_string("core.autocrlf").unwrap_or_default();
        must_have_no_quotes(&texts, !matches!(&*line_ends, "" | "false"))?;
        let converts = texts.iter().any(|(_, text)| has_conversion(text));
        let configured = configured(&config).map_err(of_git)?;
        if let Some(filter) = named.iter().find(|name| !configured.contains_key(*name)) {
            return Err(FilterError::Unconfigured(filter.clone()));
        }
        named.extend(filters(&global));
        let has_command = |name: &String| {
            let keys = configured.get(name)?;
            let is_command = |key: &str| matches!(key, "clean" | "process" | "smudge");
            keys.keys().any(|key| is_command(key)).then_some(())
        };
        named.retain(|name| has_command(name).is_some());
        if named.is_empty() && !converts {
            return Ok(None);
        }
        let settings_of_filters = written(&named, &configured, &config);
        let common = settings(main.config().map_err(of_git)?).map_err(of_git)?;
        let objects = alternates(&main.commondir().join("objects"));
        let text = format!("{settings_of_filters}{common}{files:?}{local:?}{global:?}");
        let keys = main.commondir().join(CRYPT);
        Ok(Some(Self {
            active: named,
            converts,
            settings: settings_of_filters,
            common,
            files,
            local,
            global,
            objects: objects.map_err(|error| unread(error.to_string()))?,
            lfs: lfs_folder(&main, &config),
            keys: keys.is_dir().then_some(keys),
            digest: sha256_hex(text.as_bytes()),
        }))
    }

    /// Returns the files of attributes that count for a path.
    pub(super) fn files_for(&self, name: &[u8]) -> Vec<(&[u8], Oid)> {
        let mut found = Vec::new();
        let mut folder = Some(&name[..0]);
        while let Some(at) = folder {
            for file in [ATTRIBUTES, LFS_CONFIG] {
                let file = [at, file].concat();
                if let Some((file, id)) = self.files.get_key_value(&file) {
                    found.push((file.as_slice(), *id));
                }
            }
            let rest = &name[at.len()..];
            let next = rest.iter().position(|byte| *byte == b'/');
            folder = next.map(|slash| &name[..at.len() + slash + 1]);
        }
        found
    }

    /// Returns the settings of the filters.
    pub(in crate::tree) fn settings(&self) -> &str {
        &self.settings
    }

    /// Returns the attributes that no commit has.
    pub(in crate::tree) fn local(&self) -> &[u8] {
        &self.local
    }

    /// Returns the folder of Git LFS's objects, where there is one.
    pub(in crate::tree) fn lfs_objects(&self) -> Option<PathBuf> {
        let objects = self.lfs.join("objects");
        (self.active.contains(super::lfs::FILTER) && objects.is_dir()).then_some(objects)
    }
}

/// Returns the files of attributes that a checkout has; HEAD's where there is no
/// checkout.
fn attribute_files(main: &Repository) -> Result<BTreeMap<Vec<u8>, Oid>, git2::Error> {
    let is_wanted = |name: &[u8]| {
        let file = name.rsplit(|byte| *byte == b'/').next();
        file == Some(ATTRIBUTES) || name == LFS_CONFIG
    };
    let file = u32::from(FileMode::Blob);
    let executable = u32::from(FileMode::BlobExecutable);
    let mut files = BTreeMap::new();
    if !main.is_bare() {
        let entries = index_file::open_of(main)?;
        let entries = entries.iter().filter(|entry| {
            is_wanted(&entry.path) && (entry.mode == file || entry.mode == executable)
        });
        files.extend(entries.map(|entry| (entry.path, entry.id)));
        return Ok(files);
    }
    let head = main.head()?.peel_to_tree()?;
    head.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
        let name = [folder.as_bytes(), entry.name_bytes()].concat();
        if is_wanted(&name) && entry.kind() == Some(ObjectType::Blob) {
            files.insert(name, entry.id());
        }
        git2::TreeWalkResult::Ok
    })?;
    Ok(files)
}

/// Returns the texts of files of attributes, by their names.
fn attribute_texts(
    main: &Repository,
    files: &BTreeMap<Vec<u8>, Oid>,
) -> Result<Vec<(String, Vec<u8>)>, git2::Error> {
    let files = files.iter().filter(|(name, _)| name.ends_with(ATTRIBUTES));
    files
        .map(|(name, id)| {
            let name = String::from_utf8_lossy(name).into_owned();
            Ok((name, main.find_blob(*id)?.content().to_vec()))
        })
        .collect()
}

/// Reads a file of the operator's; one that is not there is empty.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path).map(Option::unwrap_or_default)
}

fn global_attributes(config: &Config) -> PathBuf {
    let named = config.get_path("core.attributesFile").ok();
    let found = named.or_else(|| Some(settings_folder()?.join("git/attributes")));
    found.unwrap_or_else(|| PathBuf::from("/nonexistent"))
}

type Configured = BTreeMap<String, BTreeMap<String, String>>;

/// Returns all settings of filters; the last value of a key counts.
fn configured(config: &Config) -> Result<Configured, git2::Error> {
    let mut found = Configured::new();
    config.entries(Some("^filter\\..*"))?.for_each(|entry| {
        let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
        let named = name.strip_prefix("filter.");
        if let Some((filter, key)) = named.and_then(|rest| rest.rsplit_once('.')) {
            // A key without a value is true.
            let value = match entry.has_value() {
                true => String::from_utf8_lossy(entry.value_bytes()).into_owned(),
                false => "true".to_owned(),
            };
            let keys = found.entry(filter.to_owned()).or_default();
            keys.insert(key.to_owned(), value);
        }
    })?;
    Ok(found)
}

/// Writes the settings of filters as git has them.
fn written(named: &BTreeSet<String>, configured: &Configured, config: &Config) -> String {
    let mut text = String::new();
    for name in named {
        let _ = writeln!(text, "[filter {}]", quoted(name));
        for (key, value) in configured.get(name).into_iter().flatten() {
            let _ = writeln!(text, "\t{key} = {}", quoted(value));
        }
    }
    if named.contains(super::lfs::FILTER) {
        text.push_str("[lfs]\n\trepositoryformatversion = 0\n");
        for name in LFS_SETTINGS {
            if let Ok(value) = config.get_string(name)
                && let Some((section, key)) = name.split_once('.')
            {
                let _ = writeln!(text, "[{section}]\n\t{key} = {}", quoted(&value));
            }
        }
    }
    text
}

/// Returns where Git LFS keeps objects.
fn lfs_folder(main: &Repository, config: &Config) -> PathBuf {
    let named = config.get_path("lfs.storage").ok();
    main.commondir()
        .join(named.unwrap_or_else(|| PathBuf::from("lfs")))
}

/// Returns the filters that a file of attributes names.
fn filters(text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text);
    let named = values(&text).filter_map(|word| word.strip_prefix("filter="));
    named.map(str::to_owned).collect()
}

/// Returns whether a file of attributes names a conversion of git's own that libgit2
/// does not do, or does otherwise.
fn has_conversion(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let encoding = |word: &str| word.starts_with("working-tree-encoding=");
    values(&text).any(|word| word == "ident" || encoding(word))
}

/// Refuses files of attributes in which a pattern in quotes decides how files are
/// changed: libgit2 does not read such a pattern, and would leave the files as they are.
fn must_have_no_quotes(texts: &[(String, Vec<u8>)], converts_all: bool) -> Result<(), FilterError> {
    let texts = || {
        let texts = texts.iter();
        texts.map(|(file, text)| (file, String::from_utf8_lossy(text)))
    };
    let mut converting: BTreeSet<String> = CONVERTING.map(str::to_owned).into();
    for (_, text) in texts() {
        let macros = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(MACRO));
        for words in macros.map(|rest| rest.split_whitespace().collect::<Vec<_>>()) {
            if let [name, values @ ..] = &words[..]
                && values
                    .iter()
                    .any(|value| converting.contains(name_of(value)))
            {
                converting.insert((*name).to_owned());
            }
        }
    }
    // To unset an attribute changes nothing where no other line sets one.
    let sets = |word: &str| !is_unsetting(word) && converting.contains(name_of(word));
    let has_any = converts_all || texts().any(|(_, text)| values(&text).any(sets));
    for (file, text) in texts() {
        for (line, attributes) in (1..).zip(text.lines().map(behind_quotes)) {
            let mut words = attributes.unwrap_or_default().split_whitespace();
            let found = words.find_map(|word| {
                let counts = has_any || !is_unsetting(word);
                converting.get(name_of(word)).filter(|_| counts)
            });
            if let Some(attribute) = found {
                return Err(FilterError::Quoted {
                    file: file.clone(),
                    line,
                    attribute: attribute.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Returns the name of an attribute that a word sets or unsets.
fn name_of(word: &str) -> &str {
    let name = word.trim_start_matches(['-', '!']);
    name.split_once('=').map_or(name, |(name, _)| name)
}

/// Returns whether a word unsets a conversion.
fn is_unsetting(word: &str) -> bool {
    word.starts_with(['-', '!']) || word == "binary"
}

/// Returns what follows a pattern in quotes; `None` where the line has none.
fn behind_quotes(line: &str) -> Option<&str> {
    let pattern = line.trim_start().strip_prefix('"')?;
    let mut is_escaped = false;
    let end = pattern.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map(|end| &pattern[end + 1..])
}

/// Returns the words of a file of attributes that may set one.
fn values(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split_whitespace().skip(1))
}

/// Returns whether a file has attributes or settings and is never filtered.
pub(super) fn is_of_git(name: &[u8]) -> bool {
    let file = path(name).file_name().unwrap_or_default();
    let is_attributes = file.as_encoded_bytes().eq_ignore_ascii_case(ATTRIBUTES);
    is_attributes || is_modules(name) || name.eq_ignore_ascii_case(LFS_CONFIG)
}
