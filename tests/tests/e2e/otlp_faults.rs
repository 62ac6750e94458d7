//! What a batch does where its export cannot be complete: headers that are not there,
//! and a receiver that takes a part.

use super::otlp::exported;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use premath_tests::{receiver, receiver_saying};
use prost::Message;

#[test]
fn headers_that_are_not_there_refuse_the_batch_before_it_begins() {
    let (url, posted) = receiver(&["200 OK"]);
    let scratch = exported(1, &["a"], &url, "headers_env = \"E2E_OTLP\"\n");
    let before = scratch.issue_bytes();
    for (value, expected) in [
        (None, "E2E_OTLP is not set"),
        (Some(""), "E2E_OTLP is not set"),
        (
            Some("s3cret"),
            "E2E_OTLP is not of the form key=value,key=value",
        ),
        (Some("a=s3cret%0d%0a"), "E2E_OTLP is not of the form"),
    ] {
        let run = scratch.batch("true", "true");
        let run = value
            .into_iter()
            .fold(run, |run, value| run.env("E2E_OTLP", value));
        let refused = run.end().exits(3);
        let refused = refused
            .says(expected)
            .says("hint: set the variable that headers_env under [telemetry] names")
            .says("refused before dispatch: telemetry_headers_unusable");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(!said.contains("s3cret"), "{said}");
    }
    // A variable that passes to commands must not hold a secret.
    let leaked = scratch
        .batch("true", "true")
        .env("E2E_OTLP", "a=b")
        .env("PREMATH_ENV_ALLOW", "E2E_OTLP");
    leaked
        .end()
        .exits(3)
        .says("E2E_OTLP passes to the commands of steps");
    assert_eq!(posted.try_iter().count(), 0);
    assert_eq!(scratch.issue_bytes(), before);
    let rows = scratch.trajectory();
    assert_eq!(rows.len(), 5, "{rows:?}");
    for row in rows {
        assert_eq!(
            row["failureClasses"][0], "telemetry_headers_unusable",
            "{row}"
        );
        assert_eq!(row["action"], "coordinator.dispatch_refused", "{row}");
    }
}

#[test]
fn what_a_receiver_rejects_is_counted_and_its_words_are_escaped() {
    let answer = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 1_000,
            error_message: "no \u{1b}[2J room\nerror: forged".to_owned(),
        }),
    };
    let (url, _posted) = receiver_saying(answer.encode_to_vec());
    let scratch = exported(1, &["a"], &url, "");
    let ended = scratch.batch("true", "true").end().exits(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let line = said
        .lines()
        .find(|line| line.contains("telemetry is incomplete"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("000 spans or points were rejected"), "{line}");
    assert!(line.contains("no \\u{1b}[2J room"), "{line}");
    assert!(
        !said.contains('\u{1b}') && !said.contains("\nerror: forged"),
        "{said}"
    );
    // Neither a body of another kind nor one that is too long takes anything back.
    for body in [b"<html>".to_vec(), vec![b'x'; 1 << 20]] {
        let (url, _posted) = receiver_saying(body);
        let scratch = exported(1, &["a"], &url, "");
        let ended = scratch.batch("true", "true").end().exits(0);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("telemetry"), "{said}");
    }
}
