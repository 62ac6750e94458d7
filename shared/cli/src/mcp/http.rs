//! The server over HTTP: on loopback only, with a bearer token.

use super::server::Server;
use crate::answer::print_diagnostic;
use crate::error::CliError;
use crate::http::{Acquaintance, Listening, Token, loopback};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The one path that is served.
const PATH: &str = "/mcp";
/// The header by which a client says which session is its own.
const SESSION_ID: &str = "mcp-session-id";
/// The most clients that are served at a time; one that is silent for five
/// minutes is one no more.
const SESSIONS_MOST: usize = 64;

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// Where is listened, and the token that is asked for.
pub(super) struct Endpoint {
    address: SocketAddr,
    token: Token,
}

impl Endpoint {
    /// # Errors
    ///
    /// [`CliError::Usage`] for an address that others can reach, and where
    /// there is no fit token.
    pub(super) fn new(address: SocketAddr, token_file: Option<&Path>) -> Result<Self, CliError> {
        let address = loopback("--http", address)?;
        let token = Token::read(token_file)?;
        Ok(Self { address, token })
    }

    /// Serves until the process is ended.
    pub(super) async fn serve(self, server: Server) -> Result<(), CliError> {
        let listening = Listening::at(self.address).await?;
        print_diagnostic(&format!("listening on http://{}{PATH}", listening.address));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
            .enforce_origin_validation();
        let manager = Arc::new(LocalSessionManager::default());
        let served = Arc::new(Served {
            service: Service::new(move || Ok(server.clone()), Arc::clone(&manager), config),
            sessions: Sessions {
                manager,
                opening: AtomicUsize::new(0),
            },
            token: self.token,
        });
        let answer = service_fn(move |request| {
            let served = Arc::clone(&served);
            async move { Ok::<_, Infallible>(served.answer(request).await) }
        });
        listening.serve(answer, None).await
    }
}

/// The state that all connections share.
struct Served {
    service: Service,
    sessions: Sessions,
    token: Token,
}

impl Served {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.token.is_presented(request.headers()) {
            let mut refused = text_response(
                StatusCode::UNAUTHORIZED,
                "the bearer token is missing or wrong\n",
            );
            let challenge = HeaderValue::from_static("Bearer");
            refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            return refused;
        }
        Acquaintance::note(request.extensions());
        if request.uri().path() != PATH {
            return text_response(StatusCode::NOT_FOUND, "the server is at /mcp\n");
        }
        if request.headers().contains_key(SESSION_ID) {
            return self.service.handle(request).await;
        }
        let Some(_opening) = self.sessions.open().await else {
            let mut full = text_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many clients; a client that is idle for five minutes is disconnected\n",
            );
            let later = HeaderValue::from_static("60");
            full.headers_mut().insert(RETRY_AFTER, later);
            return full;
        };
        self.service.handle(request).await
    }
}

/// The clients that are there.
struct Sessions {
    manager: Arc<LocalSessionManager>,
    /// Requests that may open a session, and have not been answered.
    opening: AtomicUsize,
}

/// The right to open one session, while the request for it is answered.
struct Opening<'a>(&'a AtomicUsize);

impl Sessions {
    /// Makes room for a session; `None` where there is none. One that is being
    /// opened may count twice, so that there are never too many.
    async fn open(&self) -> Option<Opening<'_>> {
        let open = self.manager.sessions.read().await.len();
        let before = self.opening.fetch_add(1, Ordering::Relaxed);
        let opening = Opening(&self.opening);
        (open + before < SESSIONS_MOST).then_some(opening)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
