//! Where a request comes from: the name that it calls the server by, and the
//! page that sent it.
//!
//! A page of another site can make a browser send requests to loopback, and can
//! have its own name resolve to loopback (DNS rebinding). Both are refused by
//! what the browser itself writes into a request.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names that a server may be called by, each with its port, and how pages of
/// it begin.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    scheme: &'static str,
    names: Vec<String>,
}

/// A request that comes from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It calls the server by another name.
    Host,
    /// Another site's page sent it.
    Origin,
}

impl Stranger {
    /// Returns what is wrong, for a person.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Host => "the Host is not the address of this server",
            Self::Origin => "the request comes from another site",
        }
    }
}

impl Names {
    /// Returns the names of a server at an address.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let port = address.port();
        let mut names = vec![address.to_string()];
        if address.ip().is_loopback() {
            names.push(format!("localhost:{port}"));
        }
        if matches!(address.ip(), IpAddr::V4(_)) && port == 80 {
            names.push(address.ip().to_string());
            names.push("localhost".to_owned());
        }
        Self {
            scheme: "http://",
            names,
        }
    }

    /// Returns the one name of a server that is reached by TLS, with its port.
    pub(crate) fn of_tls(name: &str) -> Self {
        Self {
            scheme: "https://",
            names: vec![name.to_owned()],
        }
    }

    /// Adds a name of the server's own, with its port.
    #[must_use]
    pub(crate) fn with(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Refuses a request by its Host, Origin and Sec-Fetch-Site.
    ///
    /// # Errors
    ///
    /// What is foreign about it.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Stranger> {
        let host = one(headers, HOST).flatten().ok_or(Stranger::Host)?;
        if !self.has(host) {
            return Err(Stranger::Host);
        }
        match one(headers, ORIGIN) {
            None => {}
            Some(origin) if origin.is_some_and(|origin| self.is_own(origin)) => {}
            Some(_) => return Err(Stranger::Origin),
        }
        match one(headers, SEC_FETCH_SITE) {
            None | Some(Some("same-origin" | "none")) => Ok(()),
            Some(_) => Err(Stranger::Origin),
        }
    }

    /// Refuses a request that changes something unless it names its origin.
    ///
    /// # Errors
    ///
    /// What is foreign about it.
    pub(crate) fn check_change(&self, headers: &HeaderMap) -> Result<(), Stranger> {
        self.check(headers)?;
        match headers.contains_key(ORIGIN) {
            true => Ok(()),
            false => Err(Stranger::Origin),
        }
    }

    fn has(&self, host: &str) -> bool {
        self.names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
    }

    fn is_own(&self, origin: &str) -> bool {
        origin
            .strip_prefix(self.scheme)
            .is_some_and(|host| self.has(host))
    }
}

/// Returns the one value of a header; `Some(None)` where there are several, or one
/// that is not text.
fn one(headers: &HeaderMap, name: HeaderName) -> Option<Option<&str>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    match values.next() {
        None => Some(first.to_str().ok()),
        Some(_) => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[(&str, &str)]) -> Result<(), Stranger> {
        let names = Names::of("127.0.0.1:4000".parse().unwrap());
        names.check(&map(fields))
    }

    fn map(fields: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_server_answers_to_its_own_address_alone() {
        for host in ["127.0.0.1:4000", "localhost:4000", "LOCALHOST:4000"] {
            assert_eq!(check(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "127.0.0.1",
            "localhost",
            "127.0.0.1:4001",
            "evil.example:4000",
            "localhost:4000.evil.example",
        ] {
            assert_eq!(check(&[("host", host)]), Err(Stranger::Host), "{host}");
        }
        assert_eq!(check(&[]), Err(Stranger::Host));
        let twice = [("host", "localhost:4000"), ("host", "localhost:4000")];
        assert_eq!(check(&twice), Err(Stranger::Host));
    }

    #[test]
    fn a_request_of_another_sites_page_is_refused() {
        let with = |name: &str, value: &str| check(&[("host", "localhost:4000"), (name, value)]);
        assert_eq!(with("origin", "http://localhost:4000"), Ok(()));
        assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
        assert_eq!(with("sec-fetch-site", "none"), Ok(()));
        for (name, value) in [
            ("origin", "null"),
            ("origin", "http://localhost:4001"),
            ("origin", "https://localhost:4000"),
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(with(name, value), Err(Stranger::Origin), "{name}: {value}");
        }
    }

    #[test]
    fn a_server_with_tls_has_one_name_and_pages_of_its_own_scheme() {
        let names = Names::of_tls("batch.lan:4000");
        let asked =
            |host: &str, origin: &str| names.check(&map(&[("host", host), ("origin", origin)]));
        assert_eq!(asked("batch.lan:4000", "https://batch.lan:4000"), Ok(()));
        let plain = asked("batch.lan:4000", "http://batch.lan:4000");
        assert_eq!(plain, Err(Stranger::Origin));
        let other = asked("localhost:4000", "https://localhost:4000");
        assert_eq!(other, Err(Stranger::Host));
    }

    #[test]
    fn a_change_names_its_origin() {
        let names = Names::of("[::1]:4000".parse().unwrap());
        let silent = map(&[("host", "[::1]:4000")]);
        assert_eq!(names.check(&silent), Ok(()));
        assert_eq!(names.check_change(&silent), Err(Stranger::Origin));
        let own = map(&[("host", "[::1]:4000"), ("origin", "http://[::1]:4000")]);
        assert_eq!(names.check_change(&own), Ok(()));
    }
}
