//! Posts documents of the harness over HTTP: to an operator's webhook, and to a
//! receiver of telemetry.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

/// The most bytes of an answer's head.
const HEAD_MAX: usize = 16 << 10;

/// The most bytes of an answer's body that are read.
const BODY_MAX: u64 = 64 << 10;

/// An address that documents are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostUrl {
    text: String,
    is_local: bool,
}

/// Why nothing can be posted to a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PostUrlError {
    /// It is not an absolute URL of HTTP.
    #[error("expected a URL such as \"{0}\"")]
    NoUrl(&'static str),
    /// It holds a user or a password.
    #[error("a URL with a user or a password is refused: a configuration holds no secret")]
    Secret,
    /// It would be sent in the clear over a network.
    #[error("http is accepted for 127.0.0.1, [::1] and localhost alone: use https")]
    Clear,
}

impl PostUrl {
    /// Reads an address: `https`, or `http` on this machine. An error shows the example.
    ///
    /// # Errors
    ///
    /// [`PostUrlError`].
    pub(crate) fn parse(text: &str, example: &'static str) -> Result<Self, PostUrlError> {
        let no_url = || PostUrlError::NoUrl(example);
        let uri: Uri = text.trim().parse().map_err(|_| no_url())?;
        let authority = uri.authority().ok_or_else(no_url)?;
        if authority.as_str().contains('@') {
            return Err(PostUrlError::Secret);
        }
        let host = authority.host();
        let is_local = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_local => {}
            Some("http") => return Err(PostUrlError::Clear),
            _ => return Err(no_url()),
        }
        Ok(Self {
            text: uri.to_string(),
            is_local,
        })
    }

    /// Returns the address of a path below it.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self {
            text: format!("{}{path}", self.text.trim_end_matches('/')),
            is_local: self.is_local,
        }
    }

    /// Returns its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// A document that was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    /// It did not arrive, or no answer came.
    #[error("{0}")]
    Transport(ureq::Error),
    /// The receiver is not who it should be, as far as this system can tell.
    #[error("the certificate of the receiver is refused: {0}")]
    Certificate(String),
    /// The receiver refused it.
    #[error("the receiver answered {0}")]
    Status(u16),
}

impl From<ureq::Error> for PostError {
    fn from(error: ureq::Error) -> Self {
        let refused = match &error {
            ureq::Error::Io(error) => refused_certificate(error),
            ureq::Error::Rustls(error) => reason(error),
            _ => None,
        };
        refused.map_or(Self::Transport(error), Self::Certificate)
    }
}

/// Returns why a certificate is refused, where an error of a connection is that.
fn refused_certificate(error: &io::Error) -> Option<String> {
    let within = error.get_ref()?;
    match within.downcast_ref::<io::Error>() {
        Some(error) => refused_certificate(error),
        None => reason(within.downcast_ref()?),
    }
}

/// Returns why a certificate is refused, where an error of TLS is that.
fn reason(error: &rustls::Error) -> Option<String> {
    match error {
        rustls::Error::InvalidCertificate(why) => Some(why.to_string()),
        _ => None,
    }
}

impl PostError {
    /// Returns whether another try may succeed.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Transport(_) | Self::Status(408 | 429 | 500..))
    }
}

/// Posts to one address. Redirects are not followed: they would take the document,
/// and what signs it, to an address that no operator named.
#[derive(Debug)]
pub(crate) struct Poster {
    agent: Agent,
    url: PostUrl,
}

impl Poster {
    /// Makes one for an address.
    pub(crate) fn to(url: PostUrl) -> Self {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(HEAD_MAX)
            .user_agent(concat!("premath-harness/", env!("CARGO_PKG_VERSION")));
        if url.is_local {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().new_agent(),
            url,
        }
    }

    /// Posts a document; the answer's body is not read.
    ///
    /// # Errors
    ///
    /// [`PostError`].
    pub(crate) fn post(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<(), PostError> {
        self.sent(headers, body, timeout).map(drop)
    }

    /// Posts a document; returns the answer's body, empty where it is too long or
    /// does not arrive: the document was taken all the same.
    ///
    /// # Errors
    ///
    /// [`PostError`].
    pub(crate) fn post_for(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, PostError> {
        let mut answer = self.sent(headers, body, timeout)?.into_body();
        let bytes = answer.with_config().limit(BODY_MAX).read_to_vec();
        Ok(bytes.unwrap_or_default())
    }

    fn sent(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<Response<Body>, PostError> {
        let mut request = self.agent.post(self.url.as_str());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        let answer = request.send(body)?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(PostError::Status(answer.status().as_u16())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "https://example.org/";

    #[test]
    fn only_what_is_encrypted_or_local_is_an_address() {
        for text in [
            "https://example.org/premath?x=1",
            "http://127.0.0.1:9/x",
            "http://[::1]:9/",
            "http://localhost/",
        ] {
            assert_eq!(PostUrl::parse(text, EXAMPLE).unwrap().as_str(), text);
        }
        for (text, error) in [
            ("http://example.org/", PostUrlError::Clear),
            ("http://127.0.0.1.example.org/", PostUrlError::Clear),
            ("https://user:secret@example.org/", PostUrlError::Secret),
            ("http://localhost@example.org/", PostUrlError::Secret),
            ("/relative", PostUrlError::NoUrl(EXAMPLE)),
            ("ftp://example.org/", PostUrlError::NoUrl(EXAMPLE)),
            ("example.org", PostUrlError::NoUrl(EXAMPLE)),
            ("", PostUrlError::NoUrl(EXAMPLE)),
        ] {
            assert_eq!(PostUrl::parse(text, EXAMPLE), Err(error), "{text}");
        }
    }

    #[test]
    fn what_passes_is_tried_again() {
        for (status, is_passing) in [
            (500, true),
            (503, true),
            (429, true),
            (404, false),
            (302, false),
        ] {
            assert_eq!(
                PostError::Status(status).is_passing(),
                is_passing,
                "{status}"
            );
        }
    }
}
