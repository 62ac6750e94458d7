//! What only Linux has and every crate needs, behind one interface: processes
//! and this program as `/proc` shows them, which of them are a step's, the
//! machine, and files below a folder.
//!
//! Other crates use POSIX. `premath-check layers` refuses `/proc`, `openat2`,
//! places (`O_PATH`), process descriptors, subreapers and the like outside of this crate and of the
//! confinement of commands (`worker/src/supervisor/confine` and `usage`). A port
//! to another system is an implementation of these modules, and of that
//! confinement.

pub mod file;
pub mod host;
pub mod machine;
pub mod manager;
pub mod process;
pub mod program;
pub mod socket;
pub mod step;
pub mod watch;
