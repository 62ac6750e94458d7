//! The live view of a program that runs a batch: the view has the terminal, and the
//! lines of the program are held back until the view is left.

use super::screen::{self, Screen};
use super::session::{Host, Session};
use crate::paths::variable;
use crossbeam_channel::{Receiver, Sender, unbounded};
use premath_kernel::json::id::BatchId;
use premath_memory::roots::MemoryRoots;
use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The most lines that are held back.
const HELD_MAX: usize = 5_000;

/// How long the end of the view is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Environment variables that ask for lines.
const LINES_WANTED: [&str; 3] = ["NO_COLOR", "CI", "PREMATH_LOG"];

/// The terminal of a program that runs a batch.
#[derive(Clone, Debug)]
pub struct Beside {
    roots: MemoryRoots,
    outputs: Arc<Outputs>,
    is_over: Arc<AtomicBool>,
    ended: Arc<Mutex<Option<Receiver<()>>>>,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

/// The two streams of the program.
#[derive(Debug)]
struct Outputs {
    /// The lines that are held back; none while the view is not on the terminal.
    held: Mutex<Option<Held>>,
    warn: Sender<String>,
    warnings: Receiver<String>,
}

/// The lines that are held back.
#[derive(Debug, Default)]
struct Held {
    lines: VecDeque<(Stream, Vec<u8>)>,
    left_out: usize,
}

/// A stream that is held back while the view is on the terminal.
#[derive(Debug)]
pub struct HeldStream {
    stream: Stream,
    outputs: Arc<Outputs>,
}

impl Beside {
    /// Takes the terminal of this program, where it has one that can show the view
    /// and lines are not asked for.
    pub fn of(roots: &MemoryRoots) -> Option<Self> {
        let is_asked = LINES_WANTED.iter().any(|name| variable(name).is_some());
        let has_terminal = screen::is_possible() && io::stderr().is_terminal();
        if is_asked || !has_terminal || !screen::is_foreground() {
            return None;
        }
        let (warn, warnings) = unbounded();
        Some(Self {
            roots: roots.clone(),
            outputs: Arc::new(Outputs {
                held: Mutex::new(None),
                warn,
                warnings,
            }),
            is_over: Arc::default(),
            ended: Arc::default(),
        })
    }

    /// Returns stdout, held back while the view is shown.
    pub fn output(&self) -> HeldStream {
        self.stream(Stream::Output)
    }

    /// Returns stderr likewise. What is wrong is in the view's status line too.
    pub fn error(&self) -> HeldStream {
        self.stream(Stream::Error)
    }

    fn stream(&self, stream: Stream) -> HeldStream {
        HeldStream {
            stream,
            outputs: self.outputs.clone(),
        }
    }

    /// Shows the view of a batch that this program runs, once.
    pub fn show(&self, batch: &BatchId) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_some() || self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let (done, wait) = unbounded();
        let host = Host {
            batch: batch.clone(),
            is_over: self.is_over.clone(),
            warnings: self.outputs.warnings.clone(),
        };
        let (outputs, roots) = (self.outputs.clone(), self.roots.clone());
        let began = thread::Builder::new()
            .name("live view".to_owned())
            .spawn(move || {
                let session = shown(&roots, host, Release(outputs));
                let _ = done.send(());
                if let Some(session) = session {
                    session.keep_suspending();
                }
            });
        // Without a thread the lines are printed.
        if began.is_ok() {
            *ended = Some(wait);
        }
    }

    /// Ends the view, and prints what was held back.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = ended.take() {
            // It may have ended before, or never answer.
            let _ = ended.recv_timeout(PATIENCE);
            screen::leave();
            self.outputs.release();
        }
    }
}

/// Prints what is held back, however the view ends.
struct Release(Arc<Outputs>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Shows the view until it is left; returns what handles Ctrl-Z from then on.
fn shown(roots: &MemoryRoots, host: Host, outputs: Release) -> Option<Session> {
    let is_over = host.is_over.clone();
    let mut session = Session::begin(roots, Some(host)).ok()?;
    outputs.0.hold();
    let ended = match Screen::begin() {
        Ok(mut screen) => session.run(&mut screen),
        Err(error) => Err(error),
    };
    drop(outputs);
    let why = match ended {
        Ok(()) if is_over.load(Ordering::Relaxed) => return Some(session),
        Ok(()) => String::new(),
        Err(error) => format!("cannot show the live view: {error}; "),
    };
    let note = "the batch continues; `premath watch` shows it again";
    let _ = writeln!(io::stderr(), "{why}{note}");
    Some(session)
}

impl Outputs {
    fn hold(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default();
    }

    /// Prints what was held back, and what comes from then on.
    fn release(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(was) = held.take() else { return };
        if was.left_out > 0 {
            let left_out = format!("... {} lines before are left out\n", was.left_out);
            print(Stream::Error, left_out.as_bytes());
        }
        for (stream, line) in was.lines {
            print(stream, &line);
        }
    }

    fn write(&self, stream: Stream, text: &[u8]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = held.as_mut() else {
            return print(stream, text);
        };
        if stream == Stream::Error {
            let line = String::from_utf8_lossy(text).trim_end().to_owned();
            // The view has its own end of the channel.
            let _ = self.warn.send(line);
        }
        held.lines.push_back((stream, text.to_owned()));
        if held.lines.len() > HELD_MAX {
            held.lines.pop_front();
            held.left_out += 1;
        }
    }
}

/// Prints whole lines; what cannot be printed is not missed.
fn print(stream: Stream, text: &[u8]) {
    let _ = match stream {
        Stream::Output => io::stdout().write_all(text),
        Stream::Error => io::stderr().write_all(text),
    };
    let _ = io::stdout().flush();
}

impl Write for HeldStream {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.outputs.write(self.stream, text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs() -> Outputs {
        let (warn, warnings) = unbounded();
        Outputs {
            held: Mutex::new(None),
            warn,
            warnings,
        }
    }

    #[test]
    fn lines_are_held_in_their_order_and_the_oldest_are_left_out() {
        let outputs = outputs();
        outputs.hold();
        outputs.write(Stream::Error, b"wrong\n");
        for number in 0..HELD_MAX {
            outputs.write(Stream::Output, format!("{number}\n").as_bytes());
        }
        assert_eq!(outputs.warnings.try_iter().collect::<Vec<_>>(), ["wrong"]);
        let held = outputs.held.lock().unwrap().take().unwrap();
        assert_eq!((held.lines.len(), held.left_out), (HELD_MAX, 1));
        assert_eq!(held.lines[0], (Stream::Output, b"0\n".to_vec()));
    }
}
