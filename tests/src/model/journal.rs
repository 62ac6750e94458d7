//! What the server answered.

use super::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// One answer of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlayedTurn {
    /// The conversation.
    pub conversation: String,
    /// The script.
    pub script: String,
    /// Which of the script's turns it is, counted from 0.
    pub turn: usize,
    /// The provider that was spoken for.
    pub dialect: Dialect,
    /// What was played.
    pub played: Played,
    /// The tool calls that were sent whole.
    pub calls: Vec<MadeCall>,
    /// What the answer said that it cost; none where it did not end.
    pub spent: Option<Spent>,
}

/// How an answer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Played {
    /// It went well.
    Answer,
    /// The provider refused.
    Fail,
    /// It was cut.
    Cut,
    /// It was a question beside the conversation: a title, say.
    Aside,
    /// The script was over already.
    Over,
}

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it was called with.
    pub arguments: Value,
}

/// Tokens, as an answer tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// What went in, with what came out of a cache.
    pub input: u64,
    /// The part of it that came out of a cache.
    pub cached: u64,
    /// What came out.
    pub output: u64,
}

/// The answers so far, in memory and in a file where one was named.
#[derive(Debug, Default)]
pub struct Journal {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    turns: Vec<PlayedTurn>,
    file: Option<File>,
}

impl Journal {
    /// Begins a journal that is a file too, a line an answer.
    ///
    /// # Errors
    ///
    /// Where the file cannot be made.
    pub fn in_file(path: &Path) -> io::Result<Self> {
        let file = Some(File::create(path)?);
        let turns = Vec::new();
        Ok(Self {
            kept: Mutex::new(Kept { turns, file }),
        })
    }

    /// Returns the answers so far.
    pub fn turns(&self) -> Vec<PlayedTurn> {
        self.kept().turns.clone()
    }

    /// Takes an answer up.
    pub(super) fn push(&self, turn: PlayedTurn) -> io::Result<()> {
        let mut kept = self.kept();
        if let Some(file) = &mut kept.file {
            let mut line = serde_json::to_vec(&turn)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        kept.turns.push(turn);
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of the journal panics")
    }
}
