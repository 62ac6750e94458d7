//! The turn policy: which tool calls an agent may make, and when its turn ends
//! (`tool-gate.md` 4).
//!
//! The policy is an artifact of the operator, bound by its digest. A call is
//! judged before it runs, by what the agent reports of it. Rules about commands
//! are guidance and early feedback, and no boundary: a shell can always be
//! talked around them. The boundary is the sandbox.

mod artifact;
mod call;
pub mod command;
mod compaction;
mod glob;
mod limits;
mod output;
mod replay;
mod risk;
mod role;
mod rule;
mod statement;
mod stop;
mod tool;
mod verdict;

pub use artifact::{POLICY_KIND, POLICY_PLACE, TurnPolicy, TurnPolicyError};
pub use call::{AgentCall, CallPath, Caller};
pub use compaction::CompactionRules;
pub use limits::{CallCounts, CallLimits};
pub use output::OutputRules;
pub use replay::{RecordedCall, Replay};
pub use risk::{RiskControls, RiskRule, RiskRules, WorkSetup};
pub use role::{HandoffRule, RoleRule, RoleRules};
pub use rule::{RuleDecision, ToolRule};
pub use statement::SetupStatement;
pub use stop::StopRules;
pub use tool::ToolClass;
pub use verdict::{DEFAULT_RULE_ID, ToolVerdict, decide, may_allow};

#[cfg(test)]
mod tests;
