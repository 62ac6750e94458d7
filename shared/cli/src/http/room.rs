//! The connections of a server: how many there may be, and which one goes where there
//! are too many.

use http::Extensions;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// The most connections that are served at a time.
pub(super) const CONNECTIONS_MOST: usize = 512;

/// Whether a client has sent a request that was let in. Every request bears the one of
/// its client, as an extension.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acquaintance(Arc<AtomicBool>);

impl Acquaintance {
    /// Notes that a request is let in, before its work begins.
    pub(crate) fn note(extensions: &Extensions) {
        if let Some(client) = extensions.get::<Self>() {
            client.0.store(true, Ordering::Relaxed);
        }
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A client that has a place, and was not let in yet.
#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    client: Acquaintance,
    task: AbortHandle,
}

/// The places of a server's connections. A client that was let in keeps its place; of
/// the others one gives way, so that silent connections do not keep clients out: the
/// first of the address with the most.
#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    strangers: VecDeque<Stranger>,
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
        self.forget();
        if let Some(stranger) = self.first_of_most() {
            stranger.task.abort();
        }
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Removes the first stranger of the address that has the most of them.
    fn first_of_most(&mut self) -> Option<Stranger> {
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        for stranger in &self.strangers {
            *counts.entry(stranger.address).or_default() += 1;
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let mut strangers = self.strangers.iter();
        let first = strangers.position(|stranger| stranger.address == most)?;
        self.strangers.remove(first)
    }

    /// Forgets who was let in or left.
    fn forget(&mut self) {
        let is_stranger = |one: &Stranger| !one.client.is_known() && !one.task.is_finished();
        self.strangers.retain(is_stranger);
    }

    /// Takes in a client that has a place.
    pub(super) fn admit(&mut self, address: IpAddr, client: Acquaintance, task: AbortHandle) {
        self.strangers.push_back(Stranger {
            address,
            client,
            task,
        });
        if self.strangers.len() > CONNECTIONS_MOST {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn taken(room: &mut Room, address: &str, is_known: bool) -> tokio::task::JoinHandle<()> {
        let place = room.place().await.unwrap();
        let client = Acquaintance::default();
        if is_known {
            let mut extensions = Extensions::new();
            extensions.insert(client.clone());
            Acquaintance::note(&extensions);
        }
        let task = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(place);
        });
        room.admit(address.parse().unwrap(), client, task.abort_handle());
        task
    }

    #[tokio::test]
    async fn the_first_stranger_of_the_address_with_the_most_gives_way() {
        let mut room = Room::new();
        let known = taken(&mut room, "10.0.0.1", true).await;
        let other = taken(&mut room, "10.0.0.2", false).await;
        let mut flood = Vec::new();
        for _ in 0..CONNECTIONS_MOST + 5 {
            flood.push(taken(&mut room, "10.0.0.1", false).await);
        }
        let (first, last) = flood.split_at_mut(7);
        for task in first {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert!(last.iter().all(|task| !task.is_finished()));
        assert!(!known.is_finished() && !other.is_finished());
    }
}
