//! Rows as spans.

use super::otlp::{Answer, PartialSuccess};
use super::*;
use premath_kernel::policy::turn::ToolClass;
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
    let attempt = telemetry.take(&step, &[], 0).remove(0);
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
    let spans = telemetry.take(&end, &[], 0);
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
    assert_eq!(telemetry.take(&other, &[], 0), []);
    other.batch_id = None;
    assert_eq!(telemetry.take(&other, &[], 0), []);
}

fn call(number: u64) -> TimedCall {
    TimedCall {
        round: 1,
        number,
        tool: "Bash".to_owned(),
        class: ToolClass::Shell,
        id: None,
        is_of_subagent: false,
        denied_by: None,
        began: Stamp::parse("2026-03-05T10:00:01.500000Z").unwrap(),
        ended: Stamp::parse("2026-03-05T10:00:02.250000Z"),
        has_failed: false,
    }
}

fn keys(span: &Span) -> Vec<&str> {
    let keys = span
        .attributes
        .iter()
        .map(|attribute| attribute.key.as_str());
    keys.collect()
}

/// The row of an attempt that closed its issue.
fn attempt() -> StepRow {
    row(
        "s1",
        action::WORKER_LOOP,
        "completed",
        "2026-03-05T10:00:03Z",
    )
}

#[test]
fn a_call_is_a_span_below_its_attempt_with_the_times_of_its_events() {
    let mut telemetry = telemetry();
    let step = attempt();
    let mut denied = call(2);
    (denied.denied_by, denied.ended) = (Some("no_\u{1b}push".to_owned()), None);
    let mut open = call(3);
    open.ended = None;
    let mut failed = call(4);
    failed.has_failed = true;
    let spans = telemetry.take(&step, &[call(1), denied, open, failed], 0);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["attempt", "call", "call", "call", "call"]);
    let below = spans[1..].iter().map(|span| &span.parent_span_id);
    assert!(below.into_iter().all(|parent| *parent == spans[0].span_id));
    let length = |span: &Span| span.end_time_unix_nano - span.start_time_unix_nano;
    let lengths: Vec<u64> = spans[1..].iter().map(length).collect();
    assert_eq!(lengths, [750_000_000, 0, 0, 750_000_000]);
    let codes = spans[1..].iter().map(|span| {
        let status = span.status.clone().unwrap();
        (status.code, status.message)
    });
    let codes: Vec<(i32, String)> = codes.collect();
    let no = String::new;
    let said = "denied by no_\\u{1b}push".to_owned();
    assert_eq!(codes, [(1, no()), (2, said), (0, no()), (2, no())]);
    assert!(keys(&spans[2]).contains(&"premath.denied_by"));
    assert!(keys(&spans[3]).contains(&"premath.call.end_not_reported"));
    assert!(!keys(&spans[1]).contains(&"premath.call.end_not_reported"));
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len());
}

#[test]
fn spans_of_a_message_are_bounded_and_the_calls_without_one_are_counted() {
    let mut telemetry = telemetry();
    let step = attempt();
    let calls: Vec<TimedCall> = (1..=SPANS_MAX as u64 / 2).map(call).collect();
    let mut spans = telemetry.take(&step, &calls, 30);
    assert_eq!(spans.len(), 1 + calls.len());
    let left_out = spans[0].attributes.last().unwrap();
    assert_eq!(*left_out, whole("premath.agent.calls_left_out", 30));
    spans.extend(spans.clone());
    let messages = telemetry.traces(spans);
    let counts = messages.iter().map(|message| {
        let request = TracesRequest::decode(&**message).unwrap();
        request.resource_spans[0].scope_spans[0].spans.len()
    });
    assert_eq!(counts.collect::<Vec<_>>(), [SPANS_MAX, 2]);
    assert_eq!(telemetry.traces(Vec::new()), Vec::<Vec<u8>>::new());
}

#[test]
fn a_resumed_batch_has_spans_of_the_lanes_that_worked_before() {
    let mut telemetry = telemetry();
    let stamp = |text: &str| Stamp::parse(text).unwrap();
    let times = [
        stamp("2026-03-05T10:00:00.500000Z"),
        stamp("2026-03-05T10:00:02Z"),
    ];
    let [began, ended] = times;
    telemetry.resume([(&"w.1".into(), &(began, ended))]);
    let mut step = row(
        "s1",
        action::WORKER_LOOP,
        "completed",
        "2026-03-05T10:00:03Z",
    );
    step.worker_id = Some("w.1".into());
    telemetry.take(&step, &[], 0);
    let end = row("e", action::BATCH_END, "completed", "2026-03-05T10:00:09Z");
    let lane = telemetry.take(&end, &[], 0).remove(0);
    assert_eq!(
        lane.end_time_unix_nano - lane.start_time_unix_nano,
        2_500_000_000
    );
}

#[test]
fn an_answer_says_how_many_were_rejected() {
    let answer = |rejected, error_message: &str| {
        let partial = PartialSuccess {
            rejected,
            error_message: error_message.to_owned(),
        };
        let partial_success = Some(partial);
        rejection(&Answer { partial_success }.encode_to_vec())
    };
    assert_eq!(rejection(&[]), None);
    assert_eq!(rejection(b"not a message"), None);
    assert_eq!(answer(0, ""), None);
    assert_eq!(answer(0, "use gzip"), Some((0, "use gzip".to_owned())));
    assert_eq!(answer(3, "full"), Some((3, "full".to_owned())));
    assert_eq!(answer(-1, "x"), Some((0, "x".to_owned())));
}
