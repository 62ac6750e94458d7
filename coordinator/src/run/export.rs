//! What a batch records, as the documents that are exported.

use harness_worker::batch::{Batch, RecordedRow};
use harness_worker::telemetry::{Export, Exporter, Rejection};
use premath_view::telemetry::{CONTENT_TYPE, METRICS_PATH, TRACES_PATH, Telemetry, rejection};
use std::sync::Arc;

/// Begins to export a batch; `None` where that is not set.
pub(super) fn exporter(batch: &Arc<Batch>) -> Option<Exporter> {
    let version = env!("CARGO_PKG_VERSION");
    let mut telemetry = Telemetry::new(batch.id(), &batch.started_at(), version);
    telemetry.resume(batch.earlier_lanes());
    Exporter::start(batch, Box::new(move |rows| exports(&mut telemetry, rows)))
}

/// Returns the spans of rows, and the totals as they were with the last of them.
fn exports(telemetry: &mut Telemetry, rows: &[RecordedRow]) -> Vec<Export> {
    let spans = rows
        .iter()
        .flat_map(|recorded| telemetry.take(&recorded.row, &recorded.calls, recorded.more_calls));
    let spans: Vec<_> = spans.collect();
    let traces = telemetry.traces(spans).into_iter();
    let traces = traces.map(|body| (TRACES_PATH, body));
    let last = rows.iter().rev().find_map(|recorded| {
        let totals = recorded.totals.as_ref()?;
        Some(telemetry.metrics(totals, &recorded.row.finished_at))
    });
    let metrics = last.map(|body| (METRICS_PATH, body));
    let export = |(path, body)| Export {
        path,
        content_type: CONTENT_TYPE,
        body,
        rejection: |answer| {
            let (count, why) = rejection(answer)?;
            Some(Rejection { count, why })
        },
    };
    traces.chain(metrics).map(export).collect()
}
