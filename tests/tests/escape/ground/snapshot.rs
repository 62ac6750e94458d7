//! What is there before and after: every file but what a landing may change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// What a batch may change, from the ground's folder. A name that ends with `*`
/// represents everything that begins so.
const MAY_CHANGE: [&str; 21] = [
    "bin",
    "remote.git",
    "runs",
    "repo-lanes",
    "repo-verify",
    "repo/.premath",
    "repo/artifacts",
    "repo/.git/logs/refs/heads/harness*",
    "repo/.git/logs/refs/harness*",
    "repo/.git/objects/??",
    "repo/.git/objects/pack",
    "repo/.git/premath*",
    "repo/.git/refs/harness*",
    "repo/.git/refs/heads/harness*",
    "repo/.git/refs/remotes*",
    "repo/.git/logs/refs/remotes*",
    "repo/.git/worktrees",
    // State of the harness itself.
    "home/.cache/premath*",
    "home/.local/share/premath*",
    "home/.local/state/premath*",
    "home/.config/premath*",
];

/// A file, as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File(Vec<u8>),
    Link(String),
    Other(&'static str),
}

/// Every file below a folder, with its permissions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot(BTreeMap<String, (Entry, u32)>);

impl Snapshot {
    /// Reads a folder; no link is followed and no pipe opened.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut snapshot = Self::default();
        snapshot.read(folder, "");
        snapshot
    }

    fn read(&mut self, folder: &Path, below: &str) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = match below {
                "" => name,
                below => format!("{below}/{name}"),
            };
            let Ok(meta) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            if MAY_CHANGE.iter().any(|pattern| fits(pattern, &path)) {
                continue;
            }
            let kind = meta.file_type();
            let read = if kind.is_dir() {
                self.read(&entry.path(), &path);
                Entry::Folder
            } else if kind.is_file() {
                Entry::File(content(&entry.path(), &path))
            } else if kind.is_symlink() {
                let to = fs::read_link(entry.path()).unwrap_or_default();
                Entry::Link(to.display().to_string())
            } else if kind.is_socket() {
                Entry::Other("socket")
            } else {
                Entry::Other("pipe or device")
            };
            self.0.insert(path, (read, meta.permissions().mode()));
        }
    }

    /// Reports what is not as it was, in words. Permissions count where the
    /// mode can keep them.
    pub(crate) fn changes_until(&self, after: &Self, with_permissions: bool) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, (entry, mode)) in &self.0 {
            match after.0.get(path) {
                None => changes.push(format!("{path} is gone")),
                Some((now, _)) if now != entry => {
                    changes.push(format!("{path} changed{}", describe(now)));
                }
                Some((_, now)) if with_permissions && now != mode => {
                    changes.push(format!("{path} has other permissions: {now:o}"));
                }
                Some(_) => {}
            }
        }
        let new = after
            .0
            .iter()
            .filter(|(path, _)| !self.0.contains_key(*path));
        changes.extend(new.map(|(path, (now, _))| format!("{path} is new{}", describe(now))));
        changes
    }
}

/// Where git finds what it does not list, and the harness adds its own files.
const EXCLUDE: &str = "repo/.git/info/exclude";

fn content(path: &Path, name: &str) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_default();
    if name != EXCLUDE {
        return bytes;
    }
    let own: [&[u8]; 3] = [b"/.premath/", b"/artifacts/", b"# Premath"];
    let is_users = |line: &&[u8]| !own.iter().any(|own| line.starts_with(own));
    let lines: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .filter(is_users)
        .collect();
    lines.join(&b'\n')
}

fn describe(entry: &Entry) -> String {
    match entry {
        Entry::File(bytes) => {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
            format!(": {text:?}")
        }
        Entry::Link(to) => format!(": a link to {to}"),
        Entry::Folder => ": a folder".to_owned(),
        Entry::Other(what) => format!(": a {what}"),
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    if let Some(stem) = pattern.strip_suffix('*') {
        return path.starts_with(stem);
    }
    pattern.len() == path.len()
        && pattern
            .bytes()
            .zip(path.bytes())
            .all(|(one, other)| one == b'?' || one == other)
}
