//! The desk of an operator: git, the run log, the issue store and the landing target.

use super::git::{self, Shown};
use super::talk::Desk;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use harness_worker::settings::{LoopFlags, Settings};
use premath_kernel::authority::OperatorOverride;
use premath_kernel::json::time;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueChange, Trajectory, clock};
use premath_view::report::{Reader, ReportView, ReportedIssue, ReviewItem, step_ref};
use premath_worktree::landing::{Landing, Undone};
use std::io::Write;
use std::path::Path;

pub(super) struct OperatorsDesk<'a> {
    report: &'a ReportView,
    reader: &'a Reader,
    roots: &'a MemoryRoots,
    issues: &'a Path,
    reason: &'a Reason,
    operator: String,
    trajectory: Trajectory,
}

impl<'a> OperatorsDesk<'a> {
    /// Sits down; `authority` proves that no step does.
    pub(super) fn new(
        report: &'a ReportView,
        reader: &'a Reader,
        (roots, issues): (&'a MemoryRoots, &'a Path),
        reason: &'a Reason,
        authority: OperatorOverride,
    ) -> Result<Self, CliError> {
        Ok(Self {
            report,
            reader,
            roots,
            issues,
            reason,
            operator: authority.operator().to_owned(),
            trajectory: Trajectory::open(&roots.trajectory)?,
        })
    }

    fn issue(&self, item: &ReviewItem) -> Option<&ReportedIssue> {
        let mut issues = self.report.closed.iter().chain(&self.report.failed);
        issues.find(|issue| issue.issue_id == item.issue_id)
    }

    /// Records a decision in the run log.
    fn record(&self, item: &ReviewItem, decision: &str, detail: &str) -> Result<(), CliError> {
        let now = clock::now().wall;
        let id = format!(
            "{}.{}.{}",
            action::REVIEWED,
            item.step_id,
            time::micros(now)
        );
        let mut row = StepRow::new(id, action::REVIEWED, decision, now);
        row.issue_id = Some(item.issue_id.clone());
        row.worker_id = Some(format!("operator.{}", self.operator).into());
        row.started_at = Some(now.into());
        row.lineage_refs = [step_ref(&item.step_id)].into_iter().collect();
        row.next_step = Some(format!(
            "{decision} {} by {}: {detail}",
            item.revision, self.operator
        ));
        self.trajectory.append(&row)?;
        Ok(())
    }

    /// Opens the issue again, with a note in its next prompt.
    fn open_again(&self, item: &ReviewItem, note: &str) -> Result<(), CliError> {
        let reason = self.reason.clone().or(&format!("reviewed: {note}"));
        let memory = paths::open(self.issues, false)?;
        memory.operate(
            reason.authority()?,
            IssueChange::Retry {
                id: item.issue_id.to_string(),
                note: Some(note.to_owned()),
            },
        )?;
        Ok(())
    }
}

impl Desk for OperatorsDesk<'_> {
    fn head(&self, item: &ReviewItem) -> Vec<String> {
        let title = item.title.as_deref().unwrap_or("(not in the issue store)");
        let mut lines = vec![format!("{}  {title}", item.issue_id)];
        let state = match item.closed {
            true => "closed",
            false => "not closed, its work was salvaged",
        };
        lines.push(format!(
            "  {state}, score {}, {}",
            item.score, item.revision
        ));
        let reasons = item.reasons.iter();
        lines.extend(reasons.map(|reason| format!("  +{} {}", reason.points, reason.text)));
        if let Some(last) = self.issue(item).and_then(|issue| issue.steps.last()) {
            let verdict = match last.failure_classes.as_slice() {
                [] => "passed".to_owned(),
                classes => classes.join(", "),
            };
            lines.push(format!("  checks and gate: {verdict}"));
            lines.push(format!(
                "  proof: row {} of {}",
                last.row, self.report.run_log
            ));
            let witnesses = last.witnesses.iter();
            lines.extend(witnesses.map(|witness| format!("         {witness}")));
        }
        let width = self.reader.width.max(40) * 4;
        lines
            .into_iter()
            .map(|line| line.chars().take(width).collect())
            .collect()
    }

    fn show(&mut self, item: &ReviewItem, output: &mut dyn Write) -> Result<(), CliError> {
        let mut closed = self.report.closed.iter();
        let from = closed.find_map(|issue| issue.landed_on.as_deref());
        let shown = match item.closed {
            true => Shown::Commit(&item.revision),
            false => Shown::Branch {
                from: from.unwrap_or("HEAD"),
                branch: &item.revision,
            },
        };
        git::show(&self.roots.repository, shown, output)
    }

    fn accept(&mut self, item: &ReviewItem) -> Result<String, CliError> {
        let reason = self.reason.text().unwrap_or("reviewed");
        self.record(item, "accepted", reason)?;
        Ok(format!("accepted {}", item.issue_id))
    }

    fn reopen(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError> {
        self.open_again(item, note)?;
        self.record(item, "reopened", note)?;
        Ok(format!(
            "reopened {}; its next prompt has the note",
            item.issue_id
        ))
    }

    fn revert(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError> {
        let id = &item.issue_id;
        let landed = self.issue(item).and_then(|issue| issue.landed_on.clone());
        let Some(target) = landed.filter(|_| item.closed) else {
            return Err(CliError::Review(format!(
                "{id} did not land: there is nothing to revert"
            )));
        };
        let flags = LoopFlags {
            repo_root: Some(self.roots.repository.clone()),
            landing_target: Some(target.clone()),
            // Settings without commands and a mode are refused; nothing is run here.
            override_reason: Some("a revert in review".to_owned()),
            work_cmd: Some("true".to_owned()),
            verify_cmd: Some("true".to_owned()),
            ..LoopFlags::default()
        };
        let settings = Settings::resolve(&flags, clock::now().wall)?;
        let landing = Landing::begin(settings.landing, self.roots.repository.clone())?;
        let Some(_right) = landing.try_lock()? else {
            let refused = format!("work lands on {target} now; try again");
            return Err(CliError::Review(refused));
        };
        let why = format!("an operator reverted it in review: {note}");
        let commit = match landing.revert(&item.revision, &why, settings.signer.as_ref())? {
            Undone::Reverted(commit) => commit,
            Undone::Conflict => {
                return Err(CliError::Review(format!(
                    "later work on {target} changed the same lines; revert {} by hand: git switch {target} && git revert {} && git checkout -",
                    item.revision, item.revision
                )));
            }
            Undone::Reset | Undone::Foreign => {
                return Err(CliError::Review(format!(
                    "{} is not on {target}",
                    item.revision
                )));
            }
        };
        self.record(item, "reverted", &format!("{note} ({commit})"))?;
        self.open_again(item, &format!("Its work was reverted in review: {note}"))?;
        Ok(format!(
            "reverted {id} on {target} by {commit}, which is not verified before the next batch; \
             the issue is open"
        ))
    }
}
