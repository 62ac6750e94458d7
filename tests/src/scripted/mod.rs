//! A coding agent that does what it is told, misdeeds included, and speaks the
//! event stream of any agent (`agents.md`).
//!
//! A [`Misdeed`] is what it is told; `play` does it as a row of `Beat`s; a
//! `Format` says each beat in the words of one agent.

mod beat;
mod claude;
mod codex;
mod gemini;
mod limit;
mod misdeed;
mod opencode;
mod play;
mod voice;

pub use misdeed::{Misdeed, Wish};
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
