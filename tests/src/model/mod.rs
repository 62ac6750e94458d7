//! A model server of ours on loopback, which plays scripts.
//!
//! It speaks the streams of four providers ([`Dialect`]), so that real agents
//! run against it without an account. What it answers is in a [`Script`],
//! which the prompt names: `play:<script>`, or `play:<script>:<conversation>`
//! where several agents play one script. Every answer is in its journal before
//! a byte of it is sent. It renews the tokens of one account, too.

mod account;
mod http;
mod journal;
mod script;
mod server;
mod tool;
mod wire;

pub use account::{HOLDER, Holder, access_token, refresh_token, sign_in};
pub use journal::{Journal, MadeCall, Played, PlayedTurn, Spent};
pub use script::{Hooked, Refusal, Script, ScriptError, Scripts, Turn};
pub use server::{ModelServer, RENEWAL};
pub use tool::Tool;
pub use wire::Dialect;
