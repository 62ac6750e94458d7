//! The loop of the live view: keys, figures, a log and answers in; pictures out.

use super::input::{Input, Typed};
use super::operate::perform;
use super::screen::{self, Screen, has_colour};
use super::source::Source;
use crate::error::CliError;
use crate::logs::FollowedLog;
use crossbeam_channel::{Receiver, Sender, unbounded};
use harness_worker::stderr::local_zone;
use premath_kernel::json::id::BatchId;
use premath_memory::clock;
use premath_memory::roots::MemoryRoots;
use premath_view::figures::Viewer;
use premath_view::live::{Effect, LiveView, Request};
use premath_view::status::StatusView;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often the figures are read: a batch publishes them once a second at most.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the loop waits for a key before it looks at signals and answers.
const WAIT: Duration = Duration::from_millis(200);

/// How long whole pictures are apart while the terminal is resized.
const RESIZES: Duration = Duration::from_millis(100);

/// How many of the last lines of a log are shown first.
const LINES: usize = 1_000;

/// An answer or a refusal, in a line.
type Said = Result<String, String>;

/// What a program has to say in the view that it shows beside its work.
#[derive(Debug)]
pub(super) struct Host {
    /// The batch that the program runs.
    pub(super) batch: BatchId,
    /// Whether the view is to end.
    pub(super) is_over: Arc<AtomicBool>,
    /// Lines for the status line.
    pub(super) warnings: Receiver<String>,
}

/// A person at the live view.
#[derive(Debug)]
pub(super) struct Session {
    roots: MemoryRoots,
    source: Source,
    status: StatusView,
    view: LiveView,
    log: Option<FollowedLog>,
    answers: (Sender<Said>, Receiver<Said>),
    signals: Signals,
    input: Input,
    /// The batches that ran when it was looked at last.
    running: Vec<BatchId>,
    is_changed: bool,
    /// Whether a resize has had no whole picture yet.
    is_resized: bool,
    /// When the last whole picture for a resize was painted.
    resized: Option<Instant>,
    host: Option<Host>,
}

/// Whether the view stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    Stays,
    Ends,
}

impl Session {
    /// Reads the figures for the first time.
    ///
    /// # Errors
    ///
    /// [`CliError`] where they cannot be read.
    pub(super) fn begin(roots: &MemoryRoots, host: Option<Host>) -> Result<Self, CliError> {
        let mut source = Source::of(roots);
        let status = source.look(clock::now())?;
        let colour = has_colour();
        let (signals, view) = match &host {
            // The others are the program's.
            Some(host) => (
                Signals::new([SIGTSTP, SIGCONT, SIGWINCH]),
                LiveView::of_own_batch(colour, &host.batch),
            ),
            None => (
                Signals::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH]),
                LiveView::new(colour),
            ),
        };
        Ok(Self {
            roots: roots.clone(),
            running: running(&status),
            source,
            status,
            view,
            log: None,
            answers: unbounded(),
            input: Input::default(),
            signals: signals.map_err(CliError::Terminal)?,
            is_changed: true,
            is_resized: false,
            resized: None,
            host,
        })
    }

    /// Shows the view until a person leaves it, or a signal ends it.
    pub(super) fn run(&mut self, screen: &mut Screen) -> io::Result<()> {
        let mut looked = Instant::now();
        loop {
            if self.signalled(screen)? == Stay::Ends {
                return Ok(());
            }
            if self.heard() == Stay::Ends {
                return Ok(());
            }
            if looked.elapsed() >= AGAIN {
                looked = Instant::now();
                self.look();
            }
            self.settle(screen);
            if self.is_changed {
                self.is_changed = false;
                self.draw(screen)?;
            }
            let longest = if self.is_resized { RESIZES } else { WAIT };
            let wait = AGAIN.saturating_sub(looked.elapsed()).min(longest);
            let Some(typed) = self.input.typed(wait) else {
                // The terminal is gone.
                return Ok(());
            };
            if self.act_on(typed, screen)? == Stay::Ends {
                return Ok(());
            }
            self.read_log();
        }
    }

    /// Takes answers, and what the program says that shows the view.
    fn heard(&mut self) -> Stay {
        while let Ok(answer) = self.answers.1.try_recv() {
            self.answered(answer);
        }
        let Some(host) = &self.host else {
            return Stay::Stays;
        };
        if let Some(warning) = host.warnings.try_iter().last() {
            self.view.note(&warning);
            self.is_changed = true;
        }
        match host.is_over.load(Ordering::Relaxed) {
            true => Stay::Ends,
            false => Stay::Stays,
        }
    }

    /// Stops the process where Ctrl-Z asks for that, for as long as it runs: once
    /// handled, the signal does nothing by itself.
    pub(super) fn keep_suspending(mut self) {
        for signal in self.signals.forever() {
            if signal == SIGTSTP {
                // It is a valid signal.
                let _ = emulate_default_handler(SIGTSTP);
            }
        }
    }

    /// Has the whole picture painted after a resize, and after many of them at once as
    /// often as can be looked at.
    fn settle(&mut self, screen: &mut Screen) {
        let is_due = self.resized.is_none_or(|at| at.elapsed() >= RESIZES);
        if self.is_resized && is_due {
            screen.distrust();
            (self.is_resized, self.is_changed) = (false, true);
            self.resized = Some(Instant::now());
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let viewer = Viewer {
            now: clock::now().wall,
            zone: local_zone(),
            width: 0,
        };
        screen.draw(&mut self.view, &self.status, &viewer)
    }

    /// Acts on the signals that came.
    fn signalled(&mut self, screen: &mut Screen) -> io::Result<Stay> {
        if !screen::is_on() {
            // A panic restored the terminal.
            return Ok(Stay::Ends);
        }
        let came: Vec<i32> = self.signals.pending().collect();
        for signal in came {
            match signal {
                SIGTSTP => {
                    screen.suspend();
                    // It returns when the process continues.
                    emulate_default_handler(SIGTSTP)?;
                    if self.host.is_some() && !screen::is_foreground() {
                        return Ok(Stay::Ends);
                    }
                    screen.resume()?;
                    self.is_changed = true;
                }
                // The picture has the size that the terminal has when it is painted.
                SIGWINCH => self.is_resized = true,
                SIGCONT => {
                    screen.repaint()?;
                    self.is_changed = true;
                }
                _ => return Ok(Stay::Ends),
            }
        }
        Ok(Stay::Stays)
    }

    fn act_on(&mut self, typed: Vec<Typed>, screen: &mut Screen) -> io::Result<Stay> {
        for typed in typed {
            self.is_changed = true;
            match typed {
                Typed::Repaint => screen.repaint()?,
                Typed::Key(key) => {
                    let effect = self.view.key(key, &self.status);
                    if effect.is_some_and(|effect| self.act(effect) == Stay::Ends) {
                        return Ok(Stay::Ends);
                    }
                }
            }
        }
        Ok(Stay::Stays)
    }

    fn act(&mut self, effect: Effect) -> Stay {
        match effect {
            Effect::Quit => return Stay::Ends,
            Effect::Close => self.log = None,
            Effect::Open(name) => match FollowedLog::open(&name, &self.roots, LINES) {
                Ok(log) => self.log = Some(log),
                Err(error) => {
                    self.view.printed("", false);
                    self.view.refused(&error.chain());
                }
            },
            Effect::Perform(request) => self.ask(request),
        }
        Stay::Stays
    }

    /// Has a request carried out beside the view: a batch may take its time.
    fn ask(&mut self, request: Request) {
        let (roots, answers) = (self.roots.clone(), self.answers.0.clone());
        let asked = thread::Builder::new()
            .name("request".to_owned())
            .spawn(move || {
                // The view may be gone.
                let _ = answers.send(perform(&roots, &request));
            });
        if let Err(error) = asked {
            self.view.refused(&format!("cannot ask: {error}"));
        }
    }

    fn answered(&mut self, answer: Said) {
        self.is_changed = true;
        match answer {
            Ok(line) => self.view.note(&line),
            Err(line) => self.view.refused(&line),
        }
        self.look();
    }

    /// Reads the figures again, and says which batches began and ended.
    fn look(&mut self) {
        self.is_changed = true;
        match self.source.look(clock::now()) {
            Ok(status) => self.status = status,
            Err(error) => return self.view.refused(&error.chain()),
        }
        let now = running(&self.status);
        if let Some(ended) = self.running.iter().find(|id| !now.contains(id)) {
            let batches = self.status.batches.iter();
            let code = batches
                .filter(|batch| batch.batch_id == *ended)
                .find_map(|batch| batch.exit_code);
            let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
            self.view
                .note(&format!("batch {ended} ended{code}; q leaves the view"));
        } else if let Some(begun) = now.iter().find(|id| !self.running.contains(id)) {
            self.view.note(&format!("batch {begun} began"));
        }
        self.running = now;
    }

    /// Reads on in the log that is shown.
    fn read_log(&mut self) {
        let Some(log) = &mut self.log else { return };
        match log.read() {
            Ok((text, runs)) => {
                self.is_changed |= !text.is_empty();
                self.view.printed(&text, runs);
                if !runs {
                    self.log = None;
                    self.is_changed = true;
                }
            }
            Err(error) => {
                self.log = None;
                self.is_changed = true;
                self.view.refused(&error.chain());
            }
        }
    }
}

fn running(status: &StatusView) -> Vec<BatchId> {
    let batches = status.batches.iter();
    let running = batches.filter(|batch| batch.state.is_running());
    running.map(|batch| batch.batch_id.clone()).collect()
}
