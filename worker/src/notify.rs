//! Runs the operator's notification command and posts to the operator's webhook, one
//! notification at a time, beside the batch. What fails or takes too long is reported
//! and delays nothing.

mod webhook;

use crate::environment;
use crate::settings::{NotifySettings, Settings, trusted_path};
use crate::supervisor::{CommandSpec, Exit, ExitCause, Supervisor, SupervisorError};
use premath_kernel::json::canonical::canonical;
use premath_kernel::json::id::BatchId;
use premath_kernel::json::plain::plain;
use premath_kernel::record::notification::{Notification, NotifyEvent};
use premath_memory::untrusted::read_end;
use premath_memory::{StoreError, artifact};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use webhook::Webhook;

/// How many notifications wait at most; more are dropped.
const WAITING_MAX: usize = 64;

/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(1);

/// How much longer than the timeout the end of a batch waits.
const SLACK: Duration = Duration::from_secs(3);

/// How many characters of a command's error are reported.
const SAID: usize = 200;

/// How much of what a failing command printed last is looked at.
const PRINTED_MAX: u64 = 64 << 10;

/// Gives the event to the command on its stdin.
const FED: &str = r#"printf '%s\n' "$PREMATH_NOTIFY_EVENT" | /bin/sh -c "$0""#;

/// Sends notifications.
#[derive(Debug)]
pub struct Notifier {
    send: Option<SyncSender<Notification>>,
    failures: Receiver<String>,
    thread: Option<JoinHandle<()>>,
    settings: NotifySettings,
    /// What was not even tried.
    dropped: Vec<String>,
}

/// What runs the command.
struct Runner {
    settings: NotifySettings,
    program: PathBuf,
    repository: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The files of the command's output; the last run's stay.
    streams: [PathBuf; 2],
    engine: Option<(Runtime, Supervisor)>,
}

/// A notification command that did not run to its end.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Notifier {
    /// Starts the thread that sends; `None` where nothing is notified.
    pub fn start(settings: &Settings, program: &Path, batch: &BatchId) -> Option<Self> {
        let notify = settings.notify.clone()?;
        let (send, notifications) = sync_channel::<Notification>(WAITING_MAX);
        let (failed, failures) = channel();
        let webhook = notify.webhook.as_ref();
        let webhook = webhook.map(|webhook| Webhook::of(webhook, &settings.environment));
        let inherited = settings.inherited();
        let streams = &settings.roots.streams;
        let own = [("PATH", trusted_path(&settings.roots.repository))];
        let mut runner = Runner {
            program: program.to_path_buf(),
            repository: settings.roots.repository.clone(),
            environment: environment::of_command(inherited, &settings.environment, false, &own),
            streams: ["stdout", "stderr"]
                .map(|stream| streams.join(format!("{batch}.notify.{stream}"))),
            settings: notify.clone(),
            engine: None,
        };
        let thread = std::thread::Builder::new().name("notify".to_owned());
        let thread = thread.spawn(move || {
            let timeout = runner.settings.timeout;
            for notification in notifications {
                let sent = webhook.as_ref().map_or(Ok(()), |webhook| match webhook {
                    Ok(webhook) => webhook
                        .send(&notification, timeout)
                        .map_err(|error| error.to_string()),
                    Err(why) => Err(why.clone()),
                });
                let sent = sent.map_err(|why| format!("webhook: {why}"));
                for why in [sent, runner.notify(&notification)]
                    .into_iter()
                    .filter_map(Result::err)
                {
                    let _ = failed.send(failure(notification.event, &why));
                }
            }
        });
        match thread {
            Ok(thread) => Some(Self {
                send: Some(send),
                failures,
                thread: Some(thread),
                settings: notify,
                dropped: Vec::new(),
            }),
            Err(error) => {
                tracing::error!(%error, "no notification is sent");
                None
            }
        }
    }

    /// Returns whether an event is notified.
    pub fn includes(&self, event: NotifyEvent) -> bool {
        self.settings.events.contains(&event)
    }

    /// Sends a notification; never waits.
    pub fn send(&mut self, notification: Notification) {
        let event = notification.event;
        let Some(send) = &self.send else {
            return;
        };
        match send.try_send(notification) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                let why = format!("more than {WAITING_MAX} are waiting");
                self.dropped.push(failure(event, &why));
            }
            Err(TrySendError::Disconnected(_)) => {
                self.dropped.push(failure(event, "its thread ended"));
            }
        }
    }

    /// Returns what failed since the last call.
    pub fn failures(&mut self) -> Vec<String> {
        let dropped = std::mem::take(&mut self.dropped).into_iter();
        dropped.chain(self.failures.try_iter()).collect()
    }

    /// Waits for the notifications that are on their way, as long as one may take;
    /// returns what failed.
    pub fn finish(mut self) -> Vec<String> {
        self.send = None;
        let mut failed = self.failures();
        let until = Instant::now() + self.settings.longest() + GRACE + SLACK;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.failures.recv_timeout(left) {
                Ok(why) => failed.push(why),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    failed.push("notifications were left: they took too long".to_owned());
                    return failed;
                }
            }
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        failed
    }
}

fn failure(event: NotifyEvent, why: &str) -> String {
    let why: String = plain(why).chars().take(SAID).collect();
    format!("the notification `{event}` failed: {why}")
}

impl Runner {
    /// Runs the command for a notification; the error says why it failed.
    fn notify(&mut self, notification: &Notification) -> Result<(), String> {
        let Some(command) = self.settings.command.clone() else {
            return Ok(());
        };
        let exit = self.run(notification, &command).map_err(|error| {
            self.engine = None;
            error.to_string()
        })?;
        if exit.code == Some(0) {
            return Ok(());
        }
        let printed = read_end(&self.repository, &self.streams[1], PRINTED_MAX);
        let printed = printed.unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let last = printed
            .lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty());
        let how = match (exit.code, &exit.cause) {
            (_, ExitCause::Limit) => "it took too long".to_owned(),
            (Some(code), _) => format!("exit code {code}"),
            (None, cause) => format!("it ended with {cause:?}"),
        };
        Err(match last {
            Some(last) => format!("{how}: {last}"),
            None => how,
        })
    }

    fn run(&mut self, notification: &Notification, command: &str) -> Result<Exit, RunError> {
        let files = (
            artifact::open_stream(&self.streams[0])?,
            artifact::open_stream(&self.streams[1])?,
        );
        let spec = self.spec(notification, command);
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => self.start()?,
        };
        let (runtime, supervisor) = self.engine.insert(engine);
        Ok(runtime.block_on(async {
            let mut running = supervisor.begin(spec, files.0, files.1).await?;
            running.wait().await
        })?)
    }

    /// Starts a supervisor, which holds no lock of a lane.
    fn start(&self) -> Result<(Runtime, Supervisor), RunError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let no_lock = File::open("/dev/null")?;
        Ok((runtime, Supervisor::start(&self.program, no_lock.into())?))
    }

    fn spec(&self, notification: &Notification, command: &str) -> CommandSpec {
        let mut spec = CommandSpec::new("/bin/sh");
        spec.args = ["-c", FED, command].map(OsString::from).to_vec();
        spec.cwd.clone_from(&self.repository);
        spec.env.clone_from(&self.environment);
        for (name, value) in [
            ("PREMATH_NOTIFY_EVENT", canonical(notification)),
            ("PREMATH_NOTIFY_KIND", notification.event.to_string()),
            ("PREMATH_NOTIFY_TEXT", notification.text.clone()),
        ] {
            spec.env.push((name.into(), value.into()));
        }
        spec.env.sort();
        spec.limit = self.settings.timeout;
        spec.grace = GRACE;
        spec.output_cap = 64 << 10;
        spec
    }
}
