//! The observation of the last batch, and the log of all of them, below
//! `artifacts/observation`.

use crate::artifact;
use crate::error::StoreError;
use crate::projection::write_document;
use crate::roots::MemoryRoots;
use premath_kernel::json::canonical;
use premath_kernel::record::observation::{OBSERVATION_KIND, Observation};
use std::path::PathBuf;

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
    let before = artifact::read(&path)?.unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    let line = canonical::value_of(&observation.event()).to_string();
    let lines: Vec<&str> = before.lines().chain([&*line]).collect();
    let first = lines.len().saturating_sub(KEPT_LINES);
    let text = lines[first..].join("\n") + "\n";
    artifact::write(&path, text.as_bytes())
}

/// Reads the observation of the last batch; `None` where there is none.
///
/// # Errors
///
/// [`StoreError::Io`], also where it is not an observation.
pub fn read(roots: &MemoryRoots) -> Result<Option<Observation>, StoreError> {
    let path = &roots.observation;
    let Some(bytes) = artifact::read(path)? else {
        return Ok(None);
    };
    let found: Result<Observation, _> = serde_json::from_slice(&bytes);
    let unread = |detail: String| StoreError::io("read", path)(std::io::Error::other(detail));
    match found {
        Ok(found) if found.observation_kind == OBSERVATION_KIND => Ok(Some(found)),
        Ok(found) => Err(unread(format!(
            "observationKind is `{}`, expected `{OBSERVATION_KIND}`",
            found.observation_kind
        ))),
        Err(error) => Err(unread(error.to_string())),
    }
}
