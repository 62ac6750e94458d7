//! The deletion of references, which git may have packed.

use git2::{Error, Reference, Repository, RepositoryOpenFlags};
use premath_platform::file::{is_absent, open_regular};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// How much of `packed-refs` is searched for a name; a longer file may have it.
const SEARCHED: u64 = 1 << 20;

/// Deletes a reference that is still where it was found.
///
/// # Errors
///
/// [`Error`] of git, also where it moved or is gone.
pub(crate) fn delete(git: &Repository, mut reference: Reference<'_>) -> Result<(), Error> {
    let name = reference.name()?.to_owned();
    let Some(fresh) = handle_for_packed(git, &name)? else {
        return reference.delete();
    };
    let mut now = fresh.find_reference(&name)?;
    let to = |at: &Reference<'_>| (at.target(), at.symbolic_target_bytes().map(<[u8]>::to_vec));
    match to(&now) == to(&reference) {
        true => now.delete(),
        false => Err(Error::from_str("the reference moved")),
    }
}

/// Looks a reference up and deletes or renames it, by a handle that may do so.
///
/// # Errors
///
/// [`Error`] where no handle can be opened.
pub(crate) fn delete_by<T>(
    git: &Repository,
    name: &str,
    delete: impl FnOnce(&Repository) -> Result<T, Error>,
) -> Result<T, Error> {
    match handle_for_packed(git, name)? {
        Some(fresh) => delete(&fresh),
        None => delete(git),
    }
}

/// Returns a handle of its own for the deletion of a packed reference.
///
/// To delete one, libgit2 writes `packed-refs` from the list in its handle. After a
/// write of its own it can miss that git changed the file since, and the next write
/// loses what git wrote. A new handle reads the file right before it writes.
fn handle_for_packed(git: &Repository, name: &str) -> Result<Option<Repository>, Error> {
    if !may_be_packed(git, name) {
        return Ok(None);
    }
    // Not a `.git` in the folder, which a step may have made.
    let here = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
    let above: [&OsStr; 0] = [];
    Repository::open_ext(git.commondir(), here, above).map(Some)
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

    /// Writes over `packed-refs` as git would not: it looks unchanged.
    fn write_over(packed: &Path, text: &str) {
        let before = fs::metadata(packed).unwrap();
        assert_eq!(before.len(), text.len() as u64);
        fs::write(packed, text).unwrap();
        let file = File::options().write(true).open(packed).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }

    /// Deletes two packed references, while git packs another one in between.
    fn check(delete: impl Fn(&Repository, &str) -> Result<(), Error>) {
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
    fn a_packed_reference_is_deleted_by_what_the_file_has_now() {
        check(|git, name| super::delete(git, git.find_reference(name)?));
        check(|git, name| delete_by(git, name, |git| git.find_reference(name)?.delete()));
    }

    #[test]
    fn a_packed_reference_that_moved_stays() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let [one, other] = ["1", "2"].map(|text| git.blob(text.as_bytes()).unwrap());
        let name = "refs/heads/a";
        let packed = git.path().join("packed-refs");
        fs::write(&packed, format!("{one} {name}\n")).unwrap();
        let found = git.find_reference(name).unwrap();
        git.reference(name, other, true, "").unwrap();
        assert!(super::delete(&git, found).is_err());
        assert_eq!(git.refname_to_id(name).unwrap(), other);
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
