//! The agents, and how a line of each is read.
//!
//! An adapter takes one line, as a JSON object, and gives events. It holds no
//! more than what is open: nothing of a line is left when the next one comes.

mod claude;
mod codex;
mod gemini;
mod opencode;

use crate::event::EventKind;
use crate::flaw::Flaw;
use crate::json::{Object, Shape, cut};

/// The normaliser that agents' evidence is bound to: one for all of them, for
/// they are read into one model of events. Which agent it was says `modelRef`.
pub const AGENT_NORMALIZER: &str = "premath.harness.agent.v1";

/// The agents whose event streams are read (`agents.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code: `claude -p --output-format stream-json --verbose`.
    Claude,
    /// Codex: `codex exec --json`.
    Codex,
    /// Gemini CLI: `gemini --output-format stream-json`.
    Gemini,
    /// OpenCode: `opencode run --format json`.
    OpenCode,
}

impl Agent {
    /// Every agent.
    pub const ALL: &'static [Self] = &[Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Returns the adapter's name, as it is stored in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the agent of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == name)
    }

    /// Returns why an agent stopped that reports the reason only by its exit
    /// code.
    pub(crate) const fn stop_reason_of_exit(self, code: i32) -> Option<&'static str> {
        match (self, code) {
            (Self::Gemini, 53) => Some("turn_limit"),
            _ => None,
        }
    }

    /// Returns what lies within the agent's lines that its adapter asks for.
    pub(crate) const fn shape(self) -> &'static Shape {
        match self {
            Self::Claude => &claude::SHAPE,
            Self::Codex => &codex::SHAPE,
            Self::Gemini => &Shape::FLAT,
            Self::OpenCode => &opencode::SHAPE,
        }
    }

    /// Returns whether the agent says that it is up before it does anything.
    pub(crate) const fn says_begin(self) -> bool {
        // OpenCode's first event is that of a step.
        !matches!(self, Self::OpenCode)
    }
}

/// What takes the events of a line.
pub(crate) type Out<'a> = &'a mut dyn FnMut(EventKind<'_>);

/// One agent's reader of lines.
#[derive(Debug)]
pub(crate) enum Adapter {
    Claude,
    Codex(codex::Codex),
    Gemini(gemini::Gemini),
    OpenCode(opencode::OpenCode),
}

impl Adapter {
    pub(crate) fn new(agent: Agent) -> Self {
        match agent {
            Agent::Claude => Self::Claude,
            Agent::Codex => Self::Codex(codex::Codex::default()),
            Agent::Gemini => Self::Gemini(gemini::Gemini::default()),
            Agent::OpenCode => Self::OpenCode(opencode::OpenCode::default()),
        }
    }

    /// Reads a line; what was reported before the flaw counts.
    pub(crate) fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
        match self {
            Self::Claude => claude::read(line, out),
            Self::Codex(codex) => codex.read(line, out),
            Self::Gemini(gemini) => gemini.read(line, out),
            Self::OpenCode(opencode) => opencode.read(line, out),
        }
    }

    /// Returns whether a call may run that is reported only when it is over.
    pub(crate) const fn may_be_in_call(&self) -> bool {
        match self {
            Self::OpenCode(opencode) => opencode.is_in_step(),
            Self::Claude | Self::Codex(_) | Self::Gemini(_) => false,
        }
    }

    pub(crate) fn retained_bytes(&self) -> usize {
        match self {
            Self::Codex(codex) => codex.retained_bytes(),
            Self::OpenCode(opencode) => opencode.retained_bytes(),
            Self::Gemini(gemini) => gemini.retained_bytes(),
            Self::Claude => 0,
        }
    }
}

/// Skips an unknown type, unless it could be a call.
fn unknown(kind: &str, within: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let kind = cut(kind);
    if within.bears_call() {
        return Err(Flaw::UnknownCall(kind.to_owned()));
    }
    out(EventKind::Unknown(kind.to_owned()));
    Ok(())
}

/// Returns whether what an agent reports about its failure is that it had no
/// network.
pub(crate) fn speaks_of_network(message: &str) -> bool {
    const SAYINGS: &[&str] = &[
        "cannot connect",
        "could not connect",
        "unable to connect",
        "connection refused",
        "connection reset",
        "connection error",
        "econnrefused",
        "econnreset",
        "enotfound",
        "etimedout",
        "getaddrinfo",
        "fetch failed",
        "socket hang up",
        "error sending request",
        "stream disconnected",
    ];
    says_one(message, SAYINGS)
}

/// Returns whether what an agent reports about its failure is that a limit is
/// used up. Some have no other way to say it.
fn speaks_of_limit(message: &str) -> bool {
    const SAYINGS: &[&str] = &[
        "usage limit",
        "session limit",
        "rate limit",
        "quota",
        "resource_exhausted",
        "too many requests",
    ];
    says_one(message, SAYINGS)
}

/// Returns whether a message has one of these sayings, which are lower case.
fn says_one(message: &str, sayings: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    sayings.iter().any(|saying| message.contains(saying))
}
