//! The live view: what a person sees of a batch on a terminal, and what the keys
//! do. It takes a [`StatusView`] and the lines of a log, and paints cells; it reads
//! no terminal and asks no batch.

mod help;
mod key;
mod operation;
mod paint;
mod prompt;
mod screen;
mod selection;
mod stream;

pub use key::Key;
pub use operation::{Effect, Operation, PriorityChange, Request};

use crate::figures::Viewer;
use crate::status::{BatchView, StatusView};
use paint::{Painter, Styles};
use premath_kernel::json::id::BatchId;
use prompt::{Answered, Asked, Prompt};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use selection::{Selection, Shown};
use stream::Stream;

/// What a person looks at, and what was typed.
#[derive(Clone, Debug)]
pub struct LiveView {
    styles: Styles,
    batch: Option<BatchId>,
    /// Whether the program that shows the view runs the batch.
    is_own: bool,
    selection: Selection,
    stream: Option<Stream>,
    prompt: Option<Prompt>,
    help: bool,
    message: Message,
}

/// The status line: the last answer, refusal or hint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Message {
    text: String,
    is_refusal: bool,
}

impl LiveView {
    /// Begins with the first screen; without colour where that is not wanted.
    pub fn new(colour: bool) -> Self {
        Self {
            styles: Styles::new(colour),
            batch: None,
            is_own: false,
            selection: Selection::default(),
            stream: None,
            prompt: None,
            help: false,
            message: Message::default(),
        }
    }

    /// Begins with a batch that runs in the program itself.
    pub fn of_own_batch(colour: bool, batch: &BatchId) -> Self {
        Self {
            batch: Some(batch.clone()),
            is_own: true,
            ..Self::new(colour)
        }
    }

    /// Shows an answer in the status line.
    pub fn note(&mut self, text: &str) {
        self.say(text, false);
    }

    /// Shows a refusal or an error in the status line.
    pub fn refused(&mut self, text: &str) {
        self.say(text, true);
    }

    fn say(&mut self, text: &str, is_refusal: bool) {
        self.message = Message {
            text: text.to_owned(),
            is_refusal,
        };
    }

    /// Takes lines that the attempt printed which is shown, escaped; and whether it
    /// still runs.
    pub fn printed(&mut self, text: &str, running: bool) {
        if let Some(stream) = &mut self.stream {
            stream.push(text, running);
        }
    }

    /// Returns the batch that is shown.
    fn shown<'a>(&self, status: &'a StatusView) -> Option<&'a BatchView> {
        let chosen = status
            .batches
            .iter()
            .find(|batch| Some(&batch.batch_id) == self.batch.as_ref());
        chosen.or_else(|| status.batches.first())
    }

    /// Takes a key; returns what the program is to do.
    pub fn key(&mut self, key: Key, status: &StatusView) -> Option<Effect> {
        self.message = Message::default();
        if self.prompt.is_some() {
            return self.answered(key, status);
        }
        if self.help {
            self.help = false;
            if matches!(key, Key::Char('?' | 'q') | Key::Escape) {
                return None;
            }
        }
        if key == Key::Char('?') {
            self.help = true;
            return None;
        }
        match self.stream.is_some() {
            true => self.stream_key(key),
            false => self.main_key(key, status),
        }
    }

    fn answered(&mut self, key: Key, status: &StatusView) -> Option<Effect> {
        let prompt = self.prompt.as_mut()?;
        let answered = prompt.key(key);
        if answered == Answered::Open {
            return None;
        }
        self.prompt = None;
        match answered {
            Answered::Operation(operation) => return Some(self.perform(operation, status)),
            Answered::Search(text) => {
                let found = self.stream.as_mut().map(|stream| stream.search(&text));
                if let Some(Err(why)) = found {
                    self.refused(&why);
                }
            }
            Answered::Unfit(why) => self.refused(why),
            Answered::Open | Answered::No => {}
        }
        None
    }

    fn perform(&mut self, operation: Operation, status: &StatusView) -> Effect {
        self.note(&format!("{} …", operation.words()));
        let running = self.shown(status).filter(|batch| batch.state.is_running());
        Effect::Perform(Request {
            batch: running.map(|batch| batch.batch_id.clone()),
            operation,
        })
    }

    fn stream_key(&mut self, key: Key) -> Option<Effect> {
        let stream = self.stream.as_mut()?;
        match key {
            Key::Char('q' | 'h') | Key::Escape | Key::Left => {
                self.stream = None;
                return Some(Effect::Close);
            }
            Key::Char('/') => self.prompt = Some(Prompt::new(Asked::Search, "")),
            Key::Char('n' | 'N') => {
                if let Err(why) = stream.next(key == Key::Char('n')) {
                    self.refused(&why);
                }
            }
            _ => stream.key(key),
        }
        None
    }

    fn main_key(&mut self, key: Key, status: &StatusView) -> Option<Effect> {
        let batch = self.shown(status);
        match key {
            Key::Char('q') => return Some(Effect::Quit),
            Key::Char('p') => return Some(self.perform(Operation::Pause, status)),
            Key::Char('r') => return Some(self.perform(Operation::Resume, status)),
            Key::Char('d') => self.prompt = Some(Prompt::new(Asked::Drain, "")),
            Key::Char('b') => self.next_batch(status),
            Key::Enter | Key::Char('l') | Key::Right => return self.open(batch),
            Key::Char('c') => self.cancel(batch),
            Key::Char('o') => self.reopen(batch),
            Key::Char('+' | '=' | '-') => {
                let change = match key {
                    Key::Char('-') => PriorityChange::Lower,
                    _ => PriorityChange::Raise,
                };
                match self.selection.issue(batch) {
                    Some(issue) => {
                        let operation = Operation::Priority { issue, change };
                        return Some(self.perform(operation, status));
                    }
                    None => self.refused("no issue is selected; P sets the priority of any issue"),
                }
            }
            Key::Char('P') => {
                let issue = self.selection.issue(batch);
                let text = issue.map_or_else(String::new, |issue| format!("{issue} "));
                self.prompt = Some(Prompt::new(Asked::Priority, &text));
            }
            _ => self.selection.key(key, batch),
        }
        None
    }

    fn next_batch(&mut self, status: &StatusView) {
        let all = &status.batches;
        let shown = self.shown(status).map(|batch| &batch.batch_id);
        let at = all
            .iter()
            .position(|batch| Some(&batch.batch_id) == shown)
            .unwrap_or(0);
        if all.len() < 2 {
            return self.refused("no other batch runs in this repository");
        }
        self.batch = Some(all[(at + 1) % all.len()].batch_id.clone());
    }

    fn open(&mut self, batch: Option<&BatchView>) -> Option<Effect> {
        let Some(Shown { log, name, title }) = self.selection.stream(batch) else {
            self.refused("nothing is selected that prints");
            return None;
        };
        self.stream = Some(Stream::new(&name, &title));
        Some(Effect::Open(log))
    }

    fn cancel(&mut self, batch: Option<&BatchView>) {
        match self.selection.running(batch) {
            Some((lane, issue)) => {
                self.prompt = Some(Prompt::new(Asked::Cancel { lane, issue }, ""));
            }
            None => self.refused("the selected lane has no running attempt to cancel"),
        }
    }

    fn reopen(&mut self, batch: Option<&BatchView>) {
        match self.selection.outcome(batch) {
            Some(outcome) => {
                let asked = Asked::Note(outcome.issue_id.clone());
                self.prompt = Some(Prompt::new(asked, ""));
            }
            None if self.selection.select_outcomes(batch) => {
                self.note("select an outcome with the arrows, then press o to reopen its issue");
            }
            None => self.refused("no attempt has ended yet whose issue could be reopened"),
        }
    }

    /// Paints the view; returns where the cursor is, if a text is typed.
    pub fn render(
        &mut self,
        status: &StatusView,
        viewer: &Viewer,
        area: Rect,
        buffer: &mut Buffer,
    ) -> Option<Position> {
        let mut painter = Painter::new(buffer, area, self.styles);
        let foot = screen::foot_height(area.height);
        let body = painter.above(foot);
        match (&mut self.stream, self.help) {
            (stream, true) => help::paint(&mut painter, body, stream.is_some(), self.is_own),
            (Some(stream), false) => stream.paint(&mut painter, body),
            (None, false) => {
                let viewer = Viewer {
                    width: usize::from(area.width),
                    ..viewer.clone()
                };
                let chosen = self.batch.as_ref();
                let shown = chosen.and_then(|id| {
                    let all = &status.batches;
                    all.iter().find(|batch| batch.batch_id == *id)
                });
                let shown = shown.or_else(|| status.batches.first());
                let look = screen::Look {
                    status,
                    batch: shown,
                    viewer: &viewer,
                };
                screen::paint(&mut painter, body, &look, &mut self.selection);
            }
        }
        let keys = screen::keys(self.stream.is_some(), self.help, area.width);
        painter.foot(foot, &self.message, self.prompt.as_ref(), keys)
    }
}

#[cfg(test)]
mod tests;
