//! The `[governance]` table of the settings.

use super::keys::GovernanceKeys;
use premath_memory::governance::PolicyPackage;

impl From<&GovernanceKeys> for PolicyPackage {
    fn from(keys: &GovernanceKeys) -> Self {
        Self {
            package: keys.package.clone(),
            package_ref: keys.package_ref.clone(),
            expected_digest: keys.expected_digest.clone(),
        }
    }
}
