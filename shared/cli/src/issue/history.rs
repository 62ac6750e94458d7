//! The history of an issue: its attempts over all batches.

use crate::error::CliError;
use crate::failure::LastFailure;
use crate::paths;
use crate::report::Sources;
use crate::terminal::columns;
use harness_worker::stderr::local_zone;
use premath_evidence::Agent;
use premath_kernel::policy::landing::DEFAULT_TARGET;
use premath_kernel::record::trajectory::StepRow;
use premath_memory::roots::MemoryRoots;
use premath_memory::{clock, steps_of, untrusted};
use premath_view::figures::Viewer;
use premath_view::report::{AttemptOutcome, AttemptView, PastAttempt, history_lines};
use premath_worktree::tree::is_worktree_of;
use std::path::Path;

/// How much of an output is read for its last lines.
const END_BYTES: u64 = 16 << 10;

/// The most lines of it that are shown.
const END_LINES: usize = 12;

/// The longest line of it that is shown, in characters.
const LINE_MAX: usize = 400;

/// What the run log says about an issue.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Why its last step did not close it.
    pub(crate) failure: Option<LastFailure>,
    /// Its attempts, in the order of the run log.
    pub(crate) attempts: Vec<PastAttempt>,
    /// Why it cannot be read.
    pub(crate) error: Option<String>,
}

impl Past {
    /// Reads it; where that fails, the issue is shown all the same.
    pub(crate) fn of(id: &str, issues: &Path) -> Self {
        let read = || -> Result<Self, CliError> {
            let roots = paths::roots()?;
            Ok(Self {
                failure: LastFailure::of(id, &roots)?,
                attempts: history(id, &roots, issues)?,
                error: None,
            })
        };
        read().unwrap_or_else(|error| Self {
            error: Some(format!("cannot read its attempts: {}", error.chain())),
            ..Self::default()
        })
    }

    /// Returns the attempts as lines for a person.
    pub(super) fn text(&self) -> String {
        if self.attempts.is_empty() {
            return String::new();
        }
        let viewer = Viewer {
            now: clock::now().wall,
            zone: local_zone(),
            width: columns(None),
        };
        let lines = history_lines(&self.attempts, &viewer);
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        format!(
            "\nattempts ({}), latest first\n{}\n",
            self.attempts.len(),
            lines.join("\n")
        )
    }
}

/// Reads the attempts at an issue, in the order of the run log.
///
/// # Errors
///
/// The run log cannot be read.
fn history(id: &str, roots: &MemoryRoots, issues: &Path) -> Result<Vec<PastAttempt>, CliError> {
    let rows = steps_of(&roots.trajectory, id)?;
    let landed = rows.iter().rev().find_map(|(_, row)| row.landing.as_ref());
    let target = landed.map_or(DEFAULT_TARGET, |landing| &landing.target);
    let sources = Sources::of(roots, issues);
    let attempts = rows.iter().map(|(number, row)| {
        let attempt = AttemptView::of(*number, row, sources.step(row, target));
        PastAttempt {
            output_end: match attempt.outcome {
                AttemptOutcome::Closed => Vec::new(),
                _ => output_end(&attempt, &roots.repository),
            },
            resume: resume(row, &roots.repository),
            attempt,
        }
    });
    Ok(attempts.collect())
}

/// Returns the command by which a person continues the session of a step's agent.
fn resume(row: &StepRow, repository: &Path) -> Option<String> {
    let record = row.agent.as_ref()?;
    let agent = Agent::named(&record.adapter)?;
    // What a row says may be forged: only a worktree of the repository is named.
    let folder = repository
        .join(record.session_folder.as_ref()?)
        .canonicalize()
        .ok()?;
    let is_lane = is_worktree_of(repository, &folder);
    let session = record.session_id.as_ref().filter(|_| is_lane)?;
    agent.spec().resumed_by_hand(folder.to_str()?, session)
}

/// Returns the last lines of the output of a command that failed; of an agent's event
/// stream there are none for a person.
fn output_end(attempt: &AttemptView, repository: &Path) -> Vec<String> {
    let output = attempt
        .output
        .as_ref()
        .filter(|path| !path.ends_with(".gz"));
    let Some(bytes) =
        output.and_then(|path| untrusted::read_end(repository, &repository.join(path), END_BYTES))
    else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(END_LINES);
    let shown = lines[first..].iter();
    shown
        .map(|line| line.chars().take(LINE_MAX).collect())
        .collect()
}
