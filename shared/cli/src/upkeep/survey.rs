//! What is there: issue memory, trajectory, git and files, looked at once.

use crate::error::CliError;
use crate::paths;
use harness_worker::settings::image_cache;
use premath_kernel::issue::lease::{self, LeaseState, Observation};
use premath_kernel::policy::health::KnownRed;
use premath_kernel::policy::inventory::{
    Findings, ForeignChange, InventoryItem, IssueFacts, KnownFacts, LandedPlace, LaneLockState,
    LeaseLook, Terms, UnendedBatch, Unreadable, account,
};
use premath_kernel::policy::landing::LandingRecord;
use premath_kernel::record::trajectory::{BatchHistory, StepRow, action, known_red};
use premath_memory::leftover::{self, LaneWorktree};
use premath_memory::roots::MemoryRoots;
use premath_memory::{
    IssueRow, LineFault, StoreError, TrajectoryFileError, WorktreeLock, clock, inspect_issues,
    inspect_trajectory,
};
use premath_worktree::inventory::Inventory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A repository as it is now.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) roots: MemoryRoots,
    pub(super) inventory: Inventory,
    found: Findings,
    known: KnownFacts,
    /// The verification without any work that the run log knows as failing.
    pub(super) known_red: Option<KnownRed>,
    /// The first line that cannot be read.
    corrupt: Option<CliError>,
}

/// Returns the files of a repository, and where its issues are.
pub(super) fn roots(given: Option<&Path>) -> Result<MemoryRoots, CliError> {
    let mut roots = MemoryRoots::discover(given.unwrap_or(Path::new(".")))?;
    if given.is_none() {
        roots.issues = paths::issues(None)?;
    }
    Ok(roots)
}

/// Adds what is in folders of the lanes and of the harness.
fn add_files(roots: &MemoryRoots, inventory: &Inventory, found: &mut Findings) {
    let lanes: Vec<LaneWorktree<'_>> = found
        .worktrees
        .iter()
        .filter(|worktree| worktree.is_sound())
        .map(|worktree| LaneWorktree {
            worktree: &worktree.path,
            under_way: worktree.is_busy(),
        })
        .collect();
    let files = leftover::files(roots, &lanes, &[inventory.common_folder().join("info")]);
    found.files = files;
    found.outputs = leftover::outputs(roots);
}

/// Names the last line of each file that has a cut one.
fn cut_lines(files: [(&PathBuf, Option<u64>); 2]) -> Vec<String> {
    let named =
        |(path, line): (&PathBuf, Option<u64>)| Some(format!("{}:{}", path.display(), line?));
    files.into_iter().filter_map(named).collect()
}

/// Returns the error of the first line that cannot be read.
fn corrupt(path: &Path, faults: &[LineFault]) -> Option<StoreError> {
    faults.first().map(|fault| StoreError::Corrupt {
        path: path.to_path_buf(),
        line: fault.line,
        column: fault.column,
        detail: fault.detail.clone(),
    })
}

impl Survey {
    pub(super) fn of(roots: MemoryRoots) -> Result<Self, CliError> {
        let inventory = Inventory::open(&roots.repository)?;
        let issues = inspect_issues(&roots.issues)?;
        let trajectory = inspect_trajectory(&roots.trajectory)?;
        let steps: BTreeMap<&str, &StepRow> = trajectory
            .rows
            .iter()
            .filter(|row| row.action == action::WORKER_LOOP)
            .map(|row| (row.step_id.as_str(), row))
            .collect();
        let closed: Vec<(String, LandingRecord)> = issues
            .rows
            .values()
            .filter_map(|row| Some((row.issue.id.to_string(), landing(row, &steps)?.clone())))
            .collect();
        let named: BTreeSet<String> = closed
            .iter()
            .map(|(_, record)| record.target.clone())
            .collect();
        let targets = inventory.targets(&named);
        let mut found = inventory.find(&targets, closed)?;
        add_files(&roots, &inventory, &mut found);
        let me = clock::this_process();
        let history = BatchHistory::fold(&trajectory.rows);
        let batches = history.open().iter().map(|batch| UnendedBatch {
            id: batch.batch_id.clone(),
            lives: batch.holder.may_live(me.as_ref(), &clock::life),
        });
        let seen = clock::observe();
        let known = KnownFacts {
            is_whole: issues.faults.is_empty(),
            targets,
            batches: batches.collect(),
            issues: issues
                .rows
                .iter()
                .map(|(id, row)| (id.as_str().into(), facts(row, &steps, &seen)))
                .collect(),
            foreign: foreign(&roots.issues),
            cut: cut_lines([
                (&roots.issues, issues.cut),
                (&roots.trajectory, trajectory.cut),
            ]),
            unreadable: unreadable(&roots.issues, &issues.faults, true)
                .chain(unreadable(&roots.trajectory, &trajectory.faults, false))
                .collect(),
        };
        let corrupt = corrupt(&roots.issues, &issues.faults)
            .map(CliError::from)
            .or_else(|| {
                let error = corrupt(&roots.trajectory, &trajectory.faults)?;
                Some(TrajectoryFileError::from(error).into())
            });
        Ok(Self {
            roots,
            inventory,
            found,
            known,
            known_red: known_red(&trajectory.rows),
            corrupt,
        })
    }

    /// Refuses a survey that could not read everything: nothing is removed on a
    /// guess.
    pub(super) fn whole(&mut self) -> Result<(), CliError> {
        self.corrupt.take().map_or(Ok(()), Err)
    }

    /// Returns whether everything could be read.
    pub(super) fn is_whole(&self) -> bool {
        self.corrupt.is_none()
    }

    /// Adds the container images of the user, which all repositories share.
    pub(super) fn find_images(&mut self) {
        let cache = image_cache();
        self.found.images = cache.map_or_else(Vec::new, |cache| leftover::images(&cache));
    }

    pub(super) fn account(&self, terms: &Terms) -> Vec<InventoryItem> {
        account(&self.found, &self.known, terms)
    }

    /// Holds every free lane, so that none begins in the meantime.
    pub(super) fn hold_lanes(&self) -> Result<Vec<WorktreeLock>, CliError> {
        let worktrees = self.found.worktrees.iter();
        let free = worktrees.filter(|found| found.is_sound() && found.lane == LaneLockState::Free);
        free.map(|found| Ok(WorktreeLock::acquire(&found.path, Duration::ZERO)?))
            .collect()
    }

    /// Counts the closed issues that are on each target.
    pub(super) fn landed(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for landed in &self.found.landings {
            if landed.place == LandedPlace::Target {
                *counts.entry(landed.record.target.as_str()).or_insert(0) += 1;
            }
        }
        counts
    }

    /// Returns the bytes of artifacts, of worktrees that the harness made, and
    /// of salvage folders elsewhere.
    pub(super) fn used(&self) -> u64 {
        let made: Vec<&PathBuf> = self
            .found
            .worktrees
            .iter()
            .filter(|worktree| worktree.is_provisioned && worktree.is_sound())
            .map(|worktree| &worktree.path)
            .collect();
        let salvage = self.found.salvage.iter();
        let elsewhere = salvage
            .filter(|folder| !made.iter().any(|made| folder.path.starts_with(made)))
            .map(|folder| folder.bytes)
            .sum::<u64>();
        let artifacts = self.roots.repository.join("artifacts");
        let made: u64 = made.into_iter().map(|path| leftover::size(path)).sum();
        leftover::size(&artifacts) + made + elsewhere
    }
}

/// Returns where a closed issue's work landed, as the row of its step says.
fn landing<'a>(row: &IssueRow, steps: &BTreeMap<&str, &'a StepRow>) -> Option<&'a LandingRecord> {
    if !row.issue.status.is_terminal() {
        return None;
    }
    let step = row.issue.closed_by_step.as_deref()?;
    steps.get(step)?.landing.as_ref()
}

fn facts(row: &IssueRow, steps: &BTreeMap<&str, &StepRow>, seen: &Observation<'_>) -> IssueFacts {
    let issue = &row.issue;
    let lease = match (lease::state(Some(issue), seen), &issue.lease) {
        (LeaseState::Stale, Some(lease)) => LeaseLook::Over(lease.owner.to_string()),
        // An unreadable one may belong to a running batch.
        (
            LeaseState::Active | LeaseState::Contended | LeaseState::InvalidExpiresAt,
            Some(lease),
        ) => LeaseLook::Live(lease.generation),
        _ => LeaseLook::None,
    };
    let is_closed = issue.status.is_terminal();
    let step = issue.closed_by_step.as_deref();
    IssueFacts {
        status: issue.status.as_str().to_owned(),
        is_closed,
        lease,
        is_closed_by_step: step.is_some(),
        unrecorded: step
            .filter(|step| is_closed && !steps.contains_key(step))
            .map(str::to_owned),
        has_landed: landing(row, steps).is_some(),
    }
}

/// Returns the rows that changed outside a transaction. Issue memory that is
/// missing or cannot be read is reported as such elsewhere.
fn foreign(issues: &Path) -> Vec<ForeignChange> {
    let found = paths::open(issues, false).and_then(|memory| Ok(memory.look_for_foreign_rows()?));
    let change = |row: premath_memory::ForeignRow| ForeignChange {
        summary: row.summary(),
        issue: row.issue_id,
        first_seen: row.first_seen,
    };
    let rows = found.unwrap_or_default();
    rows.into_iter().map(change).collect()
}

fn unreadable(
    path: &Path,
    faults: &[LineFault],
    is_issue: bool,
) -> impl Iterator<Item = Unreadable> {
    faults.iter().map(move |fault| Unreadable {
        place: format!("{}:{}:{}", path.display(), fault.line, fault.column),
        detail: fault.detail.clone(),
        is_issue,
    })
}
