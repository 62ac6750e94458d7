//! What identifies a file wherever it is moved to.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Between the identity and the path in the written form; git's paths do not
/// hold it.
const END: &[u8] = b"//";

/// The identity of a file or folder. A file system gives the number of a
/// deleted file to a new one; the time of birth differs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    born: u128,
}

impl Identity {
    /// Returns the identity of what is at a path; `None` where nothing is, and
    /// where the file system does not know times of birth.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        let born = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            born: born.as_nanos(),
        })
    }

    fn parsed(text: &str) -> Option<Self> {
        let mut numbers = text.splitn(3, '.');
        Some(Self {
            device: numbers.next()?.parse().ok()?,
            inode: numbers.next()?.parse().ok()?,
            born: numbers.next()?.parse().ok()?,
        })
    }
}

/// Writes a path with its identity.
pub(super) fn written(identity: Option<Identity>, name: &[u8]) -> Vec<u8> {
    let Some(identity) = identity else {
        return name.to_vec();
    };
    let Identity {
        device,
        inode,
        born,
    } = identity;
    let text = format!("{device}.{inode}.{born}");
    [text.as_bytes(), END, name].concat()
}

/// Reads a path with its identity.
pub(super) fn read(entry: &[u8]) -> (Option<Identity>, &[u8]) {
    let end = entry.windows(END.len()).position(|bytes| bytes == END);
    let parts = end.map(|end| (&entry[..end], &entry[end + END.len()..]));
    let parsed = parts.and_then(|(text, name)| {
        let identity = Identity::parsed(std::str::from_utf8(text).ok()?)?;
        Some((Some(identity), name))
    });
    parsed.unwrap_or((None, entry))
}
