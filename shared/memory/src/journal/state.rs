//! The identity of a file, from its metadata only.

use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Equal states mean the same file without a write in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileState {
    changed: (i64, i64),
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl FileState {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::from(&meta))
    }
}

impl From<&Metadata> for FileState {
    fn from(meta: &Metadata) -> Self {
        Self {
            changed: (meta.ctime(), meta.ctime_nsec()),
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}
