//! When a turn ends.

use super::artifact::TurnPolicyError;
use crate::json::read::given;
use crate::policy::landing::REPAIR_ROUNDS_MAX;
use crate::turn::word::StopReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most repair rounds.
const ROUNDS_MAX: u64 = REPAIR_ROUNDS_MAX as u64;

/// The `stop` of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopRules {
    /// How often an agent that says it is done is shown the failure of the
    /// verification and works on in its session, 0 to 7.
    #[schemars(range(max = ROUNDS_MAX))]
    pub repair_rounds: u64,
    /// The stop reasons after which a turn may close its issue; where absent,
    /// every reason that the protocol knows.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub handled_stop_reasons: Option<BTreeSet<StopReason>>,
}

impl StopRules {
    pub(super) fn check(&self) -> Result<(), TurnPolicyError> {
        match self.repair_rounds {
            0..=ROUNDS_MAX => Ok(()),
            found => Err(TurnPolicyError::TooManyRounds { found }),
        }
    }
}
