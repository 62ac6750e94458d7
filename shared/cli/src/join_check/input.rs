//! The file that is judged, read within bounds.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes that are read, of a file or of stdin. A turn of 100,000
/// calls with payloads of 1 KiB has some 150 MiB.
pub(super) const MOST: u64 = 256 * 1024 * 1024;

/// Reads a file, or stdin for `-`.
///
/// # Errors
///
/// A file that cannot be read, and one of more than [`MOST`] bytes, of which
/// no more is read than that.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        return bounded(io::stdin().lock(), 0);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > MOST {
        return Err(too_large(&format!("{} bytes are", metadata.len())));
    }
    bounded(file, metadata.len())
}

fn bounded(source: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    source.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(too_large("it is"));
    }
    Ok(bytes)
}

fn too_large(what: &str) -> io::Error {
    let most = MOST / (1024 * 1024);
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("{what} over the limit of {most} MiB for one turn"),
    )
}
