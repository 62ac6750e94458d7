//! The deletion of references, which git may have packed.

use git2::{Error, Repository, RepositoryOpenFlags};
use premath_platform::file::{is_absent, open_regular};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// How much of `packed-refs` is searched for a name; a longer file may have it.
const SEARCHED: u64 = 1 << 20;

/// Looks a reference up and deletes or renames it, by a handle of the repository that
/// may do so.
///
/// To delete a packed reference, libgit2 writes `packed-refs` from the list in its
/// handle. After a write of its own it can miss that git changed the file since, and
/// the next write loses what git wrote. A packed reference is therefore deleted by a
/// handle of its own, which reads the file right before it writes.
pub(crate) fn delete_by<T>(
    git: &Repository,
    name: &str,
    delete: impl FnOnce(&Repository) -> Result<T, Error>,
) -> Result<T, Error> {
    match may_be_packed(git, name) {
        true => {
            // Not a `.git` in the folder, which a step may have made.
            let here = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
            let above: [&OsStr; 0] = [];
            delete(&Repository::open_ext(git.commondir(), here, above)?)
        }
        false => delete(git),
    }
}

fn may_be_packed(git: &Repository, name: &str) -> bool {
    match open_regular(&git.commondir().join("packed-refs")) {
        Ok(packed) => has_name(packed, name).unwrap_or(true),
        Err(error) => !is_absent(&error),
    }
}

fn has_name(packed: File, name: &str) -> std::io::Result<bool> {
    if packed.metadata()?.len() > SEARCHED {
        return Ok(true);
    }
    let wanted = format!(" {name}");
    for line in BufReader::new(packed.take(SEARCHED)).split(b'\n') {
        if line?.trim_ascii_end().ends_with(wanted.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::time::SystemTime;

    fn delete(git: &Repository, name: &str) -> Result<(), Error> {
        delete_by(git, name, |git| git.find_reference(name)?.delete())
    }

    /// Writes over `packed-refs` as git would not: it looks unchanged.
    fn write_over(packed: &Path, text: &str) {
        let before = fs::metadata(packed).unwrap();
        assert_eq!(before.len(), text.len() as u64);
        fs::write(packed, text).unwrap();
        let file = File::options().write(true).open(packed).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }

    #[test]
    fn a_packed_reference_is_deleted_by_what_the_file_has_now() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let packed = git.path().join("packed-refs");
        let tip = git.blob(b"").unwrap();
        let line = |name: &str| format!("{tip} refs/heads/{name}\n");
        fs::write(&packed, [line("a1"), line("b1"), line("c1")].concat()).unwrap();
        let file = File::options().write(true).open(&packed).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        delete(&git, "refs/heads/b1").unwrap();
        let left = fs::read_to_string(&packed).unwrap();
        assert!(!left.contains("b1") && left.contains("a1"), "{left}");
        write_over(&packed, &left.replace("a1", "a2"));
        delete(&git, "refs/heads/c1").unwrap();
        let left = fs::read_to_string(&packed).unwrap();
        assert!(left.contains("a2") && !left.contains("c1"), "{left}");
    }

    #[test]
    fn a_name_is_searched_whole() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let is_packed = |name| may_be_packed(&git, name);
        assert!(!is_packed("refs/heads/a"));
        let packed = git.path().join("packed-refs");
        let tip = git.blob(b"").unwrap();
        let text = format!("# pack-refs with: peeled\n{tip} refs/heads/a/b\n^{tip}\n");
        fs::write(&packed, text).unwrap();
        assert!(is_packed("refs/heads/a/b"));
        assert!(!is_packed("refs/heads/a"));
        assert!(!is_packed("heads/a/b"));
        let long = File::options().write(true).open(&packed).unwrap();
        long.set_len(SEARCHED + 1).unwrap();
        assert!(is_packed("refs/heads/a"));
    }
}
