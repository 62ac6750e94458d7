//! The governance profile, where a repository's capability registry claims it: a policy
//! package with the digest that it should have and the one that it has
//! (HARNESS-RUNTIME 3.2).

use crate::artifact;
use crate::error::StoreError;
use crate::untrusted::{SETTINGS_MAX, read_in_checkout};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::turn::governance::{REGISTRY_PATHS, RegistryError, is_claimed};
use premath_kernel::turn::{GOVERNANCE_CLAIM, GovernanceProfile, PolicyProvenance};
use std::path::{Component, Path, PathBuf};

/// The claims cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The registry does not have the form of one.
    #[error("cannot read what {path} claims: {source}")]
    Registry {
        /// The registry.
        path: PathBuf,
        /// The error in the registry.
        source: RegistryError,
    },
    /// The registry cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns whether a repository claims the governance profile; one without a
/// registry does not.
///
/// # Errors
///
/// [`ClaimError`].
pub fn claims_governance(repository: &Path) -> Result<bool, ClaimError> {
    for file in REGISTRY_PATHS {
        let registry = read_in_checkout(repository, Path::new(file), SETTINGS_MAX);
        if let Some(registry) = registry.map_err(StoreError::from)? {
            let path = repository.join(file);
            return is_claimed(&registry).map_err(|source| ClaimError::Registry { path, source });
        }
    }
    Ok(false)
}

/// The governance profile is claimed and does not hold, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum GovernanceError {
    /// The registry cannot be read.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The package is not pinned, or is another one.
    #[error("the governance profile is claimed, but its policy package {detail}")]
    Refused {
        /// The class.
        class: FailureClass,
        /// The reason of the refusal.
        detail: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GovernanceError {
    /// Returns the failure classes of a refusal; none where a file is at fault.
    pub fn classes(&self) -> Vec<FailureClass> {
        match self {
            Self::Refused { class, .. } => vec![*class],
            Self::Claim(_) | Self::Store(_) => Vec::new(),
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { .. } => Some(
                "set package and expected_digest (\"sha256:…\", from sha256sum) under [governance] \
                 in harness.toml; a changed package requires a new approval"
                    .to_owned(),
            ),
            Self::Claim(_) => None,
            Self::Store(error) => error.hint(),
        }
    }
}

/// Reads a policy package: below the repository's root as steps may write it, and in
/// another place of the operator's choice as it is.
fn read_package(repository: &Path, package: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    match package.components().all(is_plain) {
        true => Ok(read_in_checkout(repository, package, SETTINGS_MAX)?),
        false => artifact::read(&repository.join(package)),
    }
}

/// The policy package that a repository's settings name (`[governance]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyPackage {
    /// The file, from the repository's root.
    pub package: Option<String>,
    /// How it is named; by the file where there is no name.
    pub package_ref: Option<String>,
    /// The digest that it should have: `sha256:` and 64 hexadecimal digits.
    pub expected_digest: Option<String>,
}

impl PolicyPackage {
    /// Returns the profile that turns are bound to; `None` where the repository does not
    /// claim it.
    ///
    /// # Errors
    ///
    /// [`GovernanceError`]: the package is not pinned or is another one, or a file cannot
    /// be read.
    pub fn profile(&self, repository: &Path) -> Result<Option<GovernanceProfile>, GovernanceError> {
        if !claims_governance(repository)? {
            return Ok(None);
        }
        let content = match &self.package {
            Some(package) => read_package(repository, Path::new(package))?,
            None => None,
        };
        let package_ref = self.package_ref.clone();
        let profile = GovernanceProfile {
            claim_id: Some(GOVERNANCE_CLAIM.to_owned()),
            claimed: true,
            policy_provenance: Some(PolicyProvenance {
                pinned: self.expected_digest.is_some(),
                package_ref: package_ref.or_else(|| self.package.clone()),
                expected_digest: self.expected_digest.clone(),
                bound_digest: content.map(|content| format!("sha256:{}", sha256_hex(&content))),
            }),
        };
        match profile.fault() {
            None => Ok(Some(profile)),
            Some(class) => Err(GovernanceError::Refused {
                class,
                detail: self.detail(class, &profile),
            }),
        }
    }

    /// Returns why a package is refused.
    fn detail(&self, class: FailureClass, profile: &GovernanceProfile) -> String {
        let bound = profile.policy_provenance.as_ref();
        let bound = bound.and_then(|provenance| provenance.bound_digest.as_deref());
        match (&self.package, bound, &self.expected_digest) {
            (Some(package), Some(bound), Some(expected)) => {
                format!("{package} is `{bound}`, expected is `{expected}` ({class})")
            }
            (Some(package), None, _) => format!("{package} does not exist ({class})"),
            _ => format!("is not pinned ({class})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_step_may_put_in_the_place_of_a_governing_file_is_refused_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let registry = root.join("draft/CAPABILITY-REGISTRY.json");
        fs::create_dir(root.join("draft")).unwrap();
        let claims = format!(r#"{{"profileOverlayClaims": ["{GOVERNANCE_CLAIM}"]}}"#);
        fs::write(&registry, claims).unwrap();
        let content = b"package";
        fs::write(root.join("package.json"), content).unwrap();
        let pinned = PolicyPackage {
            package: Some("package.json".to_owned()),
            expected_digest: Some(format!("sha256:{}", sha256_hex(content))),
            ..PolicyPackage::default()
        };
        assert!(pinned.profile(root).unwrap().is_some());
        for file in [root.join("package.json"), registry] {
            let kept = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            mkfifoat(CWD, &file, Mode::RUSR | Mode::WUSR).unwrap();
            pinned.profile(root).unwrap_err();
            fs::remove_file(&file).unwrap();
            symlink("/dev/zero", &file).unwrap();
            pinned.profile(root).unwrap_err();
            fs::remove_file(&file).unwrap();
            fs::write(&file, kept).unwrap();
        }
        // Another place is the operator's choice.
        let elsewhere = tempfile::tempdir().unwrap();
        let package = elsewhere.path().join("package.json");
        fs::write(&package, content).unwrap();
        let pinned = PolicyPackage {
            package: package.to_str().map(str::to_owned),
            ..pinned
        };
        assert!(pinned.profile(root).unwrap().is_some());
    }
}
