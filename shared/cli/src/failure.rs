//! Why an issue did not close: its last step's failure, read from what the
//! step left.

use crate::salvage;
use premath_kernel::json::id::StepId;
use premath_kernel::record::trajectory::StepRow;
use premath_memory::roots::MemoryRoots;
use premath_memory::step_failure::{LeftFiles, StepFailure};
use premath_worktree::diff::CommitDiff;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The failure of an issue's last step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastFailure {
    /// The step.
    pub(crate) step_id: StepId,
    /// The time at which the attempt ended.
    pub(crate) finished_at: String,
    /// Its failure classes, the first one is the cause.
    pub(crate) failure_classes: Vec<String>,
    /// What failed, in a line.
    pub(crate) said: String,
    /// The output of the command that failed, where it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// The turn as it was judged, where it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<String>,
    /// Where what the step left is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) salvage: Option<String>,
}

impl LastFailure {
    /// Returns it as lines for a person.
    pub(crate) fn text(&self) -> String {
        let class = self.failure_classes.first().map_or("", |class| class);
        let mut text = match self.said.strip_prefix(class) {
            Some(rest) if rest.starts_with(": ") => self.said.clone(),
            _ => format!("{class}: {}", self.said),
        };
        let _ = write!(text, "\nstep {}, ended {}", self.step_id, self.finished_at);
        if let Some(output) = &self.output {
            let _ = write!(text, "\noutput: {output}");
        } else if let Some(turn) = &self.turn {
            let _ = write!(
                text,
                "\nverdict: premath harness-join-check --explain --input {turn}"
            );
        }
        if let Some(branch) = &self.salvage {
            let _ = write!(text, "\nsaved work: {branch}");
        }
        text
    }

    /// Reads it from the row of the step, without salvage branches that are gone.
    pub(crate) fn read(row: &StepRow, roots: &MemoryRoots) -> Option<Self> {
        let mut failure = Self::read_with(row, roots, &LeftFiles::default())?;
        if let Some(named) = failure.salvage.take() {
            failure.salvage = match CommitDiff::open(&roots.repository) {
                Ok(commits) => salvage::kept(named, &commits),
                Err(_) => Some(named),
            };
        }
        Some(failure)
    }

    /// Reads it for one of many steps whose files were listed, with salvage as the row
    /// names it.
    pub(crate) fn read_with(row: &StepRow, roots: &MemoryRoots, left: &LeftFiles) -> Option<Self> {
        let failure = StepFailure::read(row, roots, left)?;
        Some(Self {
            step_id: row.step_id.clone(),
            finished_at: row.finished_at.as_str().to_owned(),
            failure_classes: row.failure_classes.clone(),
            said: failure.said,
            output: failure.output.map(|path| path.display().to_string()),
            turn: failure.turn.map(|path| path.display().to_string()),
            salvage: row.salvage.clone(),
        })
    }
}
