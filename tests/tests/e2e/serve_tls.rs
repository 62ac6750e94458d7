//! `premath serve` by TLS: for a name of a private network, with a certificate of the
//! operator.

use crate::serve::{Reply, exchange};
use premath_tests::{PATIENCE, Running, Scratch, until};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

const HOST: &str = "batch.example";

/// A certificate for [`HOST`], which signed itself, with its key: both in files that no
/// step can read.
struct Certificate {
    chain: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn new(scratch: &Scratch) -> Self {
        let folder = scratch.root.join(".premath/private");
        fs::create_dir_all(&folder).unwrap();
        let names = vec![HOST.to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
        fs::write(&chain, cert.pem()).unwrap();
        fs::write(&key, signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Self { chain, key }
    }

    fn flags(&self) -> Vec<String> {
        let file = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let (chain, key) = (file(&self.chain), file(&self.key));
        let flags = ["--tls-cert", &chain, "--tls-key", &key, "--host", HOST];
        flags.map(str::to_owned).to_vec()
    }
}

/// A server, as a client by TLS sees it.
struct Reached {
    _server: Running,
    url: String,
    trust: Arc<ClientConfig>,
}

impl Reached {
    fn start(scratch: &Scratch, certificate: &Certificate) -> Self {
        // Another loopback address: without TLS it is refused.
        let words = ["serve", "--control", "--bind", "127.0.0.2"];
        let server = scratch.premath(words).args(certificate.flags()).start();
        let url = until(PATIENCE, || {
            let line = server.stdout();
            line.ends_with('\n').then(|| line.trim().to_owned())
        });
        let url = url.unwrap_or_else(|| panic!("no address: {}", server.stderr()));
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_file(&certificate.chain).unwrap();
        roots.add(own).unwrap();
        let trust = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            _server: server,
            url,
            trust: Arc::new(trust),
        }
    }

    /// The name with the port.
    fn host(&self) -> &str {
        let (origin, _) = self.url.split_once("/?").unwrap();
        origin.strip_prefix("https://").unwrap()
    }

    fn connect(&self) -> TcpStream {
        let (_, port) = self.host().split_once(':').unwrap();
        let stream = TcpStream::connect(format!("127.0.0.2:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let name = ServerName::try_from(HOST).unwrap();
        let session = ClientConnection::new(Arc::clone(&self.trust), name).unwrap();
        exchange(
            StreamOwned::new(session, self.connect()),
            line,
            headers,
            body,
        )
    }
}

#[test]
fn a_browser_that_trusts_the_certificate_gets_a_cookie_for_that_host_alone() {
    let scratch = Scratch::new(0);
    let certificate = Certificate::new(&scratch);
    let reached = Reached::start(&scratch, &certificate);
    let host = reached.host();
    assert!(host.starts_with("batch.example:"), "{host}");
    let (_, token) = reached.url.split_once("token=").unwrap();
    let first = reached.send(&format!("GET /?token={token}"), &[("Host", host)], "");
    assert_eq!(first.status, 303, "{first:?}");
    let cookie = first.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let page = reached.send("GET /", &[("Host", host), ("Cookie", cookie)], "");
    assert_eq!(page.status, 200);
    // The token of the printed address opens the page, and is none of programs.
    let bearer = format!("Bearer {token}");
    let headers = [("Host", host), ("Authorization", &*bearer)];
    assert_eq!(reached.send("GET /status.json", &headers, "").status, 401);
    // The name counts, and the scheme of the page that sends a form.
    for (name, status) in [(host, 200), ("127.0.0.2", 403), ("localhost", 403)] {
        let other = reached.send("GET /", &[("Host", name), ("Cookie", cookie)], "");
        assert_eq!(other.status, status, "{name}");
    }
    let plain = format!("http://{host}");
    let headers = [("Host", host), ("Cookie", cookie), ("Origin", &*plain)];
    let posted = reached.send("POST /control/stop", &headers, "batch=x");
    assert_eq!(posted.status, 403, "{posted:?}");
}

#[test]
fn a_client_without_tls_gets_nothing() {
    use std::io::{Read, Write};
    let scratch = Scratch::new(0);
    let certificate = Certificate::new(&scratch);
    let reached = Reached::start(&scratch, &certificate);
    let mut stream = reached.connect();
    let ask = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", reached.host());
    stream.write_all(ask.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // What comes is an alert of TLS, or the end.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn a_certificate_or_key_that_cannot_be_used_is_named() {
    let scratch = Scratch::new(0);
    let certificate = Certificate::new(&scratch);
    let refused = |words: &str| {
        let run = scratch.premath(["serve"]).args(certificate.flags()).end();
        run.exits(2).says(words);
    };
    fs::set_permissions(&certificate.key, fs::Permissions::from_mode(0o644)).unwrap();
    refused("the key file");
    refused("is accessible to other users (mode 644); run `chmod 600` on it");
    fs::set_permissions(&certificate.key, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = fs::read(&certificate.key).unwrap();
    fs::write(&certificate.key, "no key").unwrap();
    refused("cannot be used");
    // The key of another certificate.
    let other_scratch = Scratch::new(0);
    let other = Certificate::new(&other_scratch);
    fs::write(&certificate.key, fs::read(other.key).unwrap()).unwrap();
    refused("cannot be used");
    fs::write(&certificate.key, whole).unwrap();
    fs::write(&certificate.chain, "").unwrap();
    refused("BEGIN CERTIFICATE");
    let alone = scratch.premath(["serve", "--host", HOST]).end();
    alone.exits(2).says("--tls-cert");
}
