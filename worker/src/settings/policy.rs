//! Which retry policy is in force (`contracts.md` 7).

use super::SettingsError;
use premath_kernel::policy::retry::{POLICY_PLACE, RetryPolicy};
use premath_memory::{StoreError, artifact};
use std::path::Path;

/// Finds the policy: the artifact that is named, from the repository root; the
/// one in the usual place, where it is there; or the embedded one.
pub(super) fn policy_in(root: &Path, named: Option<&str>) -> Result<RetryPolicy, SettingsError> {
    if let Some(name) = named {
        return policy_of(&root.join(name));
    }
    let usual = root.join(POLICY_PLACE);
    if usual.exists() {
        return policy_of(&usual);
    }
    RetryPolicy::embedded().map_err(|source| SettingsError::Policy {
        path: "(built in)".into(),
        source,
    })
}

/// Reads the policy of a file.
pub(super) fn policy_of(path: &Path) -> Result<RetryPolicy, SettingsError> {
    let bytes = artifact::read(path)?.ok_or_else(|| StoreError::Missing {
        path: path.to_path_buf(),
    })?;
    RetryPolicy::parse(&bytes).map_err(|source| SettingsError::Policy {
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
            policy_in(root, named)
                .map(|policy| policy.policy_id().to_owned())
                .unwrap()
        };
        let embedded = RetryPolicy::embedded().unwrap();
        assert_eq!(id(None), embedded.policy_id());
        write(&root.join(POLICY_PLACE), "usual");
        write(&root.join("own.json"), "own");
        assert_eq!(id(None), "usual");
        assert_eq!(id(Some("own.json")), "own");
        assert!(policy_in(root, Some("none.json")).is_err());
        std::fs::write(root.join(POLICY_PLACE), "{}").unwrap();
        assert!(policy_in(root, None).is_err(), "a broken one stops the run");
    }
}
