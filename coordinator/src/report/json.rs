//! Events for a program: one JSON object a line, on stdout.

use super::{Notice, Reporter, Summary};
use harness_worker::interrupt::Level;
use harness_worker::lane::{StepEnding, StepReport};
use premath_kernel::plain::plain_json;
use serde_json::{Value, json};
use std::io::Write;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonReporter<W> {
    out: W,
}

impl<W: Write> JsonReporter<W> {
    /// Writes to a stream; what cannot be written is not missed.
    pub const fn new(out: W) -> Self {
        Self { out }
    }

    fn event(&mut self, value: &Value) {
        let _ = writeln!(self.out, "{}", plain_json(&value.to_string()));
        let _ = self.out.flush();
    }
}

impl<W: Write> Reporter for JsonReporter<W> {
    fn notice(&mut self, notice: &Notice<'_>) {
        let value = match notice {
            Notice::BatchStarted {
                batch_id,
                resumed,
                lanes,
                mode,
                issues_path,
            } => json!({
                "event": "batch.started", "batchId": batch_id, "resumed": resumed, "lanes": lanes,
                "mutationMode": mode.name(), "reason": mode.reason(), "issuesPath": issues_path,
            }),
            Notice::LaneBooted {
                worker_id,
                worktree,
                report,
            } => json!({
                "event": "lane.booted", "workerId": worker_id, "worktree": worktree,
                "handoff": report.handoff, "salvage": report.salvage,
                "nextTarget": report.next_target, "witnessCount": report.witnesses,
                "observation": report.observation, "warnings": report.warnings,
            }),
            Notice::LaneGivenUp {
                worker_id,
                worktree,
                class,
                detail,
                hint,
            } => json!({
                "event": "lane.given_up", "workerId": worker_id, "worktree": worktree,
                "failureClass": class, "detail": detail, "hint": hint,
            }),
            Notice::Dispatched { worker_id, claim } => json!({
                "event": "issue.dispatched", "workerId": worker_id,
                "issueId": claim.claim.issue_id, "leaseId": claim.claim.lease_id,
                "generation": claim.claim.generation,
            }),
            Notice::StepEnded { worker_id, report } => {
                let mut value = step(report);
                value["event"] = "step.ended".into();
                value["workerId"] = (*worker_id).into();
                value
            }
            Notice::Cycle { path } => json!({"event": "graph.cycle", "cyclePath": path}),
            Notice::Waiting { until } => {
                json!({"event": "batch.waiting", "until": premath_kernel::time::micros(*until)})
            }
            Notice::Interrupted { level } => json!({
                "event": "batch.interrupted",
                "level": if *level == Level::Kill { "kill" } else { "drain" },
            }),
            Notice::StoreLost { detail } => json!({"event": "store.lost", "detail": detail}),
        };
        self.event(&value);
    }

    fn summary(&mut self, summary: &Summary) {
        let mut issues: Vec<Value> = summary
            .issues
            .iter()
            .map(|(worker, attempts, report)| {
                let mut value = step(report);
                value["workerId"] = worker.as_str().into();
                value["attempts"] = (*attempts).into();
                value
            })
            .collect();
        issues.sort_by_key(|issue| issue["issueId"].to_string());
        let elapsed = u64::try_from(summary.elapsed.as_millis()).unwrap_or(u64::MAX);
        self.event(&json!({
            "event": "batch.ended", "batchId": summary.batch_id, "exitCode": summary.exit_code,
            "elapsedMs": elapsed, "issues": issues, "lanesLost": summary.lanes_lost,
            "cyclePath": summary.cycle, "counts": summary.counts,
        }));
    }
}

fn step(report: &StepReport) -> Value {
    let (ending, detail) = match &report.ending {
        StepEnding::Closed => ("closed", Value::Null),
        StepEnding::Retry { at } => (
            "retry",
            at.map(premath_kernel::time::micros)
                .map_or(Value::Null, Value::from),
        ),
        StepEnding::Blocked => ("blocked", Value::Null),
        StepEnding::Discovered { follow_up } => ("discovered", follow_up.as_str().into()),
        StepEnding::Stopped => ("stopped", Value::Null),
        StepEnding::LeaseLost => ("lease_lost", Value::Null),
        StepEnding::Interrupted => ("interrupted", Value::Null),
        StepEnding::NotBegun => ("not_begun", Value::Null),
    };
    json!({
        "issueId": report.issue_id, "title": report.title, "stepId": report.step_id,
        "generation": report.generation, "ending": ending, "endingDetail": detail,
        "resultClass": report.result_class, "failureClasses": report.failure_classes,
        "attempt": report.attempt, "commit": report.commit, "salvage": report.salvage,
        "discovered": report.discovered, "durationMs": report.duration_ms,
        "said": report.said.as_ref().map(|(said, _)| said),
        "output": report.said.as_ref().map(|(_, output)| output),
    })
}
