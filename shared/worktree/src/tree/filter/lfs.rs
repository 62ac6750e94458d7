//! Objects of Git LFS: the content that a pointer in a commit refers to.

use super::super::beneath::Beneath;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of its filter.
pub(super) const FILTER: &str = "lfs";
/// The longest pointer, by its specification.
pub(super) const POINTER_MAX: u64 = 1_023;
/// The largest object that is taken in.
const OBJECT_MAX: u64 = 1 << 30;
/// How much of an object is read at once.
const PIECE: usize = 1 << 16;
/// Counts the copies: lanes of one process may take in the same object at once.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// What a pointer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    /// The digest of the object, in hexadecimal.
    pub(super) oid: String,
    pub(super) size: u64,
}

impl Pointer {
    /// Reads a pointer; any other text is none.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        let version = lines.next()?.strip_prefix("version ")?;
        if !version.starts_with("https://git-lfs.github.com/spec/") {
            return None;
        }
        let (mut oid, mut size) = (None, None);
        for line in lines {
            match line.split_once(' ')? {
                ("oid", value) => oid = value.strip_prefix("sha256:"),
                ("size", value) => size = value.parse().ok(),
                _ => {}
            }
        }
        let oid = oid.filter(|oid| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            oid.len() == 64 && oid.bytes().all(is_digit)
        })?;
        Some(Self {
            oid: oid.to_owned(),
            size: size?,
        })
    }

    /// Returns where its object is below a folder of objects.
    pub(super) fn place(&self) -> PathBuf {
        let oid = &self.oid;
        Path::new(&oid[..2]).join(&oid[2..4]).join(oid)
    }
}

/// Takes the object of a pointer from the folder of a run into the user's store,
/// where it is not there; the inner error is why it cannot be.
pub(super) fn take_in(
    store: &Path,
    run: &Beneath,
    pointer: &Pointer,
) -> io::Result<Result<(), String>> {
    let oid = &pointer.oid;
    let to = store.join("objects").join(pointer.place());
    if fs::metadata(&to).is_ok_and(|known| known.is_file() && known.len() == pointer.size) {
        return Ok(Ok(()));
    }
    let from = Path::new("git/lfs/objects").join(pointer.place());
    let Some(mut object) = run.open_file(&from)? else {
        return Ok(Err(format!(
            "it names the object {oid} of Git LFS, which is not here"
        )));
    };
    if pointer.size > OBJECT_MAX || object.metadata()?.len() != pointer.size {
        return Ok(Err(format!(
            "the object {oid} of Git LFS has another size than its pointer says"
        )));
    }
    let temporary = store.join("tmp");
    fs::create_dir_all(&temporary)?;
    let copy_number = COPIES.fetch_add(1, Ordering::Relaxed);
    let name = format!("premath-{}-{copy_number}-{oid}", std::process::id());
    let temporary = temporary.join(name);
    let copied = copy(&mut object, &temporary, pointer.size).and_then(|digest| {
        if digest != *oid {
            return Ok(Err(format!("the object {oid} of Git LFS is corrupt")));
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&temporary, &to).map(Ok)
    });
    if !matches!(copied, Ok(Ok(()))) {
        let _ = fs::remove_file(&temporary);
    }
    copied
}

/// Copies a file, at most so many bytes, and returns the digest of what was
/// written.
fn copy(from: &mut File, to: &Path, most: u64) -> io::Result<String> {
    let _ = fs::remove_file(to);
    let mut to = File::create_new(to)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut from = from.take(most);
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            break;
        }
        digest.update(&piece[..count]);
        to.write_all(&piece[..count])?;
    }
    to.sync_data()?;
    let digest = digest.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "dd4027146188fe38fc13118a8a870a012e78654c6f923d11bf6a81c265902061";

    fn pointer(size: u64) -> String {
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {size}\n")
    }

    #[test]
    fn a_pointer_is_read_and_nothing_else() {
        let read = Pointer::parse(pointer(100_000).as_bytes()).unwrap();
        assert_eq!((read.oid.as_str(), read.size), (OID, 100_000));
        assert_eq!(read.place(), Path::new("dd").join("40").join(OID));
        for text in [
            "",
            "version 1\n",
            "version https://git-lfs.github.com/spec/v1\noid sha256:../../x\nsize 1\n",
            "version https://git-lfs.github.com/spec/v1\nsize 1\n",
            "version https://git-lfs.github.com/spec/v1\nnonsense\n",
        ] {
            assert_eq!(Pointer::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn lanes_take_in_the_same_object_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let content = vec![b'x'; 8 << 20];
        let digest = Sha256::digest(&content);
        let pointer = Pointer {
            oid: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            size: content.len() as u64,
        };
        let at = folder.path().join("git/lfs/objects").join(pointer.place());
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, &content).unwrap();
        std::thread::scope(|scope| {
            let take = || take_in(&store, &Beneath::open(folder.path()).unwrap(), &pointer);
            let lanes: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            for lane in lanes {
                lane.join().unwrap().unwrap().unwrap();
            }
        });
        let kept = store.join("objects").join(pointer.place());
        assert_eq!(fs::read(&kept).unwrap(), content);
        assert_eq!(fs::read_dir(store.join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn an_object_is_taken_in_only_as_its_pointer_says() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let content = b"object\n";
        let oid: String = Sha256::digest(content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let pointer = Pointer {
            oid,
            size: content.len() as u64,
        };
        let at = folder.path().join("git/lfs/objects").join(pointer.place());
        let run = || Beneath::open(folder.path()).unwrap();
        let take = || take_in(&store, &run(), &pointer).unwrap();
        assert!(take().unwrap_err().contains("not here"));
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, b"longer object\n").unwrap();
        assert!(take().unwrap_err().contains("another size"));
        fs::write(&at, b"tcejbo\n").unwrap();
        assert!(take().unwrap_err().contains("corrupt"));
        fs::remove_file(&at).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, content).unwrap();
        std::os::unix::fs::symlink(&other, &at).unwrap();
        assert!(take_in(&store, &run(), &pointer).is_err());
        let kept = store.join("objects").join(pointer.place());
        assert!(!kept.exists());
        fs::remove_file(&at).unwrap();
        fs::write(&at, content).unwrap();
        take().unwrap();
        assert_eq!(fs::read(&kept).unwrap(), content);
        let left = fs::read_dir(store.join("tmp")).unwrap().count();
        assert_eq!(left, 0);
    }
}
