//! The proxy between commands and the network, with hosts on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

mod bounds;
mod denial;
mod plain;
mod socket;
mod tunnel;

use harness_worker::proxy::{
    Proxy, ProxyError, ProxyLimits, ProxySpec, Resolve, Resolving, Service, SystemResolver,
};
use premath_kernel::policy::network::{
    DenialReason, HostList, NetworkFacts, NetworkPhase, NetworkPolicy, NetworkRecord, NetworkWord,
    Target,
};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy in a folder of its own.
struct Setting {
    folder: TempDir,
    proxy: Proxy,
}

impl Setting {
    fn new(word: NetworkWord, entries: &[String]) -> Self {
        Self::with(
            word,
            entries,
            Box::new(SystemResolver),
            ProxyLimits::default(),
        )
    }

    fn with(
        word: NetworkWord,
        entries: &[String],
        resolver: Box<dyn Resolve>,
        limits: ProxyLimits,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(&folder, policy(word, entries));
        let proxy = Proxy::start_with(spec, resolver, limits).unwrap();
        Self { folder, proxy }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("net/proxy")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Opens a tunnel; returns it after the proxy's answer.
    fn tunnel(&self, target: &str) -> UnixStream {
        let mut stream = self.connect();
        write!(
            stream,
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
        )
        .unwrap();
        let head = read_head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        stream
    }

    /// Sends bytes and returns all that is answered.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_all(&mut stream)
    }

    fn connect_answer(&self, target: &str) -> String {
        self.ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
    }

    fn finish(self) -> NetworkFacts {
        self.proxy.finish()
    }
}

fn policy(word: NetworkWord, entries: &[String]) -> NetworkPolicy {
    let hosts = entries.iter().map(|entry| entry.parse().unwrap()).collect();
    let list = HostList {
        hosts,
        ..HostList::default()
    };
    NetworkPolicy::of(word, list).unwrap()
}

fn spec(folder: &TempDir, policy: NetworkPolicy) -> ProxySpec {
    ProxySpec {
        socket: folder.path().join("net/proxy"),
        services: Vec::new(),
        policy,
        phase: NetworkPhase::Work,
    }
}

fn read_all(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads up to the empty line.
fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A host on loopback: each connection is handed to the test.
struct Host {
    port: u16,
    connections: Receiver<TcpStream>,
    accepted: Arc<AtomicUsize>,
}

impl Host {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, connections) = channel();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self {
            port,
            connections,
            accepted,
        }
    }

    /// A host that sends everything back, and ends its side after the client.
    fn echo() -> Self {
        let Self {
            port,
            connections,
            accepted,
        } = Self::new();
        thread::spawn(move || {
            for stream in connections {
                thread::spawn(move || {
                    let mut from = stream.try_clone().unwrap();
                    let mut to = stream;
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        });
        let (_, connections) = channel();
        Self {
            port,
            connections,
            accepted,
        }
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn accept(&self) -> TcpStream {
        self.connections.recv_timeout(PATIENCE).unwrap()
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A resolver that gives every name the next of its answers, and counts.
#[derive(Debug)]
struct Stub {
    answers: Vec<Vec<IpAddr>>,
    asked: Arc<AtomicUsize>,
}

impl Stub {
    fn new(answers: &[&[&str]]) -> (Box<Self>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let read = |list: &&[&str]| list.iter().map(|one| one.parse().unwrap()).collect();
        let stub = Self {
            answers: answers.iter().map(read).collect(),
            asked: Arc::clone(&asked),
        };
        (Box::new(stub), asked)
    }
}

impl Resolve for Stub {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        let at = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(at).or(self.answers.last());
        let answer = answer.cloned().unwrap_or_default();
        Box::pin(async move { Ok(answer) })
    }
}

/// A resolver that never answers.
#[derive(Debug)]
struct Hanging;

impl Resolve for Hanging {
    fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
        Box::pin(std::future::pending())
    }
}

fn only(facts: &NetworkFacts) -> &NetworkRecord {
    let [record] = &facts.records[..] else {
        panic!("{facts:?}");
    };
    record
}
