//! The files that a step's command is given, and leaves (`agents.md`).

use std::path::{Path, PathBuf};

pub(crate) const ISSUE: &str = "issue.json";
pub(crate) const PROMPT: &str = "prompt.md";
pub(crate) const EVIDENCE: &str = "evidence.json";
pub(crate) const OUTBOX: &str = "outbox.jsonl";

/// The paths of a lane's step as its commands are given them; the harness
/// itself reads and writes by the folder's descriptor.
pub(crate) struct StepFiles {
    pub(crate) issue: PathBuf,
    pub(crate) prompt: PathBuf,
    pub(crate) evidence: PathBuf,
    pub(crate) outbox: PathBuf,
}

impl StepFiles {
    pub(crate) fn at(folder: &Path) -> Self {
        Self {
            issue: folder.join(ISSUE),
            prompt: folder.join(PROMPT),
            evidence: folder.join(EVIDENCE),
            outbox: folder.join(OUTBOX),
        }
    }
}
