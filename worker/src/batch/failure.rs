//! The last failure of an issue, for the next attempt to know of.

use super::Batch;
use crate::prompt::LastFailure;

/// The last step of an issue that failed in this batch.
#[derive(Clone, Debug)]
pub(super) struct FailedStep {
    pub(super) step_id: String,
    pub(super) classes: Vec<String>,
}

impl Batch {
    /// Returns the last failure of an issue with the end of what was said, for
    /// the prompt of the next attempt.
    pub(crate) fn last_failure(&self, issue_id: &str) -> Option<LastFailure> {
        let failed = self.knowledge().failures.get(issue_id).cloned()?;
        let end_of = |extension: &str| {
            ["verify", "work"]
                .iter()
                .map(|phase| {
                    crate::witness::file(
                        &self.settings.roots.streams,
                        &failed.step_id,
                        phase,
                        extension,
                    )
                })
                .find_map(|path| premath_memory::artifact::read(&path).ok().flatten())
                .map(|bytes| tail(&bytes))
                .unwrap_or_default()
        };
        Some(LastFailure {
            stdout: end_of("stdout"),
            stderr: end_of("stderr"),
            step_id: failed.step_id,
            classes: failed.classes,
        })
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
