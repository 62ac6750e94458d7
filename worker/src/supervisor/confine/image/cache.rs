//! Where unpacked images are kept: a folder for each id, which is there only
//! when it is whole.

use super::{ContainerImage, ImageError};
use crate::supervisor::confine::scratch;
use premath_memory::{CacheLock, CacheUse};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process may take to unpack the same image.
const WAIT: Duration = Duration::from_secs(15 * 60);

/// How often an image may be removed while it is to be used.
const ROUNDS: usize = 3;

/// Returns the folder with the files of an image, and the right to use it;
/// `fill` puts them into an empty one where they are not there yet.
pub(super) fn folder_of(
    cache: &Path,
    image: &ContainerImage,
    fill: impl Fn(&Path) -> Result<(), ImageError>,
) -> Result<(PathBuf, CacheUse), ImageError> {
    let failed = |error: io::Error| ImageError::Cache {
        folder: cache.to_path_buf(),
        detail: error.to_string(),
    };
    let cache = prepared(cache).map_err(failed)?;
    let whole = cache.join(&image.id);
    // Beside the files: a command could lock what it can read.
    let lock = cache.join(format!("{}.flock", image.id));
    for _ in 0..ROUNDS {
        if let Some(in_use) = CacheUse::begin(&lock)?
            && whole.is_dir()
        {
            return Ok((whole, in_use));
        }
        let _lock = CacheLock::acquire(lock.clone(), WAIT)?;
        if whole.is_dir() {
            continue;
        }
        let new = cache.join(format!("{}.new", image.id));
        let made = make(&new, &fill).and_then(|()| fs::rename(&new, &whole).map_err(failed));
        if made.is_err()
            && let Err(error) = scratch::remove(&new)
        {
            tracing::warn!(folder = %new.display(), %error, "an image that is not whole is left");
        }
        made?;
    }
    Err(failed(io::Error::other("another process removes it")))
}

/// Fills a new folder, which is on the disk afterwards.
fn make(new: &Path, fill: impl Fn(&Path) -> Result<(), ImageError>) -> Result<(), ImageError> {
    let failed = |error: io::Error| ImageError::Cache {
        folder: new.to_path_buf(),
        detail: error.to_string(),
    };
    // Left by a killed process: the lock is ours.
    scratch::remove(new).map_err(failed)?;
    DirBuilder::new().mode(0o755).create(new).map_err(failed)?;
    fill(new)?;
    let synced = File::open(new).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
    synced.map_err(failed)
}

/// Makes the folder of all images, and returns it without links on the way.
fn prepared(cache: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(cache)?;
    let cache = fs::canonicalize(cache)?;
    let meta = fs::metadata(&cache)?;
    let user = rustix::process::geteuid().as_raw();
    if ![0, user].contains(&meta.uid()) || meta.mode() & 0o022 != 0 {
        return Err(io::Error::other("other users can write it"));
    }
    Ok(cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn image() -> ContainerImage {
        ContainerImage {
            name: "x".to_owned(),
            id: "a".repeat(64),
        }
    }

    #[test]
    fn what_is_not_whole_is_made_again_and_what_is_whole_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        let fails = folder_of(&cache, &image(), |folder| {
            fs::write(folder.join("half"), "").unwrap();
            Err(ImageError::Missing)
        });
        assert!(matches!(fails, Err(ImageError::Missing)));
        let left: Vec<_> = fs::read_dir(&cache).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "the lock alone is left: {left:?}");
        // As a killed process leaves it.
        let new = cache.join(format!("{}.new", image().id));
        fs::create_dir(&new).unwrap();
        fs::write(new.join("half"), "").unwrap();
        let made = folder_of(&cache, &image(), |folder| {
            fs::write(folder.join("file"), "").unwrap();
            Ok(())
        });
        let made = made.unwrap();
        assert!(made.0.join("file").is_file() && !made.0.join("half").exists());
        let again = folder_of(&cache, &image(), |_| Err(ImageError::Missing));
        assert_eq!(again.unwrap(), made);
        // No clean-up removes it as long as it is used.
        let is_used = || premath_memory::leftover::images(&cache)[0].is_used;
        assert!(is_used());
        drop(made);
        assert!(!is_used());
    }

    #[test]
    fn a_folder_that_others_write_keeps_no_images() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        fs::create_dir(&cache).unwrap();
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = folder_of(&cache, &image(), |_| Ok(()));
        assert!(matches!(refused, Err(ImageError::Cache { .. })));
    }
}
