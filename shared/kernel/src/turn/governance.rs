//! Whether a repository claims the governance profile (HARNESS-RUNTIME 3.2).

use super::GOVERNANCE_CLAIM;
use crate::json::field::FieldError;
use serde_json::Value;

/// Possible locations of a repository's capability registry; the first that
/// exists counts.
pub const REGISTRY_PATHS: [&str; 2] = [
    "draft/CAPABILITY-REGISTRY.json",
    "specs/premath/draft/CAPABILITY-REGISTRY.json",
];

/// The registry cannot be read, so the claims are unknown.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry is not JSON.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// A field does not fit.
    #[error("`profileOverlayClaims` must be a list of texts, each not empty; found {found}")]
    Claims {
        /// The value that was found.
        found: String,
    },
    /// It is not an object.
    #[error(transparent)]
    Shape(#[from] FieldError),
}

/// Returns whether a registry claims the governance profile.
///
/// # Errors
///
/// [`RegistryError`]: what cannot be read is not taken for unclaimed.
pub fn is_claimed(registry: &[u8]) -> Result<bool, RegistryError> {
    let value: Value =
        serde_json::from_slice(registry).map_err(|error| RegistryError::Json(error.to_string()))?;
    let Value::Object(registry) = value else {
        return Err(FieldError::wrong("registry", "an object", &value).into());
    };
    let Some(claims) = registry.get("profileOverlayClaims") else {
        return Ok(false);
    };
    let wrong = |found: &Value| RegistryError::Claims {
        found: found.to_string(),
    };
    let mut is_claimed = false;
    for claim in claims.as_array().ok_or_else(|| wrong(claims))? {
        let name = claim.as_str().map(str::trim).unwrap_or_default();
        if name.is_empty() {
            return Err(wrong(claim));
        }
        is_claimed |= name == GOVERNANCE_CLAIM;
    }
    Ok(is_claimed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_claims_is_read_and_never_guessed() {
        for (text, expected) in [
            ("{}", Some(false)),
            (r#"{"profileOverlayClaims": []}"#, Some(false)),
            (
                r#"{"profileOverlayClaims": ["profile.other.v1"]}"#,
                Some(false),
            ),
            (
                r#"{"profileOverlayClaims": ["a", " profile.doctrine_inf_governance.v0 "]}"#,
                Some(true),
            ),
            (
                r#"{"profileOverlayClaims": "profile.doctrine_inf_governance.v0"}"#,
                None,
            ),
            (r#"{"profileOverlayClaims": [""]}"#, None),
            (r#"{"profileOverlayClaims": null}"#, None),
            ("[]", None),
            ("{", None),
        ] {
            assert_eq!(is_claimed(text.as_bytes()).ok(), expected, "{text}");
        }
    }
}
