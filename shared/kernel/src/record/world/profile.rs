//! What a world reports about itself, and whose turns it takes.

use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::id::WorldId;
use crate::json::read::given_or_default;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The kind of a world's document.
pub(crate) const WORLD_KIND: &str = "premath.world.v1";

/// Where it is in a repository.
pub const WORLD_FILE: &str = "policies/control/harness-world-v1.json";

/// What a world offers that admits the turns of others.
pub(crate) const TURN_ADMISSION: &str = "turn.admit";

/// A world's document.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorldProfile {
    /// The version of the document's form.
    #[schemars(extend("const" = 1))]
    schema: u8,
    /// The document's kind.
    #[schemars(extend("const" = WORLD_KIND))]
    world_kind: String,
    /// The world's id.
    #[schemars(regex(pattern = r"\S"))]
    pub world_id: WorldId,
    /// What it offers to others, as in `turn.admit`.
    #[serde(default)]
    pub offers: BTreeSet<String>,
    /// Whose turns it takes, made under which policy.
    #[serde(default)]
    pub accepts: Vec<AcceptedWorld>,
    /// How far its gate asks a turn to come.
    #[serde(default, deserialize_with = "given_or_default")]
    pub require: Demand,
    /// Constraint blocks of `premath harness-join-check` that its gate holds
    /// turns to, in place of those that a turn brings.
    #[serde(default, deserialize_with = "given_or_default")]
    pub constraints: Map<String, Value>,
}

/// A world whose turns are taken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Acceptance")]
pub struct AcceptedWorld {
    /// The world that they come from.
    pub world_id: WorldId,
    /// The digest of the mutation policy that they were made under.
    pub policy_digest: String,
}

/// How far a gate asks a turn to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Demand {
    /// The join is closed.
    #[serde(rename = "accepted")]
    ClosedJoin,
    /// The join is closed and the turn may change issues.
    #[default]
    #[serde(rename = "mutation-ready")]
    ReadyForChange,
}

/// A document that is not a world's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// It does not have the shape of one.
    #[error(transparent)]
    Shape(#[from] FieldError),
    /// It is of another kind or version.
    #[error("`schema` must be 1 and `worldKind` \"{WORLD_KIND}\"")]
    Kind,
    /// It does not say which world it is.
    #[error("`worldId` must be text that is not blank")]
    Id,
}

impl WorldProfile {
    /// Reads a world's document.
    ///
    /// # Errors
    ///
    /// [`WorldError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WorldError> {
        let profile: Self = Document::parse_strict(bytes)?.read_known()?;
        if profile.schema != 1 || profile.world_kind != WORLD_KIND {
            return Err(WorldError::Kind);
        }
        if profile.world_id.trim().is_empty() {
            return Err(WorldError::Id);
        }
        Ok(profile)
    }

    /// Returns whether turns of a world, made under a policy, are taken.
    pub(super) fn takes(&self, world_id: &WorldId, policy_digest: &str) -> bool {
        self.accepts
            .iter()
            .any(|taken| taken.world_id == *world_id && taken.policy_digest == policy_digest)
    }
}
