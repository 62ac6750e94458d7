//! An index file that a command may have written.
//!
//! An entry states the length of its name; libgit2 does not check it, and git2 copies
//! that many bytes. So a file is checked before they read it. With isolation a step
//! has a git folder of its own, of which nothing is read; without it, or in a
//! person's own worktree, it can write the index that is read here.

use crate::mode::{FILE, FOLDER, LINK, SUBMODULE, is_kind};
use git2::{Index, Repository};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest file that is read, and the most bytes of names in one: those of
/// some two million files.
const SIZE_MAX: usize = 256 << 20;
const HEADER: usize = 12;
/// The digest at the end of the file.
const TRAILER: usize = 20;
/// The numbers and times of an entry, its digest and its flags.
const FIELDS: usize = 62;
const MODE_AT: usize = 24;
/// What an index has; libgit2 skips anything else.
const KINDS: [u32; 3] = [FILE, LINK, SUBMODULE];
const FLAGS_AT: usize = 60;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
/// The length of a name; all bits are set for a longer one.
const LENGTH: u16 = 0x0fff;
/// The version whose names leave out how they begin.
const COMPRESSED: u32 = 4;
/// The longest path that libgit2 reads.
const PATH_MAX: usize = 4_096;
/// How deep a tree is of which an index keeps the names.
const DEPTH_MAX: usize = 1_000;
/// What is kept of trees.
const TREES: &[u8] = b"TREE";
const DIGEST: usize = 20;
/// Where the rest of a split index is.
const SHARED: &[u8] = b"link";
const SPLIT: &str =
    "it is a split index, which is not read; join it with `git update-index --no-split-index`";
const SPARSE: &str = "it is a sparse index, which is not read; write all entries with `git \
                      sparse-checkout reapply --no-sparse-index`";

/// Opens an index file; one that is not there is empty.
///
/// # Errors
///
/// [`io::Error`]: it is not a regular file, or not what git writes.
pub(crate) fn open(at: &Path) -> io::Result<Index> {
    if let Some(content) = read(at)? {
        check(&content)?;
    }
    Index::open(at).map_err(other)
}

/// Opens the index of a repository's own checkout, as [`open`] does.
///
/// # Errors
///
/// As [`open`].
pub(crate) fn open_of(repository: &Repository) -> Result<Index, git2::Error> {
    let index = open(&repository.path().join("index"));
    index.map_err(|error| git2::Error::from_str(&error.to_string()))
}

/// Opens a copy of an index file that a command may write at the same time.
///
/// # Errors
///
/// As [`open`], and where there is none.
pub(crate) fn open_copy(at: &Path) -> io::Result<Index> {
    let content = read(at)?.ok_or_else(|| wrong("there is no index"))?;
    check(&content)?;
    let (_open, copy) = premath_platform::file::in_memory(&content)?;
    drop(content);
    Index::open(&copy).map_err(other)
}

fn read(at: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(at, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > SIZE_MAX {
        return Err(wrong("no regular file, or too large"));
    }
    let mut content = Vec::with_capacity(size);
    let mut file = File::from(file).take(SIZE_MAX as u64);
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Refuses what git does not write.
fn check(content: &[u8]) -> io::Result<()> {
    let end = content.len().saturating_sub(TRAILER);
    let mut rest = Rest {
        content: &content[..end],
        at: 0,
    };
    let header = rest.take(HEADER)?;
    let version = u32_at(header, 4);
    if !header.starts_with(b"DIRC") || !(2..=COMPRESSED).contains(&version) {
        return Err(wrong("no index of version 2, 3 or 4"));
    }
    let (mut last, mut name): ((Vec<u8>, u16), Vec<u8>) = Default::default();
    // Compressed names are more bytes than the file has.
    let mut names = 0;
    for entry in 0..u32_at(header, 8) {
        let stage = rest.entry(version, &last.0, &mut name)?;
        names += name.len();
        if names > SIZE_MAX {
            return Err(wrong("its names are too long together"));
        }
        if entry > 0 && (name.as_slice(), stage) <= (last.0.as_slice(), last.1) {
            return Err(wrong("its entries are not in order"));
        }
        std::mem::swap(&mut last.0, &mut name);
        last.1 = stage;
    }
    while rest.at < end {
        let extension = rest.take(8)?;
        let size = usize::try_from(u32_at(extension, 4)).map_err(io::Error::other)?;
        let content = rest.take(size)?;
        if extension.starts_with(SHARED) {
            return Err(wrong(SPLIT));
        }
        if extension.starts_with(TREES) {
            check_trees(Rest { content, at: 0 })?;
        }
    }
    Ok(())
}

/// Refuses trees that are deeper than libgit2 could follow, and fewer of them than
/// a tree states: it reserves memory for so many.
fn check_trees(mut rest: Rest<'_>) -> io::Result<()> {
    // How many trees are still to come in each of the open ones.
    let mut open = vec![1_usize];
    while let Some(left) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        rest.until(0)?;
        let is_known = match rest.until(b' ')? {
            b"-1" => false,
            count if count.iter().all(u8::is_ascii_digit) => true,
            _ => return Err(wrong("a tree has a wrong number of entries")),
        };
        let below = str::from_utf8(rest.until(b'\n')?).map_err(io::Error::other)?;
        let below: usize = below.parse().map_err(io::Error::other)?;
        if is_known {
            rest.take(DIGEST)?;
        }
        if open.len() > DEPTH_MAX {
            return Err(wrong("its trees are too deep"));
        }
        open.push(below);
    }
    Ok(())
}

/// What is left of the file to check.
struct Rest<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, size: usize) -> io::Result<&'a [u8]> {
        let taken = self.content[self.at..]
            .get(..size)
            .ok_or_else(|| wrong("it ends too early"))?;
        self.at += size;
        Ok(taken)
    }

    /// Checks the next entry; puts its name into `name` and returns its stage.
    fn entry(&mut self, version: u32, last: &[u8], name: &mut Vec<u8>) -> io::Result<u16> {
        let start = self.at;
        let fields = self.take(FIELDS)?;
        let mode = u32_at(fields, MODE_AT);
        if is_kind(mode, FOLDER) {
            return Err(wrong(SPARSE));
        }
        if !KINDS.iter().any(|kind| is_kind(mode, *kind)) {
            return Err(wrong("an entry is neither a file nor a submodule"));
        }
        let flags = u16::from_be_bytes([fields[FLAGS_AT], fields[FLAGS_AT + 1]]);
        if flags & EXTENDED != 0 {
            self.take(2)?;
        }
        let kept = match version {
            COMPRESSED => last
                .len()
                .checked_sub(self.number()?)
                .ok_or_else(|| wrong("a name leaves out more than there is"))?,
            _ => 0,
        };
        let rest = &self.content[self.at..];
        let rest = &rest[..rest.len().min(PATH_MAX)];
        let length = rest.iter().position(|byte| *byte == 0);
        let length = length.ok_or_else(|| wrong("a name has no end"))?;
        name.clear();
        name.extend_from_slice(&last[..kept]);
        name.extend_from_slice(self.take(length)?);
        let said = usize::from(flags & LENGTH);
        if name.is_empty() && said == 0 {
            return Err(wrong(SPLIT));
        }
        if name.len() >= PATH_MAX || !is_relative(name) {
            return Err(wrong("a name is not that of a file"));
        }
        if said != name.len().min(usize::from(LENGTH)) {
            return Err(wrong("a name is not as long as its entry says"));
        }
        let padding = match version {
            COMPRESSED => 1,
            _ => 8 - (self.at - start) % 8,
        };
        self.take(padding)?;
        Ok(flags & STAGE)
    }

    /// Takes what is before a byte, and the byte.
    fn until(&mut self, end: u8) -> io::Result<&'a [u8]> {
        let rest = &self.content[self.at..];
        let length = rest.iter().position(|byte| *byte == end);
        let taken = self.take(length.ok_or_else(|| wrong("it ends too early"))?)?;
        self.take(1)?;
        Ok(taken)
    }

    /// Reads a number of seven bits a byte, as git writes it.
    fn number(&mut self) -> io::Result<usize> {
        let mut value = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            let next = value.checked_add(1).and_then(|next| next.checked_mul(128));
            value = next.ok_or_else(|| wrong("a number is too large"))?;
        }
    }
}

/// Returns whether a path has only names of files and folders.
fn is_relative(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .all(|name| ![b"".as_slice(), b".", b".."].contains(&name))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(four)
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn other(error: git2::Error) -> io::Error {
    io::Error::other(error.message().to_owned())
}
