//! A receiver of HTTP requests on loopback, for what batches post.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// Counts the authorities of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A request: its head in lower case, and its body.
pub type Posted = (String, Vec<u8>);

/// Listens, and answers each request with the next status, the last one again and
/// again. Returns the address, and the requests as they come.
pub fn receiver(statuses: &'static [&'static str]) -> (String, Receiver<Posted>) {
    let (address, posted) = serve(statuses, Vec::new(), Some);
    (format!("http://{address}"), posted)
}

/// Listens, and takes each request with this body.
pub fn receiver_saying(body: Vec<u8>) -> (String, Receiver<Posted>) {
    let (address, posted) = serve(&["200 OK"], body, Some);
    (format!("http://{address}"), posted)
}

/// A receiver that speaks TLS.
#[derive(Debug)]
pub struct TlsReceiver {
    /// Where it listens.
    pub address: SocketAddr,
    /// The requests as they come.
    pub posted: Receiver<Posted>,
    /// The certificate of the authority that signed the receiver's, as PEM.
    pub authority: String,
}

/// Listens with a certificate for a name, by an authority of its own, and answers
/// each request with 200.
pub fn tls_receiver(name: &str) -> TlsReceiver {
    let (config, authority) = certified(name);
    let config = Arc::new(config);
    let (address, posted) = serve(&["200 OK"], Vec::new(), move |stream| {
        let connection = ServerConnection::new(config.clone()).ok()?;
        Some(StreamOwned::new(connection, stream))
    });
    TlsReceiver {
        address,
        posted,
        authority,
    }
}

/// Makes an authority, and a certificate that it signed.
fn certified(name: &str) -> (ServerConfig, String) {
    let mut of_authority = CertificateParams::new(Vec::new()).expect("parameters");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Certificates are found by their names.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let called = format!("Authority {} of {}", number, std::process::id());
    of_authority.distinguished_name = DistinguishedName::new();
    let names = &mut of_authority.distinguished_name;
    names.push(DnType::CommonName, called);
    let key = KeyPair::generate().expect("a key");
    let authority = of_authority.self_signed(&key).expect("an authority");
    let issuer = Issuer::new(of_authority, key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    (config, authority.pem())
}

/// Listens, and answers with a body; `open` makes a stream of a connection.
fn serve<S: Read + Write>(
    statuses: &'static [&'static str],
    said: Vec<u8>,
    open: impl Fn(TcpStream) -> Option<S> + Send + 'static,
) -> (SocketAddr, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (send, posted) = channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        let mut status = "200 OK";
        for stream in listener.incoming() {
            let Some(stream) = open(stream.expect("a connection")) else {
                continue;
            };
            let mut stream = BufReader::new(stream);
            // A client that refuses the certificate sends none.
            let Some(request) = read(&mut stream) else {
                continue;
            };
            // Before the answer: the batch may end with it.
            let _ = send.send(request);
            status = statuses.next().copied().unwrap_or(status);
            let length = said.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nLocation: /other\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // A client may be gone.
            let stream = stream.get_mut();
            let _ = stream.write_all(&[head.as_bytes(), &said].concat());
            let _ = stream.flush();
        }
    });
    (address, posted)
}

fn read<S: Read>(stream: &mut BufReader<S>) -> Option<Posted> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        let count = stream.read_line(&mut line).ok()?;
        if count == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    (!head.is_empty()).then_some((head, body))
}
