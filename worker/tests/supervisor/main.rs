//! The supervisor as its lane sees it, with real processes.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot continue fails; some play the harness's part"
)]

mod command;
mod confined;
mod end;
mod harness;
mod lane;
mod loss;
mod release;
