//! The real agents: installed, pointed at a model server of ours, and the
//! open-source ones recorded.

pub mod form;
mod installed;
mod normal;
mod profile;
mod recording;

pub use installed::{Installed, RECORDED, install, missing, pinned};
pub use normal::normalised;
pub use profile::Profile;
pub use recording::{Recorded, record, recordings};
