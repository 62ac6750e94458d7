//! The files that a step's command is given, and leaves (`agents.md`).

use std::path::{Path, PathBuf};

pub(super) const ISSUE: &str = "issue.json";
pub(super) const PROMPT: &str = "prompt.md";
pub(super) const EVIDENCE: &str = "evidence.json";
pub(super) const OUTBOX: &str = "outbox.jsonl";

/// The paths of a lane's step as its commands are given them; the harness
/// itself reads and writes by the folder's descriptor.
pub(super) struct StepFiles {
    pub(super) issue: PathBuf,
    pub(super) prompt: PathBuf,
    pub(super) evidence: PathBuf,
    pub(super) outbox: PathBuf,
}

impl StepFiles {
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            issue: folder.join(ISSUE),
            prompt: folder.join(PROMPT),
            evidence: folder.join(EVIDENCE),
            outbox: folder.join(OUTBOX),
        }
    }
}
