//! Passes, lanes and reporting: a batch over several worktrees.

pub mod arguments;
mod control;
pub mod example;
mod lane;
pub mod machine;
pub mod report;
pub mod run;
pub mod spare;
