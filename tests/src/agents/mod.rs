//! The real agents: installed, pointed at a model server of ours, and recorded.

pub mod form;
mod hooked;
mod installed;
pub(crate) mod kit;
mod normal;
mod profile;
mod recording;

pub use installed::{Installed, agents_folder, install, missing, pinned};
pub use kit::{CLAUDE_COST_NANO_USD, StreamLines, playable, stream_lines};
pub use normal::normalised;
pub use profile::Profile;
pub use recording::{Recorded, record, recordings};
