//! Support for tests that run the real binaries on real repositories.
//!
//! A [`Scratch`] is a folder with a git repository and worktrees in it; a
//! [`Run`] starts one of the binaries there with nothing of the caller's
//! environment, and ends as an [`Ended`].
//!
//! | variable | what it does |
//! |---|---|
//! | `PREMATH_TESTS=long` | races and campaigns in full length |
//! | `PREMATH_TESTS_SEED` | repeats a campaign that named its seed |
//! | `PREMATH_ESCAPE_MODE` | the modes that the escape suite runs in; one that is named and does not work fails, in other tests too |
//! | `PREMATH_GATE_RUNS` | a file to which runs add the classes and rules that their turns broke |
//! | `PREMATH_TESTS_BINARIES` | a folder of binaries to test instead of freshly built ones |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: what is not there fails the test that asked for it"
)]

pub mod agents;
mod binaries;
pub mod browser;
mod dice;
pub mod gate_runs;
pub mod image;
mod length;
pub mod model;
pub mod pages;
mod processes;
mod receiver;
mod run;
mod scratch;
pub mod scripted;
pub mod surface;
mod terminal;
mod tools;
mod tracker;
mod wait;

pub use binaries::{Binaries, binaries, cargo, command, workspace};
pub use dice::Dice;
pub use length::{Length, skipped};
pub use processes::processes_in;
pub use receiver::{Posted, TlsReceiver, receiver, receiver_saying, tls_receiver};
pub use run::{Ended, Run, Running};
pub use scratch::{NO_CHANGE, NO_STARTUP, Scratch, mode_works};
pub use terminal::Terminal;
pub use tools::Tools;
pub use tracker::{Rows, issue, last_rows, parse_rows};
pub use wait::{PATIENCE, until};
