//! Documents: canonical JSON and digests, strict reading, and the values that
//! every document shares: references, times, sizes, tokens.

pub mod canonical;
pub(crate) mod document;
pub mod field;
pub mod id;
pub(crate) mod path;
pub mod plain;
pub(crate) mod read;
pub mod reference;
pub mod schema;
pub mod size;
pub mod stamp;
pub(crate) mod strict;
pub mod time;
pub mod token;
