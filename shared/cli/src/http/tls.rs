//! TLS for a server that other machines reach.

use super::token::read_private;
use crate::error::CliError;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// The certificate of a server, with its key.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl Tls {
    /// Reads a certificate chain and its key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`CliError::Usage`] that names the file and what is wrong with it, also where
    /// others or steps can read the key.
    pub(crate) fn read(chain: &Path, key: &Path) -> Result<Self, CliError> {
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong("certificate file", chain, error))?;
        if certificates.is_empty() {
            let expected = "it has no `-----BEGIN CERTIFICATE-----`";
            return Err(wrong("certificate file", chain, expected));
        }
        let text = read_private(key, "key file")?;
        let private = PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|error| wrong("key file", key, error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("certificate file", chain, error))?
            .with_no_client_auth()
            .with_single_cert(certificates, private)
            .map_err(|error| wrong("key file", key, error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Returns what shakes hands with clients.
    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.0
    }
}

fn wrong(what: &str, path: &Path, error: impl Display) -> CliError {
    CliError::Usage(format!(
        "the {what} {} cannot be used: {error}",
        path.display()
    ))
}
