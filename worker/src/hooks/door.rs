//! Where the hook program knocks: a Unix socket, or a port with a token where a
//! command must not use Unix sockets.

use super::HookServerError;
use super::peer::is_below;
use super::random_name;
use crate::proxy::Socket;
use premath_hook::TOKEN;
use rustix::process::Pid;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// How long a client may take to send the token.
pub(super) const TOKEN_PATIENCE: Duration = Duration::from_secs(5);

/// Which kind of door a command can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorKind {
    /// A Unix socket: only processes of the command are answered.
    Unix,
    /// A port of loopback: only who knows the token is answered, and only the
    /// command can read the token's file.
    Port,
}

/// A door before it is listened at.
#[derive(Debug)]
pub(super) enum Door {
    Unix(Socket, StdUnixListener),
    Port(StdTcpListener, String),
}

/// A door that is listened at.
pub(super) enum OpenDoor {
    Unix(UnixListener, Pid),
    Port(TcpListener, String),
}

/// A connection of either kind.
pub(super) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

impl Door {
    /// Makes a door; its path is the socket, or the file with port and token.
    pub(super) fn make(kind: DoorKind, path: PathBuf) -> Result<Self, HookServerError> {
        if kind == DoorKind::Unix {
            let (socket, listener) = Socket::bind(path).map_err(HookServerError::Socket)?;
            return Ok(Self::Unix(socket, listener));
        }
        let make = || -> io::Result<Self> {
            let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            let token = random_name()?;
            fs::write(path, format!("{} {token}\n", listener.local_addr()?.port()))?;
            Ok(Self::Port(listener, token))
        };
        make().map_err(HookServerError::Thread)
    }

    /// Begins to listen, in a runtime; returns what keeps the socket's file.
    pub(super) fn open(self, root: Pid) -> io::Result<(OpenDoor, Option<Socket>)> {
        Ok(match self {
            Self::Unix(socket, listener) => {
                let listener = UnixListener::from_std(listener)?;
                (OpenDoor::Unix(listener, root), Some(socket))
            }
            Self::Port(listener, token) => (
                OpenDoor::Port(TcpListener::from_std(listener)?, token),
                None,
            ),
        })
    }
}

impl OpenDoor {
    /// Returns whether a connection is known to be the command's when it is accepted.
    pub(super) const fn admits_at_once(&self) -> bool {
        matches!(self, Self::Unix(..))
    }

    /// Takes the next connection.
    pub(super) async fn accept(&self) -> io::Result<Knock> {
        Ok(match self {
            Self::Unix(listener, root) => {
                let (client, _) = listener.accept().await?;
                let pid = client.peer_cred()?.pid();
                Knock {
                    is_admitted: is_below(pid, *root),
                    client: Box::new(client),
                    token: None,
                }
            }
            Self::Port(listener, token) => {
                let (client, _) = listener.accept().await?;
                Knock {
                    is_admitted: true,
                    client: Box::new(client),
                    token: Some(token.clone()),
                }
            }
        })
    }
}

/// A connection that was taken.
pub(super) struct Knock {
    client: Box<dyn Connection>,
    is_admitted: bool,
    token: Option<String>,
}

impl Knock {
    /// Returns the connection of a process that is answered.
    pub(super) async fn admitted(mut self) -> io::Result<Option<Box<dyn Connection>>> {
        if let Some(token) = &self.token {
            let mut given = [0; TOKEN];
            let read = self.client.read_exact(&mut given);
            tokio::time::timeout(TOKEN_PATIENCE, read).await??;
            self.is_admitted = given == *token.as_bytes();
        }
        if !self.is_admitted {
            tracing::debug!("a process that is not the agent's spoke to the hooks of a lane");
        }
        Ok(self.is_admitted.then_some(self.client))
    }
}
