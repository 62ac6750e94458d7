//! What `premath doctor` runs to find out what no file tells: git, and the
//! verification without any work.

mod baseline;
mod git;

pub use baseline::verify_baseline;
pub use git::{git_version, remote_commit};
