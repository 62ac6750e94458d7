//! What the pages share: the repository, who may ask, and the routes.

use super::door::{self, Door};
use super::pages;
use super::watch::Watch;
use crate::error::CliError;
use crate::http::Token;
use crate::paths;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use harness_worker::stderr::local_zone;
use hyper_util::service::TowerToHyperService;
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, clock};
use premath_view::figures::Viewer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The most requests that read files at a time; the others wait.
const READERS_MOST: usize = 4;

/// What the pages share.
pub(super) struct Site {
    pub(super) roots: MemoryRoots,
    pub(super) door: Door,
    /// Whether running batches can be controlled from the page.
    pub(super) controls: bool,
    pub(super) watch: Watch,
    /// Opened with the first page that needs it, and shared from then on.
    memory: Mutex<Option<Arc<IssueMemory>>>,
    readers: Semaphore,
}

impl Site {
    pub(super) fn new(address: SocketAddr, token: Token, controls: bool) -> Result<Self, CliError> {
        Ok(Self {
            roots: paths::roots()?,
            door: Door::new(address, token)?,
            controls,
            watch: Watch::new(),
            memory: Mutex::default(),
            readers: Semaphore::new(READERS_MOST),
        })
    }

    /// Returns what answers requests.
    pub(super) fn service(self: Arc<Self>) -> TowerToHyperService<Router> {
        Arc::clone(&self).keep_watch();
        let guard = from_fn_with_state(Arc::clone(&self), door::guard);
        let routes = routes().fallback(pages::missing);
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

    /// Reads files on a thread beside the connections.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, CliError> {
        let site = Arc::clone(self);
        let lost = |error: String| crate::http::failed("read")(std::io::Error::other(error));
        let place = self.readers.acquire().await;
        let _place = place.map_err(|error| lost(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || read(&site)).await;
        done.map_err(|error| lost(error.to_string()))?
    }
}

/// Returns the pages; each is for who passed the door.
fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/", get(pages::overview))
        .route("/events", get(pages::events))
        .route("/status.json", get(pages::status))
        .route("/page.css", get(pages::style))
        .route("/page.js", get(pages::script))
}
