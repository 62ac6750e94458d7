//! The proxy that connects commands to the network, by the network policy.
//!
//! Commands run in a network namespace without an interface but loopback. A
//! relay in that namespace forwards each connection to a unix socket, and the
//! proxy answers there: CONNECT, and plain `http://` requests. It has a thread
//! and a runtime of its own, so that a lane that waits for something else
//! stops no connection.

mod connection;
mod dial;
mod error;
mod head;
mod own;
mod relay;
mod resolver;
mod socket;

pub use error::ProxyError;
pub use resolver::{Resolve, Resolving, SystemResolver};

use premath_kernel::policy::network::{
    NetworkFacts, NetworkLedger, NetworkPhase, NetworkPolicy, Target,
};
pub(crate) use socket::Socket;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

/// Threads that ask the system's resolver; one that hangs does not stop the
/// others.
const LOOKUPS_MAX: usize = 16;

/// How long a proxy has to end, which takes no time as a rule: what a peer sent
/// must not hold a lane.
const END: Duration = Duration::from_secs(5);

/// What a proxy answers, and where.
#[derive(Clone, Debug)]
pub struct ProxySpec {
    /// The unix socket for proxy requests. Its folder is made with mode 0700
    /// where there is none.
    pub socket: PathBuf,
    /// Further sockets, each for one host.
    pub services: Vec<Service>,
    /// The policy that admits hosts.
    pub policy: NetworkPolicy,
    /// What the commands are run for; refusals name its keys.
    pub phase: NetworkPhase,
}

/// A socket whose connections all go to one target, without a proxy request.
/// The policy decides about it as about any other.
#[derive(Clone, Debug)]
pub struct Service {
    /// The unix socket.
    pub socket: PathBuf,
    /// The target of the connections.
    pub target: Target,
}

/// The bounds of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Connections at once.
    pub connections: usize,
    /// How long a connection waits while there are so many.
    pub queue: Duration,
    /// How long a client may take to send a request's head.
    pub head: Duration,
    /// How long a name may take to resolve.
    pub resolve: Duration,
    /// How long a host may take to accept a connection.
    pub connect: Duration,
    /// How long a connection may move no byte.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            queue: Duration::from_secs(10),
            head: Duration::from_secs(30),
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            // A model that thinks is silent for minutes.
            idle: Duration::from_secs(30 * 60),
        }
    }
}

/// A running proxy; dropping it ends its connections and removes its sockets.
#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    sockets: Vec<Socket>,
    /// The thread ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Proxy {
    /// Starts a proxy with the system's resolver and the usual bounds.
    ///
    /// # Errors
    ///
    /// [`ProxyError`] where a socket cannot be made, also where its path is
    /// taken or its folder is open to other users.
    pub fn start(spec: ProxySpec) -> Result<Self, ProxyError> {
        let resolver = Box::new(SystemResolver);
        Self::start_with(spec, resolver, ProxyLimits::default())
    }

    /// Starts a proxy.
    ///
    /// # Errors
    ///
    /// [`ProxyError`].
    pub fn start_with(
        spec: ProxySpec,
        resolver: Box<dyn Resolve>,
        limits: ProxyLimits,
    ) -> Result<Self, ProxyError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .build()
            .map_err(ProxyError::Thread)?;
        let services = spec.services.into_iter();
        let places = std::iter::once((spec.socket, None))
            .chain(services.map(|service| (service.socket, Some(service.target))));
        let mut sockets = Vec::new();
        let mut doors = Vec::new();
        for (path, target) in places {
            let (socket, listener) = Socket::bind(path)?;
            let _guard = runtime.enter();
            let listener = UnixListener::from_std(listener).map_err(|source| {
                let path = socket.path().to_owned();
                ProxyError::Bind { path, source }
            })?;
            sockets.push(socket);
            doors.push(ListeningSocket { listener, target });
        }
        let state = Arc::new(State {
            policy: spec.policy,
            phase: spec.phase,
            room: Arc::new(Semaphore::new(limits.connections)),
            limits,
            resolver,
            ledger: Mutex::new(NetworkLedger::default()),
        });
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let (end, ended) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("premath-proxy".to_owned())
            .spawn(move || {
                run(runtime, doors, &shared, stopped);
                drop(end);
            })
            .map_err(ProxyError::Thread)?;
        Ok(Self {
            state,
            sockets,
            stop: Some(stop),
            thread: Some(thread),
            ended: Mutex::new(ended),
        })
    }

    /// Ends the proxy and returns what was reached and refused.
    pub fn finish(mut self) -> NetworkFacts {
        self.end();
        self.state.ledger().facts()
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
            if ended.recv_timeout(END) == Err(mpsc::RecvTimeoutError::Timeout) {
                tracing::warn!("timed out waiting for a proxy to end; abandoning it");
            } else {
                // A thread that panicked left its counts all the same.
                let _ = thread.join();
            }
        }
        self.sockets.clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// What all connections of a proxy share.
#[derive(Debug)]
struct State {
    policy: NetworkPolicy,
    phase: NetworkPhase,
    limits: ProxyLimits,
    room: Arc<Semaphore>,
    resolver: Box<dyn Resolve>,
    ledger: Mutex<NetworkLedger>,
}

impl State {
    fn ledger(&self) -> MutexGuard<'_, NetworkLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that is listened to.
struct ListeningSocket {
    listener: UnixListener,
    /// Where all its connections go; `None` where they say it.
    target: Option<Target>,
}

fn run(
    runtime: Runtime,
    doors: Vec<ListeningSocket>,
    state: &Arc<State>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        let mut listening = JoinSet::new();
        for door in doors {
            listening.spawn(listen(door, Arc::clone(state)));
        }
        // The sender is dropped, nothing is ever sent.
        let _ = stopped.await;
    });
    // A lookup that hangs in the system's resolver is left to itself.
    runtime.shutdown_background();
}

/// Accepts connections until the task is aborted, and theirs with it.
async fn listen(door: ListeningSocket, state: Arc<State>) {
    let mut connections = JoinSet::new();
    let mut patience = state.limits.queue;
    loop {
        while connections.try_join_next().is_some() {}
        let room = Arc::clone(&state.room).acquire_owned();
        let room = tokio::time::timeout(patience, room).await;
        let Ok((client, _)) = door.listener.accept().await else {
            // Out of descriptors: the listener itself does not fail.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let room = match room {
            Ok(permit) => permit.ok(),
            // A connection may have ended since.
            Err(_) => Arc::clone(&state.room).try_acquire_owned().ok(),
        };
        let Some(room) = room else {
            patience = Duration::ZERO;
            connection::refuse_busy(&client);
            continue;
        };
        patience = state.limits.queue;
        let (state, target) = (Arc::clone(&state), door.target.clone());
        connections.spawn(async move {
            match target {
                Some(target) => connection::serve_target(client, &target, &state).await,
                None => connection::serve(client, &state).await,
            }
            drop(room);
        });
    }
}

/// How long nothing is accepted after a failure to.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
