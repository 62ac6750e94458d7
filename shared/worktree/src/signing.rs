//! Signatures of commits, in the SSH form of git (`gpg.format = ssh`), made
//! and verified in process.

mod allowed;
mod key;

pub use allowed::{AllowedLineError, AllowedSigners, Signed};
pub use key::{KeySource, allowed_file_of_git};

use git2::{Commit, Oid, Repository, Signature, Tree};
use ssh_key::{HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What git's signatures are for; a signature made for another purpose is none.
pub(crate) const NAMESPACE: &str = "git";
/// The header of a commit that holds its signature.
const HEADER: &str = "gpgsig";
/// How large a key file may be.
const KEY_FILE_MAX: u64 = 64 << 10;

/// A commit could not be signed, or a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The key file cannot be read.
    #[error("cannot read the signing key {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others can read the private key.
    #[error("the signing key {} can be read by others: its mode is {mode:o}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
    },
    /// The file holds no private key in a form that is supported.
    #[error("cannot use the signing key {}: {detail}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason why the key cannot be used.
        detail: String,
    },
    /// The key needs a passphrase.
    #[error("the signing key {} is encrypted with a passphrase", path.display())]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// Git's configuration names no key that can be used.
    #[error("cannot read the signing key from git's configuration: {0}")]
    GitConfig(String),
    /// The signature could not be made.
    #[error("cannot sign the commit: {0}")]
    Sign(String),
    /// Git could not write the commit.
    #[error("cannot write the commit")]
    Git(#[from] git2::Error),
}

impl SigningError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("set `key` of [signing] to a private SSH key".to_owned()),
            Self::Exposed { path, .. } => Some(format!("chmod 600 {}", path.display())),
            Self::Key { .. } => Some(
                "create a key with `ssh-keygen -t ed25519 -N '' -f FILE`; Ed25519 and ECDSA P-256 \
                 and P-384 keys are supported"
                    .to_owned(),
            ),
            Self::Encrypted { .. } => Some(
                "a batch cannot ask for a passphrase: create a key for the harness with \
                 `ssh-keygen -t ed25519 -N '' -f FILE` and set `key` of [signing] to it"
                    .to_owned(),
            ),
            Self::GitConfig(_) => Some("set `key` of [signing], or `use_git = false`".to_owned()),
            Self::Sign(_) | Self::Git(_) => None,
        }
    }
}

/// A private key that commits are signed with.
#[derive(Clone)]
pub struct Signer {
    key: PrivateKey,
    path: PathBuf,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.fingerprint();
        f.debug_struct("Signer")
            .field("path", &self.path)
            .field("fingerprint", &fingerprint)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// Reads a private key in the OpenSSH form.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that others can read, that holds no
    /// supported private key, or whose key needs a passphrase.
    pub fn load(path: &Path) -> Result<Self, SigningError> {
        let text = read_key(path)?;
        let unusable = |detail: String| SigningError::Key {
            path: path.to_path_buf(),
            detail,
        };
        let key = PrivateKey::from_openssh(&text).map_err(|error| unusable(error.to_string()))?;
        if key.is_encrypted() {
            return Err(SigningError::Encrypted {
                path: path.to_path_buf(),
            });
        }
        // A kind of key that cannot sign is found now, not at a landing.
        key.sign(NAMESPACE, HashAlg::Sha512, b"")
            .map_err(|error| unusable(format!("{} keys: {error}", key.algorithm())))?;
        Ok(Self {
            key,
            path: path.to_path_buf(),
        })
    }

    /// Returns the file that the key was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the SHA-256 fingerprint of the public key, as ssh prints it.
    pub(crate) fn fingerprint(&self) -> String {
        self.key.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Returns the public key.
    #[cfg(test)]
    pub(crate) fn public_key(&self) -> &PublicKey {
        self.key.public_key()
    }

    /// Signs the text of a commit object; returns the value of its `gpgsig`
    /// header.
    ///
    /// # Errors
    ///
    /// [`SigningError::Sign`].
    pub(crate) fn sign_commit_buffer(&self, content: &str) -> Result<String, SigningError> {
        let failed = |error: ssh_key::Error| SigningError::Sign(error.to_string());
        let signature = self
            .key
            .sign(NAMESPACE, HashAlg::Sha512, content.as_bytes())
            .map_err(failed)?;
        let pem = signature.to_pem(LineEnding::LF).map_err(failed)?;
        Ok(pem.trim_end().to_owned())
    }
}

/// Writes a commit, signed where there is a signer; no reference is moved.
///
/// Every landing commit is written by this function.
///
/// # Errors
///
/// [`SigningError`].
pub fn write_commit(
    repository: &Repository,
    signer: Option<&Signer>,
    author: &Signature<'_>,
    message: &str,
    tree: &Tree<'_>,
    parents: &[&Commit<'_>],
) -> Result<Oid, SigningError> {
    let Some(signer) = signer else {
        return Ok(repository.commit(None, author, author, message, tree, parents)?);
    };
    let content = repository.commit_create_buffer(author, author, message, tree, parents)?;
    let content = std::str::from_utf8(&content)
        .map_err(|_| SigningError::Sign("its text is not UTF-8".to_owned()))?;
    let signature = signer.sign_commit_buffer(content)?;
    Ok(repository.commit_signed(content, &signature, Some(HEADER))?)
}

/// What a commit's signature is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommitSignature {
    /// The commit has no signature.
    None,
    /// It has one that is not of SSH, which is not judged here.
    Foreign,
    /// It is made by this key over exactly this commit.
    Good(PublicKey),
    /// It is none of this commit's, or cannot be read.
    Bad(String),
}

/// Verifies the signature of a commit by the key that it names.
///
/// Whether that key may sign is for [`AllowedSigners`].
///
/// # Errors
///
/// The commit cannot be read.
pub(crate) fn signature_of(
    repository: &Repository,
    commit: Oid,
) -> Result<CommitSignature, git2::Error> {
    let (signature, content) = match repository.extract_signature(&commit, Some(HEADER)) {
        Ok(found) => found,
        Err(error) if error.code() == git2::ErrorCode::NotFound => {
            return Ok(CommitSignature::None);
        }
        Err(error) => return Err(error),
    };
    if !signature.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
        return Ok(CommitSignature::Foreign);
    }
    let signature = match SshSig::from_pem(&*signature) {
        Ok(signature) => signature,
        Err(error) => return Ok(CommitSignature::Bad(format!("cannot be read: {error}"))),
    };
    let key = PublicKey::from(signature.public_key().clone());
    Ok(match key.verify(NAMESPACE, &content, &signature) {
        Ok(()) => CommitSignature::Good(key),
        Err(_) => CommitSignature::Bad("is not over this commit".to_owned()),
    })
}

/// Reads a private key's file, which its owner alone may read.
fn read_key(path: &Path) -> Result<String, SigningError> {
    let unread = |source| SigningError::Read {
        path: path.to_path_buf(),
        source,
    };
    let non_block = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(non_block)
        .open(path)
        .map_err(unread)?;
    let meta = file.metadata().map_err(unread)?;
    let wrong = |detail: &str| unread(io::Error::other(detail.to_owned()));
    if !meta.is_file() {
        return Err(wrong("it is not a regular file"));
    }
    if meta.len() > KEY_FILE_MAX {
        return Err(wrong("it is too large for a key"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(SigningError::Exposed {
            path: path.to_path_buf(),
            mode: meta.mode() & 0o777,
        });
    }
    let mut text = String::new();
    file.take(KEY_FILE_MAX)
        .read_to_string(&mut text)
        .map_err(unread)?;
    Ok(text)
}

/// Reads the public half of a key: the file with `.pub` behind its name, or
/// the private key itself.
///
/// # Errors
///
/// [`SigningError`].
pub fn public_half(path: &Path) -> Result<PublicKey, SigningError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    if let Ok(text) = fs::read_to_string(PathBuf::from(beside))
        && let Ok(key) = PublicKey::from_openssh(text.trim())
    {
        return Ok(key);
    }
    // The public half of an encrypted key is in the clear.
    PrivateKey::from_openssh(read_key(path)?)
        .map(|key| key.public_key().clone())
        .map_err(|error| SigningError::Key {
            path: path.to_path_buf(),
            detail: error.to_string(),
        })
}

#[cfg(test)]
mod tests;
