//! The socket of a lane's hooks.

use super::door::{Connection, Door, DoorKind, OpenDoor};
use crate::batch::{MessageSource, TakenMessages};
use crate::proxy::ProxyError;
use premath_evidence::{HookJournal, HookRow};
use premath_hook::EVENT_MAX;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical;
use premath_kernel::json::stamp::Stamp;
use premath_memory::clock;
use rustix::process::Pid;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

/// Connections at once of those that are answered.
const CONNECTIONS: usize = 64;

/// Connections at once that have yet to show that they are answered. With a port that
/// can be any process of the machine, so that these have places of their own.
const STRANGERS: usize = 256;

/// The bytes of events that are held at once, in KiB.
const HELD_KIB: u32 = 64 * 1024;

/// The most bytes of a journal's file; what would go over it is denied.
const JOURNAL_MAX: u64 = 64 << 20;

/// How long a client may take to send its event.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the end of the thread is waited for. A client can send it descriptors,
/// and closing one may last as long as the client chose.
const END: Duration = Duration::from_secs(5);

/// How long nothing is accepted after a failure to.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookServerError {
    /// The socket cannot be made.
    #[error("cannot make the socket for hooks")]
    Socket(#[source] ProxyError),
    /// Something else of the system.
    #[error("cannot start the thread for hooks")]
    Thread(#[source] io::Error),
}

/// The socket, served by a thread of its own until this value is finished.
#[derive(Debug)]
pub(crate) struct HookServer {
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

#[derive(Debug)]
struct State {
    room: Semaphore,
    /// Where the operator's texts for the agent come from.
    messages: Mutex<Option<MessageSource>>,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// None once it was taken.
    journal: Option<HookJournal>,
    /// The journal's file.
    file: File,
    /// What was written to it.
    digest: Sha256,
    /// How many bytes that is.
    length: u64,
    /// The first error of the file.
    failure: Option<io::Error>,
}

impl State {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn messages(&self) -> Option<TakenMessages> {
        let messages = self.messages.lock();
        let messages = messages.unwrap_or_else(PoisonError::into_inner);
        messages.as_ref()?.take()
    }
}

impl HookServer {
    /// Makes the door at a path, and begins to answer the descendants of a process.
    ///
    /// # Errors
    ///
    /// [`HookServerError`].
    pub(crate) fn start(
        (kind, path): (DoorKind, PathBuf),
        journal: HookJournal,
        file: File,
        root: Pid,
        messages: Option<MessageSource>,
    ) -> Result<Self, HookServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HookServerError::Thread)?;
        let door = Door::make(kind, path)?;
        let state = Arc::new(State {
            room: Semaphore::new(HELD_KIB as usize),
            messages: Mutex::new(messages),
            open: Mutex::new(Open {
                journal: Some(journal),
                file,
                digest: Sha256::new(),
                length: 0,
                failure: None,
            }),
        });
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("premath-hooks".to_owned())
            .spawn(move || {
                serve(runtime, (door, root), &shared, stopped);
                drop(end);
            })
            .map_err(HookServerError::Thread)?;
        Ok(Self {
            state,
            stop: Some(stop),
            thread: Some(thread),
            ended: Mutex::new(ended),
        })
    }

    /// Ends the socket and returns the journal, with the SHA-256 of its file.
    ///
    /// # Errors
    ///
    /// The journal's file could not be written.
    pub(crate) fn finish(mut self) -> io::Result<(HookJournal, String)> {
        self.end();
        let mut open = self.state.open();
        match open.failure.take() {
            Some(error) => Err(error),
            None => {
                let journal = open.journal.take().ok_or(io::ErrorKind::NotFound)?;
                let digest = std::mem::take(&mut open.digest).finalize();
                Ok((journal, canonical::hex(&digest)))
            }
        }
    }

    fn end(&mut self) {
        self.stop.take();
        let Some(thread) = self.thread.take() else {
            return;
        };
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(END) == Err(mpsc::RecvTimeoutError::Timeout) {
            let detail = format!("the socket did not end within {} s", END.as_secs());
            tracing::warn!("timed out waiting for the socket of hooks to end; abandoning it");
            if let Some(journal) = &mut self.state.open().journal {
                journal.fault(FailureClass::HookChannelInvalid, detail);
            }
        } else {
            // A thread that panicked left its journal all the same.
            let _ = thread.join();
        }
    }
}

impl Drop for HookServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Answers connections until `stopped` ends, and closes them: what they were sent is
/// closed with them.
fn serve(
    runtime: Runtime,
    (door, root): (Door, Pid),
    state: &Arc<State>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        // The file of the socket is there until the end.
        let (door, _socket) = match door.open(root) {
            Ok(opened) => opened,
            Err(error) => {
                state.open().failure = Some(error);
                return;
            }
        };
        tokio::select! {
            () = listen(&door, state) => {}
            // The sender is dropped, nothing is ever sent.
            _ = stopped => {}
        }
    });
    drop(runtime);
}

/// Answers connections until the future is dropped, and theirs with it.
async fn listen(door: &OpenDoor, state: &Arc<State>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(stranger) = Arc::clone(&strangers).acquire_owned().await else {
            return;
        };
        let Ok(knock) = door.accept().await else {
            // Out of descriptors: the listener itself does not fail.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (state, room) = (Arc::clone(state), Arc::clone(&room));
        connections.spawn(async move {
            let Ok(Some(client)) = knock.admitted().await else {
                return;
            };
            // Its place as a stranger bounds those that wait for another one.
            let Ok(_permit) = room.acquire().await else {
                return;
            };
            drop(stranger);
            let _ = tokio::time::timeout(PATIENCE, answer(client, &state)).await;
        });
    }
}

/// Answers one event. Where nothing is answered, the hook program denies.
async fn answer(mut client: Box<dyn Connection>, state: &State) -> io::Result<()> {
    let length = client.read_u32().await? as usize;
    if length > EVENT_MAX {
        let detail = format!("an event of {length} bytes; at most {EVENT_MAX} are read");
        if let Some(journal) = &mut state.open().journal {
            journal.fault(FailureClass::HookChannelInvalid, detail);
        }
        return Ok(());
    }
    let held = u32::try_from(length / 1024 + 1).unwrap_or(HELD_KIB);
    let held = state.room.acquire_many(held).await;
    let mut event = vec![0; length];
    client.read_exact(&mut event).await?;
    let mut taken = None;
    let answer = state.open().take(&event, || {
        taken = state.messages();
        taken.as_ref().map(|taken| taken.text.clone())
    })?;
    drop((event, held));
    client
        .write_u32(u32::try_from(answer.len()).unwrap_or_default())
        .await?;
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await?;
    // Where the client went away, the texts wait for the next call.
    if let Some(taken) = taken {
        taken.given();
    }
    Ok(())
}

impl Open {
    /// Takes an event: decides, and writes its row before it is answered.
    fn take(
        &mut self,
        event: &[u8],
        message: impl FnOnce() -> Option<String>,
    ) -> io::Result<String> {
        let journal = self.journal.as_mut().ok_or(io::ErrorKind::NotFound)?;
        if self.length >= JOURNAL_MAX {
            let detail = format!("the journal is over {JOURNAL_MAX} bytes");
            journal.fault(FailureClass::HookChannelInvalid, detail);
            // Without an answer the hook program denies.
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Before it is decided: a call does not run earlier.
        let at = clock::now().wall;
        let (mut row, answer) = journal.take_telling(event, message);
        row.at = Some(Stamp::at(at));
        if let Err(error) = self.write(&row) {
            self.failure.get_or_insert(error);
        }
        Ok(answer)
    }

    fn write(&mut self, row: &HookRow) -> io::Result<()> {
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.digest.update(&line);
        self.length += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_evidence::Agent;
    use premath_kernel::policy::turn::TurnPolicy;
    use rustix::net::sockopt::set_socket_linger;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use rustix::process::{getpid, getppid};
    use std::collections::HashSet;
    use std::fs;
    use std::io::{IoSlice, Read};
    use std::mem::MaybeUninit;
    use std::net::TcpStream;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::DirBuilderExt;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Instant;

    const PROMPT: &[u8] = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit"}"#;

    fn started(folder: &Path, kind: DoorKind, root: Pid) -> (HookServer, PathBuf) {
        let policy = Arc::new(TurnPolicy::embedded().unwrap());
        let journal = HookJournal::new(Agent::Codex, policy, "/lane");
        let file = File::create(folder.join("journal")).unwrap();
        let private = folder.join("private");
        fs::DirBuilder::new().mode(0o700).create(&private).unwrap();
        let door = private.join("socket");
        let server = HookServer::start((kind, door.clone()), journal, file, root, None);
        (server.unwrap(), door)
    }

    /// Sends an event, and returns what is answered until the connection ends.
    fn exchange(mut stream: impl Read + Write, token: &[u8], event: &[u8]) -> Vec<u8> {
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        // A peer that is not admitted closes the connection at any time.
        let _ = stream.write_all(&[token, &length, event].concat());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn only_processes_below_the_supervisor_are_answered() {
        for (root, events) in [(getppid().unwrap(), 1), (getpid(), 0)] {
            let folder = tempfile::tempdir().unwrap();
            let (server, door) = started(folder.path(), DoorKind::Unix, root);
            let answer = exchange(UnixStream::connect(&door).unwrap(), b"", PROMPT);
            let expected: &[u8] = if events == 1 { &[0; 4] } else { &[] };
            assert_eq!(answer, expected);
            let (journal, digest) = server.finish().unwrap();
            let facts = journal.facts(&[], String::new(), digest);
            assert_eq!(facts.events, events);
            assert!(!door.exists());
            let written = fs::read(folder.path().join("journal")).unwrap();
            assert_eq!(facts.journal_sha256, canonical::sha256_hex(&written));
        }
    }

    #[test]
    fn a_port_answers_only_who_knows_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Port, getpid());
        let text = fs::read_to_string(&door).unwrap();
        let (port, token) = text.trim().split_once(' ').unwrap();
        let port: u16 = port.parse().unwrap();
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let guess = "0".repeat(token.len());
        assert_eq!(exchange(connect(), guess.as_bytes(), PROMPT), b"");
        assert_eq!(exchange(connect(), token.as_bytes(), PROMPT), [0; 4]);
        let (journal, _) = server.finish().unwrap();
        let facts = journal.facts(&[], String::new(), String::new());
        assert_eq!(facts.events, 1);
    }

    /// Returns how many sockets of this process have the name of a door: the one that
    /// is listened at, and those that were accepted.
    fn sockets(door: &Path) -> usize {
        let table = fs::read_to_string("/proc/net/unix").unwrap();
        let named = table
            .lines()
            .filter(|line| line.ends_with(door.to_str().unwrap()));
        let links: HashSet<PathBuf> = named
            .filter_map(|line| line.split_whitespace().nth(6))
            .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
            .collect();
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| links.contains(&link)))
            .count()
    }

    #[test]
    fn a_command_does_not_use_up_the_descriptors_of_the_harness() {
        let folder = tempfile::tempdir().unwrap();
        let root = getppid().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Unix, root);
        let most = CONNECTIONS + STRANGERS;
        // The rest of them waits to be accepted.
        let connect = || UnixStream::connect(&door).unwrap();
        let silent: Vec<_> = (0..most + 60).map(|_| connect()).collect();
        let until = Instant::now() + PATIENCE / 2;
        while sockets(&door) <= most && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(sockets(&door), most + 1);
        drop((silent, server));
    }

    #[test]
    fn who_does_not_know_the_token_keeps_no_place_of_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Port, getpid());
        let text = fs::read_to_string(&door).unwrap();
        let (port, token) = text.trim().split_once(' ').unwrap();
        let port: u16 = port.parse().unwrap();
        let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
        let silent: Vec<_> = (0..2 * CONNECTIONS).map(|_| connect()).collect();
        // All of them are there before the agent is.
        let agent = connect();
        agent.set_read_timeout(Some(PATIENCE / 2)).unwrap();
        assert_eq!(exchange(agent, token.as_bytes(), PROMPT), [0; 4]);
        drop((silent, server));
    }

    #[test]
    fn an_event_that_is_too_long_is_a_fault_and_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = getppid().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Unix, root);
        let mut stream = UnixStream::connect(&door).unwrap();
        stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"");
        let (journal, _) = server.finish().unwrap();
        let faults = journal.faults();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].class, FailureClass::HookChannelInvalid);
    }

    /// Sends a descriptor over a socket, with a byte.
    fn send(over: &UnixStream, descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        let byte = [IoSlice::new(b"x")];
        sendmsg(over, &byte, &mut control, SendFlags::empty()).unwrap();
    }

    /// Sends a socket to a door whose close lasts until its peer is closed, and closes
    /// its own copies. Returns the client and the peer.
    fn send_what_cannot_be_closed(door: &Path) -> (UnixStream, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut writer, _) = listener.accept().unwrap();
        // Closing the writer waits until what it wrote was read.
        writer.set_nonblocking(true).unwrap();
        while writer.write(&[0; 1 << 16]).is_ok() {}
        set_socket_linger(&writer, Some(Duration::from_secs(100_000))).unwrap();
        writer.set_nonblocking(false).unwrap();
        let client = UnixStream::connect(door).unwrap();
        // The last to close it is the server.
        send(&client, &[writer.as_fd()]);
        (client, reader)
    }

    #[test]
    fn a_descriptor_that_cannot_be_closed_does_not_keep_the_socket_from_ending() {
        // The server reads it, or closes what it did not read.
        for patience in [Duration::from_secs(1), Duration::from_millis(1)] {
            let folder = tempfile::tempdir().unwrap();
            let root = getppid().unwrap();
            let (server, door) = started(folder.path(), DoorKind::Unix, root);
            let (client, peer) = send_what_cannot_be_closed(&door);
            client.set_read_timeout(Some(patience)).unwrap();
            let _ = (&client).read(&mut [0]);
            let (journal, _) = server.finish().unwrap();
            let classes: Vec<_> = journal.faults().iter().map(|fault| fault.class).collect();
            assert_eq!(classes, [FailureClass::HookChannelInvalid], "{patience:?}");
            drop((client, peer));
        }
    }

    #[test]
    fn a_journal_that_is_full_takes_no_more_and_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let root = getppid().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Unix, root);
        server.state.open().length = JOURNAL_MAX;
        let answer = exchange(UnixStream::connect(&door).unwrap(), b"", PROMPT);
        assert_eq!(answer, b"");
        let (journal, _) = server.finish().unwrap();
        assert_eq!(journal.faults().len(), 1);
    }
}
