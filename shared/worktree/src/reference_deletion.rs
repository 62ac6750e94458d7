//! The deletion of references, which git may have packed.

use crate::packed_refs::PackedRefs;
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
    let Some(unpacked) = Unpacked::of(git, &name)? else {
        return reference.delete();
    };
    let mut now = unpacked.git.find_reference(&name)?;
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
/// [`Error`] of git where there is no such handle.
pub(crate) fn delete_by<T>(
    git: &Repository,
    name: &str,
    delete: impl FnOnce(&Repository) -> Result<T, Error>,
) -> Result<T, Error> {
    match Unpacked::of(git, name)? {
        Some(unpacked) => delete(&unpacked.git),
        None => delete(git),
    }
}

/// A repository in which a reference is not packed, and stays so.
///
/// A packed one must not be deleted by libgit2: see [`PackedRefs`].
struct Unpacked {
    git: Repository,
    _packed: PackedRefs,
}

impl Unpacked {
    /// Unpacks a reference; `None` where it is not packed.
    fn of(git: &Repository, name: &str) -> Result<Option<Self>, Error> {
        if !may_be_packed(git, name) {
            return Ok(None);
        }
        let packed = PackedRefs::lock(git)?;
        packed.unpack(name)?;
        // Not a `.git` in the folder, which a step may have made. The list of packed
        // references in a handle may be an old one.
        let here = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        let above: [&OsStr; 0] = [];
        Ok(Some(Self {
            git: Repository::open_ext(git.commondir(), here, above)?,
            _packed: packed,
        }))
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

    /// Packs references as git does, each by itself, while others are deleted.
    #[test]
    fn no_deletion_loses_what_git_packs_meanwhile() {
        const COUNT: usize = 100;
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let tip = git.blob(b"").unwrap();
        let line = |name: &str, number: usize| format!("{tip} refs/heads/{name}-{number:04}\n");
        let path = git.path();
        let packed = path.join("packed-refs");
        let texts = (0..COUNT * 20).map(|number| line("old", number));
        fs::write(&packed, texts.collect::<String>()).unwrap();
        let pack = |number| {
            let lock = path.join("packed-refs.lock");
            let free = (0..500).any(|_| {
                let taken = File::create_new(&lock).is_ok();
                taken || {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    false
                }
            });
            assert!(free);
            let text = fs::read_to_string(&packed).unwrap() + &line("new", number);
            fs::write(path.join("packed-refs.new"), text).unwrap();
            fs::rename(path.join("packed-refs.new"), &packed).unwrap();
            fs::remove_file(lock).unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..COUNT).for_each(pack));
            let git = Repository::open(path).unwrap();
            for number in 0..COUNT {
                let name = format!("refs/heads/old-{number:04}");
                delete(&git, git.find_reference(&name).unwrap()).unwrap();
            }
        });
        let text = fs::read_to_string(&packed).unwrap();
        for number in 0..COUNT {
            assert!(text.contains(&line("new", number)), "{number} is lost");
            assert!(!text.contains(&line("old", number)), "{number} is there");
        }
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
