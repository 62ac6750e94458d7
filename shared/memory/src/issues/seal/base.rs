//! The rows that transactions left, in a file beside issue memory: what a
//! foreign row is compared with. A transaction appends its rows; the file is
//! rewritten where issue memory is, and where its length is not the sealed one.

use super::IssueRow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct BaseFile {
    path: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    device: u64,
    inode: u64,
}

impl BaseFile {
    pub(super) fn beside(data: &Path) -> Self {
        let mut name = data.file_name().unwrap_or_default().to_os_string();
        name.push(".base");
        Self {
            path: data.with_file_name(name),
            open: None,
        }
    }

    /// Appends lines to a file of the given length; returns the new length.
    ///
    /// # Errors
    ///
    /// The file has another length, or cannot be written.
    pub(super) fn append(&mut self, lines: &[u8], length: u64) -> io::Result<u64> {
        let meta = fs::symlink_metadata(&self.path)?;
        if !meta.is_file() || meta.len() != length {
            return Err(io::Error::other("it is not as it was sealed"));
        }
        let named = |open: &Open| (open.device, open.inode) == (meta.dev(), meta.ino());
        let open = match self.open.take().filter(named) {
            Some(open) => open,
            None => Open {
                file: OpenOptions::new().append(true).open(&self.path)?,
                device: meta.dev(),
                inode: meta.ino(),
            },
        };
        let open = self.open.insert(open);
        open.file.write_all(lines)?;
        Ok(length + lines.len() as u64)
    }

    /// Writes the file again; returns its length.
    pub(super) fn rewrite<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a IssueRow>,
    ) -> io::Result<u64> {
        self.open = None;
        // What is there may be a link.
        self.remove();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&self.path)?;
        let mut file = BufWriter::new(file);
        let mut length = 0;
        for row in rows {
            file.write_all(row.text.as_bytes())?;
            file.write_all(b"\n")?;
            length += row.text.len() as u64 + 1;
        }
        file.flush()?;
        Ok(length)
    }

    /// Reads the last row of each issue; `None` where the file is missing, has
    /// another length than the given one, or a line that is not a row.
    pub(super) fn read(&self, length: Option<u64>) -> Option<BTreeMap<Box<str>, IssueRow>> {
        let meta = fs::symlink_metadata(&self.path).ok()?;
        if !meta.is_file() || length.is_some_and(|length| meta.len() != length) {
            return None;
        }
        let text = fs::read_to_string(&self.path).ok()?;
        let mut rows = BTreeMap::new();
        for line in text.lines() {
            let row = IssueRow::parse(line).ok()?;
            rows.insert((*row.issue.id).into(), row);
        }
        Some(rows)
    }

    pub(super) fn length(&self) -> Option<u64> {
        fs::symlink_metadata(&self.path).ok().map(|meta| meta.len())
    }

    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
