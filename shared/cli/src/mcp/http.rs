//! The server over HTTP: on this machine alone, and for whoever bears the
//! token.

use super::failed;
use super::server::Server;
use crate::answer::tell;
use crate::error::CliError;
use crate::paths::variable;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

/// The one path that is served.
const PATH: &str = "/mcp";
/// The fewest characters of a token: less can be guessed.
const TOKEN_LEAST: usize = 16;
/// How long a client may take to say what it wants.
const HEADER_WAIT: Duration = Duration::from_secs(10);

type Service = StreamableHttpService<Server, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// Where is listened, and the token that is asked for.
pub(super) struct Endpoint {
    address: SocketAddr,
    token: Token,
}

/// What every request must bear. Not `Debug`: it reaches no log.
struct Token(String);

impl Token {
    fn read(file: Option<&Path>) -> Result<Self, CliError> {
        let (text, from) = match file {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(CliError::file("read", path))?;
                (text, path.display().to_string())
            }
            None => match variable("PREMATH_MCP_TOKEN") {
                Some(token) => (
                    token.to_string_lossy().into_owned(),
                    "PREMATH_MCP_TOKEN".to_owned(),
                ),
                None => {
                    return Err(CliError::Usage(
                        "--http needs a token: name its file with --token-file, or set \
                         PREMATH_MCP_TOKEN"
                            .to_owned(),
                    ));
                }
            },
        };
        let token = text.trim();
        let fits = token.len() >= TOKEN_LEAST && token.bytes().all(|b| b.is_ascii_graphic());
        if fits {
            Ok(Self(token.to_owned()))
        } else {
            Err(CliError::Usage(format!(
                "the token in {from} must be {TOKEN_LEAST} or more visible ASCII characters"
            )))
        }
    }

    /// Tells whether a request bears the token, in a time that does not say
    /// where another one differs.
    fn borne(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return false;
        };
        let Some((scheme, token)) = given.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer")
            && bool::from(token.trim().as_bytes().ct_eq(self.0.as_bytes()))
    }
}

impl Endpoint {
    /// # Errors
    ///
    /// [`CliError::Usage`] for an address that others can reach, and where
    /// there is no fit token.
    pub(super) fn new(address: SocketAddr, token_file: Option<&Path>) -> Result<Self, CliError> {
        if !address.ip().is_loopback() {
            return Err(CliError::Usage(format!(
                "--http {address} can be reached from other machines; the server listens on a \
                 loopback address alone, such as 127.0.0.1:{}",
                address.port()
            )));
        }
        let token = Token::read(token_file)?;
        Ok(Self { address, token })
    }

    /// Serves until the process is ended.
    pub(super) async fn serve(self, server: Server) -> Result<(), CliError> {
        let operation = format!("listen on {}", self.address);
        let listener = match TcpListener::bind(self.address).await {
            Ok(listener) => listener,
            Err(error) => return Err(failed(operation)(error)),
        };
        let bound = listener.local_addr().map_err(failed(operation))?;
        tell(&format!("listening on http://{bound}{PATH}"));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
            .enforce_origin_validation();
        let sessions = Arc::new(LocalSessionManager::default());
        let service = Service::new(move || Ok(server.clone()), sessions, config);
        let token = Arc::new(self.token);
        loop {
            let (stream, _) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors for a moment, or a client that left.
                    tell(&format!("a connection was lost: {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (service, token) = (service.clone(), Arc::clone(&token));
            let answer = service_fn(move |request| {
                let (service, token) = (service.clone(), Arc::clone(&token));
                async move { Ok::<_, Infallible>(answer(&service, &token, request).await) }
            });
            tokio::spawn(async move {
                // A client that goes in the middle is its own affair.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_WAIT)
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    }
}

async fn answer(service: &Service, token: &Token, request: Request<Incoming>) -> Response<Body> {
    if !token.borne(request.headers()) {
        let mut refused = said(
            StatusCode::UNAUTHORIZED,
            "the bearer token is missing or wrong\n",
        );
        let challenge = HeaderValue::from_static("Bearer");
        refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        return refused;
    }
    if request.uri().path() != PATH {
        return said(StatusCode::NOT_FOUND, "the server is at /mcp\n");
    }
    service.handle(request).await
}

fn said(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn borne(headers: &[&str]) -> bool {
        let token = Token("0123456789abcdef".to_owned());
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        token.borne(&map)
    }

    #[test]
    fn a_request_bears_the_one_token_once() {
        assert!(borne(&["Bearer 0123456789abcdef"]));
        assert!(borne(&["bearer  0123456789abcdef"]));
        for wrong in [
            &[][..],
            &["0123456789abcdef"],
            &["Basic 0123456789abcdef"],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer "],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert!(!borne(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn an_address_that_others_reach_is_refused() {
        for address in ["0.0.0.0:1", "192.0.2.7:80", "[::]:1", "[2001:db8::1]:1"] {
            let refused = Endpoint::new(address.parse().unwrap(), None).err().unwrap();
            assert!(refused.to_string().contains("loopback"), "{refused}");
        }
    }
}
