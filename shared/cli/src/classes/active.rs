//! The retry policy that the loops run with here (`contracts.md` 7).

use crate::error::CliError;
use premath_kernel::retry::RetryPolicy;
use premath_memory::roots::MemoryRoots;
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a repository usually keeps a policy of its own.
const USUAL: &str = "policies/control/harness-retry-policy-v1.json";

/// A policy and where it stands.
#[derive(Debug)]
pub(super) struct ActivePolicy {
    policy: RetryPolicy,
    /// The artifact's file; the embedded policy has none.
    path: Option<PathBuf>,
    /// An artifact in the usual place that no configuration names.
    unnamed: Option<PathBuf>,
}

impl ActivePolicy {
    /// Returns the policy of a repository that has none of its own.
    pub(super) fn embedded() -> Result<Self, CliError> {
        let policy = RetryPolicy::embedded().map_err(|source| CliError::Policy {
            path: "(embedded)".into(),
            source,
        })?;
        Ok(Self {
            policy,
            path: None,
            unnamed: None,
        })
    }

    /// Finds the policy as the loops do: the artifact that `[batch]
    /// retry_policy` names, relative to the repository root, or the embedded
    /// one.
    ///
    /// # Errors
    ///
    /// A configuration or an artifact that cannot be read, and an artifact
    /// that is no policy or bears another digest than its content's.
    pub(super) fn find(config: Option<&Path>) -> Result<Self, CliError> {
        let root = MemoryRoots::discover(Path::new("."))?.repository;
        let Some(name) = configured(config, &root)? else {
            let usual = root.join(USUAL);
            return Ok(Self {
                unnamed: usual.exists().then_some(usual),
                ..Self::embedded()?
            });
        };
        let path = root.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(CliError::PolicyFile { path, source }),
        };
        match RetryPolicy::parse(&bytes) {
            Ok(policy) => Ok(Self {
                policy,
                path: Some(path),
                unnamed: None,
            }),
            Err(source) => Err(CliError::Policy { path, source }),
        }
    }

    /// Returns the policy.
    pub(super) const fn policy(&self) -> &RetryPolicy {
        &self.policy
    }

    /// Returns where it stands, for a person.
    pub(super) fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "embedded".to_owned(),
        }
    }

    /// Returns what a JSON answer says of it.
    pub(super) fn document(&self) -> Value {
        json!({
            "source": if self.path.is_some() { "file" } else { "embedded" },
            "path": self.path.as_ref().map(|path| path.display().to_string()),
            "policyId": self.policy.policy_id(),
            "policyDigest": self.policy.policy_digest(),
        })
    }

    /// Returns what a person should know beside it.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.unnamed.iter().map(|path| {
            format!(
                "note: the loops do not use {}: no `retry_policy` in `[batch]` of harness.toml names it",
                path.display()
            )
        })
    }
}

/// Returns the policy that the configuration names. Its other keys are the
/// loops' to check.
fn configured(named: Option<&Path>, root: &Path) -> Result<Option<String>, CliError> {
    let path = named.map_or_else(|| root.join("harness.toml"), Path::to_path_buf);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(CliError::File {
                operation: "read",
                path,
                source,
            });
        }
    };
    retry_policy(&text).map_err(|detail| CliError::Usage(format!("{}: {detail}", path.display())))
}

fn retry_policy(text: &str) -> Result<Option<String>, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let value = table
        .get("batch")
        .and_then(|batch| batch.get("retry_policy"));
    match value {
        None => Ok(None),
        Some(toml::Value::String(name)) => Ok(Some(name.clone())),
        Some(other) => Err(format!(
            "`retry_policy` is a text, not of type {}",
            other.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_a_policy_or_none() {
        for (text, expected) in [
            ("", Ok(None)),
            ("[batch]\nlease_ttl = \"45m\"\n", Ok(None)),
            (
                "[batch]\nretry_policy = \"a/b.json\"\n",
                Ok(Some("a/b.json".to_owned())),
            ),
            (
                "[batch]\nretry_policy = 3\n",
                Err("`retry_policy` is a text, not of type integer".to_owned()),
            ),
        ] {
            assert_eq!(retry_policy(text), expected, "{text}");
        }
        assert!(retry_policy("[batch").is_err());
    }
}
