//! Repair: an agent whose work fails its verification is run again in its own
//! session, and shown what failed.

use super::error::StageError;
use super::step_failure::StepFailure;
use super::worked::Worked;
use crate::interrupt::Level;
use crate::lane::Lane;
use crate::lane::command::{Phase, WorkUse};
use crate::lane::left_session::ResumedSession;
use crate::lane::listener::spent;
use crate::prompt;
use premath_kernel::policy::repair::{RepairFacts, round_after};
use premath_memory::clock;

/// A round in which an agent repairs its work.
struct Repair {
    /// Its number, from 1.
    round: usize,
    command: String,
    used: WorkUse,
}

impl Lane {
    /// Runs the agent again in its session, and takes over what it left. Where it
    /// may not be, or fails, the step fails.
    pub(super) fn repair(
        &mut self,
        step: &mut Worked<'_>,
        failure: Box<StepFailure>,
    ) -> Result<(), StageError> {
        let Some(repair) = self.repair_of(step, &failure) else {
            return Err(self.refused_work(step, failure));
        };
        if self.is_for_the_queue(step) && !step.attempt.await_mending()? {
            return Err(self.refused_work(step, failure));
        }
        step.attempt.look_at_lease()?;
        step.attempt.fence()?;
        let phase = Phase::Work(repair.round);
        let log = &step.attempt.log;
        let failed_in = log.calls.last().map_or("", |call| call.phase);
        tracing::info!(
            phase = phase.name(),
            failed = failed_in,
            "the agent repairs its work"
        );
        let step_id = log.step_id();
        let shown = self
            .batch
            .failed_verification(&step_id, failed_in, &failure.classes);
        let most = self.batch.settings.turn.stop().repair_rounds;
        let prompt = prompt::repair(&shown, (repair.round as u64, most));
        let digest = self.hand_out_prompt(&step_id, phase, &prompt)?;
        step.brief.renew(digest, repair.used);
        let run = (phase, &*repair.command);
        step.tree = self.run_work(&mut step.attempt, &step.brief, run, &step.tree)?;
        self.take_over(step)
    }

    /// Keeps the session of work that failed its verification, where the next
    /// attempt is to resume it.
    pub(super) fn keep_session(&mut self, step: &Worked<'_>, failure: &StepFailure) {
        let account = &step.attempt.log.account;
        if !self.batch.settings.resumes || !failure.is_red() {
            return;
        }
        let Some(session) = account.session() else {
            return;
        };
        let left = ResumedSession {
            session: session.to_owned(),
            used: step.brief.session_used.plus(account.used()),
        };
        let provider = step.brief.work.provider.clone();
        self.leave_session(&step.brief.issue_id, &provider, left);
    }

    /// Returns the round that may follow a verification that failed; `None` where
    /// none may.
    fn repair_of(&self, step: &Worked<'_>, failure: &StepFailure) -> Option<Repair> {
        let settings = &self.batch.settings;
        let (log, work) = (&step.attempt.log, &step.brief.work);
        let account = &log.account;
        let used = WorkUse {
            spent: account.used(),
            worked: account.worked,
            own_time: log.own_time(clock::now()),
            calls: account.allowed,
        };
        let left = self.batch.left_of(&step.brief.issue_id);
        let facts = RepairFacts {
            is_red: failure.is_red(),
            has_landed: step.landed.is_some(),
            is_limited: account.limit.is_some(),
            drains: self.batch.interrupt.level() >= Level::Drain,
            runs: account.streams().len() as u64,
            is_used_up: left.is_used_up(spent(used.spent), used.own_time),
            worked: used.worked,
            limit: settings.limits.step,
        };
        let round = round_after(settings.turn.stop(), &facts)?;
        let spec = work.adapter.agent()?.spec();
        Some(Repair {
            round: usize::try_from(round).ok()?,
            command: spec.resumed(&work.command, account.session()?)?,
            used,
        })
    }
}
