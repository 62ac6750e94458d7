//! The pages of the run log, of the dependencies and of the report.

use super::pages::Shared;
use super::site::Site;
use crate::error::CliError;
use crate::report::Sources;
use axum::extract::{Query, State};
use axum::response::Response;
use harness_worker::stderr::local_zone;
use premath_kernel::issue::{EdgeKind, Status};
use premath_kernel::record::live::StoreStamp;
use premath_memory::live::store_stamp;
use premath_memory::{BackBounds, rows_back};
use premath_view::report::{Reader, WhichBatches};
use premath_view::web::{self, GraphNode, GraphView, LogFilter, LogPart, Place};
use serde::Deserialize;
use std::sync::{Arc, PoisonError};

/// The most rows of a page, and the most bytes that are searched for them.
const BOUNDS: BackBounds = BackBounds {
    rows: 100,
    bytes: 256 << 20,
};

pub(super) async fn log(State(site): Shared, Query(filter): Query<LogFilter>) -> Response {
    let read = site.read(move |site| {
        let part = site.log(&filter)?;
        Ok(web::log(&part, &filter, &site.viewer()))
    });
    match read.await {
        Ok(content) => site.page(Place::Log, "Run log", &content),
        Err(error) => site.failed(&error),
    }
}

pub(super) async fn graph(State(site): Shared) -> Response {
    match site.read(|site| Ok(web::graph(&site.graph()?))).await {
        Ok(content) => site.page(Place::Graph, "Dependencies", &content),
        Err(error) => site.failed(&error),
    }
}

/// A report as the page shows it.
pub(super) struct Report {
    title: String,
    content: String,
}

/// What a report was made from.
#[derive(PartialEq, Eq)]
pub(super) struct ReportKey {
    batch: String,
    run_log: Option<StoreStamp>,
    issues: Option<StoreStamp>,
}

/// A report that is kept, where there was one, with what it was made from.
pub(super) type KeptReport = (ReportKey, Option<Arc<Report>>);

/// Which batch.
#[derive(Debug, Deserialize)]
pub(super) struct Batch {
    #[serde(default)]
    batch: String,
}

pub(super) async fn report(State(site): Shared, Query(which): Query<Batch>) -> Response {
    match site.read(move |site| site.report(&which.batch)).await {
        Ok(Some(report)) => site.page(Place::Report, &report.title, &report.content),
        Ok(None) => {
            let content = web::message(&[
                "No batch did work yet. The report has what the last one did, from its begin on.",
            ]);
            site.page(Place::Report, "Report", &content)
        }
        Err(error) => site.failed(&error),
    }
}

impl Site {
    fn log(&self, filter: &LogFilter) -> Result<LogPart, CliError> {
        // Whole values are looked up as the row has them.
        let texts = filter
            .texts()
            .map(|text| serde_json::Value::from(text).to_string());
        let mut texts: Vec<String> = texts.collect();
        texts.extend((!filter.class.is_empty()).then(|| filter.class.clone()));
        let path = &self.roots.trajectory;
        let found = rows_back(path, filter.end(), &texts, |row| filter.takes(row), BOUNDS)?;
        Ok(LogPart {
            rows: found.rows.into_iter().map(|(_, row)| row).collect(),
            unreadable: found.unreadable,
            before: found.before,
        })
    }

    fn graph(&self) -> Result<GraphView, CliError> {
        if store_stamp(&self.roots.issues).is_none() {
            return Ok(GraphView::default());
        }
        let nodes = self.memory()?.view(|view| {
            let rows = view.rows();
            let live = rows.filter(|row| row.issue.status != Status::Tombstone);
            let nodes = live.map(|row| {
                let issue = &row.issue;
                let edges = issue.dependencies.iter();
                let needs = edges.filter(|edge| matches!(edge.kind, EdgeKind::Holds(_)));
                let state = match &issue.status {
                    Status::Open if view.graph().is_ready(&issue.id) => "ready",
                    Status::Open => "waiting",
                    Status::InProgress => "in progress",
                    status => status.as_str(),
                };
                GraphNode {
                    id: issue.id.to_string(),
                    title: row.text_of("title"),
                    state: state.to_owned(),
                    needs: needs.map(|edge| edge.depends_on.to_string()).collect(),
                }
            });
            nodes.collect()
        })?;
        Ok(GraphView::of(nodes))
    }

    /// Returns the report of a batch, of the last one where none is named; the one
    /// that was made last where nothing was written since.
    fn report(&self, batch: &str) -> Result<Option<Arc<Report>>, CliError> {
        let key = ReportKey {
            batch: batch.to_owned(),
            run_log: store_stamp(&self.roots.trajectory),
            issues: store_stamp(&self.roots.issues),
        };
        let mut kept = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, report)) = kept.as_ref().filter(|(of, _)| *of == key) {
            return Ok(report.clone());
        }
        let report = self.make_report(batch)?.map(Arc::new);
        *kept = Some((key, report.clone()));
        Ok(report)
    }

    fn make_report(&self, batch: &str) -> Result<Option<Report>, CliError> {
        let which = match batch {
            "" => WhichBatches::LastWorking,
            id => WhichBatches::Named(id.into()),
        };
        let input = Sources::of(&self.roots, &self.roots.issues).input(&which, None)?;
        Ok(input.map(|input| {
            let report = input.report();
            let reader = Reader {
                zone: local_zone(),
                width: 120,
            };
            Report {
                title: web::report_title(&report),
                content: web::report(&report, &reader),
            }
        }))
    }
}
