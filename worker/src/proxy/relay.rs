//! Bytes between a client and a host, counted and with a bound on silence.

use super::State;
use premath_kernel::policy::network::RecordId;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// Bytes that are moved at once.
const CHUNK: usize = 16 * 1024;

/// How long a client may take to end its side after an answer.
const LINGER: Duration = Duration::from_secs(1);

/// The direction of the bytes.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

/// A connection whose bytes are counted.
pub(super) struct CountedConnection<'a> {
    state: &'a State,
    id: RecordId,
    moved: AtomicU64,
}

impl<'a> CountedConnection<'a> {
    pub(super) const fn new(state: &'a State, id: RecordId) -> Self {
        Self {
            state,
            id,
            moved: AtomicU64::new(0),
        }
    }

    /// Moves bytes both ways until both sides ended theirs. The end of one side
    /// is passed on, and the other side continues.
    pub(super) async fn tunnel(&self, mut client: UnixStream, mut host: TcpStream, first: &[u8]) {
        let (from_client, to_client) = client.split();
        let (from_host, to_host) = host.split();
        let up = async {
            let mut to_host = to_host;
            if self.write(&mut to_host, first, Way::Up).await.is_ok() {
                let _ = self
                    .pump(from_client, &mut to_host, u64::MAX, Way::Up)
                    .await;
            }
            let _ = to_host.shutdown().await;
        };
        let down = async {
            let mut to_client = to_client;
            let _ = self
                .pump(from_host, &mut to_client, u64::MAX, Way::Down)
                .await;
            let _ = to_client.shutdown().await;
        };
        tokio::select! {
            _ = async { tokio::join!(up, down) } => {}
            () = self.silence() => {}
        }
    }

    /// Moves a request and its answer, and nothing after them.
    pub(super) async fn exchange(
        &self,
        mut client: UnixStream,
        mut host: TcpStream,
        (head, content): (&[u8], u64),
        first: &[u8],
    ) {
        let (mut from_client, mut to_client) = client.split();
        let (from_host, mut to_host) = host.split();
        let within = usize::try_from(content)
            .unwrap_or(usize::MAX)
            .min(first.len());
        let up = async {
            let first = first.get(..within).unwrap_or_default();
            self.write(&mut to_host, head, Way::Up).await?;
            self.write(&mut to_host, first, Way::Up).await?;
            let left = content - first.len() as u64;
            if self
                .pump(&mut from_client, &mut to_host, left, Way::Up)
                .await?
                < left
            {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // What comes after the request is not a request of this connection.
            drain(&mut from_client).await;
            std::future::pending::<io::Result<()>>().await
        };
        let down = self.pump(from_host, &mut to_client, u64::MAX, Way::Down);
        tokio::select! {
            _ = down => {}
            _ = up => {}
            () = self.silence() => {}
        }
        finish(client).await;
    }

    async fn write(
        &self,
        to: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
        way: Way,
    ) -> io::Result<()> {
        to.write_all(bytes).await?;
        self.count(bytes.len() as u64, way);
        Ok(())
    }

    /// Moves at most so many bytes; returns how many there were.
    async fn pump(
        &self,
        mut from: impl AsyncRead + Unpin,
        to: &mut (impl AsyncWrite + Unpin),
        most: u64,
        way: Way,
    ) -> io::Result<u64> {
        let mut buffer = vec![0; CHUNK];
        let mut moved = 0;
        while moved < most {
            let left = usize::try_from(most - moved).unwrap_or(CHUNK).min(CHUNK);
            let part = buffer.get_mut(..left).unwrap_or_default();
            let read = from.read(part).await?;
            if read == 0 {
                break;
            }
            self.write(to, part.get(..read).unwrap_or_default(), way)
                .await?;
            moved += read as u64;
        }
        Ok(moved)
    }

    fn count(&self, bytes: u64, way: Way) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
        let (up, down) = match way {
            Way::Up => (bytes, 0),
            Way::Down => (0, bytes),
        };
        self.state.ledger().moved(&self.id, up, down);
    }

    /// Ends when no byte was moved for as long as the bound, or up to twice.
    async fn silence(&self) {
        let mut seen = self.moved.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(self.state.limits.idle).await;
            let now = self.moved.load(Ordering::Relaxed);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}

/// Ends our side, and reads what the client still sends for a moment: closing
/// a socket with unread bytes takes the answer from it.
pub(super) async fn finish(mut client: UnixStream) {
    if client.shutdown().await.is_ok() {
        let _ = tokio::time::timeout(LINGER, drain(&mut client)).await;
    }
}

async fn drain(from: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = vec![0; CHUNK];
    while from.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}
