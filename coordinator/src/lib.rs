//! Passes, lanes and reporting: a batch over several worktrees.

pub mod arguments;
pub mod example;
mod lane;
pub mod machine;
pub mod report;
pub mod run;
pub mod spare;
