//! The socket by which an operator reaches a batch that runs.
//!
//! A caller is judged by its process: one of a step is not answered, whatever it
//! sends. A connection holds up nothing but its own thread.

use crossbeam_channel::{Receiver, Sender, bounded, select};
use premath_kernel::json::canonical::{canonical, sha256_hex};
use premath_kernel::json::id::BatchId;
use premath_kernel::record::control::{ControlAnswer, ControlRequest, ControlResult, LINE_MAX};
use premath_memory::StoreError;
use premath_memory::clock;
use premath_memory::control::ControlSocket;
use premath_memory::roots::MemoryRoots;
use premath_platform::socket::{Peer, peer};
use premath_platform::step;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections at once.
const CONNECTIONS: usize = 16;

/// How long a client may take to send its request, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the end of a batch waits for answers to be sent.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How long nothing is accepted after a failure to.
const PAUSE: Duration = Duration::from_millis(100);

/// A request of an operator, and where its answer goes.
#[derive(Debug)]
pub(crate) struct ControlCall {
    pub(crate) request: ControlRequest,
    pub(crate) uid: u32,
    pub(crate) pid: u32,
    /// When it came.
    pub(crate) asked: jiff::Timestamp,
    pub(crate) reply: Sender<ControlAnswer>,
}

/// What reaches the coordinator from the socket.
#[derive(Debug)]
pub(crate) enum ControlMessage {
    /// A request.
    Call(Box<ControlCall>),
    /// A process of a step, or of another user, was refused. Sent once.
    Refused { uid: u32, pid: u32 },
}

/// The socket of a batch, served until this value is dropped.
#[derive(Debug)]
pub(crate) struct ControlServer {
    socket: ControlSocket,
    asked: Arc<Asked>,
    /// Closed at the end: what waits for an answer then gets none.
    open: Option<Sender<()>>,
}

/// How many requests are yet to be answered.
#[derive(Debug, Default)]
struct Asked {
    count: Mutex<usize>,
    answered: Condvar,
}

impl Asked {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) {
        *self.count() += 1;
    }

    fn remove(&self) {
        *self.count() -= 1;
        self.answered.notify_all();
    }

    /// Waits until all are answered, for so long at most.
    fn wait(&self, most: Duration) {
        let waits = |count: &mut usize| *count > 0;
        drop(self.answered.wait_timeout_while(self.count(), most, waits));
    }
}

/// What the threads of connections share.
struct Desk {
    batch_id: BatchId,
    token_digest: String,
    open: AtomicUsize,
    asked: Arc<Asked>,
    has_refused: AtomicBool,
    /// Closed once the batch answers nothing any more.
    ended: Receiver<()>,
    send: Box<dyn Fn(ControlMessage) + Send + Sync>,
}

impl ControlServer {
    /// Makes the socket of a batch, and begins to take requests in.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub(crate) fn start(
        roots: &MemoryRoots,
        batch_id: &BatchId,
        send: impl Fn(ControlMessage) + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let mut socket = ControlSocket::open(roots, batch_id)?;
        let asked = Arc::new(Asked::default());
        let (open, ended) = bounded(0);
        let desk = Arc::new(Desk {
            batch_id: batch_id.clone(),
            token_digest: sha256_hex(socket.token().as_bytes()),
            open: AtomicUsize::new(0),
            asked: Arc::clone(&asked),
            has_refused: AtomicBool::new(false),
            ended,
            send: Box::new(send),
        });
        if let Some(listener) = socket.take_listener() {
            let accept = move || accept(&listener, &desk);
            let started = std::thread::Builder::new()
                .name("control".to_owned())
                .spawn(accept);
            started.map_err(|source| StoreError::Io {
                operation: "serve",
                path: socket.path(),
                source,
            })?;
        }
        Ok(Self {
            socket,
            asked,
            open: Some(open),
        })
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.path()
    }
}

impl Drop for ControlServer {
    /// Waits for the answers: the process may end now, and its threads with it.
    fn drop(&mut self) {
        self.open = None;
        self.asked.wait(LAST_ANSWERS);
    }
}

/// Takes connections in at once: whose process it is, is known only while that
/// process lives.
fn accept(listener: &UnixListener, desk: &Arc<Desk>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors: the listener itself does not fail.
            std::thread::sleep(PAUSE);
            continue;
        };
        let Ok(peer) = peer(&stream) else {
            continue;
        };
        if !desk.admits(peer) {
            continue;
        }
        if desk.open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
            desk.open.fetch_sub(1, Ordering::SeqCst);
            let busy = format!("{CONNECTIONS} requests are being answered; try again");
            // A socket without a reader takes a line without waiting.
            let _ = desk.refuse(&stream, &busy);
            continue;
        }
        let held = Arc::clone(desk);
        let answered = std::thread::Builder::new()
            .name("control-answer".to_owned())
            .spawn(move || {
                if let Err(error) = held.answer(&stream, peer) {
                    tracing::debug!(%error, "a request was not answered");
                }
                held.open.fetch_sub(1, Ordering::SeqCst);
            });
        if answered.is_err() {
            desk.open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Desk {
    /// Returns whether a process is answered: one of the operator, and of no step.
    fn admits(&self, peer: Peer) -> bool {
        let own = premath_platform::socket::own_user();
        let is_users = peer.uid == own || peer.uid.is_root();
        let is_admitted = is_users && !step::holds(peer.pid);
        // Another coordinator looks whether the batch lives.
        let is_harness = || is_users && step::is_harness_of_operator(peer.pid);
        if !is_admitted && !is_harness() && !self.has_refused.swap(true, Ordering::SeqCst) {
            (self.send)(ControlMessage::Refused {
                uid: peer.uid.as_raw(),
                pid: number(peer),
            });
        }
        is_admitted
    }

    /// Reads a request and answers it.
    fn answer(&self, stream: &UnixStream, peer: Peer) -> io::Result<()> {
        let asked = clock::now().wall;
        let line = read_line(stream)?;
        let request = match ControlRequest::parse(&line) {
            Ok(request) => request,
            Err(why) => return self.refuse(stream, &why),
        };
        // Digests are compared, so that the time does not lead to the token.
        if sha256_hex(request.token.as_bytes()) != self.token_digest {
            return self.refuse(stream, "the token is not that of the batch");
        }
        self.asked.add();
        let answered = self.ask(stream, request, peer, asked);
        self.asked.remove();
        answered
    }

    /// Gives a request to the coordinator, and its answer to the client.
    fn ask(
        &self,
        stream: &UnixStream,
        request: ControlRequest,
        peer: Peer,
        asked: jiff::Timestamp,
    ) -> io::Result<()> {
        let (reply, answer) = bounded(1);
        (self.send)(ControlMessage::Call(Box::new(ControlCall {
            request,
            uid: peer.uid.as_raw(),
            pid: number(peer),
            asked,
            reply,
        })));
        let answer = select! {
            recv(answer) -> answer => answer.ok(),
            recv(self.ended) -> _ => answer.try_recv().ok(),
        };
        match answer {
            Some(answer) => put(stream, &answer),
            None => self.refuse(stream, "the batch ended first"),
        }
    }

    fn refuse(&self, stream: &UnixStream, why: &str) -> io::Result<()> {
        let refused = ControlAnswer::new(&self.batch_id, ControlResult::Refused, why);
        put(stream, &refused)
    }
}

fn number(peer: Peer) -> u32 {
    u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default()
}

fn put(mut stream: &UnixStream, answer: &ControlAnswer) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{}\n", canonical(answer)).as_bytes())
}

/// Reads a line of bounded length in a bounded time, however slowly it comes.
fn read_line(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut line = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = match stream.read(&mut part) {
            Ok(read) => &part[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = read.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
        if line.len() > LINE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if end.is_some() || read.is_empty() {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::unbounded;
    use premath_kernel::record::control::ControlOperation;
    use premath_memory::control::ControlConnection;
    use std::fs;

    struct Ground {
        _folder: tempfile::TempDir,
        roots: MemoryRoots,
        server: ControlServer,
        messages: Receiver<ControlMessage>,
    }

    fn ground() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let roots = MemoryRoots::at(&fs::canonicalize(folder.path()).unwrap());
        let (send, messages) = unbounded();
        let server = ControlServer::start(&roots, &BatchId::from("b"), move |message| {
            let _ = send.send(message);
        });
        Ground {
            _folder: folder,
            roots,
            server: server.unwrap(),
            messages,
        }
    }

    impl Ground {
        fn connect(&self) -> ControlConnection {
            ControlConnection::open(&self.roots, None).unwrap()
        }

        fn raw(&self) -> UnixStream {
            UnixStream::connect(self.server.path()).unwrap()
        }
    }

    fn said(mut stream: UnixStream) -> String {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn a_request_reaches_the_batch_with_its_process_and_is_answered() {
        let ground = ground();
        let connection = ground.connect();
        let request = ControlRequest::new(connection.token().to_owned(), ControlOperation::Pause);
        let client = std::thread::spawn(move || connection.ask(&request, Duration::ZERO));
        let Ok(ControlMessage::Call(call)) = ground.messages.recv() else {
            panic!("no call");
        };
        assert_eq!(call.pid, std::process::id());
        assert_eq!(call.request.operation, ControlOperation::Pause);
        let answer = ControlAnswer::new(&"b".into(), ControlResult::Done, "paused");
        call.reply.send(answer.clone()).unwrap();
        assert_eq!(client.join().unwrap().unwrap(), answer);
    }

    /// Asks a batch to drain, and returns the connection once it has the request.
    fn drained(ground: &Ground) -> (UnixStream, Box<ControlCall>) {
        let token = ground.server.socket.token().to_owned();
        let request = ControlRequest::new(token, ControlOperation::Drain);
        let mut stream = ground.raw();
        let line = format!("{}\n", canonical(&request));
        stream.write_all(line.as_bytes()).unwrap();
        let Ok(ControlMessage::Call(call)) = ground.messages.recv() else {
            panic!("no call");
        };
        (stream, call)
    }

    /// Returns what is there to be read already.
    fn said_already(mut stream: UnixStream) -> String {
        stream.set_nonblocking(true).unwrap();
        let mut part = [0; 4096];
        let length = stream.read(&mut part).unwrap();
        String::from_utf8_lossy(&part[..length]).into_owned()
    }

    #[test]
    fn the_end_of_a_batch_waits_for_the_answer_to_what_ended_it() {
        for _ in 0..50 {
            let ground = ground();
            let (stream, call) = drained(&ground);
            let answer = ControlAnswer::new(&"b".into(), ControlResult::Done, "drained");
            call.reply.send(answer).unwrap();
            drop(ground.server);
            assert!(said_already(stream).contains("drained"));
        }
    }

    #[test]
    fn the_end_of_a_batch_refuses_what_gets_no_answer_any_more() {
        let ground = ground();
        let (stream, _call) = drained(&ground);
        drop(ground.server);
        assert!(said_already(stream).contains("the batch ended first"));
    }

    #[test]
    fn a_wrong_token_and_what_is_no_request_reach_nothing() {
        let ground = ground();
        let connection = ground.connect();
        let request = ControlRequest::new("0".repeat(64), ControlOperation::Stop);
        let answer = connection.ask(&request, Duration::ZERO).unwrap();
        assert_eq!(answer.result, ControlResult::Refused);
        assert!(answer.detail.contains("token"), "{}", answer.detail);
        let mut stream = ground.raw();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(said(stream).contains("not a request"));
        assert!(ground.messages.is_empty());
    }

    #[test]
    fn a_line_without_an_end_is_not_read_on() {
        let ground = ground();
        let mut stream = ground.raw();
        let flood = vec![b'x'; 1 << 16];
        // The batch closes the connection in the middle.
        let mut written = 0;
        while written <= 4 * LINE_MAX && stream.write_all(&flood).is_ok() {
            written += flood.len();
        }
        // What the buffers of the socket hold was not read.
        assert!(written < 4 * LINE_MAX, "{written} bytes were taken");
        assert_eq!(said(stream), "");
        assert!(ground.messages.is_empty());
    }

    #[test]
    fn silent_clients_are_bounded_and_keep_no_other_from_the_batch_for_long() {
        let ground = ground();
        let silent: Vec<UnixStream> = (0..CONNECTIONS).map(|_| ground.raw()).collect();
        // Connections are accepted in their order.
        let refused = said(ground.raw());
        assert!(refused.contains("try again"), "{refused}");
        drop(silent);
        // Their places are free again.
        let is_answered = || {
            let mut stream = ground.raw();
            let _ = stream.write_all(b"{}\n");
            said(stream).contains("not a request")
        };
        assert!((0..1_000).any(|_| is_answered()), "no place became free");
    }

    #[test]
    fn what_the_batch_does_not_answer_any_more_is_refused() {
        let ground = ground();
        let connection = ground.connect();
        let request = ControlRequest::new(connection.token().to_owned(), ControlOperation::Drain);
        let client = std::thread::spawn(move || connection.ask(&request, Duration::ZERO));
        drop(ground.messages.recv());
        let answer = client.join().unwrap().unwrap();
        assert_eq!(answer.detail, "the batch ended first");
    }
}
