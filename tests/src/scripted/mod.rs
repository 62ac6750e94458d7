//! A coding agent that does what its script says, faults included, and speaks
//! the event stream of any agent (`agents.md`).
//!
//! A [`Misbehaviour`] is its instruction; `play` does it as a row of `Beat`s; a
//! `Format` says each beat in the words of one agent.

pub(crate) mod beat;
mod limit;
mod misbehaviour;
mod play;
mod voice;

pub use misbehaviour::{Misbehaviour, ScriptedTask};
pub use play::{Stage, play};
