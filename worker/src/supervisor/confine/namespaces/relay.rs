//! Ports of the loopback interface whose connections go to unix sockets of the
//! harness: the only way out of the command's network.

use super::view::{Loopback, PortRelay};
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{UnmountFlags, unmount};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Connections at once; the harness takes no more either.
const CONNECTIONS: usize = 128;

/// Bytes that are passed on at once.
const CHUNK: usize = 32 << 10;

/// A port that is listened to, and where its connections go.
pub(super) struct ForwardedPort {
    listener: TcpListener,
    /// The folder of the socket, which stays in reach of this process alone.
    folder: Arc<OwnedFd>,
    name: OsString,
}

/// Listens to the ports, and takes the sockets' folders out of the view: over a
/// unix socket the command could pass descriptors to the harness, and to close
/// one may block for ever (`SO_LINGER`, socket(7)).
pub(super) fn listen(network: &Loopback) -> io::Result<Vec<ForwardedPort>> {
    let mut folders = BTreeMap::new();
    for relay in &network.relays {
        let at = relay.socket().parent().unwrap_or(Path::new("/"));
        if !folders.contains_key(at) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            folders.insert(at, Arc::new(open(at, flags, Mode::empty())?));
        }
    }
    for at in folders.keys() {
        unmount(*at, UnmountFlags::DETACH)?;
    }
    let doors = network.relays.iter().map(|relay| {
        let folder = relay.socket().parent().and_then(|at| folders.get(at));
        forwarded_port(relay, folder.ok_or(io::ErrorKind::NotFound)?)
    });
    doors.collect()
}

fn forwarded_port(relay: &PortRelay, folder: &Arc<OwnedFd>) -> io::Result<ForwardedPort> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, relay.port)).map_err(|error| {
        let port = relay.port;
        io::Error::new(
            error.kind(),
            format!("cannot listen to port {port}: {error}"),
        )
    })?;
    Ok(ForwardedPort {
        listener,
        folder: Arc::clone(folder),
        name: relay.socket().file_name().unwrap_or_default().to_owned(),
    })
}

/// Passes connections on, in threads of their own.
pub(super) fn serve(doors: Vec<ForwardedPort>) -> io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    for door in doors {
        let open = Arc::clone(&open);
        named(move || accept(&door, &open))?;
    }
    Ok(())
}

fn named(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("premath-relay".to_owned());
    thread.stack_size(128 << 10).spawn(work).map(drop)
}

fn accept(door: &ForwardedPort, open: &Arc<AtomicUsize>) {
    for client in door.listener.incoming() {
        let Ok(client) = client else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let open = Arc::clone(open);
        let socket = Path::new("/proc/self/fd")
            .join(door.folder.as_raw_fd().to_string())
            .join(&door.name);
        let _ = named(move || {
            // A connection that fails is closed, which the command sees.
            let _ = pass_on(client, UnixStream::connect(socket));
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn pass_on(client: TcpStream, server: io::Result<UnixStream>) -> io::Result<()> {
    let server = server?;
    let (client_reader, server_writer) = (client.try_clone()?, server.try_clone()?);
    let upward = thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            copy(client_reader, &server_writer);
            let _ = server_writer.shutdown(Shutdown::Write);
        })?;
    copy(server, &client);
    let _ = client.shutdown(Shutdown::Write);
    let _ = upward.join();
    Ok(())
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
