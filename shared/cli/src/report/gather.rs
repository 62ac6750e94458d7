//! Reads what a report and the history of an issue are made from: the run log, the
//! witnesses and the output of its steps, the issue store, and git.

use crate::error::CliError;
use crate::failure::{LastFailure, document};
use crate::paths;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::roots::MemoryRoots;
use premath_memory::{artifact, each_row};
use premath_view::report::{
    ChangeSize, IssueFacts, LogIndex, ReportInput, ReportScope, StepFacts, WhichBatches, branches,
};
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
        let mut index = LogIndex::default();
        each_row(path, |number, row| index.observe(number, &row))?;
        let Some(scope) = ReportScope::of(&index, which, issue) else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        let unreadable_rows = each_row(path, |number, row| {
            if scope.takes(&row) {
                rows.push((number, row));
            }
        })?;
        let target = index.target().unwrap_or("HEAD");
        let steps = rows
            .iter()
            .filter(|(_, row)| row.action == action::WORKER_LOOP);
        let steps = steps.map(|(number, row)| (*number, self.step(row, target)));
        Ok(Some(ReportInput {
            run_log: self.shown(path),
            steps: steps.collect(),
            issues: self.titles(&rows),
            index,
            scope,
            rows,
            unreadable_rows,
        }))
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
        let failure = LastFailure::read(row, self.roots);
        let commit = self.commit(row);
        let change = match (&self.history, &commit) {
            (Some(history), Some(commit)) => history.change_of(commit),
            (Some(history), None) => {
                let branches = branches(row.salvage.as_deref());
                let branch = branches.first();
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
            witnesses: self.witnesses(row),
            commit,
            change: change.map(size),
        }
    }

    /// Returns the commit that holds a step's work, as its witness says; where that is
    /// gone, as its row says.
    fn commit(&self, row: &StepRow) -> Option<String> {
        if !row.succeeded() {
            return None;
        }
        let path = artifact::of_step(
            &self.roots.witnesses,
            &row.step_id,
            WitnessRef::CLOSE,
            "json",
        );
        let in_row = row.landing.as_ref().map(|landing| landing.commit.clone());
        let commit = match document(&self.roots.repository, &path) {
            // The row is chained, and the witness is a file.
            Some(witness) => {
                let commit = witness["commit"].as_str()?.to_owned();
                in_row.or(Some(commit))
            }
            None => in_row,
        };
        commit.filter(|commit| is_commit(commit))
    }

    /// Names the files of a step's witnesses that are there.
    fn witnesses(&self, row: &StepRow) -> Vec<String> {
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

fn size(size: DiffSize) -> ChangeSize {
    ChangeSize {
        files: size.files,
        added: size.added,
        deleted: size.deleted,
    }
}

/// Returns whether a text is the name of a commit.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
