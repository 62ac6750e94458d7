//! Which retry policy is in force (`contracts.md` 7).

use super::SettingsError;
use super::file::named_file;
use super::program::Places;
use premath_kernel::policy::retry::{POLICY_PLACE, RetryPolicy};
use premath_memory::artifact;
use std::path::Path;

/// Finds the policy: the artifact that is named, from the repository root; the
/// one in the usual place, where it is there; or the embedded one.
pub(super) fn policy_in(
    root: &Path,
    named: Option<&str>,
    places: &Places,
) -> Result<RetryPolicy, SettingsError> {
    if let Some(name) = named {
        let path = root.join(name);
        let bytes = named_file(places, "batch.retry_policy", name, &path)?;
        return policy_of(&path, &bytes);
    }
    let usual = root.join(POLICY_PLACE);
    if let Some(bytes) = artifact::read(&usual)? {
        return policy_of(&usual, &bytes);
    }
    RetryPolicy::embedded().map_err(|source| SettingsError::Policy {
        path: "(built in)".into(),
        source,
    })
}

/// Reads the policy that `--policy` names.
pub(super) fn policy_of_flag(path: &Path) -> Result<RetryPolicy, SettingsError> {
    let bytes = artifact::read(path)?.ok_or_else(|| SettingsError::Value {
        name: "--policy",
        detail: format!("cannot read {}: no such file", path.display()),
    })?;
    policy_of(path, &bytes)
}

fn policy_of(path: &Path, bytes: &[u8]) -> Result<RetryPolicy, SettingsError> {
    RetryPolicy::parse(bytes).map_err(|source| SettingsError::Policy {
        path: path.to_path_buf(),
        source,
    })
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
            policy_in(root, named, &Places::new())
                .map(|policy| policy.policy_id().to_owned())
                .unwrap()
        };
        let embedded = RetryPolicy::embedded().unwrap();
        assert_eq!(id(None), embedded.policy_id());
        write(&root.join(POLICY_PLACE), "usual");
        write(&root.join("own.json"), "own");
        assert_eq!(id(None), "usual");
        assert_eq!(id(Some("own.json")), "own");
        assert!(policy_in(root, Some("none.json"), &Places::new()).is_err());
        std::fs::write(root.join(POLICY_PLACE), "{}").unwrap();
        assert!(
            policy_in(root, None, &Places::new()).is_err(),
            "a broken one stops the run"
        );
    }

    #[test]
    fn a_named_policy_that_is_missing_is_an_error_of_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[batch]\nretry_policy = \"nofile\"\n";
        let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        let error = policy_in(folder.path(), Some("nofile"), &file.places).unwrap_err();
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
