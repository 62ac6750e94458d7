//! The journals of agents' hooks, from all turns of a repository.

use crate::{StoreError, artifact};
use flate2::read::GzDecoder;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What the name of a journal ends with.
const ENDING: &str = ".hooks.jsonl.gz";

/// The most bytes of a journal: more is not written to one.
const MOST: u64 = 64 << 20;

/// Reads the lines of every journal in a folder, sorted by the names of the
/// files; returns how many files there are.
///
/// # Errors
///
/// [`StoreError::Io`] with the file that cannot be read.
pub fn each_line(folder: &Path, mut take: impl FnMut(&[u8])) -> Result<u64, StoreError> {
    let files = journals(folder)?;
    for path in &files {
        read(path, &mut take).map_err(StoreError::io("read", path))?;
    }
    Ok(files.len() as u64)
}

/// Reads the lines of one journal, by the path of its file before that was
/// compressed; returns whether there is one.
///
/// # Errors
///
/// [`StoreError::Io`] with the file that cannot be read.
pub fn lines_of(file: &Path, mut take: impl FnMut(&[u8])) -> Result<bool, StoreError> {
    let mut path = file.as_os_str().to_owned();
    path.push(".gz");
    let path = PathBuf::from(path);
    match read(&path, &mut take) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("read", &path)(error)),
    }
}

fn read(path: &Path, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let decoder = GzDecoder::new(artifact::open_regular(path)?).take(MOST);
    for line in BufReader::new(decoder).split(b'\n') {
        take(&line?);
    }
    Ok(())
}

fn journals(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("list", folder))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(ENDING) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn the_lines_of_all_journals_come_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines: Vec<String> = Vec::new();
        let mut read = |folder: &Path| {
            lines.clear();
            let files = each_line(folder, |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
            });
            (files.unwrap(), lines.clone())
        };
        assert_eq!(read(&folder.path().join("none")), (0, Vec::new()));
        for (name, text) in [("b", "3\n"), ("a", "1\n2\n")] {
            let file = File::create(folder.path().join(format!("{name}{ENDING}"))).unwrap();
            let mut encoder = GzEncoder::new(file, Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap();
        }
        fs::write(folder.path().join("a.work.stdout"), "x").unwrap();
        // What is not a file is neither waited for nor followed.
        let link = folder.path().join(format!("c{ENDING}"));
        std::os::unix::fs::symlink("a", &link).unwrap();
        assert!(each_line(folder.path(), |_| {}).is_err());
        fs::remove_file(link).unwrap();
        let expected = ["1", "2", "3"].map(str::to_owned);
        assert_eq!(read(folder.path()), (2, expected.to_vec()));
        let mut own = 0;
        let file = |name: &str| folder.path().join(format!("{name}.hooks.jsonl"));
        assert!(lines_of(&file("a"), |_| own += 1).unwrap());
        assert!(!lines_of(&file("z"), |_| own += 1).unwrap());
        assert_eq!(own, 2);
    }
}
