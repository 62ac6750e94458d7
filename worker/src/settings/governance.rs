//! The governance profile, where the repository claims it: a policy package
//! with the digest that it should have and the one that it has
//! (HARNESS-RUNTIME 3.2).

use super::keys::GovernanceKeys;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::turn::{GOVERNANCE_CLAIM, GovernanceProfile, PolicyProvenance};
use premath_memory::governance::{ClaimError, claims_governance};
use premath_memory::{StoreError, artifact};
use std::path::Path;

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
    pub(crate) fn classes(&self) -> Vec<FailureClass> {
        match self {
            Self::Refused { class, .. } => vec![*class],
            Self::Claim(_) | Self::Store(_) => Vec::new(),
        }
    }

    /// Returns what a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
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

/// Returns the profile that turns are bound to; `None` where it is not
/// claimed.
pub(super) fn profile(
    table: &GovernanceKeys,
    repository: &Path,
) -> Result<Option<GovernanceProfile>, GovernanceError> {
    if !claims_governance(repository)? {
        return Ok(None);
    }
    let content = match &table.package {
        Some(package) => artifact::read(&repository.join(package))?,
        None => None,
    };
    let package_ref = table.package_ref.clone();
    let profile = GovernanceProfile {
        claim_id: Some(GOVERNANCE_CLAIM.to_owned()),
        claimed: true,
        policy_provenance: Some(PolicyProvenance {
            pinned: table.expected_digest.is_some(),
            package_ref: package_ref.or_else(|| table.package.clone()),
            expected_digest: table.expected_digest.clone(),
            bound_digest: content.map(|content| format!("sha256:{}", sha256_hex(&content))),
        }),
    };
    match profile.fault() {
        None => Ok(Some(profile)),
        Some(class) => Err(GovernanceError::Refused {
            class,
            detail: detail(class, table, &profile),
        }),
    }
}

/// Returns why a package is refused.
fn detail(class: FailureClass, table: &GovernanceKeys, profile: &GovernanceProfile) -> String {
    let bound = profile.policy_provenance.as_ref();
    let bound = bound.and_then(|provenance| provenance.bound_digest.as_deref());
    match (&table.package, bound, &table.expected_digest) {
        (Some(package), Some(bound), Some(expected)) => format!(
            "{} is `{bound}`, expected is `{expected}` ({class})",
            package
        ),
        (Some(package), None, _) => format!("{package} does not exist ({class})"),
        _ => format!("is not pinned ({class})"),
    }
}
