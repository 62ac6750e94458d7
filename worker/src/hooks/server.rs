//! The socket of a lane's hooks.

use super::door::{Door, DoorKind, Knock, OpenDoor};
use crate::proxy::ProxyError;
use premath_evidence::{HookJournal, HookRow};
use premath_hook::EVENT_MAX;
use premath_kernel::failure::FailureClass;
use rustix::process::Pid;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

/// Connections at once.
const CONNECTIONS: usize = 64;

/// The bytes of events that are held at once, in KiB.
const HELD_KIB: u32 = 64 * 1024;

/// How long a client may take to send its event.
const PATIENCE: Duration = Duration::from_secs(20);

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
}

#[derive(Debug)]
struct State {
    room: Semaphore,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// None once it was taken.
    journal: Option<HookJournal>,
    /// The journal's file.
    file: File,
    /// The first error of the file.
    failure: Option<io::Error>,
}

impl State {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
    ) -> Result<Self, HookServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HookServerError::Thread)?;
        let door = Door::make(kind, path)?;
        let state = Arc::new(State {
            room: Semaphore::new(HELD_KIB as usize),
            open: Mutex::new(Open {
                journal: Some(journal),
                file,
                failure: None,
            }),
        });
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("premath-hooks".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    // The file of the socket is there until the end.
                    let (door, _socket) = match door.open(root) {
                        Ok(opened) => opened,
                        Err(error) => {
                            shared.open().failure = Some(error);
                            return;
                        }
                    };
                    tokio::select! {
                        () = listen(&door, &shared) => {}
                        // The sender is dropped, nothing is ever sent.
                        _ = stopped => {}
                    }
                });
            })
            .map_err(HookServerError::Thread)?;
        Ok(Self {
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Ends the socket and returns the journal.
    ///
    /// # Errors
    ///
    /// The journal's file could not be written.
    pub(crate) fn finish(mut self) -> io::Result<HookJournal> {
        self.end();
        let mut open = self.state.open();
        match open.failure.take() {
            Some(error) => Err(error),
            None => open.journal.take().ok_or(io::ErrorKind::NotFound.into()),
        }
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
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

/// Answers connections until the future is dropped, and theirs with it.
async fn listen(door: &OpenDoor, state: &Arc<State>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let Ok(knock) = door.accept().await else {
            // Out of descriptors: the listener itself does not fail.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let state = Arc::clone(state);
        connections.spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, answer(knock, &state)).await;
            drop(permit);
        });
    }
}

/// Answers one event. Where nothing is answered, the hook program denies.
async fn answer(knock: Knock, state: &State) -> io::Result<()> {
    let Some(mut client) = knock.admitted().await? else {
        return Ok(());
    };
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
    let answer = state.open().take(&event)?;
    drop((event, held));
    client
        .write_u32(u32::try_from(answer.len()).unwrap_or_default())
        .await?;
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

impl Open {
    /// Takes an event: decides, and writes its row before it is answered.
    fn take(&mut self, event: &[u8]) -> io::Result<String> {
        let journal = self.journal.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let (row, answer) = journal.take(event);
        if let Err(error) = self.write(&row) {
            self.failure.get_or_insert(error);
        }
        Ok(answer)
    }

    fn write(&mut self, row: &HookRow) -> io::Result<()> {
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}
