//! The head of a proxy request: read in bounded space, and strictly.

use premath_kernel::policy::network::{Host, HostError, Target};
use std::fmt::Write as _;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes of a request's head.
const HEAD_MAX: usize = 16 * 1024;
/// The most header fields.
const FIELDS_MAX: usize = 100;

/// Fields that belong to one connection, and those that the proxy writes.
const OWN_FIELDS: [&str; 11] = [
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
];

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    /// A tunnel.
    Connect,
    /// A plain request that the proxy forwards.
    Forward {
        /// The head for the host.
        head: Vec<u8>,
        /// How many bytes of content follow.
        content: u64,
    },
}

/// A request, with what came after its head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) target: Target,
    pub(super) request: ProxyRequest,
    pub(super) rest: Vec<u8>,
}

/// A head that is not answered by a connection.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    /// The client closed the connection without a request.
    #[error("no request")]
    Nothing,
    #[error("the request ended within its head")]
    Cut,
    #[error("the head of the request is longer than {HEAD_MAX} bytes")]
    Large,
    #[error("the request is not well-formed HTTP/1: {0}")]
    Malformed(&'static str),
    #[error("{0}")]
    Host(#[from] HostError),
    #[error("this is a proxy: it accepts CONNECT and requests for http:// addresses")]
    NotForProxy,
    #[error("plain requests need a Content-Length; chunked content is not forwarded")]
    Length,
}

impl HeadError {
    /// Returns the status code of the answer.
    pub(super) const fn status(&self) -> u16 {
        match self {
            Self::Large => 431,
            Self::Length => 411,
            _ => 400,
        }
    }
}

/// Reads a request's head.
pub(super) async fn read(client: &mut (impl AsyncRead + Unpin)) -> Result<Received, HeadError> {
    let mut bytes = Vec::with_capacity(1024);
    let mut looked_at = 0;
    let end = loop {
        if let Some(end) = end_of_head(&bytes, looked_at) {
            break end;
        }
        if bytes.len() >= HEAD_MAX {
            return Err(HeadError::Large);
        }
        looked_at = bytes.len();
        let mut part = client.take((HEAD_MAX - bytes.len()) as u64);
        match part.read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Err(HeadError::Nothing),
            Ok(0) | Err(_) => return Err(HeadError::Cut),
            Ok(_) => {}
        }
    };
    let rest = bytes.split_off(end);
    let (target, request) = parse(&bytes)?;
    Ok(Received {
        target,
        request,
        rest,
    })
}

/// Finds the end of the empty line that ends a head; also one that has no
/// carriage return, which is refused later.
fn end_of_head(bytes: &[u8], looked_at: usize) -> Option<usize> {
    let from = looked_at.saturating_sub(2);
    (from..bytes.len()).find_map(|at| match bytes.get(at..)? {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

fn parse(bytes: &[u8]) -> Result<(Target, ProxyRequest), HeadError> {
    let mut line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    if line_ends.any(|(at, _)| at == 0 || bytes.get(at - 1) != Some(&b'\r')) {
        return Err(HeadError::Malformed(
            "a line ends without a carriage return",
        ));
    }
    if !bytes.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(HeadError::Malformed("it does not begin with a method"));
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(HeadError::Malformed("it is incomplete")),
        Err(error) => return Err(HeadError::Malformed(fault(error))),
    }
    let method = head.method.unwrap_or_default();
    let address = head.path.unwrap_or_default();
    let content = content_length(head.headers)?;
    if method == "CONNECT" {
        if content.is_some_and(|length| length > 0) {
            return Err(HeadError::Malformed("CONNECT has no content"));
        }
        return Ok((Target::parse(address)?, ProxyRequest::Connect));
    }
    let (target, path) = split_address(address)?;
    let request = RequestLine {
        method,
        path: &path,
        version: head.version.unwrap_or(1),
        target: &target,
    };
    let head = request.head(head.headers, content);
    let content = content.unwrap_or(0);
    Ok((target, ProxyRequest::Forward { head, content }))
}

/// Says what is wrong in words that hold nothing of the request.
const fn fault(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "the name of a header field",
        httparse::Error::HeaderValue => "the value of a header field",
        httparse::Error::NewLine => "a line end",
        httparse::Error::Status => "the status",
        httparse::Error::Token => "a token of the first line",
        httparse::Error::TooManyHeaders => "too many header fields",
        httparse::Error::Version => "the version",
    }
}

/// Reads how many bytes follow; two readings of one request must be
/// impossible, so that everything unusual is refused.
fn content_length(fields: &[httparse::Header<'_>]) -> Result<Option<u64>, HeadError> {
    let mut length = None;
    for field in fields {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(HeadError::Length);
        }
        if !field.name.eq_ignore_ascii_case("content-length") {
            continue;
        }
        let digits = std::str::from_utf8(field.value).unwrap_or_default();
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number) if is_plain && length.is_none() => length = Some(number),
            _ => return Err(HeadError::Malformed("the Content-Length")),
        }
    }
    Ok(length)
}

/// Splits `http://host:port/path`.
fn split_address(address: &str) -> Result<(Target, String), HeadError> {
    let scheme = address.get(..7);
    if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) {
        return Err(HeadError::NotForProxy);
    }
    let rest = address.get(7..).unwrap_or_default();
    if rest.contains('#') {
        return Err(HeadError::Malformed("an address with a fragment"));
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = match path {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    Ok((Target::parse_http(authority)?, path))
}

/// The first line of a request to a host.
struct RequestLine<'a> {
    method: &'a str,
    path: &'a str,
    version: u8,
    target: &'a Target,
}

impl RequestLine<'_> {
    /// Writes the head for the host: it ends the connection, and names the
    /// host that was judged.
    fn head(&self, fields: &[httparse::Header<'_>], content: Option<u64>) -> Vec<u8> {
        let Target { host, port } = self.target;
        let mut text = format!("{} {} HTTP/1.{}\r\n", self.method, self.path, self.version);
        // Writing to a text does not fail.
        let _ = match (host, port) {
            (host, 80) => write!(text, "Host: {host}\r\n"),
            (Host::Name(_) | Host::Address(_), _) => write!(text, "Host: {}\r\n", self.target),
        };
        let mut head = text.into_bytes();
        let named = named_by_connection(fields);
        for field in fields {
            let is_own = |own: &str| field.name.eq_ignore_ascii_case(own);
            if OWN_FIELDS.iter().any(|own| is_own(own)) || named.iter().any(|own| is_own(own)) {
                continue;
            }
            head.extend_from_slice(field.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value);
            head.extend_from_slice(b"\r\n");
        }
        if let Some(content) = content {
            head.extend_from_slice(format!("Content-Length: {content}\r\n").as_bytes());
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

/// Returns the fields that `Connection` limits to one connection.
fn named_by_connection(fields: &[httparse::Header<'_>]) -> Vec<String> {
    fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("connection"))
        .filter_map(|field| std::str::from_utf8(field.value).ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(text: &str) -> (String, u64) {
        match parse(text.as_bytes()).unwrap() {
            (_, ProxyRequest::Forward { head, content }) => {
                (String::from_utf8(head).unwrap(), content)
            }
            (_, ProxyRequest::Connect) => panic!("{text}"),
        }
    }

    #[test]
    fn a_plain_request_is_written_again() {
        let (head, content) = forwarded(
            "POST HTTP://Example.com:8080?q=1 HTTP/1.1\r\nHost: other.example\r\nAccept: */*\r\n\
             Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nProxy-Authorization: Basic x\r\n\
             Upgrade: h2c\r\nContent-Length: 3\r\n\r\n",
        );
        assert_eq!(
            head,
            "POST /?q=1 HTTP/1.1\r\nHost: example.com:8080\r\nAccept: */*\r\n\
             Content-Length: 3\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(content, 3);
        let (head, _) = forwarded("GET http://example.com HTTP/1.0\r\n\r\n");
        assert_eq!(
            head,
            "GET / HTTP/1.0\r\nHost: example.com\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let get = "GET http://a.example/ HTTP/1.1\r\n";
        for (text, status) in [
            (
                format!("{get}Content-Length: 1\r\nContent-Length: 1\r\n\r\n"),
                400,
            ),
            (format!("{get}Content-Length: +1\r\n\r\n"), 400),
            (format!("{get}Content-Length: 1, 1\r\n\r\n"), 400),
            (format!("{get}Content-Length:\r\n\r\n"), 400),
            (
                format!("{get}Content-Length: 99999999999999999999\r\n\r\n"),
                400,
            ),
            (format!("{get}Transfer-Encoding: chunked\r\n\r\n"), 411),
            (format!("{get}Content-Length : 1\r\n\r\n"), 400),
            (format!("{get}X: 1\r\n folded\r\n\r\n"), 400),
            (format!("{get}X: a\rb\r\n\r\n"), 400),
            (format!("{get}X: a\nY: b\r\n\r\n"), 400),
            ("GET http://a.example/ HTTP/1.1\n\n".to_owned(), 400),
            ("\r\nGET http://a.example/ HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET http://a.example/ HTTP/2.0\r\n\r\n".to_owned(), 400),
            ("GET http://a.example/#x HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET http://u@a.example/ HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET http:///x HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET https://a.example/ HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_owned(), 400),
            ("CONNECT a.example HTTP/1.1\r\n\r\n".to_owned(), 400),
            (
                "CONNECT http://a.example:443 HTTP/1.1\r\n\r\n".to_owned(),
                400,
            ),
            (
                "CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n".to_owned(),
                400,
            ),
            ("CONNECT a.example:443 x HTTP/1.1\r\n\r\n".to_owned(), 400),
            (
                format!("{get}{}\r\n", "X: 1\r\n".repeat(FIELDS_MAX + 1)),
                400,
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.status(), status, "{text:?}: {error}");
        }
    }

    #[test]
    fn a_connect_is_its_authority_and_not_its_host_field() {
        let text = "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n";
        let (target, request) = parse(text.as_bytes()).unwrap();
        assert_eq!(target.to_string(), "a.example:443");
        assert_eq!(request, ProxyRequest::Connect);
    }

    #[test]
    fn the_end_of_a_head_is_found_wherever_the_parts_are_cut() {
        let text = b"GET / HTTP/1.1\r\nX: 1\r\n\r\nrest";
        for cut in 0..text.len() {
            let whole = end_of_head(&text[..cut], 0).or_else(|| end_of_head(text, cut));
            assert_eq!(whole, Some(text.len() - 4), "{cut}");
        }
    }
}
