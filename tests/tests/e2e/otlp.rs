//! Export to a receiver of OpenTelemetry, decoded by the published crate: spans are
//! those of the run log, sums those of `premath status`.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value as Number};
use opentelemetry_proto::tonic::trace::v1::Span;
use premath_kernel::json::stamp::Stamp;
use premath_tests::{Posted, Scratch, issue, receiver};
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn exported(ids: &[&str], url: &str, more: &str) -> Scratch {
    let rows: Vec<Value> = ids.iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(1, &rows);
    let settings = format!("[telemetry]\notlp_endpoint = \"{url}\"\n{more}");
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text),
        other => panic!("{key}: {other:?}"),
    }
}

fn nanoseconds(row: &Value, key: &str) -> u64 {
    let stamp = Stamp::parse(row[key].as_str().unwrap()).unwrap();
    u64::try_from(stamp.time().as_nanosecond()).unwrap()
}

fn spans(posted: &[Posted]) -> Vec<Span> {
    let traces = posted
        .iter()
        .filter(|(head, _)| head.starts_with("post /v1/traces "));
    let requests = traces.map(|(_, body)| ExportTraceServiceRequest::decode(&**body).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans);
    let scopes = scopes.flat_map(|resource| resource.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Returns the points of the last message, by metric and label.
fn points(posted: &[Posted], label: &str) -> BTreeMap<String, f64> {
    let mut metrics = posted
        .iter()
        .filter(|(head, _)| head.starts_with("post /v1/metrics "));
    let (_, body) = metrics.next_back().unwrap();
    let request = ExportMetricsServiceRequest::decode(&**body).unwrap();
    let mut all = BTreeMap::new();
    for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
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
            *all.entry(name).or_default() += value;
        }
    }
    all
}

#[test]
fn spans_are_the_rows_of_the_run_log_and_sums_those_of_status() {
    let (url, posted) = receiver(&["200 OK"]);
    let more = "headers_env = \"E2E_OTLP\"\n";
    let scratch = exported(&["a", "b"], &url, more);
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
    let spans = spans(&posted);
    let rows = scratch.trajectory();
    let of_action = |action: &str| rows.iter().find(|row| row["action"] == action).unwrap();
    let named = |name: &str| {
        let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name}: {spans:?}");
        found[0]
    };
    let (batch, lane) = (named("batch"), named("lane"));
    assert_eq!(lane.parent_span_id, batch.span_id);
    assert_eq!(batch.parent_span_id, [0_u8; 0]);
    let start = of_action("coordinator.batch_start");
    assert_eq!(batch.start_time_unix_nano, nanoseconds(start, "startedAt"));
    let mut attempts = 0;
    for row in rows
        .iter()
        .filter(|row| row["action"] != "coordinator.batch_start")
    {
        let id = row["stepId"].as_str();
        let is_its = |span: &&Span| text(&span.attributes, "premath.step.id") == id;
        let its: Vec<&Span> = spans.iter().filter(is_its).collect();
        assert_eq!(its.len(), 1, "{row}");
        let span = its[0];
        assert_eq!(span.trace_id, batch.trace_id);
        assert_eq!(span.end_time_unix_nano, nanoseconds(row, "finishedAt"));
        let class = text(&span.attributes, "premath.result_class");
        assert_eq!(class, row["resultClass"].as_str());
        if row["action"] == "worker.loop" {
            attempts += 1;
            assert_eq!(span.start_time_unix_nano, nanoseconds(row, "startedAt"));
            assert_eq!(span.parent_span_id, lane.span_id);
            let error = row["failureClasses"][0].as_str();
            assert_eq!(text(&span.attributes, "error.type"), error);
            let code = span.status.as_ref().unwrap().code;
            assert_eq!(code, if error.is_some() { 2 } else { 1 });
        }
    }
    assert!(attempts >= 2, "{rows:?}");
    sums_are_those_of_status(&scratch, &posted);
}

fn sums_are_those_of_status(scratch: &Scratch, posted: &[Posted]) {
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
    assert!(!failures.is_empty(), "{totals}");
    for (class, count) in failures {
        let point = points[&format!("premath.batch.failed_attempts/{class}")];
        assert_eq!(count.as_f64(), Some(point), "{class}");
    }
}

#[test]
fn a_receiver_that_is_gone_or_hangs_costs_one_warning_and_a_bounded_time() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let scratch = exported(&["a"], &url, "");
    let ended = scratch.batch("true", "true").end().exits(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(said.matches("telemetry is incomplete").count(), 1, "{said}");
    // It takes connections into its backlog and never answers.
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", hangs.local_addr().unwrap());
    let scratch = exported(&["a"], &url, "timeout = \"1s\"\n");
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
