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

/// The private folder of a repository.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// The subfolder with earlier contents of sign-in files.
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

    /// Saves the content of a sign-in file before a batch replaces it by what a step
    /// left. Returns the copy; none where the content is what a batch wrote before, so
    /// that steps cannot crowd out what the user had.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn keep_replaced(
        &self,
        file: &Path,
        (before, after): (&[u8], &[u8]),
    ) -> Result<Option<PathBuf>, StoreError> {
        self.prepare_below(Self::REPLACED)?;
        let folder = self.path.join(Self::REPLACED);
        let place = canonical::sha256_hex(file.as_os_str().as_encoded_bytes());
        let written = folder.join(format!("{}.written", &place[..12]));
        let [old, new] = [before, after].map(canonical::sha256_hex);
        let is_own = artifact::read(&written)?.as_deref() == Some(old.as_bytes());
        let name = token::encode(&file.file_name().unwrap_or_default().to_string_lossy());
        let kept = folder.join(format!("{}-{}-{name}", &place[..12], &old[..12]));
        if !is_own && fs::symlink_metadata(&kept).is_err() {
            artifact::write_durably(&kept, before)?;
        }
        artifact::write_durably(&written, new.as_bytes())?;
        Ok((!is_own).then_some(kept))
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
    fn what_the_user_had_is_kept_and_what_steps_left_is_not() {
        let root = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::of(&MemoryRoots::at(root.path()));
        let file = Path::new("/u/.codex/auth.json");
        let keep = |before: &str, after: &str| {
            let contents = (before.as_bytes(), after.as_bytes());
            folder.keep_replaced(file, contents).unwrap()
        };
        let first = keep("mine", "theirs 0").unwrap();
        for step in 0..40 {
            let [before, after] = [step, step + 1].map(|step| format!("theirs {step}"));
            assert_eq!(keep(&before, &after), None);
        }
        // The user signs in again.
        let second = keep("mine again", "theirs").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"mine");
        assert_eq!(fs::read(&second).unwrap(), b"mine again");
        // The replacement failed, and is tried again.
        assert_eq!(keep("mine again", "theirs"), Some(second));
        let other = Path::new("/u/.gemini/oauth_creds.json");
        let beside = folder.keep_replaced(other, (b"mine", b"theirs")).unwrap();
        assert_ne!(beside, Some(first));
        let at = folder.path().join(PrivateFolder::REPLACED);
        assert_eq!(mode(&at), 0o700);
    }
}
