//! Where a batch that runs takes requests of its operator: a socket in the
//! shared git folder, which no confined step sees, and a token in the private
//! folder, which none reads.

use crate::error::StoreError;
use crate::private::PrivateFolder;
use crate::roots::{MemoryRoots, common_folder};
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::token;
use premath_kernel::record::control::{ControlAnswer, ControlRequest, LINE_MAX};
use premath_platform::socket;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the sockets in the shared git folder.
pub(crate) const FOLDER: &str = "premath-control";
/// The end of a socket's name.
const SOCKET: &str = ".sock";
/// How long a batch may take to take a request in, or to send its answer after
/// it was announced.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the requests to one batch go.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ControlPlace {
    folder: PathBuf,
    /// The name of the socket, and of the token.
    name: String,
}

impl ControlPlace {
    fn of(folder: PathBuf, batch_id: &BatchId) -> Self {
        // An id comes from the trajectory: it may not be a file's name.
        let digest = sha256_hex(batch_id.as_bytes());
        let name: String = token::token(batch_id, "batch").chars().take(40).collect();
        Self {
            folder,
            name: format!("{name}-{}{SOCKET}", &digest[..8]),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn secret_name(&self) -> String {
        format!("control-{}", self.name.trim_end_matches(SOCKET))
    }

    /// Listens, at a name of its own first: a socket that is bound and not listened
    /// to yet looks like that of a process that is gone.
    fn listen(&self) -> io::Result<UnixListener> {
        let path = self.path();
        if fs::symlink_metadata(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let name = format!("{}.new", self.name);
        let new = self.folder.join(&name);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = socket::listen_in(&self.folder, &name)?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        fs::rename(&new, &path)?;
        Ok(listener)
    }

    /// Removes the socket of a process that is gone, with its token; returns
    /// whether a process listens.
    fn is_live(&self, private: &PrivateFolder) -> io::Result<bool> {
        match socket::connect_in(&self.folder, &self.name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(self.path())?;
                private.forget(&self.secret_name())?;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl ControlPlace {
    /// Returns whether no process listens, for certain.
    fn is_dead(&self) -> bool {
        let connected = socket::connect_in(&self.folder, &self.name);
        connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Returns the places with a socket, by name.
fn places(folder: &Path) -> Result<Vec<ControlPlace>, StoreError> {
    if fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_symlink()) {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("read", folder))?,
    };
    let mut places = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read", folder))?;
        if let Some(name) = entry.file_name().to_str()
            && name.ends_with(SOCKET)
            && entry.file_type().is_ok_and(|kind| kind.is_socket())
        {
            places.push(ControlPlace {
                folder: folder.to_path_buf(),
                name: name.to_owned(),
            });
        }
    }
    places.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(places)
}

/// Returns the sockets below a common git folder at which no process listens;
/// nothing is removed.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn dead_sockets(common_folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let places = places(&common_folder.join(FOLDER))?;
    let dead = places.into_iter().filter(ControlPlace::is_dead);
    Ok(dead.map(|place| place.path()).collect())
}

/// Removes a socket at which no process listens, with its token.
///
/// # Errors
///
/// [`StoreError::Io`], also where a process listens.
pub(crate) fn remove_dead(private: &PrivateFolder, path: &Path) -> Result<(), StoreError> {
    let (folder, name) = (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    );
    let (Some(folder), Some(name)) = (folder, name) else {
        return Err(StoreError::io("remove", path)(
            io::ErrorKind::InvalidInput.into(),
        ));
    };
    let place = ControlPlace {
        folder: folder.to_path_buf(),
        name: name.to_owned(),
    };
    match place.is_live(private) {
        Ok(false) => Ok(()),
        Ok(true) => Err(StoreError::io("remove", path)(
            io::ErrorKind::AddrInUse.into(),
        )),
        Err(error) => Err(StoreError::io("remove", path)(error)),
    }
}

/// The socket of a batch that runs; dropping it removes its files.
#[derive(Debug)]
pub struct ControlSocket {
    place: ControlPlace,
    private: PrivateFolder,
    /// Device and inode: another file at the path is not ours.
    identity: (u64, u64),
    /// Taken by who accepts the connections.
    listener: Option<UnixListener>,
    token: String,
}

impl ControlSocket {
    /// Makes the socket of a batch and its token, and removes those of batches
    /// whose process is gone.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; another process listens for the same batch.
    pub fn open(roots: &MemoryRoots, batch_id: &BatchId) -> Result<Self, StoreError> {
        let folder = common_folder(&roots.repository)?.join(FOLDER);
        let private = PrivateFolder::of(roots);
        make_private(&folder).map_err(StoreError::io("make", &folder))?;
        for place in places(&folder)? {
            // One that cannot be looked at stays.
            let _ = place.is_live(&private);
        }
        let place = ControlPlace::of(folder, batch_id);
        let path = place.path();
        let listener = place.listen();
        let listener = listener.map_err(StoreError::io("listen at", &path))?;
        let identity = identity(&path).map_err(StoreError::io("look at", &path))?;
        let _ = private.forget(&place.secret_name());
        let token = private.secret(&place.secret_name())?;
        Ok(Self {
            place,
            private,
            identity,
            listener: Some(listener),
            token,
        })
    }

    /// Returns the socket to accept connections from, once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// Returns what every request must bear.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> PathBuf {
        self.place.path()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let path = self.place.path();
        if identity(&path).ok() == Some(self.identity) {
            let _ = fs::remove_file(&path);
            let _ = self.private.forget(&self.place.secret_name());
            // It stays where another batch has its socket there.
            let _ = fs::remove_dir(&self.place.folder);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Makes the folder where there is none; one that is there must be closed to
/// other users.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = fs::symlink_metadata(folder)?;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw();
    match meta.is_dir() && is_ours && meta.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::other("it is not a folder of its owner alone")),
    }
}

/// A batch cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process listens.
    #[error("no batch is running in {repository}{}", stale_note(*stale))]
    NoBatch {
        /// The repository.
        repository: PathBuf,
        /// How many sockets of processes that are gone there are.
        stale: usize,
    },
    /// No process listens for the batch that is named.
    #[error("batch {0} is not running")]
    NotRunning(BatchId),
    /// More than one batch runs, and none is named.
    #[error("{0} batches are running; name one")]
    Ambiguous(usize),
    /// The place of the socket or the token cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The batch does not answer.
    #[error("the batch does not answer at {path}")]
    Unanswered {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The batch ended before it answered, or does not answer this process.
    #[error("the batch closed the connection without an answer")]
    Closed,
}

fn stale_note(stale: usize) -> &'static str {
    match stale {
        0 => "",
        _ => " (a batch that was killed left its socket)",
    }
}

/// A connection to a batch that runs.
#[derive(Debug)]
pub struct ControlConnection {
    stream: UnixStream,
    token: String,
    path: PathBuf,
}

impl ControlConnection {
    /// Connects to the batch of a repository: the one that is named, or the only
    /// one that runs.
    ///
    /// # Errors
    ///
    /// [`ControlError`].
    pub fn open(roots: &MemoryRoots, batch_id: Option<&BatchId>) -> Result<Self, ControlError> {
        let folder = common_folder(&roots.repository)?.join(FOLDER);
        let private = PrivateFolder::of(roots);
        let wanted = batch_id.map(|id| ControlPlace::of(folder.clone(), id));
        let mut stale = 0;
        let mut live = Vec::new();
        for place in places(&folder)? {
            if wanted.as_ref().is_some_and(|wanted| *wanted != place) {
                continue;
            }
            let path = place.path();
            match socket::connect_in(&place.folder, &place.name) {
                Ok(stream) => live.push((place, stream)),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => stale += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(ControlError::Unanswered { path, source }),
            }
        }
        let count = live.len();
        match (live.pop(), batch_id) {
            (Some((place, stream)), _) if count == 1 => Ok(Self {
                stream,
                token: private.read(&place.secret_name())?,
                path: place.path(),
            }),
            (Some(_), _) => Err(ControlError::Ambiguous(count)),
            (None, Some(batch_id)) => Err(ControlError::NotRunning(batch_id.clone())),
            (None, None) => Err(ControlError::NoBatch {
                repository: roots.repository.clone(),
                stale,
            }),
        }
    }

    /// Returns what a request to the batch must bear.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Sends a request and returns the answer, which may take as long as
    /// `patience`.
    ///
    /// # Errors
    ///
    /// [`ControlError`].
    pub fn ask(
        self,
        request: &ControlRequest,
        patience: Duration,
    ) -> Result<ControlAnswer, ControlError> {
        let path = self.path.clone();
        let line = self.exchange(request, patience);
        let line = line.map_err(|source| ControlError::Unanswered {
            path: path.clone(),
            source,
        })?;
        if line.is_empty() {
            return Err(ControlError::Closed);
        }
        serde_json::from_slice(&line).map_err(|error| ControlError::Unanswered {
            path,
            source: error.into(),
        })
    }

    fn exchange(mut self, request: &ControlRequest, patience: Duration) -> io::Result<Vec<u8>> {
        self.stream.set_write_timeout(Some(PATIENCE))?;
        self.stream.set_read_timeout(Some(PATIENCE + patience))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        match self.stream.write_all(&line) {
            // The batch refused this process: there is nothing to read either.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Vec::new()),
            written => written?,
        }
        let mut answer = Vec::new();
        let mut reader = BufReader::new(self.stream).take(LINE_MAX as u64);
        match reader.read_until(b'\n', &mut answer) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Vec::new()),
            read => read.map(|_| answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, MemoryRoots) {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let roots = MemoryRoots::at(&root);
        (folder, roots)
    }

    fn error_of(roots: &MemoryRoots, batch_id: Option<&BatchId>) -> String {
        let error = ControlConnection::open(roots, batch_id).unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_batch_is_found_while_it_runs_and_leaves_nothing() {
        let (_folder, roots) = repository();
        let id = BatchId::from("hb1_../x");
        assert!(error_of(&roots, None).starts_with("no batch is running in "));
        let socket = ControlSocket::open(&roots, &id).unwrap();
        let found = ControlConnection::open(&roots, None).unwrap();
        assert_eq!(found.token(), socket.token());
        assert_eq!(found.token().len(), 64);
        ControlConnection::open(&roots, Some(&id)).unwrap();
        let other = BatchId::from("other");
        assert_eq!(error_of(&roots, Some(&other)), "batch other is not running");
        let second = ControlSocket::open(&roots, &other).unwrap();
        assert_eq!(error_of(&roots, None), "2 batches are running; name one");
        let found = ControlConnection::open(&roots, Some(&other)).unwrap();
        assert_eq!(found.token(), second.token());
        assert_ne!(socket.token(), second.token());
        drop(second);
        assert!(ControlSocket::open(&roots, &id).is_err());
        drop(socket);
        assert!(!roots.repository.join(".git").join(FOLDER).exists());
        let left = fs::read_dir(roots.repository.join(".premath/private")).unwrap();
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_socket_of_a_process_that_is_gone_is_named_and_replaced() {
        let (_folder, roots) = repository();
        let id = BatchId::from("b");
        let mut socket = ControlSocket::open(&roots, &id).unwrap();
        let first = socket.token().to_owned();
        drop(socket.take_listener());
        // A process that is killed removes nothing.
        std::mem::forget(socket);
        assert!(error_of(&roots, None).ends_with("(a batch that was killed left its socket)"));
        let socket = ControlSocket::open(&roots, &id).unwrap();
        assert_ne!(socket.token(), first);
        ControlConnection::open(&roots, None).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let (_folder, roots) = repository();
        let folder = roots.repository.join(".git").join(FOLDER);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(ControlSocket::open(&roots, &BatchId::from("b")).is_err());
    }
}
