//! Which policies are in force (`contracts.md` 7, `tool-gate.md` 4).

use super::SettingsError;
use super::file::named_file;
use super::program::Places;
use premath_kernel::policy::retry::{self, PolicyError, RetryPolicy};
use premath_kernel::policy::turn::{self, TurnPolicy, TurnPolicyError};
use premath_memory::artifact;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A policy that a repository may have a file of.
pub(super) trait PolicyArtifact: Sized {
    /// The key that names the file.
    const KEY: &'static str;
    /// The usual place of the file, from the repository root.
    const PLACE: &'static str;
    /// What is wrong with a file.
    type Error;

    /// Reads a file.
    fn parse(bytes: &[u8]) -> Result<Self, Self::Error>;

    /// Returns the policy of a repository that has no file.
    fn embedded() -> Result<Self, Self::Error>;

    /// Returns the digest of the policy.
    fn digest(&self) -> &str;

    /// Returns the error of the settings.
    fn refused(path: PathBuf, source: Self::Error) -> SettingsError;
}

impl PolicyArtifact for RetryPolicy {
    const KEY: &'static str = "batch.retry_policy";
    const PLACE: &'static str = retry::POLICY_PLACE;
    type Error = PolicyError;

    fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        Self::parse(bytes)
    }

    fn embedded() -> Result<Self, PolicyError> {
        Self::embedded()
    }

    fn digest(&self) -> &str {
        self.policy_digest()
    }

    fn refused(path: PathBuf, source: PolicyError) -> SettingsError {
        SettingsError::Policy { path, source }
    }
}

impl PolicyArtifact for TurnPolicy {
    const KEY: &'static str = "batch.turn_policy";
    const PLACE: &'static str = turn::POLICY_PLACE;
    type Error = TurnPolicyError;

    fn parse(bytes: &[u8]) -> Result<Self, TurnPolicyError> {
        Self::parse(bytes)
    }

    fn embedded() -> Result<Self, TurnPolicyError> {
        Self::embedded()
    }

    fn digest(&self) -> &str {
        self.policy_digest()
    }

    fn refused(path: PathBuf, source: TurnPolicyError) -> SettingsError {
        SettingsError::TurnPolicy { path, source }
    }
}

/// The content of a policy's file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PolicyContent {
    /// A file, and what it has.
    File(PathBuf, Vec<u8>),
    /// No file: the embedded policy.
    Embedded,
}

impl PolicyContent {
    /// Reads the artifact that is named, from the repository root; the one in the usual
    /// place, where it is there; or none.
    fn read<P: PolicyArtifact>(
        root: &Path,
        named: Option<&str>,
        places: &Places,
    ) -> Result<Self, SettingsError> {
        if let Some(name) = named {
            let path = root.join(name);
            let bytes = named_file(places, P::KEY, name, &path)?;
            return Ok(Self::File(path, bytes));
        }
        let usual = root.join(P::PLACE);
        let bytes = artifact::read(&usual)?;
        Ok(bytes.map_or(Self::Embedded, |bytes| Self::File(usual, bytes)))
    }

    fn policy<P: PolicyArtifact>(&self) -> Result<P, SettingsError> {
        match self {
            Self::File(path, bytes) => policy_of(path, bytes),
            Self::Embedded => {
                P::embedded().map_err(|source| P::refused("(built in)".into(), source))
            }
        }
    }
}

/// Finds a policy: the artifact that is named, from the repository root; the
/// one in the usual place, where it is there; or the embedded one.
pub(super) fn policy_in<P: PolicyArtifact>(
    root: &Path,
    named: Option<&str>,
    places: &Places,
) -> Result<P, SettingsError> {
    PolicyContent::read::<P>(root, named, places)?.policy()
}

/// The content of a policy that was found to be in force. It is parsed once, and read
/// each time that it is asked about. One value is asked about one digest.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyInForce(Arc<Mutex<Option<PolicyContent>>>);

impl PolicyInForce {
    /// Reads a policy again; returns whether it still has a digest.
    pub(super) fn holds<P: PolicyArtifact>(
        &self,
        root: &Path,
        named: Option<&str>,
        digest: &str,
    ) -> Result<bool, SettingsError> {
        let content = PolicyContent::read::<P>(root, named, &Places::new())?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() == Some(&content) {
            return Ok(true);
        }
        let holds = content.policy::<P>()?.digest() == digest;
        if holds {
            *known = Some(content);
        }
        Ok(holds)
    }
}

/// Reads the retry policy that `--policy` names.
pub(super) fn policy_of_flag(path: &Path) -> Result<RetryPolicy, SettingsError> {
    let bytes = artifact::read(path)?.ok_or_else(|| SettingsError::Value {
        name: "--policy",
        detail: format!("cannot read {}: no such file", path.display()),
    })?;
    policy_of(path, &bytes)
}

fn policy_of<P: PolicyArtifact>(path: &Path, bytes: &[u8]) -> Result<P, SettingsError> {
    P::parse(bytes).map_err(|source| P::refused(path.to_path_buf(), source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FileSettings;
    use serde_json::json;

    fn write(path: &Path, id: &str) {
        let mut policy = json!({"schema": 1, "policyKind": "ci.harness.retry.policy.v1",
            "policyId": id, "rules": [], "defaultRule": {"maxAttempts": 1,
            "backoffClass": "none", "escalationAction": "stop"}});
        let digest = RetryPolicy::digest(policy.to_string().as_bytes()).unwrap();
        policy["policyDigest"] = digest.into();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, policy.to_string()).unwrap();
    }

    #[test]
    fn a_named_policy_comes_before_the_usual_one_and_that_before_the_embedded() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let id = |named| {
            policy_in::<RetryPolicy>(root, named, &Places::new())
                .map(|policy| policy.policy_id().to_owned())
                .unwrap()
        };
        let embedded = RetryPolicy::embedded().unwrap();
        assert_eq!(id(None), embedded.policy_id());
        write(&root.join(RetryPolicy::PLACE), "usual");
        write(&root.join("own.json"), "own");
        assert_eq!(id(None), "usual");
        assert_eq!(id(Some("own.json")), "own");
        assert!(policy_in::<RetryPolicy>(root, Some("none.json"), &Places::new()).is_err());
        std::fs::write(root.join(RetryPolicy::PLACE), "{}").unwrap();
        assert!(
            policy_in::<RetryPolicy>(root, None, &Places::new()).is_err(),
            "a broken one stops the run"
        );
    }

    #[test]
    fn a_policy_in_force_is_read_again_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let place = root.join(RetryPolicy::PLACE);
        let embedded = RetryPolicy::embedded().unwrap();
        let in_force = PolicyInForce::default();
        let holds = |digest: &str| in_force.holds::<RetryPolicy>(root, None, digest);
        for _ in 0..2 {
            assert!(holds(embedded.policy_digest()).unwrap());
            write(&place, "other");
            assert!(!holds(embedded.policy_digest()).unwrap());
            std::fs::write(&place, RetryPolicy::embedded_text()).unwrap();
            assert!(holds(embedded.policy_digest()).unwrap());
            std::fs::write(&place, "{}").unwrap();
            assert!(holds(embedded.policy_digest()).is_err());
            std::fs::remove_file(&place).unwrap();
        }
    }

    #[test]
    fn a_named_policy_that_is_missing_is_an_error_of_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[batch]\nretry_policy = \"nofile\"\n";
        let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        let error =
            policy_in::<RetryPolicy>(folder.path(), Some("nofile"), &file.places).unwrap_err();
        assert_eq!(
            error.to_string(),
            "h.toml:2: `retry_policy`: cannot read nofile: no such file"
        );
        assert_eq!(
            (error.exit_code(), error.hint()),
            (crate::exit::USAGE, None)
        );
    }
}
