//! The files that govern batches, as the main checkout has them, and which of
//! their changes came with the work of steps.

mod origin;

pub use origin::landed;

use crate::mode::mode_of;
use crate::tree::index_file;
use git2::{ErrorCode, ObjectType, Oid, Patch, Repository};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::policy::governing::{Governing, files_of};
use premath_kernel::policy::trust::GoverningFiles;
use premath_platform::file::is_absent;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use toml::{Table, Value};

/// The settings of a repository.
const SETTINGS: &str = "harness.toml";

/// What a batch reads from the checkout, tracked or not.
const READ_AT_START: [&str; 3] = [SETTINGS, "policies", "instructions"];

/// Settings that hold a command line.
const COMMANDS: [(&str, &str); 8] = [
    ("batch", "work_cmd"),
    ("batch", "verify_cmd"),
    ("batch", "boot_cmd"),
    ("batch", "stop_cmd"),
    ("batch", "startup_cmd"),
    ("landing", "check_cmd"),
    ("notify", "command"),
    ("worktrees", "setup_cmd"),
];

/// Settings that name a file.
const FILES: [(&str, &str); 5] = [
    ("batch", "instruction"),
    ("batch", "retry_policy"),
    ("batch", "turn_policy"),
    ("prompt", "template"),
    ("governance", "package"),
];

/// The largest governing file that is read.
const FILE_MAX: u64 = 64 << 20;

/// How many untracked governing files are looked at, and how deep they lie.
const UNTRACKED_MAX: usize = 10_000;
const DEPTH_MAX: usize = 16;

/// Governing files cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum GoverningError {
    /// Git refused.
    #[error("cannot {operation} of {path}: {detail}")]
    Git {
        /// The operation that failed.
        operation: &'static str,
        /// The repository.
        path: PathBuf,
        /// The message of git.
        detail: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl GoverningError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::GoverningFilesUntrusted
    }

    fn git(operation: &'static str, path: &Path) -> impl Fn(git2::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| Self::Git {
            operation,
            path: path.clone(),
            detail: error.message().to_owned(),
        }
    }
}

/// The governing files of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoverningSurvey {
    /// The files.
    pub files: GoverningFiles,
    /// The commit that is checked out; `None` where there is none.
    pub head: Option<String>,
    /// The branch that work lands on, as `harness.toml` names it.
    pub target: Option<String>,
}

/// Looks at the governing files of a repository's main checkout: those of
/// `defaults`, and those that its settings name.
///
/// # Errors
///
/// [`GoverningError`]: git refuses, or a file cannot be read.
pub fn survey(root: &Path, defaults: Governing) -> Result<GoverningSurvey, GoverningError> {
    let failed = GoverningError::git("read the index", root);
    let repository = Repository::open(root).map_err(&failed)?;
    let settings = settings(root);
    let index = index_file::open_of(&repository).map_err(&failed)?;
    let mut tracked = BTreeSet::new();
    for entry in index.iter() {
        tracked.insert(String::from_utf8_lossy(&entry.path).into_owned());
    }
    let named = named(root, &settings, |path| tracked.contains(path));
    let governing = defaults
        .with_named(named.iter().cloned())
        .with_named(hooks_path(root));
    let mut paths: BTreeSet<String> = tracked
        .into_iter()
        .filter(|path| governing.governs(path))
        .collect();
    for start in READ_AT_START
        .iter()
        .copied()
        .chain(named.iter().map(String::as_str))
    {
        walk(root, start, 0, &mut paths);
    }
    let mut files = BTreeMap::new();
    for path in paths {
        if let Some(content) = content(root, &path)? {
            files.insert(path, digest_of(&content));
        }
    }
    let head = match repository.head() {
        Ok(head) => head
            .peel_to_commit()
            .ok()
            .map(|commit| commit.id().to_string()),
        Err(_) => None,
    };
    Ok(GoverningSurvey {
        files: GoverningFiles(files),
        head,
        target: text_at(&settings, "landing", "target"),
    })
}

/// Returns whether a batch reads a path from the checkout, tracked or not.
pub fn is_read_at_start(path: &str) -> bool {
    let first = path.split('/').next();
    first.is_some_and(|first| READ_AT_START.contains(&first))
}

/// Returns the digest of a governing file's content.
pub fn digest_of(content: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(content))
}

/// Returns the content of a file in the checkout; the target of a link, which is
/// never followed. `None` where there is neither.
///
/// # Errors
///
/// [`GoverningError::Read`].
pub fn content(root: &Path, path: &str) -> Result<Option<Vec<u8>>, GoverningError> {
    let file = root.join(path);
    let read = || -> io::Result<Option<Vec<u8>>> {
        let meta = fs::symlink_metadata(&file)?;
        if meta.is_symlink() {
            let target = fs::read_link(&file)?;
            return Ok(Some([b"link: ", target.as_os_str().as_bytes()].concat()));
        }
        if !meta.is_file() {
            return Ok(None);
        }
        if meta.len() > FILE_MAX {
            return Err(io::Error::other("it is too large to govern a batch"));
        }
        let mut bytes = Vec::new();
        fs::File::open(&file)?
            .take(FILE_MAX)
            .read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    match read() {
        Ok(content) => Ok(content),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(GoverningError::Read { path: file, source }),
    }
}

/// Returns the content that a commit has at a path, where its digest is the
/// one that is asked for.
pub fn committed(root: &Path, commit: &str, path: &str, digest: &str) -> Option<Vec<u8>> {
    let repository = Repository::open(root).ok()?;
    let commit = repository.find_commit(Oid::from_str(commit).ok()?).ok()?;
    let entry = commit.tree().ok()?.get_path(Path::new(path)).ok()?;
    let object = entry.to_object(&repository).ok()?;
    let mut content = object.peel_to_blob().ok()?.content().to_vec();
    if mode_of(&entry) == i32::from(git2::FileMode::Link) {
        content = [b"link: ", &*content].concat();
    }
    (digest_of(&content) == digest).then_some(content)
}

/// Returns the difference of two contents as a unified diff; or a line that one
/// of them is not text.
pub fn difference(path: &str, before: &[u8], after: &[u8]) -> String {
    let at = Some(Path::new(path));
    let patch = Patch::from_buffers(before, at, after, at, None);
    let text = patch.and_then(|mut patch| patch.to_buf().map(|buffer| buffer.to_vec()));
    match text {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => format!("{path}: the difference cannot be shown\n"),
    }
}

/// Returns the folder that git takes hooks from, where it is in the checkout,
/// by its path from the root.
pub fn hooks_path(root: &Path) -> Option<String> {
    let repository = Repository::open(root).ok()?;
    let config = repository.config().ok()?.snapshot().ok()?;
    let path = match config.get_path("core.hooksPath") {
        Ok(path) => path,
        Err(error) if error.code() == ErrorCode::NotFound => return None,
        Err(_) => return None,
    };
    within(root, &path)
}

/// Returns a path that settings name, from the root; `None` where it leads out.
pub fn within(root: &Path, path: &Path) -> Option<String> {
    let path = match path.is_absolute() {
        true => path.strip_prefix(root).ok()?,
        false => path,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            _ => return None,
        }
    }
    // The whole checkout, or git's own folder, is not guarded as a hooks
    // folder.
    let is_within = parts.first().is_some_and(|first| *first != ".git");
    is_within.then(|| parts.join("/"))
}

fn settings(root: &Path) -> Table {
    let text = content(root, SETTINGS).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // What cannot be read names nothing; it refuses the batch by itself.
    text.parse().unwrap_or_default()
}

fn text_at(settings: &Table, table: &str, key: &str) -> Option<String> {
    let value = settings.get(table).and_then(Value::as_table)?.get(key)?;
    value.as_str().map(str::to_owned)
}

/// Returns the files that settings and their commands name.
fn named(root: &Path, settings: &Table, exists: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (table, key) in COMMANDS {
        if let Some(command) = text_at(settings, table, key) {
            named.extend(files_of(&command, &exists).deciding);
        }
    }
    for (table, key) in FILES {
        let path = text_at(settings, table, key).map(PathBuf::from);
        named.extend(path.and_then(|path| within(root, &path)));
    }
    named
}

/// Adds the files at and below a path; links are not followed.
fn walk(root: &Path, path: &str, depth: usize, found: &mut BTreeSet<String>) {
    let Ok(meta) = fs::symlink_metadata(root.join(path)) else {
        return;
    };
    if !meta.is_dir() {
        found.insert(path.to_owned());
        return;
    }
    let Ok(entries) = fs::read_dir(root.join(path)) else {
        return;
    };
    for entry in entries.flatten() {
        if depth < DEPTH_MAX && found.len() < UNTRACKED_MAX {
            let name = entry.file_name();
            walk(
                root,
                &format!("{path}/{}", name.to_string_lossy()),
                depth + 1,
                found,
            );
        }
    }
}

/// Returns the git object that a content would be.
fn blob_of(content: &[u8]) -> Option<Oid> {
    let content = content.strip_prefix(b"link: ").unwrap_or(content);
    Oid::hash_object(ObjectType::Blob, content).ok()
}

#[cfg(test)]
mod tests;
