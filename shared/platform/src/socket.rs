//! Unix sockets in a folder, whatever the length of its path, and the process at
//! the other end.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Uid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest path of a socket, in bytes.
const PATH_MAX: usize = 107;

/// The process that connected to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number, as this process sees it.
    pub pid: Pid,
    /// Its user.
    pub uid: Uid,
}

/// A path to a file of a folder that is short enough for a socket, and the folder
/// for as long as the path is used.
struct Place {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl Place {
    fn of(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= PATH_MAX {
            return Ok(Self {
                path,
                _folder: None,
            });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, folder, flags, Mode::empty())?;
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd())),
            _folder: Some(folder),
        })
    }
}

/// Makes a socket in a folder and listens to it.
///
/// # Errors
///
/// As the system reports it; a file of that name is there already.
pub fn listen_in(folder: &Path, name: &str) -> io::Result<UnixListener> {
    UnixListener::bind(Place::of(folder, name)?.path)
}

/// Connects to a socket in a folder, and waits for nothing.
///
/// # Errors
///
/// As the system reports it; the connection is refused where no process listens,
/// and would block where one listens and takes no more connections.
pub fn connect_in(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let place = Place::of(folder, name)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(&place.path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Returns the user of this process.
pub fn own_user() -> Uid {
    rustix::process::geteuid()
}

/// Returns the process that connected.
///
/// # Errors
///
/// As the system reports it, also where the process is not seen from here.
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    let peer = socket_peercred(stream)?;
    Ok(Peer {
        pid: peer.pid,
        uid: peer.uid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_socket_is_reached_below_a_path_of_any_length() {
        let root = std::env::temp_dir().join(format!("premath-socket-{}", std::process::id()));
        for folder in [root.clone(), root.join("x".repeat(120))] {
            fs::create_dir_all(&folder).unwrap();
            let listener = listen_in(&folder, "s").unwrap();
            let _client = connect_in(&folder, "s").unwrap();
            let (server, _) = listener.accept().unwrap();
            let peer = peer(&server).unwrap();
            assert_eq!(peer.pid, rustix::process::getpid());
            assert_eq!(peer.uid, rustix::process::getuid());
            assert!(listen_in(&folder, "s").is_err());
            drop((listener, server));
            let error = connect_in(&folder, "s").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_socket_whose_process_takes_no_connection_is_not_waited_for() {
        let root = std::env::temp_dir().join(format!("premath-full-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let listener = listen_in(&root, "s").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match connect_in(&root, "s") {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        fs::remove_dir_all(&root).unwrap();
    }
}
