//! Makes a report from what was read.

use super::attempt::{AttemptOutcome, AttemptView, StepFacts, between_ms};
use super::log::{LogIndex, LoggedBatch, ReportScope, of_lane};
use super::{
    ReportView, ReportedAgent, ReportedBatch, ReportedDenial, ReportedEvent, ReportedIssue,
    ReportedLane, ReportedSalvage, ReviewItem, STEPS_LISTED, Totals, UsageView, cluster, next,
    risk,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::natural;
use premath_kernel::json::id::{BatchId, IssueId, WorkerName};
use premath_kernel::record::salvage;
use premath_kernel::record::trajectory::{Account, RowOutcome, StepRow, action};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What the issue store says about an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueFacts {
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: String,
}

/// What a report is made from.
#[derive(Debug)]
pub struct ReportInput {
    /// The name of the run log.
    pub run_log: String,
    /// The batches of the run log.
    pub index: LogIndex,
    /// What the report is about.
    pub scope: ReportScope,
    /// The rows that it is about, with their numbers, in the order of the file.
    pub rows: Vec<(u64, StepRow)>,
    /// What else is known about them, by number.
    pub steps: BTreeMap<u64, StepFacts>,
    /// The issues that they name.
    pub issues: BTreeMap<IssueId, IssueFacts>,
    /// The lines that cannot be read.
    pub unreadable_rows: Vec<u64>,
}

impl ReportInput {
    /// Makes the report.
    pub fn report(self) -> ReportView {
        let mut report = self.whole();
        for issue in report.failed.iter_mut().chain(&mut report.closed) {
            let earlier = issue.steps.len().saturating_sub(STEPS_LISTED);
            issue.steps.drain(..earlier);
            issue.earlier_steps = earlier.try_into().unwrap_or(u64::MAX);
        }
        report
    }

    /// Makes the report with every attempt listed.
    fn whole(mut self) -> ReportView {
        let target = self.index.target().unwrap_or("HEAD").to_owned();
        let batches = self.batches();
        let salvage = self.salvage(&target);
        let rows = self.rows.iter();
        let events = rows.filter_map(|(n, row)| event(*n, row)).collect();
        let failed_tip = failed_tip(&self.rows);
        let mut account = Account::default();
        self.rows.iter().for_each(|(_, row)| account.observe(row));
        let issues = self.reported_issues(&target);
        let (closed, failed): (Vec<_>, Vec<_>) = issues
            .into_iter()
            .partition(|issue| issue.outcome == AttemptOutcome::Closed);
        let all: Vec<&ReportedIssue> = failed.iter().chain(&closed).collect();
        let review = self.review(&all, &target);
        let landed_on = closed.iter().find_map(|issue| issue.landed_on.as_deref());
        let failures = all.iter().flat_map(|issue| {
            let steps = issue.steps.iter().filter(|step| is_failure(step));
            steps.map(|step| (&issue.issue_id, step))
        });
        let later = self.later();
        let is_empty = |batch: &ReportedBatch| {
            batch.result.as_deref() == Some("completed") && batch.notes.is_none()
        };
        let not_taken_back = FailureClass::LandingNotTakenBack.as_str();
        let is_broken = |batch: &ReportedBatch| {
            let mut classes = batch.failure_classes.iter();
            classes.any(|class| class == not_taken_back)
        };
        let is_mergeable = failed_tip.is_none() && !batches.iter().chain(&later).any(is_broken);
        ReportView {
            issue_id: self.scope.issue().cloned(),
            batches,
            later_empty_batches: count(later.iter().filter(|batch| is_empty(batch))),
            later_batches: later.into_iter().filter(|batch| !is_empty(batch)).collect(),
            totals: totals(&failed, &closed, salvage.len(), &account),
            clusters: cluster::clusters(failures),
            agents: agents(&all),
            lanes: lanes(&all),
            denials: denials(&all),
            events,
            next: next::of_report(&failed, review.len(), landed_on.filter(|_| is_mergeable)),
            failed_tip,
            salvage,
            review,
            failed,
            closed,
            run_log: self.run_log,
            unreadable_rows: self.unreadable_rows,
        }
    }

    /// Returns the batches of the scope; of an issue, those that worked on it.
    fn batches(&self) -> Vec<ReportedBatch> {
        let worked: BTreeSet<&BatchId> = self
            .rows
            .iter()
            .filter_map(|(_, row)| row.batch_id.as_ref())
            .collect();
        let is_of = |id: &&BatchId| self.scope.issue().is_none() || worked.contains(id);
        let ids = self.scope.batches().iter().filter(is_of);
        let batches = ids.filter_map(|id| self.index.batch(id));
        batches.map(reported_batch).collect()
    }

    /// Returns the batches without an attempt after the last one of the report.
    fn later(&self) -> Vec<ReportedBatch> {
        let last = self.scope.batches().last();
        let Some(last) = last.and_then(|id| self.index.batch(id)) else {
            return Vec::new();
        };
        let later = self.index.batches().iter();
        let later = later.filter(|batch| batch.steps == 0 && batch.first_row > last.first_row);
        later.map(reported_batch).collect()
    }

    /// Gathers the attempts by issue, by id. A row is given up for its attempt.
    fn reported_issues(&mut self, target: &str) -> Vec<ReportedIssue> {
        let mut by_issue = BTreeMap::<IssueId, Vec<AttemptView>>::new();
        for (number, row) in std::mem::take(&mut self.rows) {
            let Some(id) = row.issue_id.as_ref().filter(|_| is_step(&row)) else {
                continue;
            };
            let facts = self.steps.remove(&number).unwrap_or_default();
            let attempt = AttemptView::of(number, &row, facts);
            by_issue.entry(id.clone()).or_default().push(attempt);
        }
        let mut issues: Vec<ReportedIssue> = by_issue
            .into_iter()
            .filter_map(|(id, steps)| self.issue(id, steps, target))
            .collect();
        issues.sort_by(|a, b| natural::compare(&a.issue_id, &b.issue_id));
        issues
    }

    fn issue(&self, id: IssueId, steps: Vec<AttemptView>, target: &str) -> Option<ReportedIssue> {
        let last = steps.last()?;
        let known = self.issues.get(&id);
        let attempts = count(steps.iter().filter(|step| step.counts));
        let agents: BTreeSet<&String> = steps
            .iter()
            .filter_map(|step| step.agent.as_ref())
            .collect();
        let salvage = steps.iter().rev().flat_map(AttemptView::salvage_branches);
        let mut issue = ReportedIssue {
            title: known.map(|known| known.title.clone()),
            status: known.map(|known| known.status.clone()),
            outcome: last.outcome,
            failure_class: last.failure_classes.first().cloned(),
            said: last.said.clone(),
            attempts,
            attempts_in_all: self.index.attempts(&id).max(attempts),
            duration_ms: steps.iter().filter_map(|step| step.duration_ms).sum(),
            usage: UsageView::of(&steps),
            agents: agents.into_iter().cloned().collect(),
            repair_rounds: steps.iter().map(|step| step.repair_rounds).sum(),
            denials: steps.iter().map(AttemptView::denied).sum(),
            change: last.change,
            commit: last.commit.clone(),
            landed_on: last.landed_on.clone(),
            salvage_branches: salvage.map(str::to_owned).collect(),
            sensitive_changes: last.sensitive_changes.clone(),
            next: Vec::new(),
            issue_id: id,
            steps,
            earlier_steps: 0,
        };
        if issue.outcome != AttemptOutcome::Closed {
            issue.next = next::of_failed(&issue, target);
        }
        Some(issue)
    }

    /// Orders what is to be reviewed: what landed first, then by score, by size and
    /// by id.
    fn review(&self, issues: &[&ReportedIssue], target: &str) -> Vec<ReviewItem> {
        let mut items: Vec<ReviewItem> = issues
            .iter()
            .filter_map(|issue| self.review_item(issue, target))
            .collect();
        items.sort_by(|a, b| {
            let key = |item: &ReviewItem| {
                let lines = item.change.map_or(0, super::ChangeSize::lines);
                (Reverse(item.closed), Reverse(item.score), Reverse(lines))
            };
            let by_key = key(a).cmp(&key(b));
            by_key.then_with(|| natural::compare(&a.issue_id, &b.issue_id))
        });
        for (item, place) in items.iter_mut().zip(1..) {
            item.place = place;
        }
        items
    }

    fn review_item(&self, issue: &ReportedIssue, target: &str) -> Option<ReviewItem> {
        let last = issue.steps.last()?;
        let closed = issue.outcome == AttemptOutcome::Closed;
        let revision = match closed {
            true => issue.commit.as_ref()?,
            false => issue.salvage_branches.first()?,
        };
        let failed = self.index.failed_attempts(&issue.issue_id);
        let earlier = failed.saturating_sub(u64::from(last.counts && !closed));
        let reasons = risk::reasons(&issue.steps, earlier);
        Some(ReviewItem {
            place: 0,
            issue_id: issue.issue_id.clone(),
            title: issue.title.clone(),
            closed,
            score: reasons.iter().map(|reason| reason.points).sum(),
            reasons,
            change: issue.change,
            command: match closed {
                true => next::show_commit(revision),
                false => next::show_branch(target, revision),
            },
            revision: revision.clone(),
            step_id: last.step_id.clone(),
            reviewed: self.index.reviewed(&last.step_id).cloned(),
            row: last.row,
        })
    }

    fn salvage(&self, target: &str) -> Vec<ReportedSalvage> {
        let rows = self.rows.iter();
        let kept = rows.filter_map(|(number, row)| {
            let kept_at = row.salvage.clone()?;
            let commands =
                salvage::branches(&kept_at).map(|branch| next::show_branch(target, branch));
            Some(ReportedSalvage {
                issue_id: row.issue_id.clone(),
                row: *number,
                commands: commands.collect(),
                kept_at,
            })
        });
        kept.collect()
    }
}

fn totals(
    failed: &[ReportedIssue],
    closed: &[ReportedIssue],
    salvaged: usize,
    account: &Account,
) -> Totals {
    let all = || failed.iter().chain(closed);
    let mut totals = Totals {
        issues: count(all()),
        closed: count(closed),
        failed: count(failed),
        attempts: all().map(|issue| issue.attempts).sum(),
        retried: count(all().filter(|issue| issue.attempts > 1)),
        repaired: count(all().filter(|issue| issue.repair_rounds > 0)),
        repair_rounds: all().map(|issue| issue.repair_rounds).sum(),
        landed: count(closed.iter().filter(|issue| issue.landed_on.is_some())),
        unchanged: count(closed.iter().filter(|issue| issue.commit.is_none())),
        salvaged: salvaged.try_into().unwrap_or(u64::MAX),
        denials: all().map(|issue| issue.denials).sum(),
        duration_ms: all().map(|issue| issue.duration_ms).sum(),
        usage: UsageView::of(all().flat_map(|issue| &issue.steps)),
        ..Totals::default()
    };
    let is_flaky = |issue: &&ReportedIssue| {
        let mut steps = issue.steps.iter();
        steps.any(|step| step.flaky_verifications > 0)
    };
    totals.flaky = count(all().filter(is_flaky));
    let steps = count(all().flat_map(|issue| &issue.steps));
    totals.cut_attempts = steps.saturating_sub(totals.attempts);
    for issue in failed {
        let outcome = issue.outcome.word().to_owned();
        *totals.failed_by_outcome.entry(outcome).or_default() += 1;
        let class = issue.failure_class.as_deref().unwrap_or("unknown");
        *totals.failed_by_class.entry(class.to_owned()).or_default() += 1;
    }
    totals.closes = account.closes();
    totals
}

fn count<T>(items: impl IntoIterator<Item = T>) -> u64 {
    items.into_iter().count().try_into().unwrap_or(u64::MAX)
}

fn is_step(row: &StepRow) -> bool {
    row.action == action::WORKER_LOOP
}

fn is_failure(step: &AttemptView) -> bool {
    step.counts && step.outcome != AttemptOutcome::Closed
}

fn reported_batch(batch: &LoggedBatch) -> ReportedBatch {
    ReportedBatch {
        batch_id: batch.batch_id.clone(),
        started_at: batch.started_at.clone(),
        ended_at: batch.end.as_ref().map(|_| batch.last_at.clone()),
        duration_ms: between_ms(batch.started_at.time(), batch.last_at.time()),
        result: batch.end.as_ref().map(|(_, result)| result.clone()),
        resumptions: batch.resumptions,
        notes: batch.notes.clone(),
        failure_classes: batch.classes.clone(),
        lost_lanes: batch.lost_lanes.clone(),
        steps: batch.steps,
        first_row: batch.first_row,
        last_row: batch.last_row,
    }
}

/// Returns what the last verification without build state found, where it failed.
fn failed_tip(rows: &[(u64, StepRow)]) -> Option<String> {
    let mut rows = rows.iter().rev().map(|(_, row)| row);
    let last = rows.find(|row| row.action == action::TIP_VERIFIED)?;
    let has_failed = RowOutcome::of(&last.result_class) != RowOutcome::Completed;
    has_failed.then(|| {
        let text = last.next_step.as_ref();
        text.map_or_else(|| last.failure_classes.join(", "), Clone::clone)
    })
}

fn agents(issues: &[&ReportedIssue]) -> Vec<ReportedAgent> {
    let mut found = BTreeMap::<(Option<String>, Option<String>), ReportedAgent>::new();
    for step in issues.iter().flat_map(|issue| &issue.steps) {
        let key = (step.agent.clone(), step.model.clone());
        let agent = found.entry(key).or_insert_with(|| ReportedAgent {
            agent: step.agent.clone(),
            model: step.model.clone(),
            steps: 0,
            closed: 0,
            calls: 0,
            repair_rounds: 0,
            denials: 0,
            usage: UsageView::default(),
        });
        agent.steps += 1;
        agent.closed += u64::from(step.outcome == AttemptOutcome::Closed);
        agent.calls = agent.calls.saturating_add(step.calls.unwrap_or(0));
        agent.repair_rounds = agent.repair_rounds.saturating_add(step.repair_rounds);
        agent.denials = agent.denials.saturating_add(step.denied());
        agent.usage.add(step);
    }
    found.into_values().collect()
}

fn lanes(issues: &[&ReportedIssue]) -> Vec<ReportedLane> {
    let mut found = BTreeMap::<WorkerName, ReportedLane>::new();
    for step in issues.iter().flat_map(|issue| &issue.steps) {
        let Some(worker_id) = &step.worker_id else {
            continue;
        };
        let lane = found
            .entry(worker_id.clone())
            .or_insert_with(|| ReportedLane {
                worker_id: worker_id.clone(),
                steps: 0,
                closed: 0,
                busy_ms: 0,
            });
        lane.steps += 1;
        lane.closed += u64::from(step.outcome == AttemptOutcome::Closed);
        lane.busy_ms = lane.busy_ms.saturating_add(step.duration_ms.unwrap_or(0));
    }
    let mut lanes: Vec<ReportedLane> = found.into_values().collect();
    lanes.sort_by(|a, b| natural::compare(&a.worker_id, &b.worker_id));
    lanes
}

fn denials(issues: &[&ReportedIssue]) -> Vec<ReportedDenial> {
    let mut found = BTreeMap::<&str, ReportedDenial>::new();
    for (issue, step) in issues
        .iter()
        .flat_map(|issue| issue.steps.iter().map(|s| (*issue, s)))
    {
        for (rule, calls) in &step.denials {
            let denial = found.entry(rule).or_insert_with(|| ReportedDenial {
                rule_id: rule.clone(),
                calls: 0,
                issue_ids: Vec::new(),
                rows: Vec::new(),
            });
            denial.calls = denial.calls.saturating_add(*calls);
            denial.rows.push(step.row);
            denial.issue_ids.push(issue.issue_id.clone());
        }
    }
    let mut denials: Vec<ReportedDenial> = found.into_values().collect();
    for denial in &mut denials {
        denial.issue_ids.sort_by(|a, b| natural::compare(a, b));
        denial.issue_ids.dedup();
        denial.rows.sort_unstable();
    }
    denials
}

/// Returns what happened by a row that is not of a step, nor the begin or the end of
/// a batch.
fn event(number: u64, row: &StepRow) -> Option<ReportedEvent> {
    let silent = [action::WORKER_LOOP, action::BATCH_START, action::BATCH_END];
    if silent.contains(&row.action.as_str()) {
        return None;
    }
    let mut text = match (&row.control, &row.supervision) {
        (Some(control), _) => {
            let who = control.operator.as_deref().unwrap_or("unnamed");
            format!("{who}: {}: {}", control.operation, control.detail)
        }
        (None, Some(supervision)) => {
            let provider = supervision.provider.clone();
            let until = supervision
                .until
                .as_ref()
                .map(|until| format!("until {:.0}", until.time()));
            let issues = (!supervision.issues.is_empty()).then(|| supervision.issues.join(", "));
            let parts: Vec<String> = [provider, until, issues].into_iter().flatten().collect();
            parts.join(", ")
        }
        (None, None) if row.action == action::LANE_GIVEN_UP => of_lane(row),
        (None, None) => {
            let issue = row.issue_id.as_ref().map(|id| id.to_string());
            let worker = row.worker_id.as_ref().map(|id| id.to_string());
            let parts: Vec<String> = [worker, issue, row.salvage.clone()]
                .into_iter()
                .flatten()
                .collect();
            parts.join(", ")
        }
    };
    if !row.failure_classes.is_empty() {
        let classes = row.failure_classes.join(", ");
        text = match text.is_empty() {
            true => classes,
            false => format!("{text} ({classes})"),
        };
    }
    if text.is_empty() {
        text.clone_from(&row.result_class);
    }
    Some(ReportedEvent {
        row: number,
        at: row.finished_at.clone(),
        action: row.action.clone(),
        text,
    })
}
