//! Reads what a report and the history of an issue are made from: the run log, the
//! witnesses and the output of its steps, the issue store, and git.

use crate::error::CliError;
use crate::failure::LastFailure;
use crate::paths;
use crate::salvage::kept;
use premath_kernel::json::id::{IssueId, is_commit};
use premath_kernel::json::reference::RefSet;
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::salvage;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::roots::MemoryRoots;
use premath_memory::step_failure::LeftFiles;
use premath_memory::{BackBounds, GlancedRow, LinePlace, artifact, each_glance, rows_back};
use premath_view::report::{
    ChangeSize, IssueFacts, LogIndex, ReportInput, ReportScope, StepFacts, WhichBatches,
    listed_steps,
};
use premath_worktree::diff::CommitDiff;
use premath_worktree::history::{DiffSize, History};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a repository that say what its batches did.
pub(crate) struct Sources<'a> {
    roots: &'a MemoryRoots,
    issues: &'a Path,
    /// Absent where the folder is not in a repository of git.
    history: Option<History>,
}

impl<'a> Sources<'a> {
    pub(crate) fn of(roots: &'a MemoryRoots, issues: &'a Path) -> Self {
        Self {
            roots,
            issues,
            history: History::open(&roots.repository, None).ok(),
        }
    }

    /// Reads what a report is made from; `None` where there is no such batch, or none
    /// that did work.
    ///
    /// # Errors
    ///
    /// The run log cannot be read.
    pub(crate) fn input(
        &self,
        which: &WhichBatches,
        issue: Option<IssueId>,
    ) -> Result<Option<ReportInput>, CliError> {
        let path = &self.roots.trajectory;
        let Some(which) = named(which, path)? else {
            return Ok(None);
        };
        let ahead = ReportScope::ahead(&which, issue.clone());
        let Scanned {
            index,
            mut rows,
            unreadable_rows,
            places,
        } = Scanned::of(path, ahead.as_ref())?;
        let Some(scope) = ReportScope::of(&index, &which, issue) else {
            return Ok(None);
        };
        if ahead.is_none()
            && let Some(first) = scope.first_row(&index)
        {
            // Which batches did something since then was known at the end alone.
            each_glance(path, before(&places, first), |row| {
                take(&scope, row, &mut rows)
            })?;
        }
        self.leave_out_gone_branches(&mut rows);
        let target = index.target().unwrap_or("HEAD");
        Ok(Some(ReportInput {
            run_log: self.shown(path),
            steps: self.steps(&rows, target),
            issues: self.titles(&rows),
            index,
            scope,
            rows,
            unreadable_rows,
        }))
    }

    /// Removes deleted branches from the salvage of rows: a report has a command for each.
    fn leave_out_gone_branches(&self, rows: &mut [(u64, StepRow)]) {
        let Ok(commits) = CommitDiff::open(&self.roots.repository) else {
            return;
        };
        for (_, row) in rows {
            let named = row.salvage.take();
            row.salvage = named.and_then(|named| kept(named, &commits));
        }
    }

    /// Reads what the steps left that a report lists.
    fn steps(&self, rows: &[(u64, StepRow)], target: &str) -> BTreeMap<u64, StepFacts> {
        let wanted = listed_steps(rows);
        let steps: Vec<&StepRow> = wanted.iter().map(|(_, row)| *row).collect();
        let left = LeftFiles::of(&steps, self.roots);
        let facts = wanted
            .into_iter()
            .map(|(number, row)| (number, self.step_with(row, target, &left)));
        facts.collect()
    }

    /// Returns the titles of the issues that rows name; where the issue store cannot be
    /// read, the report has none.
    fn titles(&self, rows: &[(u64, StepRow)]) -> BTreeMap<IssueId, IssueFacts> {
        let ids: BTreeSet<&IssueId> = rows
            .iter()
            .filter_map(|(_, row)| row.issue_id.as_ref())
            .collect();
        let titles = paths::open(self.issues, false).and_then(|memory| {
            Ok(memory.view(|view| {
                let found = ids.iter().filter_map(|id| Some((*id, view.row(id)?)));
                let facts = found.map(|(id, row)| {
                    let facts = IssueFacts {
                        title: row.text_of("title"),
                        status: row.issue.status.as_str().to_owned(),
                    };
                    (id.clone(), facts)
                });
                facts.collect()
            })?)
        });
        titles.unwrap_or_default()
    }

    /// Reads what is known about a step beside its row. `target` is the branch that salvaged
    /// work is compared with.
    pub(crate) fn step(&self, row: &StepRow, target: &str) -> StepFacts {
        self.step_with(row, target, &LeftFiles::default())
    }

    fn step_with(&self, row: &StepRow, target: &str, left: &LeftFiles) -> StepFacts {
        let failure = LastFailure::read_with(row, self.roots, left);
        let commit = self.commit(row, left);
        let change = match (&self.history, &commit) {
            (Some(history), Some(commit)) => history.change_of(commit),
            (Some(history), None) => {
                let branch = row.salvage.as_deref().and_then(first_branch);
                branch.and_then(|branch| history.change_since(target, branch))
            }
            (None, _) => None,
        };
        let (said, output) = failure
            .map(|failure| (failure.said, failure.output))
            .unzip();
        StepFacts {
            said,
            output: output.flatten().map(|path| self.shown(Path::new(&path))),
            witnesses: self.witnesses(row, left),
            commit,
            change: change.map(size),
        }
    }

    /// Returns the commit that holds a step's work, as its witness says; where that is
    /// gone, as its row says.
    fn commit(&self, row: &StepRow, left: &LeftFiles) -> Option<String> {
        if !row.succeeded() {
            return None;
        }
        let path = artifact::of_step(
            &self.roots.witnesses,
            &row.step_id,
            WitnessRef::CLOSE,
            "json",
        );
        let witness = left.document(&self.roots.repository, &path);
        let commit = row.commit(witness.as_ref());
        commit.filter(|commit| is_commit(commit))
    }

    /// Names the files of a step's witnesses that are there.
    fn witnesses(&self, row: &StepRow, left: &LeftFiles) -> Vec<String> {
        let references = row.witness_refs.iter();
        let phases: BTreeSet<String> = references
            .filter_map(WitnessRef::parse)
            .filter(|reference| reference.step_id == row.step_id)
            .map(|reference| reference.phase)
            .collect();
        let folder = &self.roots.witnesses;
        let paths = phases
            .iter()
            .map(|phase| artifact::of_step(folder, &row.step_id, phase, "json"));
        paths
            .filter(|path| left.may_have(path))
            .filter(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_file()))
            .map(|path| self.shown(&path))
            .collect()
    }

    /// Names a file from the repository's root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.roots.repository).unwrap_or(path);
        below.display().to_string()
    }
}

/// What one reading of the run log found.
#[derive(Default)]
struct Scanned {
    index: LogIndex,
    /// The rows of the scope, where that was known ahead.
    rows: Vec<(u64, StepRow)>,
    unreadable_rows: Vec<u64>,
    /// Where some rows are, not far from each other.
    places: Vec<LinePlace>,
}

impl Scanned {
    fn of(path: &Path, scope: Option<&ReportScope>) -> Result<Self, CliError> {
        const APART: u64 = 64;
        let mut found = Self::default();
        let unreadable = each_glance(path, LinePlace::FIRST, |row| {
            match row.row() {
                Some(whole) => found.index.observe(row.number(), whole),
                None => found.index.observe_glance(row.number(), &row.glance()),
            }
            let last = found.places.last();
            if last.is_none_or(|last| row.number() - last.number >= APART) {
                found.places.push(row.place());
            }
            if let Some(scope) = scope {
                take(scope, row, &mut found.rows);
            }
        });
        found.unreadable_rows = unreadable?;
        Ok(found)
    }
}

/// Returns where to read from to read this row and those behind it.
fn before(places: &[LinePlace], row: u64) -> LinePlace {
    let count = places.partition_point(|place| place.number <= row);
    let place = count.checked_sub(1).and_then(|last| places.get(last));
    place.copied().unwrap_or(LinePlace::FIRST)
}

/// Takes a row that is of the scope.
fn take(scope: &ReportScope, row: GlancedRow<'_>, rows: &mut Vec<(u64, StepRow)>) {
    if scope.takes(&row.glance()) {
        let number = row.number();
        let taken = row.into_row().map(|mut row| {
            // No report says them, and they are a third of a row.
            row.lineage_refs = RefSet::new();
            row.instruction_refs = RefSet::new();
            row
        });
        rows.extend(taken.map(|row| (number, row)));
    }
}

/// Names the last batch that did work, by the end of the run log; where none did, the
/// last one that lost a lane; `None` where there is neither.
fn named(which: &WhichBatches, path: &Path) -> Result<Option<WhichBatches>, CliError> {
    if *which != WhichBatches::LastWorking {
        return Ok(Some(which.clone()));
    }
    for wanted in [action::WORKER_LOOP, action::LANE_GIVEN_UP] {
        let is_of_batch = |row: &StepRow| row.action == wanted && row.batch_id.is_some();
        let texts = [format!("\"{wanted}\"")];
        let bounds = BackBounds {
            rows: 1,
            bytes: u64::MAX,
        };
        let mut found = rows_back(path, None, &texts, is_of_batch, bounds)?.rows;
        if let Some(batch) = found.pop().and_then(|(_, row)| row.batch_id) {
            return Ok(Some(WhichBatches::Named(batch)));
        }
    }
    Ok(None)
}

fn size(size: DiffSize) -> ChangeSize {
    ChangeSize {
        files: size.files,
        added: size.added,
        deleted: size.deleted,
    }
}

/// Returns the first branch of this repository that a row names.
fn first_branch(salvage: &str) -> Option<&str> {
    salvage::branches(salvage).next()
}

#[cfg(test)]
mod tests;
