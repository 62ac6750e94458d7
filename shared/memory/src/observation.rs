//! The observation of the last batch, and the log of all of them, below
//! `artifacts/observation`.

use crate::artifact;
use crate::error::StoreError;
use crate::projection::write_document;
use crate::roots::MemoryRoots;
use crate::untrusted::read_in_checkout;
use premath_kernel::json::canonical;
use premath_kernel::record::observation::{OBSERVATION_KIND, Observation};
use std::io;
use std::path::{Path, PathBuf};

/// The most bytes of a file that is read.
const BYTES_MAX: u64 = 64 << 20;

/// How many lines the log keeps: the latest.
const KEPT_LINES: usize = 1_000;

/// Names the log of observations.
pub fn log(roots: &MemoryRoots) -> PathBuf {
    roots.observation.with_file_name("events.jsonl")
}

/// Writes the observation of a batch, in the place of an earlier one, and a line
/// about it into the log.
///
/// # Errors
///
/// [`StoreError::Io`]; each file is as it was, or whole.
pub fn write(roots: &MemoryRoots, observation: &Observation) -> Result<(), StoreError> {
    write_document(&roots.observation, observation)?;
    let path = log(roots);
    // What cannot be read is replaced: a log that is lost loses no observation.
    let before = bytes_of(roots, &path).ok().flatten().unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    let line = canonical::value_of(&observation.event()).to_string();
    let lines: Vec<&str> = before.lines().chain([&*line]).collect();
    let first = lines.len().saturating_sub(KEPT_LINES);
    let text = lines[first..].join("\n") + "\n";
    artifact::write(&path, text.as_bytes())
}

/// Reads the observation of the last batch; `None` where there is none. The
/// commands that it names are those of this build, whatever the file has.
///
/// # Errors
///
/// [`StoreError::Io`], also where it is not an observation.
pub fn read(roots: &MemoryRoots) -> Result<Option<Observation>, StoreError> {
    let path = &roots.observation;
    let Some(bytes) = bytes_of(roots, path)? else {
        return Ok(None);
    };
    let found: Result<Observation, _> = serde_json::from_slice(&bytes);
    let unread = |detail: String| StoreError::io("read", path)(io::Error::other(detail));
    match found {
        Ok(found) if found.observation_kind == OBSERVATION_KIND => {
            Ok(Some(found.with_own_commands()))
        }
        Ok(found) => Err(unread(format!(
            "observationKind is `{}`, expected `{OBSERVATION_KIND}`",
            found.observation_kind
        ))),
        Err(error) => Err(unread(error.to_string())),
    }
}

/// Reads a file, which a step without confinement can write.
fn bytes_of(roots: &MemoryRoots, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let within = path.strip_prefix(&roots.repository).unwrap_or(path);
    let read = read_in_checkout(&roots.repository, within, BYTES_MAX);
    read.map_err(StoreError::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_that_is_none_is_neither_followed_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let roots = MemoryRoots::at(folder.path());
        assert!(read(&roots).unwrap().is_none());
        let within = roots.observation.parent().unwrap();
        std::fs::create_dir_all(within.parent().unwrap()).unwrap();
        symlink("/etc", within).unwrap();
        read(&roots).unwrap_err();
        std::fs::remove_file(within).unwrap();
        std::fs::create_dir(within).unwrap();
        symlink("/etc/passwd", &roots.observation).unwrap();
        read(&roots).unwrap_err();
        std::fs::remove_file(&roots.observation).unwrap();
        let at = &roots.observation;
        {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        }
        .unwrap();
        read(&roots).unwrap_err();
        std::fs::remove_file(&roots.observation).unwrap();
        let attention = r#"{"kind": "issue", "issueId": "a", "nextCommand": "rm -rf ~"}"#;
        let text = format!(
            r#"{{"schema": 1, "observationKind": "{OBSERVATION_KIND}", "batchId": "b",
            "endedAt": "2026-01-01T00:00:00Z", "exitCode": 0, "needsAttention": [{attention}]}}"#
        );
        std::fs::write(&roots.observation, text).unwrap();
        let found = read(&roots).unwrap().unwrap();
        assert_eq!(
            found.needs_attention[0].next_command,
            "premath issue show a"
        );
    }
}
