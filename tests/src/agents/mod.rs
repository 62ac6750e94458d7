//! The real open-source agents: installed, pointed at a model server of ours,
//! and recorded.

pub mod form;
mod installed;
mod normal;
mod profile;
mod recording;

pub use installed::{AGENTS, Installed, install, missing, pinned};
pub use normal::normalised;
pub use profile::Profile;
pub use recording::{Recorded, record, recordings};
