//! The connections of a server.

use super::room::{Acquaintance, Room};
use super::{Tls, failed};
use crate::answer::print_diagnostic;
use crate::error::CliError;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// How long a client may take to send the head of its request.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// Refuses an address that others can reach.
///
/// # Errors
///
/// [`CliError::Usage`] that names `flag`.
pub(crate) fn loopback(flag: &str, address: SocketAddr) -> Result<SocketAddr, CliError> {
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(CliError::Usage(format!(
        "{flag} {address} is reachable from other machines; use a loopback address, for example \
         127.0.0.1:{}",
        address.port()
    )))
}

/// Runs a server on a runtime of its own, and leaves what it waits for.
///
/// # Errors
///
/// [`CliError::Serve`], and what the server returns.
pub(crate) fn with_runtime<T>(
    serve: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("start the server"))?;
    let served = runtime.block_on(serve);
    // A client that went away is not waited for; what it asked is whole.
    runtime.shutdown_background();
    served
}

/// A socket that is bound.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    /// Its address, with the port that the system chose.
    pub(crate) address: SocketAddr,
}

impl Listening {
    /// Binds an address.
    ///
    /// # Errors
    ///
    /// [`CliError::Serve`].
    pub(crate) async fn at(address: SocketAddr) -> Result<Self, CliError> {
        let operation = format!("listen on {address}");
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) => return Err(failed(operation)(error)),
        };
        let address = listener.local_addr().map_err(failed(operation))?;
        Ok(Self { listener, address })
    }

    /// Answers the requests of all connections until the process is ended; with `tls`
    /// of those that shake hands.
    pub(crate) async fn serve<S, B>(self, service: S, tls: Option<Tls>) -> Result<(), CliError>
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut room = Room::new();
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors for a moment, or a client that left.
                    print_diagnostic(&format!("a connection was lost: {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(place) = room.place().await else {
                return Ok(());
            };
            let client = Acquaintance::default();
            let service = Noted {
                service: service.clone(),
                client: client.clone(),
            };
            let tls = tls.clone();
            let task = tokio::spawn(async move {
                match tls {
                    None => answer(stream, service).await,
                    Some(tls) => {
                        let hands = tls.acceptor().accept(stream);
                        if let Ok(Ok(stream)) = tokio::time::timeout(HEADER_WAIT, hands).await {
                            answer(stream, service).await;
                        }
                    }
                }
                drop(place);
            });
            room.admit(peer.ip(), client, task.abort_handle());
        }
    }
}

/// A service whose requests know their client.
struct Noted<S> {
    service: S,
    client: Acquaintance,
}

impl<S, B> Service<Request<Incoming>> for Noted<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = S::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.client.clone());
        self.service.call(request)
    }
}

/// Answers the requests of a connection.
async fn answer<I, S, B>(stream: I, service: Noted<S>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // A client that goes in the middle is its own affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_refused() {
        for address in ["0.0.0.0:1", "192.0.2.7:80", "[::]:1", "[2001:db8::1]:1"] {
            let refused = loopback("--http", address.parse().unwrap()).unwrap_err();
            assert!(refused.to_string().contains("loopback"), "{refused}");
        }
        for address in ["127.0.0.1:1", "127.9.9.9:80", "[::1]:1"] {
            loopback("--http", address.parse().unwrap()).unwrap();
        }
    }
}
