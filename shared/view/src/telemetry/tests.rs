//! Rows as spans.

use super::*;
use premath_kernel::record::trajectory::StepRow;

fn row(step: &str, action: &str, result: &str, at: &str) -> StepRow {
    let mut row = StepRow::new(step, action, result, at.parse().unwrap());
    row.batch_id = Some("b1".into());
    row.started_at = Stamp::parse("2026-03-05T10:00:01.000000Z");
    row
}

fn telemetry() -> Telemetry {
    let started = Stamp::parse("2026-03-05T10:00:00.000000Z").unwrap();
    Telemetry::new(&"b1".into(), &started, "0")
}

#[test]
fn an_attempt_is_a_span_below_its_lane_and_the_lane_below_the_batch() {
    let mut telemetry = telemetry();
    let mut step = row("s1", action::WORKER_LOOP, "failed", "2026-03-05T10:00:03Z");
    step.worker_id = Some("w.1".into());
    step.failure_classes = vec!["verification_failed".to_owned()];
    let attempt = telemetry.take(&step).remove(0);
    assert_eq!(
        attempt.end_time_unix_nano - attempt.start_time_unix_nano,
        2_000_000_000
    );
    let status = attempt.status.unwrap();
    assert_eq!(
        (status.code, status.message.as_str()),
        (2, "verification_failed")
    );
    let end = row("e", action::BATCH_END, "completed", "2026-03-05T10:00:09Z");
    let spans = telemetry.take(&end);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["lane", "batch"]);
    assert_eq!(attempt.parent_span_id, spans[0].span_id);
    assert_eq!(spans[0].parent_span_id, spans[1].span_id);
    assert_eq!(spans[1].parent_span_id, [0_u8; 0]);
    assert_eq!(
        spans[1].end_time_unix_nano - spans[1].start_time_unix_nano,
        9_000_000_000
    );
    // The first bytes of the SHA-256 of `s1` and `b1`, by sha256sum.
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    assert_eq!(hex(&attempt.span_id), "e8bc163c82eee187");
    assert_eq!(hex(&attempt.trace_id), "7dc96f776c8423e57a2785489a3f9c43");
}

#[test]
fn a_row_of_another_batch_has_no_span() {
    let mut telemetry = telemetry();
    let mut other = row(
        "s1",
        action::WORKER_LOOP,
        "completed",
        "2026-03-05T10:00:03Z",
    );
    other.batch_id = Some("b2".into());
    assert_eq!(telemetry.take(&other), []);
    other.batch_id = None;
    assert_eq!(telemetry.take(&other), []);
}
