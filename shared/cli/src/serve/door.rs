//! Who may ask: the check before every request, and the headers of every answer.

use super::site::Site;
use crate::error::CliError;
use crate::http::{Acquaintance, Names, Secret, Stranger, Token};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, LOCATION, REFERRER_POLICY,
    SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use std::net::SocketAddr;
use std::sync::Arc;

/// What a page may load and do: its own style, script and stream, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri \
                      'none'";

/// How many hexadecimal digits of the server's name cannot be guessed.
const NAME_LENGTH: usize = 32;

/// What a program is answered that asks for a change.
const READS: &str = "the token reads; the page in a browser controls the batch, and so do the \
                     commands of premath";

/// The parameter of the first visit.
const TOKEN: &str = "token";

/// The headers of every answer.
const ALWAYS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Who may ask.
pub(super) struct Door {
    names: Names,
    /// The name that browsers call the server by, with its port. Cookies do not know
    /// ports: a browser gives one of `127.0.0.1` to every server there. Without TLS
    /// the name is one that none of them knows, and the cookie counts at it alone.
    name: String,
    /// What programs call the server by.
    origin: String,
    /// Whether it is reached by TLS.
    is_tls: bool,
    /// What programs bear. It reads, and changes nothing.
    token: Token,
    /// What the printed address bears; it gives a browser its cookie.
    entry: Secret,
    /// What a browser bears after the first visit.
    cookie: Secret,
    /// The name of the cookie, for servers at other ports have one as well.
    cookie_name: String,
    /// What forms bear.
    form: Secret,
}

impl Door {
    /// Makes the door of a server at an address, which is reached by TLS if it has a
    /// host's name. Programs bear the token, or without one what the printed address
    /// bears: without TLS this opens the page only to who knows its name too. With TLS
    /// the name is known, and programs need a token of their own.
    pub(super) fn new(
        address: SocketAddr,
        host: Option<&str>,
        token: Option<Token>,
    ) -> Result<Self, CliError> {
        let entry = Secret::random()?;
        let (port, is_tls) = (address.port(), host.is_some());
        let (names, name, origin) = match host {
            Some(host) => {
                let name = with_port(host, port, 443);
                let origin = format!("https://{name}");
                (Names::of_tls(&name), name, origin)
            }
            None => {
                let label = Secret::random()?;
                let label = &label.reveal()[..NAME_LENGTH];
                let name = with_port(&format!("{label}.localhost"), port, 80);
                let names = Names::of(address).with(&name);
                (names, name, format!("http://{address}"))
            }
        };
        Ok(Self {
            names,
            name,
            origin,
            is_tls,
            token: match token {
                Some(token) => token,
                None if is_tls => Token::from(Secret::random()?),
                None => Token::from(entry.clone()),
            },
            entry,
            cookie: Secret::random()?,
            // With this prefix a browser takes it from no other name, and not without TLS.
            cookie_name: format!("{}premath-{port}", if is_tls { "__Host-" } else { "" }),
            form: Secret::random()?,
        })
    }

    /// Returns the address to open, which gives a browser its cookie.
    pub(super) fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}/?{TOKEN}={}", self.name, self.entry.reveal())
    }

    /// Returns the address for programs.
    pub(super) fn origin(&self) -> String {
        self.origin.clone()
    }

    /// Returns the value that a form must bear.
    pub(super) fn form_value(&self) -> &str {
        self.form.reveal()
    }

    /// Returns whether a form bears it.
    pub(super) fn is_form_value(&self, given: &str) -> bool {
        self.form.is(given)
    }

    /// Returns the answer to a request that is not let in.
    fn turned_away(&self, request: &Request) -> Option<Response> {
        let headers = request.headers();
        let known = match *request.method() {
            Method::GET | Method::HEAD => self.names.check(headers),
            _ => self.names.check_change(headers),
        };
        if let Err(stranger) = known {
            return Some(refused(stranger));
        }
        let is_own_name = self.is_own_name(headers);
        if is_own_name && self.has_cookie(headers) {
            return None;
        }
        if self.token.is_presented(headers) {
            return match *request.method() {
                Method::GET | Method::HEAD => None,
                _ => Some(plain(StatusCode::FORBIDDEN, READS)),
            };
        }
        Some(match token_of(request.uri()) {
            Some((given, rest)) if is_own_name && self.entry.is(&given) => self.welcome(&rest),
            _ => unknown(),
        })
    }

    fn is_own_name(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| host.eq_ignore_ascii_case(&self.name))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let fields = headers.get_all(COOKIE).iter();
        let mut pairs = fields
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie_name && self.cookie.is(value))
    }

    /// Gives a browser its cookie, and sends it on to an address without the token.
    fn welcome(&self, rest: &str) -> Response {
        let cookie = format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/{}",
            self.cookie_name,
            self.cookie.reveal(),
            if self.is_tls { "; Secure" } else { "" }
        );
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        if let (Ok(cookie), Ok(rest)) = (cookie.parse(), rest.parse()) {
            headers.insert(SET_COOKIE, cookie);
            headers.insert(LOCATION, rest);
        }
        response
    }
}

/// Returns a host with its port, without the usual one: browsers leave it out.
fn with_port(host: &str, port: u16, usual: u16) -> String {
    match port == usual {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    }
}

/// Splits the token from an address of this server.
fn token_of(uri: &Uri) -> Option<(String, String)> {
    let (mut token, mut rest) = (None, Vec::new());
    for part in uri.query()?.split('&') {
        match part.split_once('=') {
            Some((TOKEN, value)) => token = Some(value.to_owned()),
            _ => rest.push(part),
        }
    }
    // `//host/` would be an address of another server.
    let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
    let rest = match rest.is_empty() {
        true => path,
        false => format!("{path}?{}", rest.join("&")),
    };
    Some((token?, rest))
}

fn refused(stranger: Stranger) -> Response {
    plain(StatusCode::FORBIDDEN, stranger.sentence())
}

fn unknown() -> Response {
    let mut response = plain(
        StatusCode::UNAUTHORIZED,
        "the token is missing or wrong; open the address that `premath serve` printed",
    );
    let challenge = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// Returns an answer of one line.
pub(super) fn plain(status: StatusCode, line: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{line}\n")));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

/// Answers a request of who may ask.
pub(super) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = match site.door.turned_away(&request) {
        None => {
            Acquaintance::note(request.extensions());
            next.run(request).await
        }
        Some(response) => response,
    };
    for (name, value) in ALWAYS {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_leaves_the_address_and_the_address_stays_here() {
        let split = |uri: &str| token_of(&uri.parse().unwrap());
        let some = |token: &str, rest: &str| Some((token.to_owned(), rest.to_owned()));
        assert_eq!(split("/?token=abc"), some("abc", "/"));
        assert_eq!(
            split("/issue?id=a&token=abc&x=1"),
            some("abc", "/issue?id=a&x=1")
        );
        assert_eq!(
            split("//evil.example/?token=abc"),
            some("abc", "/evil.example/")
        );
        assert_eq!(split("/"), None);
        assert_eq!(split("/?tokens=abc"), None);
    }
}
