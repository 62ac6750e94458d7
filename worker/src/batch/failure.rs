//! The last failure of an issue, for the next attempt to know about.

use super::Batch;
use crate::prompt::{LastFailure, Neighbour};
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::policy::landing::{FAILURE_ROUND, WORK_ROUNDS, verification_rounds};
use premath_memory::{IssueRow, StoreError};

/// The last step of an issue that failed in this batch.
#[derive(Clone, Debug)]
pub(super) struct FailedStep {
    pub(super) step_id: StepId,
    pub(super) classes: Vec<String>,
    pub(super) salvage: Option<String>,
}

impl Batch {
    /// Returns the issues that one has edges to, as they are now.
    pub(crate) fn neighbours(&self, row: &IssueRow) -> Result<Vec<Neighbour>, StoreError> {
        self.memory.view(|view| {
            let edges = row.issue.dependencies.iter();
            edges
                .map(|edge| Neighbour {
                    kind: edge.kind.as_str().to_owned(),
                    id: edge.depends_on.to_string(),
                    found: view.row(&edge.depends_on).map(|row| {
                        let status = row.issue.status.as_str().to_owned();
                        (status, row.text_of("title"))
                    }),
                })
                .collect()
        })
    }

    /// Returns the last failure of an issue with the end of what was reported,
    /// for the prompt of the next attempt.
    pub(crate) fn last_failure(&self, issue_id: &IssueId) -> Option<LastFailure> {
        let failed = self.knowledge().failures.get(issue_id).cloned()?;
        let read = |phase: &str, extension: &str| self.output(&failed.step_id, phase, extension);
        // What the harness says itself, or the last command that was run; a landing may
        // fail without one.
        let last = [FAILURE_ROUND]
            .into_iter()
            .chain(verification_rounds())
            .chain(WORK_ROUNDS.iter().rev().copied())
            .find(|phase| read(phase, "stderr").is_some());
        let end_of = |extension: &str| {
            last.and_then(|phase| read(phase, extension))
                .map(|bytes| tail(&bytes))
                .unwrap_or_default()
        };
        Some(LastFailure {
            stdout: end_of("stdout"),
            stderr: end_of("stderr"),
            step_id: failed.step_id,
            classes: failed.classes,
            salvage: failed.salvage,
        })
    }
}

impl Batch {
    /// Returns what the prompt of a repair shows of a verification that failed.
    pub(crate) fn failed_verification(
        &self,
        step_id: &StepId,
        phase: &str,
        classes: &[String],
    ) -> LastFailure {
        let end_of = |extension: &str| {
            let output = self.output(step_id, phase, extension);
            output.map(|bytes| tail(&bytes)).unwrap_or_default()
        };
        LastFailure {
            stdout: end_of("stdout"),
            stderr: end_of("stderr"),
            step_id: step_id.clone(),
            classes: classes.to_vec(),
            salvage: None,
        }
    }

    /// Reads what a command of a step printed.
    fn output(&self, step_id: &StepId, phase: &str, extension: &str) -> Option<Vec<u8>> {
        let folder = &self.settings.roots.streams;
        let path = crate::witness::file(folder, step_id, phase, extension);
        premath_memory::artifact::read(&path).ok().flatten()
    }
}

/// The last 4 KiB of an output, from a line's start.
fn tail(bytes: &[u8]) -> String {
    const KEPT: usize = 4 << 10;
    let cut = bytes.len().saturating_sub(KEPT);
    let mut end = &bytes[cut..];
    if cut > 0
        && let Some(line) = end.iter().position(|byte| *byte == b'\n')
    {
        end = &end[line + 1..];
    }
    String::from_utf8_lossy(end)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}
