//! Connections to hosts with several addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// How long an address has before the next one is tried beside it (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first of the addresses that answers.
pub(super) async fn dial(addresses: Vec<IpAddr>, port: u16) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut rest = addresses.into_iter().take(ADDRESSES_MAX);
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match rest.next() {
            Some(address) => {
                attempts.spawn(TcpStream::connect(SocketAddr::new(address, port)));
            }
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        let ended = if rest.len() == 0 {
            attempts.join_next().await
        } else {
            let ended = tokio::time::timeout(HEAD_START, attempts.join_next()).await;
            ended.ok().flatten()
        };
        match ended {
            Some(Ok(Ok(stream))) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Some(Ok(Err(error))) => failure = error,
            Some(Err(_)) | None => {}
        }
    }
}
