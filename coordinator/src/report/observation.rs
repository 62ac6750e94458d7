//! What the next session begins with, from the outcome of a batch.

use super::Summary;
use premath_kernel::authority::MutationMode;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::observation::{
    BatchFaults, OBSERVATION_KIND, Observation, ObservedIssue,
};

/// Returns the observation of a batch.
pub(crate) fn observation(summary: &Summary, mode: &MutationMode) -> Observation {
    let issues = summary.issues.iter();
    let issues = issues.map(|(worker_id, attempts, report)| ObservedIssue {
        issue_id: report.issue_id.clone(),
        step_id: report.step_id.clone(),
        worker_id: worker_id.clone(),
        attempts: *attempts,
        closed: report.succeeded(),
        result_class: report.result_class.clone(),
        failure_classes: report.failure_classes.clone(),
        commit: report.commit.clone(),
        salvage: report.salvage.clone(),
    });
    let mut issues: Vec<ObservedIssue> = issues.collect();
    issues.sort_by(|a, b| a.issue_id.cmp(&b.issue_id));
    let landing = summary.landing.as_ref();
    let faults = BatchFaults {
        cycle: summary
            .cycle
            .as_ref()
            .map_or(0, |path| path.len().saturating_sub(1)),
        lanes_lost: summary.disabled.len(),
        landing_missing: landing.map_or(0, |check| check.missing.len()),
        push_failed: summary.push_failure.is_some(),
        tips: summary.tips.iter().filter(|tip| !tip.passed).count(),
        broken_target: summary.broken.is_some(),
        set_aside: summary.set_aside.issues.len(),
        foreign_rows: summary.foreign_rows.len(),
    };
    let counts = summary.counts.iter();
    Observation {
        schema: 1,
        observation_kind: OBSERVATION_KIND.to_owned(),
        batch_id: summary.batch_id.clone(),
        ended_at: Stamp::at(summary.ended_at),
        exit_code: summary.exit_code,
        instruction_refs: mode.instruction_refs(),
        counts: counts
            .map(|(of, count)| ((*of).to_owned(), *count as u64))
            .collect(),
        needs_attention: Observation::attention(&summary.batch_id, &faults, &issues),
        issues,
        waiting: summary.waiting.iter().cloned().collect(),
    }
}
