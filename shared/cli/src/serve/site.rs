//! What the pages share: the repository, who may ask, and the routes.

use super::door::{self, Door};
use super::watch::Watch;
use super::work::Reports;
use super::{control, issue, pages, work};
use crate::error::CliError;
use crate::paths;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use harness_worker::stderr::local_zone;
use hyper_util::service::TowerToHyperService;
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, clock};
use premath_view::figures::Viewer;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The most requests that read files at a time; the others wait.
const READERS_MOST: usize = 4;

/// The most requests to batches at a time; the others wait.
const WRITERS_MOST: usize = 8;

/// What the pages share.
pub(super) struct Site {
    pub(super) roots: MemoryRoots,
    pub(super) door: Door,
    /// Whether running batches can be controlled from the page.
    pub(super) controls: bool,
    pub(super) watch: Watch,
    /// Opened with the first page that needs it, and shared from then on.
    memory: Mutex<Option<Arc<IssueMemory>>>,
    lookers: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    pub(super) reports: Reports,
}

impl Site {
    pub(super) fn new(door: Door, controls: bool) -> Result<Self, CliError> {
        Ok(Self::of(paths::roots()?, door, controls))
    }

    /// Returns the site of a repository.
    pub(super) fn of(roots: MemoryRoots, door: Door, controls: bool) -> Self {
        Self {
            roots,
            door,
            controls,
            watch: Watch::new(),
            memory: Mutex::default(),
            lookers: Arc::new(Semaphore::new(1)),
            readers: Arc::new(Semaphore::new(READERS_MOST)),
            writers: Arc::new(Semaphore::new(WRITERS_MOST)),
            reports: Reports::default(),
        }
    }

    /// Returns what answers requests.
    pub(super) fn service(self: Arc<Self>) -> TowerToHyperService<Router> {
        Arc::clone(&self).keep_watch();
        let guard = from_fn_with_state(Arc::clone(&self), door::guard);
        let mut routes = routes();
        if self.controls {
            routes = routes.merge(control::routes());
        }
        let routes = routes.fallback(pages::missing);
        TowerToHyperService::new(routes.layer(guard).with_state(self))
    }

    /// Returns the repository's name.
    pub(super) fn name(&self) -> String {
        let name = self.roots.repository.file_name();
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns where and when a person looks.
    pub(super) fn viewer(&self) -> Viewer {
        Viewer {
            now: clock::now().wall,
            zone: local_zone(),
            width: 120,
        }
    }

    /// Returns issue memory.
    pub(super) fn memory(&self) -> Result<Arc<IssueMemory>, CliError> {
        let mut kept = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = &*kept {
            return Ok(Arc::clone(memory));
        }
        let memory = Arc::new(paths::open_to_share(&self.roots.issues)?);
        *kept = Some(Arc::clone(&memory));
        Ok(memory)
    }

    /// Looks at what batches publish on a thread beside the connections, whatever
    /// else is read.
    pub(super) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, CliError> {
        self.beside(&self.lookers, look).await
    }

    /// Reads files on a thread beside the connections.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, CliError> {
        self.beside(&self.readers, read).await
    }

    /// Asks a batch on a thread beside the connections; that may take as long as its
    /// attempts take to end.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        write: impl FnOnce(&Self) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, CliError> {
        self.beside(&self.writers, write).await
    }

    async fn beside<T: Send + 'static>(
        self: &Arc<Self>,
        places: &Arc<Semaphore>,
        work: impl FnOnce(&Self) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, CliError> {
        let lost = |error: String| crate::http::failed("answer")(std::io::Error::other(error));
        let place = Arc::clone(places).acquire_owned().await;
        let place = place.map_err(|error| lost(error.to_string()))?;
        let site = Arc::clone(self);
        // Work whose client went away holds its place to its end.
        let work = move || {
            let _place = place;
            work(&site)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| lost(error.to_string()))?
    }
}

/// Returns the pages; each is for who passed the door.
fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(pages::overview))
        .route("/events", get(pages::events))
        .route("/status.json", get(pages::status))
        .route("/metrics", get(pages::metrics))
        .route("/graph", get(work::graph))
        .route("/log", get(work::log))
        .route("/report", get(work::report))
        .route("/issue", get(issue::issue))
        .route("/output", get(issue::output))
        .route("/evidence", get(issue::evidence))
        .route("/page.css", get(pages::style))
        .route("/page.js", get(pages::script))
}
