//! Entries of an index.

use crate::mode::canonical;
use git2::{IndexEntry, IndexTime, Oid};

/// Makes the index entry of a file of which nothing is known but what it is to
/// hold. An index takes only the modes that git writes.
pub(crate) fn unknown_entry(name: &[u8], (mode, id): (i32, Oid)) -> IndexEntry {
    let time = IndexTime::new(0, 0);
    IndexEntry {
        ctime: time,
        mtime: time,
        dev: 0,
        ino: 0,
        mode: canonical(mode as u32),
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: name.to_vec(),
    }
}
