//! One lane: boot, step, stop on one worktree, with the gate in its own process.

pub mod account;
pub mod arguments;
pub mod batch;
mod boundary;
mod environment;
pub mod gate;
pub mod health;
mod hooks;
pub mod interrupt;
pub mod lane;
pub mod lanes;
pub mod log;
pub mod notify;
pub mod plan;
mod post;
pub mod programs;
mod prompt;
pub mod proxy;
pub mod refusal;
pub mod sandbox;
pub mod settings;
pub mod stderr;
pub mod step;
pub mod supervisor;
pub mod telemetry;
pub mod trust;
mod witness;

pub use premath_kernel::policy::exit;
