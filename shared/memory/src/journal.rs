//! An append-only file of JSON lines that survives a kill between any two
//! system calls (`storage.md`).
//!
//! Issue memory and the trajectory are two of them. The journal knows lines
//! and bytes, not what they mean.

mod state;

pub(crate) use state::FileState;

use crate::error::StoreError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many bytes before the known end are compared on a refresh, to detect
/// that another program rewrote the file in place.
const SEAL: usize = 256;

/// The system calls that can fail in ways worth a test of their own.
pub(crate) trait Disk: Send + std::fmt::Debug {
    /// Appends bytes at the end of the file; may write fewer before it fails.
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
    /// Makes appended bytes durable.
    fn sync(&mut self, file: &File) -> io::Result<()>;
}

/// The real disk.
#[derive(Debug)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// One line of the file, without its newline.
#[derive(Debug)]
pub(crate) struct JournalLine<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether it ends, or ends now: one that a reader finds without its
    /// newline is read again.
    pub(crate) is_whole: bool,
}

/// The findings of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// The lines that follow continue what was read before.
    Continued,
    /// The file is another one, or was rewritten: forget what was read before.
    Anew,
}

/// How the bytes after the last newline are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// By a reader: a complete object counts, anything else is not there yet.
    Peek,
    /// By the holder of the lock: a complete object gets its newline, anything
    /// else is cut off and kept aside.
    Repair,
}

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    open: Option<Open>,
    disk: Box<dyn Disk>,
    poisoned: Option<String>,
    /// How many bytes and lines are not read.
    skipped: (u64, u64),
    /// The last line, if it is incomplete and was not read.
    cut: Option<u64>,
    /// Where such a line was put by this process.
    aside: Option<PathBuf>,
}

#[derive(Debug)]
struct Open {
    file: File,
    device: u64,
    inode: u64,
    /// What the file was when it was read or written to; absent if another
    /// process wrote to it meanwhile.
    state: Option<FileState>,
    /// Bytes of whole lines read so far.
    length: u64,
    lines: u64,
    /// The last bytes before `length`.
    seal: Vec<u8>,
}

impl Journal {
    pub(crate) fn new(path: &Path) -> Self {
        Self::on(path, Box::new(RealDisk))
    }

    pub(crate) fn on(path: &Path, disk: Box<dyn Disk>) -> Self {
        Self {
            path: path.to_path_buf(),
            open: None,
            disk,
            poisoned: None,
            skipped: (0, 0),
            cut: None,
            aside: None,
        }
    }

    /// Returns a journal that is read from a line on, which begins behind this many bytes
    /// and lines.
    pub(crate) fn starting_at(path: &Path, bytes: u64, lines: u64) -> Self {
        Self {
            skipped: (bytes, lines),
            ..Self::new(path)
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length in bytes of the whole lines that were read.
    pub(crate) fn length(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.length)
    }

    /// Returns what the file was when all that is known about it was read.
    pub(crate) fn state(&self) -> Option<&FileState> {
        self.open.as_ref().and_then(|open| open.state.as_ref())
    }

    /// Returns the number of the last line, where it is cut and was not read.
    pub(crate) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Returns where a cut line was put, the last one of this process.
    pub(crate) fn aside(&self) -> Option<&Path> {
        self.aside.as_deref()
    }

    /// Makes the file where it is not there.
    pub(crate) fn create(&self) -> Result<(), StoreError> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(StoreError::io("make the folder of", &self.path))?;
        }
        match OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&self.path)
        {
            // The name must be as durable as the rows that come behind it.
            Ok(_) => crate::artifact::sync_folder_of(&self.path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(StoreError::io("create", &self.path)(error)),
        }
    }

    /// Forgets what was read, so that the next refresh starts again.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    /// Reads what came since the last refresh, line by line.
    ///
    /// An error of `take` ends the refresh and what was read is forgotten.
    pub(crate) fn refresh(
        &mut self,
        tail: Tail,
        mut begin: impl FnMut(Refreshed),
        mut take: impl FnMut(JournalLine<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (refreshed, size) = self.reopen()?;
        begin(refreshed);
        self.cut = None;
        if refreshed == Refreshed::Continued && size == self.length() {
            return Ok(());
        }
        let result = self.read_lines(tail, size, &mut take);
        if result.is_err() {
            self.open = None;
        }
        result
    }

    /// Sees whether the path still names the file that was read, and how large
    /// it is.
    fn reopen(&mut self) -> Result<(Refreshed, u64), StoreError> {
        let missing = |error: io::Error, path: &Path| {
            if error.kind() == io::ErrorKind::NotFound {
                StoreError::Missing {
                    path: path.to_path_buf(),
                }
            } else {
                StoreError::io("read", path)(error)
            }
        };
        let meta = fs::metadata(&self.path).map_err(|e| missing(e, &self.path))?;
        if let Some(open) = &mut self.open
            && open.is_named_by(&meta)
        {
            let state = FileState::from(&meta);
            let unchanged = meta.len() == open.length && open.state.as_ref() == Some(&state);
            if unchanged || (meta.len() > open.length && open.is_sealed()) {
                open.state = Some(state);
                return Ok((Refreshed::Continued, meta.len()));
            }
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)
            .or_else(|error| {
                // A reader may lack the right to write.
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) {
                    File::open(&self.path)
                } else {
                    Err(error)
                }
            })
            .map_err(|e| missing(e, &self.path))?;
        let meta = file
            .metadata()
            .map_err(StoreError::io("read", &self.path))?;
        self.open = Some(Open {
            file,
            device: meta.dev(),
            inode: meta.ino(),
            state: Some(FileState::from(&meta)),
            length: self.skipped.0,
            lines: self.skipped.1,
            seal: Vec::new(),
        });
        Ok((Refreshed::Anew, meta.len()))
    }

    fn read_lines(
        &mut self,
        tail: Tail,
        size: u64,
        take: &mut impl FnMut(JournalLine<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let rest = open.read_whole_lines(&path, size, take)?;
        let counts = is_object(&rest) || is_comment(&rest);
        if rest.is_empty() {
            // The last line is whole.
        } else if counts || is_blank(&rest) {
            open.read_unended(&path, &rest, tail, counts, take)?;
        } else if tail == Tail::Repair {
            let aside = set_aside(&path, &rest)?;
            open.file
                .set_len(open.length)
                .map_err(StoreError::io("cut the torn line off", &path))?;
            self.aside = Some(aside);
        } else {
            self.cut = Some(open.lines + 1);
        }
        open.seal_now(&path)?;
        // Also what was mended here was not read in its current state.
        let meta = open
            .file
            .metadata()
            .map_err(StoreError::io("read", &path))?;
        if open.state.as_ref() != Some(&FileState::from(&meta)) {
            open.state = None;
        }
        Ok(())
    }

    /// Appends whole lines in one write and makes them durable.
    ///
    /// The caller holds the lock and has just refreshed. After a failed write
    /// the file is as it was; after a failed sync its state is unknown, and
    /// this process no longer writes.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), StoreError> {
        if let Some(cause) = self.poisoned.clone() {
            // The caller may have taken the rows over already.
            self.open = None;
            return Err(StoreError::Poisoned {
                path: self.path.clone(),
                cause,
            });
        }
        let Some(open) = &mut self.open else {
            return Err(StoreError::Missing {
                path: self.path.clone(),
            });
        };
        if let Err(error) = self.disk.append(&mut open.file, lines) {
            // What was written in part must not be read as a row by the next.
            let restored = open.file.set_len(open.length);
            if let Err(second) = restored {
                self.poisoned = Some(second.to_string());
            }
            self.open = None;
            return Err(StoreError::io("write", &self.path)(error));
        }
        if let Err(error) = self.disk.sync(&open.file) {
            self.poisoned = Some(error.to_string());
            self.open = None;
            return Err(StoreError::io("sync", &self.path)(error));
        }
        let before = open.length;
        open.length += lines.len() as u64;
        open.lines += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        let keep = lines.len().min(SEAL);
        open.seal.extend_from_slice(&lines[lines.len() - keep..]);
        let surplus = open.seal.len().saturating_sub(SEAL);
        open.seal.drain(..surplus);
        match open.file.metadata() {
            Ok(meta) if meta.len() == open.length => open.state = Some(FileState::from(&meta)),
            // Another program appended without the lock: what it wrote is read next.
            Ok(meta) if open.has_lines(before, meta.len(), lines) => open.state = None,
            // It broke the lines, or cut the file: read all of it again.
            _ => self.open = None,
        }
        Ok(())
    }

    /// Returns whether the path still names the file that was written to.
    pub(crate) fn is_current(&self) -> bool {
        match (&self.open, fs::metadata(&self.path)) {
            (Some(open), Ok(meta)) => open.is_named_by(&meta),
            _ => false,
        }
    }

    /// Puts a new file in the place of this one, whole or not at all.
    pub(crate) fn replace(&mut self, content: &[u8]) -> Result<(), StoreError> {
        if let Some(cause) = &self.poisoned {
            return Err(StoreError::Poisoned {
                path: self.path.clone(),
                cause: cause.clone(),
            });
        }
        crate::artifact::write_durably(&self.path, content)?;
        self.open = None;
        Ok(())
    }
}

impl Open {
    /// Returns whether lines are whole in a part of the file, which may hold little else.
    fn has_lines(&self, from: u64, until: u64, lines: &[u8]) -> bool {
        const FOREIGN_MAX: u64 = 1 << 20;
        let length = until.saturating_sub(from);
        if length > lines.len() as u64 + FOREIGN_MAX {
            return false;
        }
        let mut part = vec![0; length as usize];
        if self.file.read_exact_at(&mut part, from).is_err() {
            return false;
        }
        let ends = part.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut begins = std::iter::once(0).chain(ends.map(|(end, _)| end + 1));
        begins.any(|begin| part[begin..].starts_with(lines))
    }

    /// Reads the lines that end, and returns what is behind the last of them.
    fn read_whole_lines(
        &mut self,
        path: &Path,
        size: u64,
        take: &mut impl FnMut(JournalLine<'_>) -> Result<(), StoreError>,
    ) -> Result<Vec<u8>, StoreError> {
        const CHUNK: u64 = 1 << 18;
        let mut rest: Vec<u8> = Vec::new();
        let ahead = size.saturating_sub(self.length).clamp(SEAL as u64, CHUNK);
        let mut chunk = vec![0; ahead as usize];
        let mut position = self.length;
        loop {
            let read = self
                .file
                .read_at(&mut chunk, position)
                .map_err(StoreError::io("read", path))?;
            if read == 0 {
                break;
            }
            position += read as u64;
            let mut bytes = &chunk[..read];
            while let Some(end) = newline(bytes) {
                let line = if rest.is_empty() {
                    &bytes[..end]
                } else {
                    rest.extend_from_slice(&bytes[..end]);
                    &rest[..]
                };
                self.lines += 1;
                self.length += line.len() as u64 + 1;
                take(JournalLine {
                    number: self.lines,
                    bytes: line,
                    is_whole: true,
                })?;
                rest.clear();
                bytes = &bytes[end + 1..];
            }
            rest.extend_from_slice(bytes);
        }
        Ok(rest)
    }

    /// Reads a last line without an end, and ends it where it is to be repaired.
    fn read_unended(
        &mut self,
        path: &Path,
        rest: &[u8],
        tail: Tail,
        counts: bool,
        take: &mut impl FnMut(JournalLine<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if counts {
            take(JournalLine {
                number: self.lines + 1,
                bytes: rest,
                is_whole: tail == Tail::Repair,
            })?;
        }
        if tail == Tail::Repair {
            self.file
                .write_all(b"\n")
                .map_err(StoreError::io("end the last line of", path))?;
            self.lines += 1;
            self.length += rest.len() as u64 + 1;
        }
        Ok(())
    }

    fn is_named_by(&self, meta: &fs::Metadata) -> bool {
        (self.device, self.inode) == (meta.dev(), meta.ino())
    }

    /// Compares the last bytes that were read with what is there now.
    fn is_sealed(&self) -> bool {
        let mut now = vec![0; self.seal.len()];
        let at = self.length - self.seal.len() as u64;
        self.file.read_exact_at(&mut now, at).is_ok() && now == self.seal
    }

    fn seal_now(&mut self, path: &Path) -> Result<(), StoreError> {
        let size = (self.length as usize).min(SEAL);
        self.seal.resize(size, 0);
        self.file
            .read_exact_at(&mut self.seal, self.length - size as u64)
            .map_err(StoreError::io("read", path))
    }
}

pub(crate) fn is_comment(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"#") && std::str::from_utf8(bytes).is_ok()
}

/// Finds the first newline; far faster than a look at byte after byte.
fn newline(mut bytes: &[u8]) -> Option<usize> {
    let before = bytes;
    let passed = bytes.skip_until(b'\n').ok()?;
    (before[..passed].last() == Some(&b'\n')).then(|| passed - 1)
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

pub(crate) fn is_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
        && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Keeps a torn line beside the file it was cut from.
fn set_aside(path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    let stamp = jiff::Timestamp::now().as_microsecond();
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".torn-{stamp}"));
    let aside = path.with_file_name(name);
    fs::write(&aside, bytes).map_err(StoreError::io("keep the torn line in", &aside))?;
    tracing::warn!(
        "the last line of {} was incomplete; it was moved to {}",
        path.display(),
        aside.display()
    );
    Ok(aside)
}

#[cfg(test)]
impl Journal {
    /// Has the next append panic.
    pub(crate) fn panic_on_append(&mut self) {
        self.disk = Box::new(tests::Panicking::default());
    }

    /// Has another program append before and behind what is appended next.
    pub(crate) fn append_beside(&mut self, before: &'static [u8], behind: &'static [u8]) {
        self.disk = Box::new(tests::Shared { before, behind });
    }

    /// Has the next sync fail.
    pub(crate) fn fail_next_sync(&mut self) {
        self.disk = Box::new(tests::Faulty {
            space: usize::MAX,
            sync_fails: true,
        });
    }
}

#[cfg(test)]
mod tests;
