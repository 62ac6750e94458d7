//! Artifact files: written to a temporary name and renamed, so that a reader
//! never sees half of one (`storage.md`).

use crate::clock;
use crate::error::StoreError;
use crate::lock::LockFile;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use premath_kernel::issue::Holder;
use premath_kernel::issue::lease::Life;
use premath_kernel::json::canonical;
use premath_kernel::json::token;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const TEMPORARY: &str = ".premath-tmp-";

/// The mode of new files: any of them may hold what an agent said.
pub(crate) const PRIVATE: u32 = 0o600;

/// Names a temporary file beside a path after this process, so that a later one
/// can determine whether its maker is gone.
fn temporary_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let me = clock::this_process();
    let (pid, started) = me.map_or((std::process::id(), 0), |me| (me.pid, me.started));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!("{TEMPORARY}{pid}-{started}-{number}"))
}

/// Names the file of a step's phase; a name too long for the disk ends in its
/// digest.
pub fn of_step(folder: &Path, step_id: &str, phase: &str, extension: &str) -> PathBuf {
    folder.join(format!("{}.{phase}.{extension}", stem_of(step_id)))
}

/// Returns what the names of a step's files begin with, before the phase.
fn stem_of(step_id: &str) -> String {
    const LONGEST: usize = 180;
    let stem = token::encode(step_id);
    if stem.len() <= LONGEST {
        return stem;
    }
    let digest = canonical::sha256_hex(step_id.as_bytes());
    format!("{}-{}", &stem[..LONGEST - 17], &digest[..16])
}

/// Names the files of some steps in a folder, of one look at it; a folder that cannot
/// be read has none. A phase may have a point, so files of a step whose id begins with
/// one of these and a point are named too.
pub(crate) fn names_of_steps<'a>(
    folder: &Path,
    step_ids: impl Iterator<Item = &'a str>,
) -> HashSet<OsString> {
    let stems: HashSet<Vec<u8>> = step_ids.map(|id| stem_of(id).into_bytes()).collect();
    let is_wanted = |name: &OsString| {
        let bytes = name.as_encoded_bytes();
        memchr::memrchr_iter(b'.', bytes).any(|at| stems.contains(&bytes[..at]))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names.filter(is_wanted).collect()
}

/// Returns the file that says most about a command that failed: an agent's
/// event stream, else its error output, else its output, whichever holds
/// anything.
pub fn printed(streams: &Path, step_id: &str, phase: &str) -> Option<PathBuf> {
    let kinds = ["stdout.gz", "stderr", "stdout"];
    let mut files = kinds
        .into_iter()
        .map(|kind| (kind, of_step(streams, step_id, phase, kind)));
    let holds_any = |(kind, path): &(&str, PathBuf)| match *kind {
        "stdout.gz" => open_regular(path).is_ok_and(|file| {
            let read = GzDecoder::new(file).read(&mut [0]);
            read.is_ok_and(|read| read > 0)
        }),
        _ => open_regular(path)
            .and_then(|file| file.metadata())
            .is_ok_and(|meta| meta.len() > 0),
    };
    files.find(holds_any).map(|(_, path)| path)
}

/// Refuses the files of authority and trajectory, which change under their own
/// locks alone: they are the ones with a lock beside them.
pub(crate) fn refuse_locked(path: &Path) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default();
    if name == "issues.jsonl" || LockFile::path_beside(path).exists() {
        let cause = io::Error::new(io::ErrorKind::PermissionDenied, "it is not an artifact");
        return Err(StoreError::io("write", path)(cause));
    }
    Ok(())
}

/// Opens a file, and makes its folder where there is none.
fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            options.open(path)
        }
        (opened, _) => opened,
    }
}

fn write_temporary(path: &Path, content: &[u8], durable: bool) -> Result<PathBuf, StoreError> {
    let temporary = temporary_beside(path);
    let attempt = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(PRIVATE);
        let mut file = open(&options, &temporary)?;
        file.write_all(content)?;
        // Keep who may read a file that is replaced.
        if let Ok(meta) = fs::metadata(path)
            && meta.permissions().mode() & 0o7777 != PRIVATE
        {
            file.set_permissions(meta.permissions())?;
        }
        if durable {
            file.sync_all()?;
        }
        Ok(())
    };
    if let Err(error) = attempt() {
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io("write", path)(error));
    }
    Ok(temporary)
}

fn rename(temporary: &Path, path: &Path) -> Result<(), StoreError> {
    fs::rename(temporary, path).map_err(|error| {
        let _ = fs::remove_file(temporary);
        StoreError::io("rename to", path)(error)
    })
}

/// Writes a file whole or not at all.
///
/// # Errors
///
/// [`StoreError::Io`]; the old file is as it was.
pub fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    refuse_locked(path)?;
    let temporary = write_temporary(path, content, false)?;
    rename(&temporary, path)
}

/// Writes a file whole or not at all, and has it on the disk when it returns:
/// the file is synced, renamed, and the folder is synced.
pub(crate) fn write_durably(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let temporary = write_temporary(path, content, true)?;
    rename(&temporary, path)?;
    sync_folder_of(path)
}

/// Makes a file's name durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    // The folder of a bare file name reads as an empty path, which is not a
    // folder.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io("sync the folder of", path))
}

/// Reads a file; `None` where there is none.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Writes over a file that only we and our own child read, one after the
/// other: in place, so that no new file is made. Never through a link.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn overwrite(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => remove(path)?,
        _ => refuse_locked(path)?,
    }
    let attempt = || -> io::Result<()> {
        // One that is emptied first goes to the disk when it is closed.
        let mut file = open(stream_options().truncate(false), path)?;
        file.write_all(content)?;
        let length = content.len() as u64;
        if file.metadata()?.len() > length {
            file.set_len(length)?;
        }
        Ok(())
    };
    attempt().map_err(StoreError::io("write", path))
}

/// Compresses a stream that is complete, by gzip; returns the file, which has
/// `.gz` behind its name. The plain file is removed when that is written.
///
/// # Errors
///
/// [`StoreError::Io`]; the plain file is as it was.
pub fn compress(path: &Path) -> Result<PathBuf, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let compressed = PathBuf::from(name);
    let temporary = temporary_beside(path);
    let attempt = || -> io::Result<()> {
        let mut plain = File::open(path)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&temporary)?;
        let mut encoder = GzEncoder::new(BufWriter::new(file), Compression::fast());
        io::copy(&mut plain, &mut encoder)?;
        encoder.finish()?.flush()
    };
    if let Err(error) = attempt() {
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io("compress", path)(error));
    }
    rename(&temporary, &compressed)?;
    remove(path)?;
    Ok(compressed)
}

/// Opens a file for the output of a command, mode 0600, empty.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn open_stream(path: &Path) -> Result<File, StoreError> {
    refuse_locked(path)?;
    open(&stream_options(), path).map_err(StoreError::io("open", path))
}

fn stream_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE)
        .custom_flags(no_follow());
    options
}

/// Appends a line to a file, mode 0600 where it is new, in one write.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn append_line(path: &Path, line: &str) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.custom_flags(no_follow() | no_wait());
    let mut file = options
        .open(path)
        .map_err(StoreError::io("append to", path))?;
    let meta = file.metadata().map_err(StoreError::io("look at", path))?;
    if !meta.is_file() {
        let cause = io::Error::other("it is not a regular file");
        return Err(StoreError::io("append to", path)(cause));
    }
    file.write_all(format!("{line}\n").as_bytes())
        .map_err(StoreError::io("append to", path))
}

/// Opens a file to read it: a link is not followed, and nothing is waited for.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(no_follow() | no_wait());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn no_wait() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

/// Removes a file or a folder with all that is in it; none there is fine.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn remove(path: &Path) -> Result<(), StoreError> {
    refuse_locked(path)?;
    let result = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Removes the temporary files of processes that are gone from a folder.
///
/// # Errors
///
/// [`StoreError::Io`] where the folder cannot be read.
pub(crate) fn sweep(folder: &Path) -> Result<(), StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("read", folder)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read", folder))?;
        if maker_of(&entry.file_name()) == Some(Life::Dead) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns whether the process lives that made a temporary file of that name;
/// `None` if the name has another form.
pub(crate) fn maker_of(name: &OsStr) -> Option<Life> {
    let maker = name.to_str()?.strip_prefix(TEMPORARY)?;
    let mut parts = maker.split('-').map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(started))) = (parts.next(), parts.next()) else {
        return Some(Life::Unknown);
    };
    let Some(me) = clock::this_process() else {
        return Some(Life::Unknown);
    };
    let maker = Holder {
        pid: u32::try_from(pid).unwrap_or(0),
        started,
        ..me
    };
    Some(clock::life(&maker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_makers_temporary_file_is_swept_and_a_live_ones_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let dead = folder.path().join(format!("{TEMPORARY}4194300-1-0"));
        let alive = temporary_beside(&folder.path().join("x"));
        fs::write(&dead, "").unwrap();
        fs::write(&alive, "").unwrap();
        sweep(folder.path()).unwrap();
        assert!(!dead.exists());
        assert!(alive.exists());
    }

    #[test]
    fn a_file_that_is_written_over_is_as_long_as_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("prompt.md");
        for content in ["long, at first", "short", "", "longer than ever before"] {
            overwrite(&path, content.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), content.as_bytes());
        }
        let other = folder.path().join("other");
        fs::write(&other, "kept").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        overwrite(&path, b"ours").unwrap();
        assert_eq!(read(&other).unwrap().unwrap(), b"kept");
        assert_eq!(read(&path).unwrap().unwrap(), b"ours");
    }

    #[test]
    fn the_output_that_is_named_holds_something() {
        let folder = tempfile::tempdir().unwrap();
        let at = |kind| of_step(folder.path(), "w.a.1", "verify", kind);
        let named = || printed(folder.path(), "w.a.1", "verify");
        assert_eq!(named(), None);
        for (kind, text, expected) in [
            ("stderr", "", None),
            ("stdout", "out", Some("stdout")),
            ("stderr", "err", Some("stderr")),
        ] {
            fs::write(at(kind), text).unwrap();
            assert_eq!(named(), expected.map(at), "{kind}");
        }
        for (stream, expected) in [("", "stderr"), ("{}\n", "stdout.gz")] {
            fs::write(at("stdout"), stream).unwrap();
            compress(&at("stdout")).unwrap();
            assert_eq!(named(), Some(at(expected)), "{stream:?}");
        }
    }

    #[test]
    fn a_compressed_stream_reads_back_and_takes_the_place_of_the_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.a.1.work.stdout");
        let content = b"{\"type\":\"x\"}\n".repeat(10_000);
        open_stream(&path).unwrap().write_all(&content).unwrap();
        let compressed = compress(&path).unwrap();
        assert_eq!(compressed, folder.path().join("w.a.1.work.stdout.gz"));
        assert!(!path.exists());
        let file = File::open(&compressed).unwrap();
        assert!(file.metadata().unwrap().len() < 10_000);
        let mut back = Vec::new();
        let mut decoder = GzDecoder::new(file);
        decoder.read_to_end(&mut back).unwrap();
        assert_eq!(back, content);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_written_file_is_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("x.json");
        write(&path, b"1").unwrap();
        write_durably(&path, b"22").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"22");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(read(&folder.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn lines_are_appended_to_a_file_that_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("outbox.jsonl");
        append_line(&path, "1").unwrap();
        append_line(&path, "2").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"1\n2\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_name_too_long_for_the_disk_ends_in_its_digest() {
        let long = "x".repeat(300);
        let name = |id: &str| {
            let path = of_step(Path::new("/w"), id, "verify", "json");
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert!(name(&long).len() < 255);
        assert_ne!(name(&long), name(&format!("{long}y")));
        assert_eq!(name("w.1.a/b.1"), "w.1.a%2Fb.1.verify.json");
    }

    #[test]
    fn the_files_of_some_steps_are_those_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(300);
        let of = |id: &str, kind: &str| of_step(folder.path(), id, "verify", kind);
        let wanted = [
            of("w.1.a.1", "stdout"),
            of("w.1.a.1", "stdout.gz"),
            of(&long, "stderr"),
        ];
        let others = [
            of("w.1.a.11", "stdout"),
            of("w.1.a", "stdout"),
            of(&format!("{long}y"), "stderr"),
        ];
        for path in wanted.iter().chain(&others) {
            fs::write(path, "x").unwrap();
        }
        let found = names_of_steps(folder.path(), ["w.1.a.1", &long].into_iter());
        let names = wanted.iter().map(|path| path.file_name().unwrap().into());
        assert_eq!(found, names.collect());
        let none = names_of_steps(&folder.path().join("none"), ["w.1.a.1"].into_iter());
        assert!(none.is_empty());
    }
}
