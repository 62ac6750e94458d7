//! A model server of ours on loopback, which plays scripts.
//!
//! It speaks the streams of three providers ([`Dialect`]), so that real agents
//! run against it without an account. What it answers is in a [`Script`], which
//! the prompt names: `play:<script>`, or `play:<script>:<conversation>` where
//! several agents play one script. Every answer is in its journal before a byte
//! of it is sent.

mod http;
mod journal;
mod script;
mod server;
mod tool;
mod wire;

pub use journal::{Journal, MadeCall, Played, PlayedTurn, Spent};
pub use script::{Refusal, Script, ScriptError, Scripts, Turn};
pub use server::ModelServer;
pub use tool::Tool;
pub use wire::Dialect;
