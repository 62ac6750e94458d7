//! The history of an issue: its attempts over all batches.

use crate::error::CliError;
use crate::failure::LastFailure;
use crate::paths;
use crate::report::Sources;
use crate::salvage;
use crate::terminal::columns;
use harness_worker::stderr::local_zone;
use premath_evidence::Agent;
use premath_kernel::policy::landing::DEFAULT_TARGET;
use premath_kernel::record::trajectory::{FailureStreaks, StepRow, action};
use premath_memory::roots::MemoryRoots;
use premath_memory::{clock, each_row_naming, untrusted};
use premath_view::figures::Viewer;
use premath_view::report::{AttemptOutcome, AttemptView, PastAttempt, PastTotals, history_lines};
use premath_worktree::diff::CommitDiff;
use premath_worktree::tree::Worktrees;
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

/// How much of an output is read for its last lines.
const END_BYTES: u64 = 16 << 10;

/// The most lines of it that are shown.
const END_LINES: usize = 12;

/// The longest line of it that is shown, in characters.
const LINE_MAX: usize = 400;

/// The most attempts that are shown where no other number is asked for.
pub(crate) const ATTEMPTS: usize = 50;

/// Which attempts at an issue are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The most attempts, the latest of those that fit.
    pub(crate) most: usize,
    /// Only those of rows before this one.
    pub(crate) before: Option<u64>,
}

/// What the run log says about an issue, read in one pass that holds the wanted
/// attempts alone.
#[derive(Debug, Default)]
pub(crate) struct IssueLog {
    /// The batches in which it failed.
    pub(crate) streaks: FailureStreaks,
    /// The row of its last attempt.
    pub(crate) last: Option<StepRow>,
    wanted: VecDeque<(u64, StepRow)>,
    earlier: u64,
    totals: PastTotals,
    target: Option<String>,
}

impl IssueLog {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// The run log cannot be read.
    pub(crate) fn read(id: &str, roots: &MemoryRoots, window: Window) -> Result<Self, CliError> {
        let mut log = Self::default();
        each_row_naming(&roots.trajectory, id, |number, row| {
            log.streaks.observe(&row);
            if row.action == action::WORKER_LOOP && row.issue_id.as_deref() == Some(id) {
                log.take(number, row, window);
            }
        })?;
        Ok(log)
    }

    fn take(&mut self, number: u64, row: StepRow, window: Window) {
        self.totals.observe(&row);
        if let Some(landing) = &row.landing {
            self.target = Some(landing.target.clone());
        }
        if window.before.is_none_or(|before| number < before) {
            if self.wanted.len() >= window.most {
                self.wanted.pop_front();
                self.earlier += 1;
            }
            if window.most > 0 {
                self.wanted.push_back((number, row.clone()));
            }
        }
        self.last = Some(row);
    }
}

/// What the run log says about an issue.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Why its last step did not close it.
    pub(crate) failure: Option<LastFailure>,
    /// The wanted attempts, in the order of the run log.
    pub(crate) attempts: Vec<PastAttempt>,
    /// How many attempts came before them.
    pub(crate) earlier: u64,
    /// What all of its attempts took.
    pub(crate) totals: PastTotals,
    /// Why it cannot be read.
    pub(crate) error: Option<String>,
}

impl Past {
    /// Reads it; where that fails, the issue is shown all the same.
    pub(crate) fn of(id: &str, issues: &Path, window: Window) -> Self {
        let read = || -> Result<Self, CliError> {
            let roots = paths::roots()?;
            let log = IssueLog::read(id, &roots, window)?;
            Ok(Self::seen(&log, &roots, issues))
        };
        read().unwrap_or_else(|error| Self::unreadable(&error))
    }

    /// Says why the attempts cannot be read.
    pub(crate) fn unreadable(error: &CliError) -> Self {
        Self {
            error: Some(format!("cannot read its attempts: {}", error.chain())),
            ..Self::default()
        }
    }

    /// Reads what the wanted attempts left.
    pub(crate) fn seen(log: &IssueLog, roots: &MemoryRoots, issues: &Path) -> Self {
        let last = log.last.as_ref();
        Self {
            failure: last.and_then(|row| LastFailure::read(row, roots)),
            attempts: history(log, roots, issues),
            earlier: log.earlier,
            totals: log.totals,
            error: None,
        }
    }

    /// Returns the attempts as lines for a person.
    pub(super) fn text(&self) -> String {
        if self.totals.attempts == 0 {
            return String::new();
        }
        let viewer = Viewer {
            now: clock::now().wall,
            zone: local_zone(),
            width: columns(None),
        };
        let lines = history_lines(&self.attempts, self.earlier, &viewer);
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        let all = self.totals.attempts;
        let mut text = format!("\nattempts ({all}), latest first\n");
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
        if self.earlier > 0 {
            let _ = write!(
                text,
                "\n{} earlier not shown; `--limit {all}` shows all\n{}\n",
                self.earlier,
                self.totals.sentence()
            );
        }
        text
    }
}

/// Reads the wanted attempts at an issue, in the order of the run log.
fn history(log: &IssueLog, roots: &MemoryRoots, issues: &Path) -> Vec<PastAttempt> {
    let target = log.target.as_deref().unwrap_or(DEFAULT_TARGET);
    let sources = Sources::of(roots, issues);
    let commits = CommitDiff::open(&roots.repository).ok();
    let attempts = log.wanted.iter().map(|(number, row)| {
        let mut attempt = AttemptView::of(*number, row, sources.step(row, target));
        if let Some(commits) = &commits {
            let named = attempt.salvage.take();
            attempt.salvage = named.and_then(|named| salvage::kept(named, commits));
        }
        PastAttempt {
            output_end: match attempt.outcome {
                AttemptOutcome::Closed => Vec::new(),
                _ => output_end(&attempt, &roots.repository),
            },
            resume: resume(row, &roots.repository),
            attempt,
        }
    });
    attempts.collect()
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
    let is_lane = Worktrees::of(repository).is_ok_and(|own| own.has(&folder));
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
