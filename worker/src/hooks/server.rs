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

/// Connections to a port at once that are not admitted yet. Any local process can
/// connect to a port, so that they have a limit of their own.
const STRANGERS: usize = 128;

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
    /// How long that is waited for.
    end: Duration,
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
            end: END,
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
        if ended.recv_timeout(self.end) == Err(mpsc::RecvTimeoutError::Timeout) {
            let detail = format!("the socket did not end within {} ms", self.end.as_millis());
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
        let first = if door.admits_at_once() {
            &room
        } else {
            &strangers
        };
        let Ok(permit) = Arc::clone(first).acquire_owned().await else {
            return;
        };
        let Ok(knock) = door.accept().await else {
            // Out of descriptors: the listener itself does not fail.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let later = (!door.admits_at_once()).then(|| Arc::clone(&room));
        let state = Arc::clone(state);
        connections.spawn(async move {
            let Ok(Some(client)) = knock.admitted().await else {
                return;
            };
            let permit = match later {
                None => permit,
                // The limit of strangers counts those that wait here.
                Some(room) => {
                    let admitted = room.acquire_owned().await;
                    drop(permit);
                    match admitted {
                        Ok(permit) => permit,
                        Err(_) => return,
                    }
                }
            };
            let _ = tokio::time::timeout(PATIENCE, answer(client, &state)).await;
            drop(permit);
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
mod tests;
