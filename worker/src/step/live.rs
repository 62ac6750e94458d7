//! What a step notes about itself in what its batch publishes.

use super::report::StepReport;
use crate::lane::Lane;
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{
    LiveLaneState, LiveOutcome, LiveStep, StepPhase, millis, short,
};
use premath_memory::{Claimed, clock};

impl Lane {
    /// Notes that a step begins.
    pub(super) fn note_begun(
        &self,
        claimed: &Claimed,
        identity: &StepIdentity,
        now: Moment,
        provider: Option<&str>,
    ) {
        let step = LiveStep {
            issue_id: identity.issue_id.clone(),
            title: short(&claimed.row.text_of("title")),
            step_id: identity.step_id(),
            generation: identity.generation,
            attempt: self.batch.attempts(&identity.issue_id) + 1,
            provider: provider.map(short),
            started_at: Stamp::at(now.wall),
            started_ms: now.boot_ms,
            phase: StepPhase::Preparing,
            phase_ms: now.boot_ms,
            command: None,
            agent: None,
            lease_renewed_ms: now.boot_ms,
            lease_ttl_ms: millis(self.batch.settings.lease_ttl),
        };
        self.batch.note_lane(&self.worker_id, |lane| {
            lane.state = LiveLaneState::Working;
            lane.step = Some(step);
        });
    }

    /// Notes that a step ended.
    pub(super) fn note_ended(&self, report: &StepReport) {
        self.batch.note_lane(&self.worker_id, |lane| {
            lane.step = None;
            lane.state = LiveLaneState::Idle;
            if let Some((class, detail)) = &report.lane_lost {
                lane.state = LiveLaneState::Disabled;
                lane.reason = Some(short(&format!("{class}: {detail}")));
            }
        });
        self.batch.note_ended(LiveOutcome {
            issue_id: report.issue_id.clone(),
            title: short(&report.title),
            step_id: report.step_id.clone(),
            worker_id: self.worker_id.clone(),
            attempt: report.attempt,
            closed: report.succeeded(),
            ending: short(&report.ending.to_string()),
            failure_class: report.failure_classes.first().cloned(),
            duration_ms: report.duration_ms,
            at: Stamp::at(clock::now().wall),
        });
    }
}
