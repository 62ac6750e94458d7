//! The retry policy that the loops run with here, and where the configuration
//! says that policies are (`contracts.md` 7).

use crate::error::CliError;
use crate::policy_kind::PolicyKind;
use premath_kernel::policy::retry::{POLICY_PLACE, RetryPolicy};
use premath_memory::StoreError;
use premath_memory::governance::PolicyPackage;
use premath_memory::roots::MemoryRoots;
use premath_memory::untrusted::{SETTINGS_MAX, read_in_checkout};
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A policy and its file.
#[derive(Debug)]
pub(crate) struct RetryPolicyFile {
    policy: RetryPolicy,
    /// The artifact's file; the embedded policy has none.
    path: Option<PathBuf>,
}

impl RetryPolicyFile {
    /// Returns the policy of a repository that has none of its own.
    pub(crate) fn embedded() -> Result<Self, CliError> {
        let policy = RetryPolicy::embedded().map_err(|source| CliError::Policy {
            path: "(embedded)".into(),
            source,
        })?;
        Ok(Self { policy, path: None })
    }

    /// Finds the policy as the loops do: the artifact that `[batch]
    /// retry_policy` names, relative to the repository root; the one in the
    /// usual place, where it is there; or the embedded one.
    ///
    /// # Errors
    ///
    /// A configuration or an artifact that cannot be read, and an artifact that
    /// is not a policy or bears another digest than its content's.
    pub(crate) fn find(config: Option<&Path>) -> Result<Self, CliError> {
        let root = MemoryRoots::discover(Path::new("."))?.repository;
        if let Some(name) = Configuration::read(config)?.retry_policy {
            return Self::read(&root.join(name));
        }
        let usual = root.join(POLICY_PLACE);
        match usual.exists() {
            true => Self::read(&usual),
            false => Self::embedded(),
        }
    }

    /// Reads the policy of a file.
    ///
    /// # Errors
    ///
    /// As [`RetryPolicyFile::find`].
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let path = path.to_path_buf();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => {
                let kind = PolicyKind::Retry;
                return Err(CliError::PolicyFile { kind, path, source });
            }
        };
        match RetryPolicy::parse(&bytes) {
            Ok(policy) => Ok(Self {
                policy,
                path: Some(path),
            }),
            Err(source) => Err(CliError::Policy { path, source }),
        }
    }

    /// Returns the policy.
    pub(crate) const fn policy(&self) -> &RetryPolicy {
        &self.policy
    }

    /// Returns its file; the embedded one has none.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns its location, for display.
    pub(crate) fn place(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "embedded".to_owned(),
        }
    }

    /// Returns what a JSON answer reports about it.
    pub(crate) fn document(&self) -> Value {
        json!({
            "source": if self.path.is_some() { "file" } else { "embedded" },
            "path": self.path.as_ref().map(|path| path.display().to_string()),
            "policyId": self.policy.policy_id(),
            "policyDigest": self.policy.policy_digest(),
        })
    }
}

const HARNESS_TOML: &str = "harness.toml";

/// What of `[batch]` and `[governance]` in `harness.toml` the commands need. The other
/// keys are the loops' to check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// The retry policy's artifact.
    pub(crate) retry_policy: Option<String>,
    /// The turn policy's artifact.
    pub(crate) turn_policy: Option<String>,
    /// What changes of issues rest on.
    pub(crate) mutation_mode: Option<String>,
    /// Why issues may be changed without an instruction.
    pub(crate) override_reason: Option<String>,
    /// The last month in which that is good.
    pub(crate) support_until: Option<String>,
    /// The instruction that changes rest on, from the repository root.
    pub(crate) instruction: Option<String>,
    /// The policy package of the governance profile.
    pub(crate) governance: PolicyPackage,
}

impl Configuration {
    /// Reads the file that is named, or `harness.toml` of the repository root
    /// where there is one.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self, CliError> {
        let path = match named {
            Some(path) => path.to_path_buf(),
            None => MemoryRoots::discover(Path::new("."))?
                .repository
                .join(HARNESS_TOML),
        };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse_file(&text, &path),
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(source) => Err(CliError::File {
                operation: "read",
                path,
                source,
            }),
        }
    }

    /// Reads `harness.toml` of a repository root, which a step may write, where there is
    /// one.
    pub(crate) fn of_checkout(repository: &Path) -> Result<Self, CliError> {
        let read = read_in_checkout(repository, Path::new(HARNESS_TOML), SETTINGS_MAX);
        let bytes = read.map_err(StoreError::from)?.unwrap_or_default();
        Self::parse_file(
            &String::from_utf8_lossy(&bytes),
            &repository.join(HARNESS_TOML),
        )
    }

    fn parse_file(text: &str, path: &Path) -> Result<Self, CliError> {
        Self::parse(text).map_err(|detail| CliError::Usage(format!("{}: {detail}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.message().to_owned())?;
        let value_in = |name: &str, key: &str| {
            let value = table.get(name).and_then(|table| table.get(key));
            match value {
                None => Ok(None),
                Some(toml::Value::String(text)) => Ok(Some(text.clone())),
                Some(other) => Err(format!(
                    "`{key}` under [{name}] must be a string, not of type {}",
                    other.type_str()
                )),
            }
        };
        let value = |key: &str| value_in("batch", key);
        let package = |key: &str| value_in("governance", key);
        Ok(Self {
            retry_policy: value("retry_policy")?,
            turn_policy: value("turn_policy")?,
            mutation_mode: value("mutation_mode")?,
            override_reason: value("override_reason")?,
            support_until: value("support_until")?,
            instruction: value("instruction")?,
            governance: PolicyPackage {
                package: package("package")?,
                package_ref: package("package_ref")?,
                expected_digest: package("expected_digest")?,
            },
        })
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
                Err(
                    "`retry_policy` under [batch] must be a string, not of type integer".to_owned(),
                ),
            ),
        ] {
            assert_eq!(
                Configuration::parse(text).map(|found| found.retry_policy),
                expected,
                "{text}"
            );
        }
        assert!(Configuration::parse("[batch").is_err());
    }
}
