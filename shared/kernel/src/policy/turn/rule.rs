//! One rule about tool calls.

use super::call::{AgentCall, Caller};
use super::command::ShellCommand;
use super::glob;
use super::tool::ToolClass;
use crate::json::read::{or_default, text, texts, unless_blank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a rule decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// The call may run.
    Allow,
    /// The call must not run.
    Deny,
}

impl RuleDecision {
    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// One rule: what it matches, and what it decides.
///
/// A rule matches a call by its tool, and by each of the conditions that it
/// has. A rule that denies matches where any command, path or host of the call
/// does. A rule that allows matches only where all of them do, and never a shell
/// text that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRule {
    /// The rule's id, unique in its policy.
    #[serde(deserialize_with = "text")]
    #[schemars(regex(pattern = r"\S"))]
    pub rule_id: String,
    /// The class of the tool; any where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolClass>,
    /// Who makes the call: `agent`, `subagent`; anybody where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub callers: Vec<Caller>,
    /// The agent's name of the tool, or `server/tool`. In this and every other
    /// pattern `*` is any text, `|` is between alternatives, and a letter after
    /// `\` is itself.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = r"\S"))]
    pub name: Option<String>,
    /// Programs of a command, without their folder.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub programs: Vec<String>,
    /// What the program is asked to do: its first argument beside options, or
    /// several in a row (`remote add`).
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub subcommands: Vec<String>,
    /// Arguments that the command has in this order; there may be others between
    /// them.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub arguments: Vec<String>,
    /// Files: from the worktree's root, or absolute where they are outside of
    /// it; `*` is any text without a slash, `**` any number of folders.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub paths: Vec<String>,
    /// Hosts.
    #[serde(
        default,
        deserialize_with = "texts",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(default, inner(regex(pattern = r"\S")))]
    pub hosts: Vec<String>,
    /// What it decides.
    pub decision: RuleDecision,
    /// The reason, as the agent reads it; a rule that denies has one.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "String::is_empty"
    )]
    #[schemars(default)]
    pub reason: String,
}

impl ToolRule {
    /// Returns whether the rule says what a command must be.
    pub(super) fn is_about_commands(&self) -> bool {
        !self.programs.is_empty() || !self.subcommands.is_empty() || !self.arguments.is_empty()
    }

    /// Returns whether the rule says more than which tool it is about.
    pub(super) fn has_condition(&self) -> bool {
        self.is_about_commands() || !self.paths.is_empty() || !self.hosts.is_empty()
    }

    /// Returns whether it matches a call; of the shell, one command of it.
    pub(super) fn matches(&self, call: &AgentCall, command: Option<&ShellCommand>) -> bool {
        self.matches_tool(call)
            && self.matches_command(command)
            && self.matches_each(
                &self.hosts,
                call.hosts.iter().map(String::as_str),
                glob::matches_host,
            )
            && self.matches_each(
                &self.paths,
                call.paths.iter().map(super::CallPath::as_str),
                glob::matches_path,
            )
    }

    pub(super) fn matches_tool(&self, call: &AgentCall) -> bool {
        let is_class = self.tool.is_none_or(|class| class == call.class);
        let name = self.name.as_deref();
        let is_caller = self.callers.is_empty() || self.callers.contains(&call.caller);
        is_class && is_caller && name.is_none_or(|name| glob::matches(name, &call.tool))
    }

    fn matches_command(&self, command: Option<&ShellCommand>) -> bool {
        if !self.is_about_commands() {
            return true;
        }
        let Some(command) = command else {
            return false;
        };
        let program = command.program();
        let is_program = match program {
            _ if self.programs.is_empty() => true,
            Some(program) => self.programs.iter().any(|one| glob::matches(one, program)),
            None => false,
        };
        let is_denial = self.decision == RuleDecision::Deny;
        let is_subcommand = |subcommand: &String| {
            let names: Vec<&str> = subcommand.split_whitespace().collect();
            command.is_subcommand(&names, !is_denial, glob::matches)
        };
        let has_subcommand =
            self.subcommands.is_empty() || self.subcommands.iter().any(is_subcommand);
        let mut words = command.arguments().iter();
        let mut is_next = |pattern: &String| {
            words.any(|word| (is_denial || !word.is_dynamic) && glob::matches(pattern, &word.text))
        };
        is_program && has_subcommand && self.arguments.iter().all(&mut is_next)
    }

    /// Matches patterns against what a call has: a denial by any, else by all
    /// and at least one.
    fn matches_each<'t>(
        &self,
        patterns: &[String],
        texts: impl Iterator<Item = &'t str> + Clone,
        matches: impl Fn(&str, &str) -> bool,
    ) -> bool {
        if patterns.is_empty() {
            return true;
        }
        let is_one = |text: &str| patterns.iter().any(|pattern| matches(pattern, text));
        let mut texts = texts.peekable();
        match self.decision {
            RuleDecision::Deny => texts.any(is_one),
            RuleDecision::Allow => texts.peek().is_some() && texts.all(is_one),
        }
    }
}
