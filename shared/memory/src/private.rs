//! `.premath/private/` of the main worktree: what no step may read, such as the
//! token of the MCP server.

use crate::artifact;
use crate::error::StoreError;
use crate::roots::MemoryRoots;
use premath_kernel::json::{canonical, token};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a new secret, before they are written as text.
const SECRET_BYTES: usize = 32;
/// The longest secret that is read.
const SECRET_MAX: u64 = 4096;

/// How many earlier contents of sign-in files are kept.
const REPLACED_MAX: usize = 32;

/// The private folder of a repository.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// The folder in it of what sign-in files had before.
    pub(crate) const REPLACED: &'static str = "sign-in";

    /// Names the folder.
    pub fn of(roots: &MemoryRoots) -> Self {
        Self {
            path: roots.repository.join(".premath").join("private"),
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a secret of that name; makes a random one where there is none.
    /// The folder has mode 0700 and the file 0600 afterwards.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], also where the folder or the file is a link.
    pub fn secret(&self, name: &str) -> Result<String, StoreError> {
        self.prepare()?;
        let path = self.path.join(name);
        match self.make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&path),
            Err(error) => Err(StoreError::io("create", &path)(error)),
            Ok(secret) => Ok(secret),
        }
    }

    /// Returns the secret of that name, which must be there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub(crate) fn read(&self, name: &str) -> Result<String, StoreError> {
        read(&self.path.join(name))
    }

    /// Removes the secret of that name.
    pub(crate) fn forget(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Keeps what a sign-in file of the user's has before a batch replaces it; returns
    /// the copy, which is whole. Of all copies the latest 32 stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn keep_replaced(
        &self,
        batch: &str,
        file: &Path,
        bytes: &[u8],
    ) -> Result<PathBuf, StoreError> {
        self.prepare_below(Self::REPLACED)?;
        let folder = self.path.join(Self::REPLACED);
        let kept = folder.join(name_of_copy(batch, file, bytes));
        if fs::symlink_metadata(&kept).is_err() {
            artifact::write_durably(&kept, bytes)?;
        }
        // Names of batches begin with their time.
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut copies: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
        copies.sort();
        copies.retain(|copy| *copy != kept);
        let surplus = (copies.len() + 1).saturating_sub(REPLACED_MAX);
        for old in copies.iter().take(surplus) {
            // Another lane may remove it at the same time.
            let _ = fs::remove_file(old);
        }
        Ok(kept)
    }

    fn prepare(&self) -> Result<(), StoreError> {
        prepare(&self.path)
    }

    /// Makes the folder and one in it, both with mode 0700.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`], also where one of them is a link.
    pub(crate) fn prepare_below(&self, name: &str) -> Result<(), StoreError> {
        self.prepare()?;
        prepare(&self.path.join(name))
    }

    fn make(&self, path: &Path) -> io::Result<String> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let mut bytes = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let secret = canonical::hex(&bytes);
        file.write_all(format!("{secret}\n").as_bytes())?;
        file.sync_all()?;
        Ok(secret)
    }
}

/// Names a copy by batch, file and content, so that none takes the place of another.
fn name_of_copy(batch: &str, file: &Path, bytes: &[u8]) -> String {
    let place = canonical::sha256_hex(file.as_os_str().as_encoded_bytes());
    let content = canonical::sha256_hex(bytes);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let [batch, name] = [batch, &*name].map(token::encode);
    format!("{batch}-{}-{}-{name}", &place[..12], &content[..12])
}

fn prepare(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(StoreError::io("make", path))?;
    let meta = fs::symlink_metadata(path).map_err(StoreError::io("look at", path))?;
    if meta.is_symlink() {
        let cause = io::Error::other("it is a link");
        return Err(StoreError::io("use", path)(cause));
    }
    fs::set_permissions(path, Permissions::from_mode(0o700))
        .map_err(StoreError::io("restrict", path))
}

fn read(path: &Path) -> Result<String, StoreError> {
    let open = || -> io::Result<String> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.set_permissions(Permissions::from_mode(0o600))?;
        let mut text = String::new();
        file.take(SECRET_MAX).read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    };
    open().map_err(StoreError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_secret_is_made_once_and_its_owner_alone_reads_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::of(&MemoryRoots::at(root.path()));
        let secret = folder.secret("token").unwrap();
        assert_eq!(secret.len(), 2 * SECRET_BYTES);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(folder.secret("token").unwrap(), secret);
        assert_ne!(folder.secret("other").unwrap(), secret);
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.path().join("token")), 0o600);
    }

    #[test]
    fn a_link_in_the_place_of_folder_or_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::of(&MemoryRoots::at(root.path()));
        folder.secret("token").unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::rename(folder.path().join("token"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("token")).unwrap();
        folder.secret("token").unwrap_err();
        fs::rename(folder.path(), root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(root.path().join("moved"), folder.path()).unwrap();
        folder.secret("token").unwrap_err();
    }
    #[test]
    fn all_that_a_batch_replaced_is_kept_and_the_oldest_copies_go() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::of(&MemoryRoots::at(root.path()));
        let file = Path::new("/u/.codex/auth.json");
        let first = folder.keep_replaced("hb1_2", file, b"mine").unwrap();
        let again = folder.keep_replaced("hb1_2", file, b"mine").unwrap();
        assert_eq!(first, again);
        // The user signed in again meanwhile.
        let second = folder.keep_replaced("hb1_2", file, b"new").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"mine");
        assert_eq!(fs::read(&second).unwrap(), b"new");
        let other = Path::new("/u/.gemini/oauth_creds.json");
        let beside = folder.keep_replaced("hb1_2", other, b"other").unwrap();
        assert_ne!(first, beside);
        for batch in 0..REPLACED_MAX {
            let batch = format!("hb1_3{batch:03}");
            folder.keep_replaced(&batch, file, b"later").unwrap();
        }
        assert!(!first.exists() && !beside.exists());
        let mode = fs::metadata(folder.path().join(PrivateFolder::REPLACED)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o700);
    }
}
