use super::*;

fn read(journal: &mut Journal, tail: Tail) -> (Refreshed, Vec<String>) {
    let mut how = Refreshed::Continued;
    let mut lines = Vec::new();
    journal
        .refresh(
            tail,
            |refreshed| how = refreshed,
            |line| {
                lines.push(String::from_utf8_lossy(line.bytes).into_owned());
                Ok(())
            },
        )
        .unwrap();
    (how, lines)
}

fn journal(content: &str) -> (tempfile::TempDir, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    fs::write(&path, content).unwrap();
    (folder, Journal::new(&path))
}

#[test]
fn only_what_was_appended_is_read_again() {
    let (_folder, mut j) = journal("{\"a\":1}\n");
    assert_eq!(read(&mut j, Tail::Peek).0, Refreshed::Anew);
    j.append(b"{\"b\":2}\n").unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(j.path())
        .unwrap()
        .write_all(b"{\"c\":3}\n")
        .unwrap();
    assert_eq!(
        read(&mut j, Tail::Peek),
        (Refreshed::Continued, vec!["{\"c\":3}".to_owned()])
    );
}

#[test]
fn a_complete_last_line_without_newline_is_a_row() {
    let (_folder, mut j) = journal("{\"a\":1}\n{\"b\":2}");
    assert_eq!(read(&mut j, Tail::Peek).1.len(), 2);
    assert_eq!(
        fs::read_to_string(j.path()).unwrap(),
        "{\"a\":1}\n{\"b\":2}"
    );
    // The reader sees it again: it did not count as a line yet.
    assert_eq!(read(&mut j, Tail::Repair).1, ["{\"b\":2}"]);
    assert_eq!(
        fs::read_to_string(j.path()).unwrap(),
        "{\"a\":1}\n{\"b\":2}\n"
    );
}

#[test]
fn a_torn_last_line_is_cut_and_kept_aside_by_the_holder_of_the_lock_alone() {
    let (folder, mut j) = journal("{\"a\":1}\n{\"b\":");
    assert_eq!(read(&mut j, Tail::Peek).1, ["{\"a\":1}"]);
    assert_eq!(fs::read_to_string(j.path()).unwrap(), "{\"a\":1}\n{\"b\":");
    assert!(read(&mut j, Tail::Repair).1.is_empty());
    assert_eq!(fs::read_to_string(j.path()).unwrap(), "{\"a\":1}\n");
    let aside: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().contains(".torn-"))
        .collect();
    assert_eq!(fs::read_to_string(&aside[0]).unwrap(), "{\"b\":");
    j.append(b"{\"c\":3}\n").unwrap();
    assert_eq!(
        fs::read_to_string(j.path()).unwrap(),
        "{\"a\":1}\n{\"c\":3}\n"
    );
}

#[test]
fn another_inode_a_shorter_file_or_a_rewrite_in_place_is_read_again() {
    let (folder, mut j) = journal("{\"a\":1}\n");
    read(&mut j, Tail::Peek);
    let other = folder.path().join("y");
    fs::write(&other, "{\"z\":1}\n{\"y\":1}\n").unwrap();
    fs::rename(&other, j.path()).unwrap();
    assert_eq!(read(&mut j, Tail::Peek).0, Refreshed::Anew);
    fs::write(j.path(), "{\"z\":1}\n").unwrap();
    assert_eq!(read(&mut j, Tail::Peek).0, Refreshed::Anew);
    fs::write(j.path(), "{\"q\":2}\n{\"r\":1}\n").unwrap();
    assert_eq!(read(&mut j, Tail::Peek).0, Refreshed::Anew);
}

/// A disk that fails where it is instructed to.
#[derive(Debug)]
pub(crate) struct Faulty {
    /// Bytes after which it is full.
    pub(crate) space: usize,
    pub(crate) sync_fails: bool,
}

impl Disk for Faulty {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let fits = bytes.len().min(self.space);
        file.write_all(&bytes[..fits])?;
        self.space -= fits;
        if fits < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn sync(&mut self, _: &File) -> io::Result<()> {
        if self.sync_fails {
            Err(io::Error::other("lost"))
        } else {
            Ok(())
        }
    }
}

/// A disk that panics once.
#[derive(Debug, Default)]
pub(crate) struct Panicking {
    done: bool,
}

impl Disk for Panicking {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        assert!(std::mem::replace(&mut self.done, true), "as told");
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// A disk on which another program appends once without the lock.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) before: &'static [u8],
    pub(crate) behind: &'static [u8],
}

impl Disk for Shared {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(std::mem::take(&mut self.before))?;
        file.write_all(bytes)
    }

    fn sync(&mut self, mut file: &File) -> io::Result<()> {
        file.write_all(std::mem::take(&mut self.behind))?;
        file.sync_data()
    }
}

#[test]
fn what_another_program_appends_meanwhile_is_read_next() {
    for (before, behind, count) in [
        (&b""[..], &b"{\"x\":1}\n"[..], 3),
        (b"{\"x\":1}\n", b"", 3),
        (b"{\"x\":1}\n", b"{\"y\":1}\n", 4),
    ] {
        let (_folder, mut j) = journal("{\"a\":1}\n");
        read(&mut j, Tail::Repair);
        j.append_beside(before, behind);
        j.append(b"{\"b\":2}\n").unwrap();
        assert!(j.is_current());
        let (refreshed, mut lines) = read(&mut j, Tail::Repair);
        if refreshed == Refreshed::Continued {
            // The two that were known.
            lines.extend(["a", "b"].map(str::to_owned));
        }
        assert_eq!(lines.len(), count, "{refreshed:?} {lines:?}");
    }
    // What is in one line with another program's is not taken for written.
    let (_folder, mut j) = journal("{\"a\":1}\n");
    read(&mut j, Tail::Repair);
    j.append_beside(b"{\"x\":", b"");
    j.append(b"{\"b\":2}\n").unwrap();
    assert!(!j.is_current());
}

#[test]
fn a_last_comment_without_newline_is_whole() {
    let (folder, mut j) = journal("{\"a\":1}\n# note");
    read(&mut j, Tail::Repair);
    assert_eq!(fs::read_to_string(j.path()).unwrap(), "{\"a\":1}\n# note\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was_and_a_later_write_goes_through() {
    let (_folder, j) = journal("{\"a\":1}\n");
    let path = j.path().to_path_buf();
    let mut j = Journal::on(
        &path,
        Box::new(Faulty {
            space: 10,
            sync_fails: false,
        }),
    );
    read(&mut j, Tail::Repair);
    let error = j.append(b"{\"long\":\"row\"}\n").unwrap_err();
    assert!(
        matches!(&error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
    let mut j = Journal::new(&path);
    read(&mut j, Tail::Repair);
    j.append(b"{\"b\":2}\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"b\":2}\n");
}

#[test]
fn after_a_failed_sync_the_process_writes_no_more() {
    let (_folder, j) = journal("");
    let path = j.path().to_path_buf();
    let mut j = Journal::on(
        &path,
        Box::new(Faulty {
            space: 1_000,
            sync_fails: true,
        }),
    );
    read(&mut j, Tail::Repair);
    assert!(matches!(j.append(b"{}\n"), Err(StoreError::Io { .. })));
    read(&mut j, Tail::Repair);
    assert!(matches!(
        j.append(b"{}\n"),
        Err(StoreError::Poisoned { .. })
    ));
    assert!(matches!(
        j.replace(b"{}\n"),
        Err(StoreError::Poisoned { .. })
    ));
}
