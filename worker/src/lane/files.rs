//! The files that a step's command is given, and leaves (`agents.md`).

use premath_memory::{StoreError, artifact};
use std::path::{Path, PathBuf};

/// The files of a lane's step.
pub(super) struct StepFiles {
    pub(super) issue: PathBuf,
    pub(super) prompt: PathBuf,
    pub(super) evidence: PathBuf,
    pub(super) outbox: PathBuf,
}

impl StepFiles {
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            issue: folder.join("issue.json"),
            prompt: folder.join("prompt.md"),
            evidence: folder.join("evidence.json"),
            outbox: folder.join("outbox.jsonl"),
        }
    }

    /// Removes what the step before left to read; the two files that every
    /// step writes stay and are written over.
    pub(super) fn clear(&self) -> Result<(), StoreError> {
        artifact::remove(&self.evidence)?;
        artifact::remove(&self.outbox)
    }
}
