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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
type KeptReport = (ReportKey, Option<Arc<Report>>);

/// The report that was made last. One is made at a time, and who waits for it holds no
/// place of a reader.
#[derive(Default)]
pub(super) struct Reports {
    kept: Arc<tokio::sync::Mutex<Option<KeptReport>>>,
    /// How many were made.
    made: AtomicU64,
}

/// Which batch.
#[derive(Debug, Deserialize)]
pub(super) struct Batch {
    #[serde(default)]
    batch: String,
}

pub(super) async fn report(State(site): Shared, Query(which): Query<Batch>) -> Response {
    match site.report(which.batch).await {
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
    /// that was made last where nothing was written since, or where it was made while
    /// this request waited.
    async fn report(self: &Arc<Self>, batch: String) -> Result<Option<Arc<Report>>, CliError> {
        let made = self.reports.made.load(Ordering::Acquire);
        let mut kept = Arc::clone(&self.reports.kept).lock_owned().await;
        // The lock goes with the work, which continues where the client went away.
        self.read(move |site| site.kept_report(&batch, &mut kept, made))
            .await
    }

    fn kept_report(
        &self,
        batch: &str,
        kept: &mut Option<KeptReport>,
        made: u64,
    ) -> Result<Option<Arc<Report>>, CliError> {
        let key = ReportKey {
            batch: batch.to_owned(),
            run_log: store_stamp(&self.roots.trajectory),
            issues: store_stamp(&self.roots.issues),
        };
        let is_new = self.reports.made.load(Ordering::Acquire) > made;
        let fits = |of: &ReportKey| *of == key || (is_new && of.batch == batch);
        if let Some((_, report)) = kept.as_ref().filter(|(of, _)| fits(of)) {
            return Ok(report.clone());
        }
        let report = self.make_report(batch)?.map(Arc::new);
        *kept = Some((key, report.clone()));
        self.reports.made.fetch_add(1, Ordering::AcqRel);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::door::Door;
    use premath_memory::roots::MemoryRoots;
    use std::time::Duration;

    #[tokio::test]
    async fn who_waits_for_a_report_holds_up_no_reader_and_shares_it() {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let roots = MemoryRoots::discover(folder.path()).unwrap();
        let address = "127.0.0.1:1".parse().unwrap();
        let door = Door::new(address, None, None).unwrap();
        let site = Arc::new(Site::of(roots, door, false));
        let begun = Arc::clone(&site.reports.kept).lock_owned().await;
        let requests: Vec<_> = (0..20)
            .map(|_| {
                let site = Arc::clone(&site);
                tokio::spawn(async move { site.report(String::new()).await })
            })
            .collect();
        // Every request waits by now: this task had its turn after each of them.
        for _ in &requests {
            tokio::task::yield_now().await;
        }
        let read = tokio::time::timeout(Duration::from_secs(10), site.read(|_| Ok(7)));
        assert_eq!(read.await.expect("a reader is free").unwrap(), 7);
        drop(begun);
        for request in requests {
            assert!(request.await.unwrap().unwrap().is_none());
        }
        assert_eq!(site.reports.made.load(Ordering::Acquire), 1);
        let run_log = &site.roots.trajectory;
        std::fs::create_dir_all(run_log.parent().unwrap()).unwrap();
        std::fs::write(run_log, "").unwrap();
        assert!(site.report(String::new()).await.unwrap().is_none());
        assert_eq!(site.reports.made.load(Ordering::Acquire), 2);
    }
}
