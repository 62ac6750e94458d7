//! The file of the seal: held open, and read again only if its content differs
//! from what was last read or written here.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file is written in whole blocks of this, in one write.
const BLOCK: usize = 4096;

/// The result of reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look<'a> {
    /// What was last read or written here.
    Same,
    /// Something else.
    Other(&'a [u8]),
    /// No file, or none that can be read.
    Nothing,
}

#[derive(Debug)]
pub(super) struct SealFile {
    path: PathBuf,
    open: Option<Open>,
    /// What was last read or written; empty where it no longer counts.
    known: Vec<u8>,
    /// Room to read into.
    read: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: File,
    device: u64,
    inode: u64,
    /// Its length as of the last look or write.
    length: u64,
}

impl SealFile {
    /// Names the file beside issue memory.
    pub(super) fn beside(data: &Path) -> Self {
        let mut name = data.file_name().unwrap_or_default().to_os_string();
        name.push(".seal");
        Self {
            path: data.with_file_name(name),
            open: None,
            known: Vec::new(),
            read: Vec::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Has the next look find something else, whatever is there.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Reads the file.
    pub(super) fn look(&mut self) -> Look<'_> {
        if self.read().is_err() {
            self.open = None;
            self.forget();
            return Look::Nothing;
        }
        if !self.known.is_empty() && self.read == self.known {
            return Look::Same;
        }
        std::mem::swap(&mut self.read, &mut self.known);
        Look::Other(&self.known)
    }

    fn read(&mut self) -> io::Result<()> {
        let meta = fs::metadata(&self.path)?;
        let open = named(&mut self.open, &self.path, &meta)?;
        let length = usize::try_from(open.length).map_err(io::Error::other)?;
        self.read.resize(length, 0);
        open.file.read_exact_at(&mut self.read, 0)
    }

    /// Writes the file that a look just found, where it found one.
    pub(super) fn write_on(&mut self, text: String) -> io::Result<()> {
        self.write_where(text, false)
    }

    /// Writes the file that the path names.
    pub(super) fn write(&mut self, text: String) -> io::Result<()> {
        self.write_where(text, true)
    }

    /// Writes the file over. What cannot be written is removed: a seal that is
    /// not of the last transaction would tell tales.
    fn write_where(&mut self, text: String, look: bool) -> io::Result<()> {
        let mut bytes = text.into_bytes();
        let length = (bytes.len() + 1).next_multiple_of(BLOCK);
        bytes.resize(length - 1, b' ');
        bytes.push(b'\n');
        let written = self.put(&bytes, look);
        if written.is_ok() {
            self.known = bytes;
        } else {
            self.open = None;
            self.forget();
            let _ = fs::remove_file(&self.path);
        }
        written
    }

    fn put(&mut self, bytes: &[u8], look: bool) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) if !look => open,
            _ => match fs::metadata(&self.path) {
                Ok(meta) => named(&mut self.open, &self.path, &meta)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut options = OpenOptions::new();
                    options.read(true).write(true).create(true).truncate(false);
                    self.open.insert(Open::of(options.open(&self.path)?)?)
                }
                Err(error) => return Err(error),
            },
        };
        open.file.write_all_at(bytes, 0)?;
        let length = bytes.len() as u64;
        if open.length > length {
            open.file.set_len(length)?;
        }
        open.length = length;
        Ok(())
    }
}

impl Open {
    fn of(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            file,
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
        })
    }
}

/// Returns the open file, opened again where the path names another one by now.
fn named<'a>(open: &'a mut Option<Open>, path: &Path, meta: &Metadata) -> io::Result<&'a mut Open> {
    let is_named = |open: &Open| (open.device, open.inode) == (meta.dev(), meta.ino());
    let held = open.take().filter(is_named);
    let mut held = match held {
        Some(held) => held,
        None if !meta.is_file() => return Err(io::Error::other("it is not a file")),
        None => {
            let both = OpenOptions::new().read(true).write(true).open(path);
            // Who looks may lack the right to write.
            Open::of(both.or_else(|_| File::open(path))?)?
        }
    };
    held.length = meta.len();
    Ok(open.insert(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, SealFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = SealFile::beside(&folder.path().join("x"));
        (folder, file)
    }

    #[test]
    fn what_was_written_here_is_the_same_and_what_another_wrote_is_not() {
        let (_folder, mut one) = scratch();
        let mut two = SealFile::beside(&one.path.with_extension(""));
        assert_eq!(one.look(), Look::Nothing);
        one.write("{}".to_owned()).unwrap();
        assert_eq!(one.look(), Look::Same);
        assert!(matches!(two.look(), Look::Other(bytes) if bytes.starts_with(b"{}")));
        assert_eq!(two.look(), Look::Same);
        two.write("[]".to_owned()).unwrap();
        assert!(matches!(one.look(), Look::Other(bytes) if bytes.starts_with(b"[]")));
        one.forget();
        assert!(matches!(one.look(), Look::Other(_)));
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_is_written_where_the_path_is() {
        let (folder, mut seal) = scratch();
        seal.write("{}".to_owned()).unwrap();
        fs::remove_file(&seal.path).unwrap();
        assert_eq!(seal.look(), Look::Nothing);
        seal.write_on("{}".to_owned()).unwrap();
        assert!(fs::read_to_string(&seal.path).unwrap().starts_with("{}"));
        let other = folder.path().join("other");
        fs::write(&other, "[]").unwrap();
        fs::rename(&other, &seal.path).unwrap();
        assert_eq!(seal.look(), Look::Other(b"[]"));
        fs::write(&other, "[]").unwrap();
        fs::rename(&other, &seal.path).unwrap();
        seal.write("{}".to_owned()).unwrap();
        assert!(fs::read_to_string(&seal.path).unwrap().starts_with("{}"));
        seal.write_on("[]".to_owned()).unwrap();
        assert!(fs::read_to_string(&seal.path).unwrap().starts_with("[]"));
    }

    #[test]
    fn the_file_has_whole_blocks_and_nothing_of_a_longer_one() {
        let (_folder, mut seal) = scratch();
        for length in [2 * BLOCK, BLOCK - 1, BLOCK, 1] {
            let text = "x".repeat(length);
            seal.write(text.clone()).unwrap();
            let bytes = fs::read_to_string(&seal.path).unwrap();
            assert_eq!(bytes.len(), (length + 1).next_multiple_of(BLOCK));
            assert_eq!(bytes.trim_end(), text);
        }
    }

    #[test]
    fn what_cannot_be_written_is_removed() {
        let (folder, mut seal) = scratch();
        let link = std::os::unix::fs::symlink;
        link(folder.path(), &seal.path).unwrap();
        assert_eq!(seal.look(), Look::Nothing);
        seal.write("{}".to_owned()).unwrap_err();
        assert!(fs::symlink_metadata(&seal.path).is_err());
    }
}
