//! What tests know of an agent beside its description: how it is pointed at a
//! model server and started, and how it says things.

mod claude;
mod codex;
mod gemini;
mod opencode;

pub use claude::CLAUDE_COST_NANO_USD;

use crate::scripted::Misbehaviour;
use crate::scripted::beat::Format;
use premath_evidence::Agent;
use std::path::Path;

/// One agent, as tests know it.
pub(crate) struct AgentKit {
    /// The agent.
    agent: Agent,
    /// A file of the home, and its text for the address of a model server.
    pub(super) settings: (&'static str, fn(&str) -> String),
    /// The variables that it needs besides, for the address and the home.
    pub(super) environment: fn(&str, &Path) -> Vec<(&'static str, String)>,
    /// Its arguments; the prompt follows them.
    pub(super) arguments: &'static [&'static str],
    /// Makes its scripted stand-in's words.
    pub(crate) format: fn() -> Box<dyn Format>,
    /// What its stream cannot say, and why.
    pub(crate) not_said: &'static [(Misbehaviour, &'static str)],
    /// Whether it reports what it used while it works.
    pub(crate) reports_use_as_it_goes: bool,
    /// The lines of a stream that is generated.
    lines: StreamLines,
}

/// The lines of a stream that is generated.
#[derive(Clone, Copy, Debug)]
pub struct StreamLines {
    /// The first ones.
    pub begin: &'static str,
    /// The last ones.
    pub end: &'static str,
    /// Those of a call, by its number and its output as JSON.
    pub call: fn(u32, &str) -> String,
}

/// The agents that tests can play.
const KITS: [&AgentKit; 4] = [&claude::KIT, &codex::KIT, &gemini::KIT, &opencode::KIT];

/// Returns what tests know of an agent; `None` for one that they cannot play.
pub(crate) fn kit(agent: Agent) -> Option<&'static AgentKit> {
    KITS.into_iter().find(|kit| kit.agent == agent)
}

/// Returns the agents that tests can play.
pub fn playable() -> impl Iterator<Item = Agent> {
    KITS.into_iter().map(|kit| kit.agent)
}

/// Returns the lines of a generated stream of an agent that tests can play.
pub fn stream_lines(agent: Agent) -> Option<StreamLines> {
    kit(agent).map(|kit| kit.lines)
}
