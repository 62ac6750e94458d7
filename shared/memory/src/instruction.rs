//! Instruction envelopes and the active instruction policy as files
//! (`contracts.md` 8).

use crate::artifact;
use crate::error::StoreError;
use crate::untrusted::{SETTINGS_MAX, read_in_checkout};
use premath_kernel::authority::instruction::{
    EnvelopeError, INSTRUCTION_POLICY_FILE, Instruction, InstructionPolicy, InstructionPolicyError,
};
use premath_kernel::failure::FailureClass;
use std::path::{Path, PathBuf};

/// An envelope or a policy could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InstructionFileError {
    /// The envelope's file cannot be read.
    #[error("cannot read the instruction")]
    EnvelopeFile(#[source] StoreError),
    /// It is not an envelope.
    #[error("{path}")]
    Envelope {
        /// The file.
        path: PathBuf,
        /// The error in the envelope.
        source: EnvelopeError,
    },
    /// The policy's file cannot be read.
    #[error("cannot read the instruction policy")]
    PolicyFile(#[source] StoreError),
    /// It is not a policy, or not the one that its digest refers to.
    #[error("{path}")]
    Policy {
        /// The artifact.
        path: PathBuf,
        /// The error in the policy.
        source: InstructionPolicyError,
    },
}

impl InstructionFileError {
    /// Returns the failure class.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::EnvelopeFile(_) => FailureClass::InstructionEnvelopeUnreadable,
            Self::Envelope { source, .. } => source.class(),
            Self::PolicyFile(_) => FailureClass::InstructionPolicyUnreadable,
            Self::Policy { source, .. } => source.class(),
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EnvelopeFile(_) => Some("create one with `premath instruction new`".to_owned()),
            Self::Policy {
                source: InstructionPolicyError::DigestMismatch { .. },
                ..
            } => Some(
                "the artifact changed after its approval: restore it, or enter its new digest"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The instruction policy that is active in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivePolicy {
    /// The policy.
    pub policy: InstructionPolicy,
    /// Its artifact; the embedded one has none.
    pub path: Option<PathBuf>,
}

impl ActivePolicy {
    /// Reads the policy that is named, that of the repository root
    /// ([`INSTRUCTION_POLICY_FILE`]), or else the embedded one.
    ///
    /// # Errors
    ///
    /// [`InstructionFileError`]; a policy that is there and cannot be used is
    /// never skipped.
    pub fn find(named: Option<&Path>, repository: &Path) -> Result<Self, InstructionFileError> {
        let path = named.map_or_else(
            || repository.join(INSTRUCTION_POLICY_FILE),
            Path::to_path_buf,
        );
        let read = match named {
            Some(named) => artifact::read(named),
            None => {
                let file = Path::new(INSTRUCTION_POLICY_FILE);
                read_in_checkout(repository, file, SETTINGS_MAX).map_err(StoreError::from)
            }
        };
        let bytes = read.map_err(InstructionFileError::PolicyFile)?;
        let Some(bytes) = bytes else {
            if named.is_some() {
                return Err(InstructionFileError::PolicyFile(StoreError::Missing {
                    path,
                }));
            }
            let policy =
                InstructionPolicy::embedded().map_err(|source| InstructionFileError::Policy {
                    path: "(embedded)".into(),
                    source,
                })?;
            return Ok(Self { policy, path: None });
        };
        match InstructionPolicy::parse(&bytes) {
            Ok(policy) => Ok(Self {
                policy,
                path: Some(path),
            }),
            Err(source) => Err(InstructionFileError::Policy { path, source }),
        }
    }
}

/// Reads an envelope.
///
/// # Errors
///
/// [`InstructionFileError`], naming the file and the field.
pub fn read(path: &Path) -> Result<Instruction, InstructionFileError> {
    let bytes = artifact::read(path)
        .and_then(|bytes| {
            bytes.ok_or_else(|| StoreError::Missing {
                path: path.to_path_buf(),
            })
        })
        .map_err(InstructionFileError::EnvelopeFile)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Instruction::parse(&name, &bytes).map_err(|source| InstructionFileError::Envelope {
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_repository_s_policy_wins_and_a_broken_one_is_never_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(ActivePolicy::find(None, root).unwrap().path, None);
        let path = root.join(INSTRUCTION_POLICY_FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, InstructionPolicy::embedded_text()).unwrap();
        let found = ActivePolicy::find(None, root).unwrap();
        assert_eq!(found.path.as_deref(), Some(&*path));
        let text = InstructionPolicy::embedded_text().replace("verify", "verifi");
        fs::write(&path, text).unwrap();
        let error = ActivePolicy::find(None, root).unwrap_err();
        let class = FailureClass::InstructionPolicyDigestMismatch;
        assert_eq!(error.class(), class);
        let error = ActivePolicy::find(Some(&root.join("none")), root).unwrap_err();
        assert_eq!(error.class(), FailureClass::InstructionPolicyUnreadable);
    }

    #[test]
    fn an_envelope_that_is_not_there_is_unreadable() {
        let error = read(Path::new("none/20260305T100000Z-a.json")).unwrap_err();
        assert_eq!(error.class(), FailureClass::InstructionEnvelopeUnreadable);
    }
}
