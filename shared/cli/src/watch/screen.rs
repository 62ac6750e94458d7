//! The terminal while the live view is on it. It is restored at the end, when it is
//! suspended and when the program panics.

use crate::paths::variable;
use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use premath_view::figures::Viewer;
use premath_view::live::LiveView;
use premath_view::status::StatusView;
use ratatui_core::buffer::Cell;
use ratatui_core::style::Modifier;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::{Mutex, Once, PoisonError};

/// The bytes of a whole screen.
const BUFFER: usize = 64 << 10;

/// How the terminal was before; none while the view is not on it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Returns whether there is a terminal that can show the view.
pub(super) fn is_possible() -> bool {
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    has_terminal && variable("TERM").is_some_and(|term| term != "dumb")
}

/// Returns whether the terminal is this program's: one in the background is stopped
/// where it changes the terminal.
pub(super) fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Returns whether the view is on the terminal.
pub(super) fn is_on() -> bool {
    BEFORE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
}

/// Returns whether colours are wanted.
pub(super) fn has_colour() -> bool {
    variable("NO_COLOR").is_none()
}

/// The terminal.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn begin() -> io::Result<Self> {
        restore_on_panic();
        let output = File::from(rustix::io::dup(io::stdout())?);
        enter()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER, output));
        match Terminal::new(backend) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Restores the terminal, to be taken again.
    pub(super) fn suspend(&mut self) {
        leave();
    }

    /// Takes the terminal again, and paints all of it with the next picture.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        enter()?;
        self.repaint()
    }

    /// Has all of it painted with the next picture.
    pub(super) fn repaint(&mut self) -> io::Result<()> {
        // `clear` would ask the terminal for its cursor, and wait for the answer among
        // the keys.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Has every cell painted with the next picture, and clears nothing before: the
    /// terminal may have had another size since the last one, and lost parts of it.
    pub(super) fn distrust(&mut self) {
        let mut unlike_any = Cell::default();
        unlike_any.modifier = Modifier::HIDDEN | Modifier::RAPID_BLINK;
        self.terminal.current_buffer_mut().content.fill(unlike_any);
        // It counts as the last picture from here on.
        self.terminal.swap_buffers();
    }

    /// Paints what differs from the last picture.
    pub(super) fn draw(
        &mut self,
        view: &mut LiveView,
        status: &StatusView,
        viewer: &Viewer,
    ) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            let area = frame.area();
            if let Some(cursor) = view.render(status, viewer, area, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Keys come one by one and are not shown; Ctrl-C and Ctrl-Z stay signals.
fn enter() -> io::Result<()> {
    let input = io::stdin();
    let was = tcgetattr(&input)?;
    let mut raw = was.clone();
    raw.make_raw();
    raw.local_modes |= LocalModes::ISIG;
    // No key ends the program without the terminal being restored.
    raw.special_codes[SpecialCodeIndex::VQUIT] = 0;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(was);
    tcsetattr(&input, OptionalActions::Now, &raw)?;
    execute!(io::stdout(), EnterAlternateScreen)
}

/// Restores the terminal where the view is on it.
pub(super) fn leave() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(before) = before else { return };
    let mut output = io::stdout();
    // The terminal may be gone.
    let _ = execute!(output, EndSynchronizedUpdate, LeaveAlternateScreen, Show);
    let _ = output.flush();
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
}

/// Has a panic restore the terminal before it says what happened.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            say(panic);
        }));
    });
}
