//! `packed-refs`, written under git's lock.
//!
//! libgit2 reads the file before it takes the lock, and writes what it read: a
//! reference that git packed in between is lost. Here the file is read under the
//! lock, as git does (`refs/packed-backend.c`).

use git2::{Error, ErrorClass, ErrorCode, Repository};
use premath_platform::file::is_absent;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LOCK: &str = "packed-refs.lock";
/// The file while it is written.
const NEW: &str = "packed-refs.premath-new";
/// How much of it is read: a million references are about 80 MB. A step without
/// isolation can make it longer.
const LENGTH_MAX: u64 = 256 << 20;
/// How long another process may have the lock; git's default
/// (`core.packedRefsTimeout`).
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it is until the next try.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to write `packed-refs`, which no other process has meanwhile.
#[derive(Debug)]
pub(crate) struct PackedRefs {
    /// The git folder that all worktrees share.
    folder: PathBuf,
}

impl PackedRefs {
    /// Takes the right; waits a second for another process.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Locked`] where another process has it for longer, and what the
    /// system reports.
    pub(crate) fn lock(git: &Repository) -> Result<Self, Error> {
        let folder = git.commondir().to_path_buf();
        let lock = folder.join(LOCK);
        let began = Instant::now();
        loop {
            match File::create_new(&lock) {
                Ok(_) => return Ok(Self { folder }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if began.elapsed() >= PATIENCE {
                        return Err(locked(&lock));
                    }
                    sleep(PAUSE);
                }
                Err(error) => return Err(failed(&lock, &error)),
            }
        }
    }

    /// Moves a reference that is packed to a file of its own. It has its value all the
    /// time.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Locked`] where another process has the reference's lock, and what
    /// the system reports.
    pub(crate) fn unpack(&self, name: &str) -> Result<(), Error> {
        let packed = self.folder.join("packed-refs");
        let text = read(&packed).map_err(|error| failed(&packed, &error))?;
        let (left, value) = without(&text, name);
        let Some(value) = value else {
            return Ok(());
        };
        let loose = self.folder.join(name);
        // What is in the file counts, whatever was packed.
        if !fs::symlink_metadata(&loose).is_ok_and(|meta| !meta.is_dir()) {
            write_loose(&loose, &value)?;
        }
        self.write(&packed, &left)
            .map_err(|error| failed(&packed, &error))
    }

    fn write(&self, packed: &Path, text: &[u8]) -> io::Result<()> {
        let new = self.folder.join(NEW);
        // Of a process that was killed.
        let _ = fs::remove_file(&new);
        let mut file = File::create_new(&new)?;
        file.set_permissions(fs::symlink_metadata(packed)?.permissions())?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(new, packed)
    }
}

impl Drop for PackedRefs {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(LOCK));
    }
}

/// Reads the file; no text where there is none. It is replaced later, so a symbolic
/// link is an error: it would be lost.
fn read(packed: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(CWD, packed, flags, Mode::empty()).map_err(io::Error::from);
    let file = match opened {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        opened => File::from(opened?),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LENGTH_MAX {
        return Err(io::Error::other("not a regular file of at most 256 MiB"));
    }
    let mut text = Vec::new();
    file.take(LENGTH_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > LENGTH_MAX {
        true => Err(io::Error::other("it grows")),
        false => Ok(text),
    }
}

/// Returns the lines of `packed-refs` without those of a name, and its value.
fn without(text: &[u8], name: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    let (mut left, mut value) = (Vec::with_capacity(text.len()), None);
    let mut is_of_name = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        // After a tag comes what it leads to.
        if !line.starts_with(b"^") {
            let mut parts = line.trim_ascii_end().splitn(2, |byte| *byte == b' ');
            let of_line = parts
                .next()
                .filter(|_| parts.next() == Some(name.as_bytes()));
            is_of_name = of_line.is_some();
            value = of_line.map(<[u8]>::to_vec).or(value);
        }
        if !is_of_name {
            left.extend_from_slice(line);
        }
    }
    (left, value)
}

/// Writes a reference to a file of its own, under its lock.
fn write_loose(loose: &Path, value: &[u8]) -> Result<(), Error> {
    let mut lock = loose.as_os_str().to_owned();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let write = || -> io::Result<()> {
        if let Some(folder) = loose.parent() {
            fs::create_dir_all(folder)?;
        }
        // An empty folder, of references that are gone.
        let _ = fs::remove_dir(loose);
        let mut file = File::create_new(&lock)?;
        let written = file
            .write_all(value)
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| fs::rename(&lock, loose));
        written.inspect_err(|_| drop(fs::remove_file(&lock)))
    };
    write().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => locked(&lock),
        _ => failed(loose, &error),
    })
}

fn locked(lock: &Path) -> Error {
    let text = format!("another process has {}", lock.display());
    Error::new(ErrorCode::Locked, ErrorClass::Reference, text)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let text = format!("{}: {error}", path.display());
    Error::new(ErrorCode::GenericError, ErrorClass::Reference, text)
}

#[cfg(test)]
mod tests;
