//! What running batches publish of themselves: one document a batch, below
//! `.premath/private/live/`, where no step reads or writes.

use crate::artifact;
use crate::error::StoreError;
use crate::private::PrivateFolder;
use crate::roots::MemoryRoots;
use crate::untrusted::{is_linked, read_in_checkout};
use premath_kernel::json::id::BatchId;
use premath_kernel::json::token;
use premath_kernel::record::live::{LIVE_MAX, LiveBatch, StoreStamp};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const EXTENSION: &str = ".json";

/// The most documents that are read.
const DOCUMENTS_MAX: usize = 256;

/// The documents of a repository's batches.
#[derive(Clone, Debug)]
pub struct LiveFolder {
    repository: PathBuf,
    private: PrivateFolder,
    folder: PathBuf,
}

impl LiveFolder {
    /// Names the folder.
    pub fn of(roots: &MemoryRoots) -> Self {
        let private = PrivateFolder::of(roots);
        Self {
            repository: roots.repository.clone(),
            folder: private.path().join("live"),
            private,
        }
    }

    /// Makes the folder, and removes the documents that are not to stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], also where the folder is a link.
    pub fn prepare(&self, stays: impl Fn(&LiveBatch) -> bool) -> Result<(), StoreError> {
        self.private.prepare_below("live")?;
        artifact::sweep(&self.folder)?;
        for (path, live) in self.documents()? {
            if !live.is_some_and(|live| stays(&live)) {
                artifact::remove(&path)?;
            }
        }
        Ok(())
    }

    /// Writes the document of a batch, in the place of an earlier one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; an earlier one is as it was.
    pub fn write(&self, live: &LiveBatch) -> Result<(), StoreError> {
        let path = self.path(&live.batch_id);
        let text = serde_json::to_vec(live)
            .map_err(|error| StoreError::io("write", &path)(error.into()))?;
        artifact::write(&path, &text)
    }

    /// Reads the documents of all batches, the one that was written last first.
    /// A file that is none, too large or no regular file is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] where the folder is there and cannot be read.
    pub fn read(&self) -> Result<Vec<LiveBatch>, StoreError> {
        let documents = self.documents()?.into_iter();
        let mut found: Vec<LiveBatch> = documents.filter_map(|(_, live)| live).collect();
        found.sort_by(|a, b| {
            let key = |live: &LiveBatch| (live.written_at.time(), live.batch_id.clone());
            key(b).cmp(&key(a))
        });
        Ok(found)
    }

    /// Returns the documents that cannot be read.
    ///
    /// # Errors
    ///
    /// As [`LiveFolder::read`].
    pub(crate) fn broken(&self) -> Result<Vec<PathBuf>, StoreError> {
        let documents = self.documents()?.into_iter();
        let broken = documents.filter(|(_, live)| live.is_none());
        Ok(broken.map(|(path, _)| path).collect())
    }

    /// Reads the documents; none where the folder is reached by a link.
    fn documents(&self) -> Result<Vec<(PathBuf, Option<LiveBatch>)>, StoreError> {
        if is_linked(&self.repository, &self.folder) {
            return Ok(Vec::new());
        }
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("read", &self.folder)(error)),
        };
        let mut found = Vec::new();
        for entry in entries.take(DOCUMENTS_MAX) {
            let path = entry.map_err(StoreError::io("read", &self.folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.ends_with(EXTENSION)) {
                let below = path.strip_prefix(&self.repository).unwrap_or(&path);
                let read = read_in_checkout(&self.repository, below, LIVE_MAX);
                let live = read.ok().flatten();
                found.push((path, live.and_then(|bytes| LiveBatch::parse(&bytes))));
            }
        }
        Ok(found)
    }

    fn path(&self, batch_id: &BatchId) -> PathBuf {
        let name = format!("{}{EXTENSION}", token::encode(batch_id));
        self.folder.join(name)
    }
}

/// Returns the state of the issue store's file; `None` where it cannot be seen.
pub fn store_stamp(path: &Path) -> Option<StoreStamp> {
    let meta = fs::metadata(path).ok()?;
    let modified = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
    Some(StoreStamp {
        inode: meta.ino(),
        bytes: meta.len(),
        modified_ns: u64::try_from(modified.ok()?.as_nanos()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::json::stamp::Stamp;
    use premath_kernel::record::trajectory::BatchHolder;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn live(id: &str, second: u8) -> LiveBatch {
        let holder = BatchHolder {
            host: "h".into(),
            boot_id: "b".into(),
            pid: 1,
            started: 7,
            pid_ns: None,
        };
        let at = Stamp::parse(&format!("2026-03-05T10:00:0{second}Z")).unwrap();
        LiveBatch::new(id.into(), holder, at, 0)
    }

    fn ids(folder: &LiveFolder) -> Vec<String> {
        let found = folder.read().unwrap().into_iter();
        found.map(|live| live.batch_id.to_string()).collect()
    }

    #[test]
    fn the_document_that_was_written_last_comes_first_and_only_its_owner_reads_it() {
        let repository = tempfile::tempdir().unwrap();
        let folder = LiveFolder::of(&MemoryRoots::at(repository.path()));
        assert!(ids(&folder).is_empty());
        folder.prepare(|_| true).unwrap();
        for (id, second) in [("hb1_a", 3), ("hb1_b", 1), ("hb1_../c", 2)] {
            folder.write(&live(id, second)).unwrap();
        }
        assert_eq!(ids(&folder), ["hb1_a", "hb1_../c", "hb1_b"]);
        for path in [&folder.folder, &folder.path(&"hb1_a".into())] {
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
        folder.prepare(|live| live.batch_id == "hb1_b").unwrap();
        assert_eq!(ids(&folder), ["hb1_b"]);
    }

    #[test]
    fn what_is_no_document_is_left_out_and_no_link_is_followed() {
        let repository = tempfile::tempdir().unwrap();
        let folder = LiveFolder::of(&MemoryRoots::at(repository.path()));
        folder.prepare(|_| true).unwrap();
        folder.write(&live("hb1_a", 1)).unwrap();
        let elsewhere = repository.path().join("elsewhere");
        fs::rename(folder.path(&"hb1_a".into()), &elsewhere).unwrap();
        symlink(&elsewhere, folder.path(&"hb1_b".into())).unwrap();
        fs::write(folder.path(&"hb1_c".into()), "{}").unwrap();
        let large = fs::File::create(folder.path(&"hb1_d".into())).unwrap();
        large.set_len(LIVE_MAX + 1).unwrap();
        assert!(ids(&folder).is_empty());
    }

    #[test]
    fn another_file_has_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issues.jsonl");
        assert_eq!(store_stamp(&path), None);
        fs::write(&path, "a\n").unwrap();
        let first = store_stamp(&path);
        assert_eq!(first, store_stamp(&path));
        fs::write(&path, "ab\n").unwrap();
        assert_ne!(first, store_stamp(&path));
    }
}
