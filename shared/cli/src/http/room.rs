//! The connections of a server: how many there may be, and which one goes where there
//! are too many.

use http::StatusCode;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// The most connections that are served at a time.
pub(super) const CONNECTIONS_MOST: usize = 512;

/// Whether a client has sent a request that was let in.
#[derive(Clone, Debug, Default)]
pub(super) struct Acquaintance(Arc<AtomicBool>);

impl Acquaintance {
    /// Takes in the answer to a request of the client.
    pub(super) fn answered(&self, status: StatusCode) {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The places of a server's connections. A client that was let in keeps its place; of
/// the others the one that came first gives way, so that silent connections do not keep
/// clients out.
#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    strangers: VecDeque<(Acquaintance, AbortHandle)>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(CONNECTIONS_MOST)),
            strangers: VecDeque::new(),
        }
    }

    /// Waits for a place; `None` where there will be none.
    pub(super) async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        self.strangers
            .retain(|(client, task)| !client.is_known() && !task.is_finished());
        if let Some((_, task)) = self.strangers.pop_front() {
            task.abort();
        }
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Takes in a client that has a place.
    pub(super) fn admit(&mut self, client: Acquaintance, task: AbortHandle) {
        self.strangers.push_back((client, task));
        if self.strangers.len() > CONNECTIONS_MOST {
            self.strangers
                .retain(|(client, task)| !client.is_known() && !task.is_finished());
        }
    }
}
