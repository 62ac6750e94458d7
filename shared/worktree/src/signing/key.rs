//! Which key signs.

use super::SigningError;
use git2::{Config, Repository};
use std::path::{Path, PathBuf};

/// Where the signing key comes from, as `[signing]` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The key in this file.
    File(PathBuf),
    /// `user.signingkey` of git's configuration, where `gpg.format` is `ssh`.
    Git,
}

impl KeySource {
    /// Reads the keys of `[signing]`: `key` is a path, where `~` is the home
    /// and a relative one counts from the repository root. `None` where
    /// nothing is to be signed.
    ///
    /// # Errors
    ///
    /// What does not fit together.
    pub fn of(
        key: Option<&str>,
        use_git: bool,
        home: Option<&Path>,
        root: &Path,
    ) -> Result<Option<Self>, &'static str> {
        let key = key.map(str::trim);
        match (key, use_git) {
            (None, false) => Ok(None),
            (None, true) => Ok(Some(Self::Git)),
            (Some(_), true) => Err("`key` and `use_git = true` are mutually exclusive"),
            (Some(""), false) => Err("`key` is empty: it must be a private SSH key's file"),
            (Some(text), false) => match text.strip_prefix("~/") {
                Some(rest) => home
                    .map(|home| Some(Self::File(home.join(rest))))
                    .ok_or("cannot resolve `key`: HOME is not set"),
                None => Ok(Some(Self::File(root.join(text)))),
            },
        }
    }

    /// Returns the private key's file.
    ///
    /// # Errors
    ///
    /// [`SigningError::GitConfig`].
    pub fn path(&self, repository: &Path) -> Result<PathBuf, SigningError> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Git => key_of_git(&Repository::open(repository)?.config()?),
        }
    }
}

/// Returns the private key's file that git's configuration names.
///
/// # Errors
///
/// [`SigningError::GitConfig`].
pub(crate) fn key_of_git(config: &Config) -> Result<PathBuf, SigningError> {
    let refused = |detail: String| Err(SigningError::GitConfig(detail));
    let format = config.get_string("gpg.format").unwrap_or_default();
    if format != "ssh" {
        let found = if format.is_empty() {
            "not set"
        } else {
            &format
        };
        return refused(format!("`gpg.format` is {found}; expected `ssh`"));
    }
    let Ok(path) = config.get_path("user.signingkey") else {
        return refused("`user.signingkey` is not set".to_owned());
    };
    let text = path.to_string_lossy();
    if text.starts_with("key::") || text.starts_with("ssh-") || text.starts_with("ecdsa-") {
        return refused(
            "`user.signingkey` is a public key whose private key is in an SSH agent".into(),
        );
    }
    Ok(match text.strip_suffix(".pub") {
        Some(private) => PathBuf::from(private),
        None => path,
    })
}

/// Returns the file of allowed signers that git's configuration names.
pub fn allowed_file_of_git(repository: &Path) -> Option<PathBuf> {
    let config = Repository::open(repository).ok()?.config().ok()?;
    config.get_path("gpg.ssh.allowedSignersFile").ok()
}
