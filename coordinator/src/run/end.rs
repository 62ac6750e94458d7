//! The end of a batch: what is put in order, and its outcome.

use super::{InboxMessage, LOOK_AGAIN, Shell};
use crate::lane::LaneHandle;
use crate::machine::LaneIndex;
use crate::report::{self, BrokenTarget, JudgedTurn, SetAside, Summary};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use harness_worker::batch::{EndFacts, RecoverAt};
use harness_worker::exit::{self, LoopEnd};
use harness_worker::step::{StepReport, earlier_steps};
use premath_kernel::authority::MutationMode;
use premath_kernel::issue::Status;
use premath_kernel::issue::graph::Hold;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::LandingCheck;
use premath_kernel::turn::broken_at;
use premath_memory::report as kept;
use premath_memory::roots::MemoryRoots;
use premath_memory::{CompactionRule, MemoryView, artifact, clock, observation, witness};
use std::collections::{BTreeMap, BTreeSet};

impl Shell<'_> {
    /// Joins the lanes, compacts, closes the batch and sums up.
    pub(super) fn end(mut self, messages: &Receiver<InboxMessage>) -> Summary {
        self.join(messages);
        self.pushed();
        let elapsed = self.batch.elapsed();
        self.batch.sweep_shared();
        if let Err(error) = self.batch.recover_rows(RecoverAt::End) {
            tracing::error!(%error, "issues without the row of their step were not looked for");
        }
        let endings = self.batch.endings();
        let (landing, is_missing) = self.check_landing();
        let push_failure = self.batch.landing.pushes().failure.clone();
        let tips = self.batch.tips();
        let ended_by = self.batch.admission().ended_by();
        let end = LoopEnd {
            signal: self.batch.interrupt.last_signal(),
            store_lost: self.machine.store_lost(),
            refused: self.machine.refused_at_startup(),
            failed: endings.values().any(|(_, ended)| *ended == Some(false)),
            lane_lost: !self.disabled.is_empty(),
            missing: is_missing,
            unpushed: push_failure.is_some(),
            tip_fails: tips.iter().any(|tip| !tip.passed),
            ended_by,
        };
        let exit_code = end.exit_code();
        let broken = self.broken_target();
        let set_aside = self.set_aside();
        let facts = report::end_facts(broken.as_ref(), push_failure.as_ref(), &set_aside);
        self.close(exit_code, &facts);
        let memory = &self.batch.memory;
        let mut summary = Summary {
            batch_id: self.batch.id().to_owned(),
            acts_under: (&self.batch.settings.mode).into(),
            exit_code,
            elapsed,
            counts: memory.view(|view| view.counts()).unwrap_or_default(),
            waiting: memory.view(|view| waiting(&view)).unwrap_or_default(),
            open: self.open_of(endings.keys()),
            issues: self.worked_on(&endings),
            disabled: std::mem::take(&mut self.disabled),
            cycle: self.cycle_reported.take(),
            landing,
            broken,
            push_failure,
            tips,
            ended_by,
            account: self.batch.account(),
            ended_at: clock::now().wall,
            memory_changes: self.memory_changes,
            foreign_rows: self.batch.foreign_rows(),
            judged: BTreeMap::new(),
            set_aside,
            kept: None,
        };
        let roots = &self.batch.settings.roots;
        summary.judged = judged_turns(&summary, roots);
        keep(&mut summary, roots);
        observe(&summary, &self.batch.settings.mode, roots);
        self.batch.reached(Boundary::ReportKept);
        self.reporter.summary(&summary);
        summary
    }

    /// Waits for the threads of the lanes, the last of which may verify the last
    /// commit. An operator is answered meanwhile.
    fn join(&mut self, messages: &Receiver<InboxMessage>) {
        let (mut lanes, send) = (std::mem::take(&mut self.lanes), self.send.clone());
        let joiner = std::thread::spawn(move || {
            lanes.iter_mut().for_each(LaneHandle::join);
            let _ = send.send(InboxMessage::Joined);
        });
        loop {
            self.report_alive();
            match messages.recv_timeout(self.manager.patience().min(LOOK_AGAIN)) {
                Ok(InboxMessage::Control(message)) => drop(self.control_message(message)),
                Ok(InboxMessage::Joined) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.manager.stopping();
        let _ = joiner.join();
        self.control.server = None;
    }

    /// Compares what was closed with what landed; returns whether some did not.
    /// What cannot be looked at does not count as landed.
    fn check_landing(&self) -> (Option<LandingCheck>, bool) {
        match self.batch.check_landing() {
            Ok(check) => {
                let is_missing = check
                    .as_ref()
                    .is_some_and(|check| !check.missing.is_empty());
                (check, is_missing)
            }
            Err(error) => {
                tracing::error!(%error, "what landed was not looked at");
                (None, true)
            }
        }
    }

    /// Returns those of the issues that were worked on that are open: a person may have
    /// closed, deferred or deleted one meanwhile.
    fn open_of<'a>(&'a self, ended: impl Iterator<Item = &'a IssueId>) -> BTreeSet<IssueId> {
        let is_open = |view: &MemoryView<'_>, id: &IssueId| {
            let issue = view.issue(id);
            issue.is_some_and(|issue| issue.status == Status::Open)
        };
        let reported = self.reports.values().map(|(_, report)| &report.issue_id);
        let ids = ended.chain(reported);
        let open = |view: MemoryView<'_>| ids.filter(|id| is_open(&view, id)).cloned().collect();
        self.batch.memory.view(open).unwrap_or_default()
    }

    /// Returns the open issues that the next batch sets aside.
    fn set_aside(&self) -> SetAside {
        let aside = self.batch.set_aside_next().into_iter();
        let is_open = |view: MemoryView<'_>, id: &IssueId| {
            let issue = view.issue(id);
            issue.is_some_and(|issue| issue.status == Status::Open)
        };
        let memory = &self.batch.memory;
        SetAside {
            issues: aside
                .filter(|id| memory.view(|view| is_open(view, id)).unwrap_or(false))
                .collect(),
            after: self.batch.settings.set_aside_after,
        }
    }

    fn broken_target(&self) -> Option<BrokenTarget> {
        let commit = self.batch.broken_by()?.to_owned();
        let target = self.batch.landing.target().to_owned();
        Some(BrokenTarget { target, commit })
    }

    /// Compacts issue memory and closes the batch in the trajectory.
    fn close(&mut self, exit_code: u8, facts: &EndFacts) {
        if !self.machine.store_lost() {
            let changes = self.batch.last_outside_changes();
            self.memory_changed(&changes);
        }
        if !self.machine.store_lost()
            && let Err(error) = self.batch.memory.compact(CompactionRule::Now)
        {
            tracing::warn!(%error, "the issue store was not compacted");
        }
        self.batch.reached(Boundary::MemoryCompacted);
        if let Err(error) = self.batch.end(exit::batch_result(exit_code), facts) {
            tracing::error!(%error, "the batch's end was not recorded");
        }
        self.batch.publish_end(exit_code);
        self.batch.reached(Boundary::BatchEnded);
    }

    /// Takes the reports, by issue, with worker and attempts; those of what the batch did
    /// before this process took it up are of its rows.
    fn worked_on(
        &mut self,
        endings: &BTreeMap<IssueId, (u32, Option<bool>)>,
    ) -> Vec<(WorkerName, u32, StepReport)> {
        let reports = std::mem::take(&mut self.reports).into_values();
        let reports: Vec<(WorkerName, StepReport)> = reports
            .map(|(lane, report): (LaneIndex, StepReport)| {
                (self.plans[lane].worker_id.clone(), report)
            })
            .collect();
        let mut missing: BTreeSet<IssueId> = endings.keys().cloned().collect();
        for (_, report) in &reports {
            missing.remove(&report.issue_id);
        }
        let earlier = earlier_steps(&self.batch, &missing);
        let earlier = earlier.unwrap_or_else(|error| {
            tracing::error!(%error, "what the batch did before it was taken up was not read");
            Vec::new()
        });
        let all = reports.into_iter().chain(earlier);
        let with_attempts = |(worker_id, report): (WorkerName, StepReport)| {
            let attempts = endings.get(&report.issue_id).map_or(0, |(failed, ended)| {
                failed + u32::from(*ended == Some(true))
            });
            (worker_id, attempts, report)
        };
        let mut all: Vec<_> = all.map(with_attempts).collect();
        all.sort_by(|(_, _, one), (_, _, other)| one.issue_id.cmp(&other.issue_id));
        all
    }
}

/// Returns the turns of the issues that did not close, where they were judged.
fn judged_turns(summary: &Summary, roots: &MemoryRoots) -> BTreeMap<IssueId, JudgedTurn> {
    let reports = summary.issues.iter().map(|(_, _, report)| report);
    let open = reports.filter(|report| !report.succeeded());
    open.filter_map(|report| Some((report.issue_id.clone(), judged(report, roots)?)))
        .collect()
}

/// Keeps the report as text, to be read later.
fn keep(summary: &mut Summary, roots: &MemoryRoots) {
    let path = kept::path(roots, &summary.batch_id);
    // The text says where it is.
    summary.kept = Some(path.clone());
    if let Err(error) = kept::keep(&path, &summary.text()) {
        tracing::error!(%error, "the report was not kept");
        summary.kept = None;
    }
}

/// Writes what the next session begins with.
fn observe(summary: &Summary, mode: &MutationMode, roots: &MemoryRoots) {
    if let Err(error) = observation::write(roots, &report::observation(summary, mode)) {
        tracing::error!(%error, "the observation was not written");
    }
}

/// Returns the open issues that something holds, by id, and what it is.
fn waiting(view: &MemoryView<'_>) -> Vec<(String, Vec<String>)> {
    let open = view.rows().filter(|row| row.issue.status == Status::Open);
    open.filter_map(|row| {
        let holds = view.graph().holds(&row.issue.id);
        let held = !holds.is_empty();
        held.then(|| {
            let holds = holds.iter().map(hold).collect();
            (row.issue.id.to_string(), holds)
        })
    })
    .collect()
}

fn hold(hold: &Hold) -> String {
    match hold {
        Hold::On(id) => id.to_string(),
        Hold::OnMissing(id) => format!("{id} (which does not exist)"),
        Hold::Child(id) => format!("{id} (its child)"),
        Hold::Ancestor(id) => format!("{id} (its parent)"),
    }
}

/// Returns the turn of a step that did not close its issue, where it was judged.
fn judged(report: &StepReport, roots: &MemoryRoots) -> Option<JudgedTurn> {
    let path = artifact::of_step(&roots.witnesses, &report.step_id, WitnessRef::TURN, "json");
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let broken_at = || {
        let class = report.failure_classes.first()?.parse().ok()?;
        broken_at(witness::read(&roots.repository, &path)?, class)
    };
    let broken_at = broken_at();
    Some(JudgedTurn { path, broken_at })
}
