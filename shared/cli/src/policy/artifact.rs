//! A policy artifact as the commands read it.

use super::Configuration;
use crate::error::CliError;
use crate::policy_kind::PolicyKind;
use crate::terminal::plain;
use premath_kernel::policy::retry::{PolicyError, RetryPolicy};
use premath_kernel::policy::turn::{TurnPolicy, TurnPolicyError};
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A valid policy of either kind.
#[derive(Debug)]
pub(super) enum Policy {
    Turn(Box<TurnPolicy>),
    Retry(RetryPolicy),
}

impl Policy {
    pub(super) const fn kind(&self) -> PolicyKind {
        match self {
            Self::Turn(_) => PolicyKind::Turn,
            Self::Retry(_) => PolicyKind::Retry,
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Turn(policy) => policy.policy_id(),
            Self::Retry(policy) => policy.policy_id(),
        }
    }

    pub(super) fn digest(&self) -> &str {
        match self {
            Self::Turn(policy) => policy.policy_digest(),
            Self::Retry(policy) => policy.policy_digest(),
        }
    }

    /// Reads an artifact of a kind; `path` is for errors.
    pub(super) fn parse(kind: PolicyKind, path: &Path, bytes: &[u8]) -> Result<Self, CliError> {
        let path = path.to_path_buf();
        match kind {
            PolicyKind::Turn => TurnPolicy::parse(bytes)
                .map(|policy| Self::Turn(Box::new(policy)))
                .map_err(|source| CliError::TurnPolicy { path, source }),
            PolicyKind::Retry => RetryPolicy::parse(bytes)
                .map(Self::Retry)
                .map_err(|source| CliError::Policy { path, source }),
        }
    }
}

/// A valid artifact, with all that it states.
#[derive(Debug)]
pub(super) struct Artifact {
    pub(super) policy: Policy,
    /// The file; the embedded policy has none.
    pub(super) path: Option<PathBuf>,
    /// The document as it is.
    pub(super) document: Value,
    /// Whether it bears its own digest; what is in force does.
    is_sealed: bool,
}

/// A policy in an answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactRef {
    /// The kind of policy.
    kind: PolicyKind,
    /// The artifact; null for the embedded one.
    policy_path: Option<String>,
    /// The policy's id.
    policy_id: String,
    /// The digest of its content.
    policy_digest: String,
    /// Whether the file bears that digest.
    sealed: bool,
}

impl Artifact {
    /// Finds the policy that is in force, as the loops do: the artifact that
    /// `[batch]` names, from the repository root; the one in the usual place,
    /// where it is there; or the embedded one.
    pub(super) fn in_force(kind: PolicyKind, config: Option<&Path>) -> Result<Self, CliError> {
        let root = MemoryRoots::discover(Path::new("."))?.repository;
        let configuration = Configuration::read(config)?;
        if let Some(name) = named(kind, &configuration) {
            return Self::read_kind(kind, &root.join(name));
        }
        let usual = root.join(kind.place());
        if usual.exists() {
            return Self::read_kind(kind, &usual);
        }
        Self::of(kind, None, kind.embedded_text().as_bytes())
    }

    /// Reads a file of any kind, which may be edited and not sealed yet.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let bytes = bytes_of(path)?;
        let kind = kind_of(path, &bytes)?;
        match Self::of(kind, Some(path), &bytes) {
            Err(CliError::TurnPolicy {
                source: TurnPolicyError::DigestMismatch { expected, .. },
                ..
            })
            | Err(CliError::Policy {
                source: PolicyError::DigestMismatch { expected, .. },
                ..
            }) => Self::unsealed(kind, path, &bytes, expected),
            read => read,
        }
    }

    fn unsealed(
        kind: PolicyKind,
        path: &Path,
        bytes: &[u8],
        digest: String,
    ) -> Result<Self, CliError> {
        let mut document: Value = serde_json::from_slice(bytes).unwrap_or_default();
        document["policyDigest"] = digest.into();
        let sealed = Self::of(kind, Some(path), document.to_string().as_bytes())?;
        Ok(Self {
            is_sealed: false,
            ..sealed
        })
    }

    fn read_kind(kind: PolicyKind, path: &Path) -> Result<Self, CliError> {
        let bytes = fs::read(path).map_err(|source| CliError::PolicyFile {
            kind,
            path: path.to_path_buf(),
            source,
        })?;
        Self::of(kind, Some(path), &bytes)
    }

    pub(super) fn of(
        kind: PolicyKind,
        path: Option<&Path>,
        bytes: &[u8],
    ) -> Result<Self, CliError> {
        let name = path.unwrap_or(Path::new("(embedded)"));
        let policy = Policy::parse(kind, name, bytes)?;
        let document = serde_json::from_slice(bytes).unwrap_or_default();
        Ok(Self {
            policy,
            path: path.map(Path::to_path_buf),
            document,
            is_sealed: true,
        })
    }

    /// Returns its location, for display.
    pub(super) fn place(&self) -> String {
        match &self.path {
            Some(path) if self.is_sealed => plain(&path.display().to_string()).into_owned(),
            Some(path) => format!("{} (not sealed)", plain(&path.display().to_string())),
            None => "embedded".to_owned(),
        }
    }

    /// Returns what an answer reports about it.
    pub(super) fn reference(&self) -> ArtifactRef {
        ArtifactRef {
            kind: self.policy.kind(),
            policy_path: self.path.as_ref().map(|path| path.display().to_string()),
            policy_id: self.policy.id().to_owned(),
            policy_digest: self.policy.digest().to_owned(),
            sealed: self.is_sealed,
        }
    }

    /// Returns the lines that name it.
    pub(super) fn head(&self) -> String {
        format!(
            "{}  {}\ndigest  {}\nfrom    {}\n",
            self.policy.kind().name(),
            plain(self.policy.id()),
            self.policy.digest(),
            self.place()
        )
    }
}

/// Returns the artifact that a configuration names.
fn named(kind: PolicyKind, configuration: &Configuration) -> Option<&str> {
    match kind {
        PolicyKind::Turn => configuration.turn_policy.as_deref(),
        PolicyKind::Retry => configuration.retry_policy.as_deref(),
    }
}

/// Reads the file that an operator names.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(path).map_err(CliError::file("read", path))
}

/// Returns the kind of policy that a file states that it is.
pub(super) fn kind_of(path: &Path, bytes: &[u8]) -> Result<PolicyKind, CliError> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        let path = path.display();
        CliError::Usage(format!("{path}: invalid JSON: {error}"))
    })?;
    PolicyKind::stated(&document).ok_or_else(|| CliError::PolicyKind {
        path: path.to_path_buf(),
        found: document.get("policyKind").map(Value::to_string),
    })
}
