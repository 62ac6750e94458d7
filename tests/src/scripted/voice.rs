//! What the agent prints, line by line, until it is to die.

use super::beat::{Beat, Format};
use super::misbehaviour::Misbehaviour;
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Write};

/// Prints what happens.
pub(super) struct Voice {
    format: Box<dyn Format>,
    misbehaviour: Misbehaviour,
    printed: u64,
}

impl Voice {
    pub(super) fn new(format: Box<dyn Format>, misbehaviour: Misbehaviour) -> Self {
        Self {
            format,
            misbehaviour,
            printed: 0,
        }
    }

    /// Says what happens. A closed pipe is an error.
    pub(super) fn say(&mut self, beat: &Beat<'_>) -> io::Result<()> {
        for line in self.format.lines(beat) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Says what happens but for the second half of its last line.
    pub(super) fn say_half(&mut self, beat: &Beat<'_>) -> io::Result<()> {
        let lines = self.format.lines(beat);
        let Some((last, rest)) = lines.split_last() else {
            return Ok(());
        };
        for line in rest {
            self.line(line)?;
        }
        print(&last.as_bytes()[..last.len() / 2])
    }

    /// Prints a line as it is.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        match self.misbehaviour {
            Misbehaviour::Crash(after) if self.printed == after => std::process::exit(1),
            Misbehaviour::Kill(after) if self.printed == after => {
                kill_process(getpid(), Signal::KILL)?;
            }
            _ => {}
        }
        self.printed += 1;
        print(format!("{line}\n").as_bytes())
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
