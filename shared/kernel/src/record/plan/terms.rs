//! What a planned batch would be run with.

use crate::json::stamp::Stamp;
use crate::policy::budget::Budget;
use crate::policy::sandbox::SandboxMode;
use crate::record::event::ActsUnder;
use schemars::JsonSchema;
use serde::Serialize;

/// What a batch would be run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanTerms {
    /// What its changes would rest on.
    #[serde(flatten)]
    pub acts_under: ActsUnder,
    /// The agents or the command that work, those of the lanes first.
    pub agents: Vec<PlannedAgent>,
    /// The verification command.
    pub verify_command: String,
    /// The turn policy in force.
    pub turn_policy: PlannedPolicy,
    /// The retry policy in force.
    pub retry_policy: PlannedPolicy,
    /// How many attempts an issue has where no rule of the retry policy says
    /// otherwise.
    pub attempts: u32,
    /// The sandbox mode of the commands.
    pub sandbox: SandboxMode,
    /// The sandbox mode, for a person.
    pub sandbox_detail: String,
    /// How long an attempt's work may run, in milliseconds.
    pub step_limit_ms: u64,
    /// How long any other command may run, in milliseconds.
    pub verify_limit_ms: u64,
    /// How many dispatches a lane gets; null without a bound.
    pub rounds: Option<u64>,
    /// How many attempts a dispatch has.
    pub steps_per_dispatch: u64,
    /// When the batch ends where nothing is left to do: `done`, `idle` or `forever`.
    pub until: &'static str,
    /// The hours in which attempts begin, by the clocks of the machine; null if not
    /// set.
    pub window: Option<String>,
    /// When no new work starts any more; null if not set.
    pub ends_at: Option<Stamp>,
    /// What the batch may use.
    pub batch_budget: PlannedBudget,
    /// What an issue may use, over its attempts in the batch.
    pub issue_budget: PlannedBudget,
    /// What happens to closed work.
    pub landing: PlannedLanding,
}

/// Who works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedAgent {
    /// The provider, as in `codex`.
    pub provider: String,
    /// How what it did becomes evidence.
    pub adapter: String,
    /// The command, as a shell reads it.
    pub command: String,
    /// Whether it works only where the provider of a lane is parked.
    pub is_fallback: bool,
}

/// A policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPolicy {
    /// Its id.
    pub policy_id: String,
    /// Its digest.
    pub policy_digest: String,
}

/// What may be used; null has no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedBudget {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Billionths of a dollar.
    pub cost_nano_usd: Option<u64>,
    /// Milliseconds.
    pub time_ms: Option<u64>,
}

impl From<Budget> for PlannedBudget {
    fn from(budget: Budget) -> Self {
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis());
        Self {
            tokens: budget.tokens,
            cost_nano_usd: budget.cost_nano_usd,
            time_ms: budget.time.map(|time| millis(time).unwrap_or(u64::MAX)),
        }
    }
}

/// What happens to closed work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLanding {
    /// The landing mode.
    pub mode: &'static str,
    /// The branch that attempts start from, and land on with mode `merge`; null
    /// with mode `none`.
    pub target: Option<String>,
    /// The command that what landed must pass; null where there is none.
    pub check_command: Option<String>,
    /// The remote that the target is pushed to; null where there is none.
    pub push: Option<String>,
}
