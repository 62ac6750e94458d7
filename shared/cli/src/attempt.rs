//! The attempt that a person means who names an issue or a lane: the one that
//! runs, else the last one.

use crate::error::CliError;
use crate::issue::query::no_such;
use crate::paths;
use crate::status::is_running;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::LeaseRefusal;
use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::record::live::{LiveBatch, LiveLane, LiveOutcome, LiveStep};
use premath_kernel::record::trajectory::StepRow;
use premath_memory::live::LiveFolder;
use premath_memory::roots::MemoryRoots;
use premath_memory::{ChangeError, last_step};
use std::path::{Path, PathBuf};

/// An attempt of an issue.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The issue.
    pub(crate) issue_id: IssueId,
    /// The step.
    pub(crate) step_id: StepId,
    /// The lane, where it is known.
    pub(crate) worker_id: Option<WorkerName>,
    /// The agent's name, where one is known to work.
    pub(crate) agent: Option<String>,
    /// The worktree that it works in, or was cut in; `None` where it is over.
    pub(crate) worktree: Option<PathBuf>,
    /// Its row, where it is over.
    pub(crate) row: Option<StepRow>,
}

impl Attempt {
    /// Finds the attempt of an issue, or of a lane by its worker or its folder.
    ///
    /// # Errors
    ///
    /// [`CliError`], also where there is no such attempt.
    pub(crate) fn find(name: &str, roots: &MemoryRoots) -> Result<Self, CliError> {
        let batches = LiveFolder::of(roots).read()?;
        if let Some((lane, step)) = working(&batches, true, name) {
            return Ok(Self::running(lane, step));
        }
        let last = last_step(&roots.trajectory, name)?;
        // One whose harness died has no row before the next batch.
        if let Some((lane, step)) = working(&batches, false, name)
            && last
                .as_ref()
                .is_none_or(|row| row.generation < Some(step.generation))
        {
            return Ok(Self::running(lane, step));
        }
        if let Some(row) = last {
            return Ok(Self::ended(row));
        }
        match last_of_lane(&batches, name) {
            Some(outcome) => Self::of_outcome(outcome, roots),
            None => Err(none(name, roots)?),
        }
    }

    fn running(lane: &LiveLane, step: &LiveStep) -> Self {
        Self {
            issue_id: step.issue_id.clone(),
            step_id: step.step_id.clone(),
            worker_id: Some(lane.worker_id.clone()),
            agent: step.provider.clone(),
            worktree: Some(PathBuf::from(&lane.worktree)),
            row: None,
        }
    }

    fn ended(row: StepRow) -> Self {
        Self {
            issue_id: row.issue_id.clone().unwrap_or_else(|| "".into()),
            step_id: row.step_id.clone(),
            worker_id: row.worker_id.clone(),
            agent: row.agent.as_ref().map(|agent| agent.adapter.clone()),
            worktree: None,
            row: Some(row),
        }
    }

    fn of_outcome(outcome: &LiveOutcome, roots: &MemoryRoots) -> Result<Self, CliError> {
        let row = last_step(&roots.trajectory, &outcome.issue_id)?;
        let row = row.filter(|row| row.step_id == outcome.step_id);
        Ok(match row {
            Some(row) => Self::ended(row),
            None => Self {
                issue_id: outcome.issue_id.clone(),
                step_id: outcome.step_id.clone(),
                worker_id: Some(outcome.worker_id.clone()),
                agent: None,
                worktree: None,
                row: None,
            },
        })
    }

    /// Returns whether it runs now.
    ///
    /// # Errors
    ///
    /// [`CliError`] where what batches publish cannot be read.
    pub(crate) fn runs(&self, roots: &MemoryRoots) -> Result<bool, CliError> {
        let batches = LiveFolder::of(roots).read()?;
        let mut running = batches.iter().filter(|batch| is_running(batch));
        Ok(running.any(|batch| {
            let mut steps = batch.lanes.iter().filter_map(|lane| lane.step.as_ref());
            steps.any(|step| step.step_id == self.step_id)
        }))
    }
}

/// Returns the attempt of an issue, or of a lane, in the batches that run or in those that
/// died.
fn working<'a>(
    batches: &'a [LiveBatch],
    runs: bool,
    name: &str,
) -> Option<(&'a LiveLane, &'a LiveStep)> {
    let batches = batches.iter();
    let batches = batches.filter(|batch| batch.ended_at.is_none() && is_running(batch) == runs);
    let lanes = batches.flat_map(|batch| &batch.lanes);
    let working: Vec<_> = lanes
        .filter_map(|lane| Some((lane, lane.step.as_ref()?)))
        .collect();
    let of_issue = working.iter().find(|(_, step)| *step.issue_id == *name);
    let of_lane = || working.iter().find(|(lane, _)| is_lane(lane, name));
    of_issue.or_else(of_lane).copied()
}

/// Returns whether a lane has a name: its worker's, or that of its folder.
fn is_lane(lane: &LiveLane, name: &str) -> bool {
    let folder = Path::new(&lane.worktree).file_name();
    *lane.worker_id == *name || folder.is_some_and(|folder| folder == name)
}

/// Returns the last attempt that a lane ended, by what batches published.
fn last_of_lane<'a>(batches: &'a [LiveBatch], name: &str) -> Option<&'a LiveOutcome> {
    let of_batch = |batch: &'a LiveBatch| {
        let lane = batch.lanes.iter().find(|lane| is_lane(lane, name))?;
        let outcomes = batch.outcomes.iter();
        outcomes
            .filter(|outcome| outcome.worker_id == lane.worker_id)
            .max_by_key(|outcome| outcome.at.time())
    };
    batches.iter().find_map(of_batch)
}

/// Returns why there is no attempt.
fn none(name: &str, roots: &MemoryRoots) -> Result<CliError, CliError> {
    let is_issue = roots.issues.exists()
        && paths::open(&roots.issues, false)?.view(|view| view.row(name).is_some())?;
    let refusal = match is_issue {
        true => LeaseRefusal {
            class: FailureClass::LeaseNotFound,
            detail: format!("issue {name} has no attempt yet"),
        },
        false => LeaseRefusal {
            detail: format!("no issue and no lane {name}"),
            ..no_such(name)
        },
    };
    Ok(CliError::Change(ChangeError::Refused(refusal)))
}
