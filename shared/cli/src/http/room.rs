//! The connections of a server: how many there may be, and which one goes where there
//! are too many.

use http::Extensions;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
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
/// first of the network with the most.
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

    /// Removes the first stranger of the network that has the most of them; of networks
    /// with as many, that of the one that came first.
    fn first_of_most(&mut self) -> Option<Stranger> {
        let mut networks = BTreeMap::<IpAddr, (usize, Reverse<usize>)>::new();
        for (place, stranger) in self.strangers.iter().enumerate() {
            let network = networks.entry(network(stranger.address));
            network.or_insert((0, Reverse(place))).0 += 1;
        }
        let (_, Reverse(first)) = networks.into_values().max()?;
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

/// Returns what one client may have many addresses of: 64 bits of version 6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
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

    #[tokio::test]
    async fn of_addresses_with_one_each_the_oldest_gives_way() {
        let mut room = Room::new();
        let mut flood = Vec::new();
        for number in 0..CONNECTIONS_MOST {
            let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
            flood.push(taken(&mut room, &format!("10.0.{high}.{low}"), false).await);
        }
        let newcomer = taken(&mut room, "192.168.0.1", false).await;
        let next = taken(&mut room, "10.9.0.1", false).await;
        for task in flood.drain(..2) {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert!(!newcomer.is_finished() && !next.is_finished());
        assert!(flood.iter().all(|task| !task.is_finished()));
    }

    #[tokio::test]
    async fn addresses_of_one_network_count_together() {
        let mut room = Room::new();
        let other = taken(&mut room, "2001:db8:0:1::1", false).await;
        let mut flood = Vec::new();
        for number in 0..CONNECTIONS_MOST {
            flood.push(taken(&mut room, &format!("2001:db8::{number:x}"), false).await);
        }
        assert!(flood.remove(0).await.unwrap_err().is_cancelled());
        assert!(!other.is_finished());
    }
}
