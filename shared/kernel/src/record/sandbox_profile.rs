//! The sandbox profile: what commands may write, read and reach, as the
//! document that a turn is bound to (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`,
//! `4.3`).

use crate::json::canonical;
use crate::policy::network::NetworkChoice;
use crate::policy::sandbox::{ContainerImage, SandboxMode};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The kind of a [`SandboxProfile`].
pub(crate) const SANDBOX_KIND: &str = "premath.harness.sandbox_witness.v1";

/// What commands may do, as a document; a turn is bound to its reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxProfile {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = SANDBOX_KIND))]
    witness_kind: &'static str,
    /// The sandbox mode that enforces the profile.
    pub mode: SandboxMode,
    /// The image that the system folders are from, in the mode `container`;
    /// `{image}` names it in the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ContainerImage>,
    /// What may be written: what changes from lane to lane and from step to
    /// step by its name, as in `{worktree}`, the rest by its path.
    pub write: BTreeSet<String>,
    /// What may be read beside that.
    pub read: BTreeSet<String>,
    /// Which hosts may be reached, by the policy of the phase.
    pub network: NetworkChoice,
}

impl SandboxProfile {
    /// Makes the profile of a mode without an image.
    pub const fn new(
        mode: SandboxMode,
        write: BTreeSet<String>,
        read: BTreeSet<String>,
        network: NetworkChoice,
    ) -> Self {
        Self {
            schema: 1,
            witness_kind: SANDBOX_KIND,
            mode,
            image: None,
            write,
            read,
            network,
        }
    }

    /// Returns `"sandbox1_" + hex(sha256(canonical(profile)))`.
    pub fn reference(&self) -> String {
        let text = canonical::canonical(self);
        format!("sandbox1_{}", canonical::sha256_hex(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::network::NetworkWord;

    #[test]
    fn a_profile_is_known_by_what_it_says() {
        let network = NetworkChoice {
            work: NetworkWord::Public,
            verify: NetworkWord::Off,
            unenforced: None,
        };
        let profile = |mode, path: &str| {
            let write = BTreeSet::from([path.to_owned()]);
            SandboxProfile::new(mode, write, BTreeSet::new(), network).reference()
        };
        let one = profile(SandboxMode::Landlock, "{worktree}");
        assert!(one.starts_with("sandbox1_") && one.len() == 9 + 64, "{one}");
        assert_eq!(one, profile(SandboxMode::Landlock, "{worktree}"));
        assert_ne!(one, profile(SandboxMode::Namespaces, "{worktree}"));
        assert_ne!(one, profile(SandboxMode::Landlock, "/x"));
        let of_image = |id: &str| {
            let list = BTreeSet::new;
            let profile = SandboxProfile::new(SandboxMode::Container, list(), list(), network);
            let (name, id) = ("debian:12".to_owned(), id.to_owned());
            let image = Some(ContainerImage { name, id });
            SandboxProfile { image, ..profile }.reference()
        };
        assert_ne!(of_image("1"), of_image("2"));
    }
}
