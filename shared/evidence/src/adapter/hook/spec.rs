//! How hooks of an agent are wired, read and answered.

use super::event::{HookEvent, HookFlaw, HookKind, HookReader};
use crate::json::document;
use premath_kernel::policy::turn::ToolClass;
use serde_json::Value;

/// Where the things of the harness are, as the agent sees them.
#[derive(Clone, Copy, Debug)]
pub struct HookPlace<'a> {
    /// The hook program, absolute.
    pub program: &'a str,
    /// Its first argument, where it is another binary.
    pub mode: Option<&'a str>,
    /// The lane's socket, absolute.
    pub socket: &'a str,
    /// The folder that the files of the wiring are put into, absolute.
    pub folder: &'a str,
    /// A name that is not known before the start.
    pub name: &'a str,
}

/// What wires hooks into one start of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookWiring {
    /// Arguments for the agent's command line.
    pub arguments: Vec<String>,
    /// Variables.
    pub variables: Vec<(&'static str, String)>,
    /// Files.
    pub files: Vec<HookFile>,
}

/// A file of the wiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// Its content.
    pub content: String,
}

/// What is answered to an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookAnswer {
    /// The agent continues.
    Pass,
    /// The call must not run, for this reason.
    Deny(String),
    /// The agent is given a text of the operator beside the result of its call.
    Tell(String),
}

/// How hooks of an agent work.
#[derive(Debug)]
pub struct HookSpec {
    /// Makes the wiring.
    pub wiring: fn(&HookPlace<'_>) -> HookWiring,
    /// Whether it reads the wiring's files from no folder below one that others
    /// may write to, such as `/tmp`.
    pub needs_own_folder: bool,
    /// Reads an event.
    pub(crate) read: HookReader,
    /// Writes the answer to an event that denies a call.
    pub(crate) denial: fn(&str) -> Value,
    /// Writes the answer to the end of a call that gives the agent a text.
    pub(crate) telling: fn(&str) -> Value,
    /// How a call of the stream is found in the journal.
    pub(crate) join: Join,
    /// Tools whose calls of the stream no hook announces; `*` at the end is any
    /// text.
    pub(crate) unannounced: &'static [&'static str],
    /// Failure classes of results of calls that no hook is called for.
    pub(crate) refused: &'static [&'static str],
    /// Returns what a tool does, by its name in hooks or in the stream.
    pub(crate) class_of: fn(&str) -> ToolClass,
    /// Whether a call that is denied is in the stream.
    pub(crate) streams_denied: bool,
    /// Whether the stream has calls of sub-agents.
    pub(crate) streams_children: bool,
}

/// How a call of the stream is found among those of the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// By its id.
    Id,
    /// By what it is: identical calls are counted.
    Content,
}

/// The most members, and values in lists, of an event: small ones take many times the
/// memory of their text.
const PARTS_MAX: usize = 1 << 17;

impl HookSpec {
    /// Reads an event.
    ///
    /// # Errors
    ///
    /// The bytes are not an event of the agent, or have more than [`PARTS_MAX`] parts.
    pub(crate) fn read(&self, bytes: &[u8], worktree: &str) -> Result<HookEvent, HookFlaw> {
        match document(bytes, PARTS_MAX) {
            Some(Value::Object(event)) => (self.read)(&event, worktree),
            _ => Err(HookFlaw::NotAnObject),
        }
    }

    /// Returns what the hook program prints for an answer to an event; nothing
    /// means to continue.
    pub(crate) fn print(&self, kind: HookKind, answer: &HookAnswer) -> String {
        match answer {
            HookAnswer::Deny(reason) if kind == HookKind::Before => {
                (self.denial)(reason).to_string()
            }
            HookAnswer::Tell(text) if kind == HookKind::After => (self.telling)(text).to_string(),
            _ => String::new(),
        }
    }
}
