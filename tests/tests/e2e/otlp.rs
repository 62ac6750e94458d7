//! Export to a receiver of OpenTelemetry, decoded by the published crate: spans are
//! those of the run log, sums those of `premath status`.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value as Number};
use opentelemetry_proto::tonic::trace::v1::Span;
use premath_kernel::json::stamp::Stamp;
use premath_tests::{PATIENCE, Posted, Scratch, issue, receiver, until};
use prost::Message;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn exported(lanes: usize, ids: &[&str], url: &str, more: &str) -> Scratch {
    let rows: Vec<Value> = ids.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(lanes, &rows);
    let settings = format!("[telemetry]\notlp_endpoint = \"{url}\"\n{more}");
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

pub(crate) fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text),
        other => panic!("{key}: {other:?}"),
    }
}

pub(crate) fn nanoseconds(row: &Value, key: &str) -> u64 {
    let stamp = Stamp::parse(row[key].as_str().unwrap()).unwrap();
    u64::try_from(stamp.time().as_nanosecond()).unwrap()
}

pub(crate) fn spans(posted: &[Posted]) -> Vec<Span> {
    let traces = posted
        .iter()
        .filter(|(head, _)| head.starts_with("post /v1/traces "));
    let requests = traces.map(|(_, body)| ExportTraceServiceRequest::decode(&**body).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans);
    let scopes = scopes.flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Returns the newest points, by metric and label; those that differ otherwise are
/// added up.
pub(crate) fn points(posted: &[Posted], label: &str) -> BTreeMap<String, f64> {
    let metrics = posted
        .iter()
        .filter(|(head, _)| head.starts_with("post /v1/metrics "));
    let requests = metrics.map(|(_, body)| ExportMetricsServiceRequest::decode(&**body).unwrap());
    let scopes = requests.flat_map(|request| request.resource_metrics);
    let scopes = scopes.flat_map(|resource| resource.scope_metrics);
    let mut newest: BTreeMap<String, (u64, String, f64)> = BTreeMap::new();
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let Some(Data::Sum(sum)) = &metric.data else {
            panic!("{metric:?}");
        };
        assert_eq!((sum.aggregation_temporality, sum.is_monotonic), (2, true));
        for point in &sum.data_points {
            let value = match point.value.unwrap() {
                Number::AsInt(count) => count as f64,
                Number::AsDouble(amount) => amount,
            };
            let of = text(&point.attributes, label).map(|of| format!("/{of}"));
            let name = format!("{}{}", metric.name, of.unwrap_or_default());
            let whole = format!("{} {:?}", metric.name, point.attributes);
            let was = newest.entry(whole).or_default();
            if point.time_unix_nano >= was.0 {
                *was = (point.time_unix_nano, name, value);
            }
        }
    }
    let mut all = BTreeMap::new();
    for (_, name, value) in newest.into_values() {
        *all.entry(name).or_default() += value;
    }
    all
}

#[test]
fn spans_are_the_rows_of_the_run_log_and_sums_those_of_status() {
    let (url, posted) = receiver(&["200 OK"]);
    let more = "headers_env = \"E2E_OTLP\"\n";
    let scratch = exported(1, &["a", "b"], &url, more);
    // One issue passes and one fails.
    let verify = "test \"$PREMATH_ISSUE_ID\" = a";
    let batch = scratch
        .batch("true", verify)
        .env("E2E_OTLP", "api-key=a%20b");
    batch.end().exits(1);
    let posted: Vec<Posted> = posted.try_iter().collect();
    assert!(
        posted
            .iter()
            .all(|(head, _)| head.contains("api-key: a b\r\n")),
        "{posted:?}"
    );
    spans_are_those_of_the_run_log(&scratch, &posted, 1);
    sums_are_those_of_status(&scratch, &posted);
    let points = points(&posted, "error.type");
    let is_failure = |name: &&String| name.starts_with("premath.batch.failed_attempts/");
    assert!(points.keys().any(|name| is_failure(&name)), "{points:?}");
}

/// Asserts that each row has its span, below its lane, below the batch.
#[track_caller]
pub(crate) fn spans_are_those_of_the_run_log(scratch: &Scratch, posted: &[Posted], lanes: usize) {
    let spans = spans(posted);
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "a span came twice: {spans:?}");
    let rows = scratch.trajectory();
    let named = |name: &str| -> Vec<&Span> {
        let named = spans.iter().filter(|span| span.name == name);
        named.collect()
    };
    let batch = named("batch")[0];
    assert_eq!(named("batch").len(), 1);
    assert_eq!(batch.parent_span_id, [0_u8; 0]);
    let is_start = |row: &&Value| row["action"] == "coordinator.batch_start";
    let start = rows.iter().find(is_start).unwrap();
    assert_eq!(batch.start_time_unix_nano, nanoseconds(start, "startedAt"));
    let lane_spans = named("lane");
    assert_eq!(lane_spans.len(), lanes);
    let parents = lane_spans.iter().map(|lane| &lane.parent_span_id);
    assert!(parents.into_iter().all(|parent| *parent == batch.span_id));
    let mut attempts = 0;
    let opens = ["coordinator.batch_start", "coordinator.batch_resume"];
    let others = rows.iter().filter(|row| {
        let action = row["action"].as_str().unwrap();
        !opens.contains(&action)
    });
    for row in others {
        let id = row["stepId"].as_str();
        let is_its = |span: &&Span| text(&span.attributes, "premath.step.id") == id;
        let its: Vec<&Span> = spans.iter().filter(is_its).collect();
        assert_eq!(its.len(), 1, "{row}");
        let span = its[0];
        assert_eq!(span.trace_id, batch.trace_id);
        assert_eq!(span.end_time_unix_nano, nanoseconds(row, "finishedAt"));
        let class = text(&span.attributes, "premath.result_class");
        assert_eq!(class, row["resultClass"].as_str());
        if row["action"] != "worker.loop" {
            continue;
        }
        attempts += 1;
        let (began, ended) = (span.start_time_unix_nano, span.end_time_unix_nano);
        assert_eq!(began, nanoseconds(row, "startedAt"));
        let worker = row["workerId"].as_str();
        let is_lane = |lane: &&&Span| text(&lane.attributes, "premath.worker.id") == worker;
        let lane = lane_spans.iter().find(is_lane).unwrap();
        assert_eq!(span.parent_span_id, lane.span_id);
        assert!(lane.start_time_unix_nano <= began && ended <= lane.end_time_unix_nano);
        let error = row["failureClasses"][0].as_str();
        assert_eq!(text(&span.attributes, "error.type"), error);
        let code = span.status.as_ref().unwrap().code;
        assert_eq!(code, if error.is_some() { 2 } else { 1 });
    }
    assert!(attempts >= 2, "{rows:?}");
}

/// Asserts that the newest sums are the totals that `premath status` has.
#[track_caller]
pub(crate) fn sums_are_those_of_status(scratch: &Scratch, posted: &[Posted]) {
    let status = scratch.premath(["status", "--json"]).end().exits(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let totals = &status["batches"][0]["totals"];
    let points = points(posted, "error.type");
    assert_eq!(
        totals["attempts"].as_f64(),
        Some(points["premath.batch.attempts"])
    );
    assert_eq!(
        totals["closed"].as_f64(),
        Some(points["premath.batch.closed_issues"])
    );
    let failures = totals["failures"].as_object().unwrap();
    for (class, count) in failures {
        let point = points[&format!("premath.batch.failed_attempts/{class}")];
        assert_eq!(count.as_f64(), Some(point), "{class}");
    }
    let used = &status["batches"][0]["used"];
    let tokens = points.get("premath.batch.tokens").copied();
    assert_eq!(used["tokens"].as_f64(), tokens, "{used}");
    let dollars = points.get("premath.batch.cost").copied();
    let expected = used["costNanoUsd"].as_f64().map(|nano| nano / 1e9);
    assert_eq!(expected, dollars, "{used}");
    let by_rule = self::points(posted, "rule");
    let denials = totals["denials"].as_object().unwrap();
    for (rule, count) in denials {
        let point = by_rule[&format!("premath.batch.denied_calls/{rule}")];
        assert_eq!(count.as_f64(), Some(point), "{rule}");
    }
}

#[test]
fn each_lane_has_its_span_with_its_attempts_below_it() {
    let (url, posted) = receiver(&["200 OK"]);
    let scratch = exported(2, &["a", "b", "c"], &url, "");
    // Both lanes work: neither of the first two ends before the other has begun.
    let work = "touch \"$HOME/$PREMATH_ISSUE_ID\"; \
        until [ -e \"$HOME/a\" ] && [ -e \"$HOME/b\" ]; do sleep 0.05; done";
    scratch.batch(work, "true").end().exits(0);
    let posted: Vec<Posted> = posted.try_iter().collect();
    spans_are_those_of_the_run_log(&scratch, &posted, 2);
    sums_are_those_of_status(&scratch, &posted);
}

#[test]
fn a_resumed_batch_is_one_trace_in_which_no_span_comes_twice() {
    let (url, posted) = receiver(&["200 OK"]);
    let scratch = exported(1, &["a", "b"], &url, "");
    let work = "touch \"$HOME/started-$PREMATH_ISSUE_ID\"; \
        until [ -e \"$HOME/go\" ] || [ $PREMATH_ISSUE_ID = a ]; do sleep 0.05; done";
    let killed = scratch.batch(work, "true").start();
    let started = scratch.home().join("started-b");
    until(PATIENCE, || started.exists().then_some(())).unwrap();
    let mut all: Vec<Posted> = Vec::new();
    // What was sent before the kill is not sent again.
    until(PATIENCE, || {
        all.extend(posted.try_iter());
        let attempts = spans(&all);
        let attempts = attempts.iter().filter(|span| span.name == "attempt");
        (attempts.count() == 1).then_some(())
    })
    .unwrap();
    killed.signal(Signal::KILL);
    killed.wait();
    fs::write(scratch.home().join("go"), "").unwrap();
    scratch.batch(work, "true").end().exits(0);
    all.extend(posted.try_iter());
    let rows = scratch.trajectory();
    let resumed = |row: &Value| row["action"] == "coordinator.batch_resume";
    assert!(rows.iter().any(resumed), "{rows:?}");
    spans_are_those_of_the_run_log(&scratch, &all, 1);
    sums_are_those_of_status(&scratch, &all);
    let traces: BTreeSet<_> = spans(&all).into_iter().map(|span| span.trace_id).collect();
    assert_eq!(traces.len(), 1);
}

#[test]
fn a_receiver_that_is_gone_or_hangs_costs_one_warning_and_a_bounded_time() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let scratch = exported(1, &["a"], &url, "");
    let ended = scratch.batch("true", "true").end().exits(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(said.matches("telemetry is incomplete").count(), 1, "{said}");
    // It takes connections into its backlog and never answers.
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", hangs.local_addr().unwrap());
    let scratch = exported(1, &["a"], &url, "timeout = \"1s\"\n");
    let ended = scratch.batch("true", "true").end().exits(0);
    let over = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let rows = scratch.trajectory();
    let is_end = |row: &&Value| row["action"] == "coordinator.batch_end";
    let end = nanoseconds(rows.iter().find(is_end).unwrap(), "finishedAt");
    let took = over.saturating_sub(Duration::from_nanos(end));
    // Less than the timeout that counts where none is set, which is 10 s.
    assert!(took < Duration::from_secs(8), "{took:?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(said.matches("telemetry is incomplete").count(), 1, "{said}");
}
