//! The record of the lanes that the harness made:
//! `.premath/lanes/<lane>/lane.json` in the main worktree.
//!
//! It is the only source of a path that provisioning removes or makes again. It
//! is outside every lane, so that no step can write it.

use crate::artifact;
use crate::error::StoreError;
use premath_kernel::json::token;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The version of the form.
const SCHEMA: u32 = 1;
/// A longer file is not a record.
const LONGEST: u64 = 1 << 20;

/// Which folder it is, on this machine, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderId {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// When the file system made the inode, in nanoseconds of the Unix clock,
    /// if it reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub born_ns: Option<i64>,
}

impl FolderId {
    /// Returns whether two are the same folder. Device numbers may change with
    /// a restart, and inode numbers are used again; the time of birth is
    /// neither.
    pub fn is(&self, other: &Self) -> bool {
        self.inode == other.inode
            && match (self.born_ns, other.born_ns) {
                (Some(one), Some(another)) => one == another,
                _ => self.device == other.device,
            }
    }
}

/// What a folder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FolderState {
    /// The folder is a lane.
    InUse,
    /// It was a lane, was moved to `movedTo`, and is to be removed.
    Discarded,
}

/// A folder that the harness made for a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneFolder {
    /// Where it was made: an absolute path without links.
    pub worktree: PathBuf,
    /// The identity of the folder: device, inode and birth.
    pub id: FolderId,
    /// The name of its record in git's `worktrees/`.
    pub registration: String,
    /// When it was made (RFC 3339, UTC).
    pub made_at: String,
    /// The state of the folder.
    pub state: FolderState,
    /// Where it was moved to when it was discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<PathBuf>,
}

/// What the harness made for one lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneRecord {
    /// The version of the form.
    pub schema: u32,
    /// The name of the lane, such as `lane-01`.
    pub lane: String,
    /// Its folders, in the order in which they were made.
    pub folders: Vec<LaneFolder>,
}

impl LaneRecord {
    /// Returns an empty record.
    pub(crate) fn new(lane: &str) -> Self {
        Self {
            schema: SCHEMA,
            lane: lane.to_owned(),
            folders: Vec::new(),
        }
    }

    /// Reads the record of a lane; an empty one where there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] where it cannot be read or is of another form.
    pub fn read(repository: &Path, lane: &str) -> Result<Self, StoreError> {
        let path = file(repository, lane);
        let read = read(&path).map_err(StoreError::io("read the lane record", &path))?;
        Ok(read.unwrap_or_else(|| Self::new(lane)))
    }

    /// Reads every record, by the name of the lane.
    ///
    /// # Errors
    ///
    /// As [`LaneRecord::read`].
    pub fn all(repository: &Path) -> Result<Vec<Self>, StoreError> {
        let folder = folder(repository);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        let mut records = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path().join("lane.json");
            records.extend(read(&path).map_err(StoreError::io("read the lane record", &path))?);
        }
        records.sort_by(|one: &Self, other| one.lane.cmp(&other.lane));
        Ok(records)
    }

    /// Writes the record, and has it on the disk when it returns; an empty one
    /// is removed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn write(&self, repository: &Path) -> Result<(), StoreError> {
        let path = file(repository, &self.lane);
        if self.folders.is_empty() {
            return artifact::remove(&path);
        }
        let lanes = folder(repository);
        for folder in [Some(&*lanes), path.parent()].into_iter().flatten() {
            let found = fs::symlink_metadata(folder);
            if found.is_ok_and(|found| !found.is_dir()) {
                let cause = io::Error::other("it is not a folder");
                return Err(StoreError::io("write to", folder)(cause));
            }
        }
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::io("write", &path)(error.into()))?;
        text.push(b'\n');
        artifact::write_durably(&path, &text)
    }

    /// Returns the folder that is the lane below a root: the one made last.
    pub fn in_use(&self, root: &Path) -> Option<&LaneFolder> {
        self.folders.iter().rev().find(|folder| {
            folder.state == FolderState::InUse && folder.worktree.parent() == Some(root)
        })
    }
}

fn folder(repository: &Path) -> PathBuf {
    repository.join(".premath").join("lanes")
}

fn file(repository: &Path, lane: &str) -> PathBuf {
    folder(repository)
        .join(token::encode(lane))
        .join("lane.json")
}

fn read(path: &Path) -> io::Result<Option<LaneRecord>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(io::Error::other("it is not a file of at most 1 MiB"));
    }
    let record: LaneRecord = serde_json::from_reader(io::BufReader::new(file))?;
    if record.schema != SCHEMA {
        let detail = format!(
            "it has schema {}, this version reads {SCHEMA}",
            record.schema
        );
        return Err(io::Error::other(detail));
    }
    Ok(Some(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(above: &Path) -> LaneRecord {
        let mut record = LaneRecord::new("lane-01");
        for (name, state) in [
            ("lane-01", FolderState::Discarded),
            ("lane-01-2", FolderState::InUse),
        ] {
            record.folders.push(LaneFolder {
                worktree: above.join(name),
                id: FolderId {
                    device: 7,
                    inode: 11,
                    born_ns: Some(13),
                },
                registration: format!("premath-{name}"),
                made_at: "2026-01-02T03:04:05Z".to_owned(),
                state,
                moved_to: None,
            });
        }
        record
    }

    #[test]
    fn what_was_written_is_read_and_an_empty_record_goes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut record = record(root);
        assert_eq!(LaneRecord::read(root, "lane-01").unwrap().folders, []);
        record.write(root).unwrap();
        assert_eq!(LaneRecord::read(root, "lane-01").unwrap(), record);
        assert_eq!(LaneRecord::all(root).unwrap(), [record.clone()]);
        let in_use = record.in_use(root).unwrap();
        assert_eq!(in_use.registration, "premath-lane-01-2");
        assert!(record.in_use(&root.join("elsewhere")).is_none());
        record.folders.clear();
        record.write(root).unwrap();
        assert_eq!(LaneRecord::all(root).unwrap(), []);
    }

    #[test]
    fn a_record_that_cannot_be_trusted_is_an_error_and_not_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        record(root).write(root).unwrap();
        let path = file(root, "lane-01");
        fs::write(
            &path,
            "{\"schema\": 2, \"lane\": \"lane-01\", \"folders\": []}",
        )
        .unwrap();
        let refused = LaneRecord::read(root, "lane-01").unwrap_err();
        let cause = std::error::Error::source(&refused).unwrap().to_string();
        assert!(cause.contains("schema 2"), "{cause}");
        fs::write(&path, "{").unwrap();
        assert!(LaneRecord::all(root).is_err());
        let elsewhere = root.join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(LaneRecord::read(root, "lane-01").is_err());
    }

    #[test]
    fn the_time_of_birth_decides_where_it_is_known() {
        let id = |device, born_ns| FolderId {
            device,
            inode: 5,
            born_ns,
        };
        assert!(id(1, Some(9)).is(&id(2, Some(9))), "another device number");
        assert!(!id(1, Some(9)).is(&id(1, Some(8))), "a reused inode");
        assert!(id(1, None).is(&id(1, Some(8))));
        assert!(!id(1, None).is(&id(2, None)));
    }
}
