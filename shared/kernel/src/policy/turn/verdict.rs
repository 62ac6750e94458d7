//! The decision about one call.

use super::artifact::TurnPolicy;
use super::call::AgentCall;
use super::command::ShellCommand;
use super::limits::CallCounts;
use super::rule::{RuleDecision, ToolRule};
use super::tool::ToolClass;
use schemars::JsonSchema;
use serde::Serialize;

/// The rule id of a decision that no rule makes.
pub const DEFAULT_RULE_ID: &str = "default";

/// What is decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolVerdict {
    /// Whether it may run.
    pub decision: RuleDecision,
    /// The rule or the limit that decides, [`DEFAULT_RULE_ID`] where none does.
    pub rule_id: String,
    /// The reason, as the agent reads it; blank where the call may run.
    pub reason: String,
}

impl ToolVerdict {
    /// Returns whether the call must not run.
    pub const fn is_denial(&self) -> bool {
        matches!(self.decision, RuleDecision::Deny)
    }

    fn of(rule: &ToolRule) -> Self {
        Self {
            decision: rule.decision,
            rule_id: rule.rule_id.clone(),
            reason: rule.reason.clone(),
        }
    }

    fn denial(rule_id: &str, reason: String) -> Self {
        Self {
            decision: RuleDecision::Deny,
            rule_id: rule_id.to_owned(),
            reason,
        }
    }
}

/// Decides about a call.
///
/// The first rule that matches decides. Of a shell text each command is decided
/// by itself, and one that is denied denies all of it. What no rule matches is
/// denied, and so is what goes over a limit.
pub fn decide(policy: &TurnPolicy, call: &AgentCall, counts: &CallCounts) -> ToolVerdict {
    let is_subagent = call.class == ToolClass::Subagent;
    if let Some((rule_id, reason)) = policy.calls().broken_by(counts, is_subagent) {
        return ToolVerdict::denial(rule_id, reason);
    }
    if call.class != ToolClass::Shell {
        return by_rules(policy, call, None);
    }
    let Some(commands) = call.commands() else {
        return unread(policy, call);
    };
    let mut verdict = None;
    for command in &commands {
        let found = by_rules(policy, call, Some(command));
        if found.is_denial() {
            return found;
        }
        verdict.get_or_insert(found);
    }
    // A text without a command, such as a comment.
    verdict.unwrap_or_else(|| by_rules(policy, call, None))
}

/// Returns whether a policy allows any call of a tool: whether a rule without
/// another condition denies it is all that its name decides.
pub fn may_allow(policy: &TurnPolicy, call: &AgentCall) -> bool {
    let rules = policy.tools().iter();
    let mut deciding = rules.filter(|rule| {
        let decides = rule.decision == RuleDecision::Allow || !rule.has_condition();
        decides && rule.matches_tool(call)
    });
    let first = deciding.next();
    first.is_some_and(|rule| rule.decision == RuleDecision::Allow)
}

fn by_rules(policy: &TurnPolicy, call: &AgentCall, command: Option<&ShellCommand>) -> ToolVerdict {
    let mut rules = policy.tools().iter();
    match rules.find(|rule| rule.matches(call, command)) {
        Some(rule) => ToolVerdict::of(rule),
        None => ToolVerdict::denial(
            DEFAULT_RULE_ID,
            format!("No rule of the policy allows this call of `{}`.", call.tool),
        ),
    }
}

/// Decides about a shell text that is not understood: rules that deny without a
/// condition on commands still name their reason; none allows it.
fn unread(policy: &TurnPolicy, call: &AgentCall) -> ToolVerdict {
    let mut rules = policy.tools().iter();
    let denial = rules.find(|rule| {
        rule.decision == RuleDecision::Deny && !rule.is_about_commands() && rule.matches(call, None)
    });
    match denial {
        Some(rule) => ToolVerdict::of(rule),
        None => ToolVerdict::denial(
            DEFAULT_RULE_ID,
            "This shell command cannot be parsed, so no rule allows it. Write it in simpler parts."
                .to_owned(),
        ),
    }
}
