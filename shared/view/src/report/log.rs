//! The run log as a report looks at it: first for its batches, then for the rows
//! of those that it is about.

use super::STEPS_LISTED;
use jiff::Timestamp;
use premath_kernel::json::id::{BatchId, IssueId, StepId};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::trajectory::{RowGlance, RowOutcome, StepRow, action};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A batch of the run log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoggedBatch {
    pub(super) batch_id: BatchId,
    pub(super) first_row: u64,
    pub(super) last_row: u64,
    pub(super) started_at: Stamp,
    /// The end of its last row.
    pub(super) last_at: Stamp,
    /// The row that closed it, with its result.
    pub(super) end: Option<(u64, String)>,
    pub(super) resumptions: u32,
    /// What a person must know of its end, with its classes.
    pub(super) notes: Option<String>,
    pub(super) classes: Vec<String>,
    /// The lanes that were disabled in it, with the reasons.
    pub(super) lost_lanes: Vec<String>,
    /// How many attempts ended in it, those that were cut short included.
    pub(super) steps: u64,
    /// The row of the last of them.
    last_step: u64,
}

/// The batches of a run log, and how often each issue was tried. A fold over the
/// rows, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogIndex {
    batches: Vec<LoggedBatch>,
    /// This map, `attempts` and `reviewed` are looked up and never iterated.
    by_id: HashMap<BatchId, usize>,
    attempts: HashMap<IssueId, AttemptCounts>,
    target: Option<String>,
    /// The rows of reviews, by the reference of the step that they are about.
    reviewed: HashMap<String, ReviewedRow>,
    /// The first step without a batch.
    first_alone: Option<u64>,
}

/// How often an issue was tried in all batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AttemptCounts {
    all: u64,
    /// Those that did not close it.
    failed: u64,
}

/// What an operator decided about the work of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedRow {
    /// The line of the run log that proves it.
    pub row: u64,
    /// The decision: `accepted`, `reopened` or `reverted`.
    pub decision: String,
}

/// Says which lane was disabled, and why.
pub(super) fn of_lane(row: &StepRow) -> String {
    let worker = row.worker_id.as_ref().map(|id| id.to_string());
    let parts: Vec<String> = [worker, row.next_step.clone()]
        .into_iter()
        .flatten()
        .collect();
    parts.join(": ")
}

/// Returns the reference of a step, as rows name it.
pub fn step_ref(step_id: &StepId) -> String {
    format!("trajectory://step/{step_id}")
}

impl LogIndex {
    /// Takes in the next row.
    pub fn observe(&mut self, number: u64, row: &StepRow) {
        if row.action == action::REVIEWED {
            for reference in row.lineage_refs.iter() {
                let reviewed = ReviewedRow {
                    row: number,
                    decision: row.result_class.clone(),
                };
                self.reviewed.insert(reference.to_owned(), reviewed);
            }
        }
        self.observe_glance(number, &RowGlance::from(row));
        let index = row.batch_id.as_ref().and_then(|id| self.by_id.get(id));
        let Some(batch) = index.and_then(|index| self.batches.get_mut(*index)) else {
            return;
        };
        match row.action.as_str() {
            action::BATCH_END => {
                batch.notes.clone_from(&row.next_step);
                batch.classes.clone_from(&row.failure_classes);
            }
            action::LANE_GIVEN_UP => batch.lost_lanes.push(of_lane(row)),
            _ => {}
        }
    }

    /// Takes in the next row, which is not of a review, a batch's end or a lost lane.
    pub fn observe_glance(&mut self, number: u64, row: &RowGlance<'_>) {
        let is_step = row.action == action::WORKER_LOOP;
        if let Some(issue) = row.issue_id.filter(|_| row.is_attempt) {
            let has_failed = RowOutcome::of(row.result_class) != RowOutcome::Completed;
            let add = |counts: &mut AttemptCounts| {
                counts.all += 1;
                counts.failed += u64::from(has_failed);
            };
            match self.attempts.get_mut(issue) {
                Some(counts) => add(counts),
                None => add(self.attempts.entry(issue.into()).or_default()),
            }
        }
        let target = row.landed_on.filter(|_| is_step);
        if target.is_some_and(|target| self.target.as_deref() != Some(target)) {
            self.target = target.map(str::to_owned);
        }
        let Some(batch_id) = row.batch_id else {
            if is_step {
                self.first_alone.get_or_insert(number);
            }
            return;
        };
        let index = match self.by_id.get(batch_id) {
            Some(index) => *index,
            None => self.begin(number, batch_id.into(), row),
        };
        let batch = &mut self.batches[index];
        batch.last_row = number;
        batch.last_at = row.finished_at.into();
        match row.action {
            action::BATCH_RESUME => {
                batch.resumptions = batch.resumptions.saturating_add(1);
                batch.end = None;
            }
            action::BATCH_END | action::DISPATCH_REFUSED => {
                batch.end = Some((number, row.result_class.to_owned()))
            }
            _ if is_step => {
                batch.steps += 1;
                batch.last_step = number;
            }
            _ => {}
        }
    }

    /// Adds a batch by its first row, and returns its place.
    fn begin(&mut self, number: u64, batch_id: BatchId, row: &RowGlance<'_>) -> usize {
        let index = self.batches.len();
        self.by_id.insert(batch_id.clone(), index);
        self.batches.push(LoggedBatch {
            batch_id,
            first_row: number,
            last_row: number,
            started_at: row.started_at.unwrap_or(row.finished_at).into(),
            last_at: row.finished_at.into(),
            end: None,
            resumptions: 0,
            notes: None,
            classes: Vec::new(),
            lost_lanes: Vec::new(),
            steps: 0,
            last_step: 0,
        });
        index
    }

    /// Returns the batches, in the order in which they began.
    pub(super) fn batches(&self) -> &[LoggedBatch] {
        &self.batches
    }

    pub(super) fn batch(&self, batch_id: &BatchId) -> Option<&LoggedBatch> {
        Some(&self.batches[*self.by_id.get(batch_id)?])
    }

    /// Returns how many attempts an issue had in all batches.
    pub(super) fn attempts(&self, issue_id: &IssueId) -> u64 {
        self.attempts.get(issue_id).map_or(0, |counts| counts.all)
    }

    /// Returns how many of them failed.
    pub(super) fn failed_attempts(&self, issue_id: &IssueId) -> u64 {
        self.attempts
            .get(issue_id)
            .map_or(0, |counts| counts.failed)
    }

    /// Returns the last decision of an operator about the work of a step.
    pub(super) fn reviewed(&self, step_id: &StepId) -> Option<&ReviewedRow> {
        self.reviewed.get(&step_ref(step_id))
    }

    /// Returns the branch that work landed on last.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Returns the last batch that did work.
    fn last_working(&self) -> Option<&LoggedBatch> {
        let working = self.batches.iter().filter(|batch| batch.steps > 0);
        working.max_by_key(|batch| batch.last_step)
    }
}

/// Returns the steps whose files a report lists: the latest of each issue.
pub fn listed_steps(rows: &[(u64, StepRow)]) -> Vec<(u64, &StepRow)> {
    let mut counts = BTreeMap::<&IssueId, usize>::new();
    let mut listed = Vec::new();
    let steps = rows.iter().rev();
    for (number, row) in steps.filter(|(_, row)| row.action == action::WORKER_LOOP) {
        let Some(id) = row.issue_id.as_ref() else {
            continue;
        };
        let count = counts.entry(id).or_default();
        *count += 1;
        if *count <= STEPS_LISTED {
            listed.push((*number, row));
        }
    }
    listed
}

/// Which batches a report is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichBatches {
    /// The last one that did work.
    LastWorking,
    /// This one.
    Named(BatchId),
    /// Those that did something from then on.
    Since(Timestamp),
    /// All of them.
    All,
}

/// The batches that a report is about, and of which issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportScope {
    batches: Vec<BatchId>,
    /// The same, to look up.
    known: BTreeSet<BatchId>,
    /// Whether every batch belongs to it.
    every: bool,
    /// From when on rows without a batch count; none of them counts without it.
    alone_since: Option<Timestamp>,
    issue: Option<IssueId>,
}

impl ReportScope {
    /// Returns the scope of a report; `None` where there is no such batch, or none
    /// that did work.
    pub fn of(index: &LogIndex, which: &WhichBatches, issue: Option<IssueId>) -> Option<Self> {
        let ids = |batches: &mut dyn Iterator<Item = &LoggedBatch>| -> Vec<BatchId> {
            batches.map(|batch| batch.batch_id.clone()).collect()
        };
        let (batches, alone_since) = match which {
            WhichBatches::LastWorking => (vec![index.last_working()?.batch_id.clone()], None),
            WhichBatches::Named(id) => (vec![index.batch(id)?.batch_id.clone()], None),
            WhichBatches::Since(from) => {
                let since = |batch: &&LoggedBatch| batch.last_at.time() >= *from;
                (ids(&mut index.batches.iter().filter(since)), Some(*from))
            }
            WhichBatches::All => (ids(&mut index.batches.iter()), Some(Timestamp::MIN)),
        };
        Some(Self {
            known: batches.iter().cloned().collect(),
            every: *which == WhichBatches::All,
            batches,
            alone_since,
            issue,
        })
    }

    /// Returns which rows a report takes, where that is known before the run log is
    /// read.
    pub fn ahead(which: &WhichBatches, issue: Option<IssueId>) -> Option<Self> {
        let (batches, alone_since) = match which {
            WhichBatches::Named(id) => (vec![id.clone()], None),
            WhichBatches::All => (Vec::new(), Some(Timestamp::MIN)),
            WhichBatches::LastWorking | WhichBatches::Since(_) => return None,
        };
        Some(Self {
            known: batches.iter().cloned().collect(),
            every: *which == WhichBatches::All,
            batches,
            alone_since,
            issue,
        })
    }

    /// Returns whether a row belongs to it.
    pub fn takes(&self, row: &RowGlance<'_>) -> bool {
        let is_step = row.action == action::WORKER_LOOP;
        if self.issue.is_some() && (!is_step || row.issue_id != self.issue.as_deref()) {
            return false;
        }
        match row.batch_id {
            Some(id) => self.every || self.known.contains(id),
            None => {
                let since = self.alone_since;
                is_step && since.is_some_and(|since| row.finished_at.time() >= since)
            }
        }
    }

    /// Returns a row before which no row belongs to it; `None` where none does.
    pub fn first_row(&self, index: &LogIndex) -> Option<u64> {
        let batches = self.batches.iter().filter_map(|id| index.batch(id));
        let alone = index.first_alone.filter(|_| self.alone_since.is_some());
        batches.map(|batch| batch.first_row).chain(alone).min()
    }

    pub(super) fn batches(&self) -> &[BatchId] {
        &self.batches
    }

    pub(super) const fn issue(&self) -> Option<&IssueId> {
        self.issue.as_ref()
    }
}
