//! The lane's end of agents' hooks: the socket that the hook program of an agent
//! speaks to before and after each tool call (`tool-gate.md` 1).
//!
//! The socket answers the processes of the lane's own command alone. What they
//! send is a step's: it is bounded, and a forged event has no counterpart in the
//! agent's stream.

mod door;
mod peer;
mod program;
mod server;
mod wiring;

pub(crate) use door::DoorKind;
pub(crate) use program::HookProgram;
pub(crate) use server::{HookServer, HookServerError};
pub(crate) use wiring::{HookSite, wire};

use premath_kernel::json::canonical;
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Returns 32 hexadecimal digits that cannot be guessed.
fn random_name() -> io::Result<String> {
    let mut bytes = [0_u8; premath_hook::TOKEN / 2];
    match getrandom(&mut bytes, GetRandomFlags::empty())? {
        length if length == bytes.len() => Ok(canonical::hex(&bytes)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
