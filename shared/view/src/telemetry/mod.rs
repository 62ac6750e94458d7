//! A batch as traces and metrics of OpenTelemetry: spans from the rows of the run
//! log, sums from the batch's totals, both as messages of OTLP.
//!
//! Ids are digests of the ids of batch and step: each export of a row has the same
//! span. A call has a span where hooks reported it, with the times at which the
//! harness took their events. Titles, prompts, paths, commands and output are not sent.

mod attribute;
mod otlp;
mod sums;

use attribute::{attribute, id_bytes, of_call, of_row, whole};
use otlp::{
    Answer, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, SpanKind, Status, StatusCode,
    TracesRequest,
};
use premath_kernel::json::id::{BatchId, WorkerName};
use premath_kernel::json::plain::plain;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::timed_call::TimedCall;
use premath_kernel::record::trajectory::{StepRow, action};
use prost::Message;
use std::collections::BTreeMap;

pub use otlp::Span;

/// The path of traces below the base of an endpoint.
pub const TRACES_PATH: &str = "/v1/traces";

/// The path of metrics below the base of an endpoint.
pub const METRICS_PATH: &str = "/v1/metrics";

/// The most spans of a message.
const SPANS_MAX: usize = 2_000;

/// The type of both, for HTTP.
pub const CONTENT_TYPE: &str = "application/x-protobuf";

/// What exports a batch: it takes its rows in their order.
#[derive(Debug)]
pub struct Telemetry {
    batch_id: BatchId,
    started_at: Stamp,
    version: String,
    /// The first start and the last end of a lane's rows.
    lanes: BTreeMap<WorkerName, (u64, u64)>,
}

impl Telemetry {
    /// Begins with a batch and the version of the harness.
    pub fn new(batch_id: &BatchId, started_at: &Stamp, version: &str) -> Self {
        Self {
            batch_id: batch_id.clone(),
            started_at: started_at.clone(),
            version: version.to_owned(),
            lanes: BTreeMap::new(),
        }
    }

    /// Takes in when lanes worked before the batch was cut: spans of lanes and of the
    /// batch are sent once, at its end, and contain all of its processes.
    pub fn resume<'l>(
        &mut self,
        lanes: impl IntoIterator<Item = (&'l WorkerName, &'l (Stamp, Stamp))>,
    ) {
        for (worker, (began, ended)) in lanes {
            self.worked(worker, (nanoseconds(began), nanoseconds(ended)));
        }
    }

    /// Returns the spans that a row completes: its own with those of its calls, and
    /// with the row of the batch's end those of the lanes and of the batch. A row of
    /// another batch completes none. `more` is how many calls the attempt had beside
    /// those that are given.
    pub fn take(&mut self, row: &StepRow, calls: &[TimedCall], more: u64) -> Vec<Span> {
        if row.batch_id.as_ref() != Some(&self.batch_id) {
            return Vec::new();
        }
        match row.action.as_str() {
            action::BATCH_START | action::BATCH_RESUME => Vec::new(),
            action::BATCH_END => self.end(row),
            _ => self.attempt(row, calls, more),
        }
    }

    /// Returns the span of a row, and those of its calls below it.
    fn attempt(&mut self, row: &StepRow, calls: &[TimedCall], more: u64) -> Vec<Span> {
        let mut step = self.step(row);
        if more > 0 {
            let count = whole("premath.agent.calls_left_out", more);
            step.attributes.push(count);
        }
        let below = step.span_id.clone();
        let calls = calls.iter().map(|call| self.call(row, call, below.clone()));
        let calls: Vec<Span> = calls.collect();
        [step].into_iter().chain(calls).collect()
    }

    /// Returns the span of a call. One whose end was not reported, and one that was
    /// denied, has no length.
    fn call(&self, row: &StepRow, call: &TimedCall, parent: Vec<u8>) -> Span {
        let start = nanoseconds(&call.began);
        let end = call.ended.as_ref().map_or(start, nanoseconds).max(start);
        let id = format!("call:{}:{}:{}", row.step_id, call.round, call.number);
        let span = self.span("call", id_bytes(&id, 8), parent, (start, end));
        let (code, message) = match (&call.denied_by, call.has_failed, &call.ended) {
            (Some(rule), ..) => (StatusCode::Error, format!("denied by {}", plain(rule))),
            (None, true, _) => (StatusCode::Error, String::new()),
            (None, false, Some(_)) => (StatusCode::Ok, String::new()),
            (None, false, None) => (StatusCode::Unset, String::new()),
        };
        Span {
            attributes: of_call(call),
            status: Some(Status {
                message,
                code: code.into(),
            }),
            ..span
        }
    }

    fn worked(&mut self, worker: &WorkerName, (start, end): (u64, u64)) {
        let lane = self.lanes.entry(worker.clone()).or_insert((start, end));
        *lane = (lane.0.min(start), lane.1.max(end));
    }

    /// Returns the messages of spans, none without one.
    pub fn traces(&self, mut spans: Vec<Span>) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        while !spans.is_empty() {
            let rest = spans.split_off(spans.len().min(SPANS_MAX));
            messages.push(self.message(spans));
            spans = rest;
        }
        messages
    }

    fn message(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope_spans = vec![ScopeSpans {
            scope: Some(self.scope()),
            spans,
        }];
        let request = TracesRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource()),
                scope_spans,
            }],
        };
        request.encode_to_vec()
    }

    fn step(&mut self, row: &StepRow) -> Span {
        let end = nanoseconds(&row.finished_at);
        let start = row.started_at.as_ref().map_or(end, nanoseconds).min(end);
        let parent = match &row.worker_id {
            None => self.batch_span(),
            Some(worker) => {
                self.worked(worker, (start, end));
                self.lane_span(worker)
            }
        };
        let name = match row.action.as_str() {
            action::WORKER_LOOP => "attempt",
            other => other,
        };
        let id = id_bytes(&row.step_id, 8);
        let span = self.span(name, id, parent, (start, end));
        Span {
            attributes: of_row(row),
            status: status_of(row),
            ..span
        }
    }

    fn end(&self, row: &StepRow) -> Vec<Span> {
        let lanes = self.lanes.iter().map(|(worker, times)| {
            let span = self.span("lane", self.lane_span(worker), self.batch_span(), *times);
            Span {
                attributes: vec![
                    attribute("premath.batch.id", &self.batch_id),
                    attribute("premath.worker.id", worker),
                ],
                ..span
            }
        });
        let times = (nanoseconds(&self.started_at), nanoseconds(&row.finished_at));
        let mut batch = self.span("batch", self.batch_span(), Vec::new(), times);
        batch.attributes = of_row(row);
        let lanes_count = whole("premath.batch.lanes", self.lanes.len() as u64);
        batch.attributes.push(lanes_count);
        batch.status = status_of(row);
        lanes.chain([batch]).collect()
    }

    fn span(&self, name: &str, id: Vec<u8>, parent: Vec<u8>, times: (u64, u64)) -> Span {
        Span {
            trace_id: id_bytes(&self.batch_id, 16),
            span_id: id,
            parent_span_id: parent,
            name: name.to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: times.0,
            end_time_unix_nano: times.1,
            attributes: Vec::new(),
            status: None,
        }
    }

    fn batch_span(&self) -> Vec<u8> {
        id_bytes(&format!("batch:{}", self.batch_id), 8)
    }

    fn lane_span(&self, worker: &WorkerName) -> Vec<u8> {
        id_bytes(&format!("lane:{}:{worker}", self.batch_id), 8)
    }

    fn scope(&self) -> Scope {
        Scope {
            name: "premath-harness".to_owned(),
            version: self.version.clone(),
        }
    }

    fn resource(&self) -> Resource {
        let attributes: Vec<KeyValue> = vec![
            attribute("service.name", "premath-harness"),
            attribute("service.version", &self.version),
            attribute("service.instance.id", &self.batch_id),
        ];
        Resource { attributes }
    }
}

/// Reads from the answer to either message how many spans or points the receiver did
/// not take, and why; `None` where it took all and has no message.
pub fn rejection(answer: &[u8]) -> Option<(u64, String)> {
    let partial = Answer::decode(answer).ok()?.partial_success?;
    let count = u64::try_from(partial.rejected).unwrap_or(0);
    (count > 0 || !partial.error_message.is_empty()).then_some((count, partial.error_message))
}

/// Returns the status of a row's span: an error with its first class, or ok.
fn status_of(row: &StepRow) -> Option<Status> {
    let (code, message) = match row.succeeded() {
        true => (StatusCode::Ok, String::new()),
        false => (StatusCode::Error, attribute::error_of(row)),
    };
    Some(Status {
        message,
        code: code.into(),
    })
}

/// Returns the nanoseconds since the epoch.
fn nanoseconds(stamp: &Stamp) -> u64 {
    u64::try_from(stamp.time().as_nanosecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
