//! The bounds of a batch's own: what steps' ends change, what lanes wait for,
//! and what ends the batch.

use super::{LOOK_AGAIN, Shell};
use crate::machine::{LaneIndex, MachineEvent};
use crate::report::Notice;
use harness_worker::batch::{Admitted, SupervisionChange};
use harness_worker::interrupt::Level;
use harness_worker::lane::BootError;
use harness_worker::step::StepReport;
use premath_kernel::json::id::WorkerName;
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::provider::ProviderChange;
use premath_memory::cause::chain;
use premath_memory::{Claimed, clock};
use std::time::Duration;

impl Shell<'_> {
    /// Records the lanes that could not be created, and says what the batch that
    /// continues is bound by from the start.
    pub(super) fn begin(&mut self) {
        for lane in std::mem::take(&mut self.left_out) {
            self.disable(None, lane);
        }
        let account = self.batch.account();
        for (provider, until) in account.parked() {
            let change = SupervisionChange::Provider(ProviderChange::Parked {
                provider: provider.to_owned(),
                until,
            });
            self.reporter.notice(&Notice::Changed(&change));
        }
        let rule = self.batch.settings.bounds.room;
        let room = self.batch.room();
        for (what, free, least) in [
            ("disk", room.disk, rule.disk),
            ("memory", room.memory, rule.memory),
        ] {
            if free.is_none() && least.0 > 0 {
                let detail = format!(
                    "cannot read how much {what} is free; assuming that it is \
                                     enough"
                );
                self.reporter.notice(&Notice::Warning { detail: &detail });
            }
        }
        match self.batch.budget_exceeded() {
            Ok(change) => change.into_iter().for_each(|change| self.change(&change)),
            Err(error) => tracing::error!(%error, "the budget's end was not recorded"),
        }
    }

    /// Takes a step's end in, for the steps to come.
    pub(super) fn take_in(&mut self, worker_id: &WorkerName, report: &StepReport) {
        match self.batch.step_ended(worker_id, &report.for_batch()) {
            Ok(changes) => changes.iter().for_each(|change| self.change(change)),
            Err(error) => self.lose_store(&chain(&error)),
        }
    }

    /// Takes in whether the verification passes without any work.
    pub(super) fn answered(
        &mut self,
        lane: LaneIndex,
        answer: Result<bool, Box<BootError>>,
    ) -> MachineEvent<Claimed> {
        let worker_id = self.plans[lane].worker_id.clone();
        let passes = match answer {
            Ok(passes) => passes,
            Err(error) => {
                self.batch.step_lost(&worker_id);
                self.given_up(lane, error.class(), &chain(&*error), error.hint());
                return MachineEvent::Answered {
                    lane,
                    lane_lost: true,
                };
            }
        };
        self.reporter.notice(&Notice::BaselineChecked {
            worker_id: &worker_id,
            passes,
        });
        match self.batch.baseline_answered(passes) {
            Ok(change) => change.iter().for_each(|change| self.change(change)),
            Err(error) => self.lose_store(&chain(&error)),
        }
        MachineEvent::Answered {
            lane,
            lane_lost: false,
        }
    }

    fn lose_store(&mut self, detail: &str) {
        self.reporter.notice(&Notice::StoreLost { detail });
        self.feed(MachineEvent::StoreLost);
    }

    fn change(&mut self, change: &SupervisionChange) {
        self.reporter.notice(&Notice::Changed(change));
        // What runs would only use more.
        if matches!(change, SupervisionChange::BudgetExceeded(..)) && self.machine.is_busy() {
            self.batch.interrupt.kill();
        }
    }

    /// Says once that lanes wait for room, and returns when it is worth to look
    /// again at what they wait for.
    pub(super) fn held_until(&mut self, admitted: &Admitted) -> Option<jiff::Timestamp> {
        let waiting = &admitted.waiting;
        self.is_held = waiting.held.contains(&true);
        let short = waiting.short.filter(|_| self.is_held);
        if short.is_some() != self.shortage_said {
            self.reporter.notice(&Notice::Room(short.as_ref()));
            self.shortage_said = short.is_some();
        }
        let runs = self.machine.is_busy();
        if let Err(error) = self.batch.wait_for_room(short.as_ref(), runs) {
            tracing::error!(%error, "the shortage was not recorded");
        }
        let waits = self.is_held && !runs && admitted.claims.iter().all(Option::is_none);
        let soon = || clock::now().wall.saturating_add(LOOK_AGAIN).ok();
        waiting.look_at.or_else(|| waits.then(soon).flatten())
    }

    /// Looks whether a bound is reached that ends the batch; acts on it once.
    pub(super) fn bound_reached(&mut self) -> Option<MachineEvent<Claimed>> {
        let is_interrupted = self.batch.interrupt.level() != Level::None;
        let by = self
            .batch
            .admission()
            .end_by(self.started_ms, clock::now(), is_interrupted)?;
        self.batch.interrupt.drain();
        let detail = match by {
            EndedBy::Budget => {
                let spent = self.batch.account().spent();
                let budget = self.batch.settings.bounds.batch;
                budget.describe(spent, Duration::ZERO)
            }
            EndedBy::Revoked => {
                let revoked = self.batch.authorised().err();
                revoked.map_or_else(String::new, |revoked| revoked.to_string())
            }
            _ => String::new(),
        };
        self.reporter.notice(&Notice::Ending {
            ended_by: by,
            detail: &detail,
        });
        Some(MachineEvent::Interrupted)
    }

    /// Returns how long it is until a bound in time.
    pub(super) fn until_bound(&self) -> Duration {
        let admission = self.batch.admission();
        if admission.ended_by().is_some() || self.batch.interrupt.level() != Level::None {
            return LOOK_AGAIN;
        }
        let left = admission.until_bound(self.started_ms, clock::now());
        left.unwrap_or(LOOK_AGAIN)
    }
}
