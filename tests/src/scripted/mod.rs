//! A coding agent that does what its script says, faults included, and speaks
//! the event stream of any agent (`agents.md`).
//!
//! A [`Misbehaviour`] is its instruction; `play` does it as a row of `Beat`s; a
//! `Format` says each beat in the words of one agent.

mod beat;
mod claude;
mod codex;
mod gemini;
mod limit;
mod misbehaviour;
mod opencode;
mod play;
mod voice;

pub use misbehaviour::{Misbehaviour, ScriptedTask};
pub use play::{Stage, play};

use beat::Format;
use premath_evidence::Agent;

/// Returns how an agent says things.
fn format(agent: Agent) -> Box<dyn Format> {
    match agent {
        Agent::Claude => Box::new(claude::Claude),
        Agent::Codex => Box::new(codex::Codex),
        Agent::Gemini => Box::new(gemini::Gemini),
        Agent::OpenCode => Box::new(opencode::OpenCode::default()),
    }
}
