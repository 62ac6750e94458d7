//! Ports of the loopback interface whose connections go to unix sockets of the
//! harness: the only way out of the command's network.

use super::view::{Loopback, Relay};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Connections at once; the harness takes no more either.
const CONNECTIONS: usize = 128;

/// Bytes that are passed on at once.
const CHUNK: usize = 32 << 10;

/// A port that is listened to, and where its connections go.
pub(super) struct Door {
    listener: TcpListener,
    socket: PathBuf,
}

/// Listens to the ports.
pub(super) fn listen(network: &Loopback) -> io::Result<Vec<Door>> {
    network.relays.iter().map(door).collect()
}

fn door(relay: &Relay) -> io::Result<Door> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, relay.port)).map_err(|error| {
        let port = relay.port;
        io::Error::new(
            error.kind(),
            format!("cannot listen to port {port}: {error}"),
        )
    })?;
    Ok(Door {
        listener,
        socket: relay.socket().to_path_buf(),
    })
}

/// Passes connections on, in threads of their own.
pub(super) fn serve(doors: Vec<Door>) -> io::Result<()> {
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

fn accept(door: &Door, open: &Arc<AtomicUsize>) {
    for client in door.listener.incoming() {
        let Ok(client) = client else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let open = Arc::clone(open);
        let socket = door.socket.clone();
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
